"""What turned out to be true, and what that says of a decision."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from acefraud.core.timestamps import Timestamp
from acefraud.core.transaction import Verdict


class OutcomeSource(StrEnum):
    """Who says so."""

    LABEL = "label"
    CHARGEBACK = "chargeback"
    ANALYST = "analyst"
    JUDGE = "judge"


class Outcome(BaseModel):
    """What turned out to be true of a transaction. Hearing one twice changes nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    transaction_id: str
    is_fraud: bool
    source: OutcomeSource = OutcomeSource.LABEL
    id: str = ""
    at: Timestamp | None = None

    @property
    def key(self) -> str:
        """What makes it the same outcome when it arrives again."""
        return self.id or f"{self.transaction_id}:{self.source}:{self.truth}:{self.at.isoformat() if self.at else ''}"

    @property
    def truth(self) -> Verdict:
        """The verdict that would have been right."""
        return Verdict.of(self.is_fraud)


class Ruling(StrEnum):
    """Whether a decision was right. A judge that failed says nothing, and that is its own value."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    UNJUDGED = "unjudged"


class Judgement(BaseModel):
    """A ruling with how sure the judge is and why."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ruling: Ruling
    confidence: float = Field(default=1.0, ge=0, le=1)
    reason: str = ""

    @property
    def is_correct(self) -> bool | None:
        """True, False, or None where it was not judged."""
        return None if self.ruling is Ruling.UNJUDGED else self.ruling is Ruling.CORRECT
