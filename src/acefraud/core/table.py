"""A column table of facts: the same facts as in transactions, many at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from acefraud.core.transaction import FactValue

T = TypeVar("T")
Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.int8]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
RowIndex = Mask | npt.NDArray[np.int64] | slice
"""Some rows of a table: a mask, their places, or a slice."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Facts by name and kind. A fact that is a number in one row and a word in another stands in both."""

    numbers: Mapping[str, Numbers] = field(default_factory=dict)
    """NaN where there is none."""
    flags: Mapping[str, Flags] = field(default_factory=dict)
    """1 for true, 0 for false, -1 where there is none."""
    categories: Mapping[str, tuple[Codes, tuple[str, ...]]] = field(default_factory=dict)
    """A code for each row (-1 where there is no word), and the words the codes stand for, in order."""

    @property
    def names(self) -> list[str]:
        """All facts, in alphabetical order."""
        return sorted({*self.numbers, *self.flags, *self.categories})

    def take(self, rows: RowIndex) -> Columns:
        """Some of the rows."""
        return Columns(
            {name: column[rows] for name, column in self.numbers.items()},
            {name: column[rows] for name, column in self.flags.items()},
            {name: (codes[rows], words) for name, (codes, words) in self.categories.items()},
        )


class FactTable:
    """Facts of many transactions, from rows or from columns.

    A fact may be a number in one row and a word in another; each view shows the values of its own type and calls
    the rest unknown, which is how a test on a single transaction sees them too.

    >>> table = FactTable([{"amount": 5.0}, {"amount": 7.0, "vpn": True}])
    >>> table.numbers("amount").tolist(), table.flags("vpn").tolist()
    ([5.0, 7.0], [-1, 1])
    >>> FactTable.of_columns(Columns({"amount": np.array([5.0, np.nan])}), 2).row(1)
    {}
    """

    def __init__(self, rows: Sequence[Mapping[str, FactValue]]) -> None:
        self._count = len(rows)
        self._columns = _columns_of(rows)

    @classmethod
    def of_columns(cls, columns: Columns, count: int) -> FactTable:
        """A table of so many rows from columns that are there already."""
        table = cls.__new__(cls)
        table._count, table._columns = count, columns
        return table

    def __len__(self) -> int:
        return self._count

    @classmethod
    def stacked(cls, tables: Sequence[FactTable]) -> FactTable:
        """Tables one under the other. Facts that one of them lacks are unknown there.

        >>> FactTable.stacked([FactTable([{"amount": 5.0}]), FactTable([{"vpn": True}])]).numbers("amount").tolist()
        [5.0, nan]
        """
        if len(tables) == 1:
            return tables[0]
        columns = [table.columns for table in tables]
        numbers = sorted({name for one in columns for name in one.numbers})
        flags = sorted({name for one in columns for name in one.flags})
        categories = sorted({name for one in columns for name in one.categories})
        return cls.of_columns(
            Columns(
                {name: np.concatenate([table.numbers(name) for table in tables]) for name in numbers},
                {name: np.concatenate([table.flags(name) for table in tables]) for name in flags},
                {name: _stacked_words([table.categories(name) for table in tables]) for name in categories},
            ),
            sum(len(table) for table in tables),
        )

    def beside(self, other: Columns) -> FactTable:
        """The facts of both. Where a row knows a fact already, its own value stays."""
        names = [name for name in other.names if name not in self.names]
        both = [name for name in other.names if name in self.names]
        mine, theirs = self._columns, FactTable.of_columns(other, self._count)
        kinds = (
            {**mine.numbers, **{name: other.numbers[name] for name in names if name in other.numbers}},
            {**mine.flags, **{name: other.flags[name] for name in names if name in other.flags}},
            {**mine.categories, **{name: other.categories[name] for name in names if name in other.categories}},
        )
        for name in both:
            unknown = ~self.known(name)
            if name in other.numbers:
                kinds[0][name] = np.where(unknown, theirs.numbers(name), self.numbers(name))
            if name in other.flags:
                kinds[1][name] = np.where(unknown, theirs.flags(name), self.flags(name)).astype(np.int8)
            if name in other.categories:
                codes, words = theirs.categories(name)
                hidden = np.where(unknown, codes, -1).astype(np.int32), words
                kinds[2][name] = _either(self.categories(name), hidden)
        return FactTable.of_columns(Columns(*kinds), self._count)

    @property
    def columns(self) -> Columns:
        """The columns as they are."""
        return self._columns

    @property
    def names(self) -> list[str]:
        """All facts that any row knows, in alphabetical order."""
        return self._columns.names

    def take(self, rows: RowIndex) -> FactTable:
        """Some of the rows, as a table."""
        taken = len(np.arange(self._count)[rows])
        return FactTable.of_columns(self._columns.take(rows), taken)

    def numbers(self, name: str) -> Numbers:
        """The numeric values, NaN where there is none."""
        column = self._columns.numbers.get(name)
        return np.full(self._count, np.nan) if column is None else column

    def flags(self, name: str) -> Flags:
        """1 for true, 0 for false, -1 where there is no flag."""
        column = self._columns.flags.get(name)
        return np.full(self._count, -1, dtype=np.int8) if column is None else column

    def categories(self, name: str) -> tuple[Codes, tuple[str, ...]]:
        """A code for each row (-1 where there is no word), and the words the codes stand for."""
        column = self._columns.categories.get(name)
        return (np.full(self._count, -1, dtype=np.int32), ()) if column is None else column

    def known(self, name: str) -> Mask:
        """Whether each row knows the fact at all."""
        known = np.zeros(self._count, dtype=np.bool_)
        if name in self._columns.numbers:
            known |= ~np.isnan(self._columns.numbers[name])
        if name in self._columns.flags:
            known |= self._columns.flags[name] >= 0
        if name in self._columns.categories:
            known |= self._columns.categories[name][0] >= 0
        return known

    def rows(self) -> list[dict[str, FactValue]]:
        """The facts of every row, as transactions would carry them: what `row` says of each, at a fraction of the cost.

        >>> FactTable([{"amount": 5.0}, {"amount": 7.0, "vpn": True}]).rows()
        [{'amount': 5.0}, {'amount': 7.0, 'vpn': True}]
        """
        rows: list[dict[str, FactValue]] = [{} for _ in range(self._count)]
        columns = self._columns
        for name in self.names:
            if name in columns.categories:
                codes, words = columns.categories[name]
                for row, code in zip(rows, codes.tolist(), strict=True):
                    if code >= 0:
                        row[name] = words[code]
            if name in columns.flags:
                for row, flag in zip(rows, columns.flags[name].tolist(), strict=True):
                    if flag >= 0:
                        row[name] = bool(flag)
            if name in columns.numbers:
                for row, number in zip(rows, columns.numbers[name].tolist(), strict=True):
                    if number == number:  # noqa: PLR0124  # not NaN
                        row[name] = number
        return rows

    def row(self, place: int) -> dict[str, FactValue]:
        """The facts of one row, as a transaction would carry them."""
        facts: dict[str, FactValue] = {}
        columns = self._columns
        for name in self.names:
            if name in columns.numbers and not np.isnan(columns.numbers[name][place]):
                facts[name] = float(columns.numbers[name][place])
            elif name in columns.flags and columns.flags[name][place] >= 0:
                facts[name] = bool(columns.flags[name][place])
            elif name in columns.categories and (code := int(columns.categories[name][0][place])) >= 0:
                facts[name] = columns.categories[name][1][code]
        return facts


