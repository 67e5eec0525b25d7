"""Writes the plan of a review into a playbook, and fits weights there."""

from __future__ import annotations

from functools import partial

from acefraud.core.bullet import Status
from acefraud.core.calibration import Calibration
from acefraud.core.events import Recalibrated, Reviewed
from acefraud.curation.curator import Curator
from acefraud.learning.demotion import by_people
from acefraud.learning.options import LearnerOptions
from acefraud.learning.review import ZERO_WEIGHT, DeferredFit, ReviewPlan, awaits_measurement, crowded_out
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.roles.embedded.reflector import EmbeddedReflector
from acefraud.storage.changes import plan_edit
from acefraud.storage.playbook import BulletPlaybook


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
