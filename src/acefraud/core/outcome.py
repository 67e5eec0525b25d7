"""What a transaction turned out to be, and whether its decision was right."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, Field

from acefraud.core.plain_values import IdText, PlainFlag
from acefraud.core.timestamps import OptionalTimestamp
from acefraud.core.transaction import Verdict
from acefraud.display.short_repr import ShortRepr


class OutcomeSource(StrEnum):
    """Where an outcome comes from."""

    LABEL = "label"
    CHARGEBACK = "chargeback"
    ANALYST = "analyst"
    JUDGE = "judge"


class Outcome(ShortRepr, BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """Whether a transaction turned out to be fraud. Reporting one twice changes nothing.

    >>> outcome = Outcome(transaction_id="t1", is_fraud=True, source="chargeback")
    >>> str(outcome.truth), outcome.key
    ('DECLINE', 't1:chargeback:DECLINE:')
    """

    transaction_id: IdText
    """The transaction it is about."""
    is_fraud: PlainFlag
    """The truth."""
    source: OutcomeSource = OutcomeSource.LABEL
    """Who says so: `label`, `chargeback`, `analyst` or `judge`."""
    id: IdText = ""
    """Yours, if outcomes have ids: two with the same id are one."""
    at: OptionalTimestamp = None
    """When it became known."""

    @property
    def key(self) -> str:
        """Two outcomes with the same key are the same outcome."""
        return self.id or f"{self.transaction_id}:{self.source}:{self.truth}:{self.at.isoformat() if self.at else ''}"

    @property
    def is_opinion(self) -> bool:
        """Whether it comes from a judge who does not know the truth. Nothing is measured by it or learnt from it."""
        return self.source is OutcomeSource.JUDGE

    @property
    def truth(self) -> Verdict:
        """The verdict that would have been right."""
        return Verdict.of(self.is_fraud)


def is_known(outcome: Outcome, before: Sequence[Outcome]) -> bool:
    """Whether an outcome was reported before; without id and time, whether the latest of its transaction says the same.

    >>> fraud, legitimate = (Outcome(transaction_id="t1", is_fraud=truth) for truth in (True, False))
    >>> is_known(fraud, [legitimate, fraud]), is_known(fraud, [fraud, legitimate])
    (True, False)
    """
    if not before:
        return False
    if outcome.id or outcome.at:
        return any(one.key == outcome.key for one in before)
    return (before[-1].is_fraud, before[-1].source) == (outcome.is_fraud, outcome.source)


class Ruling(StrEnum):
    """Whether a decision was right. UNJUDGED includes a judge that failed."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    UNJUDGED = "unjudged"


class Judgement(ShortRepr, BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """A ruling with its confidence and reason.

    >>> Judgement(ruling="incorrect", reason="decided APPROVE, truth is DECLINE").is_correct
    False
    >>> Judgement(ruling="unjudged", confidence=0.0).is_correct is None
    True
    """

    ruling: Ruling
    """`correct`, `incorrect` or `unjudged`."""
    confidence: float = Field(default=1.0, ge=0, le=1)
    """How sure the judge is; 0 if it did not judge."""
    reason: str = ""
    """Why, in words."""

    @property
    def is_correct(self) -> bool | None:
        """True, False, or None if it was not judged."""
        return None if self.ruling is Ruling.UNJUDGED else self.ruling is Ruling.CORRECT
