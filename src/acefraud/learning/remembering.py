"""What is remembered of entities, as the learner uses it: facts for transactions, and what they add to the memory.

The memory lies in the rows beside the ledger and is changed in the same step as the event that it follows from, so
that neither is ever there without the other. Nothing of it is held between two calls: other processes write too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from acefraud.core.ledger import Ledger, RowsChange, RowStore
from acefraud.core.outcome import Outcome, OutcomeSource
from acefraud.core.timestamps import UNKNOWN, Micros, micros_of
from acefraud.core.transaction import Case, FactValue, Transaction
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets import SchemaMapping, parse_mapping
from acefraud.datasets.assembly import fact_names
from acefraud.datasets.history_facts import history_facts, usual_known_at
from acefraud.history import Event, HistoryPlan, HistoryState, MemoryRows
from acefraud.storage.rows import DraftRows

MOST_ROWS = 100_000
"""Of a longer training history only what the longest window can still need is taken into the memory."""

_PLACE = "the mapping this playbook was trained with"
_MAPPING = "mapping"
_CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class _Row:
    """A transaction of the past, and its truth as far as that is known."""

    transaction: Transaction
    is_fraud: bool | None = None
    known_at: int = UNKNOWN
    has_facts: bool = False
    """Whether the facts that its history gives are among its own already."""


@dataclass(frozen=True, slots=True)
class _Past:
    """The rows of a training history that a memory needs, in order; each is built when its turn comes."""

    cases: Cases
    known_at: Micros
    waiting: Transactions
    is_case: npt.NDArray[np.bool_]
    """Row by row, whether it is the next of the cases or the next of those that wait."""

    @classmethod
    def of(cls, cases: Cases, waiting: Transactions, plan: HistoryPlan) -> _Past:
        """All of a short history; of a long one what its longest window, seen from its end, still reaches."""
        times = np.concatenate([cases.transactions.times, waiting.times])
        known_at = np.concatenate([usual_known_at(cases, plan), np.full(len(waiting), UNKNOWN)])
        order = np.arange(len(times)) if (times == UNKNOWN).any() else np.argsort(times, kind="stable")
        if len(times) > MOST_ROWS:
            since = int(times.max()) - plan.longest.length
            reaches = (times != UNKNOWN) & (np.maximum(times, known_at) > since)
            order = order[reaches[order]]
        is_case = order < len(cases)
        places = order[is_case]
        return cls(cases.take(places), known_at[places], waiting.take(order[~is_case] - len(cases)), is_case)

    def __iter__(self) -> Iterator[_Row]:
        waiting = map(_Row, self.waiting)
        truths = zip(self.cases.transactions, self.cases.labels.tolist(), self.known_at.tolist(), strict=True)
        studied = (_Row(one, is_fraud, known_at, has_facts=True) for one, is_fraud, known_at in truths)
        return (next(studied if is_case else waiting) for is_case in self.is_case.tolist())


@dataclass(frozen=True)
class EntityMemory:
    """The memory that a mapping asks for."""

    written: str
    """The mapping as it is kept."""
    mapping: SchemaMapping
    plan: HistoryPlan

    # --- what it consists of -----------------------------------------------------------------------------------

    @cached_property
    def amounts(self) -> bool:
        """Whether transactions have amounts at all."""
        return bool(self.mapping.amount) or "amount" in fact_names(self.mapping, self.mapping.numbers).values()

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of all facts that it may give."""
        return tuple(self.plan.facts(amounts=self.amounts))

    @cached_property
    def _named(self) -> dict[str, str]:
        """The columns for categories and places that are facts too, with the names of those."""
        columns = [self.plan.category, self.plan.latitude, self.plan.longitude]
        return fact_names(self.mapping, [column for column in columns if column])

    @property
    def names(self) -> tuple[str, ...]:
        """How the entities are called that it remembers."""
        return tuple(self.plan.name_of(column) for column in self.plan.entities)

    def agrees_with(self, other: EntityMemory) -> bool:
        """Whether what one remembers can be gone on with by the other."""
        return (self.plan, self.amounts) == (other.plan, other.amounts)

    # --- deciding and hearing ----------------------------------------------------------------------------------

    def enriched(self, transactions: Sequence[Transaction], ledger: Ledger) -> list[Transaction]:
        """The same with the facts that their history gives. Each also counts for those after it."""
        with ledger.rows() as rows:
            state = self._read(rows)
            return [with_history(one, self._lived(state, _Row(one))) for one in transactions]

    def adding(self, transactions: Sequence[Transaction]) -> RowsChange:
        """Count transactions from now on."""

        def change(rows: RowStore) -> None:
            memory, state = self._opened(rows)
            for transaction in transactions:
                state.add(memory.event(transaction))
            _write(state, rows)

        return change

    def told(self, told: Sequence[tuple[Outcome, Transaction | None]], ledger: Ledger) -> list[Transaction | None]:
        """Transactions that come with their truths, with the facts of their history: truths before them are in it."""
        found: list[Transaction | None] = []
        with ledger.rows() as rows:
            state = self._read(rows)
            for outcome, one in told:
                found.append(None if one is None else with_history(one, self._lived(state, _Row(one))))
                if outcome.source is not OutcomeSource.JUDGE:
                    _hear(state, outcome)
        return found

    def hearing(self, heard: Sequence[tuple[Outcome, Transaction | None]]) -> RowsChange:
        """Take in truths, each with its transaction where that was never decided."""

        def change(rows: RowStore) -> None:
            memory, state = self._opened(rows)
            for outcome, unheard_of in heard:
                if unheard_of is not None:
                    state.add(memory.event(unheard_of))
                _hear(state, outcome)
            _write(state, rows)

        return change

    # --- whole histories ---------------------------------------------------------------------------------------

    def studied(self, cases: Cases, waiting: Transactions) -> Cases:
        """Cases with the facts that the history in them gives, as if each had been decided in its turn.

        Those still ``waiting`` for their label count for the others.
        """
        if not len(cases):
            return cases
        return cases.with_facts(cases.facts.beside(history_facts(self.mapping, cases, waiting)))

    def tested(self, cases: Sequence[Case], waiting: Sequence[Transaction], ledger: Ledger) -> list[Case]:
        """Cases with the facts they would have had after what is remembered already. Nothing is kept of them."""
        facts: dict[int, dict[str, FactValue]] = {}
        with ledger.rows() as rows:
            state = self._read(rows)
            for row, place in self._in_order(cases, waiting):
                facts[place] = self._lived(state, row)
        return [_with_facts(case, facts[place]) for place, case in enumerate(cases)]

    def filling(self, studied: Cases, waiting: Transactions, ledger: Ledger) -> RowsChange:
        """Take a whole history into the memory, with the facts it was `studied` with; one of another plan ends.

        The work is done beforehand, so that other writers do not wait for it; where one of them was faster, it is
        done again.
        """
        past = _Past.of(studied, waiting, self.plan)
        with ledger.rows() as rows:
            before = rows.get_many([_CHANGES])
            draft = DraftRows(rows)
            self._fill(past, draft)

        def change(rows: RowStore) -> None:
            if rows.get_many([_CHANGES]) == before:
                draft.make(rows)
            else:
                self._fill(past, rows)

        return change

    def _fill(self, past: Iterable[_Row], rows: RowStore) -> None:
        kept_by = self._kept_by(rows)
        if kept_by is None or not self.agrees_with(kept_by):
            changes = rows.get_many([_CHANGES])
            rows.clear()
            rows.put_many(changes)
        rows.put_many({_MAPPING: self.written.encode()})
        state = self._state(rows)
        for row in past:
            self._live(state, row)
        _write(state, rows)

    def _in_order(self, cases: Sequence[Case], waiting: Sequence[Transaction]) -> list[tuple[_Row, int]]:
        """All rows in the order of time where each has one, else as they are; with their places."""
        rows = [
            *(_Row(case.transaction, case.is_fraud, self._known_at(case)) for case in cases),
            *(_Row(transaction) for transaction in waiting),
        ]
        places = [(row, place) for place, row in enumerate(rows)]
        times = [micros_of(row.transaction.time) if row.transaction.time else UNKNOWN for row in rows]
        return places if UNKNOWN in times else sorted(places, key=lambda one: times[one[1]])

    def _known_at(self, case: Case) -> int:
        if case.known_at is not None:
            return micros_of(case.known_at)
        return micros_of(case.transaction.time) + self.plan.delay if case.transaction.time else UNKNOWN

    def _lived(self, state: HistoryState, row: _Row) -> dict[str, FactValue]:
        """The facts of a transaction that happens now."""
        event = self.event(row.transaction)
        facts = state.facts(event)
        self._live(state, row, event)
        return facts

    def _live(self, state: HistoryState, row: _Row, event: Event | None = None) -> None:
        state.add(event or self.event(row.transaction), row.transaction.facts if row.has_facts else None)
        if row.is_fraud is not None and row.known_at != UNKNOWN:
            state.hear(row.transaction.id, row.is_fraud, row.known_at)

    # --- the rows ----------------------------------------------------------------------------------------------

    def _state(self, rows: RowStore) -> HistoryState:
        return HistoryState(self.plan, rows, amounts=self.amounts)

    def _read(self, rows: RowStore) -> HistoryState:
        """What is remembered; nothing, where another plan kept it."""
        kept_by = self._kept_by(rows)
        return self._state(rows if kept_by is not None and self.agrees_with(kept_by) else MemoryRows())

    def _opened(self, rows: RowStore) -> tuple[EntityMemory, HistoryState]:
        """What to write to: the memory that is there, even if another training began it a moment ago."""
        memory = self._kept_by(rows)
        if memory is None:
            rows.put_many({_MAPPING: self.written.encode()})
            memory = self
        return memory, memory._state(rows)

    def _kept_by(self, rows: RowStore) -> EntityMemory | None:
        """The memory that the rows are of."""
        written = rows.get_many([_MAPPING]).get(_MAPPING)
        return None if written is None else memory_for(written.decode())

    # --- transactions as the history sees them -----------------------------------------------------------------

    def event(self, transaction: Transaction) -> Event:
        """A transaction as the history sees it."""
        amount, category = transaction.facts.get("amount"), self._value(transaction, self.plan.category)
        return Event(
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
        return transaction.facts.get(self._named.get(column, "")) if value is None else value


def directions_of(written: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The facts of which a mapping says that more never lowers the risk, and that more never raises it."""
    mapping = parse_mapping(written, place=_PLACE)
    return mapping.rising, mapping.falling


@lru_cache(maxsize=16)
def memory_for(written: str) -> EntityMemory | None:
    """The memory that a mapping asks for, where it asks for one."""
    if not written:
        return None
    mapping = parse_mapping(written, place=_PLACE)
    if mapping.history is None or not mapping.history.entities:
        return None
    return EntityMemory(written, mapping, mapping.history)


def forgetting(rows: RowStore) -> None:
    """End all memory."""
    rows.clear()


def awaited(cases: Cases, plan: HistoryPlan) -> Cases:
    """Cases whose labels take their time where nothing says when they became known."""
    times = cases.transactions.times
    known_at = np.where((cases.known_at == UNKNOWN) & (times != UNKNOWN), times + plan.delay, cases.known_at)
    return Cases(
        cases.transactions, cases.labels, known_at=known_at, difficulty=cases.difficulty, metadata=cases.metadata
    )


def with_history(transaction: Transaction, facts: dict[str, FactValue]) -> Transaction:
    """The same with more facts, always in the same order; those that it brings itself stay."""
    more = {name: facts[name] for name in sorted(facts) if name not in transaction.facts}
    return transaction.model_copy(update={"facts": {**transaction.facts, **more}}) if more else transaction


def _with_facts(case: Case, facts: dict[str, FactValue]) -> Case:
    return case.model_copy(update={"transaction": with_history(case.transaction, facts)})


def _hear(state: HistoryState, outcome: Outcome) -> None:
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
