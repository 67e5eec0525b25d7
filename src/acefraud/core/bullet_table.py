"""The bullets of one revision, by id and in columns."""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate
from operator import or_
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.comparison import NEGATED, Op, Test
from acefraud.core.condition import Condition
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue, Verdict
from acefraud.support.arrays import BoolArray, FloatArray, IntArray

Words = npt.NDArray[np.uint64]

FEW: Final = 8
"""Fewer transactions are looked at one by one, which is faster then."""
FEW_ROWS: Final = 64
"""The same for transactions that would have to be put into a table first."""
_MOST_PLANS: Final = 1024
_WORDS_AT_ONCE: Final = 32_768
"""Words of bit sets that are worked on together: they stay in the processor's cache."""
_CELLS_AT_ONCE: Final = 1_000_000
"""Members of bit sets that are unpacked together."""
_WORD: Final = np.dtype("<u8")

_Placed = tuple[int, Test]
"""A test, with the row of the condition it belongs to before it."""


class ConditionIndex:
    """The conditions of many rows. A row may have none. Its answers are bit sets, bit ``i`` for row ``i``.

    >>> index = ConditionIndex([Condition.parse("amount > 5"), None, Condition.parse("vpn is true")])
    >>> [f"{rows:03b}" for rows in index.match({"amount": 7.0})]
    ['111', '001']
    >>> [f"{rows:03b}" for rows in index.match({"amount": 3.0, "vpn": True})]
    ['110', '100']
    """

    def __init__(self, conditions: Sequence[Condition | None]) -> None:
        self._all = (1 << len(conditions)) - 1
        self.conditioned = _bits(row for row, condition in enumerate(conditions) if condition is not None)
        """The rows with a condition."""
        tests: dict[str, list[_Placed]] = {}
        self._rich = {row: rule for row, rule in enumerate(conditions) if rule is not None and not rule.is_plain}
        """The conditions that are not plain. They are evaluated one by one, and people write only so many."""
        for row, condition in enumerate(conditions):
            for test in condition.tests if condition is not None and condition.is_plain else ():
                tests.setdefault(test.fact, []).append((row, test))
        self._facts = {name: _FactTests.of(placed) for name, placed in tests.items()}
        self._count = len(conditions)
        self._plans: dict[tuple[object, ...], _Plan] = {}

    def match(self, facts: Mapping[str, FactValue]) -> tuple[int, int]:
        """The rows that are possible and the rows that are proven.

        A row is possible if its condition is not false, or if it has none; it is proven if its condition is true.
        """
        shape = (*facts, *map(type, facts.values()))
        plan = self._plans.get(shape) or self._plan(shape, facts)
        fails = plan.fails
        for name, cuts, by_cell in plan.numbers:
            fails |= by_cell[bisect_right(cuts, facts[name])]
        for name, by_value, otherwise in plan.others:
            fails |= by_value.get(facts[name], otherwise)
        possible = self._all ^ fails
        proven = possible & plan.closed
        for row, condition in self._rich.items():
            truth = condition.truth(facts)
            if truth is False:
                possible ^= 1 << row
            if not truth:
                proven &= ~(1 << row)
        return possible, proven

    def proven_in(self, facts: FactTable) -> Words:
        """The rows that `match` proves for each transaction of a table, as a row of words for each.

        >>> index = ConditionIndex([Condition.parse("amount > 5"), None, Condition.parse("vpn is true")])
        >>> proven = index.proven_in(FactTable([{"amount": 7.0}, {"amount": 3.0, "vpn": True}]))
        >>> [f"{rows:03b}" for rows in proven[:, 0].tolist()]
        ['001', '100']
        """
        if len(facts) < FEW:
            return packed([self.match(each)[1] for each in facts.rows()], words_for(self._count))
        return self._left(facts, self._unproven, self.conditioned, Condition.holds_in)

    def possible_in(self, facts: FactTable) -> Words:
        """The rows that are possible for each transaction of a table, as `proven_in` gives those that are proven."""
        return self._left(facts, self._impossible, self._all, lambda condition, table: ~condition.fails_in(table))

    @cached_property
    def _unproven(self) -> dict[str, _FactLookup]:
        return {name: _FactLookup.of(tests, self._count, proven=True) for name, tests in self._facts.items()}

    @cached_property
    def _impossible(self) -> dict[str, _FactLookup]:
        return {name: _FactLookup.of(tests, self._count, proven=False) for name, tests in self._facts.items()}

    def _left(
        self,
        facts: FactTable,
        lookups: Mapping[str, _FactLookup],
        rows: int,
        passes: Callable[[Condition, FactTable], BoolArray],
    ) -> Words:
        """What the lookups leave of some rows for each transaction. Rich conditions are asked whether they pass."""
        words = words_for(self._count)
        left = np.repeat(packed([rows], words), len(facts), axis=0)
        found = [(lookup.dropped, lookup.places(name, facts)) for name, lookup in lookups.items()]
        at_once = max(FEW, _WORDS_AT_ONCE // max(1, words))
        for start in range(0, len(facts), at_once):
            some = slice(start, start + at_once)
            dropped = np.zeros_like(left[some])
            for by_place, places in found:
                dropped |= by_place.take(places[some], axis=0)
            left[some] &= ~dropped
        for row, condition in self._rich.items():
            left[:, row // 64] &= np.where(passes(condition, facts), ~np.uint64(0), ~np.uint64(1 << row % 64))
        return left

    def proven_rows(self, facts: Sequence[Mapping[str, FactValue]], within: int) -> list[list[int]]:
        """The rows of a bit set whose condition is true, in order, for each of many transactions.

        >>> index = ConditionIndex([Condition.parse("amount > 5"), None, Condition.parse("vpn is true")])
        >>> index.proven_rows([{"amount": 7.0}, {"amount": 7.0, "vpn": True}], within=0b101)
        [[0], [0, 2]]
        """
        if len(facts) < FEW_ROWS:
            return [rows_in(self.match(each)[1] & within) for each in facts]
        proven = self.proven_in(FactTable(facts)) & packed([within], words_for(self._count))
        return [some.tolist() for some in rows_of_each(proven, self._count)]

    def _plan(self, shape: tuple[object, ...], facts: Mapping[str, FactValue]) -> _Plan:
        """The lookups for facts of these names and types, kept because the transactions of a stream are alike."""
        kinds = {name: type(value) for name, value in facts.items() if name in self._facts and value is not None}
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
        plan = self._plans[shape] = _Plan.of(self._facts, kinds, self.conditioned)
        return plan


def rows_in(bits: int) -> list[int]:
    """The rows of a bit set, in order.

    >>> rows_in(0b10110)
    [1, 2, 4]
    """
    rows = []
    while bits:
        lowest = bits & -bits
        rows.append(lowest.bit_length() - 1)
        bits ^= lowest
    return rows


@dataclass(frozen=True, slots=True)
class _FactTests:
    """The tests of one fact: the rows that make each kind of test, and the rows that fail for each value."""

    missing: int
    known: int
    rows: dict[type, int]
    """The rows that compare the fact with a number, with a flag and with words."""
    numbers: tuple[list[float], list[int]]
    """Cuts that split the numbers into cells, each from one cut up to but not including the next; and the rows that
    fail in each cell."""
    others: dict[type, tuple[dict[Any, int], int]]
    """For flags and for words: the rows that fail for each value that a test names, and for any other value."""

    @classmethod
    def of(cls, tests: Sequence[_Placed]) -> _FactTests:
        """Compile all tests of one fact."""
        placed: dict[type, list[_Placed]] = {float: [], bool: [], str: []}
        for row, test in tests:
            if test.value is not None:
                placed[type(test.value) if isinstance(test.value, bool | float) else str].append((row, test))
        flags = {flag: _bits(row for row, test in placed[bool] if test.value is not flag) for flag in (False, True)}
        return cls(
            missing=_bits(row for row, test in tests if test.op is Op.MISSING),
            known=_bits(row for row, test in tests if test.op is Op.KNOWN),
            rows={kind: _bits(row for row, _ in some) for kind, some in placed.items()},
            numbers=_number_fails(placed[float]),
            others={bool: (flags, 0), str: _word_fails(placed[str])},
        )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to look up for facts of certain names and types."""

    fails: int
    """Rows that fail whatever the values are."""
    closed: int
    """Rows with a condition that no unknown fact leaves open."""
    numbers: list[tuple[str, list[float], list[int]]]
    others: list[tuple[str, dict[Any, int], int]]

    @classmethod
    def of(cls, facts: Mapping[str, _FactTests], kinds: Mapping[str, type], conditioned: int) -> _Plan:
        """For facts with values of these types; those that are not among them are unknown."""
        fails = opens = 0
        numbers: list[tuple[str, list[float], list[int]]] = []
        others: list[tuple[str, dict[Any, int], int]] = []
        for name, fact in facts.items():
            kind = kinds.get(name)
            fails |= fact.known if kind is None else fact.missing
            opens |= _union(rows for each, rows in fact.rows.items() if each is not kind)
            if kind is float and fact.rows[float]:
                numbers.append((name, *fact.numbers))
            elif kind in fact.others and fact.rows[kind]:
                others.append((name, *fact.others[kind]))
        return cls(fails, conditioned & ~opens, numbers, others)


@dataclass(frozen=True, slots=True)
class _FactLookup:
    """The rows that a value of a fact drops, for many transactions."""

    cuts: FloatArray
    """They split the numbers into cells."""
    words: dict[str, int]
    """The place of each word that a test names."""
    dropped: Words
    """A row for each place: for an unknown fact, for each cell, false, true, words that no test names, and the others.
    """

    @classmethod
    def of(cls, tests: _FactTests, count: int, *, proven: bool) -> _FactLookup:
        """The rows out of so many whose condition is not proven, or, if that is not asked, not possible."""

        def opened(known: type | None) -> int:
            return _union(rows for kind, rows in tests.rows.items() if proven and kind is not known)

        (cuts, by_cell), (flags, _), (named, other) = tests.numbers, tests.others[bool], tests.others[str]
        failing = ((float, by_cell), (bool, flags.values()), (str, (other, *named.values())))
        dropped = [rows | tests.missing | opened(kind) for kind, some in failing for rows in some]
        words = {word: place for place, word in enumerate(named, len(cuts) + 5)}
        return cls(np.array(cuts), words, packed([tests.known | opened(None), *dropped], words_for(count)))

    def places(self, name: str, facts: FactTable) -> npt.NDArray[np.int32]:
        """The place of each transaction."""
        columns, false = facts.columns, len(self.cuts) + 2
        places = np.zeros(len(facts), dtype=np.int32)
        if name in columns.numbers:
            numbers = columns.numbers[name]
            places = np.where(np.isnan(numbers), places, np.searchsorted(self.cuts, numbers, side="right") + 1)
        if name in columns.flags:
            flags = columns.flags[name].astype(np.int32)
            places = np.where(flags >= 0, flags + false, places)
        if name in columns.categories:
            codes, words = columns.categories[name]
            of_word = np.array([*(self.words.get(word, false + 2) for word in words), 0])
            places = np.where(codes >= 0, of_word[codes], places)
        return places.astype(np.int32)


def words_for(count: int) -> int:
    """The words that a bit set of so many rows takes."""
    return (count + 63) // 64


def packed(sets: Sequence[int], words: int) -> Words:
    """Bit sets as rows of words."""
    together = b"".join(bits.to_bytes(8 * words, "little") for bits in sets)
    return np.frombuffer(together, dtype=_WORD).reshape(len(sets), words)


def unpacked(rows: Words, count: int) -> BoolArray:
    """Rows of words as a table of flags.

    >>> unpacked(packed([0b101, 0b010], 1), 3).tolist()
    [[True, False, True], [False, True, False]]
    """
    bits = np.unpackbits(np.ascontiguousarray(rows).view(np.uint8), axis=1, bitorder="little", count=count)
    return bits.view(np.bool_)


def packed_flags(flags: BoolArray) -> Words:
    """A table of flags as rows of words, as `unpacked` takes them.

    >>> packed_flags(np.array([[True, False, True], [False, True, False]])).tolist()
    [[5], [2]]
    """
    whole = np.zeros((len(flags), 64 * words_for(flags.shape[1])), dtype=np.bool_)
    whole[:, : flags.shape[1]] = flags
    return np.packbits(whole, axis=1, bitorder="little").view(_WORD)


def counts_of(sets: Words) -> IntArray:
    """How many rows each bit set has."""
    counts: IntArray = np.bitwise_count(sets).sum(axis=1, dtype=np.int64)
    return counts


def sums_of(sets: Words, amounts: FloatArray) -> FloatArray:
    """The sum of the amounts of the rows in each bit set, in the order of the rows.

    >>> sums_of(packed([0b101, 0b010], 1), np.array([1.0, 2.0, 4.0])).tolist()
    [5.0, 2.0]
    """
    sums, at_once = np.zeros(len(sets)), max(1, _CELLS_AT_ONCE // max(1, len(amounts)))
    for start in range(0, len(sets), at_once):
        some = sets[start : start + at_once]
        each = np.repeat(np.arange(len(some)), counts_of(some))
        rows = np.flatnonzero(unpacked(some, len(amounts)).ravel()) - each * len(amounts)
        sums[start : start + at_once] = np.bincount(each, weights=amounts[rows], minlength=len(some))
    return sums


def rows_of_each(sets: Words, count: int) -> list[IntArray]:
    """The rows in each bit set, in order.

    >>> [rows.tolist() for rows in rows_of_each(packed([0b101, 0b010], 1), 3)]
    [[0, 2], [1]]
    """
    ends = np.cumsum(counts_of(sets)).tolist()
    rows = np.flatnonzero(unpacked(sets, count).ravel()) % max(1, count)  # faster than in two dimensions
    return [rows[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _number_fails(tests: Sequence[_Placed]) -> tuple[list[float], list[int]]:
    """The cuts between cells of numbers, and the rows that fail in each cell."""
    spans = [(1 << row, *_span(test.op, test.value)) for row, test in tests if isinstance(test.value, float)]
    cuts = sorted({cut for _, start, end, _ in spans for cut in (start, end) if cut is not None})
    cell_from = {cut: cell for cell, cut in enumerate(cuts, start=1)}
    only, before, since = ([0] * (len(cuts) + 2) for _ in range(3))
    for bit, start, end, negated in spans:
        if start is not None and negated:  # a single number lies between its start and its end
            only[cell_from[start]] |= bit
            continue
        if start is not None:
            before[cell_from[start]] |= bit
        if end is not None:
            since[cell_from[end]] |= bit
    fails_since = accumulate(since, or_)
    fails_before = list(accumulate(reversed(before), or_))[-2::-1]
    return cuts, [a | b | c for a, b, c in zip(only, fails_since, fails_before, strict=False)]


def _span(op: Op, value: float) -> tuple[float | None, float | None, bool]:
    """From which number on and up to which (exclusive) a test holds, or, if negated, fails."""
    following = math.nextafter(value, math.inf)
    match op:
        case Op.ABOVE:
            return following, None, False
        case Op.BELOW:
            return None, value, False
        case Op.AT_LEAST:
            return value, None, False
        case Op.AT_MOST:
            return None, following, False
    return value, following, op is Op.IS_NOT


def _word_fails(tests: Sequence[_Placed]) -> tuple[dict[str, int], int]:
    """The rows that fail for each word that a test names, and for any other word."""
    refusing: dict[str, int] = {}
    admitted: dict[int, frozenset[str]] = {}
    for row, test in tests:
        words = frozenset((test.value,) if isinstance(test.value, str) else test.value)  # type: ignore[arg-type]
        if test.op in NEGATED:
            for word in words:
                refusing[word] = refusing.get(word, 0) | 1 << row
        else:
            admitted[row] = admitted.get(row, words) & words  # two lists admit what stands in both
    admitting: dict[str, int] = {}
    for row, words in admitted.items():
        for word in words:
            admitting[word] = admitting.get(word, 0) | 1 << row
    choosy = _bits(admitted)
    named = refusing.keys() | admitting.keys()
    return {word: refusing.get(word, 0) | choosy & ~admitting.get(word, 0) for word in named}, choosy


def _bits(rows: Iterable[int]) -> int:
    """Rows as a bit set."""
    return _union(1 << row for row in rows)


def _union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)


Columns = npt.NDArray[np.void]
T = TypeVar("T")

SOURCES = tuple(Source)
STATUSES = tuple(Status)
VERDICTS: tuple[Verdict | None, ...] = (None, *Verdict)
ROW = np.dtype(
    [
        ("key", "u8"),
        ("node", "u2"),
        ("source", "u1"),
        ("status", "u1"),
        ("argues", "u1"),
        ("conditioned", "?"),
        ("policy", "?"),
        ("claimed", "?"),
        ("helpful", "i8"),
        ("harmful", "i8"),
        ("shown_support", "i8"),
        ("shown_frauds", "i8"),
        ("support", "i8"),
        ("frauds", "i8"),
        ("shown_base", "f8"),
        ("weight", "f8"),
    ]
)
"""The columns. ``support`` and ``frauds`` are the bullet's record since it was added, ``shown_`` those of its evidence;
``shown_base`` is NaN where nothing was measured, ``weight`` where none was fitted."""


def key_of(bullet_id: str) -> int:
    """A number for a bullet that is the same in every table."""
    return int.from_bytes(hashlib.blake2b(bullet_id.encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True, eq=False)
class RowSet:
    """Some rows of a table: as a mask for arithmetic, and as the bit set that `ConditionIndex` works with.

    >>> RowSet(np.array([True, False, True])).bits
    5
    """

    mask: BoolArray

    @cached_property
    def bits(self) -> int:
        """Bit i for row i."""
        return int.from_bytes(np.packbits(self.mask, bitorder="little").tobytes(), "little")


class Wording:
    """What the bullets of a table say, and what follows from it.

    Tables that differ only in counters share one, so a counter never invalidates anything derived from the words.
    """

    def __init__(self, bullets: tuple[Bullet, ...], facts: list[frozenset[str]], lower_case: list[str]) -> None:
        self._bullets = bullets
        self.facts = facts
        """The facts that the condition of each bullet tests; empty for prose."""
        self.lower_case = lower_case
        """The content of each bullet in lower case."""

    @cached_property
    def conditions(self) -> ConditionIndex:
        """The conditions, compiled together."""
        return ConditionIndex([bullet.condition for bullet in self._bullets])

    def updated(self, bullets: tuple[Bullet, ...], rows: Iterable[int]) -> Wording:
        """The wording of other bullets, of which only these rows say something else."""
        added = len(bullets) - len(self._bullets)
        facts, lower_case = self.facts + [frozenset()] * added, self.lower_case + [""] * added
        for row in rows:
            condition = bullets[row].condition
            facts[row] = frozenset() if condition is None else condition.facts
            lower_case[row] = bullets[row].content.lower()
        return Wording(bullets, facts, lower_case)


class BulletTable(Mapping[str, Bullet]):
    """The bullets of one revision in the order they were added. It never changes.

    >>> table = BulletTable.of([Bullet(id="b1", content="VPN: decline"), Bullet(id="b2", content="a regular: approve")])
    >>> table["b2"].content, list(table), table.columns["helpful"].tolist()
    ('a regular: approve', ['b1', 'b2'], [0, 0])
    """

    __slots__ = ("_nodes", "_rows", "bullets", "cache", "columns", "wording")

    def __init__(
        self,
        bullets: tuple[Bullet, ...],
        columns: Columns,
        rows: Mapping[str, int],
        nodes: Mapping[str, int],
        wording: Wording,
    ) -> None:
        self.bullets = bullets
        self.columns = columns
        self.wording = wording
        self._rows = rows
        self._nodes = nodes
        self.cache: dict[object, Any] = {}
        """What others have computed from this very table, under a key of their own."""

    @classmethod
    def of(cls, bullets: Iterable[Bullet]) -> BulletTable:
        """A table of these bullets."""
        return cls((), np.empty(0, dtype=ROW), {}, {}, Wording((), [], [])).updated(bullets)

    def updated(self, changed: Iterable[Bullet]) -> BulletTable:
        """A table with these bullets added, or put in place of those with the same id."""
        latest = {bullet.id: bullet for bullet in changed}
        added = [bullet_id for bullet_id in latest if bullet_id not in self._rows]
        rows = {**self._rows, **{name: row for row, name in enumerate(added, len(self))}} if added else self._rows
        nodes = dict(self._nodes)
        bullets = [*self.bullets, *(latest[bullet_id] for bullet_id in added)]
        reworded = bool(added)
        for bullet in latest.values():
            row = rows[bullet.id]
            before = bullets[row]
            reworded = reworded or (before.content, before.condition) != (bullet.content, bullet.condition)
            bullets[row] = bullet
        columns = np.empty(len(bullets), dtype=ROW)
        columns[: len(self)] = self.columns
        changed_rows = [row_of(bullet, nodes.setdefault(bullet.node, len(nodes))) for bullet in latest.values()]
        places = [rows[bullet_id] for bullet_id in latest]
        columns[places] = np.array(changed_rows, dtype=ROW)
        frozen = tuple(bullets)
        wording = self.wording.updated(frozen, places) if reworded else self.wording
        return BulletTable(frozen, columns, rows, nodes, wording)

    def __len__(self) -> int:
        return len(self.bullets)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __getitem__(self, bullet_id: str) -> Bullet:
        return self.bullets[self._rows[bullet_id]]

    def row(self, bullet_id: str) -> int:
        """The row of a bullet. KeyError if there is none of that id."""
        return self._rows[bullet_id]

    def node(self, name: str) -> int | None:
        """The number of a node in the columns; None if it has no bullet."""
        return self._nodes.get(name)

    def in_use(self, node: int | None, source: Source | None = None) -> RowSet:
        """The rows of a node that are weighed or read, of one source if asked: neither retired nor policies."""

        def compute() -> RowSet:
            mask = self.of_node(node).mask & ~self.columns["policy"]
            return RowSet(mask if source is None else mask & (self.columns["source"] == SOURCES.index(source)))

        return self.cached(("in use", node, source), compute)

    def in_force(self, node: int | None) -> RowSet:
        """The policies of a node that decide: neither retired nor waiting for approval."""
        waiting = STATUSES.index(Status.CANDIDATE)
        return self.cached(
            ("in force", node),
            lambda: RowSet(self.of_node(node).mask & self.columns["policy"] & (self.columns["status"] != waiting)),
        )

    def of_node(self, node: int | None) -> RowSet:
        """The rows of a node that are not retired, policies among them."""
        return self.cached(
            ("of node", node),
            lambda: RowSet(self.not_retired().mask & (self.columns["node"] == node if node is not None else False)),
        )

    def not_retired(self) -> RowSet:
        """The rows of all nodes that are not retired."""
        retired = STATUSES.index(Status.RETIRED)
        return self.cached("not retired", lambda: RowSet(self.columns["status"] != retired))

    def unapproved_notes(self) -> RowSet:
        """The rows without a condition that are candidates: no language model sees them before they are approved."""
        candidate = STATUSES.index(Status.CANDIDATE)
        return self.cached(
            "unapproved notes", lambda: RowSet((self.columns["status"] == candidate) & ~self.columns["conditioned"])
        )

    def cached(self, key: object, compute: Callable[[], T]) -> T:
        """What follows from this very table, computed once."""
        if key not in self.cache:
            self.cache[key] = compute()
        found: T = self.cache[key]
        return found


def row_of(bullet: Bullet, node: int) -> tuple[int | float | bool, ...]:
    """The columns of one bullet."""
    evidence = bullet.evidence
    shown = evidence.shown if evidence is not None else None
    return (
        key_of(bullet.id),
        node,
        SOURCES.index(bullet.source),
        STATUSES.index(bullet.status),
        VERDICTS.index(bullet.argues),
        bullet.condition is not None,
        bullet.policy is not None,
        bullet.claim is not None,
        bullet.helpful_count,
        bullet.harmful_count,
        shown.support if shown is not None else 0,
        shown.frauds if shown is not None else 0,
        bullet.record.support,
        bullet.record.frauds,
        evidence.base_rate if evidence is not None else np.nan,
        np.nan if bullet.weight is None else bullet.weight,
    )


def contradicted_in(
    table: BulletTable, node: str, condition: Condition | None, argues: Verdict | None
) -> tuple[str, ...]:
    """The ids of the bullets in use that argue for another verdict under an overlapping condition.

    Two conditions overlap if one implies the other: where the narrower one holds, the two bullets disagree.
    """
    if condition is None or argues is None:
        return ()
    mine, facts = condition.facts, table.wording.facts
    in_use = table.of_node(table.node(node)).mask & table.columns["conditioned"]
    against = np.flatnonzero(in_use & opposed_rows(table, argues)).tolist()
    # A condition implies only conditions on the same facts or on fewer of them.
    others = [table.bullets[row] for row in against if mine <= facts[row] or facts[row] <= mine]
    return tuple(other.id for other in others if other.condition is not None and _overlap(condition, other.condition))


def opposed(one: Verdict | None, other: Verdict | None) -> bool:
    """Whether two verdicts are known and differ."""
    return one is not None and other is not None and one is not other


def opposed_rows(table: BulletTable, argues: Verdict | None) -> BoolArray:
    """A mask of the bullets that argue for another verdict."""
    theirs = table.columns["argues"]
    against: BoolArray = (theirs != VERDICTS.index(None)) & (theirs != VERDICTS.index(argues)) & (argues is not None)
    return against


def _overlap(one: Condition, other: Condition) -> bool:
    return one.implies(other) or other.implies(one)
