"""Facts from history, one transaction at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acefraud.core.ledger import MemoryRows, RowStore
from acefraud.core.transaction import FactValue
from acefraud.facts.history.entity import EntityEvent, EntityPlan, EntityState
from acefraud.facts.history.events import HistoryEvent, amount_units, place
from acefraud.facts.history.plan import HistoryPlan
from acefraud.facts.history.rows import RowCache, from_json, to_json

_CLOCK = "clock"
_CHUNK = 256
"""Ids that one row of the queue holds."""


@dataclass(slots=True)
class AddedTransaction:
    """A transaction that was added: the entities that its label concerns later, and the facts it had."""

    time: int
    numbers: dict[str, tuple[str, int]]
    """The key of each entity that took part, with its column and the number of the transaction there."""
    facts: list[FactValue | None]
    """In the order of the plan."""
    is_fraud: bool | None = None

    def dump(self) -> bytes:
        """All fields as compact JSON."""
        return to_json([self.time, self.numbers, self.facts, self.is_fraud])

    @classmethod
    def load(cls, row: bytes) -> AddedTransaction:
        """The transaction that was dumped."""
        return cls(*from_json(row))


@dataclass(slots=True)
class Chunk:
    """Part of the queue of ids, in the order of arrival. The clock is stored as one too."""

    newest: int | None = None
    first: int = 0
    last: int = 0
    ids: list[str] = field(default_factory=list)

    def dump(self) -> bytes:
        """All fields as compact JSON."""
        return to_json([self.newest, self.first, self.last, self.ids])

    @classmethod
    def load(cls, row: bytes) -> Chunk:
        """The chunk that was dumped."""
        return cls(*from_json(row))


class HistoryState:
    """The memory of all entities of a plan.

    Ask for the facts of a transaction, then add it; pass on its label when it arrives. An id that was added before gets
    the facts it had the first time and is not counted again, for as long as its label would be of use.

    >>> plan = HistoryPlan(entities=("card_id",), windows=("24h",))
    >>> state = HistoryState(plan)
    >>> state.add(HistoryEvent("t1", 0, 20.0, {"card_id": "c1"}))
    >>> facts = state.facts(HistoryEvent("t2", 3_600_000_000, 30.0, {"card_id": "c1"}))
    >>> facts["card_count_24h"], facts["card_mean_24h"], facts["card_amount_to_usual"], facts["card_hours_since_last"]
    (1.0, 20.0, 1.5, 1.0)
    """

    def __init__(
        self, plan: HistoryPlan, store: RowStore | None = None, *, amounts: bool = True, cache: int = 20_000
    ) -> None:
        self._plan = plan
        self._store: RowStore = MemoryRows() if store is None else store
        self._plans = {column: EntityPlan.of(plan, column, amounts=amounts) for column in plan.entities}
        self._others = {column: tuple(other for other, _ in plan.others(column)) for column in plan.entities}
        self._prefixes = {column: f"e:{plan.name_of(column)}:" for column in plan.entities}
        self._names = tuple(plan.facts(amounts=amounts))
        self._entities = RowCache(self._store, EntityState.load, EntityState.dump, most=cache)
        self._added = RowCache(self._store, AddedTransaction.load, AddedTransaction.dump, most=cache)
        self._queue = RowCache(self._store, Chunk.load, Chunk.dump, most=2)
        self._latest: tuple[HistoryEvent, dict[str, FactValue]] | None = None

    def facts(self, event: HistoryEvent) -> dict[str, FactValue]:
        """What its history says of a transaction; nothing if its time is unknown."""
        if event.time_us is None:
            return {}
        added = self._remembered(event.id)
        if added is not None:
            found = zip(self._names, added.facts, strict=True)
            return {name: value for name, value in found if value is not None}
        facts = self._facts(event, event.time_us)
        self._latest = event, facts
        return dict(facts)

    def _facts(self, event: HistoryEvent, time: int) -> dict[str, FactValue]:
        keys = self._keys(event)
        states = self._entities.get_many(keys.values())
        facts: dict[str, FactValue] = {}
        for column, key in keys.items():
            state = states.get(key) or EntityState()
            facts |= state.facts(self._event_for(column, event, time), self._plans[column])
        return facts

    def add(self, event: HistoryEvent, facts: Mapping[str, FactValue] | None = None) -> None:
        """Count a transaction from now on, with its ``facts`` if they are known already.

        Without a time it cannot be counted.
        """
        if event.time_us is None or self._remembered(event.id) is not None:
            return
        if facts is None:
            facts = self._latest[1] if self._latest and self._latest[0] is event else self._facts(event, event.time_us)
        numbers = self._add_to_entities(event, event.time_us)
        added = AddedTransaction(event.time_us, numbers, [facts.get(name) for name in self._names])
        self._added.put(_key_of(event.id), added)
        self._enqueue(event.id, event.time_us)
        self._latest = None

    def _add_to_entities(self, event: HistoryEvent, time: int) -> dict[str, tuple[str, int]]:
        keys = self._keys(event)
        states = self._entities.get_many(keys.values())
        numbers = {}
        for column, key in keys.items():
            state = states.get(key) or EntityState()
            numbers[key] = column, state.add(self._event_for(column, event, time), self._plans[column])
            self._entities.put(key, state)
        return numbers

    def _keys(self, event: HistoryEvent) -> dict[str, str]:
        """The key of each entity that takes part, by column."""
        entities = event.entities
        return {column: prefix + entities[column] for column, prefix in self._prefixes.items() if column in entities}

    def _event_for(self, column: str, event: HistoryEvent, time: int) -> EntityEvent:
        return EntityEvent(
            time=time,
            amount=amount_units(event.amount),
            category=event.category if self._plan.category else None,
            others=tuple(map(event.entities.get, self._others[column])),
            place=place(event.latitude, event.longitude) if self._plan.has_places else None,
        )

    def remembers(self, transaction_id: str) -> bool:
        """Whether a transaction was added, so that it gets the facts that it had."""
        return self._remembered(transaction_id) is not None

    @property
    def newest(self) -> int | None:
        """The newest time that any transaction had."""
        return self._clock().newest

    def hear(self, transaction_id: str, is_fraud: bool, known_at: int | None) -> bool:
        """The truth of a transaction and when it became known; a later truth replaces it from then on.

        Without a time it is known from now on: the newest time of all, as long as that is near enough to be of use.
        False if the transaction is unknown or forgotten, or the label is too late to be of use.
        """
        added = self._remembered(transaction_id)
        if added is None:
            return False
        if known_at is None:
            known_at = min(self.newest or added.time, added.time + self._plan.reach - 1)
        if known_at - added.time >= self._plan.reach:
            return False
        if added.is_fraud is is_fraud:
            return True
        added.is_fraud = is_fraud
        self._added.put(_key_of(transaction_id), added)
        states = self._entities.get_many(added.numbers)
        for key, (column, number) in added.numbers.items():
            states[key].hear(number, is_fraud, max(known_at, added.time), self._plans[column])
            self._entities.put(key, states[key])
        self._latest = None
        return True

    def flush(self) -> None:
        """Write all changes to the store."""
        drained = [cache.drain() for cache in (self._entities, self._added, self._queue)]
        self._store.put_many({key: row for changed, _ in drained for key, row in changed.items()})
        self._store.forget_many([key for _, dropped in drained for key in dropped])

    def _remembered(self, transaction_id: str) -> AddedTransaction | None:
        added = self._added.get(_key_of(transaction_id))
        return added if added is not None and added.time > self._horizon() else None

    def _horizon(self) -> float:
        newest = self._clock().newest
        return -float("inf") if newest is None else newest - self._plan.reach

    def _clock(self) -> Chunk:
        return self._queue.get(_CLOCK) or Chunk()

    def _enqueue(self, transaction_id: str, time: int) -> None:
        """Append an id to the queue, and drop the chunk at its head once all of it is too old."""
        clock = self._clock()
        last = self._queue.get(_chunk_key(clock.last)) or Chunk()
        if len(last.ids) == _CHUNK:
            clock.last += 1
            last = Chunk()
        last.ids.append(transaction_id)
        last.newest = time if last.newest is None else max(time, last.newest)
        clock.newest = time if clock.newest is None else max(time, clock.newest)
        self._queue.put(_chunk_key(clock.last), last)
        self._queue.put(_CLOCK, clock)
        self._drop_old(clock)

    def _drop_old(self, clock: Chunk) -> None:
        while clock.first < clock.last:
            head = self._queue.get(_chunk_key(clock.first))
            if head is not None and head.newest is not None and head.newest > self._horizon():
                return
            old = [] if head is None else [_key_of(one) for one in head.ids]
            rows = self._added.get_many(old)
            self._added.forget(key for key, row in rows.items() if row.time <= self._horizon())
            self._queue.forget([_chunk_key(clock.first)])
            clock.first += 1


def _key_of(transaction_id: str) -> str:
    return f"t:{transaction_id}"


def _chunk_key(number: int) -> str:
    return f"q:{number}"
