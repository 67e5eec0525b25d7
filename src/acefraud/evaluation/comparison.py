"""What a comparison found: figures for each mode, paired differences, and what models were asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acefraud import Mode
from acefraud.evaluation.metrics import Interval, as_json

LIGHTGBM = "lightgbm"
NAMES = {
    Mode.VANILLA: "Vanilla",
    Mode.ONLINE_ONLY: "Online only",
    Mode.OFFLINE_ONLINE: "Offline + online",
    LIGHTGBM: "LightGBM",
}
NO_REASONS = "no reasons, no online learning"
"""What LightGBM does not do, said beside its name."""
PAIRS: tuple[tuple[str, str], ...] = (
    (Mode.ONLINE_ONLY, Mode.VANILLA),
    (Mode.OFFLINE_ONLINE, Mode.VANILLA),
    (Mode.OFFLINE_ONLINE, Mode.ONLINE_ONLY),
)
WITH_LIGHTGBM = (Mode.OFFLINE_ONLINE, LIGHTGBM)


@dataclass(frozen=True, slots=True)
class ModeFigures:
    """What one mode, or LightGBM, reached."""

    figures: dict[str, Interval]
    bullets: float
    cited: float
    seconds: float
    curve: tuple[float, ...]
    """Accuracy along the stream, in equal stretches."""

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            **as_json(self.figures),
            "bullets": round(self.bullets, 6),
            "bullets_cited": round(self.cited, 6),
            "curve": [round(point, 6) for point in self.curve],
        }


@dataclass(frozen=True, slots=True)
class TierFigures:
    """One mode with a first tier, beside the same mode with every case sent to the model."""

    settled: int
    """Decisions that needed no call."""
    asked: int
    accuracy: Interval
    in_full: Interval

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
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
    """Cases left to a person because the model failed; no figure counts them."""
    fallbacks: int
    """Decisions that the model should have made but did not."""
    tiers: Mapping[Mode, TierFigures]

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        content = {"usage": dict(self.usage), "undecided": self.undecided, "fallbacks": self.fallbacks}
        if self.tiers:
            content["tiers"] = {str(mode): tier.as_json() for mode, tier in self.tiers.items()}
        return content


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything the report shows. The keys of `modes` and `differences` also name LightGBM if it took part."""

    dataset: str
    rows: int
    test_rows: int
    seeds: int
    method: str
    modes: dict[str, ModeFigures]
    differences: dict[tuple[str, str], dict[str, Interval]]
    sample: tuple[str, ...] = ()
    """Bullets that the pre-trained mode ended with, strongest first."""
    on_models: ModelFigures | None = None
    """What models were asked, if they play a role."""
    no_lightgbm: str = ""
    """Why LightGBM did not take part."""

    def as_json(self) -> dict[str, Any]:
        """For scripts: without clock times, so that two runs with one seed print the same bytes."""
        content: dict[str, Any] = {
            "dataset": self.dataset,
            "rows": self.rows,
            "test_rows": self.test_rows,
            "seeds": self.seeds,
            "interval": self.method,
            "modes": {str(mode): self.modes[mode].as_json() for mode in Mode},
            "differences": {f"{one}_vs_{other}": as_json(self.differences[one, other]) for one, other in PAIRS},
            "sample": list(self.sample),
        }
        if self.on_models:
            content["models"] = self.on_models.as_json()
        if LIGHTGBM in self.modes:
            got = self.modes[LIGHTGBM].as_json()
            content[LIGHTGBM] = {
                **{name: value for name, value in got.items() if not name.startswith("bullets")},
                "offline_online_vs_lightgbm": as_json(self.differences[WITH_LIGHTGBM]),
            }
        return content
