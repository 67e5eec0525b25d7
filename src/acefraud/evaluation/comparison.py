"""What a comparison found: figures for each mode, paired differences, and what models were asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acefraud import Mode
from acefraud.display.frames import frame_of_rows
from acefraud.display.html_tables import block, line, table
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, given, quoted, shown_text
from acefraud.errors import InputError
from acefraud.evaluation.metrics import METRICS, Interval, as_json, in_percent

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
HEADINGS = {
    "accuracy": "accuracy",
    "fraud_caught": "fraud caught",
    "false_declines": "false declines",
    "average_precision": "PR-AUC",
}
WITH_LIGHTGBM = (Mode.OFFLINE_ONLINE, LIGHTGBM)


@dataclass(frozen=True, slots=True, repr=False)
class ModeFigures(ShortRepr):
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

    def __repr_args__(self) -> ReprArgs:
        for metric, interval in self.figures.items():
            yield metric, Plain(in_percent(interval))
        yield "bullets", Plain(f"{self.bullets:.0f}")

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


@dataclass(frozen=True, slots=True, repr=False)
class ModelFigures(ShortRepr):
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


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(ShortRepr):
    """Everything the report shows. The keys of `modes` and `differences` also name LightGBM if it took part.

    It reads like a dict of its modes: ``comparison["vanilla"]``, ``for mode in comparison``.

    >>> from acefraud import compare, load_dataset
    >>> from acefraud.datasets.world import WorldOptions
    >>> comparison = compare(load_dataset("complex_fraud_detection", options=WorldOptions(transactions=60)), seeds=1)
    >>> comparison["vanilla"].bullets, comparison.to_frame().columns
    (0.0, ['mode', 'metric', 'mean', 'low', 'high'])
    """

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

    def __getitem__(self, mode: str) -> ModeFigures:
        """What one mode reached. Raises InputError if it did not take part."""
        if mode not in self.modes:
            names = ", ".join(self.modes)
            raise InputError(f"mode: expected one of {names}, got {given(mode)}")
        return self.modes[mode]

    def __iter__(self) -> Iterator[str]:
        return iter(self.modes)

    def __len__(self) -> int:
        return len(self.modes)

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(quoted(self.dataset, 40))
        yield None, Plain(f"{self.test_rows:,} test rows, {self.seeds} seed{'' if self.seeds == 1 else 's'}")
        for mode, got in self.modes.items():
            yield mode, Plain(in_percent(got.figures["accuracy"]).partition(" ")[0])

    def _repr_html_(self) -> str:
        """The figures of the modes and the paired differences, for a notebook."""
        headings = [HEADINGS[metric] for metric in METRICS]
        differences = (
            (f"{NAMES[mode]} less {NAMES[other]}", *(in_percent(figures[metric], signed=True) for metric in METRICS))
            for (mode, other), figures in self.differences.items()
        )
        return block(
            f"{shown_text(self.dataset)}: {len(self)} modes, {self.seeds} seed{'' if self.seeds == 1 else 's'}",
            table(["mode", *headings, "bullets", "cited", "secs"], mode_rows(self)),
            table(["paired differences, in points", *headings], differences),
            line(shown_text(self.no_lightgbm, 300)),
            line(self.about_labels),
            line(f"Intervals: {self.method}. {self.test_rows:,} cases decided per seed."),
        )

    def to_frame(self, backend: str = "polars") -> Any:
        """A row for each mode and metric, with its interval, as a data frame of polars, pandas or pyarrow."""
        rows = [
            {"mode": str(mode), "metric": metric, "mean": figure.mean, "low": figure.low, "high": figure.high}
            for mode, got in self.modes.items()
            for metric, figure in got.figures.items()
        ]
        return frame_of_rows(rows, backend)

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
            "differences": {f"{mode}_vs_{other}": as_json(self.differences[mode, other]) for mode, other in PAIRS},
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


def mode_rows(comparison: Comparison, shown: Callable[[Interval], str] = in_percent) -> Iterator[tuple[str, ...]]:
    """The cells of a table of the modes: name, metrics, bullets, cited bullets and seconds."""
    for mode, got in comparison.modes.items():
        name, used = NAMES[mode], (f"{got.bullets:.0f}", f"{got.cited:.1f}")
        if mode == LIGHTGBM:
            name, used = f"{name} ({NO_REASONS})", ("–", "–")
        yield name, *(shown(got.figures[metric]) for metric in METRICS), *used, f"{got.seconds:.1f}"
        if figures := got.without_label_facts:
            yield f"- {NO_LABEL_FACTS}", *(shown(figures[metric]) for metric in METRICS), "", "", ""
