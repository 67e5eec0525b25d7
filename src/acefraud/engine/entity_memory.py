"""The memory of entities as the learner uses it: facts from the past of a transaction, and what it adds to the past.

The memory is kept in rows beside the ledger. A row changes in the same step as the event that causes it, so they never
disagree. Nothing is cached between two calls, because other processes write too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache, partial
from itertools import islice

import numpy as np

from acefraud.core.ledger import BufferedRows, Ledger, MemoryRows, RowStore, RowUpdate
from acefraud.core.outcome import Outcome
from acefraud.core.playbook import Snapshot
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue, Transaction
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets import SchemaMapping, mapping_of
from acefraud.datasets.history_facts import fact_columns, has_amounts, history_facts, usual_known_at
from acefraud.facts.history import HistoryEvent, HistoryPlan, HistoryState
from acefraud.support.arrays import BoolArray, IntArray
from acefraud.support.timestamps import UNKNOWN, last_plausible, micros_of, time_of

MOST_ROWS = 100_000
"""Of a longer training history, only what the longest window can still reach is kept."""

_ROWS_AT_ONCE = 10_000
"""Transactions of a long history that are fetched for at once, or added between two flushes."""
_MAPPING = "mapping"
_CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class KeptTimes:
    """The part of a training history that a memory keeps: after a time, and up to the last plausible one."""

    first: int | None
    """None if the history is short, of which everything is kept."""
    last: int
    """`UNKNOWN` if all times are plausible."""

    @classmethod
    def of(cls, times: IntArray, plan: HistoryPlan) -> KeptTimes:
        """What is kept of a history with these times, those of rows that wait for a label among them."""
        last = last_plausible(times)
        newest = int(times.max(initial=UNKNOWN) if last == UNKNOWN else last)
        return cls(newest - plan.longest.length if len(times) > MOST_ROWS and newest != UNKNOWN else None, last)

    def plausible(self, times: IntArray) -> IntArray:
        """The times, `UNKNOWN` in place of those that are not plausible."""
        return times if self.last == UNKNOWN else np.where(times > self.last, UNKNOWN, times)

    def reach(self, times: IntArray, known_at: IntArray) -> BoolArray:
        """Which rows are kept, by their times and by when their labels became known."""
        if self.first is None:
            return np.ones(len(times), dtype=np.bool_)
        times = self.plausible(times)
        kept: BoolArray = (times != UNKNOWN) & (np.maximum(times, known_at) > self.first)
        return kept


@dataclass(frozen=True, slots=True)
class _Past:
    """Labelled and then waiting transactions, to be gone through in order of time, or as they stand without times."""

    rows: Transactions
    is_fraud: BoolArray
    known_at: IntArray
    """When each label became known; `UNKNOWN` for those waiting."""
    labelled: int
    order: IntArray

    @classmethod
    def of(cls, cases: Cases, waiting: Transactions, plan: HistoryPlan, kept: KeptTimes | None = None) -> _Past:
        rows, unlabelled = Transactions.stacked([cases.transactions, waiting]), len(waiting)
        is_fraud = np.concatenate([cases.labels, np.zeros(unlabelled, dtype=np.bool_)])
        known_at = np.concatenate([usual_known_at(cases, plan), np.full(unlabelled, UNKNOWN)])
        kept = kept or KeptTimes.of(rows.times, plan)
        order = rows.order()
        order = order[kept.reach(rows.times, known_at)[order]]
        return cls(rows.with_times(kept.plausible(rows.times)), is_fraud, known_at, len(cases), order)

    def __iter__(self) -> Iterator[tuple[int, Transaction, bool, int]]:
        """The place of each among all, and its label. A row is built when its turn comes."""
        labels = self.is_fraud[self.order].tolist(), self.known_at[self.order].tolist()
        return zip(self.order.tolist(), self.rows.take(self.order), *labels, strict=True)


@dataclass(frozen=True, slots=True)
class Drafted:
    """Transactions with their facts from history, and the change that adds them to the memory if one is kept."""

    transactions: Sequence[Transaction]
    memory: EntityMemory | None = None
    change: RowUpdate | None = None

    @classmethod
    def of(cls, transactions: Sequence[Transaction], written: str, ledger: Ledger) -> Drafted:
        """Transactions that have all their other facts, with those that the memory of a mapping adds."""
        memory = memory_for(written)
        return cls(transactions) if memory is None else memory.enriched_and_added(transactions, ledger)

    def change_for(self, new: Sequence[Transaction]) -> RowUpdate | None:
        """What the new ones among them add to the memory of entities."""
        if self.memory is None or not new:
            return None
        return self.change if len(new) == len(self.transactions) else self.memory.adding(new)


@dataclass(frozen=True)
class EntityMemory:
    """The memory that a mapping asks for."""

    written: str
    """The mapping as text."""
    mapping: SchemaMapping
    plan: HistoryPlan

    @cached_property
    def amounts(self) -> bool:
        """Whether transactions have amounts at all."""
        return has_amounts(self.mapping)

    @cached_property
    def _fact_columns(self) -> dict[str, str]:
        return fact_columns(self.mapping, self.plan)

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of all facts that it may give."""
        return tuple(self.plan.facts(amounts=self.amounts))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the entities that it remembers."""
        return tuple(self.plan.name_of(column) for column in self.plan.entities)

    # --- decisions and outcomes --------------------------------------------------------------------------------

    def enriched(self, transactions: Sequence[Transaction], ledger: Ledger) -> list[Transaction]:
        """Transactions with their facts from history. Each also counts for those after it."""
        pairs = zip(transactions, self._facts_in_turn(transactions, ledger), strict=True)
        return [with_history(transaction, facts) for transaction, facts in pairs]

    def enriched_rows(self, rows: Transactions, ledger: Ledger) -> Transactions:
        """Transactions in columns with their facts from history. They take their turn in the order of time."""
        order = rows.times.argsort(kind="stable")
        facts = FactTable(self._facts_in_turn(rows.take(order), ledger))
        return rows.with_facts(rows.facts.beside(facts.take(order.argsort()).columns))

    def _facts_in_turn(self, transactions: Iterable[Transaction], ledger: Ledger) -> list[dict[str, FactValue]]:
        with ledger.rows() as rows:
            return self._add_all(self._read(rows), transactions)

    def past(self, transactions: Transactions, ledger: Ledger) -> tuple[datetime | None, BoolArray]:
        """The newest time that is remembered, and which transactions are, so that they get the facts they had."""
        with ledger.rows() as rows:
            state = self._read(rows)
            known = [state.remembers(transaction_id) for transaction_id in transactions.ids.tolist()]
            return time_of(UNKNOWN if state.newest is None else state.newest), np.array(known, dtype=np.bool_)

    def adding(self, transactions: Sequence[Transaction]) -> RowUpdate:
        """The change that adds transactions to the memory."""

        return self.adding_outcomes([(None, transaction) for transaction in transactions])

    def enriched_and_added(self, transactions: Sequence[Transaction], ledger: Ledger) -> Drafted:
        """Transactions with their facts from history, and the change that adds them to the memory.

        The change was worked out with the facts, so that other writers need not wait for it. If one of them was faster,
        it is worked out again.
        """
        with ledger.rows() as rows:
            if not self._agrees_with(self._kept_by(rows)):
                return Drafted(self.enriched(transactions, ledger), self, self.adding(transactions))
            before, draft = rows.get_many([_CHANGES]), BufferedRows(rows)
            state = self._state(draft)
            found = list(map(with_history, transactions, self._add_all(state, transactions)))
            _write(state, draft)
        return Drafted(found, self, _written_unless_changed(draft, before, self.adding(transactions)))

    def enriched_outcomes(
        self, outcomes: Sequence[tuple[Outcome, Transaction | None]], ledger: Ledger
    ) -> list[Transaction | None]:
        """Transactions that come with their outcome, with their facts from history; outcomes before them count."""
        found: list[Transaction | None] = []
        with ledger.rows() as rows:
            state = self._read(rows)
            for outcome, transaction in outcomes:
                found.append(None if transaction is None else with_history(transaction, self._add(state, transaction)))
                if not outcome.is_opinion:
                    _add_truth(state, outcome)
        return found

    def adding_outcomes(self, outcomes: Sequence[tuple[Outcome | None, Transaction | None]]) -> RowUpdate:
        """The change that adds truths to the memory, each with its transaction if that was never decided."""

        def change(rows: RowStore) -> None:
            memory = self._kept_by(rows)  # even if another training began it a moment ago
            if memory is None:
                rows.put_many({_MAPPING: self.written.encode()})
                memory = self
            state = memory._state(rows)
            for outcome, undecided in outcomes:
                if undecided is not None:
                    state.add(memory.event(undecided))
                if outcome is not None:
                    _add_truth(state, outcome)
            _write(state, rows)

        return change

    # --- whole histories ---------------------------------------------------------------------------------------

    def studied(self, cases: Cases, waiting: Transactions) -> Cases:
        """Cases with the facts that their own history gives, as if each had been decided in its turn.

        Those still ``waiting`` for their label count too.
        """
        if not len(cases):
            return cases
        return cases.with_facts(cases.facts.beside(history_facts(self.mapping, cases, waiting)))

    def backtested(self, cases: Cases, waiting: Transactions, ledger: Ledger) -> Cases:
        """Cases with the facts they would have after what is remembered already. The memory stays as it is."""
        facts: list[dict[str, FactValue]] = [{}] * len(cases)
        with ledger.rows() as rows:
            state = self._read(rows)
            everything = KeptTimes(None, last_plausible(np.concatenate([cases.transactions.times, waiting.times])))
            for index, transaction, is_fraud, known_at in _Past.of(cases, waiting, self.plan, everything):
                from_history = self._add(state, transaction)
                if index < len(cases):
                    facts[index] = from_history
                _hear(state, transaction, is_fraud, known_at)
        return cases.with_facts(cases.facts.beside(FactTable(facts).columns))

    def filling(
        self, studied: Cases, waiting: Transactions, ledger: Ledger, kept: KeptTimes | None = None
    ) -> RowUpdate:
        """The change that adds a whole history of `studied` cases, or what is `kept` of it. One of another plan ends.

        The work is done beforehand, so that other writers need not wait. If one of them is faster, it is done again.
        """
        past = _Past.of(studied, waiting, self.plan, kept)
        with ledger.rows() as rows:
            before = rows.get_many([_CHANGES])
            draft = BufferedRows(rows)
            self._fill(past, draft)
        return _written_unless_changed(draft, before, partial(self._fill, past))

    def _fill(self, past: _Past, rows: RowStore) -> None:
        if not self._agrees_with(self._kept_by(rows)):
            changes = rows.get_many([_CHANGES])
            rows.clear()
            rows.put_many(changes)
        rows.put_many({_MAPPING: self.written.encode()})
        state = self._state(rows)
        newest, due = int(past.rows.times.max(initial=UNKNOWN)), []
        for number, (index, transaction, is_fraud, known_at) in enumerate(past):
            # The facts from history of a studied case are among its own already.
            state.add(self.event(transaction), transaction.facts if index < past.labelled else None)
            if known_at > newest:
                due.append((known_at, transaction.id, is_fraud))
            else:
                _hear(state, transaction, is_fraud, known_at)
            if number % _ROWS_AT_ONCE == 0:
                state.flush(entities=False)
        state.hear_later(due)
        _write(state, rows)

    def _add(self, state: HistoryState, transaction: Transaction) -> dict[str, FactValue]:
        """The facts of a transaction that happens now; it is added after that."""
        event = self.event(transaction)
        facts = state.facts(event)
        state.add(event)
        return facts

    def _add_all(self, state: HistoryState, transactions: Iterable[Transaction]) -> list[dict[str, FactValue]]:
        found: list[dict[str, FactValue]] = []
        rest = map(self.event, transactions)
        while events := list(islice(rest, _ROWS_AT_ONCE)):
            state.prefetch(events)
            for event in events:
                found.append(state.facts(event))
                state.add(event)
        return found

    # --- the rows ----------------------------------------------------------------------------------------------

    def _state(self, rows: RowStore) -> HistoryState:
        return HistoryState(self.plan, rows, amounts=self.amounts)

    def _read(self, rows: RowStore) -> HistoryState:
        """What is remembered; nothing if the rows are of another plan."""
        return self._state(rows if self._agrees_with(self._kept_by(rows)) else MemoryRows())

    def _kept_by(self, rows: RowStore) -> EntityMemory | None:
        """The memory that the rows belong to."""
        written = rows.get_many([_MAPPING]).get(_MAPPING)
        return None if written is None else memory_for(written.decode())

    def _agrees_with(self, other: EntityMemory | None) -> bool:
        return other is not None and (self.plan, self.amounts) == (other.plan, other.amounts)

    def event(self, transaction: Transaction) -> HistoryEvent:
        """A transaction as the history sees it."""
        amount, category = transaction.facts.get("amount"), self._value(transaction, self.plan.category)
        return HistoryEvent(
            id=transaction.id,
            time_us=None if transaction.time is None else micros_of(transaction.time),
            amount=amount if isinstance(amount, float) else None,
            entities=transaction.entities,
            category=None if category is None else str(category),
            latitude=_number(self._value(transaction, self.plan.latitude)),
            longitude=_number(self._value(transaction, self.plan.longitude)),
        )

    def _value(self, transaction: Transaction, column: str) -> FactValue | None:
        value: FactValue | None = transaction.entities.get(column)
        return transaction.facts.get(self._fact_columns.get(column, "")) if value is None else value


def directions_of(written: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The facts that a mapping declares as `rising` and as `falling`."""
    mapping = mapping_of(written)
    return (mapping.rising, mapping.falling) if mapping else ((), ())


