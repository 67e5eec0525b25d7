"""From which probability on to decline, and which cases go to a person, as clients send and get it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import ReviewCosts, ReviewRule
from acefraud.rules.scorecard import GENERAL
from acefraud.service.bodies import RequiredWhy

_NOBODY = "nothing goes to a person, except by policies"


class CostsBody(BaseModel, extra="forbid"):
    """What each verdict costs, in the money of the amounts."""

    fraud_loss: float = Field(
        default=1.0, gt=0, allow_inf_nan=False, description="The share of its amount that a fraud loses."
    )
    false_decline: float = Field(ge=0, allow_inf_nan=False)
    review: float = Field(ge=0, allow_inf_nan=False)
    per_day: int | None = Field(default=None, ge=0, description="Reviews a day; null means no limit.")


class ReviewBody(BaseModel, extra="forbid"):
    """Which cases go to a person: a band of probabilities, or those where a review costs least. One of the two."""

    between: tuple[float, float] | None = Field(default=None, description="The lower probability first.")
    costs: CostsBody | None = None

    def rule(self) -> ReviewRule:
        """The rule. Raises ValueError if it is not one of the two."""
        costs = None if self.costs is None else ReviewCosts(**self.costs.model_dump())
        return ReviewRule(between=self.between, costs=costs)


class CalibrationBody(BaseModel):
    """How probabilities become verdicts at present."""

    threshold: float = Field(description="Transactions are declined from this probability of fraud on.")
    base_rate: float | None = Field(description="The share of fraud that was learnt from; null before anything was.")
    cases: int = Field(description="Labelled cases that it rests on; 0 for general knowledge alone.")
    review: ReviewBody | None = Field(description="Which cases go to a person; null for none, except by policies.")
    words: str

    @classmethod
    def of(cls, snapshot: Snapshot, node: str) -> CalibrationBody:
        """The calibration of a node."""
        learnt, review = snapshot.calibration(node), snapshot.reviews.get(node)
        threshold = (learnt or GENERAL).threshold
        sent = review.words if review else _NOBODY
        return cls(
            threshold=threshold,
            base_rate=None if learnt is None else learnt.base_rate,
            cases=0 if learnt is None else learnt.cases,
            review=None if review is None else ReviewBody.model_validate(review.model_dump()),
            words=f"declines from a fraud probability of {threshold:g}; {sent}",
        )


class ThresholdBody(BaseModel):
    """The threshold and the review rule to have from now on. What is not given stays as it is."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"threshold": 0.6, "review": {"between": [0.4, 0.7]}, "reason": "reviewers have time again"}]
        },
        extra="forbid",
    )

    threshold: float | None = Field(default=None, gt=0, lt=1, description="Stays as it is if it is not given, or null.")
    review: ReviewBody | None = Field(
        default=None,
        description="Stays as it is if it is not given; null sends nothing to a person, except by policies.",
    )
    reason: RequiredWhy

    @property
    def no_review(self) -> bool:
        """Whether nothing is to go to a person any more: the caller gave null."""
        return self.review is None and "review" in self.model_fields_set
