"""Fitting the weights of conditions, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud.core.scoring import Calibration
from acefraud.embedded.induction.threads import threads_for
from acefraud.embedded.scorecard import GENERAL

Column = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """How strongly weights are held back."""

    certainty: float = 1.75
    """L1 on each weight, in standard errors of what its condition says beyond all others: a bullet that is worth less
    is not kept, and one that is kept is drawn to zero by as much."""
    shrinkage: float = 1.0
    """L2 on each weight."""
    trust_in_knowledge: float = 10.0
    """L2 that holds the scale of the scorecard at one while there are few cases to say otherwise."""
    steady_level: float = 0.1
    """How strongly the level is held at the share of fraud, as a share of what the cases say about it. Held loosely, it
    would rise until everything but fraud had to be argued down, and no bullet would say what fraud looks like."""
    steps: int = 300


@dataclass(frozen=True, slots=True)
class Cases:
    """What weights are fitted on."""

    labels: Mask
    knowledge: Column | None = None
    """The scorecard's sum for each case; None where general knowledge has no say."""
    offset: Column | None = None
    """Log-odds that are not to be fitted."""
    counts: Column | None = None
    """How many cases each row stands for, where rows were sampled."""
    usual: Column | None = None
    """The share of fraud at the time of each case, where it is known to change."""

    @property
    def weights(self) -> Column:
        """How many cases each row stands for."""
        return np.ones(len(self.labels)) if self.counts is None else self.counts

    def take(self, rows: Mask) -> Cases:
        """Some of the cases."""
        parts = (self.knowledge, self.offset, self.counts, self.usual)
        knowledge, offset, counts, usual = (None if part is None else part[rows] for part in parts)
        return Cases(self.labels[rows], knowledge, offset, counts, usual)

    @property
    def base_rate(self) -> float:
        """The share of fraud."""
        return float(self.weights @ self.labels / self.weights.sum())


@dataclass(frozen=True, slots=True)
class Fitted:
    """The weights of the conditions and the frame around them."""

    weights: Column
    calibration: Calibration

    def only(self, kept: Mask) -> Fitted:
        """The same with some of the weights."""
        return replace(self, weights=self.weights[kept])


def probabilities(log_odds: Column) -> Column:
    """The logistic function of a column, safe at both ends."""
    return 0.5 * (1.0 + np.tanh(0.5 * np.clip(log_odds, -60, 60)))


def signs_of(masks: Mask, cases: Cases) -> Column:
    """Which way each condition's own lift points, beside the share of fraud that was usual at the time."""
    signs: Column = np.sign(_excess(cases) @ masks)
    return signs


def _excess(cases: Cases) -> Column:
    """By how much each row is more of a fraud than was usual at the time."""
    usual = cases.base_rate if cases.usual is None else cases.usual
    return cases.weights * (cases.labels - usual)


def margins(masks: Mask, cases: Cases, fitted: Fitted) -> Column:
    """The log-odds of each case."""
    frame = fitted.calibration
    known = frame.intercept if cases.knowledge is None else frame.intercept + frame.knowledge_scale * cases.knowledge
    given = known if cases.offset is None else known + cases.offset
    margin: npt.NDArray[Any] = given + masks.astype(np.float32) @ fitted.weights.astype(np.float32)
    return margin


def loss_of(fitted: Fitted, masks: Mask, cases: Cases) -> float:
    """The mean log-loss."""
    margin = margins(masks, cases, fitted)
    return float(cases.weights @ (np.logaddexp(0.0, margin) - cases.labels * margin) / cases.weights.sum())


def fit(
    masks: Mask, cases: Cases, options: FitOptions, start: Fitted | None = None, steps: int | None = None
) -> Fitted:
    """Sparse logistic regression by accelerated proximal gradient, from `start` where there is one.

    Each weight keeps the sign of its condition's own lift: a condition under which more was fraud than elsewhere
    never argues for approval because others overshot. It costs a little fit and keeps every reason readable.
    """
    begin = start or Fitted(np.zeros(masks.shape[1]), _first_frame(cases))
    groups = _Groups.of(masks, cases)
    with threads_for(groups.masks.size):
        problem = _Problem(groups, options, begin, _first_frame(cases))
        solution = _descend(problem, steps or options.steps)
    calibration = Calibration(
        intercept=float(solution[0]),
        knowledge_scale=float(solution[1]) if cases.knowledge is not None else 0.0,
        base_rate=cases.base_rate,
        cases=round(float(cases.weights.sum())),
    )
    return Fitted(solution[2:].astype(np.float64), calibration)


