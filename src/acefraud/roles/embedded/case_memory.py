"""The labelled cases that learning uses: the latest ones, as columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol
from zlib import crc32

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import ENOUGH_TO_SHOW, Evidence
from acefraud.core.condition import Condition
from acefraud.core.table import Categories, Columns, FactTable, RowIndex, stacked_words
from acefraud.core.transactions import Cases, Ids
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, shown_names
from acefraud.facts.extraction import facts_in
from acefraud.rules.induction.fitting import MOST_POINT_CASES, fit_points
from acefraud.rules.induction.out_of_time import CaseFacts, FactsInMemory, record_of
from acefraud.rules.scorecard import score_in
from acefraud.support.arrays import BoolArray, FloatArray, IntArray
from acefraud.support.hashes import Hashes, hashes_of
from acefraud.support.timestamps import UNKNOWN, time_of

APART_SHARE = 0.2
"""Share of the cases, the latest ones, held out to check a proposed condition."""
APART_FROM = 150
"""Remembered cases at or above which some can be held out."""


class KnownCases(Protocol):
    """Labelled cases to learn from, in memory or elsewhere."""

    @property
    def labels(self) -> BoolArray: ...
    @property
    def times(self) -> IntArray: ...
    @property
    def timed(self) -> bool: ...
    @property
    def hashes(self) -> Hashes: ...
    @property
    def from_texts(self) -> bool: ...
    @property
    def weights(self) -> FloatArray | None: ...
    @property
    def after_change(self) -> bool: ...
    @property
    def frauds(self) -> int: ...
    def __len__(self) -> int: ...
    def latest(self, count: int) -> IntArray: ...
    def take(self, rows: IntArray) -> LabelledFacts: ...
    def facts_in(self, order: IntArray | None) -> CaseFacts: ...
    def holds(self, condition: Condition) -> BoolArray: ...
    def knowledge(self) -> tuple[FloatArray | None, dict[str, float]]: ...


@dataclass(frozen=True, repr=False)
class LabelledFacts(ShortRepr):
    """The facts and labels of cases, in the order in which the labels became known."""

    ids: Ids
    facts: FactTable
    labels: BoolArray
    times: IntArray
    from_texts: bool = False
    """Whether any case has a text. The scorecard of general knowledge is used only then."""
    weights: FloatArray | None = None
    """How much each case counts in a fit; None if all count alike. A memory does not keep them."""
    after_change: bool = False
    """Whether cases from before a change of what fraud looks like were left out."""
    last: int = 0
    """The number of the last of them, if they are the latest that a memory has taken in, and else 0."""

    @classmethod
    def of(cls, cases: Cases) -> LabelledFacts:
        """Cases with all their facts; texts are read."""
        transactions = cases.transactions
        return cls(
            transactions.ids,
            facts_in(transactions),
            cases.labels,
            transactions.times,
            transactions.texts is not None,
            cases.weights,
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(f"{len(self):,} cases, {self.frauds:,} frauds")
        yield None, Plain(shown_names(self.facts.names))

    def take(self, rows: RowIndex) -> LabelledFacts:
        """Some of the cases."""
        weights = None if self.weights is None else self.weights[rows]
        ids, facts, labels, times = self.ids[rows], self.facts.take(rows), self.labels[rows], self.times[rows]
        return replace(self, ids=ids, facts=facts, labels=labels, times=times, weights=weights)

    @property
    def frauds(self) -> int:
        """How many were fraud."""
        return int(self.labels.sum())

    @property
    def timed(self) -> bool:
        """Whether every case has a time."""
        return bool((self.times != UNKNOWN).all())

    @cached_property
    def hashes(self) -> Hashes:
        """A hash of each id."""
        return hashes_of(self.ids)

    def facts_in(self, order: IntArray | None) -> FactsInMemory:
        """The facts of the cases in this order, or in their own."""
        return FactsInMemory(self.facts, order)

    def holds(self, condition: Condition) -> BoolArray:
        """The cases on which a condition holds."""
        return condition.holds_in(self.facts)

    def knowledge(self) -> tuple[FloatArray | None, dict[str, float]]:
        """What the scorecard adds to each case, None if it is not used, and the points that were fitted."""
        if not self.from_texts or not len(self):
            return None, {}
        rows = self.latest(MOST_POINT_CASES)
        fitted = fit_points(self.facts.take(rows), self.labels[rows])
        sums = score_in(self.facts, fitted.points)
        sums[rows] = fitted.sums
        return sums, fitted.points

    def latest(self, count: int) -> IntArray:
        """The rows of so many cases that happened last; if times are unknown, of some that are drawn by id."""
        order = np.arange(len(self)) if self.timed else np.argsort(self.hashes, kind="stable")
        return order[max(0, len(self) - count) :]

    def measure(self, condition: Condition, *, apart: bool = False) -> Evidence | None:
        """What these cases say of a condition; None if there are none.

        With `apart` the latest cases are held out, or some drawn by id if times are unknown: a condition that was read
        off some cases must hold on others. If either part has too few cases, all are counted together.
        """
        if not len(self):
            return None
        mask = self.holds(condition)
        earlier = self._earlier() if apart else np.ones(len(self), dtype=np.bool_)
        if min(int((mask & earlier).sum()), int((mask & ~earlier).sum())) < ENOUGH_TO_SHOW:
            earlier = np.ones(len(self), dtype=np.bool_)
        later = None if earlier.all() else record_of(mask & ~earlier, self.labels)
        shown_apart = later is not None and later.support >= ENOUGH_TO_SHOW
        held = self.times[mask & (self.times != UNKNOWN)]
        return Evidence(
            learnt=record_of(mask & earlier, self.labels),
            base_rate=float(self.labels.mean()),
            later=later,
            cases=int((~earlier).sum()) if shown_apart else int(earlier.sum()),
            first_seen=time_of(int(held.min())) if len(held) else None,
            last_seen=time_of(int(held.max())) if len(held) else None,
        )

    def _earlier(self) -> BoolArray:
        if len(self) < APART_FROM:
            return np.ones(len(self), dtype=np.bool_)
        if not self.timed:
            drawn = np.array([crc32(case_id.encode()) for case_id in self.ids.tolist()])  # independent of the order
            return drawn >= APART_SHARE * 2**32
        return self.times <= np.quantile(self.times, 1 - APART_SHARE)


_NO_CASES = LabelledFacts.of(Cases.of([]))


class _Rows:
    """A column that grows. New rows go behind those that were handed out, so these never change."""

    def __init__(self, rows: npt.NDArray[Any]) -> None:
        self._room, self._end = rows, len(rows)

    def add(self, rows: npt.NDArray[Any], before: int) -> None:
        """Add rows behind the latest ones, of which so many are still needed."""
        if self._end + len(rows) > len(self._room):
            room = np.empty(before + len(rows) + before // 2, dtype=self._room.dtype)
            room[:before], self._room, self._end = self.latest(before), room, before
        self._room[self._end : self._end + len(rows)] = rows
        self._end += len(rows)

    def latest(self, count: int) -> npt.NDArray[Any]:
        """The last rows."""
        return self._room[self._end - count : self._end]


class CaseMemory:
    """Cases in the order in which they became known, `capacity` at most: the oldest make room.

    A case that comes again replaces the one before.

    >>> from acefraud.core.transaction import Case, Transaction
    >>> memory = CaseMemory(2)
    >>> for name, fraud in (("a", False), ("b", False), ("c", True), ("b", True)):
    ...     case = Case(transaction=Transaction(id=name, facts={"amount": 5.0}), is_fraud=fraud)
    ...     memory.add(LabelledFacts.of(Cases.of([case])))
    >>> memory.cases.ids.tolist(), memory.cases.labels.tolist()
    (['c', 'b'], [True, True])
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._last = 0
        self.clear()

    def add(self, cases: LabelledFacts) -> None:
        """Take in more cases."""
        if len(cases):
            self._new.append(cases)

    def clear(self) -> None:
        """Forget everything."""
        self._cases, self._new = _NO_CASES, list[LabelledFacts]()
        self._known, self._rows = set[str](), dict[str, _Rows]()
        self._last += self.capacity

    @property
    def cases(self) -> LabelledFacts:
        """All remembered cases."""
        waiting, self._new = self._new, []
        for cases in waiting:
            last = {case_id: index for index, case_id in enumerate(cases.ids.tolist())}
            if not self._known.isdisjoint(last):
                old = self._cases.take(np.array([case_id not in last for case_id in self._cases.ids.tolist()]))
                self.clear()
                self._append(old)
            whole = len(cases) <= min(len(last), self.capacity)
            self._append(cases if whole else cases.take(np.array(sorted(last.values())[-self.capacity :])))
        return self._cases

    def __len__(self) -> int:
        return len(self.cases)

    def _append(self, new: LabelledFacts) -> None:
        """Add cases of which none is known."""
        old, total = self._cases, len(self._cases) + len(new)
        count = min(self.capacity, total)
        self._known.difference_update(old.ids[: total - count].tolist())
        self._known.update(new.ids.tolist())
        self._last += len(new)
        mine, more = old.facts, new.facts

        def grown(key: str, before: npt.NDArray[Any], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
            if key not in self._rows:
                self._rows[key] = _Rows(before)
            self._rows[key].add(rows, len(before))
            return self._rows[key].latest(count)

        def names(kind: str) -> list[str]:
            return sorted({*getattr(mine.columns, kind), *getattr(more.columns, kind)})

        categories = dict[str, Categories]()
        for name in names("categories"):
            (before, known), coded = mine.categories(name), more.categories(name)
            if {*coded[1]} <= {*known}:
                codes, words = stacked_words([(before[:0], known), coded])
            else:  # a code is the place of its word in the alphabet, so all may change
                codes, words = stacked_words([(before, known), coded])
                before, codes = codes[: len(old)], codes[len(old) :]
                self._rows.pop(f"words of {name}", None)
            categories[name] = grown(f"words of {name}", before, codes), words
        columns = Columns(
            {name: grown(f"number {name}", mine.numbers(name), more.numbers(name)) for name in names("numbers")},
            {name: grown(f"flag {name}", mine.flags(name), more.flags(name)) for name in names("flags")},
            categories,
        )
        self._cases = LabelledFacts(
            grown("ids", old.ids, new.ids),
            FactTable.of_columns(columns, count),
            grown("labels", old.labels, new.labels),
            grown("times", old.times, new.times),
            old.from_texts or new.from_texts,
            last=self._last,
        )
