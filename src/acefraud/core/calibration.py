"""How the weights of bullets add up to a probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from pydantic import BaseModel, Field

from acefraud.core.bullet import Bullet, NewBullet
from acefraud.core.condition import Condition
from acefraud.support.exact_math import log, sigmoid


class RecentLevel(BaseModel, frozen=True, extra="forbid"):
    """How far the latest outcomes have moved the level of fraud away from a calibration."""

    shift: float
    """What is added to the log-odds of every case."""
    cases: int
    """The latest outcomes that the words speak of; the shift rests on more."""
    frauds: int
    expected: float
    """The frauds among them that the calibration alone would expect."""
    among: Literal["outcomes", "decisions", "review"] = "outcomes"
    """Whether these are outcomes, or decisions of which only frauds are reported, and `expected` is what would be
    reported by now. "review" keeps the level of before a review until a person agrees to the new one."""
    outcomes: int = 0
    """All outcomes heard by then: the same outcomes move it once."""

    @property
    def in_words(self) -> str:
        """The shift as a reason of a decision.

        >>> RecentLevel(shift=3.1, cases=100, frauds=38, expected=3.6).in_words
        'fraud is more common lately: 38 of the latest 100 outcomes, where 4 would be usual'
        """
        if self.among == "review":
            return "what was calibrated last waits for a person; until then the level stays as it was"
        more = "more" if self.shift > 0 else "less"
        usual = f"{self.expected:.0f}" if self.expected >= 0.5 else "none"
        return (
            f"fraud is {more} common lately: {self.frauds:,} of the latest {self.cases:,} {self.among}, "
            f"where {usual} would be usual"
        )


class HeldLevel(BaseModel, frozen=True, extra="forbid"):
    """A step of the level that waits for a person, because it would change many verdicts."""

    recent: RecentLevel | None
    """Where the outcomes have the level; None if the calibration is right as it is."""
    declines: float
    """The share of the latest decisions that is declined now..."""
    would_decline: float
    """...and that would be."""

    @property
    def in_words(self) -> str:
        """What is held, and why.

        >>> HeldLevel(recent=None, declines=0.046, would_decline=0.31).in_words
        'the calibration is right as it is; following this would decline 31.0% of the latest decisions, not 4.6%'
        """
        why = "the calibration is right as it is" if self.recent is None else self.recent.in_words
        change = f"decline {self.would_decline:.1%} of the latest decisions, not {self.declines:.1%}"
        return f"{why}; following this would {change}"


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
    plain: bool = False
    """Whether only short bullets are learnt."""
    points: dict[str, float] = Field(default_factory=dict)
    """The fitted points of the scorecard by line. A line that is not listed keeps its own."""
    recent: RecentLevel | None = None
    """What outcomes since then have shown, if the share of fraud has changed."""
    anchor_shift: float = 0.0
    """The shift that steps are measured from: what a person agreed to last, or what a review left in place."""
    held: HeldLevel | None = None
    """A step of the level that waits for a person."""

    @property
    def level(self) -> float:
        """The intercept, moved as the latest outcomes ask."""
        return self.intercept if self.recent is None else self.intercept + self.recent.shift


class OddsScale(BaseModel, frozen=True, extra="forbid"):
    """Scales the odds that a model gives: log-odds of fraud = level + slope x the model's log-odds.

    Where its opinion is added to the embedded engine's, `engine` x the engine's log-odds are added too.
    """

    level: float
    slope: float
    cases: int
    """How many labelled cases it was fitted on."""
    engine: float = 0.0

    def probability(self, odds: float) -> float:
        """The probability of fraud for the odds that a model gave, if its view alone counts.

        >>> round(OddsScale(level=2.0, slope=0.5, cases=60).probability(-2.0), 3)
        0.731
        """
        return sigmoid(self.level + self.slope * odds)


def log_odds(probability: float) -> float:
    """The inverse of `sigmoid`.

    >>> log_odds(0.5)
    0.0
    """
    return log(probability / (1 - probability))


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights that were fitted together, and the calibration in which they add up to a probability."""

    calibration: Calibration
    weights: Mapping[Condition, float] = field(default_factory=dict)
    """By condition; 0 for a condition that the others make superfluous."""


class MeasuredText(str):
    """Plain text to its readers; a bullet with condition and evidence to the curator and the agent.

    >>> text = MeasuredText(NewBullet("VPN at night: decline", weight=1.2))
    >>> text == "VPN at night: decline", text.bullet.weight
    (True, 1.2)
    """

    bullet: NewBullet
    """Its weight is log-odds, valid only together with `fit`."""
    fit: Fit | None

    def __new__(cls, bullet: NewBullet, fit: Fit | None = None) -> Self:
        text = super().__new__(cls, bullet.content)
        text.bullet, text.fit = bullet, fit
        return text

    def __reduce__(self) -> tuple[type[MeasuredText], tuple[NewBullet, Fit | None]]:
        return type(self), (self.bullet, self.fit)


def with_measured_text(bullet: Bullet, calibration: Calibration | None) -> Bullet:
    """The same bullet, with text that is enough to decide with it as the playbook would."""
    measured = NewBullet(
        bullet.content,
        condition=bullet.condition,
        argues=bullet.argues,
        evidence=bullet.evidence,
        weight=bullet.weight,
        problem_types=bullet.problem_types,
    )
    fit = None if calibration is None else Fit(calibration)
    return bullet.model_copy(update={"content": MeasuredText(measured, fit)})
