"""One review of a playbook: watch, retire, revive, induce, fit, calibrate.

A review is a function of the remembered cases and a snapshot of the playbook, and returns a `ReviewPlan`, which `apply`
writes. Every retirement, demotion and revival carries its reason, which is written with the status change in the
ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from acefraud.core.bullet import Bullet, Evidence, NewBullet, Record, Source, Status, percent, record_in_words
from acefraud.core.calibration import Calibration, log_odds
from acefraud.core.condition import Condition
from acefraud.core.events import THE_ENGINE, Recalibrated, Reviewed
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import Verdict
from acefraud.curation.curator import Curator
from acefraud.engine.entity_memory import directions_of
from acefraud.engine.options import LearnerOptions
from acefraud.learning.level import level_at, log_odds_in
from acefraud.roles.embedded.agent import weight_of
from acefraud.roles.embedded.case_memory import KnownCases, LabelledFacts
from acefraud.roles.embedded.reflector import EmbeddedReflector, can_be_fitted
from acefraud.rules.induction.boosting import nearly_same
from acefraud.rules.induction.induce import Induced, Lesson
from acefraud.rules.induction.out_of_time import record_of
from acefraud.rules.scorecard import lines_in, missing_cases
from acefraud.storage.changes import plan_edit
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arrays import FloatArray
from acefraud.support.exact_math import log, sigmoid

MUCH_CHANGED = log(2.0)
"""If the log-odds of fraud elsewhere have changed by this much, bullets are held to figures that change as well."""
LEAST_RECORD = 20
"""Outcomes a bullet must have fired on before its record can count against it."""
ZERO_WEIGHT = "its fitted weight is zero: other bullets cover it, or it no longer holds"
_DEMOTED = (Status.RETIRED, Status.CANDIDATE)

Rule = tuple[Bullet, Condition]


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceLimit:
    """How long a bullet may stay silent."""

    least_expected: float = 10.0
    """Expected firings, or expected frauds, below which their absence proves nothing."""
    silent: float = 0.1
    """At or below this share of what was expected, a pattern has stopped."""

    def reached(self, seen: int, expected: float) -> bool:
        """Whether so little was seen of what was expected that the pattern has stopped."""
        return expected >= self.least_expected and seen <= self.silent * expected


FOR_BULLETS = SilenceLimit()
FOR_NEWCOMERS = SilenceLimit(least_expected=5.0, silent=0.2)
"""Stricter for new bullets: otherwise a pattern that just ended would be learnt again from older cases."""
NEVER = SilenceLimit(least_expected=math.inf)
"""Silence proves nothing."""


@dataclass(frozen=True, slots=True)
class StatusMove:
    """The status that a bullet should get, and why."""

    status: Status
    reason: str


def demotion_of(
    bullet: Bullet, base_rate: float, recent: Record, among: int, limit: SilenceLimit = FOR_BULLETS
) -> StatusMove | None:
    """What the latest `among` outcomes, with the bullet's `recent` record on them, mean for a bullet.

    It is retired if its record argues the other way, if it has gone silent, or if the fraud it warns of has stopped.
    It becomes a candidate if its record has left the interval it was learnt with. If fraud has become much more or less
    common elsewhere too, what was learnt is moved by as much: that is no fault of the bullet.

    >>> bullet = Bullet(id="b", content="x", argues=Verdict.DECLINE,
    ...                 evidence=Evidence(learnt=Record(support=50, frauds=47), base_rate=0.4, cases=1000))
    >>> demotion_of(bullet, 0.4, Record(support=60, frauds=5), 2000).reason
    'of the latest 2,000 outcomes: 5 of 60 past cases were fraud (8.3%, 3.6-18.1%), against DECLINE at 40% overall'
    >>> demotion_of(bullet, 0.4, Record(support=0, frauds=0), 2000).reason
    'held on 0 of the latest 2,000 outcomes, where 100 would be usual'
    >>> demotion_of(bullet, 0.4, Record(support=12, frauds=0), 2000).reason
    'held on 12 of the latest 2,000 outcomes, 0 of them fraud, where 94 frauds would be usual'
    """
    if bullet.evidence is None or bullet.argues is None:
        return None
    declines, enough = bullet.argues is Verdict.DECLINE, recent.support >= LEAST_RECORD
    low, high = recent.interval
    change = _change_elsewhere(bullet.evidence, base_rate, recent, among)
    learnt_low, learnt_high = (_moved(share, change) for share in bullet.evidence.interval)
    if enough and ((high < base_rate) if declines else (low > base_rate)):
        overall = f"against {bullet.argues} at {percent(base_rate)} overall"
        return StatusMove(Status.RETIRED, f"{_in_words(recent, among)}, {overall}")
    ended = _ended(bullet.argues, bullet.evidence, recent, among, limit=limit, change=change)
    if ended is not None or not enough or bullet.status is Status.CANDIDATE:
        return ended
    if (high < learnt_low) if declines else (low > learnt_high):
        learnt = f"outside {percent(learnt_low)}-{percent(learnt_high)} as learnt"
        return StatusMove(Status.CANDIDATE, f"{_in_words(recent, among)}, {learnt}")
    return None


def _in_words(recent: Record, among: int) -> str:
    return f"of the latest {among:,} outcomes: {record_in_words(recent)}"


def _change_elsewhere(evidence: Evidence, base_rate: float, recent: Record, among: int) -> float:
    """By how much the log-odds of fraud have changed where the bullet does not fire; 0 if they have not doubled.

    >>> evidence = Evidence(learnt=Record(support=50, frauds=20), base_rate=0.05, cases=1000)
    >>> _change_elsewhere(evidence, 0.06, Record(support=100, frauds=40), 2000)
    0.0
    >>> round(_change_elsewhere(evidence, 0.4, Record(support=100, frauds=90), 2000), 1)
    2.9
    """
    if not evidence.cases:
        return 0.0
    then = _odds_outside(evidence.base_rate, evidence.cases, evidence.shown)
    now = _odds_outside(base_rate, among, recent)
    change = log(now / then)
    return change if abs(change) >= MUCH_CHANGED else 0.0


def _odds_outside(base_rate: float, cases: int, record: Record) -> float:
    frauds = max(0.0, base_rate * cases - record.frauds)
    honest = max(0.0, cases - record.support - frauds)
    return (frauds + 0.5) / (honest + 0.5)


def _moved(share: float, change: float) -> float:
    """A share of fraud after a change of its log-odds."""
    return share if share in (0.0, 1.0) or not change else sigmoid(log_odds(share) + change)


def _ended(
    argues: Verdict, evidence: Evidence, recent: Record, among: int, *, limit: SilenceLimit, change: float
) -> StatusMove | None:
    """Retired if the pattern has stopped: it no longer occurs, or it no longer comes with fraud."""
    if not evidence.cases:
        return None
    times = among * evidence.shown.support / evidence.cases
    frauds = times * _moved(evidence.shown.precision or 0.0, change)
    held = f"held on {recent.support} of the latest {among:,} outcomes"
    if limit.reached(recent.support, times):
        return StatusMove(Status.RETIRED, f"{held}, where {times:.0f} would be usual")
    if argues is Verdict.DECLINE and limit.reached(recent.frauds, frauds):
        reason = f"{held}, {recent.frauds} of them fraud, where {frauds:.0f} frauds would be usual"
        return StatusMove(Status.RETIRED, reason)
    return None


def revival_of(bullet: Bullet, evidence: Evidence) -> StatusMove:
    """Makes a demoted bullet active again, because of new evidence.

    >>> evidence = Evidence(learnt=Record(support=50, frauds=47), base_rate=0.4)
    >>> bullet = Bullet(id="b", content="x", status=Status.CANDIDATE, status_by="the engine")
    >>> revival_of(bullet, evidence).reason.split("; ")[-1]
    'it had been made a candidate by the engine'
    """
    before = "retired" if bullet.status is Status.RETIRED else "made a candidate"
    reason = f"holds up again: {evidence.in_words()}; it had been {before} by {bullet.status_by}"
    return StatusMove(Status.ACTIVE, reason)


@dataclass(frozen=True)
class LatestOutcomes:
    """The latest labelled cases, against which bullets are checked."""

    facts: LabelledFacts
    sees_declines: bool = True
    """Whether declined transactions are among them. If not, a bullet that declines all it fires on looks silent."""

    @cached_property
    def _stretches(self) -> list[tuple[int, int, float]]:
        """Where all of them and where their later half begin, how many these are, and how common fraud is there."""
        labels = self.facts.labels
        return [(first, len(labels) - first, float(labels[first:].mean())) for first in (0, len(labels) // 2)]

    @classmethod
    def of(cls, cases: LabelledFacts, most: int, *, sees_declines: bool = True) -> LatestOutcomes:
        """At most so many, the latest ones."""
        return cls(cases.take(slice(max(0, len(cases) - most), None)), sees_declines)

    def demotions(self, bullets: list[Bullet]) -> Iterator[tuple[str, StatusMove]]:
        """The bullets that these outcomes speak against, by id. Pinned bullets stay as they are."""
        for bullet in bullets:
            if bullet.condition is None or bullet.status is Status.PINNED or not len(self.facts):
                continue
            move = self._demotion_of(bullet, bullet.condition)
            if move is not None and by_people(bullet):  # people's bullets become candidates, never retired
                move = replace(move, status=Status.CANDIDATE)
            if move is not None and move.status is not bullet.status:
                yield bullet.id, move

    def confirm(self, lesson: Lesson, among: int, base_rate: float) -> bool:
        """Whether a rule found in `among` cases, most of them possibly old, would not be demoted at once.

        `base_rate` is the share of fraud among these cases.
        """
        learnt, later = lesson.evidence.learnt, lesson.evidence.later or Record(support=0, frauds=0)
        whole = Record(support=learnt.support + later.support, frauds=learnt.frauds + later.frauds)
        changes = {"learnt": whole, "later": None, "cases": among, "base_rate": base_rate}
        evidence = lesson.evidence.model_copy(update=changes)
        bullet = Bullet(id="new", content="new", argues=lesson.argues, evidence=evidence)
        return self._demotion_of(bullet, lesson.condition, FOR_NEWCOMERS) is None

    def _demotion_of(
        self, bullet: Bullet, condition: Condition, limit: SilenceLimit = FOR_BULLETS
    ) -> StatusMove | None:
        """What all of the outcomes mean, or else their later half, where a frequent pattern shows its end sooner."""
        mask, labels = self.facts.holds(condition), self.facts.labels
        limit = limit if self.sees_declines else NEVER
        for first, among, base_rate in self._stretches:
            move = demotion_of(bullet, base_rate, record_of(mask[first:], labels[first:]), among, limit)
            if move is not None:
                return move
        return None


def by_people(bullet: Bullet) -> bool:
    """Whether a person wrote or pinned a bullet."""
    return bullet.source is Source.MANUAL or bullet.status is Status.PINNED


@dataclass(frozen=True, slots=True)
class ReviewPlan:
    """What a review would change in one revision of the playbook."""

    cases: int
    frauds: int
    moves: dict[str, StatusMove] = field(default_factory=dict)
    """New statuses by bullet id, each with its reason."""
    renewed: dict[str, NewBullet] = field(default_factory=dict)
    """New text and figures by bullet id."""
    new: tuple[NewBullet, ...] = ()
    weights: dict[str, float] = field(default_factory=dict)
    calibration: Calibration | None = None
    """What the weights belong to, if they are fitted already."""
    fit_on: LabelledFacts | None = None
    """What the weights are fitted on once the new bullets are in the playbook, if they are not fitted yet."""
    skipped: str = ""
    """Why nothing could be learnt; empty if something could."""
    whole: bool = True
    """Whether it searched and fitted, or only watched."""


def watch(cases: LabelledFacts, snapshot: Snapshot, options: LearnerOptions, *, sees_declines: bool) -> ReviewPlan:
    """Retire or demote the bullets that the latest outcomes speak against."""
    latest = LatestOutcomes.of(cases, options.recent, sees_declines=sees_declines)
    moves = dict(latest.demotions(snapshot.for_node(options.node)))
    return ReviewPlan(len(cases), cases.frauds, moves, whole=False)


def review(
    cases: KnownCases,
    snapshot: Snapshot,
    engine: EmbeddedReflector,
    options: LearnerOptions,
    *,
    turn: int | None = None,
    sees_declines: bool = True,
    mapping: str = "",
    progress: Callable[[float], None] = lambda _: None,
) -> ReviewPlan:
    """Watch, then search for new bullets and fit all weights together.

    `turn` numbers the reviews of a playbook. Without one, the cases are a whole labelled history: it is searched more
    thoroughly, and nothing is watched. Its `mapping` says which facts should only ever argue one way.
    """
    watched = cases if isinstance(cases, LabelledFacts) and turn is not None else None
    history = watched is None
    latest = None if watched is None else LatestOutcomes.of(watched, options.recent, sees_declines=sees_declines)
    moves = {} if latest is None else dict(latest.demotions(snapshot.for_node(options.node)))
    plan = ReviewPlan(len(cases), cases.frauds, moves)
    skipped = engine.too_little(cases)
    if skipped:
        alone = history and not lines_in(_latest(cases).facts).any()  # general knowledge says the same of all of them
        return replace(plan, skipped=skipped, calibration=_base_rate(cases, snapshot, options) if alone else None)
    rules = _Rules.of(snapshot, cases, options)
    before = snapshot.calibration(options.node)
    most = options.bullet_limit(before)
    rising, falling = directions_of(mapping)
    offset = rules.offset if watched is None else _with_level(rules.offset, watched, snapshot, options)
    induced = engine.search(
        cases,
        turn=turn,
        known=[condition for _, condition in rules.learnt],
        written=[condition for _, condition in rules.written],
        offset=offset,
        most_bullets=most,
        most_cited=options.n_bullets,
        plain=options.is_plain(before),
        rising=rising,
        falling=falling,
        progress=progress,
    )
    if induced is None:
        latest_cases = _latest(cases)
        missing = missing_cases(latest_cases.facts, latest_cases.labels)
        found = "nothing was found that holds up beyond chance"
        plan = replace(plan, skipped=f"{found}; {missing} could change that" if missing else found)
        return replace(plan, calibration=_base_rate(cases, snapshot, options)) if history else plan
    source = Source.OFFLINE if history else Source.ONLINE
    return _planned(plan, rules, induced, latest, most=most, source=source)


_MOST_LOOKED_AT = 20_000


def _latest(cases: KnownCases) -> LabelledFacts:
    """The latest cases, in memory: enough to say what is missing."""
    return cases.take(np.arange(max(0, len(cases) - _MOST_LOOKED_AT), len(cases)))


def _base_rate(cases: KnownCases, snapshot: Snapshot, options: LearnerOptions) -> Calibration | None:
    """The share of fraud as the probability of every case; None if bullets or general knowledge tell more."""
    has_rules = any(bullet.condition is not None for bullet in snapshot.for_node(options.node))
    if has_rules or cases.from_texts or not 0 < cases.frauds < len(cases):  # one label alone tells no share
        return None
    # Never 0, so that even odds are above even whether they are read as log-odds or as a share.
    level = round(log_odds(float(np.average(cases.labels, weights=cases.weights))), 6) or 1e-6
    return Calibration(intercept=level, knowledge_scale=0, base_rate=float(cases.labels.mean()), cases=len(cases))


def _with_level(
    offset: FloatArray | None, cases: LabelledFacts, snapshot: Snapshot, options: LearnerOptions
) -> FloatArray | None:
    """The offset with the level of fraud at the time of each case, if it has moved.

    Otherwise bullets would explain an attack by whatever else changed with time, and argue against the truth after it.
    """
    expected = log_odds_in(cases, snapshot, options)
    if expected is None:
        return offset
    level = level_at(expected, cases.labels)
    if not level.any():
        return offset
    return level if offset is None else offset + level


@dataclass(frozen=True)
class _Rules:
    """The bullets with a condition: those that are fitted, and those that keep their weight."""

    cases: KnownCases
    learnt: tuple[Rule, ...]
    """In use, and the youngest that the engine retired, which may come back. A fit may drop them."""
    written: tuple[Rule, ...]
    """Written or pinned by people. They are fitted, but always stay."""
    fixed: tuple[Rule, ...]
    """Bullets that the cases say too little about."""
    offset: FloatArray | None
    """What the fixed ones add to the log-odds of each case."""

    @classmethod
    def of(cls, snapshot: Snapshot, cases: KnownCases, options: LearnerOptions) -> _Rules:
        calibration = snapshot.calibration(options.node)
        base_rate = calibration.base_rate if calibration else 0.5
        learnt, written, fixed = list[Rule](), list[Rule](), list[Rule]()
        offset = np.zeros(len(cases))
        for bullet, condition in _with_condition(snapshot, options):
            mask = cases.holds(condition)
            if can_be_fitted(bullet, int(mask.sum()), after_change=cases.after_change):
                (written if by_people(bullet) else learnt).append((bullet, condition))
            elif bullet.status is not Status.RETIRED:
                fixed.append((bullet, condition))
                offset += weight_of(bullet, base_rate) * mask
        return cls(cases, tuple(learnt), tuple(written), tuple(fixed), offset if fixed else None)


def _with_condition(snapshot: Snapshot, options: LearnerOptions) -> list[Rule]:
    considered, retired = list[Rule](), list[Rule]()
    for bullet in snapshot.bullets.values():
        if bullet.node != options.node or bullet.condition is None or awaits_measurement(bullet):
            continue
        if bullet.policy is not None:  # it decides, and nothing is weighed
            continue
        if bullet.status is not Status.RETIRED:
            considered.append((bullet, bullet.condition))
        elif bullet.status_by == THE_ENGINE and not by_people(bullet):
            retired.append((bullet, bullet.condition))
    return considered + retired[-options.bullet_limit(snapshot.calibration(options.node)) :]


def awaits_measurement(bullet: Bullet) -> bool:
    """Whether a model proposed a bullet that could not be measured yet. A fit gives it no weight."""
    return bullet.status is Status.CANDIDATE and not bullet.verified and bullet.source is not Source.MANUAL


def _planned(
    plan: ReviewPlan, rules: _Rules, induced: Induced, latest: LatestOutcomes | None, *, most: int, source: Source
) -> ReviewPlan:
    """What a search means for the bullets in the playbook, and which of its lessons are new."""
    moves, renewed, weights = dict(plan.moves), dict[str, NewBullet](), dict[str, float]()
    base_rate = float(rules.cases.labels.mean())
    confirmed = {
        lesson.condition: lesson
        for lesson in induced.lessons
        if latest is None or latest.confirm(lesson, induced.calibration.cases, base_rate)
    }
    lessons = _not_said_yet(confirmed, rules)
    seen = set[Condition]()
    for bullet, condition in (*rules.written, *rules.learnt):
        lesson = lessons.pop(condition, None)
        if lesson is not None:
            weights[bullet.id] = lesson.weight
            revived = _revives(bullet, lesson, moves.get(bullet.id))
            if revived or _outdated(bullet, lesson):
                now = lesson.new_bullet(bullet.source)  # what people wrote keeps its text
                renewed[bullet.id] = replace(now, content=bullet.content) if by_people(bullet) else now
            if revived:
                moves.pop(bullet.id, None)
            if revived and bullet.status in _DEMOTED:
                moves[bullet.id] = revival_of(bullet, lesson.evidence)
        elif by_people(bullet):  # bullets with the same condition share one weight: the first gets it
            weights[bullet.id] = 0.0 if condition in seen else induced.weights.get(condition, 0.0)
        elif _not_retired(bullet, moves):
            moves[bullet.id] = StatusMove(Status.RETIRED, ZERO_WEIGHT)
        seen.add(condition)
    new, replaced = _within_limit(rules, lessons, weights, moves, most)
    return replace(
        plan,
        moves={**moves, **replaced},
        renewed={bullet_id: bullet for bullet_id, bullet in renewed.items() if bullet_id not in replaced},
        new=tuple(lesson.new_bullet(source) for lesson in new),
        weights=weights,
        calibration=induced.calibration,
    )


def _not_said_yet(lessons: dict[Condition, Lesson], rules: _Rules) -> dict[Condition, Lesson]:
    """The lessons that do not hold on nearly the same cases as a bullet that keeps its weight.

    Bullets that are fitted took part in the search, which has compared them already.
    """
    cases = rules.cases
    fixed = [cases.holds(condition) for bullet, condition in rules.fixed if not by_people(bullet)]
    if not fixed or not lessons:
        return lessons
    masks = np.column_stack([*(cases.holds(condition) for condition in lessons), *fixed])
    said = nearly_same(masks, np.ones(len(cases)))[: len(lessons), len(lessons) :]
    return {condition: lessons[condition] for condition, same in zip(lessons, said, strict=True) if not same.any()}


def _revives(bullet: Bullet, lesson: Lesson, move: StatusMove | None) -> bool:
    """Whether the engine demoted a bullet that was found again."""
    status = bullet.status if move is None else move.status
    by_engine = move is not None or bullet.status_by == THE_ENGINE
    agrees = lesson.argues is bullet.argues or not by_people(bullet)
    return status in _DEMOTED and by_engine and agrees


def _outdated(bullet: Bullet, lesson: Lesson) -> bool:
    """Whether there are twice as many cases by now as the figures of a learnt bullet rest on, or they are wrong."""
    if by_people(bullet) or bullet.evidence is None:
        return False
    now, (low, high) = lesson.evidence.shown, bullet.evidence.interval
    wrong = lesson.argues is not bullet.argues or not low <= (now.precision or 0.0) <= high
    return wrong or now.support >= 2 * bullet.evidence.shown.support


def _not_retired(bullet: Bullet, moves: Mapping[str, StatusMove]) -> bool:
    return (moves[bullet.id].status if bullet.id in moves else bullet.status) is not Status.RETIRED


def _within_limit(
    rules: _Rules, lessons: dict[Condition, Lesson], weights: dict[str, float], moves: dict[str, StatusMove], most: int
) -> tuple[list[Lesson], dict[str, StatusMove]]:
    """The new lessons that there is room for, and the learnt bullets that make room for stronger ones."""
    staying = [
        (bullet, condition)
        for bullet, condition in (*rules.learnt, *rules.fixed)
        if not by_people(bullet) and _not_retired(bullet, moves)
    ]
    if len(staying) + len(lessons) <= most:
        return list(lessons.values()), {}
    strength: dict[str | Condition, float] = {}
    for bullet, condition in staying:
        strength[bullet.id] = _strength(weights.get(bullet.id, bullet.weight or 0.0), condition, rules.cases)
    for condition, lesson in lessons.items():
        strength[condition] = _strength(lesson.weight, condition, rules.cases)
    weakest = sorted(strength, key=lambda name: -strength[name])[most:]
    kept = [lesson for condition, lesson in lessons.items() if condition not in weakest]
    return kept, {name: _no_room(most) for name in weakest if isinstance(name, str)}


def crowded_out(cases: LabelledFacts, snapshot: Snapshot, options: LearnerOptions) -> dict[str, StatusMove]:
    """The weakest learnt bullets of a node that has too many of them."""
    learnt = [bullet for bullet in snapshot.for_node(options.node) if not by_people(bullet)]
    strength = {bullet.id: _strength(bullet.weight or 0.0, bullet.condition, cases) for bullet in learnt}
    most = options.bullet_limit(snapshot.calibration(options.node))
    return {name: _no_room(most) for name in sorted(strength, key=lambda name: -strength[name])[most:]}


def _strength(weight: float, condition: Condition | None, cases: KnownCases) -> float:
    """|weight| x sqrt(support): how far a bullet moves a case, and how many cases."""
    support = int(cases.holds(condition).sum()) if condition is not None else 0
    return float(abs(weight) * np.sqrt(support))


def _no_room(most: int) -> StatusMove:
    why = f"the playbook holds at most {most} learnt bullets, and stronger ones took its place"
    return StatusMove(Status.RETIRED, why)


def apply(
    plan: ReviewPlan, playbook: BulletPlaybook, curator: Curator, engine: EmbeddedReflector, options: LearnerOptions
) -> Reviewed:
    """Write a plan as part of the caller's unit of work. Returns the event that sums it up, not recorded yet."""
    for bullet_id, renewed in plan.renewed.items():
        playbook.change(partial(plan_edit, playbook, bullet_id, renewed), why=renewed.why)
    for bullet_id, move in plan.moves.items():
        playbook.set_status(bullet_id, move.status, why=move.reason)
    merged = curator.merge_bullets(plan.new, options.node, playbook)
    if plan.calibration is not None:
        recalibrate(playbook, plan.calibration, _all_weights(plan, merged, playbook, curator, options.node), options)
    dropped: tuple[str, ...] = ()
    if plan.fit_on is not None:
        without_weight = refit(playbook, engine, plan.fit_on, options)
        crowded = crowded_out(plan.fit_on, playbook.snapshot(), options)
        for bullet_id, move in crowded.items():
            playbook.set_status(bullet_id, move.status, why=move.reason)
        dropped = (*without_weight, *crowded)
    return Reviewed(
        node=options.node,
        whole=plan.whole,
        cases=plan.cases,
        frauds=plan.frauds,
        added=tuple(bullet_id for bullet_id in merged if bullet_id is not None),
        retired=(*_moved_to(plan, Status.RETIRED), *dropped),
        questioned=_moved_to(plan, Status.CANDIDATE),
        revived=_moved_to(plan, Status.ACTIVE),
        declined=plan.skipped,
    )


