"""Transactions and cases as columns that read as a sequence of rows. A row is built when you ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime
from operator import eq
from typing import Any, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt

from acefraud.core.table import Categories, Columns, FactTable, RowIndex, coded
from acefraud.core.transaction import Case, FactValue, Transaction
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, shown_names, shown_value
from acefraud.support.arguments import rows_of
from acefraud.support.arrays import FloatArray, IntArray
from acefraud.support.hashes import hashes_of
from acefraud.support.timestamps import UNKNOWN, micros_of, time_of
from acefraud.support.validation import construct_unchecked

Ids = npt.NDArray[np.object_]
R = TypeVar("R", Transaction, Case)

_ROWS_AT_ONCE = 1_000
_MISSING = {"texts": "", "difficulty": "", "metadata": {}, "weights": 1.0}
"""What the rows of a part have that lacks a column of another."""


class _RowSequence(ShortRepr, Sequence[R]):
    """What transactions and cases share: columns of one length, indexing, and equality with any sequence of equal rows.

    All attributes are columns.
    """

    def _at(self, place: int) -> R:
        raise NotImplementedError

    def _with(self, **columns: Any) -> Self:
        """The same rows with other columns."""
        same = copy(self)
        vars(same).update(columns)
        return same

    def take(self, rows: RowIndex) -> Self:
        """Some of the rows, in the given order. A slice copies nothing.

        >>> rows = [Transaction(id=name, facts={"amount": 5.0}) for name in ("t1", "t2")]
        >>> cases = Cases.of(Case(transaction=row, is_fraud=row.id == "t2") for row in rows)
        >>> cases.take(cases.labels).transactions.ids.tolist()
        ['t2']
        """
        return self._with(**{name: _some(column, rows, len(self)) for name, column in vars(self).items()})

    @classmethod
    def stacked(cls, parts: Sequence[Self]) -> Self:
        """All rows, one part after the other.

        >>> first, second = (Transactions.of([Transaction(id=name, text="x")]) for name in ("t1", "t2"))
        >>> Transactions.stacked([first, second]).ids.tolist()
        ['t1', 't2']
        """
        filled = [part for part in parts if len(part)] or list(parts[:1])
        if len(filled) == 1:
            return filled[0]
        counts = [len(part) for part in filled]
        columns = {name: [vars(part)[name] for part in filled] for name in vars(filled[0])}
        return filled[0]._with(**{name: _joined(some, counts, _MISSING.get(name)) for name, some in columns.items()})

    @overload
    def __getitem__(self, index: int) -> R: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> R | Self:
        return self.take(index) if isinstance(index, slice) else self._at(range(len(self))[index])

    def __contains__(self, value: object) -> bool:
        """Whether a row is among them, or one with that id."""
        key = value.transaction.id if isinstance(value, Case) else getattr(value, "id", value)
        rows: Any = getattr(self, "transactions", self)
        places: list[int] = np.flatnonzero(rows.ids == key).tolist() if isinstance(key, str) else []
        return bool(places) if isinstance(value, str) else any(self._at(index) == value for index in places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]


class Transactions(_RowSequence[Transaction]):
    """Many transactions: their facts as a table, with their ids, times, texts and entities.

    >>> rows = Transactions.of([Transaction(id="t1", facts={"amount": 5.0}), Transaction(id="t2", text="$7 purchase")])
    >>> rows.facts.numbers("amount").tolist(), rows[1].text
    ([5.0, nan], '$7 purchase')
    """

    def __init__(
        self,
        ids: Ids,
        facts: FactTable,
        *,
        times: IntArray | None = None,
        texts: Sequence[str] | None = None,
        entities: Mapping[str, Categories] | None = None,
    ) -> None:
        """``texts`` is None if no row has one."""
        self.ids = ids
        self.facts = facts
        self.times = np.full(len(ids), UNKNOWN, dtype=np.int64) if times is None else times
        self.texts = texts
        self.entities: Mapping[str, Categories] = entities or {}
        self._rows: Sequence[Transaction] | None = None

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(f"{len(self):,} row{'' if len(self) == 1 else 's'}")
        if self.span is not None:
            yield None, Plain(" to ".join(shown_value(time) for time in self.span))
        yield None, Plain(shown_names(self.facts.names))
        if self.texts is not None:
            yield None, Plain("with texts")

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """The first and the last time; None if no transaction has one."""
        known = self.times[self.times != UNKNOWN]
        first, last = (time_of(known.min()), time_of(known.max())) if len(known) else (None, None)
        return None if first is None or last is None else (first, last)

    @classmethod
    def of(cls, rows: Iterable[Transaction]) -> Transactions:
        """The rows as columns. Transactions in columns already are returned unchanged."""
        if isinstance(rows, Transactions):
            return rows
        given = rows_of("transactions", rows, Transaction, "a sequence of Transaction")
        columns = sorted({column for row in given for column in row.entities})
        made = cls(
            np.array([row.id for row in given], dtype=object),
            FactTable([row.facts for row in given]),
            times=np.array([micros_of(row.time) for row in given], dtype=np.int64),
            texts=[row.text for row in given] if any(row.text for row in given) else None,
            entities={column: coded([row.entities.get(column) for row in given]) for column in columns},
        )
        made._rows = given
        return made

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Transaction]:
        if self._rows is not None:
            yield from self._rows
            return
        for start in range(0, len(self), _ROWS_AT_ONCE):
            facts = self.facts.take(slice(start, start + _ROWS_AT_ONCE)).rows()
            yield from (self._row(index, each) for index, each in enumerate(facts, start))

    def _at(self, place: int) -> Transaction:
        return self._row(place, self.facts.row(place)) if self._rows is None else self._rows[place]

    def with_ids(self, ids: Ids) -> Transactions:
        """The same transactions with other ids."""
        return self._with(ids=ids, _rows=None)

    def with_facts(self, facts: FactTable) -> Transactions:
        """The same transactions with other facts."""
        return self._with(facts=facts, _rows=None)

    def with_entities(self, entities: Mapping[str, Categories]) -> Transactions:
        """The same transactions with other entities."""
        return self._with(entities=entities, _rows=None)

    def with_times(self, times: IntArray) -> Transactions:
        """The same transactions with other times."""
        return self if times is self.times else self._with(times=times, _rows=None)

    @property
    def timed(self) -> bool:
        """Whether every transaction has a time."""
        return bool((self.times != UNKNOWN).all())

    def order(self) -> IntArray:
        """The rows by time, those without one first; as they are if none has a time.

        Rows at the same time go by the hashes of their ids, so that the order does not depend on how rows are divided
        into files.

        >>> from datetime import UTC, datetime
        >>> noon = datetime(2025, 3, 1, 12, tzinfo=UTC)
        >>> rows = [Transaction(id=name, time=noon, text="$5 purchase") for name in ("t1", "t2", "t3")]
        >>> [[some[place].id for place in Transactions.of(some).order()] for some in (rows, rows[::-1])]
        [['t2', 't1', 't3'], ['t2', 't1', 't3']]
        """
        if not (self.times != UNKNOWN).any():
            return np.arange(len(self))
        order = np.argsort(self.times, kind="stable")
        times = self.times[order]
        same = times[1:] == times[:-1]
        tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
        hashes = hashes_of(self.ids[order[tied]])
        order[tied] = order[tied][np.lexsort((hashes, times[tied]))]
        return order

    def text(self, place: int) -> str:
        """The text of one transaction."""
        return "" if self.texts is None else self.texts[place]

    def _row(self, place: int, facts: dict[str, FactValue]) -> Transaction:
        return construct_unchecked(
            Transaction,
            id=self.ids[place],
            time=time_of(self.times[place]),
            facts=facts,
            text=self.text(place),
            entities={name: words[codes[place]] for name, (codes, words) in self.entities.items() if codes[place] >= 0},
        )


class Cases(_RowSequence[Case]):
    """Many labelled transactions.

    >>> case = Case(transaction=Transaction(id="t1", facts={"amount": 5.0}), is_fraud=True)
    >>> cases = Cases.of([case])
    >>> cases.labels.tolist(), cases[0] == case
    ([True], True)
    """

    def __init__(
        self,
        transactions: Transactions,
        labels: npt.NDArray[np.bool_],
        *,
        known_at: IntArray | None = None,
        difficulty: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        weights: FloatArray | None = None,
    ) -> None:
        """``known_at`` is when each label became known, or `UNKNOWN`.

        ``weights`` say how much each case counts when bullets are weighed, such as the amount at risk. What is measured
        of a bullet counts cases, whatever they weigh.
        """
        self.transactions = transactions
        self.labels = labels
        self.known_at = np.full(len(labels), UNKNOWN, dtype=np.int64) if known_at is None else known_at
        self.difficulty = difficulty
        self.metadata = metadata
        self.weights = weights

    def __repr_args__(self) -> ReprArgs:
        rows, *others = self.transactions.__repr_args__()
        yield rows
        yield None, Plain(f"{int(self.labels.sum()):,} fraud{'' if self.labels.sum() == 1 else 's'}")
        yield from others

    @classmethod
    def of(cls, rows: Iterable[Case]) -> Cases:
        """The rows as columns. Cases in columns already are returned unchanged."""
        if isinstance(rows, Cases):
            return rows
        given = rows_of("cases", rows, Case, "a sequence of Case, a transaction with its label")
        return cls(
            Transactions.of([row.transaction for row in given]),
            np.array([row.is_fraud for row in given], dtype=np.bool_),
            known_at=np.array([micros_of(row.known_at) for row in given], dtype=np.int64),
            difficulty=[row.difficulty for row in given] if any(row.difficulty for row in given) else None,
            metadata=[row.metadata for row in given] if any(row.metadata for row in given) else None,
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Case]:
        return (self._row(index, transaction) for index, transaction in enumerate(self.transactions))

    def _at(self, place: int) -> Case:
        return self._row(place, self.transactions[place])

    def with_facts(self, facts: FactTable) -> Cases:
        """The same cases with other facts."""
        return self._with(transactions=self.transactions.with_facts(facts))

    def with_ids(self, ids: Ids) -> Cases:
        """The same cases with other ids."""
        return self._with(transactions=self.transactions.with_ids(ids))

    def weighted(self, weights: FloatArray) -> Cases:
        """The same cases with these weights."""
        return self._with(weights=weights)

    def in_order(self) -> Cases:
        """The cases by time, those without one first; as they are if none has a time.

        >>> from datetime import UTC, datetime
        >>> times = {"t1": datetime(2025, 3, 2, tzinfo=UTC), "t2": datetime(2025, 3, 1, tzinfo=UTC)}
        >>> rows = [Transaction(id=name, time=time, facts={"amount": 5.0}) for name, time in times.items()]
        >>> Cases.of(Case(transaction=row, is_fraud=False) for row in rows).in_order().transactions.ids.tolist()
        ['t2', 't1']
        """
        order = self.transactions.order()
        return self if bool((np.diff(order) > 0).all()) else self.take(order)

    @property
    def facts(self) -> FactTable:
        """The facts of the transactions."""
        return self.transactions.facts

    def _row(self, place: int, transaction: Transaction) -> Case:
        return construct_unchecked(
            Case,
            transaction=transaction,
            is_fraud=bool(self.labels[place]),
            known_at=time_of(self.known_at[place]),
            difficulty="" if self.difficulty is None else self.difficulty[place],
            metadata={} if self.metadata is None else self.metadata[place],
        )


def _joined(parts: Sequence[Any], counts: Sequence[int], missing: object) -> Any:
    """The column of all parts; None if no part has it, or one has not and nothing stands for what is missing."""
    first = next((part for part in parts if part is not None), None)
    if first is None or (missing is None and any(part is None for part in parts)):
        return None
    if isinstance(first, FactTable | Transactions):
        return type(first).stacked(parts)
    if isinstance(first, Mapping):
        tables = [
            FactTable.of_columns(Columns(categories=part), count) for part, count in zip(parts, counts, strict=True)
        ]
        return FactTable.stacked(tables).columns.categories
    filled: list[Any] = [[missing] * count if part is None else part for part, count in zip(parts, counts, strict=True)]
    return np.concatenate(filled) if isinstance(first, np.ndarray) else [value for part in filled for value in part]


def _some(column: Any, rows: RowIndex, count: int) -> Any:
    """Some rows of a column."""
    if isinstance(column, FactTable | Transactions):
        return column.take(rows)
    if isinstance(column, Mapping):
        return {name: (codes[rows], words) for name, (codes, words) in column.items()}
    if column is None or isinstance(column, np.ndarray) or isinstance(rows, slice):
        return None if column is None else column[rows]
    return [column[index] for index in np.arange(count)[rows]]
