"""Lists of values that rules refer to, such as watched merchants or blocked cards."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import AfterValidator

from acefraud.core.context_facts import NAME, ListItem, ValueList
from acefraud.service.access import MayCurate, MayRead, Serving, in_thread
from acefraud.service.masking import rule_text
from acefraud.service.paging import Cursor, Limit, page_of, read_cursor
from acefraud.service.problems import Refused
from acefraud.service.routes.bullets import check_still_to_come
from acefraud.service.runtime import Runtime
from acefraud.wire.answer import Page
from acefraud.wire.bodies import ListChangeBody, ListDescriptionBody
from acefraud.wire.playbook import FeedAnswer, ListAnswer, ListPage, ListValue

router = APIRouter(prefix="/v1", tags=["lists"])


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


def _list_answer(values: ValueList, *, in_clear: bool) -> ListAnswer:
    feed = None if values.feed is None else FeedAnswer(key=values.feed.key, days=values.feed.days)
    about = rule_text(values.about, in_clear=in_clear)
    return ListAnswer(name=values.name, about=about, feed=feed, count=len(values.items))


def _list_value(item: ListItem, *, in_clear: bool) -> ListValue:
    return ListValue(
        value=rule_text(item.value, in_clear=in_clear),
        reason=rule_text(item.reason, in_clear=in_clear),
        who=item.who,
        until=item.until,
        transaction_id=item.transaction_id or None,
    )


@router.get("/lists", summary="List the lists")
@in_thread
def list_lists(runtime: Serving, caller: MayRead, limit: Limit = 50, cursor: Cursor = None) -> Page[ListAnswer]:
    """All lists without their values, in the order in which they were created."""
    start = read_cursor("lists", cursor) or 0
    runtime.playbook.refresh()
    found, more = page_of("lists", list(runtime.playbook.snapshot().lists.values()), start, limit)
    return Page(items=[_list_answer(values, in_clear=caller.in_clear) for values in found], next=more)


@router.get("/lists/{name}", summary="Look at a list")
@in_thread
def look_at(name: ListName, runtime: Serving, caller: MayRead, limit: Limit = 50, cursor: Cursor = None) -> ListPage:
    """A list with its values in pages. Personal data in them is masked, unless the key may change lists.

    A page starts at a place on the list: if values are removed between two pages, the next one skips as many.
    """
    start = read_cursor(f"list {name}", cursor) or 0
    values = _list_or_404(runtime, name)
    found, more = page_of(f"list {name}", list(values.items.values()), start, limit)
    items = [_list_value(item, in_clear=caller.in_clear) for item in found]
    return ListPage(list=_list_answer(values, in_clear=caller.in_clear), items=items, next=more)


@router.put("/lists/{name}", summary="Create a list, or describe it anew")
@in_thread
def describe(name: ListName, body: ListDescriptionBody, runtime: Serving, caller: MayCurate) -> ListAnswer:
    """Create a list, or change what it is for and what feeds it. Its values stay.

    Rules refer to a list by its name: "card in list blocked_cards".
    """
    made = runtime.playbook.create_list(name, about=body.about, feed=body.fed_by(), who=caller.name, why=body.reason)
    return _list_answer(made, in_clear=True)


@router.patch("/lists/{name}", summary="Put values on a list, or take them off")
@in_thread
def change(name: ListName, body: ListChangeBody, runtime: Serving, caller: MayCurate) -> ListAnswer:
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
    made = runtime.playbook.change_list(name, added=added, removed=body.remove, who=caller.name, why=body.reason)
    return _list_answer(made, in_clear=True)