def _columns_of(rows: Sequence[Mapping[str, FactValue]]) -> Columns:
    numbers: dict[str, Numbers] = {}
    flags: dict[str, Flags] = {}
    categories: dict[str, tuple[Codes, tuple[str, ...]]] = {}
    names: dict[str, FactValue] = {}
    for row in rows:
        names.update(row)
    for name in names:
        values = [row.get(name) for row in rows]
        kinds = set(map(type, values))
        if float in kinds:
            numbers[name] = np.array(_only(float, values, kinds), dtype=np.float64)  # None becomes NaN
        if bool in kinds:
            flags[name] = np.array([-1 if one is None else one for one in _only(bool, values, kinds)], dtype=np.int8)
        if str in kinds:
            categories[name] = coded(_only(str, values, kinds))
    return Columns(numbers, flags, categories)


def _only(kind: type[T], values: Sequence[FactValue | None], kinds: set[type]) -> Sequence[T | None]:
    """The values of one kind, and None in place of others."""
    if kinds <= {kind, type(None)}:
        return cast(Sequence[T | None], values)
    return [value if type(value) is kind else None for value in values]


def coded(values: Sequence[str | None]) -> tuple[Codes, tuple[str, ...]]:
    """Words as codes, -1 where there is none.

    >>> codes, words = coded(["web", None, "app"])
    >>> codes.tolist(), words
    ([1, -1, 0], ('app', 'web'))
    """
    words = tuple(sorted({value for value in values if value is not None}))
    code: dict[str | None, int] = {word: place for place, word in enumerate(words)}
    return np.array([code.get(value, -1) for value in values], dtype=np.int32), words


def _either(one: tuple[Codes, tuple[str, ...]], other: tuple[Codes, tuple[str, ...]]) -> tuple[Codes, tuple[str, ...]]:
    """The words of one, and those of the other where the first has none."""
    codes, words = _stacked_words([one, other])
    first, second = codes[: len(one[0])], codes[len(one[0]) :]
    return np.where(first >= 0, first, second).astype(np.int32), words


def _stacked_words(parts: Sequence[tuple[Codes, tuple[str, ...]]]) -> tuple[Codes, tuple[str, ...]]:
    if all(words is parts[0][1] or words == parts[0][1] for _, words in parts):
        return np.concatenate([codes for codes, _ in parts]), parts[0][1]
    together = tuple(sorted({word for _, words in parts for word in words}))
    place = {word: position for position, word in enumerate(together)}
    lookups = [np.array([*(place[word] for word in words), -1], dtype=np.int32) for _, words in parts]
    return np.concatenate([lookup[codes] for lookup, (codes, _) in zip(lookups, parts, strict=True)]), together
