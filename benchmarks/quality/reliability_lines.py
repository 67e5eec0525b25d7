"""The points of the plots: precision and recall, metrics along the stream, and reliability."""

from __future__ import annotations

import numpy as np

from benchmarks.arrays import Mask, Numbers
from benchmarks.quality.measures import Groups, average_precision

WINDOWS = 20
_POINTS = 500


def precision_recall(scores: Numbers, labels: Mask) -> tuple[Numbers, Numbers]:
    """Recall and precision at each threshold, thinned to what a plot can show."""
    groups = Groups.of(scores, labels)
    caught, declined = np.cumsum(groups.frauds), np.cumsum(groups.mass)
    some = np.unique(np.linspace(0, len(caught) - 1, _POINTS).astype(np.int64))
    recall, precision = caught[some] / caught[-1], caught[some] / declined[some]
    return np.append(0.0, recall), np.append(precision[0], precision)


def windowed(scores: Numbers, labels: Mask) -> tuple[Numbers, Numbers]:
    """Accuracy and average precision in windows of equal length; NaN if a window has no fraud."""
    parts = [part for part in np.array_split(np.arange(len(scores)), WINDOWS) if len(part)]
    accuracy = [float(np.mean((scores[part] >= 0.5) == labels[part])) for part in parts]
    precision = [average_precision(scores[part], labels[part]) for part in parts]
    return np.array(accuracy), np.array(precision)


def reliability(scores: Numbers, labels: Mask) -> tuple[Numbers, Numbers]:
    """Mean score and share of fraud in each bin of equal mass."""
    groups = Groups.of(scores, labels)
    bins, mass = groups.bins_of_equal_mass(), groups.mass
    total = np.bincount(bins, mass)
    some = total > 0
    said, found = np.bincount(bins, mass * groups.scores), np.bincount(bins, groups.frauds)
    return said[some] / total[some], found[some] / total[some]
