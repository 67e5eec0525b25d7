"""Labelled cases to learn from, split in time, and weighted samples of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acefraud.core.arrays import BoolArray, FloatArray, IntArray
from acefraud.core.condition import Condition
from acefraud.core.table import FactTable
from acefraud.rules.induction.fitting import FitCases
from acefraud.rules.induction.out_of_time import Checked, check, usual_share


@dataclass(frozen=True, slots=True)
class History:
    """Labelled cases in order of time."""

    rows: FactTable
    labels: BoolArray
    knowledge: FloatArray | None = None
    """The scorecard's sum for each case; None if general knowledge is not used."""
    offset: FloatArray | None = None
    """Log-odds of each case from rules that keep their weight."""
    times: IntArray | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class SplitHistory:
    """A history split in time: the cases from the cut on are the out-of-time part."""

    history: History
    cut: int
    usual: FloatArray
    """The share of fraud at the time of each case."""

    @classmethod
    def of(cls, history: History, later_share: float) -> SplitHistory:
        cut = round(len(history.labels) * (1 - later_share))
        return cls(history, cut, usual_share(history.labels, cut))

    def cases(self, places: IntArray, counts: FloatArray) -> FitCases:
        """Some of the cases, to fit weights on."""
        history = self.history
        knowledge = None if history.knowledge is None else history.knowledge[places]
        offset = None if history.offset is None else history.offset[places]
        return FitCases(history.labels[places], knowledge, offset, counts=counts, usual=self.usual[places])

    def check(self, condition: Condition) -> Checked:
        """Whether a condition holds out of time."""
        return check(condition.holds_in(self.history.rows), self.history.labels, self.usual, self.cut)


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
