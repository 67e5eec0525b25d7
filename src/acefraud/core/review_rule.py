"""What decides beside the threshold: a band of probabilities that goes to a person, or what each verdict costs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from acefraud.core.context_facts import REVIEW_CUT, REVIEWS_TODAY
from acefraud.core.transaction import FactValue, Verdict
from acefraud.errors import InputError
from acefraud.support.validation import first_fault

COSTS = "false_decline=15,missed_fraud=200,review=5,per_day=50"
"""Costs as they are said; all but the first may be left out."""
_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*(?:\+\s*(\d+(?:\.\d+)?)\s*)?")


class ReviewCosts(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """What each verdict costs, in the money of the amounts. The cheapest verdict is chosen.

    A missed fraud costs a fixed sum, a share of its amount, or both. If neither is given, it costs its amount.

    >>> ReviewCosts.of("false_decline=15,missed_fraud=200").review is None
    True
    >>> mixed = ReviewCosts(false_decline=15, missed_fraud="80%+25", review=5)
    >>> mixed.fraud_loss, mixed.missed_fraud
    (0.8, 25.0)
    """

    false_decline: float = Field(ge=0, allow_inf_nan=False)
    """The cost of declining an honest case."""
    missed_fraud: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """What an approved fraud loses whatever its amount. As text, "80%" is a share of the amount, "80%+25" both."""
    fraud_loss: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """The share of its amount that an approved fraud loses: 0 if only `missed_fraud` is given, 1 if neither is."""
    review: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The cost of one review; None means that nothing is reviewed."""
    per_day: int | None = Field(default=None, ge=0)
    """How many reviews a day there may be; None means no limit."""

    @classmethod
    def of(cls, said: str) -> ReviewCosts:
        """Costs from text such as false_decline=15,missed_fraud=200,review=5,per_day=50."""
        parts = [part.partition("=") for part in said.split(",") if part.strip()]
        given = {name.strip(): value.strip() for name, _, value in parts}
        wrong = "a cost is there twice" if len(given) < len(parts) else ""
        try:
            costs = cls.model_validate(given)
        except ValidationError as problem:
            wrong = first_fault(problem, cls).message
        if wrong:
            raise InputError(f"expected costs such as {COSTS}; {wrong}", field="costs")
        return costs

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: Any) -> Any:
        """A missed fraud that is said as text, and the share that goes without saying."""
        if not isinstance(given, dict) or given.get("missed_fraud") is None:
            return given
        read = {"fraud_loss": 0.0, **given}
        if isinstance(said := given["missed_fraud"], str) and "%" in said:
            found = _SHARE.fullmatch(said)
            if found is None or float(found[1]) > 100 or "fraud_loss" in given:
                wanted = "200, 80% (of the amount, at most 100%, and then without fraud_loss) or 80%+25"
                raise ValueError(f"missed_fraud: expected something like {wanted}")
            read |= {"fraud_loss": float(found[1]) / 100, "missed_fraud": float(found[2] or 0)}
        return read

    @model_validator(mode="after")
    def _check(self) -> ReviewCosts:
        if self.per_day is not None and self.review is None:
            raise ValueError("per_day: expected the cost of a review too, such as review=5")
        if self.fraud_loss == self.missed_fraud == 0:
            raise ValueError("missed_fraud: expected a cost above 0, or every case would be approved")
        return self

    @property
    def threshold(self) -> float | None:
        """The probability from which declining is cheaper if only the fixed sums count; None if there is none."""
        both = self.false_decline + self.missed_fraud
        return self.false_decline / both if self.missed_fraud and self.false_decline else None

    def expected(self, probability: float, amount: float | None) -> tuple[float, float] | None:
        """The expected cost of approving and of declining; None if it takes an amount that is not known."""
        if amount is None and not self.missed_fraud:
            return None
        loss = self.missed_fraud + self.fraud_loss * max(amount or 0.0, 0.0)
        return probability * loss, (1 - probability) * self.false_decline

    def saving(self, probability: float, amount: float | None) -> float | None:
        """What a review is expected to save; None where it is not the cheapest verdict."""
        expected = self.expected(probability, amount)
        if expected is None or self.review is None or expected[0] <= self.review or expected[1] < self.review:
            return None
        return min(expected) - self.review

    @property
    def words(self) -> str:
        """The costs in words."""
        fixed, share = f"{self.missed_fraud:g}", f"{100 * self.fraud_loss:g}% of its amount"
        loss = share if not self.missed_fraud else f"{fixed} and {share}" if self.fraud_loss else fixed
        limit = "" if self.per_day is None else f", at most {self.per_day:,} a day"
        review = "no reviews" if self.review is None else f"a review {self.review:g}{limit}"
        return f"a missed fraud {loss}, a false decline {self.false_decline:g}, {review}"


class DecidingRule(BaseModel, frozen=True):
    """Which rule decided a case, and why so."""

    rule: Literal["threshold", "band", "costs", "capacity", "unfamiliar", "policy", "model"]
    """`capacity` if costs asked for a review, but the day's reviews go to other cases; `unfamiliar` if a person decides
    because nothing relevant was known."""
    words: str
    expected_costs: dict[Verdict, float] | None = None
    """What each verdict was expected to cost, if costs decided."""
    saving: float | None = None
    """What a review was expected to save, if it was the cheapest verdict."""
    cut: float | None = None
    """What a review had to save at that moment, if a day has only so many."""

    @classmethod
    def by_threshold(cls, threshold: float, why: str = "") -> DecidingRule:
        """That the threshold decided."""
        return cls(rule="threshold", words=f"a fraud probability of {threshold:.3g} or more is declined{why}")


