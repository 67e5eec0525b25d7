"""Lists of values, such as watched merchants or blocked cards, that conditions can refer to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from pydantic import BaseModel, Field

from acefraud.core.timestamps import OptionalTimestamp
from acefraud.display.redaction import MASKED
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, quoted

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
MAX_VALUE = 1_000


class ListItem(ShortRepr, BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """A value on a list: why it is there, who put it there, and until when."""

    value: str = Field(min_length=1, max_length=MAX_VALUE)
    reason: str = ""
    who: str = ""
    until: OptionalTimestamp = None
    """None means for good."""
    transaction_id: str = ""
    """The transaction whose outcome put it there, if one did."""

    def __repr_args__(self) -> ReprArgs:
        return [(name, Plain(MASKED) if name == "value" else value) for name, value in super().__repr_args__()]


class Feed(BaseModel, frozen=True, extra="forbid"):
    """A list that outcomes feed: the value of a key of every transaction that turns out to be fraud, for some days."""

    key: str = Field(min_length=1)
    """The entity or the fact whose value is listed."""
    days: float | None = Field(default=None, gt=0)
    """For how long; None means for good."""

    def until(self, at: datetime) -> datetime | None:
        """When a value that is listed now expires."""
        return None if self.days is None else at + timedelta(days=self.days)


class ValueList(ShortRepr, BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """Named values.

    >>> from datetime import UTC
    >>> until = datetime(2025, 1, 2, tzinfo=UTC)
    >>> watched = ValueList(name="watched", items={"ACME": ListItem(value="ACME", until=until)})
    >>> watched.has("ACME", datetime(2025, 1, 1, tzinfo=UTC)), watched.has("ACME", until)
    (True, False)
    """

    name: str
    about: str = ""
    """What it is for."""
    feed: Feed | None = None
    items: Mapping[str, ListItem] = Field(default_factory=dict)

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(quoted(self.name))
        yield None, Plain(f"{len(self.items):,} value{'' if len(self.items) == 1 else 's'}")
        if self.about:
            yield "about", Plain(quoted(self.about))

    def has(self, value: str, at: datetime) -> bool:
        """Whether a value is listed at this time."""
        item = self.items.get(value)
        return item is not None and (item.until is None or at < item.until)

    def changed(self, added: Mapping[str, ListItem], removed: Mapping[str, object]) -> ValueList:
        """The list with values added or replaced, and others removed."""
        kept = {value: item for value, item in self.items.items() if value not in removed}
        return self.model_copy(update={"items": {**kept, **added}})
