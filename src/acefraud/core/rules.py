"""Many conditions compiled together, so that one look at each fact answers all of them.

A value of a fact makes some tests false and leaves others open. Which rows of conditions that concerns is known
beforehand, as bit sets: for a number by the interval it falls into, for a flag by its two values, for a word by the
word. A transaction is then answered by one lookup and one "or" for each of its facts.
"""

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
from acefraud.core.condition import Condition
from acefraud.core.table import FactTable, Mask
from acefraud.core.transaction import FactValue

MOST_BREAKS = 256
"""Places at which the values of one fact are told apart, unless asked for otherwise."""

_MOST_PLANS = 1024

_Placed = tuple[int, Test]
"""A test, with the row of the condition it belongs to before it."""

_Span = tuple[int, float | None, float | None, bool]
"""The row of a test as a bit; from where on and up to where (exclusive) it admits numbers; or, if so, refuses them."""

_Shape = tuple[object, ...]
"""The names of some facts, then the types of their values."""

_Packed = npt.NDArray[np.uint64]
"""Bit sets as an array, one in each row."""


class Rules:
    """The conditions of many rows, compiled together. A row may have none. Never changed once made.

    The rows it answers with are bit sets, bit ``i`` for row ``i``.

    >>> rules = Rules.of([Condition.parse("amount > 5"), None, Condition.parse("vpn is true")])
    >>> [f"{rows:03b}" for rows in rules.standing({"amount": 7.0})]
    ['111', '001']
    >>> [f"{rows:03b}" for rows in rules.standing({"amount": 3.0, "vpn": True})]
    ['110', '100']
    """

    def __init__(
        self, conditions: tuple[Condition | None, ...], facts: Mapping[str, _Fact], conditioned: int, most_breaks: int
    ) -> None:
        """From parts that fit each other; `Rules.of` makes them."""
        self._conditions = conditions
        self._facts = facts
        self._conditioned = conditioned
        self._all = (1 << len(conditions)) - 1
        self._most_breaks = most_breaks
        self._plans: dict[_Shape, _Plan] = {}

    @classmethod
    def of(cls, conditions: Sequence[Condition | None], most_breaks: int = MOST_BREAKS) -> Rules:
        """Compile conditions.

        Where the tests of a fact tell its numbers apart at more than ``most_breaks`` places, only so many of them
        are compiled. That saves memory and costs time for values close to the others; the answers are the same.
        """
        if most_breaks < 1:
            raise ValueError(f"most_breaks must be at least 1, got {most_breaks}")
        return cls((), {}, 0, most_breaks).extended(conditions)

    def extended(self, conditions: Sequence[Condition | None]) -> Rules:
        """These rows and more at the end. Only the facts that the new rows speak of are compiled again.

        >>> one = Rules.of([Condition.parse("amount > 5")])
        >>> len(one.extended([None])), len(one)
        (2, 1)
        """
        conditioned = self._conditioned
        added: dict[str, list[_Placed]] = {}
        for row, condition in enumerate(conditions, start=len(self)):
            if condition is None:
                continue
            conditioned |= 1 << row
            for test in condition.tests:
                added.setdefault(test.fact, []).append((row, test))
        facts = dict(self._facts)
        for name, tests in added.items():
            fact = _Fact.of(name, tuple(tests), self._most_breaks)
            facts[name] = facts[name].joined(fact, self._most_breaks) if name in facts else fact
        return Rules((*self._conditions, *conditions), facts, conditioned, self._most_breaks)

    def __len__(self) -> int:
        return len(self._conditions)

    @property
    def any(self) -> bool:
        """Whether any row has a condition."""
        return self._conditioned != 0

    @property
    def footprint(self) -> int:
        """About how many bytes the compiled form takes, without the conditions themselves."""
        return sum(fact.footprint for fact in self._facts.values())

    def standing(self, facts: Mapping[str, FactValue]) -> tuple[int, int]:
        """The rows that are possible and the rows that are proven, as bit sets.

        Possible is a row whose condition is not false, or that has none; proven is one whose condition is true.
        """
        shape = (*facts, *map(type, facts.values()))
        plan = self._plans.get(shape) or self._planned(shape, facts)
        fails = plan.fails
        for name, cuts, by_cell in plan.numbers:
            fails |= by_cell[bisect_right(cuts, facts[name])]
        for name, by_value, otherwise in plan.others:
            fails |= by_value.get(facts[name], otherwise)
        possible = self._all ^ fails
        proven = possible & plan.closed
        if plan.coarse or plan.unsure:
            return self._settled(facts, possible, proven, possible & plan.unsure_about(facts))
        return possible, proven

    def standing_in(self, table: FactTable) -> tuple[Mask, Mask]:
        """The same for a whole table: two arrays, with a row for each row of the table and a column for each of these.

        >>> rules = Rules.of([Condition.parse("amount > 5"), None])
        >>> possible, proven = rules.standing_in(FactTable([{"amount": 7.0}, {"amount": 3.0}, {}]))
        >>> possible.tolist()
        [[True, True], [False, True], [True, True]]
        >>> proven.tolist()
        [[True, False], [False, False], [False, False]]
        """
        names = set(table.names)
        marks = _Marks(len(table), len(self), *self._for_want_of(self._facts.keys() - names))
        for name in self._facts.keys() & names:
            self._facts[name].mark(table, marks)
        possible = ~marks.fails
        proven = possible & ~marks.opens & marks.packed([self._conditioned])
        return marks.unpacked(possible), marks.unpacked(proven)

    def _for_want_of(self, names: Iterable[str]) -> tuple[int, int]:
        """The rows that fail and the rows that are left open where these facts are not known."""
        fails = opens = 0
        for name in names:
            fails |= self._facts[name].known
            opens |= self._facts[name].valued
        return fails, opens

    def _planned(self, shape: _Shape, facts: Mapping[str, FactValue]) -> _Plan:
        """The plan for such facts, kept because the transactions of a stream mostly bring the same ones."""
        kinds = {name: type(value) for name, value in facts.items() if name in self._facts and value is not None}
        fails, opens = self._for_want_of(self._facts.keys() - kinds)
        plan = _Plan.of([(self._facts[name], kind) for name, kind in kinds.items()], fails, opens, self._conditioned)
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
        self._plans[shape] = plan
        return plan

    def _settled(self, facts: Mapping[str, FactValue], possible: int, proven: int, unsure: int) -> tuple[int, int]:
        """Ask the conditions of the unsure rows themselves."""
        for row in places_in(unsure):
            condition = self._conditions[row]
            truth = None if condition is None else condition.truth(facts)
            if truth is False:
                possible ^= 1 << row
            if truth is not True:
                proven &= ~(1 << row)
        return possible, proven


