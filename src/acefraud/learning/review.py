"""One review of a playbook: watch, retire, revive, induce, fit, calibrate.

What is remembered and the playbook as it stands go in; what should change comes out, as a value. `apply` is the only
place that writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.events import Recalibrated, Reviewed
from acefraud.core.evidence import Record
from acefraud.core.playbook import LearningState, Snapshot
from acefraud.core.scoring import Calibration
from acefraud.curation.curator import Curator, NewBullet
from acefraud.embedded.agent import weight_of
from acefraud.embedded.case_memory import LabelledFacts
from acefraud.embedded.induction.boosting import Induced, Lesson
from acefraud.embedded.induction.holding_up import record_of
from acefraud.embedded.reflector import EmbeddedReflector, as_reply, can_be_fitted
from acefraud.learning.demotion import WITH_BULLETS, WITH_NEWCOMERS, Demotion, Patience, demotion_of, revival_of
from acefraud.learning.options import LearnerOptions
from acefraud.storage.playbook import THE_ENGINE, BulletPlaybook

Mask = npt.NDArray[np.bool_]

FITTED_ANEW = "weights fitted anew"
_FITTED_TO_NOTHING = "fitted to nothing: others say it already, or it no longer holds"
_SEVERAL = 500
"""Outcomes after which half as many cases of the rarer kind will do."""
_SLOWEST_FROM = 1_000
"""Remembered cases from which on a review waits for as large a share of new ones as it ever does."""


def review_due(state: LearningState, options: LearnerOptions, least_cases: int) -> bool:
    """Whether enough was heard since the latest review for another one, and there are as many cases as it takes.

    Cases of the rarer kind, mostly frauds, are what teaches: it takes `review_least` new ones, or `review_share` of
    those remembered. A review costs in proportion to what it looks at, so the more is remembered the longer it waits,
    up to a quarter of that; but never for more than `review_at_last` outcomes.
    """
    new, cases = state.unreviewed, state.remembered.cases + state.unreviewed.cases
    frauds = state.remembered.frauds + new.frauds
    rarer, new_rarer = (frauds, new.frauds) if 2 * frauds <= cases else (cases - frauds, new.cases - new.frauds)
    if cases < least_cases:
        return False
    least = options.review_least if new.cases < _SEVERAL else options.review_least / 2
    enough = new_rarer >= max(least, options.review_share * rarer)
    patient = new.cases >= 0.25 * cases * min(1.0, cases / _SLOWEST_FROM)
    return (enough and patient) or new.cases >= options.review_at_last


@dataclass(frozen=True, slots=True)
class FitAfter:
    """A fit that has to wait until what is new stands in the book: nobody fitted it before."""

    engine: EmbeddedReflector
    cases: LabelledFacts


@dataclass(frozen=True, slots=True)
class ReviewPlan:
    """What a review would change, worked out on one revision of the playbook."""

    cases: int
    frauds: int
    moves: dict[str, Demotion] = field(default_factory=dict)
    """Where bullets should stand, by id: retired, questioned or revived, with the reason."""
    renewed: dict[str, NewBullet] = field(default_factory=dict)
    """Bullets whose words and figures are measured anew."""
    new: tuple[NewBullet, ...] = ()
    """What is new."""
    weights: dict[str, float] = field(default_factory=dict)
    calibration: Calibration | None = None
    """What the weights belong to, where they are fitted already."""
    fit_after: FitAfter | None = None
    """How they are fitted, where they are not."""
    declined: str = ""
    whole: bool = True
    """Whether it searched and fitted, or only watched."""


def watch(cases: LabelledFacts, snapshot: Snapshot, options: LearnerOptions) -> ReviewPlan:
    """Hold every bullet against the latest outcomes; retire or question those that these no longer bear out."""
    latest = _Latest.of(cases, options.recent)
    moves = {}
    for bullet in snapshot.for_node(options.node):
        if bullet.condition is not None and bullet.status is not Status.PINNED and len(cases):
            demotion = latest.demotion_of(bullet, bullet.condition)
            if demotion is not None and _by_people(bullet):  # what a person wrote is questioned, never taken out
                demotion = replace(demotion, status=Status.CANDIDATE)
            if demotion is not None and demotion.status is not bullet.status:
                moves[bullet.id] = demotion
    return ReviewPlan(len(cases), cases.frauds, moves, whole=False)


def review(
    cases: LabelledFacts, snapshot: Snapshot, reflector: EmbeddedReflector, options: LearnerOptions, *, turn: int
) -> ReviewPlan:
    """Watch, then search for new bullets and fit all weights together on what is remembered."""
    watched = replace(watch(cases, snapshot, options), whole=True)
    declined = reflector.too_little(cases)
    if declined:
        return replace(watched, declined=declined)
    book = BookInFit.of(snapshot, cases, options)
    induced = reflector.review(
        cases,
        known=book.learnt_conditions,
        written=book.written_conditions,
        offset=book.offset,
        turn=turn,
        most_bullets=options.most_bullets,
        most_cited=options.n_bullets,
    )
    latest = _Latest.of(cases, options.recent)
    return _planned(watched, book, induced, options, latest, source=Source.ONLINE)


def study(
    cases: LabelledFacts,
    snapshot: Snapshot,
    reflector: EmbeddedReflector,
    options: LearnerOptions,
    *,
    rising: tuple[str, ...] = (),
    falling: tuple[str, ...] = (),
    progress: Callable[[float], None] = lambda _: None,
) -> ReviewPlan:
    """The same for a whole labelled history: searched more thoroughly, and nothing is watched."""
    plan = ReviewPlan(len(cases), cases.frauds, declined=reflector.too_little(cases))
    if plan.declined:
        return plan
    book = BookInFit.of(snapshot, cases, options)
    induced = reflector.study(
        cases,
        progress,
        rising=rising,
        falling=falling,
        known=book.learnt_conditions,
        written=book.written_conditions,
        offset=book.offset,
        most_bullets=options.most_bullets,
        most_cited=options.n_bullets,
    )
    return _planned(plan, book, induced, options, None, source=Source.OFFLINE)


@dataclass(frozen=True)
class BookInFit:
    """The bullets that take part in a fit, and those that keep their weight."""

    cases: LabelledFacts
    fitted: tuple[Bullet, ...]
    """Learnt bullets: those in use, and the youngest that the engine retired, which may come back."""
    written: tuple[Bullet, ...]
    """Bullets that people wrote or pinned: they are fitted too, but always stay."""
    fixed: tuple[Bullet, ...]
    """Bullets that the cases at hand say too little of."""
    offset: npt.NDArray[np.float64] | None
    """What the fixed ones add to the log-odds of each case."""

    @classmethod
    def of(cls, snapshot: Snapshot, cases: LabelledFacts, options: LearnerOptions) -> BookInFit:
        calibration = snapshot.calibration(options.node)
        base_rate = calibration.base_rate if calibration else 0.5
        parts: dict[str, list[Bullet]] = {"fitted": [], "written": [], "fixed": []}
        offset = np.zeros(len(cases))
        for bullet, condition in _with_condition(snapshot, options):
            mask = condition.holds_in(cases.facts)
            if can_be_fitted(bullet, int(mask.sum())):
                parts["written" if _by_people(bullet) else "fitted"].append(bullet)
            elif bullet.status is not Status.RETIRED:
                parts["fixed"].append(bullet)
                offset += weight_of(bullet, base_rate) * mask
        fixed = tuple(parts["fixed"])
        return cls(cases, tuple(parts["fitted"]), tuple(parts["written"]), fixed, offset if fixed else None)

    @property
    def learnt_conditions(self) -> list[Condition]:
        """Those that a fit may drop."""
        return [bullet.condition for bullet in self.fitted if bullet.condition is not None]

    @property
    def written_conditions(self) -> list[Condition]:
        """Those that stay."""
        return [bullet.condition for bullet in self.written if bullet.condition is not None]


def _with_condition(snapshot: Snapshot, options: LearnerOptions) -> list[tuple[Bullet, Condition]]:
    """The bullets of a node that a fit can say something of."""
    considered, retired = [], []
    for bullet in snapshot.bullets.values():
        if bullet.node != options.node or bullet.condition is None or _waits_for_a_measurement(bullet):
            continue
        if bullet.status is not Status.RETIRED:
            considered.append((bullet, bullet.condition))
        elif bullet.status_by == THE_ENGINE and not _by_people(bullet):
            retired.append((bullet, bullet.condition))
    return considered + retired[-options.most_bullets :]


def _waits_for_a_measurement(bullet: Bullet) -> bool:
    """What a model proposed and nobody could measure yet gets no weight from a fit."""
    return bullet.status is Status.CANDIDATE and not bullet.verified and bullet.source is not Source.MANUAL


def _by_people(bullet: Bullet) -> bool:
    return bullet.source is Source.MANUAL or bullet.status is Status.PINNED


def _planned(
    plan: ReviewPlan,
    book: BookInFit,
    induced: Induced | None,
    options: LearnerOptions,
    latest: _Latest | None,
    *,
    source: Source,
) -> ReviewPlan:
    """What an induction means for the bullets that are there, and which of its lessons are new."""
    if induced is None:
        return replace(plan, declined="nothing was found that holds up beyond chance")
    moves, renewed, weights = dict(plan.moves), dict[str, NewBullet](), dict[str, float]()
    lessons = {
        lesson.condition: lesson
        for lesson in induced.lessons
        if latest is None or latest.bear_out(lesson, induced.calibration.cases)
    }
    said = set[Condition]()
    for bullet in (*book.written, *book.fitted):
        condition = bullet.condition
        assert condition is not None
        lesson = lessons.pop(condition, None)
        said_before = condition in said  # one weight was fitted for all bullets of the same condition
        said.add(condition)
        if lesson is not None:
            weights[bullet.id] = lesson.weight
            demoted = moves[bullet.id].status if bullet.id in moves else bullet.status
            by_engine = bullet.id in moves or bullet.status_by == THE_ENGINE
            agrees = lesson.argues is bullet.argues or not _by_people(bullet)
            back = demoted in (Status.RETIRED, Status.CANDIDATE) and by_engine and agrees
            if back or _outdated(bullet, lesson):
                renewed[bullet.id] = _in_new_words(bullet, lesson)
            if back:
                moves.pop(bullet.id, None)
                if bullet.status in (Status.RETIRED, Status.CANDIDATE):
                    moves[bullet.id] = revival_of(bullet, lesson.evidence)
        elif _by_people(bullet):
            weights[bullet.id] = 0.0 if said_before else induced.weights.get(condition, 0.0)
        elif _stays(bullet, moves.get(bullet.id)):
            moves[bullet.id] = Demotion(Status.RETIRED, _FITTED_TO_NOTHING)
    new, crowded_out = _within_limit(book, lessons, weights, moves, options.most_bullets)
    return replace(
        plan,
        moves={**moves, **crowded_out},
        renewed={one: words for one, words in renewed.items() if one not in crowded_out},
        new=tuple(new_bullet(lesson, source) for lesson in new),
        weights=weights,
        calibration=induced.calibration,
    )


def _within_limit(
    book: BookInFit,
    lessons: dict[Condition, Lesson],
    weights: dict[str, float],
    moves: dict[str, Demotion],
    most: int,
) -> tuple[tuple[Lesson, ...], dict[str, Demotion]]:
    """The new lessons that there is room for, and the learnt bullets that make room for stronger ones."""
    staying = [
        bullet
        for bullet in (*book.fitted, *book.fixed)
        if not _by_people(bullet) and _stays(bullet, moves.get(bullet.id))
    ]
    if len(staying) + len(lessons) <= most:
        return tuple(lessons.values()), {}
    strength: dict[str | Condition, float] = {}
    for bullet in staying:
        weight = weights.get(bullet.id, bullet.weight or 0.0)
        strength[bullet.id] = _strength(weight, bullet.condition, book.cases)
    for condition, lesson in lessons.items():
        strength[condition] = _strength(lesson.weight, condition, book.cases)
    weakest = dict.fromkeys(sorted(strength, key=lambda one: -strength[one])[most:])  # in an order of their own
    crowded_out = {one: _no_room(most) for one in weakest if isinstance(one, str)}
    return tuple(lesson for condition, lesson in lessons.items() if condition not in weakest), crowded_out


def crowded_out(cases: LabelledFacts, snapshot: Snapshot, options: LearnerOptions) -> dict[str, Demotion]:
    """The weakest of the learnt bullets, where there are more of them than a node may have."""
    learnt = [bullet for bullet in snapshot.for_node(options.node) if not _by_people(bullet)]
    strongest_first = sorted(learnt, key=lambda one: -_strength(one.weight or 0.0, one.condition, cases))
    return {bullet.id: _no_room(options.most_bullets) for bullet in strongest_first[options.most_bullets :]}


def _no_room(most: int) -> Demotion:
    return Demotion(Status.RETIRED, f"the book holds at most {most} learnt bullets, and stronger ones took its place")


def _stays(bullet: Bullet, move: Demotion | None) -> bool:
    return (bullet.status if move is None else move.status) is not Status.RETIRED


def _strength(weight: float, condition: Condition | None, cases: LabelledFacts) -> float:
    """How far a bullet moves how many cases."""
    support = int(condition.holds_in(cases.facts).sum()) if condition is not None else 0
    return float(abs(weight) * np.sqrt(support))


def apply(plan: ReviewPlan, playbook: BulletPlaybook, curator: Curator, options: LearnerOptions) -> Reviewed:
    """Write what a plan says, as part of the caller's step; returns what was done, which is not written yet."""
    for bullet_id, words in plan.renewed.items():
        playbook.edit_bullet(
            bullet_id,
            words.content,
            condition=words.condition,
            argues=words.argues,
            evidence=words.evidence,
            problem_types=words.problem_types,
            why=words.why,
        )
    for bullet_id, move in plan.moves.items():
        playbook.set_status(bullet_id, move.status, why=move.reason)
    merged = curator.merge_bullets(plan.new, options.node, playbook)
    if plan.calibration is not None:
        weights = dict(plan.weights)
        for one, each in zip(merged, plan.new, strict=True):
            said_by = one or _said_by(each, playbook, curator, options.node)
            if said_by:  # where a bullet says nearly the same already, it takes on the weight
                before = weights.get(said_by, 0.0 if one else _weight(playbook, said_by))
                weights[said_by] = before + (each.weight or 0.0)
        recalibrate(playbook, plan.calibration, weights, options)
    made_room = () if plan.fit_after is None else _fitted_after(plan.fit_after, playbook, options)
    return Reviewed(
        node=options.node,
        whole=plan.whole,
        cases=plan.cases,
        frauds=plan.frauds,
        added=tuple(one for one in merged if one is not None),
        retired=(*_moved_to(plan, Status.RETIRED), *made_room),
        questioned=_moved_to(plan, Status.CANDIDATE),
        revived=_moved_to(plan, Status.ACTIVE),
        declined=plan.declined,
    )


