"""The playbook as a whole: what is in it, what changed it, how to go back, and how probabilities become verdicts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.playbook import Snapshot
from acefraud.errors import InputError
from acefraud.service.access import (
    Cursor,
    Limit,
    MayCurate,
    MayRead,
    Serving,
    in_thread,
    page_of,
    read_cursor,
    write_cursor,
)
from acefraud.service.answers import (
    BOUNDS,
    bullet_answer,
    change_answer,
    outcome_feed_answer,
    rollback_answer,
    threshold_answer,
)
from acefraud.service.masking import RuleWords
from acefraud.service.problems import Refused
from acefraud.service.runtime import Runtime
from acefraud.storage.change_log import playbook_changes
from acefraud.storage.rollback import plan_rollback, rollback
from acefraud.wire.answers import ChangeAnswer, OutcomeFeedAnswer, Page, PlaybookPage, RollbackAnswer, ThresholdAnswer
from acefraud.wire.bodies import FeedChangeBody, RollbackBody, ThresholdBody

router = APIRouter(prefix="/v1", tags=["playbook"])


@router.get("/playbook", summary="List bullets")
@in_thread
def list_bullets(
    runtime: Serving,
    caller: MayRead,
    source: Source | None = None,
    status: Status | None = None,
    node: Annotated[str | None, Query(max_length=200, description="Which agent uses them.")] = None,
    retired: Annotated[bool, Query(description="Whether to list retired ones too.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> PlaybookPage:
    """The bullets in the order in which they were added, with what was measured of them."""
    start = read_cursor("bullets", cursor) or 0

    def wanted(bullet: Bullet) -> bool:
        return (
            source in (None, bullet.source)
            and status in (None, bullet.status)
            and node in (None, bullet.node)
            and (bullet.status is not Status.RETIRED or retired or status is Status.RETIRED)
        )

    snapshot = _newest(runtime)
    found, more = page_of("bullets", snapshot.table.bullets, start, limit, wanted)
    return PlaybookPage(
        items=[bullet_answer(bullet, in_clear=caller.in_clear) for bullet in found],
        next=more,
        playbook_revision=snapshot.revision,
        calibration=threshold_answer(snapshot, node or runtime.learner.options.node, runtime.learner),
    )


def _newest(runtime: Runtime) -> Snapshot:
    runtime.playbook.refresh()
    return runtime.playbook.snapshot()


@router.get("/playbook/changes", summary="List changes of the playbook")
@in_thread
def changes(runtime: Serving, caller: MayRead, limit: Limit = 50, cursor: Cursor = None) -> Page[ChangeAnswer]:
    """What changed the playbook, newest first: by whom, why, and the revision after it."""
    words = RuleWords.ever(runtime.playbook, in_clear=caller.in_clear)
    found = playbook_changes(runtime.playbook.ledger, before=read_cursor("changes", cursor), limit=limit)
    more = write_cursor("changes", found[-1].seq) if len(found) == limit else None
    return Page(items=[change_answer(change, words) for change in found], next=more)


@router.post(
    "/playbook:rollback",
    summary="Go back to an earlier revision",
    description="Bring the playbook back to an earlier revision, or only tell what that would change.\n\n"
    "Bullets get their words, status and weight of then, and those added since are retired; calibration, threshold, "
    "review rule and mapping go back. Counters, lists, snoozes and the feed of outcomes stay. Nothing is deleted: a "
    f"rollback can be rolled back. A preview also tells what it would do to the past. {BOUNDS}",
)
async def roll_back(body: RollbackBody, runtime: Serving, caller: MayCurate) -> RollbackAnswer:
    """Go back to an earlier revision."""
    if not body.preview and not body.reason.strip():
        raise Refused(422, "expected a reason", field="reason")

    def done() -> RollbackAnswer:
        if not body.preview:
            return rollback_answer(rollback(runtime.playbook, body.revision, who=caller.name, why=body.reason))
        change = plan_rollback(runtime.playbook, body.revision, body.reason)
        return rollback_answer(change.result, runtime.learner.preview_change(change.payloads))

    return await runtime.previewing.run(done)


@router.get("/threshold", summary="Look at the threshold")
@in_thread
def threshold(runtime: Serving, _: MayRead) -> ThresholdAnswer:
    """From which probability of fraud on transactions are declined, and which go to a person."""
    return threshold_answer(_newest(runtime), runtime.learner.options.node, runtime.learner)


@router.put("/threshold", summary="Set the threshold")
@in_thread
def set_threshold(body: ThresholdBody, runtime: Serving, caller: MayCurate) -> ThresholdAnswer:
    """Set from which probability of fraud on transactions are declined, and which go to a person.

    What is not given stays as it is; `review` as null removes the review rule. Before anything was learnt there is no
    threshold to set, which is a 422. A band of reviews has to hold the threshold. With costs, the cheapest verdict is
    chosen, and a day's reviews go to the cases where they save most.
    """
    node = runtime.learner.options.node
    try:
        runtime.playbook.set_threshold(
            body.threshold, body.review, node, no_review=body.no_review, who=caller.name, why=body.reason
        )
    except InputError as problem:
        places = {"costs": "review.costs", "review-between": "review.between"} if body.review else {}
        raise InputError(problem.message, field=places.get(problem.field or "", "threshold")) from problem
    return threshold_answer(_newest(runtime), node, runtime.learner)


@router.get("/feed", summary="Look at how outcomes arrive")
@in_thread
def feed(runtime: Serving, _: MayRead) -> OutcomeFeedAnswer:
    """Which decisions get an outcome, what silence means, and where the level of fraud is."""
    return outcome_feed_answer(runtime.playbook, runtime.learner.options.node)


@router.put("/feed", summary="Say how outcomes arrive")
@in_thread
def set_feed(body: FeedChangeBody, runtime: Serving, caller: MayCurate) -> OutcomeFeedAnswer:
    """Say which decisions get an outcome and what silence means, or settle a step of the level of fraud that is held.

    With `level` and no step that is held, or a level that has not moved, this is a 422.
    """
    given = body.model_dump(include={"silence_days", "declines_pass", "follow_level"})
    who, why, node = caller.name, body.reason, runtime.learner.options.node
    with runtime.playbook.unit_of_work(who=who, why=why):
        if body.level is not None:
            runtime.playbook.settle_level(accept=body.level == "accept", node=node, who=who, why=why)
        if body.kind is not None or any(value is not None for value in given.values()):
            runtime.playbook.set_feed(body.kind, **given, node=node, who=who, why=why)
    return outcome_feed_answer(runtime.playbook, node)
