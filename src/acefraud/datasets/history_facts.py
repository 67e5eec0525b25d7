"""History facts of whole datasets, from the columns that a mapping declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from acefraud.core.table import Categories, Codes, Columns, FactTable, Flags, RowIndex
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets.mapping import SchemaMapping
from acefraud.facts.history.columns import history_columns
from acefraud.facts.history.plan import HistoryEvents, HistoryPlan
from acefraud.support.arrays import FloatArray, IntArray
from acefraud.support.timestamps import UNKNOWN, last_plausible


def history_facts(mapping: SchemaMapping, cases: Cases, waiting: Transactions) -> Columns:
    """The history facts of each case, as if each had been decided in its turn.

    Transactions that wait for a label count too. Rows are taken in the order of time, those without one
    first; if none has a time, the cases come before the waiting transactions.

    >>> from datetime import UTC, datetime
    >>> from acefraud.core.transaction import Case, Transaction
    >>> mapping = SchemaMapping(history=HistoryPlan(entities=("card",), windows=("24h",)))
    >>> def paid(one: str, hour: int) -> Transaction:
    ...     time = datetime(2025, 1, 1, hour, tzinfo=UTC)
    ...     return Transaction(id=one, time=time, facts={"amount": 5.0}, entities={"card": "c1"})
    >>> cases = Cases.of([Case(transaction=paid(name, hour), is_fraud=False) for name, hour in [("a", 9), ("b", 7)]])
    >>> history_facts(mapping, cases, Transactions.of([paid("c", 8)])).numbers["card_count_24h"].tolist()
    [2.0, 0.0]
    """
    if mapping.history is None or not mapping.history.entities or not len(cases):
        return Columns()
    past = EntityPast.of(mapping, cases, waiting)
    return past.facts(mapping, last_plausible(past.rows.times)).take(slice(len(cases)))


@dataclass(frozen=True, slots=True)
class EntityPast:
    """Labelled and then waiting transactions, with only the columns that a history uses."""

    rows: Transactions
    labels: Flags
    """1 for fraud, 0 for none, -1 for those waiting."""
    known_at: IntArray

    @classmethod
    def of(cls, mapping: SchemaMapping, cases: Cases, waiting: Transactions) -> EntityPast:
        """Cases, and transactions that wait for a label."""
        assert mapping.history is not None
        labels = [cases.labels.astype(np.int8), np.full(len(waiting), -1, dtype=np.int8)]
        known_at = [usual_known_at(cases, mapping.history), np.full(len(waiting), UNKNOWN, dtype=np.int64)]
        rows = [_needed(part, mapping, mapping.history) for part in (cases.transactions, waiting)]
        return cls(Transactions.stacked(rows), np.concatenate(labels), np.concatenate(known_at))

    def compact(self) -> EntityPast:
        """The same without the names of entities that none of the transactions has."""
        from acefraud.datasets.cells import compact  # noqa: PLC0415  # polars is slow to import

        entities = compact(Columns(categories=self.rows.entities)).categories
        return replace(self, rows=self.rows.with_entities(entities))

    def take(self, rows: RowIndex) -> EntityPast:
        """Some of the transactions."""
        return EntityPast(self.rows.take(rows), self.labels[rows], self.known_at[rows])

    @classmethod
    def stacked(cls, parts: Sequence[EntityPast]) -> EntityPast:
        """All transactions, one part after the other."""
        labels, known_at = ([getattr(part, name) for part in parts] for name in ("labels", "known_at"))
        return cls(
            Transactions.stacked([part.rows for part in parts]), np.concatenate(labels), np.concatenate(known_at)
        )

    def facts(self, mapping: SchemaMapping, last: int, only: str = "") -> Columns:
        """The facts of every transaction in its turn; `only` those of the entities in a column.

        Transactions after the `last` plausible time have no history, unless it is `UNKNOWN`.
        """
        plan = mapping.history
        assert plan is not None
        order = self.rows.order()
        if bool((np.diff(order) > 0).all()):
            return history_columns(plan, self._events(mapping, plan, last), only)
        found = history_columns(plan, self.take(order)._events(mapping, plan, last), only)
        for numbers in found.numbers.values():  # in place: a second table of this width may not fit in memory
            numbers[order] = numbers.copy()
        for flags in found.flags.values():
            flags[order] = flags.copy()
        return found

    def _events(self, mapping: SchemaMapping, plan: HistoryPlan, last: int) -> HistoryEvents:
        facts, rows = fact_columns(mapping, plan), self.rows
        unknown: Categories = (np.full(len(rows), -1, dtype=np.int32), ())
        return HistoryEvents(
            time=rows.times if last == UNKNOWN else np.where(rows.times > last, UNKNOWN, rows.times),
            entities={column: rows.entities.get(column, unknown)[0] for column in plan.entities},
            ids=rows.ids,
            amount=rows.facts.numbers("amount") if has_amounts(mapping) else None,
            category=_categories(rows, plan.category, facts.get(plan.category)) if plan.category else None,
            latitude=_degrees(rows, plan.latitude, facts.get(plan.latitude)) if plan.has_places else None,
            longitude=_degrees(rows, plan.longitude, facts.get(plan.longitude)) if plan.has_places else None,
            label=self.labels,
            known_at=self.known_at,
        )


def usual_known_at(cases: Cases, plan: HistoryPlan) -> IntArray:
    """When each label became known; after the usual delay if nothing says when."""
    times = cases.transactions.times
    usual = np.where(times == UNKNOWN, UNKNOWN, times + plan.delay)
    return np.where(cases.known_at == UNKNOWN, usual, cases.known_at)


def has_amounts(mapping: SchemaMapping) -> bool:
    """Whether transactions that are read by this mapping have amounts."""
    return bool(mapping.amount) or "amount" in mapping.facts_by_column(mapping.numbers).values()


def fact_columns(mapping: SchemaMapping, plan: HistoryPlan) -> dict[str, str]:
    """The columns for categories and places that are facts too, with the names of the facts."""
    return mapping.facts_by_column([column for column in (plan.category, plan.latitude, plan.longitude) if column])


def _needed(rows: Transactions, mapping: SchemaMapping, plan: HistoryPlan) -> Transactions:
    """The rows with only the columns that a history uses."""
    facts = {"amount", *fact_columns(mapping, plan).values()}
    columns = {column for _, column in plan.named_columns()}
    entities = {column: words for column, words in rows.entities.items() if column in columns}
    return Transactions(rows.ids, rows.facts.only(facts), times=rows.times, entities=entities)


def _categories(rows: Transactions, column: str, fact: str | None) -> Codes:
    """A code for each category, from the column itself or from the fact that it became."""
    found = np.full(len(rows), -1, dtype=np.int32)
    code: dict[str, int] = {}
    for codes, words in (*_entity_words(rows, column), *(_as_words(rows.facts, fact) if fact else ())):
        known = np.array([*(code.setdefault(word, len(code)) for word in words), -1], dtype=np.int32)
        found = np.where(found >= 0, found, known[codes])
    return found


def _as_words(facts: FactTable, name: str) -> Iterator[Categories]:
    """The values of a fact as text, one kind after the other."""
    yield facts.categories(name)
    flags = facts.flags(name)
    yield flags.astype(np.int32), ("False", "True")
    numbers = facts.numbers(name)
    known = ~np.isnan(numbers)
    distinct, places = np.unique(numbers[known], return_inverse=True)
    codes = np.full(len(numbers), -1, dtype=np.int32)
    codes[known] = places
    yield codes, tuple(map(str, distinct.tolist()))


def _degrees(rows: Transactions, column: str, fact: str | None) -> FloatArray:
    """A coordinate, from the column itself or from the fact that it became; NaN where it is no number."""
    found = rows.facts.numbers(fact) if fact else np.full(len(rows), np.nan)
    worded = [rows.facts.categories(fact)] if fact else []
    for codes, words in (*worded, *_entity_words(rows, column)):
        numbers = np.array([*map(_number, words), np.nan])
        found = np.where(codes >= 0, numbers[codes], found)
    return found


def _entity_words(rows: Transactions, column: str) -> list[Categories]:
    return [rows.entities[column]] if column in rows.entities else []


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return np.nan
