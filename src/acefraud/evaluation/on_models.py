"""What a comparison asked of models, and what a first tier saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acefraud import Mode
from acefraud.evaluation.metrics import Interval


@dataclass(frozen=True, slots=True)
class TierFigures:
    """One mode with a first tier, beside the same mode with every case sent to the model."""

    mode: Mode
    settled: int
    """Decisions for which no call was needed."""
    asked: int
    accuracy: Interval
    in_full: Interval

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "settled": self.settled,
            "asked": self.asked,
            "accuracy": self.accuracy.as_json(),
            "accuracy_in_full": self.in_full.as_json(),
        }


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """What models were asked during a comparison."""

    usage: Mapping[str, Any]
    undecided: int
    """Cases that were left to a person because the model failed; they are left out of all figures."""
    fallbacks: int
    """Decisions that the model should have made and did not."""
    tiers: tuple[TierFigures, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "usage": dict(self.usage),
            "undecided": self.undecided,
            "fallbacks": self.fallbacks,
            **({"tiers": {str(one.mode): one.as_json() for one in self.tiers}} if self.tiers else {}),
        }
