"""How the weights of bullets add up to a probability."""

from __future__ import annotations

import math

from pydantic import BaseModel, Field


class Calibration(BaseModel, frozen=True, extra="forbid"):
    """Log-odds of fraud = intercept + knowledge_scale x scorecard + the weights of the bullets that fire."""

    intercept: float
    knowledge_scale: float = 1.0
    threshold: float = Field(default=0.5, gt=0, lt=1)
    base_rate: float = Field(default=0.5, ge=0, le=1)
    cases: int = 0
    """How many labelled cases it was fitted on; 0 for general knowledge alone."""
    most_bullets: int | None = Field(default=None, ge=1)
    """The limit on learnt bullets, if one was set."""


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
