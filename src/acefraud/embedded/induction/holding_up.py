"""Whether a condition still says later what it said when it was found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.evidence import ENOUGH_TO_SHOW, Z95, Record

Column = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

ENOUGH = 10
"""Later cases from which the later record alone decides; with fewer it must contradict beyond chance."""
KEPT = 0.25
"""The share of its effect on the log-odds that a condition must have kept later, give or take a standard error. What
was found by chance keeps none."""
STOPPED = 0.1
"""A condition that later holds this much less often than before describes something that has stopped."""
NARROWEST, WIDEST = 2.0, 4.0
"""Bounds of the spread. The cases to come have noise and drift of their own: with less than twice the width that
chance alone asks for, fewer than nine in ten intervals held on later data (docs/quality.md)."""
STRETCHES = 8
"""Into so many parts the time before the cut is divided to see how the share of fraud changes."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The record of a condition before and after the cut, and what follows from it."""

    learnt: Record
    later: Record
    base_rate: float
    """The share of fraud among all cases of the time whose record is shown."""
    cases: int
    """How many cases there were in that time."""
    holds_up: bool
    stopped: bool
    span: tuple[int, int] | None
    """The first and the last case on which it held."""


def usual_share(labels: Mask, cut: int) -> Column:
    """The share of fraud at the time of each case, in a few stretches before the cut and one after it."""
    count = len(labels)
    stretch = np.minimum(np.arange(count) * STRETCHES // max(1, cut), STRETCHES)
    frauds, cases = np.bincount(stretch, labels), np.bincount(stretch)
    overall = float(labels.mean()) if count else 0.0
    shares: Column = (frauds + overall) / (cases + 1)
    return shares[stretch]


def check(mask: Mask, labels: Mask, usual: Column, cut: int) -> Checked:
    """Compare the cases from the cut on with those before; `usual` is the share of fraud at the time of each case.

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
    """How much wider than chance alone the intervals have to be, so that nineteen in twenty would have held.

    Measured on how far the records of all conditions that were found have moved between their search and the later
    cases: it takes in both what searching flatters and what time changes.
    """
    moves = [_move(one) for one in checked if one.later.support >= ENOUGH and one.learnt.support and not one.stopped]
    if len(moves) < ENOUGH:
        return NARROWEST
    return float(min(max(np.quantile(moves, 0.95) / Z95, NARROWEST), WIDEST))


def _move(one: Checked) -> float:
    """How far the share of fraud has moved, in standard errors of the later record."""
    support, frauds = one.learnt.support + one.later.support, one.learnt.frauds + one.later.frauds
    share = (frauds + 1) / (support + 2)
    moved = one.later.frauds / one.later.support - one.learnt.frauds / one.learnt.support
    return abs(moved) / math.sqrt(share * (1 - share) / one.later.support)


def record_of(mask: Mask, labels: Mask) -> Record:
    """How often a condition held, and how often that was fraud."""
    return Record(support=int(mask.sum()), frauds=int((mask & labels).sum()))


@dataclass(frozen=True, slots=True)
class _Excess:
    """How many more frauds there were than usual, and the variance of that number if it were chance."""

    frauds: float
    variance: float

    @property
    def effect(self) -> float:
        """Roughly the change in log-odds."""
        return self.frauds / self.variance if self.variance > 0 else 0.0

    @property
    def error(self) -> float:
        """The standard error of the effect."""
        return 1 / math.sqrt(self.variance) if self.variance > 0 else 0.0

    @property
    def deviation(self) -> float:
        """The same in standard errors."""
        return self.frauds / math.sqrt(self.variance) if self.variance > 0 else 0.0


def _excess(mask: Mask, labels: Mask, usual: Column) -> _Excess:
    share = usual[mask]
    return _Excess(float((labels[mask] - share).sum()), float((share * (1 - share)).sum()))
