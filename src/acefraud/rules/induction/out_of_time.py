"""Labelled cases split in time, and whether a condition still holds on later cases than it was found on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import ENOUGH_TO_SHOW, Z95, Record
from acefraud.core.condition import Condition
from acefraud.core.table import FactTable
from acefraud.rules.induction.fitting import FitCases
from acefraud.support.arrays import BoolArray, FloatArray, IntArray
from acefraud.support.hashes import Hashes, mixed

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
    """The first and the last time at which it held, if times are known."""


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


class Tally(NamedTuple):
    """On how many cases of each code a condition holds, and from when to when."""

    counts: IntArray
    span: tuple[int, int] | None = None

    @classmethod
    def of(cls, mask: BoolArray, codes: npt.NDArray[np.uint8], times: IntArray | None = None) -> Tally:
        """The tally of the cases on which a condition holds."""
        held = None if times is None else times[mask]
        span = None if held is None or not len(held) else (int(held.min()), int(held.max()))
        return cls(np.bincount(codes[mask], minlength=2 * STRETCHES + 2), span)

    def plus(self, other: Tally) -> Tally:
        """The tally of the cases of both."""
        spans = [span for span in (self.span, other.span) if span is not None]
        span = (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None
        return Tally(self.counts + other.counts, span)


def check(tally: Tally, periods: Periods) -> Checked:
    """Compare the cases after the cut with those before it, beside the share of fraud that was usual at the time.

    >>> labels = np.array([True] * 20 + [False] * 60 + [True] * 5 + [False] * 15)
    >>> even = np.arange(100) % 4 == 0
    >>> periods = Periods.of(even, 80)
    >>> check(Tally.of(even, periods.codes), periods).holds_up
    True
    >>> periods = Periods.of(np.repeat(labels, 10), 800)
    >>> check(Tally.of(np.arange(1000) < 200, periods.codes), periods).stopped
    True
    """
    counts = tally.counts.reshape(-1, 2)
    totals = periods.totals.reshape(-1, 2)
    learnt, later = (Record(support=int(part.sum()), frauds=int(part[:, 1].sum())) for part in _split(counts))
    before, after = (int(part.sum()) for part in _split(totals))
    stopped = later.support < STOPPED * learnt.support * after / max(1, before) - 2
    then, now = (_excess(part, shares) for part, shares in zip(_split(counts), _split(periods.shares), strict=True))
    side = float(np.sign(then.frauds))
    kept = side * now.effect + now.error >= KEPT * side * then.effect
    confirmed = side * now.effect > 0 and kept if later.support >= ENOUGH else side * now.deviation > -1
    shown = _split(totals)[later.support >= ENOUGH_TO_SHOW]
    cases = int(shown.sum())
    base_rate = float(shown[:, 1].sum() / cases) if cases else 0.0
    record = later if later.support >= ENOUGH_TO_SHOW else learnt
    agrees = side * ((record.precision or 0.0) - base_rate) > LEAST_LIFT * base_rate
    return Checked(learnt, later, base_rate, cases, side, confirmed and agrees and not stopped, stopped, tally.span)


def _split(by_period: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """What belongs to the periods before the cut, and to the one after it."""
    return by_period[:-1], by_period[-1:]


def spread_of(checked: Sequence[Checked]) -> float:
    """How much wider than binomial the intervals must be for 95 % of them to hold.

    Measured by how far the records of all conditions moved out of time. That covers both selection bias and drift.
    """
    moves = [
        _move(record)
        for record in checked
        if record.later.support >= ENOUGH and record.learnt.support and not record.stopped
    ]
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


class _Excess(NamedTuple):
    """Frauds above expectation: their number, the change in log-odds that it is with its error, and in errors."""

    frauds: float
    effect: float = 0.0
    error: float = 0.0
    deviation: float = 0.0


def _excess(counts: IntArray, shares: FloatArray) -> _Excess:
    cases = counts.sum(axis=1)
    frauds, variance = float((counts[:, 1] - cases * shares).sum()), float((cases * shares * (1 - shares)).sum())
    if not variance > 0:
        return _Excess(frauds)
    return _Excess(frauds, frauds / variance, 1 / math.sqrt(variance), frauds / math.sqrt(variance))


class CaseFacts(Protocol):
    """The facts of labelled cases, wherever they are. Rows are the places of cases in the order of the history."""

    def take(self, rows: IntArray) -> FactTable:
        """The facts of some of the cases."""

    def tally(
        self, conditions: Sequence[Condition], codes: npt.NDArray[np.uint8], times: IntArray | None
    ) -> list[Tally]:
        """The tally of each condition. `codes` and `times` are those of all cases."""


@dataclass(frozen=True, slots=True)
class FactsInMemory:
    """The facts of cases as one table."""

    table: FactTable
    order: IntArray | None = None
    """The row of the table for each case, if they are not in its order. The table itself may be large: it stays."""

    def take(self, rows: IntArray) -> FactTable:
        """The facts of some of the cases."""
        return self.table.take(rows if self.order is None else self.order[rows])

    def tally(
        self, conditions: Sequence[Condition], codes: npt.NDArray[np.uint8], times: IntArray | None
    ) -> list[Tally]:
        """The tally of each condition."""
        if self.order is not None:
            codes, times = by_row(codes, self.order), None if times is None else by_row(times, self.order)
        return [Tally.of(condition.holds_in(self.table), codes, times) for condition in conditions]


def by_row(values: npt.NDArray[Any], order: IntArray) -> npt.NDArray[Any]:
    """The values of cases by the rows of a table. `order` has the row of each case."""
    found = np.empty_like(values)
    found[order] = values
    return found


@dataclass(frozen=True, slots=True)
class History:
    """Labelled cases in order of time, or in an order that was drawn if times are unknown."""

    facts: CaseFacts
    labels: BoolArray
    hashes: Hashes
    """What samples are drawn by, so that they do not depend on the order."""
    knowledge: FloatArray | None = None
    """The scorecard's sum for each case; None if general knowledge is not used."""
    offset: FloatArray | None = None
    """Log-odds of each case from rules that keep their weight."""
    times: IntArray | None = None
    weights: FloatArray | None = None
    """How much each case counts in a fit; None if all count alike."""

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class SplitHistory:
    """A history split in time: the cases from the cut on are the out-of-time part."""

    history: History
    cut: int
    periods: Periods
    usual: FloatArray
    """The share of fraud at the time of each case, where each counts by its weight."""

    @classmethod
    def of(cls, history: History, later_share: float) -> SplitHistory:
        cut = round(len(history.labels) * (1 - later_share))
        periods = Periods.of(history.labels, cut)
        weighted = periods if history.weights is None else Periods.of(history.labels, cut, history.weights)
        return cls(history, cut, periods, weighted.usual)

    def cases(self, places: IntArray, counts: FloatArray) -> FitCases:
        """Some of the cases, to fit weights on."""
        history = self.history
        every = FitCases(history.labels, history.knowledge, history.offset, history.weights, self.usual)
        taken = every.take(places)
        return replace(taken, counts=counts * taken.weights)

    def check(self, conditions: Iterable[Condition]) -> dict[Condition, Checked]:
        """Whether conditions hold out of time."""
        distinct = list(dict.fromkeys(conditions))
        tallies = self.history.facts.tally(distinct, self.periods.codes, self.history.times)
        return {each: check(tally, self.periods) for each, tally in zip(distinct, tallies, strict=True)}

    def sample(
        self, most: int, generator: np.random.Generator, *, start: int = 0, end: int | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Positions of at most `most` frauds and `most` others, in order, and how many cases each stands for."""
        labels = self.history.labels[start:end]
        counts = np.ones(len(labels))
        for kind in (True, False):
            of_kind = labels == kind
            count = int(of_kind.sum())
            if count > most:
                drawn = drawn_by(self.history.hashes[start:end][of_kind], generator)
                taken = drawn <= np.partition(drawn, most - 1)[most - 1]
                counts[of_kind] = np.where(taken, count / int(taken.sum()), 0.0)
        places = np.flatnonzero(counts)
        return places + start, counts[places]


def drawn_by(hashes: Hashes, generator: np.random.Generator) -> Hashes:
    """Random numbers that are a function of the hashes: a case gets the same whichever others there are."""
    return mixed(hashes ^ generator.integers(0, 2**64, dtype=np.uint64))
