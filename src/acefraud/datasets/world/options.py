"""What kind of world is asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from acefraud.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldOptions:
    """The dials of the world; the defaults are hard enough that a learner has something to learn.

    >>> WorldOptions(transactions=10).prevalence
    0.4
    >>> WorldOptions(prevalence=1.5)
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: prevalence must be between 0 and 1, got 1.5
    """

    transactions: int = 2000
    prevalence: float = 0.4
    """Share of the stories that are fraud, before labels are disturbed."""
    label_noise: float = 0.02
    """Share of the reported labels that are wrong."""
    ambiguous: float = 0.1
    """Share of the stories drawn almost half-way between a fraud and the honest conduct that resembles it."""
    drift: float = 1.0
    """0 is a world that never changes; 1 lets patterns appear, fade and shift over the period."""
    days: int = 120
    label_delay_days: float = 7.0
    """Mean time until a label is known at the default prevalence; 0 makes every label known at once."""
    start: datetime = datetime(2025, 1, 6, tzinfo=UTC)

    def __post_init__(self) -> None:
        for name in ("transactions", "days"):
            _require_count(name, getattr(self, name))
        for name in ("prevalence", "label_noise", "ambiguous"):
            _require_between(name, getattr(self, name), 0.0, 1.0)
        _require_between("drift", self.drift, 0.0, 3.0)
        _require_between("label_delay_days", self.label_delay_days, 0.0, 3650.0)
        if self.start.tzinfo is None:
            raise ConfigurationError(f"start must carry a time zone, got {self.start.isoformat()}")


def _require_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{name} must be a whole number of at least 1, got {value!r}")


def _require_between(name: str, value: float, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigurationError(f"{name} must be a number, got {value!r}")
    if not low <= value <= high:
        raise ConfigurationError(f"{name} must be between {low:g} and {high:g}, got {value!r}")
