"""Flags that whoever decides adds to the facts of a transaction, because rules ask for them.

They say whether a value is on a list of the playbook, is a certain one or begins in a certain way, whether a policy is
snoozed, what is left of the day's reviews, and that nothing relevant is known. They are recorded with the other facts,
so a decision can be made again when the list has changed. The learner never proposes rules about them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pydantic import BaseModel, Field

from acefraud.display.redaction import MASKED
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, quoted
from acefraud.support.timestamps import OptionalTimestamp

IN_LIST: Final = "in list"
NAMED: Final = "named"
STARTING: Final = "starting with"
REVIEWS_TODAY = "reviews today"
"""How many reviews a day had before a decision, if they are limited."""
REVIEW_CUT = "review cut"
"""What a review had to save at least when a case was decided, if reviews are limited."""
UNFAMILIAR = "unfamiliar: left to a person"
"""Only where nothing relevant is known of a transaction: whether it goes to a person for that reason."""
_LOOK_UP = re.compile(r'(?P<key>.+?) (?P<how>in list|named(?= ")|starting with(?= ")) (?P<what>.+)', re.DOTALL)
_SNOOZED = "snooze of "


class LookUp(NamedTuple):
    """What a flag says of the value of a fact or an entity: that it is on a list, is a certain one, or begins so.

    >>> LookUp("merchant", IN_LIST, "watched").flag, LookUp("merchant", NAMED, "ACME").flag
    ('merchant in list watched', 'merchant named "ACME"')
    >>> LookUp.of('card starting with "6505"')
    LookUp(key='card', how='starting with', what='6505')
    """

    key: str
    how: str
    what: str
    """The name of the list, the value, or how it begins."""

    @property
    def flag(self) -> str:
        """The name of the flag."""
        return (
            f"{self.key} {self.how} {self.what if self.how == IN_LIST else json.dumps(self.what, ensure_ascii=False)}"
        )

    @classmethod
    def of(cls, fact: str) -> LookUp | None:
        """What a flag says; None for any other fact."""
        match = _LOOK_UP.fullmatch(fact)
        if match is None or match["how"] == IN_LIST:
            return match and cls(**match.groupdict())
        try:
            return cls(match["key"], match["how"], str(json.loads(match["what"])))
        except ValueError:
            return None

    def holds(self, value: str) -> bool:
        """Whether a value is the one that is asked for. Lists are asked elsewhere."""
        return value.startswith(self.what) if self.how == STARTING else value == self.what


def snooze_fact(bullet_id: str) -> str:
    """The flag that says that a policy is snoozed for a transaction.

    >>> is_context_fact(snooze_fact("b-1")), is_context_fact("amount")
    (True, False)
    """
    return f"{_SNOOZED}{bullet_id}"


def snoozed_in(names: Iterable[str]) -> list[str]:
    """The policies that some facts say are snoozed.

    >>> snoozed_in(["amount", snooze_fact("b-1")])
    ['b-1']
    """
    return [name.removeprefix(_SNOOZED) for name in names if name.startswith(_SNOOZED)]


def is_context_fact(name: str) -> bool:
    """Whether a fact is one of these."""
    return name in (REVIEWS_TODAY, REVIEW_CUT, UNFAMILIAR) or name.startswith(_SNOOZED) or LookUp.of(name) is not None


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
