"""Fits: the weights of all conditions together, their calibration, and the points of the scorecard."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from acefraud.core.calibration import Calibration
from acefraud.core.table import FactTable
from acefraud.rules.scorecard import GENERAL, lines_in, score_in, scorecard
from acefraud.support.arrays import BoolArray, FloatArray, IntArray
from acefraud.support.exact_math import log, sigmoid_of, softplus_of
from acefraud.support.exact_sums import MaskProducts, cut, solve

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

    def take(self, rows: BoolArray | IntArray) -> FitCases:
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
        return float((self.weights * self.expected).sum() / self.weights.sum())


@dataclass(frozen=True, slots=True)
class Fitted:
    """The weights of the conditions and their calibration."""

    weights: FloatArray
    calibration: Calibration

    def only(self, kept: BoolArray) -> Fitted:
        """Some of the weights, with the same calibration."""
        return replace(self, weights=self.weights[kept])


_PROBABILITY = 2.0**-32
"""The unit of probabilities in a fit."""
_UNSURE = 1e-4
"""How near to the middle between two units a probability is computed again. The errors of any processor's hyperbolic
tangent, a few units in the last place, are less than a tenth of this."""


def probabilities(log_odds: FloatArray) -> FloatArray:
    """The logistic function of a column, without overflow, to the same bits on every processor.

    It is rounded so far that the errors of a fast function do not matter, but for the few values that lie in the middle
    between two units.
    """
    exact = np.tanh(0.5 * np.clip(log_odds, -60, 60))
    exact += 1.0
    exact *= 0.5 / _PROBABILITY
    whole = np.rint(exact)
    exact -= whole
    unsure = np.flatnonzero(np.abs(exact, out=exact) > 0.5 - _UNSURE)
    if len(unsure):
        whole[unsure] = np.rint(sigmoid_of(log_odds[unsure]) * (1 / _PROBABILITY))
    whole *= _PROBABILITY
    return whole


def signs_of(masks: BoolArray, cases: FitCases) -> FloatArray:
    """The sign of each condition's own lift over the share of fraud at the time."""
    return np.sign(cut(_excess(cases)) @ masks)


def _excess(cases: FitCases) -> FloatArray:
    """The label of each row minus the share of fraud at the time."""
    usual = cases.base_rate if cases.usual is None else cases.usual
    return cases.weights * (cases.labels - usual)


def margins(masks: BoolArray, cases: FitCases, fitted: Fitted) -> FloatArray:
    """The log-odds of each case."""
    frame = fitted.calibration
    known = frame.intercept if cases.knowledge is None else frame.intercept + frame.knowledge_scale * cases.knowledge
    given = known if cases.offset is None else known + cases.offset
    return MaskProducts(masks).by_row(fitted.weights) + given


def loss_of(fitted: Fitted, masks: BoolArray, cases: FitCases) -> float:
    """The mean log-loss."""
    margin = margins(masks, cases, fitted)
    return float((cases.weights * _loss(margin, cases.labels)).sum() / cases.weights.sum())


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
    return Calibration(intercept=log(base / (1 - base)), knowledge_scale=0.0, base_rate=base)


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
        summed = (cases.weights, cases.weights * cases.expected, _excess(cases))
        return cls(masks[first], knowledge, offset, *(np.bincount(group, part).astype(np.float64) for part in summed))


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


_LONG, _STABLE = 30, 1.25
"""Steps after which most fits have settled, and how many times the assumed curvature is allowed on later ones."""


