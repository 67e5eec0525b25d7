"""What one fact says of many conditions: which of their tests each of its values makes false or leaves open."""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud.core.comparison import NEGATED, Op, Test
from acefraud.core.table import FactTable, Mask

Placed = tuple[int, Test]
"""A test, with the row of the condition it belongs to before it."""

_Span = tuple[int, float | None, float | None, bool]
"""The row of a test as a bit; from where on and up to where (exclusive) it admits numbers; or, if so, refuses them."""

Packed = npt.NDArray[np.uint64]
"""Bit sets as an array, one in each row."""


@dataclass(frozen=True, slots=True)
class FactRules:
    """What the rows ask of one fact."""

    tests: tuple[Placed, ...]
    missing: int
    """Rows that want it missing."""
    known: int
    """Rows that want it known."""
    numbers: NumberRules
    flags: _Flags
    words: _Words

    @classmethod
    def of(cls, name: str, tests: tuple[Placed, ...], most_breaks: int) -> FactRules:
        """Compile all tests of one fact."""
        return cls(
            tests=tests,
            missing=set_of(row for row, test in tests if test.op is Op.MISSING),
            known=set_of(row for row, test in tests if test.op is Op.KNOWN),
            numbers=NumberRules.of(name, tests, most_breaks),
            flags=_Flags.of(name, tests),
            words=_Words.of(name, tests),
        )

    def joined(self, other: FactRules, most_breaks: int) -> FactRules:
        """With the tests that other rows make of the same fact."""
        tests = (*self.tests, *other.tests)
        numbers = self.numbers.joined(other.tests, most_breaks)
        doubled = len(tests).bit_length() > len(self.tests).bit_length()
        if numbers is None or (numbers.unsure and doubled):  # the best cuts change as tests come, though slowly
            numbers = NumberRules.of(self.numbers.name, tests, most_breaks)
        return FactRules(
            tests=tests,
            missing=self.missing | other.missing,
            known=self.known | other.known,
            numbers=numbers,
            flags=self.flags.joined(other.flags),
            words=self.words.joined(other.words),
        )

    @property
    def valued(self) -> int:
        """Rows that compare it with something."""
        return self.numbers.rows | self.flags.rows | self.words.rows

    @property
    def footprint(self) -> int:
        """About how many bytes it takes."""
        numbers, flags, words = self.numbers, self.flags, self.words
        sets = [*numbers.fails, *numbers.unsure, *flags.fails.values(), *words.fails.values()]
        holders = (self.tests, numbers.cuts, numbers.fails, numbers.unsure, flags.fails, words.fails)
        return sum(map(sys.getsizeof, (*sets, *holders, *numbers.cuts, *self.tests)))

    def mark(self, table: FactTable, marks: Marks) -> None:
        """Mark what it makes of each row of a table."""
        if self.missing or self.known:
            known = table.known(self.numbers.name)
            marks.fail(known.astype(np.intp), [self.known, self.missing])
        numbers = self.numbers
        if numbers.unsure:  # for as long as this takes, the memory for all cuts costs less than asking the conditions
            numbers = NumberRules.of(numbers.name, self.tests, most_breaks=sys.maxsize)
        for kind in (numbers, self.flags, self.words):
            if kind.rows:
                kind.mark(table, marks)