def _all_weights(
    plan: ReviewPlan, merged: list[str | None], playbook: BulletPlaybook, curator: Curator, node: str
) -> dict[str, float]:
    """The fitted weights by bullet id. A bullet in use that says nearly the same as a new one takes on its weight."""
    weights = dict(plan.weights)
    for added, new in zip(merged, plan.new, strict=True):
        if added is not None:
            weights[added] = weights.get(added, 0.0) + (new.weight or 0.0)
            continue
        same = curator.said_already(new, node, playbook)
        if same is not None and same.status is not Status.RETIRED:
            weights[same.id] = weights.get(same.id, same.weight or 0.0) + (new.weight or 0.0)
    return weights


def _moved_to(plan: ReviewPlan, status: Status) -> tuple[str, ...]:
    return tuple(bullet_id for bullet_id, move in plan.moves.items() if move.status is status)


def refit(
    playbook: BulletPlaybook, engine: EmbeddedReflector, cases: LabelledFacts, options: LearnerOptions
) -> tuple[str, ...]:
    """Fit all weights and the calibration as part of the caller's unit of work, without searching for new bullets.

    Returns the ids of the bullets that it retires because their weight is zero.
    """
    bullets = [
        bullet
        for bullet in playbook.snapshot().for_node(options.node)
        if bullet.condition is not None and not awaits_measurement(bullet)
    ]
    fitted = engine.refit(bullets, cases)
    if fitted is None:
        return ()
    recalibrate(playbook, fitted.calibration, fitted.weights, options)
    # A bullet without weight would only take up a place in selections.
    without_weight = [bullet.id for bullet in bullets if not by_people(bullet) and fitted.weights.get(bullet.id) == 0]
    for bullet_id in without_weight:
        playbook.set_status(bullet_id, Status.RETIRED, why=ZERO_WEIGHT)
    return tuple(without_weight)


def recalibrate(
    playbook: BulletPlaybook, calibration: Calibration, weights: dict[str, float], options: LearnerOptions
) -> None:
    """Record new weights and their calibration. The threshold stays, and so do the limits unless new ones are set."""
    before = playbook.snapshot().calibration(options.node)
    kept = {
        "threshold": before.threshold if before else options.threshold,
        "most_bullets": options.most_bullets or (before.most_bullets if before else None),
        "plain": options.is_plain(before),
    }
    playbook.record([Recalibrated(node=options.node, calibration=calibration.model_copy(update=kept), weights=weights)])