def _fitted_after(fit: FitAfter, playbook: BulletPlaybook, options: LearnerOptions) -> tuple[str, ...]:
    """Fit all weights, then retire the weakest where there are too many; returns the ids of those."""
    refit(playbook, fit.engine, fit.cases, options)
    moves = crowded_out(fit.cases, playbook.snapshot(), options)
    for bullet_id, move in moves.items():
        playbook.set_status(bullet_id, move.status, why=move.reason)
    return tuple(moves)


def _moved_to(plan: ReviewPlan, status: Status) -> tuple[str, ...]:
    return tuple(one for one, move in plan.moves.items() if move.status is status)


def _weight(playbook: BulletPlaybook, bullet_id: str) -> float:
    """The weight of a bullet that had no part in the fit."""
    bullet = playbook.get_bullet(bullet_id)
    return bullet.weight or 0.0 if bullet is not None else 0.0


def new_bullet(lesson: Lesson, source: Source) -> NewBullet:
    """A lesson as it enters a playbook."""
    reply = as_reply(lesson)
    return NewBullet(
        content=str(reply["new_bullet"]),
        source=source,
        condition=lesson.condition,
        argues=lesson.argues,
        evidence=lesson.evidence,
        weight=lesson.weight,
        problem_types=reply["problem_types"],
    )