@dataclass(frozen=True, slots=True)
class NumberRules:
    """The tests of a fact that compare it with numbers.

    The cuts part the numbers into cells, each from one cut up to and without the next. A test "above 5" is false
    below the number that follows 5, so that no test changes its answer anywhere but at a cut.
    """

    name: str
    rows: int
    cuts: list[float]
    fails: list[int]
    """For each cell, the rows that fail in all of it."""
    unsure: list[int]
    """For each cell, the rows that fail in part of it, as one of their cuts is left out; empty where none is."""

    @classmethod
    def of(cls, name: str, tests: Sequence[Placed], most_breaks: int) -> NumberRules:
        """Compile the tests that do so."""
        spans = _spans(tests)
        return cls._cut(name, spans, _spread(_cuts_of(spans), most_breaks))

    @classmethod
    def _cut(cls, name: str, spans: Sequence[_Span], cuts: list[float]) -> NumberRules:
        sweep = _Sweep(cuts)
        for span in spans:
            sweep.add(span)
        unsure = sweep.unsure if any(sweep.unsure) else []
        return cls(name, reduce(or_, (span[0] for span in spans), 0), cuts, sweep.fails(), unsure)

    def joined(self, tests: Sequence[Placed], most_breaks: int) -> NumberRules | None:
        """With the tests of other rows; None where the cuts had better be chosen anew."""
        spans = _spans(tests)
        if not spans:
            return self
        if self.unsure:
            other = self._cut(self.name, spans, self.cuts)
            fails = list(map(or_, self.fails, other.fails))
            unsure = list(map(or_, self.unsure, other.unsure)) if other.unsure else self.unsure
            return NumberRules(self.name, self.rows | other.rows, self.cuts, fails, unsure)
        cuts = sorted({*self.cuts, *_cuts_of(spans)})
        if len(cuts) > most_breaks:
            return None
        other = self._cut(self.name, spans, cuts)
        mine = [0, *(bisect_right(self.cuts, cut) for cut in cuts)]
        fails = [self.fails[cell] | more for cell, more in zip(mine, other.fails, strict=True)]
        return NumberRules(self.name, self.rows | other.rows, cuts, fails, [])

    def mark(self, table: FactTable, marks: Marks) -> None:
        """Mark what they make of each row of a table."""
        values = table.numbers(self.name)
        unknown = np.flatnonzero(np.isnan(values))
        cells = np.searchsorted(np.array(self.cuts), values, side="right")
        cells[unknown] = len(self.fails)
        marks.fail(cells, [*self.fails, 0])
        marks.leave_open(unknown, self.rows)


@dataclass(frozen=True, slots=True)
class _Flags:
    """The tests of a fact that compare it with true or false."""

    name: str
    rows: int
    fails: dict[bool, int]
    """The rows that fail where it is true, and those where it is false."""

    @classmethod
    def of(cls, name: str, tests: Sequence[Placed]) -> _Flags:
        """Compile the tests that do so."""
        asked = [(row, test) for row, test in tests if type(test.value) is bool]
        fails = {flag: set_of(row for row, test in asked if test.value is not flag) for flag in (False, True)}
        return cls(name, set_of(row for row, _ in asked), fails)

    def joined(self, other: _Flags) -> _Flags:
        """With the tests of other rows."""
        fails = {flag: self.fails[flag] | other.fails[flag] for flag in (False, True)}
        return _Flags(self.name, self.rows | other.rows, fails)

    def mark(self, table: FactTable, marks: Marks) -> None:
        """Mark what they make of each row of a table."""
        values = table.flags(self.name)
        marks.fail(values, [self.fails[False], self.fails[True], 0])  # no flag is -1, which takes the last
        marks.leave_open(np.flatnonzero(values < 0), self.rows)


@dataclass(frozen=True, slots=True)
class _Words:
    """The tests of a fact that compare it with words."""

    name: str
    rows: int
    fails: dict[str, int]
    """For each word that a test names, the rows that fail there."""
    others: int
    """The rows that fail for any other word."""

    @classmethod
    def of(cls, name: str, tests: Sequence[Placed]) -> _Words:
        """Compile the tests that do so."""
        refusing: dict[str, int] = {}
        admitted: dict[int, frozenset[str]] = {}
        for row, test in tests:
            if not isinstance(test.value, str | tuple):
                continue
            words = frozenset((test.value,) if isinstance(test.value, str) else test.value)
            if test.op not in NEGATED:
                admitted[row] = admitted.get(row, words) & words  # two lists admit what stands in both
                continue
            for word in words:
                refusing[word] = refusing.get(word, 0) | 1 << row
        return cls._from(name, refusing, admitted)

    @classmethod
    def _from(cls, name: str, refusing: Mapping[str, int], admitted: Mapping[int, frozenset[str]]) -> _Words:
        """From the rows that refuse a word, and the words that are all a row admits."""
        choosy = set_of(admitted)
        admitting: dict[str, int] = {}
        for row, words in admitted.items():
            for word in words:
                admitting[word] = admitting.get(word, 0) | 1 << row
        named = refusing.keys() | admitting.keys()
        fails = {word: refusing.get(word, 0) | choosy & ~admitting.get(word, 0) for word in named}
        return cls(name, reduce(or_, refusing.values(), choosy), fails, choosy)

    def joined(self, other: _Words) -> _Words:
        """With the tests of other rows."""
        if not other.rows:
            return self
        named = self.fails.keys() | other.fails.keys()
        fails = {w: self.fails.get(w, self.others) | other.fails.get(w, other.others) for w in named}
        return _Words(self.name, self.rows | other.rows, fails, self.others | other.others)

    def mark(self, table: FactTable, marks: Marks) -> None:
        """Mark what they make of each row of a table."""
        codes, words = table.categories(self.name)
        marks.fail(codes, [*(self.fails.get(word, self.others) for word in words), 0])  # so does no word
        marks.leave_open(np.flatnonzero(codes < 0), self.rows)


