"""Sparse logistic regression: the weights of all conditions, fitted together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from acefraud.core.calibration import Calibration
from acefraud.rules.scorecard import GENERAL
from acefraud.support.arrays import BoolArray, FloatArray

SMALL = 20_000_000
"""Cells up to which a matrix is multiplied on one thread."""


def threads_for(cells: int) -> AbstractContextManager[Any]:
    """Limits linear algebra to one thread if the matrix is small.

    An induction makes many small products. Split over threads, they mostly wait for each other: on a busy machine a
    run took five times as long.
    """
    return _threadpool().limit(limits=1, user_api="blas") if cells <= SMALL else nullcontext()


@cache
def _threadpool() -> ThreadpoolController:
    return ThreadpoolController()


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """How strongly weights are regularised."""

    certainty: float = 1.75
    """L1 penalty on each weight, in standard errors: a bullet that is worth less is dropped, and every other weight is
    shrunk by as much."""
    shrinkage: float = 1.0
    """L2 penalty on each weight."""
    trust_in_knowledge: float = 10.0
    """L2 penalty that keeps the scale of the scorecard near one while there are few cases."""
    steady_level: float = 0.1
    """How strongly the intercept is held at the share of fraud, as a share of its curvature. Without it the intercept
    rises until every honest case has to be argued down, and no bullet says what fraud looks like."""
    steps: int = 300


@dataclass(frozen=True, slots=True)
class FitCases:
    """The cases that weights are fitted on."""

    labels: BoolArray
    knowledge: FloatArray | None = None
    """The scorecard's sum for each case; None if general knowledge is not used."""
    offset: FloatArray | None = None
    """Log-odds that are not fitted."""
    counts: FloatArray | None = None
    """How many cases each row stands for, if rows were sampled."""
    usual: FloatArray | None = None
    """The share of fraud at the time of each case, if it changes."""
    targets: FloatArray | None = None
    """The probability of fraud that a fit should reproduce instead of the label."""

    @property
    def weights(self) -> FloatArray:
        """How many cases each row stands for."""
        return np.ones(len(self.labels)) if self.counts is None else self.counts

    def take(self, rows: BoolArray) -> FitCases:
        """Some of the cases."""
        parts = (self.knowledge, self.offset, self.counts, self.usual, self.targets)
        return FitCases(self.labels[rows], *(None if part is None else part[rows] for part in parts))

    @property
    def expected(self) -> BoolArray | FloatArray:
        """What a fit should predict: the targets, or the labels."""
        return self.labels if self.targets is None else self.targets

    @property
    def base_rate(self) -> float:
        """The share of fraud that is expected."""
        return float(self.weights @ self.expected / self.weights.sum())


@dataclass(frozen=True, slots=True)
class Fitted:
    """The weights of the conditions and their calibration."""

    weights: FloatArray
    calibration: Calibration

    def only(self, kept: BoolArray) -> Fitted:
        """Some of the weights, with the same calibration."""
        return replace(self, weights=self.weights[kept])


def probabilities(log_odds: FloatArray) -> FloatArray:
    """The logistic function of a column, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * np.clip(log_odds, -60, 60)))


def signs_of(masks: BoolArray, cases: FitCases) -> FloatArray:
    """The sign of each condition's own lift over the share of fraud at the time."""
    signs: FloatArray = np.sign(_excess(cases) @ masks)
    return signs


def _excess(cases: FitCases) -> FloatArray:
    """The label of each row minus the share of fraud at the time."""
    usual = cases.base_rate if cases.usual is None else cases.usual
    return cases.weights * (cases.labels - usual)


def margins(masks: BoolArray, cases: FitCases, fitted: Fitted) -> FloatArray:
    """The log-odds of each case."""
    frame = fitted.calibration
    known = frame.intercept if cases.knowledge is None else frame.intercept + frame.knowledge_scale * cases.knowledge
    given = known if cases.offset is None else known + cases.offset
    margin: npt.NDArray[Any] = given + masks.astype(np.float32) @ fitted.weights.astype(np.float32)
    return margin


def loss_of(fitted: Fitted, masks: BoolArray, cases: FitCases) -> float:
    """The mean log-loss."""
    margin = margins(masks, cases, fitted)
    return float(cases.weights @ (np.logaddexp(0.0, margin) - cases.labels * margin) / cases.weights.sum())