def _in_new_words(bullet: Bullet, lesson: Lesson) -> NewBullet:
    """A bullet with what was measured anew. What people wrote keeps its words."""
    renewed = new_bullet(lesson, bullet.source)
    return replace(renewed, content=bullet.content) if _by_people(bullet) else renewed


def _said_by(new: NewBullet, playbook: BulletPlaybook, curator: Curator, node: str) -> str:
    """The id of the bullet in use that says the same; nothing where a person retired it."""
    same = curator.said_already(new.content, node, playbook, condition=new.condition, argues=new.argues)
    return same.id if same is not None and same.status is not Status.RETIRED else ""


def refit(
    playbook: BulletPlaybook, reflector: EmbeddedReflector, cases: LabelledFacts, options: LearnerOptions
) -> None:
    """Fit the weights of bullets with a condition, and the calibration, without looking for new ones."""
    with playbook.one_step(why=FITTED_ANEW):
        bullets = [
            bullet
            for bullet in playbook.get_bullets_for_node(options.node)
            if bullet.condition is not None and not _waits_for_a_measurement(bullet)
        ]
        fitted = reflector.refit(bullets, cases)
        if fitted is None:
            return
        recalibrate(playbook, fitted.calibration, fitted.weights, options)
        for bullet in bullets:  # it would only take a place among the few that are selected
            if not _by_people(bullet) and fitted.weights.get(bullet.id) == 0:
                playbook.set_status(bullet.id, Status.RETIRED, why=_FITTED_TO_NOTHING)


