"""The playbook as a whole: bullets, changes, going back, how probabilities become verdicts, and lists of values."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import AfterValidator

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.context_facts import NAME, ListItem, ValueList
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
    told,
)
from acefraud.service.masking import RuleWords, rule_text
from acefraud.service.problems import Refused
from acefraud.service.routes.bullets import check_still_to_come
from acefraud.service.runtime import Runtime
from acefraud.storage.change_log import playbook_changes
from acefraud.storage.changes import plan_rollback
from acefraud.wire import answers as wire
from acefraud.wire.bodies import FeedChangeBody, ListChangeBody, ListDescriptionBody, RollbackBody, ThresholdBody

playbook_routes = APIRouter(prefix="/v1", tags=["playbook"])


@playbook_routes.get("/playbook", summary="List bullets")
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
) -> wire.PlaybookPage:
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
    return wire.PlaybookPage(
        items=[bullet_answer(bullet, in_clear=caller.in_clear) for bullet in found],
        next=more,
        playbook_revision=snapshot.revision,
        calibration=threshold_answer(snapshot, node or runtime.learner.options.node, runtime.learner),
    )


def _newest(runtime: Runtime) -> Snapshot:
    runtime.playbook.refresh()
    return runtime.playbook.snapshot()


@playbook_routes.get("/playbook/changes", summary="List changes of the playbook")
@in_thread
def changes(
    runtime: Serving, caller: MayRead, limit: Limit = 50, cursor: Cursor = None
) -> wire.Page[wire.ChangeAnswer]:
    """What changed the playbook, newest first: by whom, why, and the revision after it."""
    words = RuleWords.ever(runtime.playbook, in_clear=caller.in_clear)
    found = playbook_changes(runtime.playbook.ledger, before=read_cursor("changes", cursor), limit=limit)
    more = write_cursor("changes", found[-1].seq) if len(found) == limit else None
    return wire.Page(items=[change_answer(change, words) for change in found], next=more)


@playbook_routes.post(
    "/playbook:rollback",
    summary="Go back to an earlier revision",
    description="Bring the playbook back to an earlier revision, or only tell what that would change.\n\n"
    "Bullets get their words, status and weight of then, and those added since are retired; calibration, threshold, "
    "review rule and mapping go back. Counters, lists, snoozes and the feed of outcomes stay. Nothing is deleted: a "
    f"rollback can be rolled back. A preview also tells what it would do to the past. {BOUNDS}",
)
async def roll_back(body: RollbackBody, runtime: Serving, caller: MayCurate) -> wire.RollbackAnswer:
    """Go back to an earlier revision."""
    if not body.preview and not body.reason.strip():
        raise Refused(422, "expected a reason", field="reason")

    def done() -> wire.RollbackAnswer:
        if not body.preview:
            return rollback_answer(runtime.playbook.rollback(body.revision, **caller.by(body.reason)))
        change = plan_rollback(runtime.playbook, body.revision, body.reason)
        return rollback_answer(change.result, runtime.learner.preview_change(change.payloads))

    return await runtime.previewing.run(done)


@playbook_routes.get("/threshold", summary="Look at the threshold")
@in_thread
def threshold(runtime: Serving, _: MayRead) -> wire.ThresholdAnswer:
    """From which probability of fraud on transactions are declined, and which go to a person."""
    return threshold_answer(_newest(runtime), runtime.learner.options.node, runtime.learner)


@playbook_routes.put("/threshold", summary="Set the threshold")
@in_thread
def set_threshold(body: ThresholdBody, runtime: Serving, caller: MayCurate) -> wire.ThresholdAnswer:
    """Set from which probability of fraud on transactions are declined, and which go to a person.

    What is not given stays as it is; `review` as null removes the review rule. Before anything was learnt there is no
    threshold to set, which is a 422. A band of reviews has to hold the threshold. With costs, the cheapest verdict is
    chosen, and a day's reviews go to the cases where they save most.
    """
    node = runtime.learner.options.node
    try:
        runtime.playbook.set_threshold(
            body.threshold, body.review, node, no_review=body.no_review, **caller.by(body.reason)
        )
    except InputError as problem:
        places = {"costs": "review.costs", "review-between": "review.between"} if body.review else {}
        raise InputError(problem.message, field=places.get(problem.field or "", "threshold")) from problem
    return threshold_answer(_newest(runtime), node, runtime.learner)


@playbook_routes.get("/feed", summary="Look at how outcomes arrive")
@in_thread
def feed(runtime: Serving, _: MayRead) -> wire.OutcomeFeedAnswer:
    """Which decisions get an outcome, what silence means, and where the level of fraud is."""
    return outcome_feed_answer(runtime.playbook, runtime.learner.options.node)


@playbook_routes.put("/feed", summary="Say how outcomes arrive")
@in_thread
def set_feed(body: FeedChangeBody, runtime: Serving, caller: MayCurate) -> wire.OutcomeFeedAnswer:
    """Say which decisions get an outcome and what silence means, or settle a step of the level of fraud that is held.

    With `level` and no step that is held, or a level that has not moved, this is a 422.
    """
    given = body.model_dump(include={"silence_days", "declines_pass", "follow_level"})
    by, node = caller.by(body.reason), runtime.learner.options.node
    with runtime.playbook.unit_of_work(**by):
        if body.level is not None:
            runtime.playbook.settle_level(accept=body.level == "accept", node=node, **by)
        if body.kind is not None or any(value is not None for value in given.values()):
            runtime.playbook.set_feed(body.kind, **given, node=node, **by)
    return outcome_feed_answer(runtime.playbook, node)


list_routes = APIRouter(prefix="/v1", tags=["lists"])


def _list_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError("expected up to 64 lower-case letters, digits and `_`, starting with a letter")
    return name


ListName = Annotated[
    str,
    Path(
        json_schema_extra={"pattern": f"^{NAME.pattern}$"},
        description="Lower-case letters, digits and `_`.",
        examples=["blocked_cards"],
    ),
    AfterValidator(_list_name),
]


def _list_or_404(runtime: Runtime, name: str) -> ValueList:
    runtime.playbook.refresh()
    found = runtime.playbook.snapshot().lists.get(name)
    if found is None:
        raise Refused(404, "there is no list with this name", field="name")
    return found


def _list_answer(values: ValueList, *, in_clear: bool) -> wire.ListAnswer:
    feed = None if values.feed is None else told(wire.FeedAnswer, values.feed)
    return told(
        wire.ListAnswer, values, about=rule_text(values.about, in_clear=in_clear), feed=feed, count=len(values.items)
    )


def _list_value(item: ListItem, *, in_clear: bool) -> wire.ListValue:
    value, reason = (rule_text(text, in_clear=in_clear) for text in (item.value, item.reason))
    return told(wire.ListValue, item, value=value, reason=reason, transaction_id=item.transaction_id or None)


@list_routes.get("/lists", summary="List the lists")
@in_thread
def list_lists(
    runtime: Serving, caller: MayRead, limit: Limit = 50, cursor: Cursor = None
) -> wire.Page[wire.ListAnswer]:
    """All lists without their values, in the order in which they were created."""
    start = read_cursor("lists", cursor) or 0
    runtime.playbook.refresh()
    found, more = page_of("lists", list(runtime.playbook.snapshot().lists.values()), start, limit)
    return wire.Page(items=[_list_answer(values, in_clear=caller.in_clear) for values in found], next=more)


@list_routes.get("/lists/{name}", summary="Look at a list")
@in_thread
def look_at(
    name: ListName, runtime: Serving, caller: MayRead, limit: Limit = 50, cursor: Cursor = None
) -> wire.ListPage:
    """A list with its values in pages. Personal data in them is masked, unless the key may change lists.

    A page starts at a place on the list: if values are removed between two pages, the next one skips as many.
    """
    start = read_cursor(f"list {name}", cursor) or 0
    values = _list_or_404(runtime, name)
    found, more = page_of(f"list {name}", list(values.items.values()), start, limit)
    items = [_list_value(item, in_clear=caller.in_clear) for item in found]
    return wire.ListPage(list=_list_answer(values, in_clear=caller.in_clear), items=items, next=more)


@list_routes.put("/lists/{name}", summary="Create a list, or describe it anew")
@in_thread
def describe(name: ListName, body: ListDescriptionBody, runtime: Serving, caller: MayCurate) -> wire.ListAnswer:
    """Create a list, or change what it is for and what feeds it. Its values stay.

    Rules refer to a list by its name: "card in list blocked_cards".
    """
    made = runtime.playbook.create_list(name, about=body.about, feed=body.fed_by(), **caller.by(body.reason))
    return _list_answer(made, in_clear=True)


@list_routes.patch("/lists/{name}", summary="Put values on a list, or take them off")
@in_thread
def change(name: ListName, body: ListChangeBody, runtime: Serving, caller: MayCurate) -> wire.ListAnswer:
    """Put values on a list and take others off, all or none.

    A value that is there already gets the new reason and time. One to take off that is not there is a 422. A value that
    is both taken off and put on stays.
    """
    if not body.add and not body.remove:
        raise Refused(422, "expected values to add or to remove", field="add")
    there = _list_or_404(runtime, name).items
    for index, value in enumerate(body.remove):
        if value not in there:  # the value itself may be personal, so only its index is told
            raise Refused(422, "this value is not on the list; nothing was changed", field=f"remove.{index}")
    for index, item in enumerate(body.add):
        check_still_to_come(runtime, item.until, f"add.{index}.until")
    added = [
        ListItem(value=item.value, reason=item.reason or body.reason, who=caller.name, until=item.until)
        for item in body.add
    ]
    made = runtime.playbook.change_list(name, added=added, removed=body.remove, **caller.by(body.reason))
    return _list_answer(made, in_clear=True)
