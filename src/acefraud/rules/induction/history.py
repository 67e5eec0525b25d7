"""Labelled cases to learn from, split in time, and weighted samples of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acefraud.core.condition import Condition
from acefraud.core.table import FactTable
from acefraud.rules.induction.fitting import FitCases
from acefraud.rules.induction.out_of_time import Checked, Periods, check, span_of
from acefraud.support.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class History:
    """Labelled cases in order of time, or in an order that was drawn if times are unknown."""

    table: FactTable
    """Their facts, as they came."""
    labels: BoolArray
    knowledge: FloatArray | None = None
    """The scorecard's sum for each case; None if general knowledge is not used."""
    offset: FloatArray | None = None
    """Log-odds of each case from rules that keep their weight."""
    times: IntArray | None = None
    weights: FloatArray | None = None
    """How much each case counts in a fit; None if all count alike."""
    order: IntArray | None = None
    """The row of the table for each case, if they are not in its order. The table itself may be large: it stays."""

    def __len__(self) -> int:
        return len(self.labels)

    def in_order(self, order: IntArray) -> History:
        """The cases in another order. The table stays as it is."""
        return History(
            self.table,
            self.labels[order],
            knowledge=None if self.knowledge is None else self.knowledge[order],
            offset=None if self.offset is None else self.offset[order],
            times=None if self.times is None else self.times[order],
            weights=None if self.weights is None else self.weights[order],
            order=order if self.order is None else self.order[order],
        )

    def rows(self, places: IntArray) -> FactTable:
        """The facts of some of the cases."""
        return self.table.take(places if self.order is None else self.order[places])


@dataclass(frozen=True, slots=True)
class SplitHistory:
    """A history split in time: the cases from the cut on are the out-of-time part."""

    history: History
    cut: int
    periods: Periods
    """Of the rows of the table."""
    usual: FloatArray
    """The share of fraud at the time of each case, where each counts by its weight."""

    @classmethod
    def of(cls, history: History, later_share: float) -> SplitHistory:
        cut = round(len(history.labels) * (1 - later_share))
        periods = Periods.of(history.labels, cut)
        weighted = periods if history.weights is None else Periods.of(history.labels, cut, history.weights)
        in_rows = periods if history.order is None else periods.in_rows(history.order)
        return cls(history, cut, in_rows, weighted.usual)

    def cases(self, places: IntArray, counts: FloatArray) -> FitCases:
        """Some of the cases, to fit weights on."""
        history = self.history
        knowledge = None if history.knowledge is None else history.knowledge[places]
        offset = None if history.offset is None else history.offset[places]
        if history.weights is not None:
            counts = counts * history.weights[places]
        return FitCases(history.labels[places], knowledge, offset, counts=counts, usual=self.usual[places])

    def check(self, condition: Condition) -> Checked:
        """Whether a condition holds out of time."""
        mask = condition.holds_in(self.history.table)
        return check(mask, self.periods, None if self.history.times is None else span_of(mask))


def sample(labels: BoolArray, most: int, generator: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Positions of at most `most` frauds and `most` others, in order, and how many cases each stands for."""
    chosen, counts = [], []
    for kind in (True, False):
        places = np.flatnonzero(labels == kind)
        drawn = places if len(places) <= most else generator.choice(places, most, replace=False)
        chosen.append(drawn)
        counts.append(np.full(len(drawn), len(places) / max(1, len(drawn))))
    together = np.concatenate(chosen)
    order = np.argsort(together, kind="stable")
    return together[order], np.concatenate(counts)[order]