class _Problem:
    """The problem with columns scaled to equal curvature, so that rare and common conditions converge equally fast."""

    def __init__(
        self, groups: _Groups, options: FitOptions, start: Fitted, first: Calibration, prices: FloatArray | None
    ) -> None:
        count, conditions = groups.masks.shape
        has_knowledge = groups.knowledge is not None
        self.counts, self.frauds = groups.counts, groups.frauds
        self.offset = np.zeros(count) if groups.offset is None else groups.offset
        self.knowledge = groups.knowledge
        self.products = MaskProducts(groups.masks)
        frame = start.calibration
        self.start = np.concatenate([[frame.intercept, frame.knowledge_scale], start.weights])
        self.anchor = np.array([first.intercept, 1.0])
        p = probabilities(self._margins(self.start) + self.offset)
        curvature = self.counts * np.maximum(p * (1 - p), 0.01)
        trust = options.trust_in_knowledge if has_knowledge else 1.0
        steady = 0.01 if has_knowledge else options.steady_level * float(curvature.sum())
        self.ridge = np.concatenate([[steady, trust], np.full(conditions, options.shrinkage)])
        information = self._sums(curvature)  # masks are their own squares
        information[1] = 0.0 if self.knowledge is None else (curvature * np.square(self.knowledge)).sum()
        self.scale = np.sqrt(information + self.ridge + 1e-3)
        exact = self.products.by_column(self.counts * p * (1 - p))
        self.lasso = np.concatenate([[0.0, 0.0], options.certainty * np.sqrt(exact + 1e-3)])
        if prices is not None:
            self.lasso[2:] *= prices
        self.signs = np.sign(self.products.by_column(groups.excess))
        self.lipschitz = 1.3 * self._largest_curvature(curvature)

    def _margins(self, plain: FloatArray) -> FloatArray:
        """The log-odds of each group with these coefficients, less the offset."""
        found = self.products.by_row(plain[2:])
        found += plain[0]
        if self.knowledge is not None:
            found += plain[1] * self.knowledge
        return found

    def _sums(self, numbers: FloatArray) -> FloatArray:
        """For each coefficient the sum of these numbers over the groups that it counts in."""
        known = 0.0 if self.knowledge is None else float((numbers * self.knowledge).sum())
        return np.concatenate([[numbers.sum(), known], self.products.by_column(numbers)])

    def _largest_curvature(self, curvature: FloatArray) -> float:
        vector = np.ones(len(self.scale)) / np.sqrt(len(self.scale))
        largest = 1.0
        for _ in range(8):
            moved = self._sums(curvature * self._margins(vector / self.scale)) / self.scale
            moved += self.ridge * vector / np.square(self.scale)
            largest = float(np.sqrt(np.square(moved).sum()))
            vector = moved / largest
        return largest

    def gradient(self, scaled: FloatArray) -> FloatArray:
        """The gradient of the smooth part, in scaled coordinates."""
        plain = scaled / self.scale
        error = self.counts * probabilities(self._margins(plain) + self.offset) - self.frauds
        pull = self.ridge * plain
        pull[:2] -= self.ridge[:2] * self.anchor
        slope: FloatArray = (self._sums(error) + pull) / self.scale
        return slope

    def shorten(self, way: FloatArray, turned: FloatArray) -> None:
        """Make steps shorter if the slope turned so much on this way that they would never settle.

        Away from the start the curvature may be many times larger than there: next to a rule that holds on nearly all
        frauds, the level falls far.
        """
        while float((turned * way).sum()) > _STABLE * self.lipschitz * float(np.square(way).sum()):
            self.lipschitz *= _STABLE

    def shrunk(self, moved: FloatArray) -> FloatArray:
        """A step after the L1 penalty and the sign constraint."""
        kept: FloatArray = np.sign(moved) * np.maximum(np.abs(moved) - self.lasso / self.scale / self.lipschitz, 0.0)
        kept[2:] = np.where(np.sign(kept[2:]) == self.signs, kept[2:], 0.0)
        kept[1] = max(0.0, kept[1])
        return kept


def _descend(problem: _Problem, steps: int) -> FloatArray:
    current: FloatArray = problem.start * problem.scale
    ahead, momentum = current.copy(), 1.0
    last, last_slope = ahead, np.zeros(len(ahead))
    for step in range(steps):
        slope = problem.gradient(ahead)
        if step > _LONG:
            problem.shorten(ahead - last, slope - last_slope)
        last, last_slope = ahead, slope
        following = problem.shrunk(ahead - slope / problem.lipschitz)
        change = following - current
        if float(((ahead - following) * change).sum()) > 0:  # it overshot: restart the momentum
            momentum, ahead = 1.0, following.copy()
        else:
            faster = 0.5 * (1 + np.sqrt(1 + 4 * momentum * momentum))
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
    for at in np.argsort(-np.abs(weights), kind="stable").tolist():
        spoken += part[at]
        part[at] &= spoken <= most
    kept = masks.copy()
    kept[crowded] = part.T
    return kept


