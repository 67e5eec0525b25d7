"""Facts cut into bins: a small number for each row, so that sums over many thresholds cost one pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from acefraud.core.condition import MAX_TESTS, Condition, Op, Test
from acefraud.core.lexicon import words_for
from acefraud.core.table import Columns, FactTable

Codes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Column = npt.NDArray[np.float64]

UNKNOWN = 0
"""The bin of rows that do not know the fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinOptions:
    """How finely facts are cut."""

    cuts: int = 48
    """At quantiles of all rows."""
    fraud_cuts: int = 24
    """At quantiles of the fraud rows. Without them, rare frauds hide inside one bin."""
    few_values: int = 12
    """A whole number with no more distinct values than this is cut at each of them."""
    most_words: int = 60
    least_support: int = 5


class Kind(Enum):
    """What the bins of a fact stand for."""

    CUT = auto()
    STEP = auto()
    FLAG = auto()
    WORD = auto()


@dataclass(frozen=True, slots=True)
class BinnedFact:
    """One fact: how its values become bins, and how bins become tests again."""

    name: str
    kind: Kind
    cuts: Column
    words: tuple[str, ...]
    may_be_missing: bool = False
    """Whether it says something that a row does not know it: of a column it does; of what a text mentions, little."""

    @property
    def bins(self) -> int:
        """How many bins there are, the one for unknown values included."""
        return {Kind.FLAG: 3, Kind.WORD: len(self.words) + 2}.get(self.kind, len(self.cuts) + 2)

    def encode(self, table: FactTable) -> Codes:
        """The bin of each row."""
        if self.kind is Kind.FLAG:
            return (table.flags(self.name) + 1).astype(np.uint8)
        if self.kind is Kind.WORD:
            codes, words = table.categories(self.name)
            place = {word: position + 1 for position, word in enumerate(self.words)}
            lookup = np.array([place.get(word, len(self.words) + 1) for word in words] + [UNKNOWN], dtype=np.uint8)
            return lookup[codes]
        numbers = table.numbers(self.name)
        side: Literal["left", "right"] = "left" if self.kind is Kind.CUT else "right"
        found = (np.searchsorted(self.cuts, numbers, side=side) + 1).astype(np.uint8)
        found[np.isnan(numbers)] = UNKNOWN
        return found

    def tests(self, inside: Mask) -> tuple[Test, ...]:
        """The tests that are true exactly of these bins."""
        if inside[UNKNOWN]:
            return (Test(self.name, Op.MISSING),)
        if self.kind is Kind.FLAG:
            return (Test(self.name, Op.IS, bool(inside[2])),)
        if self.kind is Kind.WORD:
            return (self._word_test(inside),)
        above, below = (Op.ABOVE, Op.AT_MOST) if self.kind is Kind.CUT else (Op.AT_LEAST, Op.BELOW)
        places = np.flatnonzero(inside)
        first, last = int(places[0]), int(places[-1])
        lower = (Test(self.name, above, float(self.cuts[first - 2])),) if first > 1 else ()
        upper = (Test(self.name, below, float(self.cuts[last - 1])),) if last < self.bins - 1 else ()
        return (*lower, *upper)

    def _word_test(self, inside: Mask) -> Test:
        others = bool(inside[-1])
        listed = tuple(word for word, holds in zip(self.words, inside[1:-1], strict=True) if bool(holds) != others)
        if len(listed) == 1:
            return Test(self.name, Op.IS_NOT if others else Op.IS, listed[0])
        return Test(self.name, Op.NOT_IN if others else Op.IN, listed)


Bins = Mapping[int, bytes]
"""By the place of a fact: which of its bins are inside, a byte for each."""


@dataclass(frozen=True, slots=True)
class BinnedTable:
    """Rows by their bins, fact by fact."""

    facts: tuple[BinnedFact, ...]
    codes: Codes

    @classmethod
    def of(cls, facts: tuple[BinnedFact, ...], table: FactTable) -> BinnedTable:
        """The rows of a table in bins that were cut before."""
        codes = np.empty((len(facts), len(table)), dtype=np.uint8)
        for place, fact in enumerate(facts):
            codes[place] = fact.encode(table)
        return cls(facts, codes)

    def holds(self, bins: Bins) -> Mask:
        """Where a row is inside for every fact."""
        mask = np.ones(self.codes.shape[1], dtype=np.bool_)
        for place, inside in bins.items():
            mask &= np.frombuffer(inside, dtype=np.bool_)[self.codes[place]]
        return mask

    def condition(self, bins: Bins) -> Condition:
        """The same as a condition over facts."""
        return Condition(tuple(self.tests(bins)))

    def tests(self, bins: Bins) -> Iterator[Test]:
        """Its tests, fact by fact."""
        for place, inside in bins.items():
            yield from self.facts[place].tests(np.frombuffer(inside, dtype=np.bool_))

    def readable(self, bins: Bins, most_listed: int) -> bool:
        """Whether it makes a condition of at most four tests, none of which lists more than so many words."""
        tests = list(self.tests(bins))
        listed = max((len(test.value) for test in tests if isinstance(test.value, tuple)), default=1)
        return 1 <= len(tests) <= MAX_TESTS and listed <= most_listed


