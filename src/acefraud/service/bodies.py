"""What callers send about transactions and outcomes, and what all bodies have in common."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, Field, Tag

from acefraud.core.outcome import MAX_AUTHOR, MAX_DETAIL, MAX_DETAILS, MAX_NOTE, Outcome, OutcomeSource
from acefraud.core.transaction import MAX_TEXT, Verdict
from acefraud.wire.answer import examples

MAX_WHY = 1_000
MOST = sys.float_info.max
"""The largest number that a fact may have."""
ORDER: dict[str, Any] = {
    "id": "order-17",
    "time": "2026-03-01T02:14:00Z",
    "facts": {"amount": 2500, "vpn": True, "account_age_days": 3, "country": "FR"},
    "text": "",
}


def storable(text: str) -> str:
    """Text that every store can keep and every log can show; anything else is refused."""
    if any(ord(char) < 32 or 0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise ValueError("expected text without control characters")
    return text


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("expected a reason, got only spaces")
    return text


def _in_utc(time: datetime) -> datetime:
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("expected a time between the years 1 and 9999 in UTC") from None


def _in_capitals(verdict: object) -> object:
    return verdict.upper() if isinstance(verdict, str) else verdict


AnyCaseVerdict = Annotated[Verdict, BeforeValidator(_in_capitals)]
"""A verdict of the caller's, also in lower case."""
Time = Annotated[datetime, AfterValidator(_in_utc)]
"""A time of the caller's. One without a zone is read as UTC."""
Id = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(storable)]
"""An id of the caller's."""
Why = Annotated[str, Field(max_length=MAX_WHY), AfterValidator(storable)]
"""Why somebody changes something, if they say so."""
Note = Annotated[str, AfterValidator(storable)]
"""What somebody wrote."""
Detail = Annotated[str, Field(max_length=MAX_DETAIL), AfterValidator(storable)]
"""The name or the text of a detail."""
RequiredWhy = Annotated[str, Field(min_length=1, max_length=MAX_WHY), AfterValidator(storable), AfterValidator(_said)]
"""Why somebody changes something. The ledger keeps it beside their name."""


def _one_fact(value: object) -> object:
    """A fact, so that one of another kind is one fault, and not one for each kind that it might have been."""
    if not isinstance(value, bool | int | float | str | None):
        raise ValueError("expected a number, a text or true/false")
    if isinstance(value, int | float) and not -MOST <= value <= MOST:
        raise ValueError("expected a finite number; leave out what is unknown")
    return value


FactBody = Annotated[bool | float | str | None, BeforeValidator(_one_fact)]
"""The value of a fact; null is not known."""


class StrictBody(BaseModel, extra="forbid"):
    """A body that refuses fields it does not have."""


class PrivateBody(StrictBody, hide_input_in_errors=True):
    """A body whose values may be personal: errors do not repeat them."""


class TransactionBody(PrivateBody):
    """A transaction to decide: facts or text or both."""

    model_config = examples(ORDER)

    id: Id = Field(description="Yours. Outcomes refer to it, and a repeat gets the first answer.")
    time: Time | None = Field(
        default=None, description="When it happened; now if you leave it out. Without a zone it is read as UTC."
    )
    facts: dict[str, FactBody] = Field(
        default_factory=dict, max_length=1_000, description="Numbers, flags and categories by name; leave out the rest."
    )
    text: str = Field(default="", max_length=MAX_TEXT, description="Free text, from which facts are read.")
    entities: dict[str, Id] = Field(
        default_factory=dict,
        max_length=100,
        description="Who and what took part, by the columns that the mapping names as entities. They are not facts.",
    )

    def record(self) -> dict[str, Any]:
        """The transaction as a record, to be read with the mapping of the playbook."""
        return {name: value for name, value in vars(self).items() if value not in (None, "", {})}


class BatchBody(StrictBody):
    """Transactions to decide together."""

    model_config = examples({"transactions": [ORDER]})

    transactions: list[TransactionBody] = Field(min_length=1, max_length=1_000)


class OutcomeBody(PrivateBody):
    """What a transaction turned out to be."""

    model_config = examples(
        {
            "id": "cb-881",
            "transaction_id": "order-17",
            "label": "fraud",
            "source": "chargeback",
            "time": "2026-04-02T00:00:00Z",
        }
    )

    id: Id = Field(description="Yours. Two outcomes with one id are one outcome.")
    transaction_id: Id
    label: Literal["fraud", "legitimate"]
    source: Literal["label", "chargeback", "analyst"] = "label"
    time: Time | None = Field(default=None, description="When it became known.")
    note: Note = Field(default="", max_length=MAX_NOTE, description="What they noted about it.")
    author: Note = Field(default="", max_length=MAX_AUTHOR, description="The person or system that found out.")
    details: dict[Detail, Detail] = Field(
        default_factory=dict, max_length=MAX_DETAILS, description="What else the report says. Never a fact."
    )

    def outcome(self) -> Outcome:
        """The outcome."""
        return Outcome(
            transaction_id=self.transaction_id,
            is_fraud=self.label == "fraud",
            source=OutcomeSource(self.source),
            id=self.id,
            at=self.time,
            note=self.note,
            author=self.author,
            details=self.details,
        )


class OutcomesBody(StrictBody):
    """Many outcomes, accepted all or none."""

    outcomes: list[OutcomeBody] = Field(min_length=1, max_length=5_000)


def _one_or_many(body: object) -> str | None:
    """Which of the two a body is meant to be, so that only the faults of that one are told."""
    if not isinstance(body, dict):
        return None
    return "many" if "outcomes" in body else "one"


OneOrManyOutcomes = Annotated[
    Annotated[OutcomeBody, Tag("one")] | Annotated[OutcomesBody, Tag("many")],
    Discriminator(
        _one_or_many,
        custom_error_type="one_or_many_outcomes",
        custom_error_message='expected a JSON object: an outcome, or `{"outcomes": [...]}` with many',
    ),
]
"""An outcome, or many."""
