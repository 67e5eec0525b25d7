"""One review of a playbook: watch, retire, revive, induce, fit, calibrate.

A review is a function of the remembered cases and a snapshot of the playbook, and returns a `ReviewPlan`. Only
`acefraud.learning.review` writes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np

from acefraud.core.bullet import Bullet, NewBullet, Source, Status
from acefraud.core.calibration import Calibration, log_odds
from acefraud.core.condition import Condition
from acefraud.core.events import THE_ENGINE, Recalibrated, Reviewed
from acefraud.core.playbook import LearningState, Snapshot
from acefraud.curation.curator import Curator
from acefraud.engine.options import LearnerOptions
from acefraud.learning.demotion import LatestOutcomes, StatusMove, by_people, revival_of
from acefraud.learning.level import level_at, log_odds_in
from acefraud.roles.embedded.agent import weight_of
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.roles.embedded.reflector import EmbeddedReflector, can_be_fitted
from acefraud.rules.induction.boosting import nearly_same
from acefraud.rules.induction.induce import Induced, Lesson
from acefraud.rules.missing_cases import missing_cases
from acefraud.rules.scorecard import lines_in
from acefraud.storage.changes import plan_edit
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arrays import FloatArray

ZERO_WEIGHT = "its fitted weight is zero: other bullets cover it, or it no longer holds"
_MANY_OUTCOMES = 500
"""Outcomes after which half as many cases of the rarer kind are enough."""
_SLOWEST_FROM = 1_000
"""Remembered cases at or above which a review waits for the largest share of new ones."""
_DEMOTED = (Status.RETIRED, Status.CANDIDATE)

Rule = tuple[Bullet, Condition]
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class DeferredFit:
    """What to fit the weights with once the new bullets are in the playbook."""

    engine: EmbeddedReflector
    cases: LabelledFacts


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
    deferred_fit: DeferredFit | None = None
    """How the weights are fitted, if they are not."""
    skipped: str = ""
    """Why nothing could be learnt; empty if something could."""
    whole: bool = True
    """Whether it searched and fitted, or only watched."""


def review_due(state: LearningState, options: LearnerOptions, least_cases: int) -> bool:
    """Whether enough outcomes have arrived since the last review, and there are at least `least_cases` cases.

    Cases of the rarer kind, usually frauds, teach the most. A review needs `review_least` new ones, or `review_share`
    of those remembered. Its cost grows with the cases remembered, so it also waits until up to a quarter of all cases
    are new. After `review_at_last` outcomes it is due in any case.
    """
    new, cases = state.unreviewed, state.remembered.cases + state.unreviewed.cases
    frauds = state.remembered.frauds + new.frauds
    rarer, new_rarer = (frauds, new.frauds) if 2 * frauds <= cases else (cases - frauds, new.cases - new.frauds)
    if cases < least_cases:
        return False
    least = options.review_least if new.cases < _MANY_OUTCOMES else options.review_least / 2
    enough = new_rarer >= max(least, options.review_share * rarer)
    waited_long_enough = new.cases >= 0.25 * cases * min(1.0, cases / _SLOWEST_FROM)
    return (enough and waited_long_enough) or new.cases >= options.review_at_last


def watch(
    cases: LabelledFacts, snapshot: Snapshot, options: LearnerOptions, *, sees_declines: bool = True
) -> ReviewPlan:
    """Retire or demote the bullets that the latest outcomes speak against."""
    latest = LatestOutcomes.of(cases, options.recent, sees_declines=sees_declines)
    moves = dict(latest.demotions(snapshot.for_node(options.node)))
    return ReviewPlan(len(cases), cases.frauds, moves, whole=False)


def review(
    cases: LabelledFacts,
    snapshot: Snapshot,
    engine: EmbeddedReflector,
    options: LearnerOptions,
    *,
    turn: int | None = None,
    sees_declines: bool = True,
    rising: tuple[str, ...] = (),
    falling: tuple[str, ...] = (),
    progress: Callable[[float], None] = lambda _: None,
) -> ReviewPlan:
    """Watch, then search for new bullets and fit all weights together.

    `turn` numbers the reviews of a playbook. Without one, the cases are a whole labelled history: it is searched more
    thoroughly, and nothing is watched.
    """
    history = turn is None
    plan = ReviewPlan(len(cases), cases.frauds)
    if not history:
        plan = replace(watch(cases, snapshot, options, sees_declines=sees_declines), whole=True)
    skipped = engine.too_little(cases)
    if skipped:
        alone = history and not lines_in(cases.facts).any()  # general knowledge says the same of all of them
        return replace(plan, skipped=skipped, calibration=_base_rate(cases, snapshot, options) if alone else None)
    rules = _Rules.of(snapshot, cases, options)
    before = snapshot.calibration(options.node)
    most = options.bullet_limit(before)
    offset = rules.offset if history else _with_level(rules.offset, cases, snapshot, options)
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
        missing = missing_cases(cases.facts, cases.labels)
        found = "nothing was found that holds up beyond chance"
        plan = replace(plan, skipped=f"{found}; {missing} could change that" if missing else found)
        return replace(plan, calibration=_base_rate(cases, snapshot, options)) if history else plan
    latest = None if history else LatestOutcomes.of(cases, options.recent, sees_declines=sees_declines)
    source = Source.OFFLINE if history else Source.ONLINE
    return _planned(plan, rules, induced, latest, most=most, source=source)


def _base_rate(cases: LabelledFacts, snapshot: Snapshot, options: LearnerOptions) -> Calibration | None:
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

    cases: LabelledFacts
    learnt: tuple[Rule, ...]
    """In use, and the youngest that the engine retired, which may come back. A fit may drop them."""
    written: tuple[Rule, ...]
    """Written or pinned by people. They are fitted, but always stay."""
    fixed: tuple[Rule, ...]
    """Bullets that the cases say too little about."""
    offset: FloatArray | None
    """What the fixed ones add to the log-odds of each case."""

    @property
    def base_rate(self) -> float:
        """The share of fraud among the cases."""
        return float(self.cases.labels.mean())

    @classmethod
    def of(cls, snapshot: Snapshot, cases: LabelledFacts, options: LearnerOptions) -> _Rules:
        calibration = snapshot.calibration(options.node)
        base_rate = calibration.base_rate if calibration else 0.5
        learnt, written, fixed = list[Rule](), list[Rule](), list[Rule]()
        offset = np.zeros(len(cases))
        for bullet, condition in _with_condition(snapshot, options):
            mask = condition.holds_in(cases.facts)
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
    lessons = {
        lesson.condition: lesson
        for lesson in induced.lessons
        if latest is None or latest.confirm(lesson, induced.calibration.cases, rules.base_rate)
    }
    lessons = _not_said_yet(lessons, rules)
    seen = set[Condition]()
    for bullet, condition in (*rules.written, *rules.learnt):
        lesson = lessons.pop(condition, None)
        if lesson is not None:
            weights[bullet.id] = lesson.weight
            revived = _revives(bullet, lesson, moves.get(bullet.id))
            if revived or _outdated(bullet, lesson):
                renewed[bullet.id] = _renewed(bullet, lesson)
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
    facts = rules.cases.facts
    fixed = [condition.holds_in(facts) for bullet, condition in rules.fixed if not by_people(bullet)]
    if not fixed or not lessons:
        return lessons
    masks = np.column_stack([*(condition.holds_in(facts) for condition in lessons), *fixed])
    said = nearly_same(masks, np.ones(len(facts)))[: len(lessons), len(lessons) :]
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
    if lesson.argues is not bullet.argues:
        return True
    return now.support >= 2 * bullet.evidence.shown.support or not low <= (now.precision or 0.0) <= high


def _renewed(bullet: Bullet, lesson: Lesson) -> NewBullet:
    """A bullet with new figures. What people wrote keeps its text."""
    renewed = lesson.new_bullet(bullet.source)
    return replace(renewed, content=bullet.content) if by_people(bullet) else renewed


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
    weakest = _weakest(strength, most)
    kept = [lesson for condition, lesson in lessons.items() if condition not in weakest]
    return kept, {one: _no_room(most) for one in weakest if isinstance(one, str)}


def crowded_out(cases: LabelledFacts, snapshot: Snapshot, options: LearnerOptions) -> dict[str, StatusMove]:
    """The weakest learnt bullets of a node that has too many of them."""
    learnt = [bullet for bullet in snapshot.for_node(options.node) if not by_people(bullet)]
    strength = {bullet.id: _strength(bullet.weight or 0.0, bullet.condition, cases) for bullet in learnt}
    most = options.bullet_limit(snapshot.calibration(options.node))
    return {one: _no_room(most) for one in _weakest(strength, most)}


def _weakest(strength: Mapping[K, float], most: int) -> list[K]:
    return sorted(strength, key=lambda one: -strength[one])[most:]


def _strength(weight: float, condition: Condition | None, cases: LabelledFacts) -> float:
    """|weight| x sqrt(support): how far a bullet moves a case, and how many cases."""
    support = int(condition.holds_in(cases.facts).sum()) if condition is not None else 0
    return float(abs(weight) * np.sqrt(support))


def _no_room(most: int) -> StatusMove:
    return StatusMove(
        Status.RETIRED, f"the playbook holds at most {most} learnt bullets, and stronger ones took its place"
    )


def apply(plan: ReviewPlan, playbook: BulletPlaybook, curator: Curator, options: LearnerOptions) -> Reviewed:
    """Write a plan as part of the caller's unit of work. Returns the event that sums it up, not recorded yet."""
    for bullet_id, renewed in plan.renewed.items():
        playbook.change(partial(plan_edit, playbook, bullet_id, renewed), why=renewed.why)
    for bullet_id, move in plan.moves.items():
        playbook.set_status(bullet_id, move.status, why=move.reason)
    merged = curator.merge_bullets(plan.new, options.node, playbook)
    if plan.calibration is not None:
        recalibrate(playbook, plan.calibration, _all_weights(plan, merged, playbook, curator, options.node), options)
    dropped = () if plan.deferred_fit is None else _fit(plan.deferred_fit, playbook, options)
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


def _fit(fit: DeferredFit, playbook: BulletPlaybook, options: LearnerOptions) -> tuple[str, ...]:
    """Fit all weights, then retire the weakest bullets if there are too many. Returns all ids it retires."""
    without_weight = refit(playbook, fit.engine, fit.cases, options)
    moves = crowded_out(fit.cases, playbook.snapshot(), options)
    for bullet_id, move in moves.items():
        playbook.set_status(bullet_id, move.status, why=move.reason)
    return (*without_weight, *moves)


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
