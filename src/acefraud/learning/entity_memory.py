"""The memory of entities as the learner uses it: facts from the past of a transaction, and what it adds to the past.

The memory is kept in rows beside the ledger. A row changes in the same step as the event that causes it, so they never
disagree. Nothing is cached between two calls, because other processes write too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from acefraud.core.arrays import IntArray
from acefraud.core.ledger import Ledger
from acefraud.core.outcome import Outcome, OutcomeSource
from acefraud.core.row_store import BufferedRows, MemoryRows, RowStore, RowUpdate
from acefraud.core.timestamps import UNKNOWN, micros_of
from acefraud.core.transaction import FactValue, Transaction
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets import SchemaMapping, parse_mapping
from acefraud.datasets.history_facts import fact_columns, has_amounts, history_facts, usual_known_at
from acefraud.facts.history import HistoryEvent, HistoryPlan, HistoryState

MOST_ROWS = 100_000
"""Of a longer training history, only what the longest window can still reach is kept."""

_PLACE = "the mapping this playbook was trained with"
_MAPPING = "mapping"
_CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class _PastRow:
    """A transaction of the past, and its truth if that is known."""

    transaction: Transaction
    is_fraud: bool | None = None
    known_at: int = UNKNOWN
    has_facts: bool = False
    """Whether its facts from history are among its own already."""


@dataclass(frozen=True, slots=True)
class _Past:
    """Labelled and waiting transactions in order of time, or as they stand if some have no time.

    Each row is built when its turn comes.
    """

    cases: Cases
    known_at: IntArray
    waiting: Transactions
    order: IntArray
    """Places among the cases, and after them among those waiting."""
    have_facts: bool

    @classmethod
    def of(cls, cases: Cases, waiting: Transactions, plan: HistoryPlan, *, have_facts: bool) -> _Past:
        times = np.concatenate([cases.transactions.times, waiting.times])
        order = np.arange(len(times)) if (times == UNKNOWN).any() else np.argsort(times, kind="stable")
        return cls(cases, usual_known_at(cases, plan), waiting, order, have_facts)

    def within_reach(self, plan: HistoryPlan) -> _Past:
        """Only what the longest window, seen from the end, still reaches."""
        times = np.concatenate([self.cases.transactions.times, self.waiting.times])
        known_at = np.concatenate([self.known_at, np.full(len(self.waiting), UNKNOWN)])
        reaches = (times != UNKNOWN) & (np.maximum(times, known_at) > int(times.max()) - plan.longest.length)
        return _Past(self.cases, self.known_at, self.waiting, self.order[reaches[self.order]], self.have_facts)

    def __iter__(self) -> Iterator[_PastRow]:
        is_case = self.order < len(self.cases)
        places = self.order[is_case]
        cases = self.cases.take(places)
        truths = zip(cases.transactions, cases.labels.tolist(), self.known_at[places].tolist(), strict=True)
        labelled = (_PastRow(*truth, has_facts=self.have_facts) for truth in truths)
        waiting = map(_PastRow, self.waiting.take(self.order[~is_case] - len(self.cases)))
        return (next(labelled if one else waiting) for one in is_case.tolist())


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
        with ledger.rows() as rows:
            state = self._read(rows)
            return [with_history(one, self._add(state, _PastRow(one))) for one in transactions]

    def adding(self, transactions: Sequence[Transaction]) -> RowUpdate:
        """The change that adds transactions to the memory."""

        return self.adding_outcomes([(None, one) for one in transactions])

    def enriched_outcomes(
        self, outcomes: Sequence[tuple[Outcome, Transaction | None]], ledger: Ledger
    ) -> list[Transaction | None]:
        """Transactions that come with their outcome, with their facts from history; outcomes before them count."""
        found: list[Transaction | None] = []
        with ledger.rows() as rows:
            state = self._read(rows)
            for outcome, one in outcomes:
                found.append(None if one is None else with_history(one, self._add(state, _PastRow(one))))
                if outcome.source is not OutcomeSource.JUDGE:
                    _add_truth(state, outcome)
        return found

    def adding_outcomes(self, outcomes: Sequence[tuple[Outcome | None, Transaction | None]]) -> RowUpdate:
        """The change that adds truths to the memory, each with its transaction if that was never decided."""

        def change(rows: RowStore) -> None:
            memory, state = self._opened(rows)
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
        past = _Past.of(cases, waiting, self.plan, have_facts=False)
        with ledger.rows() as rows:
            state = self._read(rows)
            facts = {place: self._add(state, row) for place, row in zip(past.order.tolist(), past, strict=True)}
        return Cases.of(
            case.model_copy(update={"transaction": with_history(case.transaction, facts[place])})
            for place, case in enumerate(cases)
        )

    def filling(self, studied: Cases, waiting: Transactions, ledger: Ledger) -> RowUpdate:
        """The change that adds a whole history of `studied` cases. A memory of another plan ends.

        The work is done beforehand, so that other writers need not wait. If one of them is faster, it is done again.
        """
        past = _Past.of(studied, waiting, self.plan, have_facts=True)
        if len(past.order) > MOST_ROWS:
            past = past.within_reach(self.plan)
        with ledger.rows() as rows:
            before = rows.get_many([_CHANGES])
            draft = BufferedRows(rows)
            self._fill(past, draft)

        def change(rows: RowStore) -> None:
            if rows.get_many([_CHANGES]) == before:
                draft.write_to(rows)
            else:
                self._fill(past, rows)

        return change

    def _fill(self, past: Iterable[_PastRow], rows: RowStore) -> None:
        if not self._agrees_with(self._kept_by(rows)):
            changes = rows.get_many([_CHANGES])
            rows.clear()
            rows.put_many(changes)
        rows.put_many({_MAPPING: self.written.encode()})
        state = self._state(rows)
        for row in past:
            self._add_row(state, row, self.event(row.transaction))
        _write(state, rows)

    def _add(self, state: HistoryState, row: _PastRow) -> dict[str, FactValue]:
        """The facts of a transaction that happens now; it is added after that."""
        event = self.event(row.transaction)
        facts = state.facts(event)
        self._add_row(state, row, event)
        return facts

    def _add_row(self, state: HistoryState, row: _PastRow, event: HistoryEvent) -> None:
        state.add(event, row.transaction.facts if row.has_facts else None)
        if row.is_fraud is not None and row.known_at != UNKNOWN:
            state.hear(row.transaction.id, row.is_fraud, row.known_at)

    # --- the rows ----------------------------------------------------------------------------------------------

    def _state(self, rows: RowStore) -> HistoryState:
        return HistoryState(self.plan, rows, amounts=self.amounts)

    def _read(self, rows: RowStore) -> HistoryState:
        """What is remembered; nothing if the rows are of another plan."""
        return self._state(rows if self._agrees_with(self._kept_by(rows)) else MemoryRows())

    def _opened(self, rows: RowStore) -> tuple[EntityMemory, HistoryState]:
        """What to write to: the memory that is there, even if another training began it a moment ago."""
        memory = self._kept_by(rows)
        if memory is None:
            rows.put_many({_MAPPING: self.written.encode()})
            memory = self
        return memory, memory._state(rows)

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
    mapping = parse_mapping(written, place=_PLACE)
    return mapping.rising, mapping.falling


@lru_cache(maxsize=16)
def memory_for(written: str) -> EntityMemory | None:
    """The memory that a mapping asks for; None if it asks for none."""
    if not written:
        return None
    mapping = parse_mapping(written, place=_PLACE)
    if mapping.history is None or not mapping.history.entities:
        return None
    return EntityMemory(written, mapping, mapping.history)


def with_history(transaction: Transaction, facts: dict[str, FactValue]) -> Transaction:
    """A transaction with more facts, always in the same order. Its own facts stay."""
    more = {name: facts[name] for name in sorted(facts) if name not in transaction.facts}
    return transaction.model_copy(update={"facts": {**transaction.facts, **more}}) if more else transaction


def _add_truth(state: HistoryState, outcome: Outcome) -> None:
    known_at = micros_of(outcome.at) if outcome.at else state.newest
    if known_at is not None:
        state.hear(outcome.transaction_id, outcome.is_fraud, known_at)


def _write(state: HistoryState, rows: RowStore) -> None:
    """Write what was changed, and that something was."""
    state.flush()
    changes = int(rows.get_many([_CHANGES]).get(_CHANGES, b"0"))
    rows.put_many({_CHANGES: str(changes + 1).encode()})


def _number(value: FactValue | None) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except ValueError:
        return None
