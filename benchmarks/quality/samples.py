"""Samples of the training rows, for learners that cannot take them all."""

from __future__ import annotations

import numpy as np

from benchmarks.arrays import Mask, Numbers, Places


def subsample(labels: Mask, cap: int | None, seed: int) -> Places:
    """At most ``cap`` rows in their order: all frauds up to half of the sample, the rest drawn at random."""
    if cap is None or len(labels) <= cap:
        return np.arange(len(labels))
    generator = np.random.default_rng(seed)
    frauds, honest = np.flatnonzero(labels), np.flatnonzero(~labels)
    frauds = generator.permutation(frauds)[: max(cap // 2, cap - len(honest))]
    honest = generator.permutation(honest)[: cap - len(frauds)]
    return np.sort(np.concatenate([frauds, honest]))


def corrected(scores: Numbers, seen: Mask, labels: Mask) -> Numbers:
    """Probabilities that were learnt on a sample with too much fraud, corrected to the share of all rows.

    >>> corrected(np.array([0.5]), np.array([True, False]), np.array([True, False, False, False])).round(6).tolist()
    [0.25]
    """
    if len(seen) == len(labels) or scores.min() < 0 or scores.max() > 1:
        return scores
    odds = _odds(labels) / _odds(seen)
    return scores * odds / (scores * odds + (1 - scores))


def _odds(labels: Mask) -> float:
    return float(np.sum(labels) / np.sum(~labels))
