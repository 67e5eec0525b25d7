"""The facts of many transactions as columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from acefraud.core.transaction import FactValue
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, quoted, shown_names
from acefraud.errors import InputError
from acefraud.support.arguments import nearest
from acefraud.support.arrays import BoolArray, FloatArray

Flags = npt.NDArray[np.int8]
Codes = npt.NDArray[np.int32]
Categories = tuple[Codes, tuple[str, ...]]
"""A code for each row, -1 where there is none, and the words that the codes stand for, in order."""
RowIndex = BoolArray | npt.NDArray[np.int64] | slice
"""Rows of a table to take: a mask, positions or a slice."""


@dataclass(frozen=True, slots=True, repr=False)
class Columns(ShortRepr):
    """Facts by name and type. A fact that is a number in one row and a word in another is in both.

    >>> import numpy as np
    >>> columns = Columns(
    ...     numbers={"amount": np.array([250.0, np.nan])},
    ...     categories={"channel": (np.array([0, 1], dtype=np.int32), ("app", "web"))},
    ... )
    >>> columns.names
    ['amount', 'channel']
    """

    numbers: Mapping[str, FloatArray] = field(default_factory=dict)
    """NaN where a row has none."""
    flags: Mapping[str, Flags] = field(default_factory=dict)
    """1 for true, 0 for false, -1 where a row has none."""
    categories: Mapping[str, Categories] = field(default_factory=dict)
    """A code for each row, -1 where a row has none, and the words that the codes stand for."""

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(shown_names(self.names))

    @property
    def names(self) -> list[str]:
        """The names of all facts, sorted."""
        return sorted({*self.numbers, *self.flags, *self.categories})

    def take(self, rows: RowIndex) -> Columns:
        """Some of the rows, in the given order."""
        return Columns(
            {name: column[rows] for name, column in self.numbers.items()},
            {name: column[rows] for name, column in self.flags.items()},
            {name: (codes[rows], words) for name, (codes, words) in self.categories.items()},
        )


class FactTable(ShortRepr):
    """The facts of many transactions, made from rows or from columns.

    A fact may be a number in one row and a word in another. Each accessor returns the values of its own type and
    treats the others as unknown, as a test on a single transaction does.

    >>> table = FactTable([{"amount": 5.0}, {"amount": 7.0, "vpn": True}])
    >>> table.numbers("amount").tolist(), table.flags("vpn").tolist()
    ([5.0, 7.0], [-1, 1])

    A name gives the values of a fact, a number the facts of a row, and a slice some of the rows:

    >>> "vpn" in table, table["amount"].tolist(), table["vpn"].tolist(), table[0]
    (True, [5.0, 7.0], [None, True], {'amount': 5.0})
    >>> table
    FactTable(2 rows, 2 facts: amount, vpn)
    """

    def __init__(self, rows: Sequence[Mapping[str, FactValue]]) -> None:
        self._count = len(rows)
        names = tuple(dict.fromkeys(chain.from_iterable(rows)))
        cells = zip(*[[*map(row.get, names)] for row in rows], strict=True)  # faster than column by column
        self.columns = columns_of(zip(names, cells, strict=True))

    @classmethod
    def of_columns(cls, columns: Columns, count: int) -> FactTable:
        """A table of ``count`` rows from columns.

        >>> import numpy as np
        >>> FactTable.of_columns(Columns({"amount": np.array([5.0, np.nan])}), 2).rows()
        [{'amount': 5.0}, {}]
        """
        table = cls.__new__(cls)
        table._count, table.columns = count, columns
        return table

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[dict[str, FactValue]]:
        return iter(self.rows())

    def __contains__(self, name: object) -> bool:
        columns = self.columns
        return any(name in some for some in (columns.numbers, columns.flags, columns.categories))

    @overload
    def __getitem__(self, index: str) -> npt.NDArray[Any]: ...

    @overload
    def __getitem__(self, index: int) -> dict[str, FactValue]: ...

    @overload
    def __getitem__(self, index: slice) -> FactTable: ...

    def __getitem__(self, index: str | int | slice) -> npt.NDArray[Any] | dict[str, FactValue] | FactTable:
        if isinstance(index, str):
            return self._values(index)
        return self.take(index) if isinstance(index, slice) else self.row(range(self._count)[index])

    def _values(self, name: str) -> npt.NDArray[Any]:
        """The values of a fact: numbers as such, NaN where unknown; anything else as objects, None where unknown."""
        columns = self.columns
        if name not in self:
            raise InputError(f"there is no fact {quoted(name)} in this table{nearest(name, self.names)}")
        if name not in columns.flags and name not in columns.categories:
            return columns.numbers[name]
        values = [row.get(name) for row in self.only([name]).rows()]
        return np.array([*values, None], dtype=object)[:-1]  # the None keeps NumPy from guessing a shape

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(f"{self._count:,} row{'' if self._count == 1 else 's'}")
        yield None, Plain(shown_names(self.names))

    @classmethod
    def stacked(cls, tables: Sequence[FactTable]) -> FactTable:
        """The rows of all tables, one after the other. Facts that a table lacks are unknown in its rows.

        >>> FactTable.stacked([FactTable([{"amount": 5.0}]), FactTable([{"vpn": True}])]).numbers("amount").tolist()
        [5.0, nan]
        """
        if len(tables) == 1:
            return tables[0]
        columns = [table.columns for table in tables]
        numbers = sorted({name for table in columns for name in table.numbers})
        flags = sorted({name for table in columns for name in table.flags})
        categories = sorted({name for table in columns for name in table.categories})
        return cls.of_columns(
            Columns(
                {name: np.concatenate([table.numbers(name) for table in tables]) for name in numbers},
                {name: np.concatenate([table.flags(name) for table in tables]) for name in flags},
                {name: stacked_words([table.categories(name) for table in tables]) for name in categories},
            ),
            sum(len(table) for table in tables),
        )

    def beside(self, other: Columns) -> FactTable:
        """The table with more facts. Where a row knows a fact already, its own value stays.

        >>> more = FactTable([{"amount": 9.0, "vpn": True}, {"amount": 7.0}]).columns
        >>> FactTable([{"amount": 5.0}, {"night": True}]).beside(more).rows()
        [{'amount': 5.0, 'vpn': True}, {'amount': 7.0, 'night': True}]
        """
        numbers = {**self.columns.numbers, **other.numbers}
        flags = {**self.columns.flags, **other.flags}
        categories = {**self.columns.categories, **other.categories}
        for name in set(self.names).intersection(other.names):
            unknown = ~self.known(name)
            if name in other.numbers:
                numbers[name] = np.where(unknown, other.numbers[name], self.numbers(name))
            if name in other.flags:
                flags[name] = np.where(unknown, other.flags[name], self.flags(name)).astype(np.int8)
            if name in other.categories:
                codes, words = stacked_words([self.categories(name), other.categories[name]])
                mine, theirs = np.split(codes, 2)
                categories[name] = np.where(unknown, theirs, mine).astype(np.int32), words
        return FactTable.of_columns(Columns(numbers, flags, categories), self._count)

    def without(self, names: Collection[str]) -> FactTable:
        """The table with these facts unknown.

        >>> FactTable([{"amount": 5.0, "vpn": True}]).without(["vpn"]).rows()
        [{'amount': 5.0}]
        """
        return self.only([name for name in self.names if name not in names])

    def only(self, names: Collection[str]) -> FactTable:
        """The table with all other facts unknown."""
        columns = self.columns
        kept = Columns(
            {name: column for name, column in columns.numbers.items() if name in names},
            {name: column for name, column in columns.flags.items() if name in names},
            {name: column for name, column in columns.categories.items() if name in names},
        )
        return FactTable.of_columns(kept, self._count)

    @property
    def names(self) -> list[str]:
        """The names of all facts that any row knows, sorted."""
        return self.columns.names

    def take(self, rows: RowIndex) -> FactTable:
        """A table of some of the rows, in the given order.

        >>> FactTable([{"amount": 5.0}, {"amount": 7.0}]).take(slice(1, 2)).rows()
        [{'amount': 7.0}]
        """
        taken = len(np.arange(self._count)[rows])
        return FactTable.of_columns(self.columns.take(rows), taken)

    def numbers(self, name: str) -> FloatArray:
        """The numbers, NaN where a row has none."""
        column = self.columns.numbers.get(name)
        return np.full(self._count, np.nan) if column is None else column

    def flags(self, name: str) -> Flags:
        """1 for true, 0 for false, -1 where a row has no flag."""
        column = self.columns.flags.get(name)
        return np.full(self._count, -1, dtype=np.int8) if column is None else column

    def categories(self, name: str) -> Categories:
        """The codes, -1 where a row has no word, and the words they stand for."""
        column = self.columns.categories.get(name)
        return (np.full(self._count, -1, dtype=np.int32), ()) if column is None else column

    def known(self, name: str) -> BoolArray:
        """Whether each row knows the fact.

        >>> FactTable([{"amount": 5.0}, {"vpn": True}]).known("vpn").tolist()
        [False, True]
        """
        return ~np.isnan(self.numbers(name)) | (self.flags(name) >= 0) | (self.categories(name)[0] >= 0)

    def rows(self) -> list[dict[str, FactValue]]:
        """The facts of every row as a dict. Much faster than calling `row` for each.

        >>> FactTable([{"amount": 5.0}, {"amount": 7.0, "vpn": True}]).rows()
        [{'amount': 5.0}, {'amount': 7.0, 'vpn': True}]
        """
        rows: list[dict[str, FactValue]] = [{} for _ in range(self._count)]
        columns = self.columns
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
        """The facts of one row as a dict."""
        (facts,) = self.take(slice(place, place + 1)).rows()
        return facts


_NUMBERS = {float, type(None)}


def columns_of(facts: Iterable[tuple[str, Sequence[FactValue | None]]]) -> Columns:
    """Facts as columns, each value among its own kind, None where a row has none."""
    numbers: dict[str, FloatArray] = {}
    flags: dict[str, Flags] = {}
    categories: dict[str, Categories] = {}
    for name, values in facts:
        kinds = {*map(type, values)}
        if float in kinds:
            known = values if kinds <= _NUMBERS else [value if type(value) is float else None for value in values]
            numbers[name] = np.array(known, dtype=np.float64)  # which takes None for NaN
        if bool in kinds:
            known = values if len(kinds) == 1 else [value if type(value) is bool else -1 for value in values]
            flags[name] = np.array(known, dtype=np.int8)
        if str in kinds:
            categories[name] = coded([value if type(value) is str else None for value in values])
    return Columns(numbers, flags, categories)


def coded(values: Sequence[str | None]) -> Categories:
    """Words as codes, -1 for None.

    >>> codes, words = coded(["web", None, "app"])
    >>> codes.tolist(), words
    ([1, -1, 0], ('app', 'web'))
    """
    words = tuple(sorted({value for value in values if value is not None}))
    code: dict[str | None, int] = {None: -1, **{word: index for index, word in enumerate(words)}}
    return np.array([*map(code.__getitem__, values)], dtype=np.int32), words


def stacked_words(parts: Sequence[Categories]) -> Categories:
    """Words of several tables as those of one, one after the other."""
    if all(words is parts[0][1] or words == parts[0][1] for _, words in parts):
        return np.concatenate([codes for codes, _ in parts]), parts[0][1]
    together = tuple(sorted({word for _, words in parts for word in words}))
    place = {word: position for position, word in enumerate(together)}
    lookups = [np.array([*(place[word] for word in words), -1], dtype=np.int32) for _, words in parts]
    return np.concatenate([lookup[codes] for lookup, (codes, _) in zip(lookups, parts, strict=True)]), together