# --- calibration by Platt scaling: a level and a slope, fitted on the out-of-time cases ---

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
    apart = cases.weights * (spoken - float((cases.weights * spoken).sum() / cases.weights.sum()))
    error = float(np.sqrt(usual * (1 - usual) * np.square(apart).sum()))
    return float((apart * (cases.labels - usual)).sum()) / error if error else 0.0


def _spoken(fitted: Fitted, masks: BoolArray, cases: FitCases) -> FloatArray:
    return margins(masks, cases, fitted) - fitted.calibration.intercept


def _by_score(spoken: FloatArray, cases: FitCases) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What the bullets say of cases, how many cases that is each, and how many frauds: far fewer groups than cases."""
    values, group = np.unique(spoken, return_inverse=True)
    summed = (cases.weights, cases.weights * cases.labels)
    counts, frauds = (np.bincount(group, part).astype(np.float64) for part in summed)
    return values, counts, frauds


def _slope(spoken: FloatArray, cases: FitCases, level: float) -> float:
    """Newton's method on level and slope, with a ridge that keeps the slope near one for few cases."""
    (said, counts, frauds), slope = _by_score(spoken, cases), 1.0
    furthest = float(np.abs(said).max())
    for _ in range(50):
        p = probabilities(level + slope * said)
        error, curvature = counts * p - frauds, counts * p * (1 - p)
        gradient = np.array([error.sum(), (error * said).sum() + (slope - 1.0)])
        cross = float((curvature * said).sum())
        hessian = np.array([[curvature.sum() + 1e-9, cross], [cross, (curvature * np.square(said)).sum() + 1.0]])
        step = solve(hessian, gradient)
        step *= min(1.0, _FARTHEST / max(abs(step[0]) + abs(step[1]) * furthest, 1e-12))
        before = level, slope
        level, slope = level - float(step[0]), float(np.clip(slope - float(step[1]), GENTLEST, STEEPEST))
        if max(abs(level - before[0]), abs(slope - before[1])) < 1e-9:
            break
    return slope


def _level(spoken: FloatArray, cases: FitCases, level: float) -> float:
    said, counts, frauds = _by_score(spoken, cases)
    for _ in range(50):
        p = probabilities(level + said)
        step = (float(frauds.sum()) - float((counts * p).sum())) / max(float((counts * p * (1 - p)).sum()), 1e-9)
        level += min(max(step, -_FARTHEST), _FARTHEST)
        if abs(step) < 1e-9:
            break
    return level


# --- small histories: a rule must improve on general knowledge on cases that its weight was not fitted on ---

# With some hundred cases the out-of-time part is too small to refute much. Cross-validation uses every case twice: to
# fit a weight and, in another fold, to judge it.
_FOLDS = 5
_STEPS = 6
_LEAST_GAIN = 1.0
"""Nats by which a rule must lower the log-loss of unseen cases in all."""


def improving(masks: BoolArray, cases: FitCases, fitted: Fitted, options: FitOptions) -> BoolArray:
    """The conditions that lower the log-loss of unseen cases, one after the other, the strongest first."""
    alone = fit(masks[:, :0], cases, options)
    log_odds = margins(masks[:, :0], cases, alone)
    strength = np.abs(fitted.weights) * np.sqrt(cut(cases.weights) @ masks)
    fold = np.random.default_rng(0).permutation(len(log_odds)) % _FOLDS
    kept = np.zeros(masks.shape[1], dtype=np.bool_)
    for at in np.argsort(-strength, kind="stable").tolist():
        if strength[at] == 0:
            break
        rows = np.flatnonzero(masks[:, at])
        odds, frauds, folds = log_odds[rows], cases.labels[rows], fold[rows]
        apart = [_weight(odds[folds != each], frauds[folds != each], options.shrinkage) for each in range(_FOLDS)]
        moved = odds + np.array(apart)[folds]
        gain = float((_loss(odds, frauds) - _loss(moved, frauds)).sum())
        if gain > _LEAST_GAIN:
            kept[at] = True
            log_odds[rows] = moved
            log_odds += _weight(log_odds, cases.labels, options.shrinkage)  # the level moves with every rule
    return kept