def cut_facts(table: FactTable, labels: Mask, options: BinOptions) -> tuple[BinnedFact, ...]:
    """The bins of every fact that tells anything apart."""
    facts = (_cut(name, table, labels, options) for name in table.names)
    columns = table.columns
    return tuple(
        replace(fact, may_be_missing=words_for(fact.name) is None and not _mixed(fact.name, columns))
        for fact in facts
        if fact is not None
    )


def _mixed(name: str, columns: Columns) -> bool:
    """Whether it is a number in one row and a word in another: then no single kind of bins knows all its rows."""
    return sum(name in kind for kind in (columns.numbers, columns.flags, columns.categories)) > 1


def _cut(name: str, table: FactTable, labels: Mask, options: BinOptions) -> BinnedFact | None:
    flags = table.flags(name)
    if bool(np.any(flags >= 0)):
        return BinnedFact(name, Kind.FLAG, np.zeros(0), ()) if len(np.unique(flags)) > 1 else None
    codes, words = table.categories(name)
    if words:
        return _cut_words(name, codes, words, options)
    return _cut_numbers(name, table.numbers(name), labels, options)


def _cut_words(
    name: str, codes: npt.NDArray[np.int32], words: tuple[str, ...], options: BinOptions
) -> BinnedFact | None:
    counts = np.bincount(codes[codes >= 0], minlength=len(words))
    common = [int(place) for place in np.argsort(-counts, kind="stable")[: options.most_words]]
    kept = tuple(words[place] for place in common if counts[place] >= options.least_support)
    says_something = len(np.unique(codes)) > 1
    return BinnedFact(name, Kind.WORD, np.zeros(0), kept) if kept and says_something else None


def _cut_numbers(name: str, numbers: Column, labels: Mask, options: BinOptions) -> BinnedFact | None:
    known = ~np.isnan(numbers)
    values = numbers[known]
    distinct = np.unique(values)
    if len(distinct) < 2:
        return None
    if len(distinct) <= options.few_values and bool(np.all(distinct == np.floor(distinct))):
        return BinnedFact(name, Kind.STEP, distinct[1:], ())
    frauds = numbers[known & labels]
    cuts = np.quantile(values, np.arange(1, options.cuts + 1) / (options.cuts + 1))
    if len(frauds) >= options.least_support:
        more = np.quantile(frauds, np.arange(1, options.fraud_cuts + 1) / (options.fraud_cuts + 1))
        cuts = np.concatenate([cuts, more])
    cuts = np.unique(cuts)
    return BinnedFact(name, Kind.CUT, np.array(rounded_cuts(cuts, float(distinct[0]), float(distinct[-1]))), ())


def rounded_cuts(cuts: npt.NDArray[np.float64], least: float, most: float) -> list[float]:
    """Each cut as the roundest figure nearer to it than to its neighbours."""
    edges = np.concatenate([[least], cuts, [most]])
    middles = (edges[:-1] + edges[1:]) / 2
    found = {roundest(float(low), float(high)) for low, high in pairwise(middles) if high > low}
    return sorted(found)


def roundest(low: float, high: float) -> float:
    """The figure in [low, high] that a person would say.

    >>> roundest(1870.0, 2130.0), roundest(0.231, 0.274), roundest(3.4, 4.4)
    (2000.0, 0.25, 4.0)
    """
    if low <= 0 <= high:
        return 0.0
    exponent = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    for digits in range(17):
        for fraction in (1.0, 0.5, 0.25):
            step = fraction * 10.0 ** (exponent - digits)
            figure = round(math.ceil(low / step) * step, max(0, digits - exponent + 2))
            if low <= figure <= high:
                return figure
    return low
