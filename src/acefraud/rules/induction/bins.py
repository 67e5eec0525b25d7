"""Facts cut into bins: a small integer for each row, so that sums over many thresholds take one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Literal

import numpy as np
import numpy.typing as npt

from acefraud.core.condition import MAX_TESTS, Condition, Op, Test
from acefraud.core.context_facts import is_context_fact
from acefraud.core.fact_names import words_for
from acefraud.core.table import Categories, FactTable
from acefraud.support.arrays import BoolArray, FloatArray, IntArray
from acefraud.support.exact_math import log_of

Codes = npt.NDArray[np.uint8]

UNKNOWN = 0
"""The bin of rows in which the fact is missing."""
_FOLDS = 5
PLAIN_TESTS, PLAIN_LISTED = 2, 3
"""The most tests of a plain condition, and the most values that one of them lists."""
_NOT = 1.0
"""What it costs to say what a word is not."""


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
    few_words: int = 30
    """A category with more values than this is cut into groups of values with a similar share of fraud."""
    group_cuts: int = 16
    group_pull: float = 20.0
    """Cases of the base rate that are added to those of each value, so that a rare one is not extreme."""
    least_support: int = 5


BinKind = Enum("BinKind", ["CUT", "STEP", "FLAG", "WORD", "GROUP"])
"""What the bins of a fact stand for."""


@dataclass(frozen=True, slots=True)
class BinnedFact:
    """One fact: how its values become bins, and how bins become tests again."""

    name: str
    kind: BinKind
    cuts: FloatArray
    words: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...] = ()
    """The values in each bin of a category with many values, the most frequent first."""
    others: int = 0
    """The bin of rare and new values."""
    held_out: Codes | None = None
    """The bins of the rows that were cut, each found without the row's own label."""
    may_be_missing: bool = False
    """Whether a missing value is informative: in a column it is; in facts read from a text hardly."""

    @property
    def bins(self) -> int:
        """The number of bins, including the one for missing values."""
        counts = {BinKind.FLAG: 3, BinKind.WORD: len(self.words) + 2, BinKind.GROUP: len(self.groups) + 1}
        return counts.get(self.kind, len(self.cuts) + 2)

    def encode(self, table: FactTable) -> Codes:
        """The bin of each row."""
        if self.kind is BinKind.FLAG:
            return (table.flags(self.name) + 1).astype(np.uint8)
        if self.kind in (BinKind.WORD, BinKind.GROUP):
            codes, words = table.categories(self.name)
            groups = self.groups or tuple((word,) for word in self.words)
            place = {word: position + 1 for position, group in enumerate(groups) for word in group}
            others = self.others or len(self.words) + 1
            return np.array([*(place.get(word, others) for word in words), UNKNOWN], dtype=np.uint8)[codes]
        numbers = table.numbers(self.name)
        side: Literal["left", "right"] = "left" if self.kind is BinKind.CUT else "right"
        found = (np.searchsorted(self.cuts, numbers, side=side) + 1).astype(np.uint8)
        found[np.isnan(numbers)] = UNKNOWN
        return found

    def tests(self, inside: BoolArray) -> tuple[Test, ...]:
        """The tests that hold exactly in these bins."""
        if inside[UNKNOWN]:
            return (Test(self.name, Op.MISSING),)
        if self.kind is BinKind.FLAG:
            return (Test(self.name, Op.IS, bool(inside[2])),)
        if self.kind in (BinKind.WORD, BinKind.GROUP):
            return (self._word_test(inside),)
        above, below = (Op.ABOVE, Op.AT_MOST) if self.kind is BinKind.CUT else (Op.AT_LEAST, Op.BELOW)
        places = np.flatnonzero(inside)
        first, last = int(places[0]), int(places[-1])
        lower = (Test(self.name, above, float(self.cuts[first - 2])),) if first > 1 else ()
        upper = (Test(self.name, below, float(self.cuts[last - 1])),) if last < self.bins - 1 else ()
        return (*lower, *upper)

    def price(self, tests: tuple[Test, ...]) -> float:
        """The nats that it takes to single out these tests."""
        (*more, test) = tests
        if test.op is Op.MISSING or self.kind is BinKind.FLAG:
            return 0.0
        if self.kind in (BinKind.WORD, BinKind.GROUP):
            listed = len(test.value) if isinstance(test.value, tuple) else 1
            words = len(self.words) or sum(map(len, self.groups))
            return float(price_of_list(listed, words)) + (_NOT if test.op in (Op.NOT_IN, Op.IS_NOT) else 0.0)
        return (len(more) + 1) * float(_LOGS[self.bins])

    def _word_test(self, inside: BoolArray) -> Test:
        """Lists the words inside or, where rare and new ones are inside too, those outside."""
        groups = self.groups or tuple((word,) for word in self.words)
        others = bool(inside[self.others or -1])
        words = (group for group, holds in zip(groups, inside[1:], strict=False) if bool(holds) != others)
        listed = tuple(word for group in words for word in group)
        if len(listed) == 1:
            return Test(self.name, Op.IS_NOT if others else Op.IS, listed[0])
        return Test(self.name, Op.NOT_IN if others else Op.IN, listed)


