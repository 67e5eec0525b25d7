"""Metrics of decisions, each with its 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

_Z95 = 1.959963984540054

Flags = npt.NDArray[np.bool_]
Column = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the 95 % interval around it. The bounds are None if there is only one value."""

    mean: float
    low: float | None
    high: float | None

    def as_json(self) -> dict[str, float | None]:
        """Rounded to six digits, so that the output does not depend on the last bit."""
        return {"mean": _rounded(self.mean), "low": _rounded(self.low), "high": _rounded(self.high)}


def _rounded(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, 6)


@dataclass(frozen=True, slots=True)
class Scored:
    """Decisions beside the true labels."""

    declined: Flags
    probabilities: Column
    labels: Flags

    def take(self, rows: npt.NDArray[np.intp]) -> Scored:
        """Some of the rows, which may repeat."""
        return Scored(self.declined[rows], self.probabilities[rows], self.labels[rows])


def accuracy(scored: Scored) -> float:
    """Share of correct decisions."""
    return float(np.mean(scored.declined == scored.labels))


def fraud_caught(scored: Scored) -> float:
    """Share of the frauds that were declined; NaN if there were none."""
    return float(np.mean(scored.declined[scored.labels])) if scored.labels.any() else math.nan


def false_declines(scored: Scored) -> float:
    """Share of the honest transactions that were declined; NaN if there were none."""
    return float(np.mean(scored.declined[~scored.labels])) if not scored.labels.all() else math.nan


def average_precision(scored: Scored) -> float:
    """Area under the precision-recall curve, as a sum over recall steps; tied scores count as one step.

    >>> average_precision(Scored(np.array([True, False]), np.array([0.9, 0.2]), np.array([True, False])))
    1.0
    """
    if not scored.labels.any():
        return math.nan
    order = np.argsort(-scored.probabilities, kind="stable")
    hits = np.cumsum(scored.labels[order])
    ends = np.flatnonzero(np.append(np.diff(scored.probabilities[order]) != 0, True))
    precision = hits[ends] / (ends + 1)
    recall = np.append(0, hits[ends]) / hits[-1]
    return float(np.sum(np.diff(recall) * precision))


Metric = Callable[[Scored], float]
METRICS: dict[str, Metric] = {
    "accuracy": accuracy,
    "fraud_caught": fraud_caught,
    "false_declines": false_declines,
    "average_precision": average_precision,
}

_T975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
         2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045)  # fmt: skip


def student_interval(values: Sequence[float]) -> Interval:
    """The mean of independent values with its Student interval.

    >>> student_interval([0.8, 0.8, 0.8])
    Interval(mean=0.8, low=0.8, high=0.8)
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return Interval(mean, None, None)
    freedom = len(values) - 1
    t = _T975[freedom - 1] if freedom <= len(_T975) else _Z95 + (_Z95 * _Z95 * _Z95 + _Z95) / (4 * freedom)
    half = t * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Interval(round(mean, 12), round(mean - half, 12), round(mean + half, 12))


def bootstrap_interval(measure: Callable[[npt.NDArray[np.intp]], float], rows: int, draws: int = 400) -> Interval:
    """What `measure` gives for all rows, with the percentile interval over rows drawn with repetition."""
    generator = np.random.default_rng(0)
    values = [measure(generator.integers(0, rows, rows)) for _ in range(draws)]
    known = [value for value in values if not math.isnan(value)]
    mean = measure(np.arange(rows))
    if not known:
        return Interval(mean, None, None)
    low, high = np.quantile(known, [0.025, 0.975])
    return Interval(mean, float(low), float(high))


def figures_of(seeds: Sequence[Sequence[Scored]], *, worlds: bool = False) -> dict[str, Interval]:
    """Every metric of one mode, or its difference between two modes on the same rows, as the mean over seeds.

    The intervals are over `worlds`, or else over rows.
    """

    def value(metric: Metric, scored: Iterable[Scored]) -> float:
        first, *others = map(metric, scored)
        return first - sum(others)

    def mean(metric: Metric, drawn: npt.NDArray[np.intp]) -> float:
        return float(np.mean([value(metric, (mode.take(drawn) for mode in seed)) for seed in seeds]))

    if worlds:
        return {name: student_interval([value(metric, seed) for seed in seeds]) for name, metric in METRICS.items()}
    rows = len(seeds[0][0].labels)
    return {name: bootstrap_interval(partial(mean, metric), rows) for name, metric in METRICS.items()}


def in_percent(interval: Interval, *, signed: bool = False) -> str:
    """The mean in percent, or in points if it is a difference, with its interval.

    >>> in_percent(Interval(0.861, 0.85, 0.872))
    '86.1% (85.0 to 87.2)'
    """
    sign = "+" if signed else ""
    text = f"{100 * interval.mean:{sign}.1f}" + ("" if signed else "%")
    if interval.low is None or interval.high is None:
        return text
    return f"{text} ({100 * interval.low:{sign}.1f} to {100 * interval.high:{sign}.1f})"


def as_json(intervals: dict[str, Interval]) -> dict[str, Any]:
    """Figures by name, for scripts."""
    return {name: interval.as_json() for name, interval in intervals.items()}
