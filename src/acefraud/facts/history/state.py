"""Facts from history, one transaction at a time: the memory of each entity, and of all of them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat
from math import isnan, nan
from typing import Any, Generic, Self, TypeVar

from acefraud.core.ledger import MemoryRows, RowStore
from acefraud.core.transaction import FactValue
from acefraud.facts.history.entity_state import EntityEvent, EntityPlan, EntityState, from_json, to_json
from acefraud.facts.history.plan import HistoryEvent, HistoryPlan, amount_units, place

T = TypeVar("T")


class RowCache(Generic[T]):
    """One kind of rows as objects. Changed rows stay in the cache until they are written back."""

    def __init__(self, store: RowStore, load: Callable[[bytes], T], dump: Callable[[T], bytes], *, most: int) -> None:
        self._store, self._load, self._dump, self._most = store, load, dump, most
        self._rows: dict[str, T] = {}
        self._changed: set[str] = set()
        self._dropped: set[str] = set()
        self._absent: set[str] = set()

    def get_many(self, keys: Iterable[str]) -> dict[str, T]:
        """The rows that exist."""
        wanted = list(keys)
        missing = [key for key in wanted if not (key in self._rows or key in self._dropped or key in self._absent)]
        if missing:
            self._rows |= {key: self._load(row) for key, row in self._store.get_many(missing).items()}
            self._absent.update(missing)
        return {key: self._rows[key] for key in wanted if key in self._rows}

    def get(self, key: str) -> T | None:
        """One row, if it exists."""
        row = self._rows.get(key)
        return self.get_many([key]).get(key) if row is None and key not in self._absent else row

    def put(self, key: str, row: T) -> None:
        """Keep a new or changed row."""
        self._rows[key] = row
        self._changed.add(key)
        self._dropped.discard(key)

    def forget(self, keys: Iterable[str]) -> None:
        """Drop rows."""
        for key in keys:
            self._rows.pop(key, None)
            self._changed.discard(key)
            self._dropped.add(key)

    def drain(self) -> tuple[dict[str, bytes], list[str]]:
        """The rows to write to the store and the keys to drop from it. The cache may shrink after that."""
        changed, dropped = {key: self._dump(self._rows[key]) for key in sorted(self._changed)}, sorted(self._dropped)
        self._changed.clear()
        self._dropped.clear()
        self._absent.clear()
        for key in list(islice(self._rows, max(0, len(self._rows) - self._most))):
            del self._rows[key]
        return changed, dropped


class PartnerRows:
    """The rows in which an entity keeps partners that it met long ago."""

    def __init__(self, rows: RowCache[Any], entity: str) -> None:
        self._rows, self._prefix = rows, f"p:{len(entity)}:{entity}:"

    def get(self, name: str) -> Any:
        """A row; None if there is none."""
        return self._rows.get(self._prefix + name)

    def pop(self, name: str, default: None) -> Any:
        """A row, which is deleted; None if there is none."""
        row = self.get(name)
        if row is None:
            return default
        self._rows.forget([self._prefix + name])
        return row

    def __setitem__(self, name: str, row: Any) -> None:
        """Insert or replace a row."""
        self._rows.put(self._prefix + name, row)


_CLOCK = "clock"
_DUE = "labels"
_Part = tuple[str, str, EntityState, EntityEvent]
"""An entity that takes part in a transaction: its column, key and state, and the transaction as it sees it."""
DueLabel = tuple[int, str, bool]
"""When a label becomes known, of which transaction, and whether it says fraud."""
_CHUNK = 32
"""Ids that one row of the queue holds."""


class _StoredRow:
    """A dataclass that is stored as a list of its fields."""

    __slots__: tuple[str, ...] = ()

    def dump(self) -> bytes:
        """All fields as compact JSON."""
        return to_json([getattr(self, name) for name in self.__slots__])

    @classmethod
    def load(cls, row: bytes) -> Self:
        """The row that was dumped."""
        return cls(*from_json(row))


@dataclass(slots=True)
class AddedTransaction:
    """A transaction that was added: the entities that its label concerns later, and the facts it had."""

    time: int
    numbers: dict[str, tuple[str, int]]
    """The key of each entity that took part, with its column and the number of the transaction there."""
    facts: Sequence[float]
    """In the order of the plan, NaN where unknown."""
    is_fraud: bool | None = None
    known_at: int | None = None
    """When that became known; None in rows of earlier versions too."""

    def dump(self) -> bytes:
        """The facts as numbers, the rest as JSON."""
        facts = (
            [nan if isinstance(fact, str) else fact for fact in self.facts]
            if str in set(map(type, self.facts))
            else self.facts
        )
        rest = to_json([self.time, self.numbers, self.is_fraud, self.known_at])
        return struct.pack(f"<xi{len(self.facts)}d", len(facts), *facts) + rest

    @classmethod
    def load(cls, row: bytes) -> Self:
        """The row that was dumped, also by versions that wrote all of it as JSON."""
        if row[:1] == b"[":
            time, numbers, facts, is_fraud = from_json(row)
            return cls(time, numbers, [nan if fact is None else fact for fact in facts], is_fraud)
        (many,) = struct.unpack_from("<i", row, 1)
        time, numbers, is_fraud, known_at = from_json(row[5 + 8 * many :])
        return cls(time, numbers, struct.unpack_from(f"<{many}d", row, 5), is_fraud, known_at)


@dataclass(slots=True)
class Chunk(_StoredRow):
    """Part of the queue of ids, in the order of arrival. The clock is stored as one too."""

    newest: int | None = None
    first: int = 0
    last: int = 0
    ids: list[str] = field(default_factory=list)


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
        self._kinds = plan.facts(amounts=amounts)
        self._entities = RowCache(self._store, EntityState.load, EntityState.dump, most=cache)
        self._json: RowCache[Any] = RowCache(self._store, from_json, to_json, most=cache)
        self._added = RowCache(self._store, AddedTransaction.load, AddedTransaction.dump, most=cache)
        self._queue = RowCache(self._store, Chunk.load, Chunk.dump, most=2)
        self._latest: tuple[HistoryEvent, dict[str, FactValue], list[_Part]] | None = None

    def facts(self, event: HistoryEvent) -> dict[str, FactValue]:
        """What its history says of a transaction; nothing if its time is unknown."""
        if event.time_us is None:
            return {}
        self._hear_due(event.time_us)
        added = self._remembered(event.id)
        if added is not None:
            found = zip(self._kinds.items(), added.facts, strict=True)
            return {name: bool(value) if kind == "flag" else value for (name, kind), value in found if not isnan(value)}
        parts = self._parts(event, event.time_us)
        facts = self._facts(parts)
        self._latest = event, facts, parts
        return dict(facts)

    def _facts(self, parts: Sequence[_Part]) -> dict[str, FactValue]:
        facts: dict[str, FactValue] = {}
        for column, _, state, of_entity in parts:
            facts |= state.facts(of_entity, self._plans[column])
        return facts

    def prefetch(self, events: Iterable[HistoryEvent]) -> None:
        """Fetch what transactions need at once, which is quicker than one after the other."""
        wanted = list(events)
        self._added.get_many(_key_of(event.id) for event in wanted)
        self._entities.get_many(dict.fromkeys(key for event in wanted for key in self._keys(event).values()))

    def add(self, event: HistoryEvent, facts: Mapping[str, FactValue] | None = None) -> None:
        """Count a transaction from now on, with its ``facts`` if they are known already.

        Without a time it cannot be counted.
        """
        if event.time_us is None or self._remembered(event.id) is not None:
            return
        self._hear_due(event.time_us)
        before = self._latest if self._latest and self._latest[0] is event else None
        parts = before[2] if before else self._parts(event, event.time_us)
        if facts is None:
            facts = before[1] if before else self._facts(parts)
        numbers = {}
        for column, key, state, of_entity in parts:
            numbers[key] = column, state.add(of_entity, self._plans[column])
            self._entities.put(key, state)
        values: list[Any] = list(map(facts.get, self._kinds, repeat(nan)))
        added = AddedTransaction(event.time_us, numbers, values)
        self._added.put(_key_of(event.id), added)
        self._enqueue(event.id, event.time_us)
        self._latest = None

    def _keys(self, event: HistoryEvent) -> dict[str, str]:
        """The key of each entity that takes part, by column."""
        entities = event.entities
        return {column: prefix + entities[column] for column, prefix in self._prefixes.items() if column in entities}

    def _parts(self, event: HistoryEvent, time: int) -> list[_Part]:
        """The column, the key and the state of each entity that takes part, with the transaction as it sees it."""
        keys = self._keys(event)
        states = self._states(keys.values())
        amount, category = amount_units(event.amount), event.category if self._plan.category else None
        where = place(event.latitude, event.longitude) if self._plan.has_places else None
        parts = []
        for column, key in keys.items():
            others = tuple(map(event.entities.get, self._others[column]))
            state = states.get(key) or EntityState(rows=PartnerRows(self._json, key))
            parts.append((column, key, state, EntityEvent(time, amount, category, others, where)))
        return parts

    def _states(self, keys: Iterable[str]) -> dict[str, EntityState]:
        states = self._entities.get_many(keys)
        for key, state in states.items():
            if isinstance(state.rows, dict):  # fresh from the store
                state.rows = PartnerRows(self._json, key)
        return states

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
        known_at = max(known_at, added.time)
        before = None if added.is_fraud is None else (added.known_at, added.is_fraud)
        added.is_fraud, added.known_at = is_fraud, known_at
        self._added.put(_key_of(transaction_id), added)
        states = self._states(added.numbers)
        for key, (column, number) in added.numbers.items():
            states[key].hear(number, is_fraud, known_at, before, self._plans[column])
            self._entities.put(key, states[key])
        self._latest = None
        return True

    def hear_later(self, labels: Sequence[DueLabel]) -> None:
        """Labels that become known after everything so far. Each is heard when a transaction of that time comes."""
        _, first, last = self._json.get(_DUE) or (None, 0, 0)
        waiting = [tuple(label) for number in range(first, last) for label in self._json.get(_due_key(number)) or ()]
        self._json.forget(map(_due_key, range(first, last)))
        waiting = sorted([*waiting, *labels])
        pages = [waiting[start : start + _CHUNK] for start in range(0, len(waiting), _CHUNK)]
        for number, page in enumerate(pages):
            self._json.put(_due_key(number), page)
        if pages:
            self._json.put(_DUE, (waiting[0][0], 0, len(pages)))

    def _hear_due(self, time: int) -> None:
        while (due := self._json.get(_DUE)) and due[1] < due[2] and due[0] <= time:
            page = self._json.get(_due_key(due[1])) or []
            rest = [label for label in page if label[0] > time]
            for known_at, transaction_id, is_fraud in page[: len(page) - len(rest)]:
                added = self._remembered(transaction_id)
                if added is not None and added.is_fraud is None:  # nobody said otherwise meanwhile
                    self.hear(transaction_id, is_fraud, known_at)
            if rest:
                self._json.put(_due_key(due[1]), rest)
                self._json.put(_DUE, (rest[0][0], due[1], due[2]))
            else:
                self._json.forget([_due_key(due[1])])
                following = self._json.get(_due_key(due[1] + 1))
                self._json.put(_DUE, (following[0][0] if following else time, due[1] + 1, due[2]))

    def flush(self, *, entities: bool = True) -> None:
        """Write all changes to the store; those of `entities` are many at first, and each may change again soon."""
        drained = [self._added.drain(), self._queue.drain()]
        drained += [self._entities.drain(), self._json.drain()] if entities else []
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
            old = [] if head is None else list(map(_key_of, head.ids))
            rows = self._added.get_many(old)
            self._added.forget(key for key, row in rows.items() if row.time <= self._horizon())
            self._queue.forget([_chunk_key(clock.first)])
            clock.first += 1


def _key_of(transaction_id: str) -> str:
    return f"t:{transaction_id}"


def _due_key(number: int) -> str:
    return f"l:{number}"


def _chunk_key(number: int) -> str:
    return f"q:{number}"
