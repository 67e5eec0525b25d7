"""Lists of values that rules refer to, such as watched merchants or blocked cards."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import AfterValidator, Field

from acefraud.core.scope import Scope
from acefraud.core.value_list import MAX_VALUE, NAME, Feed, ListItem, ValueList
from acefraud.service.access import Caller, MayCurate, MayRead
from acefraud.service.bodies import Id, PrivateBody, RequiredWhy, StrictBody, Time, Why, storable
from acefraud.service.masking import rule_text
from acefraud.service.paging import Cursor, Limit, page_of, read_cursor
from acefraud.service.problems import Refused
from acefraud.service.routes.bullets import check_still_to_come
from acefraud.service.routes.decisions import Serving
from acefraud.service.runtime import Runtime
from acefraud.wire.answer import Page, examples
from acefraud.wire.playbook import FeedAnswer, ListAnswer, ListPage, ListValue

router = APIRouter(prefix="/v1", tags=["lists"])

MOST_AT_ONCE = 5_000
LONGEST_FEED = 36_500
"""Days."""
Value = Annotated[str, Field(min_length=1, max_length=MAX_VALUE), AfterValidator(storable)]
"""A value on a list."""


class FeedBody(StrictBody):
    """Outcomes feed a list: the value of a key of every transaction that turns out to be fraud."""

    key: Id = Field(description="The entity or the fact whose value is listed.")
    days: float | None = Field(default=None, gt=0, le=LONGEST_FEED, description="For how long; null means for good.")


class ListDescriptionBody(PrivateBody):
    """What a list is for, and what feeds it."""

    model_config = examples({"about": "reported stolen", "reason": "asked for by the disputes team"})

    about: Why = ""
    feed: FeedBody | None = None
    reason: RequiredWhy

    def fed_by(self) -> Feed | None:
        """What feeds it."""
        return None if self.feed is None else Feed(key=self.feed.key, days=self.feed.days)


class NewItemBody(PrivateBody):
    """A value to put on a list. One that is there already gets the new reason and date."""

    value: Value
    reason: Why = Field(default="", description="Default: the reason of the whole change.")
    until: Time | None = Field(default=None, description="Without a zone it is read as UTC.")


class ListChangeBody(PrivateBody):
    """Values to put on a list and to take off it, all or none."""

    model_config = examples(
        {
            "add": [{"value": "card-17", "until": "2036-01-31T00:00:00Z"}],
            "remove": ["card-3"],
            "reason": "call of the bank",
        }
    )

    add: list[NewItemBody] = Field(default_factory=list, max_length=MOST_AT_ONCE)
    remove: list[Value] = Field(default_factory=list, max_length=MOST_AT_ONCE)
    reason: RequiredWhy


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
async def list_lists(runtime: Serving, caller: MayRead, limit: Limit = 50, cursor: Cursor = None) -> Page[ListAnswer]:
    """All lists without their values, in the order in which they were created."""
    start = read_cursor("lists", cursor) or 0

    def listed() -> Page[ListAnswer]:
        runtime.playbook.refresh()
        found, more = page_of("lists", list(runtime.playbook.snapshot().lists.values()), start, limit)
        return Page(items=[_list_answer(one, in_clear=caller.may(Scope.CURATE)) for one in found], next=more)

    return await runtime.in_thread(listed)


@router.get("/lists/{name}", summary="Look at a list")
async def look_at(
    name: ListName, runtime: Serving, caller: MayRead, limit: Limit = 50, cursor: Cursor = None
) -> ListPage:
    """A list with its values in pages. Personal data in them is masked, unless the key may change lists.

    A page starts at a place on the list: if values are removed between two pages, the next one skips as many.
    """
    kind, in_clear = f"list {name}", caller.may(Scope.CURATE)
    start = read_cursor(kind, cursor) or 0

    def listed() -> ListPage:
        one = _list_or_404(runtime, name)
        found, more = page_of(kind, list(one.items.values()), start, limit)
        items = [_list_value(item, in_clear=in_clear) for item in found]
        return ListPage(list=_list_answer(one, in_clear=in_clear), items=items, next=more)

    return await runtime.in_thread(listed)


@router.put("/lists/{name}", summary="Create a list, or describe it anew")
async def describe(name: ListName, body: ListDescriptionBody, runtime: Serving, caller: MayCurate) -> ListAnswer:
    """Create a list, or change what it is for and what feeds it. Its values stay.

    Rules refer to a list by its name: "card in list blocked_cards".
    """

    def made() -> ValueList:
        return runtime.playbook.create_list(
            name, about=body.about, feed=body.fed_by(), who=caller.name, why=body.reason
        )

    return _list_answer(await runtime.in_thread(made), in_clear=True)


@router.patch("/lists/{name}", summary="Put values on a list, or take them off")
async def change(name: ListName, body: ListChangeBody, runtime: Serving, caller: MayCurate) -> ListAnswer:
    """Put values on a list and take others off, all or none.

    A value that is there already gets the new reason and time. One to take off that is not there is a 422. A value that
    is both taken off and put on stays.
    """
    if not body.add and not body.remove:
        raise Refused(422, "expected values to add or to remove", field="add")
    return _list_answer(await runtime.in_thread(lambda: _changed(runtime, name, body, caller)), in_clear=True)


def _changed(runtime: Runtime, name: str, body: ListChangeBody, caller: Caller) -> ValueList:
    there = _list_or_404(runtime, name).items
    for place, value in enumerate(body.remove):
        if value not in there:  # the value itself may be personal, so only its place is told
            raise Refused(422, "this value is not on the list; nothing was changed", field=f"remove.{place}")
    for place, one in enumerate(body.add):
        check_still_to_come(runtime, one.until, f"add.{place}.until")
    added = [
        ListItem(value=one.value, reason=one.reason or body.reason, who=caller.name, until=one.until)
        for one in body.add
    ]
    return runtime.playbook.change_list(name, added=added, removed=body.remove, who=caller.name, why=body.reason)
