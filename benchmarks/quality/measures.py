"""Metrics of scores with bootstrap intervals. Tied scores always count as one step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.evaluation.metrics import Interval
from benchmarks.arrays import Mask, Numbers

Bins = npt.NDArray[np.int64]

DRAWS = 200
BINS = 15
_STRETCHES = 1500
"""The number of stretches of rows without fraud that are drawn separately: a hundred for each bin."""
FALSE_POSITIVES = {"recall_at_0.5_fpr": 0.005, "recall_at_1_fpr": 0.01}
CALIBRATION = ("expected_calibration_error", "expected_calibration_error_equal_mass")
NAMES = ("average_precision", "roc_auc", *FALSE_POSITIVES, *CALIBRATION)
"""The names of the recalls give the share of false positives in percent."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows from the highest score to the lowest, as groups of equal scores with their counts."""

    scores: Numbers
    frauds: Numbers
    honest: Numbers

    @classmethod
    def of(cls, scores: Numbers, labels: Mask) -> Groups:
        """Groups of rows, ranked by score."""
        order = np.argsort(-scores, kind="stable")
        ranked = scores[order]
        starts = np.flatnonzero(np.append(True, np.diff(ranked) != 0))
        frauds = np.add.reduceat(labels[order].astype(np.float64), starts)
        mass = np.diff(np.append(starts, len(scores)))
        return cls(ranked[starts], frauds, mass - frauds)

    @property
    def mass(self) -> Numbers:
        """Rows in each group."""
        return self.frauds + self.honest

    def merged(self, most: int) -> Groups:
        """The same with neighbouring groups without fraud merged, up to about `most` rows, with their mean score.

        This changes no metric of ranks or of bins of equal width: only groups with fraud are steps of recall, and no
        merged group crosses a bin.
        """
        mass, has_fraud = self.mass, self.frauds > 0
        stretch, bins = np.cumsum(mass) // most, self.bins_of_equal_width()
        ends = has_fraud[1:] | has_fraud[:-1] | (np.diff(stretch) > 0) | (np.diff(bins) != 0)
        starts = np.flatnonzero(np.append(True, ends))
        total = np.add.reduceat(mass, starts)
        frauds = np.add.reduceat(self.frauds, starts)
        return Groups(np.add.reduceat(self.scores * mass, starts) / total, frauds, total - frauds)

    def drawn(self, generator: np.random.Generator) -> Groups:
        """As many rows, drawn with repetition."""
        parts = np.concatenate([self.frauds, self.honest])
        counts = generator.multinomial(int(parts.sum()), parts / parts.sum()).astype(np.float64)
        return Groups(self.scores, *np.split(counts, 2))

    def figures(self) -> dict[str, float]:
        """All metrics; NaN if there is only one kind of label."""
        caught, wrong = np.cumsum(self.frauds), np.cumsum(self.honest)
        if caught[-1] == 0 or wrong[-1] == 0:
            return dict.fromkeys(NAMES, math.nan)
        precision = caught / np.maximum(caught + wrong, 1)
        figures = {"average_precision": float(np.sum(self.frauds * precision) / caught[-1])}
        figures["roc_auc"] = float(np.sum(self.honest * (caught - self.frauds / 2)) / (caught[-1] * wrong[-1]))
        for name, allowed in FALSE_POSITIVES.items():
            reached = int(np.searchsorted(wrong, allowed * wrong[-1] * (1 + 1e-12), side="right"))
            figures[name] = float(caught[reached - 1] / caught[-1]) if reached else 0.0
        parts = self.bins_of_equal_width(), self.bins_of_equal_mass()
        return figures | {name: self.calibration_error(bins) for name, bins in zip(CALIBRATION, parts, strict=True)}

    def bins_of_equal_width(self) -> Bins:
        """The bin of each group, for bins of equal width between zero and one (Guo et al. 2017)."""
        places: Bins = np.ceil(self.scores * BINS).astype(np.int64) - 1
        return np.clip(places, 0, BINS - 1)

    def bins_of_equal_mass(self, bins: int = BINS) -> Bins:
        """The bin of each group, for bins with equally many rows; a group is never split."""
        mass = self.mass
        middle = np.cumsum(mass) - mass / 2
        places: Bins = (bins * middle / mass.sum()).astype(np.int64)
        return np.minimum(places, bins - 1)

    def calibration_error(self, bins: Bins) -> float:
        """Mean distance between score and share of fraud over the bins; NaN if scores are not probabilities."""
        if self.scores[0] > 1 or self.scores[-1] < 0:
            return math.nan
        gaps = np.bincount(bins, self.frauds - self.scores * self.mass, minlength=BINS)
        return float(np.abs(gaps).sum() / self.mass.sum())


def average_precision(scores: Numbers, labels: Mask) -> float:
    """Area under the precision-recall curve, as a sum over steps of recall.

    >>> average_precision(np.array([0.9, 0.8, 0.1]), np.array([True, False, True]))
    0.8333333333333333
    """
    return Groups.of(scores, labels).figures()["average_precision"] if len(scores) else math.nan


def calibration_error(scores: Numbers, labels: Mask, *, bins: int) -> float:
    """Mean distance between score and share of fraud over so many bins of equal mass.

    >>> calibration_error(np.array([0.9, 0.7, 0.1]), np.array([True, True, False]), bins=1)
    0.1
    """
    groups = Groups.of(scores, labels)
    return round(groups.calibration_error(groups.bins_of_equal_mass(bins)), 9)


def bootstrap(scores: Numbers, labels: Mask, *, draws: int = DRAWS, seed: int = 0) -> dict[str, list[float]]:
    """The metrics on the rows themselves, then on rows drawn with repetition.

    Stretches without fraud are drawn as one, so that hundreds of draws from a million rows take seconds.
    """
    groups = Groups.of(scores, labels)
    generator = np.random.default_rng(seed)
    merged = groups.merged(max(1, len(scores) // _STRETCHES))
    got = [groups.figures(), *(merged.drawn(generator).figures() for _ in range(draws))]
    return {name: [each[name] for each in got] for name in NAMES}


def pooled(runs: Sequence[Mapping[str, list[float]]]) -> dict[str, Interval]:
    """Means over the runs, with the middle 95 % of all their draws together."""
    return {name: _interval([run[name] for run in runs]) for name in NAMES}


def _interval(runs: Sequence[list[float]]) -> Interval:
    mean = float(np.mean([run[0] for run in runs]))
    draws = [value for run in runs for value in run[1:] if not math.isnan(value)]
    if math.isnan(mean) or not draws:
        return Interval(mean, None, None)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(mean, float(low), float(high))
