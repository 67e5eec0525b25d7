"""Calibration by Platt scaling: a level and a slope, fitted on the out-of-time cases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acefraud.rules.induction.fitting import FitCases, Fitted, margins, probabilities, threads_for
from acefraud.support.arrays import BoolArray, FloatArray

ENOUGH = 20
"""Frauds, and other cases, needed to calibrate."""
GENTLEST, STEEPEST = 0.5, 2.0
_FARTHEST = 1.0
"""The most that one Newton step may add to the log-odds of a case. Longer steps land where the curve is flat."""


def slope_of(fitted: Fitted, masks: BoolArray, cases: FitCases) -> float:
    """The factor on all weights that fits these cases best."""
    if not _enough(cases):
        return 1.0
    with threads_for(masks.size):
        return _slope(_spoken(fitted, masks, cases), cases, fitted.calibration.intercept)


def levelled(fitted: Fitted, slope: float, masks: BoolArray, cases: FitCases) -> Fitted:
    """All weights times a slope, with the intercept fitted to these cases. The ranking stays."""
    if not _enough(cases):
        return fitted
    frame = fitted.calibration
    with threads_for(masks.size):
        level = _level(slope * _spoken(fitted, masks, cases), cases, frame.intercept)
    scale = frame.knowledge_scale * slope
    changes = {"intercept": level, "knowledge_scale": scale, "base_rate": cases.base_rate}
    return Fitted(fitted.weights * slope, frame.model_copy(update=changes))


def calibrated(fitted: Fitted, masks: BoolArray, cases: FitCases) -> Fitted:
    """Slope and level fitted on the same cases."""
    return levelled(fitted, slope_of(fitted, masks, cases), masks, cases)


def _enough(cases: FitCases) -> bool:
    return min(int(cases.labels.sum()), int((~cases.labels).sum())) >= ENOUGH


def separation(fitted: Fitted, masks: BoolArray, cases: FitCases) -> float:
    """How far apart the log-odds of frauds and of other cases are, in standard errors under chance."""
    if not len(cases.labels):
        return 0.0
    spoken, usual = _spoken(fitted, masks, cases), cases.base_rate
    apart = cases.weights * (spoken - float(cases.weights @ spoken / cases.weights.sum()))
    error = float(np.sqrt(usual * (1 - usual) * (apart @ apart)))
    return float(apart @ (cases.labels - usual)) / error if error else 0.0


def _spoken(fitted: Fitted, masks: BoolArray, cases: FitCases) -> FloatArray:
    return margins(masks, cases, fitted) - fitted.calibration.intercept


@dataclass(frozen=True, slots=True)
class _ScoreGroups:
    """Cases of which the bullets say the same, grouped: far fewer than cases."""

    spoken: FloatArray
    counts: FloatArray
    frauds: FloatArray

    @classmethod
    def of(cls, spoken: FloatArray, cases: FitCases) -> _ScoreGroups:
        values, group = np.unique(spoken, return_inverse=True)
        counts, frauds = (
            np.bincount(group, part).astype(np.float64) for part in (cases.weights, cases.weights * cases.labels)
        )
        return cls(values, counts, frauds)


def _slope(spoken: FloatArray, cases: FitCases, level: float) -> float:
    """Newton's method on level and slope, with a ridge that keeps the slope near one for few cases."""
    groups, slope = _ScoreGroups.of(spoken, cases), 1.0
    said, counts = groups.spoken, groups.counts
    furthest = float(np.abs(said).max())
    for _ in range(50):
        p = probabilities(level + slope * said)
        error, curvature = counts * p - groups.frauds, counts * p * (1 - p)
        gradient = np.array([error.sum(), error @ said + (slope - 1.0)])
        cross = float(curvature @ said)
        hessian = np.array([[curvature.sum() + 1e-9, cross], [cross, curvature @ said**2 + 1.0]])
        step = np.linalg.solve(hessian, gradient)
        step *= min(1.0, _FARTHEST / max(abs(step[0]) + abs(step[1]) * furthest, 1e-12))
        before = level, slope
        level, slope = level - float(step[0]), float(np.clip(slope - float(step[1]), GENTLEST, STEEPEST))
        if max(abs(level - before[0]), abs(slope - before[1])) < 1e-9:
            break
    return slope


def _level(spoken: FloatArray, cases: FitCases, level: float) -> float:
    groups = _ScoreGroups.of(spoken, cases)
    frauds = float(groups.frauds.sum())
    for _ in range(50):
        p = probabilities(level + groups.spoken)
        step = (frauds - float(groups.counts @ p)) / max(float(groups.counts @ (p * (1 - p))), 1e-9)
        level += min(max(step, -_FARTHEST), _FARTHEST)
        if abs(step) < 1e-9:
            break
    return level
