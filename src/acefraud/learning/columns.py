"""The loop over column tables: the same playbook, selector and induction, many transactions at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.events import Recalibrated
from acefraud.core.evidence import Record
from acefraud.core.scoring import Calibration
from acefraud.core.table import Columns, FactTable
from acefraud.curation.curator import Curator, NewBullet
from acefraud.embedded.induction.bins import BinOptions
from acefraud.embedded.induction.boosting import History, Induced, InductionOptions, Lesson, induce
from acefraud.embedded.induction.fitting import probabilities
from acefraud.embedded.induction.holding_up import record_of
from acefraud.embedded.reflector import as_reply
from acefraud.learning.citing import cite
from acefraud.learning.demotion import WITH_BULLETS, WITH_NEWCOMERS, Demotion, Patience, demotion_of, revival_of
from acefraud.learning.options import LearnerOptions
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import THE_ENGINE, BulletPlaybook

Mask = npt.NDArray[np.bool_]
Column = npt.NDArray[np.float64]
Micros = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions:
    """When and how much is learnt from a stream of columns."""

    learner: LearnerOptions = field(default_factory=LearnerOptions)
    induction: InductionOptions = field(default_factory=InductionOptions)
    memory: int = 20_000
    """Labelled cases that are remembered; the oldest make room."""
    review_every: int = 500
    """Outcomes after which what is remembered is looked at anew..."""
    review_share: float = 0.2
    """...or this share of what is remembered, where that is more."""
    review_at_last: int = 2_000
    """...but never later than this."""
    review_rounds: int = 6
    review_bins: BinOptions = field(default_factory=lambda: BinOptions(cuts=24, fraud_cuts=12))
    """Cut a little more coarsely than for a whole history: a review has to be quick."""
    watch_every: int = 250
    """Outcomes after which the record of each bullet is looked at: it costs little, and bad bullets go early."""
    recent: int = 2_000
    """The latest outcomes, on which the record of each bullet is watched: on all of them, and on their later half."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions on many rows."""

    probabilities: Column
    cited: npt.NDArray[np.int64]
    """How many bullets each decision cites."""


