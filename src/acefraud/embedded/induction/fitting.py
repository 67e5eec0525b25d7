"""Fitting the weights of conditions, all at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.scoring import Calibration
from acefraud.embedded.induction.threads import threads_for
from acefraud.embedded.scorecard import GENERAL

Column = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """How strongly weights are held back."""

    sparsity: float = 2.0
    """L1 on each weight, in units of the summed log-loss: what a bullet must be worth to be kept at all."""
    shrinkage: float = 1.0
    """L2 on each weight."""
    trust_in_knowledge: float = 10.0
    """L2 that holds the scale of the scorecard at one while there are few cases to say otherwise."""
    steps: int = 300


@dataclass(frozen=True, slots=True)
class Fitted:
    """The weights of the conditions and the frame around them."""

    weights: Column
    calibration: Calibration


def probabilities(log_odds: Column) -> Column:
    """The logistic function of a column, safe at both ends."""
    return 0.5 * (1.0 + np.tanh(0.5 * np.clip(log_odds, -60, 60)))


def fit(
    masks: Column,
    knowledge: Column,
    labels: npt.NDArray[np.bool_],
    options: FitOptions,
    offset: Column | None = None,
) -> Fitted:
    """Logistic regression by accelerated proximal gradient. `offset` is log-odds that are not to be fitted.

    Each weight keeps the sign of its condition's own lift: a condition under which more was fraud than elsewhere
    never argues for approval because others overshot. It costs a little fit and keeps every reason readable.
    """
    y = labels.astype(np.float64)
    base_rate = float(y.mean())
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(masks.sum(0) > 0, (masks * y[:, None]).sum(0) / masks.sum(0), base_rate)
    signs = np.sign(precision - base_rate)
    design = np.column_stack([np.ones(len(y)), knowledge, masks])
    start = np.concatenate([[GENERAL.intercept, 1.0], np.zeros(masks.shape[1])])
    ridge = np.concatenate([[0.01, options.trust_in_knowledge], np.full(masks.shape[1], options.shrinkage)])
    lasso = np.concatenate([[0.0, 0.0], np.full(masks.shape[1], options.sparsity)])
    with threads_for(design.size):
        given = np.zeros(len(y)) if offset is None else offset
        problem = _Problem(design, y, given, start, ridge, lasso, signs)
        solution = _descend(problem, options.steps)
    calibration = Calibration(
        intercept=float(solution[0]),
        knowledge_scale=float(max(0.0, solution[1])),
        base_rate=base_rate,
        cases=len(y),
    )
    return Fitted(solution[2:], calibration)


@dataclass(frozen=True, slots=True)
class _Problem:
    design: Column
    y: Column
    offset: Column
    start: Column
    ridge: Column
    lasso: Column
    signs: Column


def _descend(problem: _Problem, steps: int) -> Column:
    design, start = problem.design, problem.start
    lipschitz = 0.25 * float(np.linalg.eigvalsh(design.T @ design)[-1]) + float(problem.ridge.max())
    current, ahead, momentum = start.copy(), start.copy(), 1.0
    for _ in range(steps):
        error = probabilities(design @ ahead + problem.offset) - problem.y
        moved = ahead - (design.T @ error + problem.ridge * (ahead - start)) / lipschitz
        shrunk = np.sign(moved) * np.maximum(np.abs(moved) - problem.lasso / lipschitz, 0.0)
        shrunk[2:] = np.where(np.sign(shrunk[2:]) == problem.signs, shrunk[2:], 0.0)
        shrunk[1] = max(0.0, shrunk[1])
        following = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        ahead = shrunk + (momentum - 1) / following * (shrunk - current)
        if float(np.abs(shrunk - current).max()) < 1e-6:
            return shrunk
        current, momentum = shrunk, following
    return current