_LOGS = np.concatenate([[0.0], log_of(np.arange(1, 2**16))])
"""The logarithm of each whole number from 1 on."""
_LOG_FACTORIALS = np.cumsum(_LOGS)


def price_of_list(listed: int | IntArray, words: int | IntArray) -> FloatArray:
    """The nats that it takes to single out some of several words.

    >>> round(float(price_of_list(2, 4)), 3)  # the logarithm of 6
    1.792
    """
    price: FloatArray = _LOG_FACTORIALS[words] - _LOG_FACTORIALS[listed] - _LOG_FACTORIALS[words - listed]
    return price


Bins = Mapping[int, bytes]
"""By the position of a fact: which of its bins are inside, one byte each."""


@dataclass(frozen=True, slots=True)
class BinnedTable:
    """Rows by their bins, fact by fact."""

    facts: tuple[BinnedFact, ...]
    codes: Codes
    _priced: dict[tuple[int, bytes], tuple[tuple[Test, ...], float]] = field(default_factory=dict, repr=False)

    @classmethod
    def cut(cls, table: FactTable, labels: BoolArray, options: BinOptions) -> BinnedTable:
        """The rows of a table, in bins cut for them."""
        facts = cut_facts(table, labels, options)
        codes = np.empty((len(facts), len(table)), dtype=np.uint8)
        for index, fact in enumerate(facts):
            codes[index] = fact.encode(table) if fact.held_out is None else fact.held_out
        return cls(facts, codes)

    def holds(self, bins: Bins) -> BoolArray:
        """Where a row is inside for every fact."""
        mask = np.ones(self.codes.shape[1], dtype=np.bool_)
        for at, inside in bins.items():
            mask &= np.frombuffer(inside, dtype=np.bool_)[self.codes[at]]
        return mask

    def condition(self, bins: Bins) -> Condition:
        """The condition that holds in rows that are inside for every fact."""
        return Condition(tuple(test for at, inside in bins.items() for test in self._tests(at, inside)[0]))

    def _tests(self, at: int, inside: bytes) -> tuple[tuple[Test, ...], float]:
        """The tests of one fact that hold in these bins, and their price. Trees come to the same bins often."""
        if (at, inside) not in self._priced:
            tests = self.facts[at].tests(np.frombuffer(inside, dtype=np.bool_))
            self._priced[at, inside] = tests, self.facts[at].price(tests)
        return self._priced[at, inside]

    def price(self, bins: Bins) -> float:
        """The nats that it takes to single out these tests among all that the facts allow."""
        facts = float(_LOGS[len(self.facts)])
        return sum(facts + self._tests(at, inside)[1] for at, inside in bins.items())

    def readable(self, bins: Bins, most_listed: int, *, plain: bool = False) -> bool:
        """Whether it makes a condition of at most four tests, none of which lists more than `most_listed` words.

        A group of values may be longer: it is shown by its size and its largest members. If it must be `plain`, two
        tests and lists of three values are the most.
        """
        tests = [(test, self.facts[at].kind) for at, inside in bins.items() for test in self._tests(at, inside)[0]]
        kinds = (BinKind.WORD, BinKind.GROUP) if plain else (BinKind.WORD,)
        longest = max(
            (len(test.value) for test, kind in tests if isinstance(test.value, tuple) and kind in kinds), default=1
        )
        most_tests, most = (PLAIN_TESTS, PLAIN_LISTED) if plain else (MAX_TESTS, most_listed)
        return 1 <= len(tests) <= most_tests and longest <= most


