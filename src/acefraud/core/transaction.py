"""A transaction, its facts, and a labelled case."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from acefraud.display.redaction import Masker, personal_values, visible
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, given, quoted, shown_facts, shown_text, shown_value
from acefraud.errors import InputError
from acefraud.support.timestamps import IdText, OptionalTimestamp, PlainFlag, in_utc, plain_value, plain_values

FactValue = bool | float | str
"""A fact is a flag, a number or a category. An unknown fact is absent, never a placeholder."""

MAX_TEXT = 100_000
"""The longest free text of a transaction, in characters."""

MAX_WORD = 1_000
"""The longest category, in characters. Anything longer is a text in the wrong field."""

_WHO = ("customer", "card", "account", "merchant", "merchant_name", "shop", "terminal", "device")
"""Facts that name who took part, where they are no entities."""


class Verdict(StrEnum):
    """The decision on a transaction. REVIEW means that a person has to decide.

    >>> Verdict("DECLINE") is Verdict.DECLINE, Verdict.DECLINE == "DECLINE"
    (True, True)
    """

    APPROVE = "APPROVE"
    """Let it pass."""
    DECLINE = "DECLINE"
    """Stop it."""
    REVIEW = "REVIEW"
    """A person has to decide."""

    @classmethod
    def of(cls, is_fraud: bool) -> Verdict:
        """DECLINE if it is fraud, else APPROVE.

        >>> str(Verdict.of(True))
        'DECLINE'
        """
        return cls.DECLINE if is_fraud else cls.APPROVE


def _plain_number(value: Any) -> Any:
    """Integers become floats, so that facts have one numeric type. Flags stay flags."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    try:
        return float(value)
    except OverflowError:
        raise ValueError("expected a number that a float can hold") from None


Fact = Annotated[FactValue, BeforeValidator(_plain_number)]


def _plain_text(value: Any) -> Any:
    plain = plain_value(value)
    return "" if plain is None else plain


def _days_since(name: str, start: date, end: datetime | None) -> dict[str, float]:
    """A date or time among the facts as the days between it and the time of the transaction."""
    if end is None:
        raise ValueError(f"fact '{name}' is a time: expected a number, a flag or text, or a transaction with a time")
    moment = start if isinstance(start, datetime) else datetime(start.year, start.month, start.day, tzinfo=UTC)
    return {f"days_since_{name}": (end - in_utc(moment)) / timedelta(days=1)}


def _wrong_fact(name: object, value: object) -> str:
    if not isinstance(name, str):
        return f"expected facts by name, got {given(name)} as a name"
    return f"fact '{shown_text(name)}': expected a number, a flag or text, got {given(value)}"