def recalibrate(
    playbook: BulletPlaybook, calibration: Calibration, weights: dict[str, float], options: LearnerOptions
) -> None:
    """New weights and the calibration they belong to; the threshold stays as it is."""
    before = playbook.snapshot().calibration(options.node)
    threshold = before.threshold if before else options.threshold
    frame = calibration.model_copy(update={"threshold": threshold})
    playbook.record([Recalibrated(node=options.node, calibration=frame, weights=weights)])


@dataclass(frozen=True, slots=True)
class _Latest:
    """The latest outcomes, against which bullets are held."""

    facts: LabelledFacts

    @classmethod
    def of(cls, cases: LabelledFacts, most: int) -> _Latest:
        return cls(cases.take(slice(max(0, len(cases) - most), None)))

    def demotion_of(self, bullet: Bullet, condition: Condition, patience: Patience = WITH_BULLETS) -> Demotion | None:
        """What all of them mean for a bullet, or their later half, which tells sooner of what happens often."""
        mask, labels = condition.holds_in(self.facts.facts), self.facts.labels
        for first in (0, len(labels) // 2):
            fired, truth = mask[first:], labels[first:]
            found = demotion_of(bullet, float(truth.mean()), record_of(fired, truth), len(truth), patience)
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


def _outdated(bullet: Bullet, lesson: Lesson) -> bool:
    """Whether a bullet of the engine goes by figures from half of the cases there are by now, or by wrong ones."""
    if _by_people(bullet) or bullet.evidence is None:
        return False
    now, (low, high) = lesson.evidence.shown, bullet.evidence.interval
    return now.support >= 2 * bullet.evidence.shown.support or not low <= (now.precision or 0.0) <= high
