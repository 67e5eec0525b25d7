"""How the weights of bullets add up to a probability."""

from __future__ import annotations

import math

from pydantic import BaseModel, Field


class RecentLevel(BaseModel, frozen=True, extra="forbid"):
    """How far the latest outcomes have moved the level of fraud away from a calibration."""

    shift: float
    """What is added to the log-odds of every case."""
    cases: int
    """The latest outcomes that the words speak of; the shift rests on more."""
    frauds: int
    expected: float
    """The frauds among them that the calibration alone would expect."""

    @property
    def in_words(self) -> str:
        """The shift as a reason of a decision.

        >>> RecentLevel(shift=3.1, cases=100, frauds=38, expected=3.6).in_words
        'fraud is more common lately: 38 of the latest 100 outcomes, where 4 would be usual'
        """
        more = "more" if self.shift > 0 else "less"
        usual = f"{self.expected:.0f}" if self.expected >= 0.5 else "none"
        return (
            f"fraud is {more} common lately: {self.frauds:,} of the latest {self.cases:,} outcomes, "
            f"where {usual} would be usual"
        )


class Calibration(BaseModel, frozen=True, extra="forbid"):
    """Log-odds of fraud = level + knowledge_scale x scorecard + the weights of the bullets that fire."""

    intercept: float
    knowledge_scale: float = 1.0
    threshold: float = Field(default=0.5, gt=0, lt=1)
    base_rate: float = Field(default=0.5, ge=0, le=1)
    cases: int = 0
    """How many labelled cases it was fitted on; 0 for general knowledge alone."""
    most_bullets: int | None = Field(default=None, ge=1)
    """The limit on learnt bullets, if one was set."""
    points: dict[str, float] = Field(default_factory=dict)
    """The fitted points of the scorecard by line. A line that is not listed keeps its own."""
    recent: RecentLevel | None = None
    """What outcomes since then have shown, if the share of fraud has changed."""

    @property
    def level(self) -> float:
        """The intercept, moved as the latest outcomes ask."""
        return self.intercept if self.recent is None else self.intercept + self.recent.shift


class OddsScale(BaseModel, frozen=True, extra="forbid"):
    """Scales the odds of a model's verdict tokens: log-odds of fraud = level + slope x the model's log-odds."""

    level: float
    slope: float
    cases: int
    """How many labelled cases it was fitted on."""

    def probability(self, odds: float) -> float:
        """The probability of fraud for the odds that a model gave.

        >>> round(OddsScale(level=2.0, slope=0.5, cases=60).probability(-2.0), 3)
        0.731
        """
        return sigmoid(self.level + self.slope * odds)


def sigmoid(log_odds: float) -> float:
    """The logistic function, without overflow.

    >>> sigmoid(0.0), sigmoid(-1000.0)
    (0.5, 0.0)
    """
    if log_odds >= 0:
        return 1 / (1 + math.exp(-min(log_odds, 700.0)))
    e = math.exp(max(log_odds, -700.0))
    return e / (1 + e) if log_odds > -700 else 0.0


def log_odds(probability: float) -> float:
    """The inverse of `sigmoid`.

    >>> log_odds(0.5)
    0.0
    """
    return math.log(probability / (1 - probability))
