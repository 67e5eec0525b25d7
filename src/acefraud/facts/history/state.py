"""Facts from history, one transaction at a time: the memory of each entity, and of all of them."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice, pairwise
from operator import attrgetter
from typing import Any, Generic, Self, TypeVar

from acefraud.core.ledger import MemoryRows, RowStore
from acefraud.core.transaction import FactValue
from acefraud.facts.history.plan import HOUR, UNITS, HistoryEvent, HistoryPlan, Place, amount_units, place
from acefraud.support.great_circle import great_circle_km

T = TypeVar("T")


class RowCache(Generic[T]):
    """One kind of rows as objects. Changed rows stay in the cache until they are written back."""

    def __init__(self, store: RowStore, load: Callable[[bytes], T], dump: Callable[[T], bytes], *, most: int) -> None:
        self._store, self._load, self._dump, self._most = store, load, dump, most
        self._rows: dict[str, T] = {}
        self._changed: set[str] = set()
        self._dropped: set[str] = set()

    def get_many(self, keys: Iterable[str]) -> dict[str, T]:
        """The rows that exist."""
        wanted = list(keys)
        missing = [key for key in wanted if key not in self._rows and key not in self._dropped]
        if missing:
            self._rows |= {key: self._load(row) for key, row in self._store.get_many(missing).items()}
        return {key: self._rows[key] for key in wanted if key in self._rows}

    def get(self, key: str) -> T | None:
        """One row, if it exists."""
        row = self._rows.get(key)
        return self.get_many([key]).get(key) if row is None else row

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
        for key in list(islice(self._rows, max(0, len(self._rows) - self._most))):
            del self._rows[key]
        return changed, dropped


def to_json(content: Any) -> bytes:
    """Compact JSON."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def from_json(row: bytes) -> Any:
    """The content of `to_json`."""
    return json.loads(row.decode("utf-8", "surrogatepass"))


_known_at = attrgetter("known_at")
FoundFacts = Iterator[tuple[str, FactValue]]


@dataclass(frozen=True, slots=True)
class EntityEvent:
    """A transaction as one of its entities remembers it."""

    time: int
    amount: int | None = None
    """In whole units, as `acefraud.facts.history.plan.amount_units` makes them."""
    category: str | None = None
    others: tuple[str | None, ...] = ()
    """The values of the other entities, in the order of the plan."""
    place: Place | None = None


@dataclass(slots=True)
class Label:
    """A truth: of which transaction, known from when, and until when it was not revised."""

    known_at: int
    number: int
    is_fraud: bool
    until: int | None = None


@dataclass(slots=True)
class Pair:
    """Another entity that was met: the earliest remembered time, and the number of the latest transaction."""

    earliest: int
    number: int


@dataclass(frozen=True, slots=True)
class EntityPlan:
    """A plan as it applies to the entities of one column."""

    plan: HistoryPlan
    name: str
    others: tuple[str, ...]
    amounts: bool

    @classmethod
    def of(cls, plan: HistoryPlan, column: str, *, amounts: bool) -> EntityPlan:
        """The part of a plan for one column. `amounts` says whether transactions have amounts."""
        return cls(plan, plan.name_of(column), tuple(name for _, name in plan.others(column)), amounts)


