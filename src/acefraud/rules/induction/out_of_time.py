"""The out-of-time check: whether a condition still holds on later cases than it was found on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acefraud.core.arrays import BoolArray, FloatArray
from acefraud.core.evidence import ENOUGH_TO_SHOW, Z95, Record

ENOUGH = 10
"""Later cases from which on their record decides. Fewer must contradict a condition beyond chance to reject it."""
KEPT = 0.25
"""The share of its effect on the log-odds that a condition must keep, within a standard error. A chance finding keeps
none."""
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
    holds_up: bool
    stopped: bool
    span: tuple[int, int] | None
    """The first and the last case on which it held."""


def usual_share(labels: BoolArray, cut: int, weights: FloatArray | None = None) -> FloatArray:
    """The share of fraud at the time of each case, by period: a few before the cut and one after it."""
    count = len(labels)
    stretch = np.minimum(np.arange(count) * STRETCHES // max(1, cut), STRETCHES)
    frauds = np.bincount(stretch, labels if weights is None else labels * weights)
    cases = np.bincount(stretch, weights)
    overall = float(frauds.sum() / cases.sum()) if count else 0.0
    shares: FloatArray = (frauds + overall) / (cases + 1)
    return shares[stretch]


def check(mask: BoolArray, labels: BoolArray, usual: FloatArray, cut: int) -> Checked:
    """Compare the cases from the cut on with those before it. `usual` is the share of fraud at the time of each case.

    >>> labels = np.array([True] * 20 + [False] * 60 + [True] * 5 + [False] * 15)
    >>> check(labels, labels, np.full(100, 0.25), 80).holds_up
    True
    >>> check(np.arange(1000) < 200, np.repeat(labels, 10), np.full(1000, 0.25), 800).stopped
    True
    """
    learnt, later = record_of(mask[:cut], labels[:cut]), record_of(mask[cut:], labels[cut:])
    expected = learnt.support * (len(labels) - cut) / max(1, cut)
    stopped = later.support < STOPPED * expected - 2
    then = _excess(mask[:cut], labels[:cut], usual[:cut])
    now = _excess(mask[cut:], labels[cut:], usual[cut:])
    side = float(np.sign(then.frauds))
    kept = side * now.effect + now.error >= KEPT * side * then.effect
    confirmed = side * now.effect > 0 and kept if later.support >= ENOUGH else side * now.deviation > -1
    span = (int(mask.argmax()), len(mask) - 1 - int(mask[::-1].argmax())) if mask.any() else None
    shown = labels[cut:] if later.support >= ENOUGH_TO_SHOW else labels[:cut]
    base_rate = float(shown.mean()) if len(shown) else 0.0
    return Checked(learnt, later, base_rate, len(shown), confirmed and not stopped and side != 0, stopped, span)


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


def _excess(mask: BoolArray, labels: BoolArray, usual: FloatArray) -> _Excess:
    share = usual[mask]
    return _Excess(float((labels[mask] - share).sum()), float((share * (1 - share)).sum()))