class _Sweep:
    """Gathers which rows fail in which cells, by where each begins and ends to fail rather than cell by cell."""

    def __init__(self, cuts: Sequence[float]) -> None:
        self._cuts = cuts
        self._begins = {cut: cell for cell, cut in enumerate(cuts, start=1)}
        cells = len(cuts) + 1
        self._only = [0] * cells
        self._before = [0] * (cells + 1)
        """At each cell, the rows that fail in all cells before it."""
        self._since = [0] * (cells + 1)
        """At each cell, the rows that fail in it and in all that follow."""
        self.unsure = [0] * cells

    def add(self, span: _Span) -> None:
        """Note where the row of a test fails."""
        bit, start, end, negated = span
        if start is not None and negated:  # there is one number only between its start and its end
            exact = start in self._begins and end in self._begins
            (self._only if exact else self.unsure)[self._cell_of(start)] |= bit
            return
        if start is not None:
            cell = self._cell_of(start)
            self._before[cell] |= bit
            if start not in self._begins:
                self.unsure[cell] |= bit
        if end is not None:
            cell = self._cell_of(end)
            if end in self._begins:
                self._since[cell] |= bit
            else:
                self._since[cell + 1] |= bit
                self.unsure[cell] |= bit

    def fails(self) -> list[int]:
        """For each cell, the rows that fail in all of it."""
        since = accumulate(self._since, or_)
        before = list(accumulate(reversed(self._before), or_))[-2::-1]
        return [a | b | c for a, b, c in zip(self._only, since, before, strict=False)]

    def _cell_of(self, cut: float) -> int:
        return self._begins.get(cut) or bisect_right(self._cuts, cut)


class Marks:
    """For each row of a table the rows that fail and those that are left open, as packed bit sets."""

    def __init__(self, count: int, size: int, fails: int, opens: int) -> None:
        """For a table of ``count`` rows, with what holds for all of them."""
        self._size = size
        self._bytes = 8 * math.ceil(size / 64)  # whole words, which are faster to combine than single bytes
        self.fails = np.repeat(self.packed([fails]), count, axis=0)
        self.opens = np.repeat(self.packed([opens]), count, axis=0)

    def fail(self, codes: npt.NDArray[np.integer[Any]], sets: Sequence[int]) -> None:
        """Each row of the table fails the set that its code stands for."""
        self.fails |= self.packed(sets).take(codes, axis=0)

    def leave_open(self, places: npt.NDArray[np.intp], rows: int) -> None:
        """These rows of the table leave such a set open."""
        self.opens[places] |= self.packed([rows])

    def packed(self, sets: Sequence[int]) -> Packed:
        """Bit sets as an array."""
        data = b"".join(each.to_bytes(self._bytes, "little") for each in sets)
        return np.frombuffer(data, dtype=np.uint64).reshape(len(sets), self._bytes // 8)

    def unpacked(self, sets: Packed) -> Mask:
        """A column for each bit."""
        return np.unpackbits(sets.view(np.uint8), axis=1, count=self._size, bitorder="little").view(np.bool_)


def _spans(tests: Sequence[Placed]) -> list[_Span]:
    """Of the tests that compare with a number."""
    return [_span(1 << row, test.op, test.value) for row, test in tests if type(test.value) is float]


def _span(bit: int, op: Op, value: float) -> _Span:
    following = math.nextafter(value, math.inf)
    if op is Op.ABOVE:
        return bit, following, None, False
    if op is Op.BELOW:
        return bit, None, value, False
    if op is Op.AT_LEAST:
        return bit, value, None, False
    if op is Op.AT_MOST:
        return bit, None, following, False
    return bit, value, following, op is Op.IS_NOT


def _cuts_of(spans: Sequence[_Span]) -> list[float]:
    """Where any of them begins or ends, in order."""
    cuts = {span[1] for span in spans} | {span[2] for span in spans}
    return sorted(cut for cut in cuts if cut is not None)


def _spread(cuts: list[float], most: int) -> list[float]:
    """At most so many of them, spread evenly."""
    if len(cuts) <= most:
        return cuts
    return [cuts[(2 * place + 1) * len(cuts) // (2 * most)] for place in range(most)]


def set_of(rows: Iterable[int]) -> int:
    """Rows as a bit set."""
    return reduce(or_, (1 << row for row in rows), 0)