class ColumnLearner:
    """Learns a playbook from labelled columns and decides with it. Decisions are not recorded one by one."""

    def __init__(
        self,
        playbook: BulletPlaybook | None = None,
        options: ColumnOptions | None = None,
        *,
        selector: HybridSelector | None = None,
        seed: int = 0,
    ) -> None:
        self.playbook = BulletPlaybook() if playbook is None else playbook
        self.options = options or ColumnOptions()
        self.selector = HybridSelector(seed=seed, explore=False) if selector is None else selector
        self._generator = np.random.default_rng(seed)
        self._curator = Curator()
        self._memory: list[tuple[FactTable, Mask]] = []
        self._unreviewed = self._unwatched = 0

    @property
    def bullets(self) -> list[Bullet]:
        """What the playbook decides with."""
        return self.playbook.get_bullets_for_node(self.options.learner.node)

    @property
    def remembered(self) -> int:
        """How many labelled cases are at hand."""
        return sum(len(labels) for _, labels in self._memory)

    def study(self, rows: FactTable, labels: Mask, times: Micros | None = None) -> None:
        """Learn from a whole labelled history, in the order of time."""
        options = self.options.induction
        order = slice(None) if times is not None else self._generator.permutation(len(labels))
        history = History(rows.take(order), labels[order], times=() if times is None else Moments(times))
        induced = induce(history, options, self._generator)
        if induced is not None:
            self._take_in(induced, Source.OFFLINE, f"learnt from {len(labels):,} labelled cases")
        last = np.arange(len(labels))[-self.options.memory :]  # a copy: a slice would keep all of the history alive
        self._memory = [(history.rows.take(last), history.labels[last])]

    def decide(self, rows: FactTable, *, every_bullet: bool = False, ids: Sequence[str] | None = None) -> Decided:
        """Decide rows with the bullets that the selector picks for each, or with every bullet that fires."""
        node = self.options.learner.node
        calibration = self.playbook.snapshot().calibration(node) or Calibration(intercept=0.0, knowledge_scale=0.0)
        selector, wanted = None if every_bullet else self.selector, self.options.learner.n_bullets
        spoken = cite(self.bullets, rows, calibration.base_rate, wanted, selector, ids=ids)
        return Decided(probabilities(calibration.intercept + spoken.log_odds), spoken.cited.sum(axis=1))

    def hear(self, rows: FactTable, labels: Mask) -> None:
        """Take in outcomes in the order in which they arrived, and learn once there are enough new ones."""
        self._memory.append((rows, labels))
        self._unreviewed += len(labels)
        self._unwatched += len(labels)
        if self._unreviewed >= self._enough_to_review():
            self.review()
        elif self._unwatched >= self.options.watch_every:
            self.watch()

    def _enough_to_review(self) -> float:
        options = self.options
        return max(options.review_every, min(options.review_share * self.remembered, options.review_at_last))

    def watch(self) -> None:
        """Demote the bullets that the latest outcomes no longer bear out."""
        self._unwatched = 0
        latest = self._latest()
        for bullet in self.bullets:
            if bullet.condition is not None and bullet.status is not Status.PINNED:
                self._move(bullet, latest.demotion_of(bullet, bullet.condition))

    def review(self) -> None:
        """Demote, revive, and grow bullets on what is remembered; fit all weights anew."""
        self.watch()
        self._unreviewed = 0
        rows, labels = self._recall()
        options = replace(
            self.options.induction, runs=1, rounds=self.options.review_rounds, bins=self.options.review_bins
        )
        induced = induce(History(rows, labels), options, self._generator, known=self._known())
        if induced is not None:
            self._take_in(induced, Source.ONLINE, f"learnt from the latest {len(labels):,} outcomes", self._latest())

    def _recall(self) -> tuple[FactTable, Mask]:
        """What is remembered as one table; the oldest make room."""
        self._memory = [_joined(self._memory, self.options.memory)]
        return self._memory[0]

    def _latest(self) -> _Latest:
        return _Latest(*_joined(self._memory, self.options.recent))

    def _known(self) -> list[Condition]:
        """The conditions that take part in a review: of those in use, and of the youngest that the engine retired."""
        considered = [bullet for bullet in self._considered() if bullet.condition is not None]
        retired = [bullet.id for bullet in considered if bullet.status is Status.RETIRED]
        forgotten = set(retired[: -self.options.induction.most_bullets])
        return [bullet.condition for bullet in considered if bullet.condition and bullet.id not in forgotten]

    def _considered(self) -> list[Bullet]:
        """Active bullets, and those the engine retired, which may come back."""
        return [
            bullet
            for bullet in self.playbook.snapshot().bullets.values()
            if bullet.node == self.options.learner.node
            and (bullet.status is not Status.RETIRED or bullet.status_by == THE_ENGINE)
        ]

    def _move(self, bullet: Bullet, to: Demotion | None) -> None:
        if to is not None:
            self.playbook.set_status(bullet.id, to.status, why=to.reason)

    def _take_in(self, induced: Induced, source: Source, why: str, latest: _Latest | None = None) -> None:
        """Let the playbook say what was learnt, but for what the latest outcomes speak against already."""
        node, cases = self.options.learner.node, induced.calibration.cases
        lessons = {one.condition: one for one in induced.lessons if latest is None or latest.bear_out(one, cases)}
        with self.playbook.one_step(why=why):
            weights: dict[str, float] = defaultdict(float)
            for bullet in self._considered():
                lesson = lessons.pop(bullet.condition, None) if bullet.condition is not None else None
                self._renew(bullet, lesson, weights)
            for lesson, said_by in zip(lessons.values(), self._curate(list(lessons.values()), source), strict=True):
                weights[said_by] += lesson.weight
            weights.pop("", None)
            before = self.playbook.snapshot().calibration(node)
            threshold = before.threshold if before else self.options.learner.threshold
            frame = induced.calibration.model_copy(update={"threshold": threshold})
            self.playbook.record([Recalibrated(node=node, calibration=frame, weights=dict(weights))])

    def _renew(self, bullet: Bullet, lesson: Lesson | None, weights: dict[str, float]) -> None:
        """A bullet that is there already gets its new weight, or is retired or revived as the fit has it."""
        if lesson is not None:
            weights[bullet.id] += lesson.weight
            back = bullet.status in (Status.RETIRED, Status.CANDIDATE) and bullet.status_by == THE_ENGINE
            if back or _outdated(bullet, lesson):
                self._measure_anew(bullet, lesson)
            if back:
                self._move(bullet, revival_of(bullet, lesson.evidence))
        elif bullet.source is not Source.MANUAL and bullet.status not in (Status.PINNED, Status.RETIRED):
            reason = "fitted to nothing: others say it already, or it no longer holds"
            self._move(bullet, Demotion(Status.RETIRED, reason))

    def _measure_anew(self, bullet: Bullet, lesson: Lesson) -> None:
        """With the figures of now: the latest outcomes are held against them, and old ones would mislead."""
        reply = as_reply(lesson)
        self.playbook.edit_bullet(
            bullet.id,
            str(reply["new_bullet"]),
            condition=lesson.condition,
            argues=lesson.argues,
            evidence=lesson.evidence,
            problem_types=reply["problem_types"],
        )

    def _curate(self, lessons: Sequence[Lesson], source: Source) -> list[str]:
        """For each the id of the bullet that says it: a new one, or one that says nearly the same already."""
        new = [
            NewBullet(
                content=str(reply["new_bullet"]),
                source=source,
                condition=lesson.condition,
                argues=lesson.argues,
                evidence=lesson.evidence,
                weight=lesson.weight,
                problem_types=reply["problem_types"],
            )
            for lesson in lessons
            for reply in [as_reply(lesson)]
        ]
        merged = self._curator.merge_bullets(new, self.options.learner.node, self.playbook)
        return [one or self._said_by(each) for one, each in zip(merged, new, strict=True)]

    def _said_by(self, new: NewBullet) -> str:
        """The id of the bullet in use that says the same; nothing where a person retired it."""
        node = self.options.learner.node
        same = self._curator.said_already(new.content, node, self.playbook, condition=new.condition, argues=new.argues)
        return same.id if same is not None and same.status is not Status.RETIRED else ""


