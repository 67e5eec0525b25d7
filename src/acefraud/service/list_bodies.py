"""Lists of values, as clients send and get them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from acefraud.core.value_list import MAX_VALUE, Feed, ListItem, ValueList
from acefraud.service.bodies import Id, Page, RequiredWhy, Time, Why, storable
from acefraud.service.masking import rule_text

MOST_AT_ONCE = 5_000
LONGEST_FEED = 36_500
"""Days."""
Value = Annotated[str, Field(min_length=1, max_length=MAX_VALUE), AfterValidator(storable)]
"""A value on a list."""


class FeedBody(BaseModel, extra="forbid"):
    """Outcomes feed a list: the value of a key of every transaction that turns out to be fraud."""

    key: Id = Field(description="The entity or the fact whose value is listed.")
    days: float | None = Field(default=None, gt=0, le=LONGEST_FEED, description="For how long; null means for good.")


class ListBody(BaseModel):
    """A list, without its values."""

    name: str
    about: str = Field(description="What it is for.")
    feed: FeedBody | None
    count: int = Field(description="How many values are on it.")

    @classmethod
    def of(cls, one: ValueList, *, in_clear: bool) -> ListBody:
        """A list."""
        feed = None if one.feed is None else FeedBody.model_construct(key=one.feed.key, days=one.feed.days)
        return cls(name=one.name, about=rule_text(one.about, in_clear=in_clear), feed=feed, count=len(one.items))


class ListItemBody(BaseModel):
    """A value on a list. Personal data is masked for callers who may not change the list."""

    value: str
    reason: str
    who: str
    until: datetime | None = Field(description="Until when it counts; null means for good.")
    transaction_id: str | None = Field(description="The transaction whose outcome put it there, if one did.")

    @classmethod
    def of(cls, item: ListItem, *, in_clear: bool) -> ListItemBody:
        """A value, with personal data if it may be shown in clear."""
        return cls(
            value=rule_text(item.value, in_clear=in_clear),
            reason=rule_text(item.reason, in_clear=in_clear),
            who=item.who,
            until=item.until,
            transaction_id=item.transaction_id or None,
        )


class ListPageBody(Page[ListItemBody]):
    """A list with a part of its values, in the order in which they were added."""

    list: ListBody


class ListDescriptionBody(BaseModel):
    """What a list is for, and what feeds it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"about": "reported stolen", "reason": "asked for by the disputes team"}]},
        extra="forbid",
        hide_input_in_errors=True,
    )

    about: Why = ""
    feed: FeedBody | None = None
    reason: RequiredWhy

    def fed_by(self) -> Feed | None:
        """What feeds it."""
        return None if self.feed is None else Feed(key=self.feed.key, days=self.feed.days)


class NewItemBody(BaseModel, extra="forbid", hide_input_in_errors=True):
    """A value to put on a list. One that is there already gets the new reason and date."""

    value: Value
    reason: Why = Field(default="", description="Default: the reason of the whole change.")
    until: Time | None = Field(default=None, description="Without a zone it is read as UTC.")


class ListChangeBody(BaseModel):
    """Values to put on a list and to take off it, all or none."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "add": [{"value": "card-17", "until": "2036-01-31T00:00:00Z"}],
                    "remove": ["card-3"],
                    "reason": "call of the bank",
                }
            ]
        },
        extra="forbid",
        hide_input_in_errors=True,
    )

    add: list[NewItemBody] = Field(default_factory=list, max_length=MOST_AT_ONCE)
    remove: list[Value] = Field(default_factory=list, max_length=MOST_AT_ONCE)
    reason: RequiredWhy