def places_in(rows: int) -> list[int]:
    """The rows of a bit set, in order.

    >>> places_in(0b10110)
    [1, 2, 4]
    """
    places = []
    while rows:
        lowest = rows & -rows
        places.append(lowest.bit_length() - 1)
        rows ^= lowest
    return places


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to look up for facts of one shape."""

    fails: int
    """Rows that fail whatever the values are."""
    closed: int
    """Rows with a condition that nothing leaves open."""
    unsure: int
    """Rows to ask whatever the values are."""
    numbers: list[tuple[str, list[float], list[int]]]
    """Facts with the cuts of their numbers and the rows that fail in each cell."""
    others: list[tuple[str, dict[Any, int], int]]
    """Facts with the rows that fail for each flag or word, and for a word that no test names."""
    coarse: list[_Numbers]
    """Those numbers with cuts left out."""

    @classmethod
    def of(cls, facts: Sequence[tuple[_Fact, type]], fails: int, opens: int, conditioned: int) -> _Plan:
        """For these facts with values of these types; ``fails`` and ``opens`` come of those that are not there."""
        unsure = 0
        numbers: list[_Numbers] = []
        others: list[tuple[str, dict[Any, int], int]] = []
        for fact, kind in facts:
            fails |= fact.missing
            if kind is float:
                opens |= fact.flags.rows | fact.words.rows
                numbers += [fact.numbers] if fact.numbers.rows else []
            elif kind is bool:
                opens |= fact.numbers.rows | fact.words.rows
                others += [(fact.flags.name, fact.flags.fails, 0)] if fact.flags.rows else []
            elif kind is str:
                opens |= fact.numbers.rows | fact.flags.rows
                others += [(fact.words.name, fact.words.fails, fact.words.others)] if fact.words.rows else []
            else:
                unsure |= fact.valued  # such as a subclass of str, of which some tests can say something
        return cls(
            fails=fails,
            closed=conditioned & ~opens,
            unsure=unsure,
            numbers=[(each.name, each.cuts, each.fails) for each in numbers],
            others=others,
            coarse=[each for each in numbers if each.unsure],
        )

    def unsure_about(self, facts: Mapping[str, FactValue]) -> int:
        """The rows for which the values lie too close to a place that is not compiled."""
        unsure = self.unsure
        for each in self.coarse:
            unsure |= each.unsure[bisect_right(each.cuts, facts[each.name])]
        return unsure


@dataclass(frozen=True, slots=True)
class _Fact:
    """What the rows ask of one fact."""

    tests: tuple[_Placed, ...]
    missing: int
    """Rows that want it missing."""
    known: int
    """Rows that want it known."""
    numbers: _Numbers
    flags: _Flags
    words: _Words

    @classmethod
    def of(cls, name: str, tests: tuple[_Placed, ...], most_breaks: int) -> _Fact:
        """Compile all tests of one fact."""
        return cls(
            tests=tests,
            missing=_set_of(row for row, test in tests if test.op is Op.MISSING),
            known=_set_of(row for row, test in tests if test.op is Op.KNOWN),
            numbers=_Numbers.of(name, tests, most_breaks),
            flags=_Flags.of(name, tests),
            words=_Words.of(name, tests),
        )

    def joined(self, other: _Fact, most_breaks: int) -> _Fact:
        """With the tests that other rows make of the same fact."""
        tests = (*self.tests, *other.tests)
        numbers = self.numbers.joined(other.tests, most_breaks)
        doubled = len(tests).bit_length() > len(self.tests).bit_length()
        if numbers is None or (numbers.unsure and doubled):  # the best cuts change as tests come, though slowly
            numbers = _Numbers.of(self.numbers.name, tests, most_breaks)
        return _Fact(
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

    def mark(self, table: FactTable, marks: _Marks) -> None:
        """Mark what it makes of each row of a table."""
        if self.missing or self.known:
            known = table.known(self.numbers.name)
            marks.fail(known.astype(np.intp), [self.known, self.missing])
        numbers = self.numbers
        if numbers.unsure:  # for as long as this takes, the memory for all cuts costs less than asking the conditions
            numbers = _Numbers.of(numbers.name, self.tests, most_breaks=sys.maxsize)
        for kind in (numbers, self.flags, self.words):
            if kind.rows:
                kind.mark(table, marks)


@dataclass(frozen=True, slots=True)
class _Numbers:
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
    def of(cls, name: str, tests: Sequence[_Placed], most_breaks: int) -> _Numbers:
        """Compile the tests that do so."""
        spans = _spans(tests)
        return cls._cut(name, spans, _spread(_cuts_of(spans), most_breaks))

    @classmethod
    def _cut(cls, name: str, spans: Sequence[_Span], cuts: list[float]) -> _Numbers:
        sweep = _Sweep(cuts)
        for span in spans:
            sweep.add(span)
        unsure = sweep.unsure if any(sweep.unsure) else []
        return cls(name, reduce(or_, (span[0] for span in spans), 0), cuts, sweep.fails(), unsure)

    def joined(self, tests: Sequence[_Placed], most_breaks: int) -> _Numbers | None:
        """With the tests of other rows; None where the cuts had better be chosen anew."""
        spans = _spans(tests)
        if not spans:
            return self
        if self.unsure:
            other = self._cut(self.name, spans, self.cuts)
            fails = list(map(or_, self.fails, other.fails))
            unsure = list(map(or_, self.unsure, other.unsure)) if other.unsure else self.unsure
            return _Numbers(self.name, self.rows | other.rows, self.cuts, fails, unsure)
        cuts = sorted({*self.cuts, *_cuts_of(spans)})
        if len(cuts) > most_breaks:
            return None
        other = self._cut(self.name, spans, cuts)
        mine = [0, *(bisect_right(self.cuts, cut) for cut in cuts)]
        fails = [self.fails[cell] | more for cell, more in zip(mine, other.fails, strict=True)]
        return _Numbers(self.name, self.rows | other.rows, cuts, fails, [])

    def mark(self, table: FactTable, marks: _Marks) -> None:
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
    def of(cls, name: str, tests: Sequence[_Placed]) -> _Flags:
        """Compile the tests that do so."""
        asked = [(row, test) for row, test in tests if type(test.value) is bool]
        fails = {flag: _set_of(row for row, test in asked if test.value is not flag) for flag in (False, True)}
        return cls(name, _set_of(row for row, _ in asked), fails)

    def joined(self, other: _Flags) -> _Flags:
        """With the tests of other rows."""
        fails = {flag: self.fails[flag] | other.fails[flag] for flag in (False, True)}
        return _Flags(self.name, self.rows | other.rows, fails)

    def mark(self, table: FactTable, marks: _Marks) -> None:
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
    def of(cls, name: str, tests: Sequence[_Placed]) -> _Words:
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
        choosy = _set_of(admitted)
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

    def mark(self, table: FactTable, marks: _Marks) -> None:
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


class _Marks:
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

    def packed(self, sets: Sequence[int]) -> _Packed:
        """Bit sets as an array."""
        data = b"".join(each.to_bytes(self._bytes, "little") for each in sets)
        return np.frombuffer(data, dtype=np.uint64).reshape(len(sets), self._bytes // 8)

    def unpacked(self, sets: _Packed) -> Mask:
        """A column for each bit."""
        return np.unpackbits(sets.view(np.uint8), axis=1, count=self._size, bitorder="little").view(np.bool_)


def _spans(tests: Sequence[_Placed]) -> list[_Span]:
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


def _set_of(rows: Iterable[int]) -> int:
    """Rows as a bit set."""
    return reduce(or_, (1 << row for row in rows), 0)
