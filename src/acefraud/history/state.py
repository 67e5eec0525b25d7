"""Facts with memory, one transaction at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from acefraud.core.ledger import RowStore
from acefraud.core.transaction import FactValue
from acefraud.history.entity import EntityState, Outlook, Sight
from acefraud.history.events import Event
from acefraud.history.measures import amount_units, place
from acefraud.history.plan import HistoryPlan
from acefraud.history.rows import Rows
from acefraud.history.store import MemoryRows

_CLOCK = "clock"
_CHUNK = 256
"""Ids that one row of the queue holds."""


@dataclass(slots=True)
class Taken:
    """A transaction that was added: what its label concerns later, and the facts it had."""

    time: int
    numbers: dict[str, tuple[str, int]]
    """The key of each entity that took part, with its column and the number that the transaction has there."""
    facts: list[FactValue | None]
    """In the order of the plan."""
    is_fraud: bool | None = None

    def dump(self) -> bytes:
        """All of it as compact JSON."""
        content = [self.time, self.numbers, self.facts, self.is_fraud]
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")

    @classmethod
    def load(cls, kept: bytes) -> Taken:
        """The transaction that was dumped."""
        return cls(*json.loads(kept.decode("utf-8", "surrogatepass")))


@dataclass(slots=True)
class Chunk:
    """Part of the queue of ids, in the order of arrival; the clock is kept as one too."""

    newest: int | None = None
    first: int = 0
    last: int = 0
    ids: list[str] = field(default_factory=list)

    def dump(self) -> bytes:
        """All of it as compact JSON."""
        content = [self.newest, self.first, self.last, self.ids]
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")

    @classmethod
    def load(cls, kept: bytes) -> Chunk:
        """The chunk that was dumped."""
        return cls(*json.loads(kept.decode("utf-8", "surrogatepass")))


class HistoryState:
    """The memory of all entities of a plan.

    A transaction is asked about, then added; its label is heard when it comes. An id that was added before brings
    the facts it had the first time and is not counted again, for as long as its label would be of use.

    >>> plan = HistoryPlan(entities=("card_id",), windows=("24h",))
    >>> state = HistoryState(plan)
    >>> state.add(Event("t1", 0, 20.0, {"card_id": "c1"}))
    >>> facts = state.facts(Event("t2", 3_600_000_000, 30.0, {"card_id": "c1"}))
    >>> facts["card_count_24h"], facts["card_mean_24h"], facts["card_amount_to_usual"], facts["card_hours_since_last"]
    (1.0, 20.0, 1.5, 1.0)
    """

    def __init__(
        self, plan: HistoryPlan, store: RowStore | None = None, *, amounts: bool = True, cache: int = 20_000
    ) -> None:
        self._plan = plan
        self._store: RowStore = MemoryRows() if store is None else store
        self._outlooks = {column: Outlook.of(plan, column, amounts=amounts) for column in plan.entities}
        self._others = {column: tuple(other for other, _ in plan.others(column)) for column in plan.entities}
        self._prefixes = {column: f"e:{plan.name_of(column)}:" for column in plan.entities}
        self._names = tuple(plan.facts(amounts=amounts))
        self._entities = Rows(self._store, EntityState.load, EntityState.dump, most=cache)
        self._taken = Rows(self._store, Taken.load, Taken.dump, most=cache)
        self._queue = Rows(self._store, Chunk.load, Chunk.dump, most=2)
        self._latest: tuple[Event, dict[str, FactValue]] | None = None

    def facts(self, event: Event) -> dict[str, FactValue]:
        """What its history says of a transaction; nothing where its time is not known."""
        if event.time_us is None:
            return {}
        taken = self._remembered(event.id)
        if taken is not None:
            found = zip(self._names, taken.facts, strict=True)
            return {name: value for name, value in found if value is not None}
        facts = self._facts(event, event.time_us)
        self._latest = event, facts
        return dict(facts)

    def _facts(self, event: Event, time: int) -> dict[str, FactValue]:
        keys = self._keys(event)
        states = self._entities.get_many(keys.values())
        facts: dict[str, FactValue] = {}
        for column, key in keys.items():
            state = states.get(key) or EntityState()
            facts |= state.facts(self._sight(column, event, time), self._outlooks[column])
        return facts

    def add(self, event: Event, facts: Mapping[str, FactValue] | None = None) -> None:
        """Count a transaction from now on, with the ``facts`` that it has where they are known already.

        Without a time it cannot be counted.
        """
        if event.time_us is None or self._remembered(event.id) is not None:
            return
        if facts is None:
            facts = self._latest[1] if self._latest and self._latest[0] is event else self._facts(event, event.time_us)
        numbers = dict(self._added(event, event.time_us))
        taken = Taken(event.time_us, numbers, [facts.get(name) for name in self._names])
        self._taken.put(_taken_key(event.id), taken)
        self._enqueue(event.id, event.time_us)
        self._latest = None

    def _added(self, event: Event, time: int) -> Iterator[tuple[str, tuple[str, int]]]:
        keys = self._keys(event)
        states = self._entities.get_many(keys.values())
        for column, key in keys.items():
            state = states.get(key) or EntityState()
            number = state.add(self._sight(column, event, time), self._outlooks[column])
            self._entities.put(key, state)
            yield key, (column, number)

    def _keys(self, event: Event) -> dict[str, str]:
        """The key of each entity that takes part, by column."""
        entities = event.entities
        return {column: prefix + entities[column] for column, prefix in self._prefixes.items() if column in entities}

    def _sight(self, column: str, event: Event, time: int) -> Sight:
        return Sight(
            time=time,
            amount=amount_units(event.amount),
            category=event.category if self._plan.category else None,
            others=tuple(map(event.entities.get, self._others[column])),
            place=place(event.latitude, event.longitude) if self._plan.has_places else None,
        )

    @property
    def newest(self) -> int | None:
        """The newest time that any transaction had."""
        return self._clock().newest

    def knows(self, transaction_id: str) -> bool:
        """Whether a transaction was added and is not forgotten yet."""
        return self._remembered(transaction_id) is not None

    def hear(self, transaction_id: str, is_fraud: bool, known_at: int) -> bool:
        """The truth of a transaction, which became known at this time; another truth later replaces it from then on.

        False where the transaction is not known, or not any more, or the label is too late to be of use.
        """
        taken = self._remembered(transaction_id)
        if taken is None or known_at - taken.time >= self._plan.reach:
            return False
        if taken.is_fraud is is_fraud:
            return True
        taken.is_fraud = is_fraud
        self._taken.put(_taken_key(transaction_id), taken)
        states = self._entities.get_many(taken.numbers)
        for key, (column, number) in taken.numbers.items():
            states[key].hear(number, is_fraud, max(known_at, taken.time), self._outlooks[column])
            self._entities.put(key, states[key])
        self._latest = None
        return True

    def flush(self) -> None:
        """Write all that was changed to the store."""
        caches = (self._entities, self._taken, self._queue)
        self._store.put_many({key: kept for cache in caches for key, kept in cache.changed().items()})
        self._store.forget_many([key for cache in caches for key in cache.gone()])
        for cache in caches:
            cache.settled()

    def _remembered(self, transaction_id: str) -> Taken | None:
        taken = self._taken.get(_taken_key(transaction_id))
        return taken if taken is not None and taken.time > self._horizon() else None

    def _horizon(self) -> float:
        newest = self._clock().newest
        return -float("inf") if newest is None else newest - self._plan.reach

    def _clock(self) -> Chunk:
        return self._queue.get(_CLOCK) or Chunk()

    def _enqueue(self, transaction_id: str, time: int) -> None:
        """Put an id at the end of the queue, and drop a chunk at its head once all of it is too old."""
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
            old = [] if head is None else [_taken_key(one) for one in head.ids]
            rows = self._taken.get_many(old)
            self._taken.forget(key for key, row in rows.items() if row.time <= self._horizon())
            self._queue.forget([_chunk_key(clock.first)])
            clock.first += 1


def _taken_key(transaction_id: str) -> str:
    return f"t:{transaction_id}"


def _chunk_key(number: int) -> str:
    return f"q:{number}"
