"""Conditions as columns of numbers, so that one condition is compared with many at once."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from acefraud.core.book import Book
from acefraud.core.comparison import Op, TestValue
from acefraud.core.condition import MAX_TESTS, Condition
from acefraud.core.following import BookFollower, condition_at, renewed_rows
from acefraud.core.page import PAGE, Mask

Rows = npt.NDArray[np.intp]

_NO_ROWS: Rows = np.empty(0, dtype=np.intp)
_NO_FACT, _UNHEARD_OF = -1, -2
_FROM_BELOW, _FROM_ABOVE, _STRICTLY, _KNOWN, _MISSING, _LIST, _FIGURE, _NEGATED = (1 << place for place in range(8))
_KINDS = {
    Op.ABOVE: _FROM_BELOW | _STRICTLY,
    Op.AT_LEAST: _FROM_BELOW,
    Op.BELOW: _FROM_ABOVE | _STRICTLY,
    Op.AT_MOST: _FROM_ABOVE,
    Op.IS: 0,
    Op.IS_NOT: _NEGATED,
    Op.IN: _LIST,
    Op.NOT_IN: _NEGATED,  # told from the one above by its value, which is never that of the other
    Op.MISSING: _MISSING,
    Op.KNOWN: _KNOWN,
}
"""How a test compares, as bits; one more says whether it does so with a figure."""


_TEST = np.dtype([("fact", np.int32), ("kind", np.uint8), ("value", np.float64)], align=True)
"""Of which fact a test is, of which kind, and the figure, or the number of what is compared with."""
_NO_TEST = (_NO_FACT, 0, 0.0)


@dataclass(frozen=True, slots=True)
class _Tests:
    """The tests of many conditions, with a column for each condition."""

    fact: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]
    value: npt.NDArray[np.float64]

    @classmethod
    def of(cls, conditions: npt.NDArray[np.void]) -> _Tests:
        """From conditions in rows."""
        return cls(*(np.ascontiguousarray(conditions[name].T) for name in ("fact", "kind", "value")))

    def along(self, axis: int) -> _Tests:
        """The same with one more axis."""
        return _Tests(
            np.expand_dims(self.fact, axis), np.expand_dims(self.kind, axis), np.expand_dims(self.value, axis)
        )


class _Pile:
    """Rows in no order."""

    def __init__(self) -> None:
        self._count = 0
        self._rows: Rows = np.zeros(4, dtype=np.intp)

    @property
    def rows(self) -> Rows:
        """Those in it."""
        return self._rows[: self._count]

    def put(self, row: int) -> int:
        """Add one; returns at which place."""
        if self._count == len(self._rows):
            self._rows = np.concatenate([self._rows, self._rows])
        self._rows[self._count] = row
        self._count += 1
        return self._count - 1

    def take_out(self, place: int) -> int:
        """Put the last one in the place of this; returns which that was."""
        self._count -= 1
        self._rows[place] = self._rows[self._count]
        return int(self._rows[place])


class EncodedConditions:
    """The conditions of a book. A row may have none.

    >>> from acefraud.core.bullet import Bullet
    >>> texts = ["amount > 5", "amount > 7 and vpn is true", "hour < 6"]
    >>> bullets = [Bullet(id=text, content=text, condition=Condition.parse(text)) for text in texts]
    >>> encoded = EncodedConditions()
    >>> encoded.keep_up_with(Book.of(bullets))
    >>> encoded.overlapping(Condition.parse("amount > 6"), lambda rows: rows >= 0).tolist()
    [0, 1]
    >>> encoded.near(Condition.parse("amount > 5.1"), tolerance=0.05).tolist()
    [0]
    """

    def __init__(self) -> None:
        self._follower = BookFollower()
        self._book = Book.of(())
        self._tests: npt.NDArray[np.void] = np.empty((0, MAX_TESTS), dtype=_TEST)
        self._facts: dict[str, int] = {}
        self._values: dict[tuple[type, TestValue], int] = {}
        self._piles: dict[frozenset[str], _Pile] = {}
        """The rows that speak of the same facts, by these facts."""
        self._sets_with: defaultdict[frozenset[str], list[frozenset[str]]] = defaultdict(list)
        """The sets of facts, by each fact in them and by each two."""
        self._pile_of: list[_Pile | None] = []
        self._place_of = array("q")

    def keep_up_with(self, book: Book) -> None:
        """Stand for this book from now on; only what changed is looked at."""
        self._make_room(len(book.pages) * PAGE)
        for number, page, before in self._follower.changes(book):
            if before is not None and page.compiled is not None and page.compiled is before.compiled:
                continue
            conditioned = page.table["conditioned"].tolist()
            for row in renewed_rows(page, before):
                self._write(number * PAGE + row, condition_at(page, row) if conditioned[row] else None)
        self._book = book

    def near(self, condition: Condition, tolerance: float) -> Rows:
        """The rows that make the same tests, with figures that differ by no more than this share, in order."""
        rows = self._rows_about([condition.facts])
        mine, theirs = self._encoded(condition, MAX_TESTS), _Tests.of(self._tests[rows])
        with np.errstate(over="ignore"):
            apart = np.abs(mine.value - theirs.value)
        widest = np.maximum(np.abs(tolerance * mine.value), np.abs(tolerance * theirs.value))
        close = (mine.value == theirs.value) | (((mine.kind & _FIGURE) != 0) & (apart <= widest))
        same: Mask = (mine.fact == theirs.fact) & (mine.kind == theirs.kind) & close
        return np.sort(rows[np.all(same, axis=0)])

    def overlapping(self, condition: Condition, among: Callable[[Rows], Mask]) -> Rows:
        """Of the rows asked for, those whose condition implies this one or is implied by it, in order.

        ``among`` tells which of some rows are asked for.
        """
        rows = self._of_such_facts(condition)
        rows = rows[among(rows)]
        mine = self._encoded(condition, len(condition.tests)).along(0)
        theirs = _Tests.of(self._tests[rows]).along(1)
        # Along the axes: the tests of each row, the tests of this condition, the rows.
        narrower = np.all(_implies(theirs, mine).any(axis=0), axis=0)
        wider = np.all(_implies(mine, theirs).any(axis=1) | (theirs.fact[:, 0] == _NO_FACT), axis=0)
        found: Mask = narrower | wider
        unsure = ((mine.kind & _LIST) != 0).any() | ((theirs.kind & _LIST) != 0).any(axis=(0, 1))
        for place in np.flatnonzero(found & unsure):
            number, row = divmod(int(rows[place]), PAGE)
            other = condition_at(self._book.pages[number], row)
            found[place] = other is not None and (other.implies(condition) or condition.implies(other))
        return np.sort(rows[found])

    def _of_such_facts(self, condition: Condition) -> Rows:
        """The rows that speak of no other facts, or of all of these: only such imply it or are implied."""
        facts = condition.facts
        fewer = [some for size in range(1, len(facts)) for some in _some_of(facts, size)]
        parts = _some_of(facts, min(2, len(facts)))
        fewest = min((self._sets_with.get(some, []) for some in parts), key=len)
        return self._rows_about([*fewer, *(each for each in fewest if facts <= each)])

    def _rows_about(self, sets: Iterable[frozenset[str]]) -> Rows:
        """The rows of the book that speak of one of these sets of facts, in no order."""
        rows = np.concatenate([_NO_ROWS, *(self._piles[each].rows for each in sets if each in self._piles)])
        return rows[rows < len(self._book)]

    def _pile_for(self, facts: frozenset[str]) -> _Pile:
        if facts not in self._piles:
            self._piles[facts] = _Pile()
            for fact in facts:
                self._facts.setdefault(fact, len(self._facts))
            for some in (*_some_of(facts, 1), *_some_of(facts, 2)):
                self._sets_with[some].append(facts)
        return self._piles[facts]

    def _make_room(self, rows: int) -> None:
        before = len(self._tests)
        if rows > before:
            more = max(rows, before + before // 4) - before
            self._tests = np.concatenate([self._tests, np.full((more, MAX_TESTS), np.array(_NO_TEST, dtype=_TEST))])
            self._pile_of.extend([None] * more)
            self._place_of.extend([0] * more)

    def _write(self, row: int, condition: Condition | None) -> None:
        before, place = self._pile_of[row], self._place_of[row]
        if before is not None:
            self._place_of[before.take_out(place)] = place
        self._pile_of[row] = None
        if condition is None:
            return
        pile = self._pile_of[row] = self._pile_for(condition.facts)
        self._place_of[row] = pile.put(row)
        for test in condition.tests:
            if not isinstance(test.value, float):
                self._values.setdefault((type(test.value), test.value), len(self._values))
        self._tests[row] = self._numbers_of(condition, MAX_TESTS)

    def _encoded(self, condition: Condition, places: int) -> _Tests:
        """A condition by itself. What no row speaks of is like nothing."""
        return _Tests.of(np.array([self._numbers_of(condition, places)], dtype=_TEST))

    def _numbers_of(self, condition: Condition, places: int) -> list[tuple[int, int, float]]:
        numbers = []
        for test in condition.tests:
            fact, kind, value = self._facts.get(test.fact, _UNHEARD_OF), _KINDS[test.op], test.value
            if isinstance(value, float):
                numbers.append((fact, kind | _FIGURE, value))
            else:
                numbers.append((fact, kind, self._values.get((type(value), value), np.nan)))
        return [*numbers, *[_NO_TEST] * (places - len(numbers))]


def _some_of(facts: frozenset[str], count: int) -> list[frozenset[str]]:
    return [frozenset(some) for some in combinations(facts, count)]


def _implies(one: _Tests, other: _Tests) -> Mask:
    """Whether each test implies the other; of lists of words it says so whenever it might."""
    same = one.value == other.value
    below = (one.kind & other.kind & _FROM_BELOW) != 0
    above = (one.kind & other.kind & _FROM_ABOVE) != 0
    looser = ~one.kind & other.kind & _STRICTLY  # only of two bounds at the same place
    bounded = (below & (one.value > other.value)) | (above & (one.value < other.value))
    bounded |= (below | above) & same & (looser == 0)
    known = ((other.kind & _KNOWN) != 0) & ((one.kind & _MISSING) == 0)
    listed = ((one.kind | other.kind) & _LIST) != 0
    implied: Mask = (one.fact == other.fact) & (((one.kind == other.kind) & same) | bounded | known | listed)
    return implied
