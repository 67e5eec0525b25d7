"""A transaction, its facts, and a labelled case."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from acefraud.core.timestamps import Timestamp

FactValue = bool | float | str
"""A fact is a flag, a number or a category. An unknown fact is absent, never a placeholder."""

MAX_TEXT = 100_000
"""The longest free text of a transaction, in characters."""

MAX_WORD = 1_000
"""The longest category, in characters. Anything longer is a text in the wrong field."""


class Verdict(StrEnum):
    """The decision on a transaction. REVIEW means that a person has to decide.

    >>> Verdict.DECLINE == "DECLINE"
    True
    """

    APPROVE = "APPROVE"
    DECLINE = "DECLINE"
    REVIEW = "REVIEW"

    @classmethod
    def of(cls, is_fraud: bool) -> Verdict:
        """DECLINE if it is fraud, else APPROVE."""
        return cls.DECLINE if is_fraud else cls.APPROVE


def _plain_number(value: Any) -> Any:
    """Integers become floats, so that facts have one numeric type. Flags stay flags."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Fact = Annotated[FactValue, BeforeValidator(_plain_number)]


class Transaction(BaseModel, frozen=True, extra="forbid"):
    """A transaction to decide: an id, perhaps a time, and named facts or free text or both.

    ``entities`` names who and what took part, by column. They are not facts: the history derives facts from them.

    >>> Transaction(id="t1", facts={"amount": 250, "vpn": True}).facts
    {'amount': 250.0, 'vpn': True}
    """

    id: str = Field(min_length=1, max_length=200)
    time: Timestamp | None = None
    facts: dict[str, Fact] = Field(default_factory=dict)
    text: str = Field(default="", max_length=MAX_TEXT)
    entities: dict[str, str] = Field(default_factory=dict)

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

    @model_serializer(mode="wrap")
    def _serialize(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out empty entities: the ids of decisions are made from these bytes."""
        content: dict[str, Any] = write(self)
        if not self.entities:
            content.pop("entities", None)
        return content


class Case(BaseModel, frozen=True, extra="forbid"):
    """A transaction with its label, and when that became known.

    It can also be read like a dict with the keys of the ACE system's examples:

    >>> case = Case(transaction=Transaction(id="t1", text="User attempts $20 purchase"), is_fraud=False)
    >>> case["query"], case["answer"]
    ('User attempts $20 purchase', 'APPROVE')
    """

    transaction: Transaction
    is_fraud: bool
    known_at: Timestamp | None = None
    difficulty: str = ""
    metadata: Mapping[str, Any] = Field(default_factory=dict)

    @property
    def answer(self) -> Verdict:
        """The verdict that would have been right."""
        return Verdict.of(self.is_fraud)

    def __getitem__(self, key: str) -> Any:
        example = {"query": self.transaction.text, "answer": str(self.answer), "difficulty": self.difficulty}
        return dict(self.metadata) if key == "metadata" else example[key]
