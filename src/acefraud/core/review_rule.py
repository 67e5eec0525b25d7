"""When a case goes to a person: in a band of probabilities, or where a review costs least."""

from __future__ import annotations

from pydantic import BaseModel, Field, model_validator

from acefraud.core.transaction import Verdict


class ReviewCosts(BaseModel, frozen=True, extra="forbid"):
    """What each verdict costs, in the money of the amounts."""

    fraud_loss: float = Field(default=1.0, gt=0)
    """The share of its amount that an approved fraud loses."""
    false_decline: float = Field(ge=0)
    """The cost of declining an honest case."""
    review: float = Field(ge=0)
    """The cost of one review."""
    per_day: int | None = Field(default=None, ge=0)
    """How many reviews a day there may be; None means no limit."""


class ReviewRule(BaseModel, frozen=True, extra="forbid"):
    """Which cases go to a person: those in a band of probabilities, or those where a review costs least.

    >>> ReviewRule(between=(0.3, 0.7)).verdict(0.4, 0.5, amount=None)
    <Verdict.REVIEW: 'REVIEW'>
    >>> costs = ReviewCosts(false_decline=20, review=5)
    >>> [str(ReviewRule(costs=costs).verdict(p, 0.5, amount=100.0)) for p in (0.01, 0.3, 0.9)]
    ['APPROVE', 'REVIEW', 'DECLINE']
    """

    between: tuple[float, float] | None = None
    costs: ReviewCosts | None = None

    @model_validator(mode="after")
    def _check(self) -> ReviewRule:
        if (self.between is None) == (self.costs is None):
            raise ValueError("a review rule has either a band of probabilities or costs")
        if self.between is not None and not 0 <= self.between[0] < self.between[1] <= 1:
            raise ValueError(f"expected two probabilities, the lower one first, got {self.between}")
        return self

    @property
    def is_limited(self) -> bool:
        """Whether a day has only so many reviews."""
        return self.costs is not None and self.costs.per_day is not None

    def verdict(self, probability: float, threshold: float, *, amount: float | None, reviews_today: int = 0) -> Verdict:
        """The verdict on a case. Where the rule says nothing, the threshold decides."""
        usual = Verdict.of(probability >= threshold)
        if self.between is not None:
            low, high = self.between
            return Verdict.REVIEW if low <= probability < high else usual
        if self.costs is None or amount is None:
            return usual
        return self._cheapest(self.costs, probability, amount, reviews_today)

    @staticmethod
    def _cheapest(costs: ReviewCosts, probability: float, amount: float, reviews_today: int) -> Verdict:
        """The verdict with the least expected cost; of equal ones, the one that is milder for the customer."""
        expected = {
            Verdict.APPROVE: probability * costs.fraud_loss * amount,
            Verdict.REVIEW: costs.review,
            Verdict.DECLINE: (1 - probability) * costs.false_decline,
        }
        if costs.per_day is not None and reviews_today >= costs.per_day:
            del expected[Verdict.REVIEW]
        return min(expected, key=lambda verdict: expected[verdict])

    @property
    def words(self) -> str:
        """The rule in words."""
        if self.between is not None:
            return f"review from a fraud probability of {self.between[0]:g} up to {self.between[1]:g}"
        assert self.costs is not None
        limit = "" if self.costs.per_day is None else f", at most {self.costs.per_day:,} a day"
        return (
            f"the verdict that costs least: an approved fraud {self.costs.fraud_loss:g} of its amount, a false decline "
            f"{self.costs.false_decline:g}, a review {self.costs.review:g}{limit}"
        )
