"""Small histories: a rule must improve on general knowledge on cases that its weight was not fitted on.

With some hundred cases the out-of-time part is too small to refute much. Cross-validation uses every case twice: to fit
a weight and, in another fold, to judge it.
"""

from __future__ import annotations

import numpy as np

from acefraud.rules.induction.fitting import FitCases, FitOptions, Fitted, fit, margins, probabilities
from acefraud.support.arrays import BoolArray, FloatArray, IntArray

_FOLDS = 5
_STEPS = 6
_LEAST_GAIN = 1.0
"""Nats by which a rule must lower the log-loss of unseen cases in all."""


def improving(masks: BoolArray, cases: FitCases, fitted: Fitted, options: FitOptions) -> BoolArray:
    """The conditions that lower the log-loss of unseen cases, one after the other, the strongest first."""
    alone = fit(masks[:, :0], cases, options)
    log_odds = margins(masks[:, :0], cases, alone)
    strength = np.abs(fitted.weights) * np.sqrt(cases.weights @ masks)
    fold = np.random.default_rng(0).permutation(len(log_odds)) % _FOLDS
    kept = np.zeros(masks.shape[1], dtype=np.bool_)
    for place in np.argsort(-strength, kind="stable").tolist():
        if strength[place] == 0:
            break
        rows = np.flatnonzero(masks[:, place])
        weights = _weights_apart(log_odds[rows], cases.labels[rows], fold[rows], options.shrinkage)
        moved = log_odds[rows] + weights[fold[rows]]
        gain = float((_loss(log_odds[rows], cases.labels[rows]) - _loss(moved, cases.labels[rows])).sum())
        if gain > _LEAST_GAIN:
            kept[place] = True
            log_odds[rows] = moved
            log_odds += _weight(log_odds, cases.labels, options.shrinkage)  # the level moves with every rule
    return kept


def _weights_apart(log_odds: FloatArray, frauds: BoolArray, fold: IntArray, ridge: float) -> FloatArray:
    """The weight of one condition for each fold, fitted on the other folds."""
    return np.array([_weight(log_odds[fold != one], frauds[fold != one], ridge) for one in range(_FOLDS)])


def _weight(log_odds: FloatArray, frauds: BoolArray, ridge: float) -> float:
    """What has to be added to the log-odds of these cases, by Newton's method."""
    weight = 0.0
    for _ in range(_STEPS):
        p = probabilities(log_odds + weight)
        step = (float((frauds - p).sum()) - ridge * weight) / (float((p * (1 - p)).sum()) + ridge)
        weight += min(max(step, -1.0), 1.0)
    return weight


def _loss(log_odds: FloatArray, frauds: BoolArray) -> FloatArray:
    loss: FloatArray = np.logaddexp(0.0, log_odds) - frauds * log_odds
    return loss