def _weight(log_odds: FloatArray, frauds: BoolArray, ridge: float) -> float:
    """What has to be added to the log-odds of these cases, by Newton's method."""
    weight = 0.0
    for _ in range(_STEPS):
        p = probabilities(log_odds + weight)
        step = (float((frauds - p).sum()) - ridge * weight) / (float((p * (1 - p)).sum()) + ridge)
        weight += min(max(step, -1.0), 1.0)
    return weight


def _loss(log_odds: FloatArray, frauds: BoolArray | FloatArray) -> FloatArray:
    return softplus_of(log_odds) - frauds * log_odds


# --- the points of the scorecard, fitted to labelled cases and shrunk towards where they started ---

# Knowledge adapts before new bullets can be proven: a line needs far fewer cases to be corrected than a condition needs
# to be found. The fit counts only if it predicts cases that it has not seen better than the scorecard as it ships.
_TRUST = 5.0
"""L2 penalty on the difference of each line to its own points, and of the intercept to its own: as much as about
twenty cases on which a line applies."""
_ERRORS, _LEAST_POINT_GAIN = 1.0, 2.0
"""Standard errors, and nats in all, by which the log-loss of unseen cases must fall for a fit to count. Where the
scorecard is nearly always right, the gains are tiny but all alike, so that their error says nothing."""
MOST_POINT_CASES = 20_000
"""Cases that points are fitted to, the latest ones."""
_POINT_STEPS, _FARTHEST_POINT = 30, 2.0
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
    lines, frauds = lines_in(facts), labels.astype(np.float64)
    design = np.column_stack([np.ones(len(frauds), dtype=np.bool_), lines])
    with threads_for(design.size):
        fold = np.random.default_rng(0).permutation(len(frauds)) % _FOLDS
        apart = np.stack([_fit_points(design[fold != each], frauds[fold != each]) for each in range(_FOLDS)])[fold]
        gains = _loss((design * _shipped()).sum(axis=1), frauds) - _loss((design * apart).sum(axis=1), frauds)
        if gains.sum() <= max(_LEAST_POINT_GAIN, _ERRORS * gains.std() * np.sqrt(len(gains))):
            return FittedPoints(score_in(facts))
        fitted = zip(scorecard(), _fit_points(design, frauds)[1:].tolist(), lines.sum(axis=0).tolist(), strict=True)
        points = {point.line: round(value, 4) for point, value, count in fitted if count}
    return FittedPoints((lines * apart[:, 1:]).sum(axis=1), points)


def _shipped() -> FloatArray:
    return np.array([GENERAL.intercept, *(point.points for point in scorecard())])


def _fit_points(design: BoolArray, frauds: FloatArray) -> FloatArray:
    """Logistic regression by Newton's method, with a ridge towards the scorecard as it ships."""
    start, products = _shipped(), MaskProducts(design)
    fitted = start.copy()
    for _ in range(_POINT_STEPS):
        p = probabilities(products.by_row(fitted))
        gradient = products.by_column(p - frauds) + _TRUST * (fitted - start)
        hessian = (design * cut(p * (1 - p))[:, None]).T @ design + _TRUST * np.eye(len(start))
        step = solve(hessian, gradient)
        step *= min(1.0, _FARTHEST_POINT / max(float(np.abs(products.by_row(step)).max(initial=0.0)), 1e-12))
        fitted = fitted - step
        if float(np.abs(step).max()) < 1e-6:
            break
    return fitted
