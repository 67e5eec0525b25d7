"""What clients send and get, with examples."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, Field, Tag

from acefraud.core.decision import Decision, Reason
from acefraud.core.events import DecisionMade, Event
from acefraud.core.outcome import MAX_AUTHOR, MAX_DETAIL, MAX_DETAILS, MAX_NOTE, Outcome, OutcomeSource
from acefraud.core.review_rule import DecidingRule
from acefraud.core.transaction import MAX_TEXT, Verdict
from acefraud.learning.familiarity import CheckedInput, unfamiliar_remarks
from acefraud.service.masking import RuleWords
from acefraud.service.strict_bodies import PrivateBody, StrictBody, examples

T = TypeVar("T")
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


def _rounded(share: float) -> float:
    """Without what is only left over from computing, such as 2.8e-17 in place of 0."""
    return round(share, 12)


Share = Annotated[float, AfterValidator(_rounded)]
"""A share that was computed."""


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


class ReasonBody(BaseModel):
    """What a decision rests on."""

    bullet_id: str | None = Field(description="The bullet; null for general knowledge and for what a model said.")
    content: str
    weight: float | None = Field(description="Log-odds that it adds; null if it is not a number.")

    @classmethod
    def of(cls, reason: Reason, words: RuleWords) -> ReasonBody:
        """A reason of a decision as a caller may see it."""
        content = words.shown(reason.text, reason.bullet_id)
        return cls.model_construct(bullet_id=reason.bullet_id, content=content, weight=reason.contribution)


class UnfamiliarFactBody(BaseModel):
    """A fact or an entity that the playbook does not know."""

    name: str
    nearest: str | None = Field(description="The known name that is written most like it; null if none is.")


class DecisionBody(BaseModel):
    """A decision on a transaction."""

    model_config = examples(
        {
            "decision_id": "d-0f3c5e7a9b1d2f40",
            "transaction_id": "order-17",
            "verdict": "DECLINE",
            "probability": 0.91,
            "reasons": [{"bullet_id": "b-1f2e3d4c", "content": "VPN and a new device", "weight": 1.3}],
            "playbook_revision": 120,
            "time": "2026-03-01T02:14:01Z",
            "familiarity": 0.85,
            "unfamiliar": False,
            "unfamiliar_facts": [],
            "warnings": [],
        }
    )

    decision_id: str
    transaction_id: str
    verdict: Verdict
    probability: float = Field(ge=0, le=1, description="The probability of fraud.")
    reasons: list[ReasonBody]
    playbook_revision: int
    time: datetime = Field(description="When it was decided.")
    familiarity: float | None = Field(
        default=None, description="The share of what the playbook relies on that is known; null if nothing was learnt."
    )
    unfamiliar: bool = Field(
        default=False, description="Whether none of the facts that the playbook relies on is known."
    )
    unfamiliar_facts: list[UnfamiliarFactBody] = Field(
        default_factory=list, description="The facts and entities that the playbook does not know."
    )
    warnings: list[str] = Field(default_factory=list, description="What is unusual about the request, in words.")

    @classmethod
    def of(
        cls, decision: Decision, at: datetime, words: RuleWords, checked: CheckedInput | None = None
    ) -> DecisionBody:
        """A decision that was made at a time, as a caller may see it, with what is unusual about the request."""
        found = checked.remarks if checked else ()
        return cls.model_construct(
            decision_id=decision.id,
            transaction_id=decision.transaction.id,
            verdict=decision.verdict,
            probability=decision.probability,
            reasons=[ReasonBody.of(reason, words) for reason in decision.reasons],
            playbook_revision=decision.revision,
            time=at,
            familiarity=None if decision.familiarity is None else round(decision.familiarity, 4),
            unfamiliar=decision.unfamiliar,
            unfamiliar_facts=[UnfamiliarFactBody(name=one.name, nearest=one.nearest) for one in found if one.name],
            warnings=[str(one) for one in (*found, *unfamiliar_remarks([decision.facts], [decision.verdict]))],
        )


class StageBody(BaseModel):
    """How many bullets were left after a stage of the selection."""

    stage: str
    left: int


class ExplainedDecisionBody(DecisionBody):
    """A decision with everything that explains it."""

    threshold: float = Field(description="The probability from which on transactions are declined.")
    base: float = Field(description="Log-odds before any reason is added.")
    facts: dict[str, bool | float | str] = Field(description="All facts used, given or read; sensitive ones masked.")
    unread: list[str] = Field(description="Parts of the text in which no fact was found.")
    stages: list[StageBody]
    scores: list[dict[str, Any]] = Field(description="The scores of the selected bullets.")
    model: str = Field(description="What decided: a language model by name, or the embedded engine.")
    probability_from: str
    fallback: str = Field(description="Why the configured model did not decide; empty if it did.")
    explained: bool = Field(description="Whether stages and reasons could be computed again on that revision.")
    outcome: Literal["fraud", "legitimate"] | None = Field(
        description="What it turned out to be, as known so far. A judge's opinion is not an outcome."
    )
    outcome_source: OutcomeSource | None = Field(description="Who said so.")
    outcome_time: datetime | None = Field(description="When it became known; null if the report did not say.")
    outcome_author: str = Field(default="", description="The person or system that found out, masked.")
    outcome_note: str = Field(default="", description="What they noted about it, masked.")
    outcome_details: dict[str, str] = Field(default={}, description="What else the report said, masked.")
    correct: bool | None = Field(description="Whether the verdict was right; null if it was not judged.")
    decided_by: DecidingRule = Field(description="Which rule gave the verdict, and its figures.")


class BatchBody(StrictBody):
    """Transactions to decide together."""

    model_config = examples({"transactions": [ORDER]})

    transactions: list[TransactionBody] = Field(min_length=1, max_length=1_000)


class BatchAnswerBody(BaseModel):
    """The decisions on a batch, in the same order."""

    decisions: list[DecisionBody]


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


class ReceiptBody(BaseModel):
    """That an outcome is kept, and will be learnt from."""

    id: str
    status: Literal["received", "known"] = Field(description="`known` if the same outcome was received before.")


class ReceiptsBody(BaseModel):
    """A receipt for each outcome, in the same order."""

    outcomes: list[ReceiptBody]
    warnings: list[str] = Field(default=[], description="What is odd about them; they are kept all the same.")


class ListedDecisionBody(BaseModel):
    """A decision in a list: what was decided, without the facts that it rests on."""

    decision_id: str
    transaction_id: str
    verdict: Verdict
    probability: float
    playbook_revision: int
    time: datetime

    @classmethod
    def of(cls, event: Event) -> ListedDecisionBody:
        """A recorded decision."""
        assert isinstance(event.payload, DecisionMade)
        record = event.payload.record
        return cls(
            decision_id=record.id,
            transaction_id=record.transaction_id,
            verdict=Verdict(record.verdict),
            probability=record.probability,
            playbook_revision=record.revision,
            time=event.at,
        )


class Page(BaseModel, Generic[T]):
    """A part of a list."""

    items: list[T]
    next: str | None = Field(description="Pass it as `cursor` for the next part; null if this is the last.")
