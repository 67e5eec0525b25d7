"""The points of the scorecard fitted to labelled cases, shrunk towards where they started.

Knowledge adapts before new bullets can be proven: a line needs far fewer cases to be corrected than a condition needs
to be found. The fit counts only if it predicts cases that it has not seen better than the scorecard as it ships.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from acefraud.core.table import FactTable
from acefraud.rules.induction.fitting import threads_for
from acefraud.rules.scorecard import GENERAL, lines_in, score_in, scorecard
from acefraud.support.arrays import BoolArray, FloatArray

_TRUST = 5.0
"""L2 penalty on the difference of each line to its own points, and of the intercept to its own: as much as about
twenty cases on which a line applies."""
_FOLDS = 5
_ERRORS, _LEAST_GAIN = 1.0, 2.0
"""Standard errors, and nats in all, by which the log-loss of unseen cases must fall for a fit to count. Where the
scorecard is nearly always right, the gains are tiny but all alike, so that their error says nothing."""
_MOST = 20_000
"""Cases that are fitted, the latest ones."""
_STEPS, _FARTHEST = 30, 2.0
"""Newton steps, and the most that one may change the log-odds of a case."""


@dataclass(frozen=True, slots=True)
class FittedPoints:
    """The points of a scorecard that was fitted to labelled cases."""

    sums: FloatArray
    """The sum of points for each of the cases. Its points were fitted without its label, as those of a new case are, so
    that rules learn what the scorecard really misses."""
    points: dict[str, float] = field(default_factory=dict)
    """By line; empty if the scorecard as it ships predicts just as well."""


def fit_points(facts: FactTable, labels: BoolArray) -> FittedPoints:
    """Fit the points of all lines that apply to any of the cases."""
    latest = slice(max(0, len(labels) - _MOST), None)
    lines, frauds = lines_in(facts.take(latest)), labels[latest].astype(np.float64)
    design = np.column_stack([np.ones(len(frauds)), lines])
    with threads_for(design.size):
        return _fitted(facts, latest, design, frauds)


def _fitted(facts: FactTable, latest: slice, design: FloatArray, frauds: FloatArray) -> FittedPoints:
    lines, apart = design[:, 1:], _fitted_apart(design, frauds)
    gains = _loss(design @ _shipped(), frauds) - _loss((design * apart).sum(axis=1), frauds)
    if gains.sum() <= max(_LEAST_GAIN, _ERRORS * gains.std() * np.sqrt(len(gains))):
        return FittedPoints(score_in(facts))
    fitted = zip(scorecard(), _fit(design, frauds)[1:].tolist(), lines.sum(axis=0).tolist(), strict=True)
    points = {point.line: round(value, 4) for point, value, count in fitted if count}
    sums = score_in(facts, points)
    sums[latest] = (lines * apart[:, 1:]).sum(axis=1)
    return FittedPoints(sums, points)


def _fitted_apart(design: FloatArray, frauds: FloatArray) -> FloatArray:
    """Intercept and points for each case, fitted without the fold that it is in."""
    fold = np.random.default_rng(0).permutation(len(frauds)) % _FOLDS
    fits = np.stack([_fit(design[fold != one], frauds[fold != one]) for one in range(_FOLDS)])
    return fits[fold]


def _shipped() -> FloatArray:
    return np.array([GENERAL.intercept, *(point.points for point in scorecard())])


def _fit(design: FloatArray, frauds: FloatArray) -> FloatArray:
    """Logistic regression by Newton's method, with a ridge towards the scorecard as it ships."""
    start = _shipped()
    fitted = start.copy()
    for _ in range(_STEPS):
        p = 0.5 * (1.0 + np.tanh(0.5 * (design @ fitted)))
        gradient = design.T @ (p - frauds) + _TRUST * (fitted - start)
        hessian = (design * (p * (1 - p))[:, None]).T @ design + _TRUST * np.eye(len(start))
        step = np.linalg.solve(hessian, gradient)
        step *= min(1.0, _FARTHEST / max(float(np.abs(design @ step).max(initial=0.0)), 1e-12))
        fitted = fitted - step
        if float(np.abs(step).max()) < 1e-6:
            break
    return fitted


def _loss(log_odds: FloatArray, frauds: FloatArray) -> FloatArray:
    loss: FloatArray = np.logaddexp(0.0, log_odds) - frauds * log_odds
    return loss
