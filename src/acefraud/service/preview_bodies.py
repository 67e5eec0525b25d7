"""What a change would do to the past, as clients get it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from acefraud.core.transaction import Verdict
from acefraud.learning.preview import CASES, DECISIONS, SHOWN, Preview
from acefraud.service.bodies import Share

BOUNDS = f"It looks at the latest {CASES:,} labelled cases and the latest {DECISIONS:,} decisions at most."
"""For the descriptions of routes that preview something."""


class FlipBody(BaseModel):
    """A transaction that would be decided differently."""

    transaction_id: str
    before: Verdict
    after: Verdict
    probability_before: float
    probability_after: float
    amount: float | None
    is_fraud: bool | None = Field(description="null if the truth is not known.")


class MoneyBody(BaseModel):
    """Amounts of labelled cases that would be declined, or no longer declined."""

    declined_rightly: float
    declined_wrongly: float
    released_rightly: float
    released_wrongly: float


class PreviewBody(BaseModel):
    """What a change would do to labelled cases and past decisions. Each is decided twice, with the same draws."""

    cases: int = Field(description=f"Labelled cases that were looked at: the latest {CASES:,} at most.")
    decisions: int = Field(description=f"Decisions that were looked at: the latest {DECISIONS:,} at most.")
    fires_on_cases: int
    frauds_among_them: int
    fraud_share: float | None
    low: Share
    high: Share
    unknown_on_cases: int = Field(description="Labelled cases on which an unknown fact leaves the rule open.")
    fires_on_decisions: int
    flips: int = Field(description="How many cases and decisions would be decided differently.")
    sample: list[FlipBody] = Field(description=f"The first {SHOWN} of them.")
    money: MoneyBody
    overlaps: dict[str, float] = Field(
        description="The share of what it fires on that other bullets fire on too, the largest first."
    )
    contradicts: list[str]

    @classmethod
    def of(cls, preview: Preview) -> PreviewBody:
        """A preview."""
        return cls.model_validate(preview.as_json())
