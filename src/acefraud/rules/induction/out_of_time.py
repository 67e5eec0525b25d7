"""The out-of-time check: whether a condition still holds on later cases than it was found on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import ENOUGH_TO_SHOW, Z95, Record
from acefraud.support.arrays import BoolArray, FloatArray, IntArray

ENOUGH = 10
"""Later cases from which on their record decides. Fewer must contradict a condition beyond chance to reject it."""
KEPT = 0.25
"""The share of its effect on the log-odds that a condition must keep, within a standard error. A chance finding keeps
none."""
LEAST_LIFT = 0.05
"""How far the record that is shown must be from the base rate, as a share of it."""
STOPPED = 0.1
"""A condition that later holds at less than this share of its earlier rate has stopped."""
NARROWEST, WIDEST = 2.0, 4.0
"""Bounds of the spread. Future cases have noise and drift of their own: with less than twice the binomial width, fewer
than nine in ten intervals held on later data (docs/quality.md)."""
STRETCHES = 8
"""Parts into which the time before the cut is divided to follow the share of fraud."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The record of a condition before and after the cut, and the conclusions."""

    learnt: Record
    later: Record
    base_rate: float
    """The share of fraud among all cases of the period whose record is shown."""
    cases: int
    """The number of cases in that period."""
    side: float
    """What it argues for: 1 if it has more fraud than usual, else -1."""
    holds_up: bool
    stopped: bool
    span: tuple[int, int] | None
    """The first and the last case on which it held."""


@dataclass(frozen=True, slots=True)
class Periods:
    """Labelled cases by period, a few before the cut and one after it, with the share of fraud in each."""

    codes: npt.NDArray[np.uint8]
    """For each case twice its period, and one more if it was fraud. The order of cases does not matter."""
    shares: FloatArray
    """The share of fraud in each period, smoothed a little towards that of all."""
    totals: IntArray
    """How many cases have each code."""

    @classmethod
    def of(cls, labels: BoolArray, cut: int, weights: FloatArray | None = None) -> Periods:
        """The periods of cases in order of time. Weights count for the shares alone."""
        period = np.minimum(np.arange(len(labels)) * STRETCHES // max(1, cut), STRETCHES)
        codes = (2 * period + labels).astype(np.uint8)
        totals = np.bincount(codes, minlength=2 * STRETCHES + 2)
        counts = (totals if weights is None else np.bincount(codes, weights, 2 * STRETCHES + 2)).reshape(-1, 2)
        frauds, cases = counts[:, 1], counts.sum(axis=1)
        overall = float(frauds.sum() / cases.sum()) if len(labels) else 0.0
        return cls(codes, (frauds + overall) / (cases + 1), totals)

    @property
    def usual(self) -> FloatArray:
        """The share of fraud at the time of each case."""
        return self.shares[self.codes // 2]

    def in_rows(self, order: IntArray) -> Periods:
        """The periods of the rows of a table. `order` has the row of each case."""
        codes = np.empty_like(self.codes)
        codes[order] = self.codes
        return replace(self, codes=codes)


def check(mask: BoolArray, periods: Periods, span: tuple[int, int] | None = None) -> Checked:
    """Compare the cases after the cut with those before it, beside the share of fraud that was usual at the time.

    >>> labels = np.array([True] * 20 + [False] * 60 + [True] * 5 + [False] * 15)
    >>> even = np.arange(100) % 4 == 0
    >>> check(even, Periods.of(even, 80)).holds_up
    True
    >>> check(np.arange(1000) < 200, Periods.of(np.repeat(labels, 10), 800)).stopped
    True
    """
    counts = np.bincount(periods.codes[mask], minlength=len(periods.totals)).reshape(-1, 2)
    totals = periods.totals.reshape(-1, 2)
    learnt, later = (Record(support=int(part.sum()), frauds=int(part[:, 1].sum())) for part in _split(counts))
    before, after = (int(part.sum()) for part in _split(totals))
    stopped = later.support < STOPPED * learnt.support * after / max(1, before) - 2
    then, now = (_Excess.of(part, shares) for part, shares in zip(_split(counts), _split(periods.shares), strict=True))
    side = float(np.sign(then.frauds))
    kept = side * now.effect + now.error >= KEPT * side * then.effect
    confirmed = side * now.effect > 0 and kept if later.support >= ENOUGH else side * now.deviation > -1
    shown = _split(totals)[later.support >= ENOUGH_TO_SHOW]
    cases = int(shown.sum())
    base_rate = float(shown[:, 1].sum() / cases) if cases else 0.0
    record = later if later.support >= ENOUGH_TO_SHOW else learnt
    agrees = side * ((record.precision or 0.0) - base_rate) > LEAST_LIFT * base_rate
    return Checked(learnt, later, base_rate, cases, side, confirmed and agrees and not stopped, stopped, span)


def span_of(mask: BoolArray) -> tuple[int, int] | None:
    """The first and the last case on which a condition holds."""
    return (int(mask.argmax()), len(mask) - 1 - int(mask[::-1].argmax())) if mask.any() else None


def _split(by_period: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """What belongs to the periods before the cut, and to the one after it."""
    return by_period[:-1], by_period[-1:]


def spread_of(checked: Sequence[Checked]) -> float:
    """How much wider than binomial the intervals must be for 95 % of them to hold.

    Measured by how far the records of all conditions moved out of time. That covers both selection bias and drift.
    """
    moves = [_move(one) for one in checked if one.later.support >= ENOUGH and one.learnt.support and not one.stopped]
    if len(moves) < ENOUGH:
        return NARROWEST
    return float(min(max(np.quantile(moves, 0.95) / Z95, NARROWEST), WIDEST))


def _move(one: Checked) -> float:
    """How far the share of fraud moved, in standard errors of the later record."""
    support, frauds = one.learnt.support + one.later.support, one.learnt.frauds + one.later.frauds
    share = (frauds + 1) / (support + 2)
    moved = one.later.frauds / one.later.support - one.learnt.frauds / one.learnt.support
    return abs(moved) / math.sqrt(share * (1 - share) / one.later.support)


def record_of(mask: BoolArray, labels: BoolArray) -> Record:
    """How often a condition held, and how often that was fraud."""
    return Record(support=int(mask.sum()), frauds=int((mask & labels).sum()))


@dataclass(frozen=True, slots=True)
class _Excess:
    """Frauds above expectation, and the variance of that number under chance."""

    frauds: float
    variance: float

    @classmethod
    def of(cls, counts: IntArray, shares: FloatArray) -> _Excess:
        cases = counts.sum(axis=1)
        return cls(float((counts[:, 1] - cases * shares).sum()), float((cases * shares * (1 - shares)).sum()))

    @property
    def effect(self) -> float:
        """The approximate change in log-odds."""
        return self.frauds / self.variance if self.variance > 0 else 0.0

    @property
    def error(self) -> float:
        """The standard error of the effect."""
        return 1 / math.sqrt(self.variance) if self.variance > 0 else 0.0

    @property
    def deviation(self) -> float:
        """Frauds above expectation, in standard errors."""
        return self.frauds / math.sqrt(self.variance) if self.variance > 0 else 0.0