@dataclass(frozen=True, slots=True)
class _Latest:
    """The latest outcomes, against which bullets are held."""

    rows: FactTable
    labels: Mask

    def demotion_of(self, bullet: Bullet, condition: Condition, patience: Patience = WITH_BULLETS) -> Demotion | None:
        """What all of them mean for a bullet, or their later half, which tells sooner of what happens often."""
        mask, count = condition.holds_in(self.rows), len(self.labels)
        for first in (0, count // 2):
            fired, truth = mask[first:], self.labels[first:]
            found = demotion_of(bullet, float(truth.mean()), record_of(fired, truth), count - first, patience)
            if found is not None:
                return found
        return None

    def bear_out(self, lesson: Lesson, among: int) -> bool:
        """Whether a lesson from so many cases would not be demoted at once: most of them may be long ago."""
        learnt, later = lesson.evidence.learnt, lesson.evidence.later or Record(support=0, frauds=0)
        whole = Record(support=learnt.support + later.support, frauds=learnt.frauds + later.frauds)
        evidence = lesson.evidence.model_copy(update={"learnt": whole, "later": None, "cases": among})
        bullet = Bullet(id="new", content=str(lesson.condition), argues=lesson.argues, evidence=evidence)
        return self.demotion_of(bullet, lesson.condition, WITH_NEWCOMERS) is None


class Moments(Sequence[datetime]):
    """Microseconds since 1970 that read as times."""

    def __init__(self, micros: Micros) -> None:
        self._micros = micros

    def __len__(self) -> int:
        return len(self._micros)

    def __getitem__(self, place: int) -> datetime:  # type: ignore[override]
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(self._micros[place]))


def _outdated(bullet: Bullet, lesson: Lesson) -> bool:
    """Whether a bullet of the engine goes by figures from half of the cases there are by now, or by wrong ones."""
    if bullet.source is Source.MANUAL or bullet.status is Status.PINNED or bullet.evidence is None:
        return False
    now, (low, high) = lesson.evidence.shown, bullet.evidence.interval
    return now.support >= 2 * bullet.evidence.shown.support or not low <= (now.precision or 0.0) <= high


def _joined(parts: Sequence[tuple[FactTable, Mask]], most: int) -> tuple[FactTable, Mask]:
    """The last of the rows as one table, so many at most."""
    first, count = len(parts), 0
    while first and count < most:
        first -= 1
        count += len(parts[first][1])
    rows = stacked([table for table, _ in parts[first:]])
    labels = np.concatenate([part for _, part in parts[first:]])
    return (rows, labels) if count <= most else (rows.take(slice(-most, None)), labels[-most:])


def stacked(tables: Sequence[FactTable]) -> FactTable:
    """Tables one under the other. Facts that one of them lacks are unknown there."""
    if len(tables) == 1:
        return tables[0]
    columns = [table.columns for table in tables]
    numbers = sorted({name for one in columns for name in one.numbers})
    flags = sorted({name for one in columns for name in one.flags})
    categories = sorted({name for one in columns for name in one.categories})
    return FactTable.of_columns(
        Columns(
            {name: np.concatenate([table.numbers(name) for table in tables]) for name in numbers},
            {name: np.concatenate([table.flags(name) for table in tables]) for name in flags},
            {name: _stacked_words([table.categories(name) for table in tables]) for name in categories},
        ),
        sum(len(table) for table in tables),
    )


def _stacked_words(
    parts: Sequence[tuple[npt.NDArray[np.int32], tuple[str, ...]]],
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    if all(words is parts[0][1] or words == parts[0][1] for _, words in parts):
        return np.concatenate([codes for codes, _ in parts]), parts[0][1]
    together = tuple(sorted({word for _, words in parts for word in words}))
    place = {word: position for position, word in enumerate(together)}
    lookups = [np.array([*(place[word] for word in words), -1], dtype=np.int32) for _, words in parts]
    return np.concatenate([lookup[codes] for lookup, (codes, _) in zip(lookups, parts, strict=True)]), together