@dataclass(slots=True)
class EntityState:
    """The memory of one entity, in order of time and then of arrival.

    It holds what the longest window can need, counted back from the newest transaction. A transaction that arrives late
    sees only those before it that are still remembered, and no places: only the newest place is kept.
    """

    count: int = 0
    """How many transactions were ever added. Each is numbered by it."""
    times: list[int] = field(default_factory=list)
    amounts: list[int | None] = field(default_factory=list)
    categories: list[str | None] = field(default_factory=list)
    others: list[tuple[str | None, ...]] = field(default_factory=list)
    place: Place | None = None
    labels: list[Label] = field(default_factory=list)
    """In the order in which they became known."""
    pairs: dict[int, dict[str, Pair]] = field(default_factory=dict)
    """By the position of the other entity in the plan; the one met longest ago comes first."""

    # --- facts -------------------------------------------------------------------------------------------------

    def facts(self, event: EntityEvent, of: EntityPlan) -> FoundFacts:
        """The facts of a transaction that comes next. Unknown facts are left out."""
        end = bisect_right(self.times, event.time)
        for span in of.plan.spans:
            start = bisect_right(self.times, event.time - span.length)
            yield f"{of.name}_count_{span.name}", float(end - start)
            if of.amounts:
                yield from self._amounts(f"{of.name}_{{}}_{span.name}", start, end)
            yield from self._frauds(f"{of.name}_known_{{}}_{span.name}", event.time, span.length)
        if of.amounts and event.amount is not None:
            yield from self._usual(event, event.amount, end, of)
        if end:
            yield from self._since_last(event, end, of)
        for position, other in enumerate(of.others):
            yield from self._met(event, position, f"{of.name}_{{}}_{other}", end, of.plan)

    def _amounts(self, name: str, start: int, end: int) -> FoundFacts:
        known = [amount for amount in self.amounts[start:end] if amount is not None]
        total = sum(known)
        yield name.format("sum"), total / float(UNITS)
        if known:
            yield name.format("mean"), total / float(len(known) * UNITS)
            yield name.format("max"), max(known) / float(UNITS)

    def _frauds(self, name: str, time: int, length: int) -> FoundFacts:
        start = bisect_right(self.labels, time - length, key=_known_at)
        end = bisect_right(self.labels, time, key=_known_at)
        known = self.labels[start:end]
        arrived = [label.is_fraud for label in known if label.until is None or time < label.until]
        yield name.format("frauds"), float(sum(arrived))
        if arrived:
            yield name.format("fraud_share"), sum(arrived) / len(arrived)

    def _usual(self, event: EntityEvent, amount: int, end: int, of: EntityPlan) -> FoundFacts:
        start = bisect_right(self.times, event.time - of.plan.longest.length)
        known = [other for other in self.amounts[start:end] if other is not None]
        yield from _to_usual(f"{of.name}_amount_to_usual", amount, known)
        if of.plan.category and event.category is not None:
            alike = zip(self.amounts[start:end], self.categories[start:end], strict=True)
            known = [other for other, category in alike if other is not None and category == event.category]
            yield from _to_usual(f"{of.name}_amount_to_usual_in_category", amount, known)

    def _since_last(self, event: EntityEvent, end: int, of: EntityPlan) -> FoundFacts:
        hours = (event.time - self.times[end - 1]) / float(HOUR)
        yield f"{of.name}_hours_since_last", hours
        if of.plan.has_places and self.place and event.place and end == len(self.times):
            way = great_circle_km(self.place, event.place)
            yield f"{of.name}_km_from_last", way
            if hours:
                yield f"{of.name}_kmh_from_last", way / hours

    def _met(self, event: EntityEvent, position: int, name: str, end: int, plan: HistoryPlan) -> FoundFacts:
        for span in plan.pair_spans:
            start = bisect_right(self.times, event.time - span.length)
            met = {others[position] for others in self.others[start:end]} - {None}
            yield f"{name.format('distinct')}_{span.name}", float(len(met))
        value = event.others[position]
        if value is not None:
            pair = self.pairs.get(position, {}).get(value)
            yield name.format("new"), pair is None or pair.earliest > event.time

    # --- adding ------------------------------------------------------------------------------------------------

    def add(self, event: EntityEvent, of: EntityPlan) -> int:
        """Remember a transaction, and forget what no window needs any more. Returns its number."""
        number = self.count
        self.count += 1
        at = bisect_right(self.times, event.time)
        if at == len(self.times):
            self.place = event.place
        self.times.insert(at, event.time)
        self.amounts.insert(at, event.amount)
        self.categories.insert(at, event.category)
        self.others.insert(at, event.others)
        for position, value in enumerate(event.others):
            if value is not None:
                pairs = self.pairs.setdefault(position, {})
                known = pairs.pop(value, None)
                pairs[value] = Pair(event.time if known is None else min(event.time, known.earliest), number)
        self._forget(self.times[-1] - of.plan.longest.length, number - of.plan.pair_memory)
        return number

    def _forget(self, time: int, number: int) -> None:
        gone = bisect_right(self.times, time)
        for column in (self.times, self.amounts, self.categories, self.others):
            del column[:gone]
        del self.labels[: bisect_right(self.labels, time, key=_known_at)]
        for pairs in self.pairs.values():
            while pairs and pairs[oldest := next(iter(pairs))].number <= number:
                del pairs[oldest]

    def hear(self, number: int, is_fraud: bool, known_at: int, of: EntityPlan) -> None:
        """The truth of one of its transactions. It replaces an earlier one from its arrival on."""
        for label in self.labels:
            if label.number == number:
                label.until = known_at if label.until is None else min(label.until, known_at)
        if known_at > self.times[-1] - of.plan.longest.length:
            label = Label(known_at, number, is_fraud)
            self.labels.insert(bisect_right(self.labels, known_at, key=_known_at), label)

    # --- storing -----------------------------------------------------------------------------------------------

    def dump(self) -> bytes:
        """The state as compact JSON. Times are written as differences, which are shorter."""
        return to_json(
            {
                "n": self.count,
                "t": [*self.times[:1], *(later - earlier for earlier, later in pairwise(self.times))],
                "a": self.amounts,
                "c": self.categories if any(self.categories) else None,
                "o": self.others,
                "p": self.place,
                "l": [[label.known_at, label.number, int(label.is_fraud), label.until] for label in self.labels],
                "m": [
                    [position, value, pair.earliest, pair.number]
                    for position, pairs in self.pairs.items()
                    for value, pair in pairs.items()
                ],
            }
        )

    @classmethod
    def load(cls, row: bytes) -> EntityState:
        """The state that was dumped.

        >>> state = EntityState()
        >>> EntityState.load(state.dump()) == state
        True
        """
        content: dict[str, Any] = from_json(row)
        pairs: dict[int, dict[str, Pair]] = {}
        for position, value, earliest, number in content["m"]:
            pairs.setdefault(position, {})[value] = Pair(earliest, number)
        return cls(
            count=content["n"],
            times=list(accumulate(content["t"])),
            amounts=content["a"],
            categories=[None] * len(content["t"]) if content["c"] is None else content["c"],
            others=[tuple(values) for values in content["o"]],
            place=None if content["p"] is None else (content["p"][0], content["p"][1]),
            labels=[Label(known, number, bool(fraud), until) for known, number, fraud, until in content["l"]],
            pairs=pairs,
        )


def _to_usual(name: str, amount: int, known: Sequence[int]) -> FoundFacts:
    """An amount against the mean of others; left out if that mean is not positive."""
    if known and (total := sum(known)) > 0:
        yield name, float(amount) * len(known) / total


_CLOCK = "clock"
_CHUNK = 256
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
class AddedTransaction(_StoredRow):
    """A transaction that was added: the entities that its label concerns later, and the facts it had."""

    time: int
    numbers: dict[str, tuple[str, int]]
    """The key of each entity that took part, with its column and the number of the transaction there."""
    facts: list[FactValue | None]
    """In the order of the plan."""
    is_fraud: bool | None = None


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

    def flush(self, *, entities: bool = True) -> None:
        """Write all changes to the store; those of `entities` are many at first, and each may change again soon."""
        drained = [self._added.drain(), self._queue.drain(), *([self._entities.drain()] if entities else [])]
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


def _chunk_key(number: int) -> str:
    return f"q:{number}"