def sensitive_facts_of(written: str) -> frozenset[str]:
    """The facts that a mapping names as sensitive, in lower case."""
    mapping = mapping_of(written)
    return frozenset(name.casefold() for name in mapping.sensitive_facts) if mapping else frozenset()


def time_facts_of(written: str) -> tuple[str, ...]:
    """The facts that a mapping wants made from the time of a transaction."""
    mapping = mapping_of(written)
    return mapping.time_facts or () if mapping else ()


@lru_cache(maxsize=16)
def memory_for(written: str) -> EntityMemory | None:
    """The memory that a mapping asks for; None if it asks for none."""
    mapping = mapping_of(written)
    if mapping is None or mapping.history is None or not mapping.history.entities:
        return None
    return EntityMemory(written, mapping, mapping.history)


def rows_with_history(rows: Transactions, snapshot: Snapshot, ledger: Ledger) -> Transactions:
    """Transactions in columns, with the facts of the history if a snapshot keeps one."""
    memory = memory_for(snapshot.mapping)
    return rows if memory is None else memory.enriched_rows(rows, ledger)


def with_history(transaction: Transaction, facts: dict[str, FactValue]) -> Transaction:
    """A transaction with more facts, always in the same order. Its own facts stay."""
    more = {name: facts[name] for name in sorted(facts) if name not in transaction.facts}
    return transaction.model_copy(update={"facts": {**transaction.facts, **more}}) if more else transaction


def _add_truth(state: HistoryState, outcome: Outcome) -> None:
    state.hear(outcome.transaction_id, outcome.is_fraud, micros_of(outcome.at) if outcome.at else None)


def _hear(state: HistoryState, transaction: Transaction, is_fraud: bool, known_at: int) -> None:
    if known_at != UNKNOWN:
        state.hear(transaction.id, is_fraud, known_at)


def _write(state: HistoryState, rows: RowStore) -> None:
    """Write what was changed, and that something was."""
    state.flush()
    changes = int(rows.get_many([_CHANGES]).get(_CHANGES, b"0"))
    rows.put_many({_CHANGES: str(changes + 1).encode()})


def _written_unless_changed(draft: BufferedRows, before: Mapping[str, bytes], again: RowUpdate) -> RowUpdate:
    """The change that writes a draft, or does the work `again` if another writer was faster."""

    def change(rows: RowStore) -> None:
        if rows.get_many([_CHANGES]) == before:
            draft.write_to(rows)
        else:
            again(rows)

    return change


def _number(value: FactValue | None) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except ValueError:
        return None
