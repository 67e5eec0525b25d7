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
NO_LABEL_FACTS = "no label facts"
"""Said beside the name of a mode if the facts that depend on labels are unknown."""
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
    without_label_facts: dict[str, Interval] | None = None
    """The same figures if the facts that depend on labels are unknown; None if there are none, or if a model decides.
    """

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            **as_json(self.figures),
            "bullets": round(self.bullets, 6),
            "bullets_cited": round(self.cited, 6),
            "curve": [round(point, 6) for point in self.curve],
            **({"without_label_facts": as_json(self.without_label_facts)} if self.without_label_facts else {}),
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
    label_delay: str = ""
    """How long labels take if nothing says when they came, as the mapping has it; empty if there is no history."""

    @property
    def about_labels(self) -> str:
        """How late labels are, and what the figures without them are; empty if there is no history."""
        if not self.label_delay:
            return ""
        return (
            f"Labels without a time of their own arrive {self.label_delay} after their transaction (label_delay). "
            f"With {NO_LABEL_FACTS}, nothing is known of earlier frauds of the same entity."
        )

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
        if self.label_delay:
            content["label_delay"] = self.label_delay
        if self.on_models:
            content["models"] = self.on_models.as_json()
        if LIGHTGBM in self.modes:
            got = self.modes[LIGHTGBM].as_json()
            content[LIGHTGBM] = {
                **{name: value for name, value in got.items() if not name.startswith("bullets")},
                "offline_online_vs_lightgbm": as_json(self.differences[WITH_LIGHTGBM]),
            }
        return content