def cut_facts(table: FactTable, labels: BoolArray, options: BinOptions) -> tuple[BinnedFact, ...]:
    """The bins of every fact that varies."""
    cut = (_cut(name, table, labels, options) for name in table.names if not is_context_fact(name))
    facts = [fact for fact in cut if fact is not None]
    rounded = iter(rounded_cuts([fact.cuts for fact in facts if fact.kind is BinKind.CUT]))
    kinds = (table.columns.numbers, table.columns.flags, table.columns.categories)
    found = []
    for fact in facts:
        # A fact that is a number in one row and a word in another has no kind of bins that covers all rows.
        one_kind = sum(fact.name in kind for kind in kinds) == 1
        cuts = next(rounded) if fact.kind is BinKind.CUT else fact.cuts
        found.append(replace(fact, cuts=cuts, may_be_missing=words_for(fact.name) is None and one_kind))
    return tuple(found)


def _cut(name: str, table: FactTable, labels: BoolArray, options: BinOptions) -> BinnedFact | None:
    flags = table.flags(name)
    if bool(np.any(flags >= 0)):
        return BinnedFact(name, BinKind.FLAG, np.zeros(0), ()) if len(np.unique(flags)) > 1 else None
    codes, words = in_alphabet(*table.categories(name))
    if words:
        if len(words) > options.few_words:
            return _cut_groups(name, codes, words, labels, options)
        return _cut_words(name, codes, words, options)
    return _cut_numbers(name, table.numbers(name), labels, options)


def in_alphabet(codes: npt.NDArray[np.int32], words: tuple[str, ...]) -> Categories:
    """The same words in alphabetical order: their order in a table depends on which rows it was put together from."""
    order = sorted(range(len(words)), key=words.__getitem__)
    if order == list(range(len(words))):
        return codes, words
    place = np.full(len(words) + 1, -1, dtype=np.int32)
    place[order] = np.arange(len(words))
    return place[codes], tuple(words[at] for at in order)


def _cut_words(
    name: str, codes: npt.NDArray[np.int32], words: tuple[str, ...], options: BinOptions
) -> BinnedFact | None:
    counts = np.bincount(codes[codes >= 0], minlength=len(words))
    common = [int(at) for at in np.argsort(-counts, kind="stable")[: options.most_words]]
    kept = tuple(words[at] for at in common if counts[at] >= options.least_support)
    says_something = len(np.unique(codes)) > 1
    return BinnedFact(name, BinKind.WORD, np.zeros(0), kept) if kept and says_something else None