class Transaction(ShortRepr, BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """A transaction to decide: an id, perhaps a time, and named facts or free text or both.

    ``entities`` names who and what took part, by column. They are not facts: the history derives facts from them.
    NumPy's scalars are accepted, and None and NaN are facts that are not known. A fact that is a time becomes the days
    since then.

    >>> Transaction(id="t1", facts={"amount": 250, "vpn": True, "age": None}).facts
    {'amount': 250.0, 'vpn': True}
    """

    id: IdText = Field(min_length=1, max_length=200)
    """Yours. Outcomes refer to it."""
    time: OptionalTimestamp = None
    """When it happened. A time without a zone is read as UTC."""
    facts: dict[str, Fact] = Field(default_factory=dict)
    """Numbers, flags and categories by name. What is unknown is left out."""
    text: Annotated[str, BeforeValidator(_plain_text)] = Field(default="", max_length=MAX_TEXT)
    """Free text, from which facts are read."""
    entities: dict[str, IdText] = Field(default_factory=dict)
    """Who and what took part, by column."""

    @field_validator("facts", mode="before")
    @classmethod
    def _make_facts_plain(cls, facts: Any, info: ValidationInfo) -> Any:
        if not isinstance(facts, dict):
            return facts
        plain = plain_values(facts)
        for name in [name for name, value in plain.items() if isinstance(value, date)]:
            plain |= _days_since(name, plain.pop(name), info.data.get("time"))
        for name, value in plain.items():
            if type(name) is not str or not isinstance(value, bool | int | float | str):
                raise ValueError(_wrong_fact(name, value))
        return plain

    @field_validator("entities", mode="before")
    @classmethod
    def _make_entities_plain(cls, entities: Any) -> Any:
        return plain_values(entities) if isinstance(entities, dict) else entities

    @field_validator("entities")
    @classmethod
    def _check_entities(cls, entities: dict[str, str]) -> dict[str, str]:
        for column, value in entities.items():
            if not 1 <= len(value) <= MAX_WORD:
                raise ValueError(f"entity '{column}' must have 1 to {MAX_WORD:,} characters, got {len(value):,}")
        return entities

    @field_validator("facts")
    @classmethod
    def _check_facts(cls, facts: dict[str, FactValue]) -> dict[str, FactValue]:
        for name, value in facts.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"fact '{name}' must be a finite number, got {value}; leave out what is unknown")
            if isinstance(value, str) and len(value) > MAX_WORD:
                raise ValueError(f"fact '{name}' must have at most {MAX_WORD:,} characters, got {len(value):,}")
        return facts

    @model_validator(mode="after")
    def _check_content(self) -> Transaction:
        if not self.facts and not self.text.strip():
            raise ValueError("a transaction needs facts or text")
        return self

    @property
    def hidden_values(self) -> list[str]:
        """Values that its text is shown without: those of personal facts, and its entities."""
        return [*personal_values(self.facts), *self.entities.values()]

    @property
    def who(self) -> str:
        """Who and what took part, for people, with personal data masked; empty if that is not known.

        >>> Transaction(id="t1", facts={"merchant": "ACME"}, entities={"card": "c7", "email": "ann@acme.org"}).who
        'card c7, email [masked], merchant ACME'
        """
        named = {name: value for name in _WHO if isinstance(value := self.facts.get(name), str)}
        shown = Masker().masked_facts({**self.entities, **named})
        return ", ".join(visible(f"{name} {value}") for name, value in shown.items())

    def __repr_args__(self) -> ReprArgs:
        yield "id", Plain(quoted(self.id))
        if self.time is not None:
            yield "time", Plain(shown_value(self.time))
        if self.facts:
            yield "facts", Plain(shown_facts(self.facts))
        if self.text:
            yield "text", Plain(quoted(self.text, hidden=self.hidden_values))
        if self.entities:
            yield "entities", Plain(shown_facts(self.entities))

    @model_serializer(mode="wrap")
    def _serialize(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out empty entities: the ids of decisions are made from these bytes."""
        content: dict[str, Any] = write(self)
        if not self.entities:
            content.pop("entities", None)
        return content


class Case(ShortRepr, BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """A transaction with its label, and when that became known.

    It can also be read like a dict with the keys of the ACE system's examples:

    >>> case = Case(transaction=Transaction(id="t1", text="User attempts $20 purchase"), is_fraud=False)
    >>> case["query"], case["answer"]
    ('User attempts $20 purchase', 'APPROVE')
    """

    transaction: Transaction
    """What happened."""
    is_fraud: PlainFlag
    """The label."""
    known_at: OptionalTimestamp = None
    """When the label became known."""
    difficulty: str = ""
    """How hard the case is, if the data says so. Never a fact."""
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    """Anything else to keep beside it. Never a fact."""

    def __repr_args__(self) -> ReprArgs:
        yield "is_fraud", self.is_fraud
        if self.known_at is not None:
            yield "known_at", Plain(shown_value(self.known_at))
        yield "transaction", self.transaction

    @property
    def answer(self) -> Verdict:
        """The verdict that would have been right."""
        return Verdict.of(self.is_fraud)

    def __getitem__(self, key: str) -> Any:
        example = {"query": self.transaction.text, "answer": str(self.answer), "difficulty": self.difficulty}
        if key not in (*example, "metadata"):
            raise KeyError(f"a case has the keys {', '.join(example)} and metadata, not {shown_value(key)}")
        return dict(self.metadata) if key == "metadata" else example[key]


def from_text(text: str) -> Transaction:
    """A transaction with this text, and an id made from it.

    >>> from_text("$7 purchase").id
    'tx-4a24fdf7b296'
    """
    if not text.strip():
        raise InputError("expected a transaction, got an empty text")
    if len(text) > MAX_TEXT:
        raise InputError(f"the text has {len(text):,} characters, expected at most {MAX_TEXT:,}")
    return Transaction(id=id_from(text), text=text)


def id_from(content: str) -> str:
    """An id made from the content, for a transaction that has none."""
    try:
        return "tx-" + hashlib.sha256(content.encode()).hexdigest()[:12]
    except UnicodeEncodeError as problem:
        raise InputError(f"expected valid UTF-8, got something else at character {problem.start + 1}") from None
