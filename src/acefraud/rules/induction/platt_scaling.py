"""Calibration by Platt scaling: a level and a slope, fitted on the out-of-time cases."""

from __future__ import annotations

import numpy as np

from acefraud.core.arrays import BoolArray, FloatArray
from acefraud.rules.induction.fitting import FitCases, Fitted, margins, probabilities, threads_for

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


def _spoken(fitted: Fitted, masks: BoolArray, cases: FitCases) -> FloatArray:
    return margins(masks, cases, fitted) - fitted.calibration.intercept


def _slope(spoken: FloatArray, cases: FitCases, level: float) -> float:
    """Newton's method on level and slope, with a ridge that keeps the slope near one for few cases."""
    slope, counts = 1.0, cases.weights
    furthest = float(np.abs(spoken).max())
    for _ in range(50):
        p = probabilities(level + slope * spoken)
        error, curvature = counts * (p - cases.labels), counts * p * (1 - p)
        gradient = np.array([error.sum(), error @ spoken + (slope - 1.0)])
        cross = float(curvature @ spoken)
        hessian = np.array([[curvature.sum() + 1e-9, cross], [cross, curvature @ spoken**2 + 1.0]])
        step = np.linalg.solve(hessian, gradient)
        step *= min(1.0, _FARTHEST / max(abs(step[0]) + abs(step[1]) * furthest, 1e-12))
        before = level, slope
        level, slope = level - float(step[0]), float(np.clip(slope - float(step[1]), GENTLEST, STEEPEST))
        if max(abs(level - before[0]), abs(slope - before[1])) < 1e-9:
            break
    return slope


def _level(spoken: FloatArray, cases: FitCases, level: float) -> float:
    for _ in range(50):
        p = probabilities(level + spoken)
        step = float(cases.weights @ (cases.labels - p)) / max(float(cases.weights @ (p * (1 - p))), 1e-9)
        level += min(max(step, -_FARTHEST), _FARTHEST)
        if abs(step) < 1e-9:
            break
    return level