def _cut_groups(
    name: str, codes: npt.NDArray[np.int32], words: tuple[str, ...], labels: BoolArray, options: BinOptions
) -> BinnedFact | None:
    """Groups of values with a similar share of fraud.

    Each row is binned by the share of fraud among the rows of the other folds with its value, so that a value with few
    rows does not look telling because of its own label. Rare and new values count as cases of the base rate.
    """
    known, base, pull = codes >= 0, float(labels.mean()), options.group_pull

    def shares_among(rows: BoolArray) -> FloatArray:
        """The share of fraud of each value, smoothed towards the base rate, and last that of rows without a value."""
        counts = np.bincount(codes[rows], minlength=len(words) + 1)
        frauds = np.bincount(codes[rows], labels[rows], minlength=len(words) + 1)
        return (frauds + pull * base) / (counts + pull)

    folds = np.random.default_rng(0).integers(0, _FOLDS, len(codes))
    row_shares = np.zeros(len(codes))
    for fold in range(_FOLDS):
        row_shares[folds == fold] = shares_among(known & (folds != fold))[codes[folds == fold]]
    counts = np.bincount(codes[known], minlength=len(words))
    listed = counts >= options.least_support
    cuts = quantiles(np.sort(row_shares[known]), options.group_cuts)
    if labels[known].sum() >= options.least_support:
        cuts = np.concatenate([cuts, quantiles(np.sort(row_shares[known & labels]), options.group_cuts // 2)])
    whole = shares_among(known)[: len(words)]
    cuts = _between(np.unique(cuts), np.append(whole[listed], base))
    if not len(cuts):
        return None
    place = np.searchsorted(cuts, whole)
    by_size = [int(word) for word in np.argsort(-counts, kind="stable") if listed[word]]
    groups = tuple(tuple(words[word] for word in by_size if place[word] == group) for group in range(len(cuts) + 1))
    held_out = (np.searchsorted(cuts, row_shares) + 1).astype(np.uint8)
    held_out[~known] = UNKNOWN
    others = int(np.searchsorted(cuts, base)) + 1
    return BinnedFact(name, BinKind.GROUP, cuts, (), groups=groups, others=others, held_out=held_out)


def _between(cuts: FloatArray, values: FloatArray) -> FloatArray:
    """The cuts that have some of the values on both sides, one for each gap between values."""
    groups = np.unique(np.searchsorted(cuts, values))
    return cuts[groups[:-1]]


def _cut_numbers(name: str, numbers: FloatArray, labels: BoolArray, options: BinOptions) -> BinnedFact | None:
    known = ~np.isnan(numbers)
    values = np.sort(numbers[known])
    if len(values) < 2 or values[0] == values[-1]:
        return None
    steps = np.flatnonzero(values[1:] != values[:-1]) + 1
    if len(steps) < options.few_values:
        distinct = values[np.concatenate([[0], steps])]
        if bool(np.all(distinct == np.floor(distinct))):
            return BinnedFact(name, BinKind.STEP, distinct[1:], ())
    cuts = quantiles(values, options.cuts)
    frauds = np.sort(numbers[known & labels])
    if len(frauds) >= options.least_support:
        cuts = np.concatenate([cuts, quantiles(frauds, options.fraud_cuts)])
    edges = np.concatenate([values[:1], np.unique(cuts), values[-1:]])
    return BinnedFact(name, BinKind.CUT, edges, ())


def quantiles(ordered: FloatArray, count: int) -> FloatArray:
    """`count` quantiles of sorted values, interpolated between neighbours.

    >>> quantiles(np.array([1.0, 2.0, 4.0]), 3).tolist()
    [1.5, 2.0, 3.0]
    """
    places = np.arange(1, count + 1) / (count + 1) * (len(ordered) - 1)
    below = np.floor(places).astype(np.int64)
    low, high = ordered[below], ordered[np.minimum(below + 1, len(ordered) - 1)]
    return low + (high - low) * (places - below)


def rounded_cuts(edges: Sequence[FloatArray]) -> list[FloatArray]:
    """The inner edges of each fact, each as the roundest number nearer to it than to its neighbours.

    All facts at once, because one by one would dominate the time of a short search.
    """
    middles = [(edge[:-1] + edge[1:]) / 2 for edge in edges]
    low, high = (
        np.concatenate([np.zeros(0), *(middle[part] for middle in middles)]) for part in (slice(-1), slice(1, None))
    )
    figures = np.split(roundest(low, high), np.cumsum([len(middle) - 1 for middle in middles])[:-1])
    return [np.unique(some[middle[1:] > middle[:-1]]) for middle, some in zip(middles, figures, strict=False)]


_DIGITS, _FRACTIONS = 17, (1.0, 0.5, 0.25)
_SMALLEST = -323
_TENS = np.array([float(f"1e{exponent}") for exponent in range(_SMALLEST, 309)])
"""The powers of ten."""


def roundest(low: FloatArray, high: FloatArray) -> FloatArray:
    """The roundest number in each [low, high].

    >>> roundest(np.array([1870.0, 0.231, 3.4]), np.array([2130.0, 0.274, 4.4])).tolist()
    [2000.0, 0.25, 4.0]
    """
    found = np.where((low <= 0) & (high >= 0), 0.0, np.nan)
    exponent = np.searchsorted(_TENS, np.maximum(np.abs(low), np.abs(high)), side="right") + _SMALLEST
    open_ = np.flatnonzero(np.isnan(found))
    for digits in range(_DIGITS):
        for fraction in _FRACTIONS:
            if not len(open_):
                return found
            step = fraction * _TENS[np.clip(exponent[open_] - digits - _SMALLEST, 0, len(_TENS) - 1)]
            figures = _rounded(np.ceil(low[open_] / step) * step, digits - exponent[open_] + 2)
            fits = (low[open_] <= figures) & (figures <= high[open_])
            found[open_[fits]] = figures[fits]
            open_ = open_[~fits]
    found[open_] = low[open_]
    return found


def _rounded(figures: FloatArray, decimals: IntArray) -> FloatArray:
    """Each figure to its own number of decimals, so that 0.30000000000000004 reads 0.3."""
    places = np.maximum(decimals, 0).tolist()
    return np.array([round(figure, digits) for figure, digits in zip(figures.tolist(), places, strict=True)])