def fit(
    masks: BoolArray,
    cases: FitCases,
    options: FitOptions,
    start: Fitted | None = None,
    steps: int | None = None,
    *,
    prices: FloatArray | None = None,
) -> Fitted:
    """Sparse logistic regression by accelerated proximal gradient (FISTA), from `start` if given.

    Each weight keeps the sign of its condition's own lift, so a condition with more fraud than elsewhere never argues
    for approval because others overshot. That costs a little fit and keeps every reason readable. `prices` are factors
    on the L1 penalty of each weight.
    """
    begin = start or Fitted(np.zeros(masks.shape[1]), _first_frame(cases))
    groups = _Groups.of(masks, cases)
    # On some processors a product of finite matrices raises the flag for invalid values.
    with threads_for(groups.masks.size), np.errstate(invalid="ignore"):
        problem = _Problem(groups, options, begin, _first_frame(cases), prices)
        solution = _descend(problem, steps or options.steps)
    calibration = Calibration(
        intercept=float(solution[0]),
        knowledge_scale=float(solution[1]) if cases.knowledge is not None else 0.0,
        base_rate=cases.base_rate,
        cases=round(float(cases.weights.sum())),
    )
    return Fitted(solution[2:].astype(np.float64), calibration)


def _first_frame(cases: FitCases) -> Calibration:
    if cases.knowledge is not None:
        return GENERAL
    base = min(max(cases.base_rate, 1e-6), 1 - 1e-6)
    return Calibration(intercept=float(np.log(base / (1 - base))), knowledge_scale=0.0, base_rate=base)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rows on which the same conditions hold, grouped: to a fit they are one row. Usually there are far fewer."""

    masks: BoolArray
    knowledge: FloatArray | None
    offset: FloatArray | None
    counts: FloatArray
    """How many cases each group stands for..."""
    frauds: FloatArray
    """...and how many of them were fraud."""
    excess: FloatArray
    """How many more that is than expected at the time."""

    @classmethod
    def of(cls, masks: BoolArray, cases: FitCases) -> _Groups:
        given = (cases.knowledge, cases.offset)
        _, first, group = np.unique(
            _hashes(masks, [part for part in given if part is not None]), return_index=True, return_inverse=True
        )
        knowledge, offset = (None if part is None else part[first] for part in given)
        counts, frauds, excess = (
            np.bincount(group, part).astype(np.float64)
            for part in (cases.weights, cases.weights * cases.expected, _excess(cases))
        )
        return cls(masks[first], knowledge, offset, counts, frauds, excess)

    @property
    def as_cases(self) -> FitCases:
        """The groups as cases, for computing log-odds."""
        return FitCases(self.frauds > 0, self.knowledge, self.offset)


def _hashes(masks: BoolArray, columns: Sequence[FloatArray]) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each row's masks and columns."""
    packed = np.ascontiguousarray(np.packbits(masks, axis=1))
    width = -packed.shape[1] % 8
    words = np.pad(packed, ((0, 0), (0, width))).view(np.uint64)
    parts = [*words.T, *(np.ascontiguousarray(column, dtype=np.float64).view(np.uint64) for column in columns)]
    factors = np.random.default_rng(0).integers(1, 2**63, len(parts), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    found = np.zeros(len(masks), dtype=np.uint64)
    for part, factor in zip(parts, factors, strict=True):
        found = (found ^ part) * factor
        found ^= found >> np.uint64(29)
    return found


class _Problem:
    """The problem with columns scaled to equal curvature, so that rare and common conditions converge equally fast."""

    def __init__(
        self, groups: _Groups, options: FitOptions, start: Fitted, first: Calibration, prices: FloatArray | None
    ) -> None:
        count, conditions = groups.masks.shape
        has_knowledge = groups.knowledge is not None
        self.counts, self.frauds = groups.counts, groups.frauds
        self.offset = np.zeros(count) if groups.offset is None else groups.offset
        self.design = np.empty((count, conditions + 2), dtype=np.float32)
        self.design[:, 0], self.design[:, 2:] = 1.0, groups.masks
        self.design[:, 1] = 0.0 if groups.knowledge is None else groups.knowledge
        frame = start.calibration
        self.start = np.concatenate([[frame.intercept, frame.knowledge_scale], start.weights])
        self.anchor = np.array([first.intercept, 1.0])
        p = probabilities(margins(groups.masks, groups.as_cases, start))
        curvature = self.counts * np.maximum(p * (1 - p), 0.01)
        trust = options.trust_in_knowledge if has_knowledge else 1.0
        steady = 0.01 if has_knowledge else options.steady_level * float(curvature.sum())
        self.ridge = np.concatenate([[steady, trust], np.full(conditions, options.shrinkage)])
        exact = self.counts * p * (1 - p)
        sums = (
            np.stack([curvature, exact, groups.excess]).astype(np.float32) @ self.design
        )  # masks are their own squares
        information = sums[0]
        information[1] = curvature @ np.square(self.design[:, 1])
        self.scale = np.sqrt(information + self.ridge + 1e-3)
        self.lasso = np.concatenate([[0.0, 0.0], options.certainty * np.sqrt(np.maximum(sums[1, 2:], 0) + 1e-3)])
        if prices is not None:
            self.lasso[2:] *= prices
        self.signs = np.sign(sums[2, 2:])
        self.lipschitz = 1.3 * self._largest_curvature(curvature)

    def _largest_curvature(self, curvature: FloatArray) -> float:
        vector = np.ones(len(self.scale)) / np.sqrt(len(self.scale))
        largest = 1.0
        for _ in range(8):
            seen = self.design @ (vector / self.scale).astype(np.float32)
            moved = (self.design.T @ (curvature * seen).astype(np.float32)) / self.scale
            moved = moved + self.ridge * vector / np.square(self.scale)
            largest = float(np.linalg.norm(moved))
            vector = moved / largest
        return largest

    def gradient(self, scaled: FloatArray) -> FloatArray:
        """The gradient of the smooth part, in scaled coordinates."""
        plain = scaled / self.scale
        error = self.counts * probabilities(self.design @ plain.astype(np.float32) + self.offset) - self.frauds
        pull = self.ridge * plain
        pull[:2] -= self.ridge[:2] * self.anchor
        slope: FloatArray = ((self.design.T @ error.astype(np.float32)) + pull) / self.scale
        return slope

    def shrunk(self, moved: FloatArray) -> FloatArray:
        """A step after the L1 penalty and the sign constraint."""
        kept: FloatArray = np.sign(moved) * np.maximum(np.abs(moved) - self.lasso / self.scale / self.lipschitz, 0.0)
        kept[2:] = np.where(np.sign(kept[2:]) == self.signs, kept[2:], 0.0)
        kept[1] = max(0.0, kept[1])
        return kept


def _descend(problem: _Problem, steps: int) -> FloatArray:
    current: FloatArray = problem.start * problem.scale
    ahead, momentum = current.copy(), 1.0
    for _ in range(steps):
        following = problem.shrunk(ahead - problem.gradient(ahead) / problem.lipschitz)
        change = following - current
        if float((ahead - following) @ change) > 0:  # it overshot: restart the momentum
            momentum, ahead = 1.0, following.copy()
        else:
            faster = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
            ahead, momentum = following + (momentum - 1) / faster * change, faster
        current = following
        if float(np.abs(change).max()) < 1e-5 * max(1.0, float(np.abs(current).max())):
            break
    solution: FloatArray = current / problem.scale
    return solution


def strongest(masks: BoolArray, weights: FloatArray, most: int) -> BoolArray:
    """The conditions that count for each case if only so many may: those with the largest weights.

    >>> strongest(np.array([[True, True, True], [True, False, True]]), np.array([0.5, -2.0, 1.0]), 2).tolist()
    [[False, True, True], [True, False, True]]
    """
    if masks.shape[1] <= most:
        return masks
    crowded = np.flatnonzero(masks.sum(axis=1) > most)
    if not len(crowded):
        return masks
    part = np.ascontiguousarray(masks[crowded].T)
    spoken = np.zeros(len(crowded), dtype=np.int16)
    for place in np.argsort(-np.abs(weights), kind="stable").tolist():
        spoken += part[place]
        part[place] &= spoken <= most
    kept = masks.copy()
    kept[crowded] = part.T
    return kept