class ReviewRule(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Which cases go to a person: those in a band of probabilities, or those where a review costs least.

    >>> ReviewRule(between=(0.3, 0.7)).verdict(0.4, 0.5, {})
    <Verdict.REVIEW: 'REVIEW'>
    >>> rule = ReviewRule.of("false_decline=20,missed_fraud=100%,review=5")
    >>> [str(rule.verdict(p, 0.5, {"amount": 100.0})) for p in (0.01, 0.3, 0.9)]
    ['APPROVE', 'REVIEW', 'DECLINE']
    """

    between: tuple[float, float] | None = None
    """The band: from the lower probability up to the higher one."""
    costs: ReviewCosts | None = None
    """What each verdict costs."""

    @classmethod
    def of(cls, said: SaidReview) -> ReviewRule:
        """A rule, a band, or costs as an object or as text. Raises InputError; only old ledgers have shares above 1."""
        costs = ReviewCosts.of(said) if isinstance(said, str) else said
        given = {"costs" if isinstance(costs, ReviewCosts) else "between": costs}
        try:
            rule = costs if isinstance(costs, ReviewRule) else cls.model_validate(given)
        except ValidationError as problem:
            raise first_fault(problem, cls) from None
        if rule.costs is not None and rule.costs.fraud_loss > 1:
            raise InputError("fraud_loss: expected a share of the amount, at most 1", field="costs")
        return rule

    @model_validator(mode="after")
    def _check(self) -> ReviewRule:
        if (self.between is None) == (self.costs is None):
            raise ValueError("expected a band of two probabilities, the lower one first, or costs, and not both")
        if self.between is not None and not 0 <= self.between[0] < self.between[1] <= 1:
            raise ValueError(f"expected two probabilities, the lower one first, got {self.between}")
        return self

    @property
    def sends_to_people(self) -> bool:
        """Whether any case can go to a person; costs without that of a review send none."""
        return self.costs is None or self.costs.review is not None

    def verdict(self, probability: float, threshold: float, facts: Mapping[str, FactValue]) -> Verdict:
        """The verdict on a case with these facts, among them what was left of the day's reviews."""
        if self.between is not None and self.between[0] <= probability < self.between[1]:
            return Verdict.REVIEW
        amount = number_in(facts, "amount")
        expected = None if self.costs is None else self.costs.expected(probability, amount)
        if self.costs is None or expected is None:
            return Verdict.of(probability >= threshold)
        saving = self.costs.saving(probability, amount)
        reviewed = saving is not None and not self._why_not(saving, facts)
        return Verdict.REVIEW if reviewed else Verdict.of(expected[1] < expected[0])

    def _why_not(self, saving: float, facts: Mapping[str, FactValue]) -> str:
        """Why a case is not reviewed although that would be cheapest; empty if it is."""
        per_day = None if self.costs is None else self.costs.per_day
        if per_day is None:
            return ""
        if (number_in(facts, REVIEWS_TODAY) or 0.0) >= per_day:
            return f"today's {per_day:,} reviews are used up"
        cut = number_in(facts, REVIEW_CUT) or 0.0
        return f"today's {per_day:,} reviews go to cases that save at least {cut:.2f}" if saving < cut else ""

    def ruling(self, probability: float, threshold: float, facts: Mapping[str, FactValue]) -> DecidingRule:
        """Which rule gives the verdict, and the figures behind it."""
        if self.costs is None:
            by_band = self.verdict(probability, threshold, facts) is Verdict.REVIEW
            return DecidingRule(rule="band", words=self.words) if by_band else DecidingRule.by_threshold(threshold)
        amount, review = number_in(facts, "amount"), self.costs.review
        expected, saving = self.costs.expected(probability, amount), self.costs.saving(probability, amount)
        if expected is None:
            return DecidingRule.by_threshold(threshold, ", as costs are a share of the amount, which is not known")
        named = (Verdict.APPROVE, expected[0]), (Verdict.DECLINE, expected[1]), (Verdict.REVIEW, review)
        money = {verdict: cost for verdict, cost in named if cost is not None}
        words = "expected costs: " + ", ".join(f"{verdict} {cost:.2f}" for verdict, cost in money.items())
        if amount is None and self.costs.fraud_loss:
            words += "; the amount is not known, so only the fixed part of a missed fraud counts"
        if why_not := "" if saving is None else self._why_not(saving, facts):
            words += f"; a review would have saved {saving:.2f}, but {why_not}"
        by, cut = "capacity" if why_not else "costs", number_in(facts, REVIEW_CUT)
        return DecidingRule.model_validate(
            {"rule": by, "words": words, "expected_costs": money, "saving": saving, "cut": cut}
        )

    @property
    def words(self) -> str:
        """The rule in words."""
        if self.between is not None:
            return f"review from a fraud probability of {self.between[0]:g} up to {self.between[1]:g}"
        assert self.costs is not None
        return f"the verdict that costs least: {self.costs.words}"


SaidReview = ReviewRule | ReviewCosts | tuple[float, float] | str
"""What `ReviewRule.of` reads."""


def in_words(threshold: float, rule: ReviewRule | None) -> str:
    """How probabilities become verdicts, in words."""
    declines = f"declines from a fraud probability of {threshold:g}"
    if rule is None or rule.costs is None:
        return f"{declines}; {rule.words if rule else 'nothing goes to a person, except by policies'}"
    return rule.words if rule.costs.missed_fraud else f"{rule.words}; {declines} where the amount is not known"


def number_in(facts: Mapping[str, FactValue], name: str) -> float | None:
    """A fact that is a number; None if it is not known, or no number."""
    value = facts.get(name)
    return value if isinstance(value, float) else None