def _first_frame(cases: Cases) -> Calibration:
    if cases.knowledge is not None:
        return GENERAL
    base = min(max(cases.base_rate, 1e-6), 1 - 1e-6)
    return Calibration(intercept=float(np.log(base / (1 - base))), knowledge_scale=0.0, base_rate=base)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rows of which the same conditions hold, put together: to a fit they are one. Mostly there are far fewer."""

    masks: Mask
    knowledge: Column | None
    offset: Column | None
    counts: Column
    """How many cases each group stands for..."""
    frauds: Column
    """...and how many of them were fraud."""
    excess: Column
    """By how many that is more than was usual."""

    @classmethod
    def of(cls, masks: Mask, cases: Cases) -> _Groups:
        given = (cases.knowledge, cases.offset)
        _, first, group = np.unique(
            _hashes(masks, [part for part in given if part is not None]), return_index=True, return_inverse=True
        )
        knowledge, offset = (None if part is None else part[first] for part in given)
        counts, frauds, excess = (
            np.bincount(group, part).astype(np.float64)
            for part in (cases.weights, cases.weights * cases.labels, _excess(cases))
        )
        return cls(masks[first], knowledge, offset, counts, frauds, excess)

    @property
    def as_cases(self) -> Cases:
        """The groups, as far as the log-odds of a case go."""
        return Cases(self.frauds > 0, self.knowledge, self.offset)


def _hashes(masks: Mask, columns: Sequence[Column]) -> npt.NDArray[np.uint64]:
    """A number for each row, by which rows with the same masks and columns are known (of 2**64: none will clash)."""
    packed = np.packbits(masks, axis=1)
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
    """Columns are scaled to the same curvature, so that rare and common conditions settle equally fast."""

    def __init__(self, groups: _Groups, options: FitOptions, start: Fitted, first: Calibration) -> None:
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
        self.signs = np.sign(sums[2, 2:])
        self.lipschitz = 1.3 * self._largest_curvature(curvature)

    def _largest_curvature(self, curvature: Column) -> float:
        vector = np.ones(len(self.scale)) / np.sqrt(len(self.scale))
        largest = 1.0
        for _ in range(8):
            seen = self.design @ (vector / self.scale).astype(np.float32)
            moved = (self.design.T @ (curvature * seen).astype(np.float32)) / self.scale
            moved = moved + self.ridge * vector / np.square(self.scale)
            largest = float(np.linalg.norm(moved))
            vector = moved / largest
        return largest

    def gradient(self, scaled: Column) -> Column:
        """Of the smooth part, in scaled coordinates."""
        plain = scaled / self.scale
        error = self.counts * probabilities(self.design @ plain.astype(np.float32) + self.offset) - self.frauds
        pull = self.ridge * plain
        pull[:2] -= self.ridge[:2] * self.anchor
        slope: Column = ((self.design.T @ error.astype(np.float32)) + pull) / self.scale
        return slope

    def shrunk(self, moved: Column) -> Column:
        """What the penalty and the signs leave of a step."""
        kept: Column = np.sign(moved) * np.maximum(np.abs(moved) - self.lasso / self.scale / self.lipschitz, 0.0)
        kept[2:] = np.where(np.sign(kept[2:]) == self.signs, kept[2:], 0.0)
        kept[1] = max(0.0, kept[1])
        return kept


def _descend(problem: _Problem, steps: int) -> Column:
    current: Column = problem.start * problem.scale
    ahead, momentum = current.copy(), 1.0
    for _ in range(steps):
        following = problem.shrunk(ahead - problem.gradient(ahead) / problem.lipschitz)
        change = following - current
        if float((ahead - following) @ change) > 0:  # it overshot: start to gather speed anew
            momentum, ahead = 1.0, following.copy()
        else:
            faster = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
            ahead, momentum = following + (momentum - 1) / faster * change, faster
        current = following
        if float(np.abs(change).max()) < 1e-5 * max(1.0, float(np.abs(current).max())):
            break
    solution: Column = current / problem.scale
    return solution


def strongest(masks: Mask, weights: Column, most: int) -> Mask:
    """The conditions that speak for each case where only so many may: those with the largest weights.

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
