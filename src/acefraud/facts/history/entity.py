"""The memory of one customer, terminal or other entity, and the facts that follow from it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

from acefraud.core.transaction import FactValue
from acefraud.facts.history.events import UNITS, Place, distance_km
from acefraud.facts.history.plan import HOUR, HistoryPlan
from acefraud.facts.history.rows import from_json, to_json

FoundFacts = Iterator[tuple[str, FactValue]]


@dataclass(frozen=True, slots=True)
class EntityEvent:
    """A transaction as one of its entities remembers it."""

    time: int
    amount: int | None = None
    """In whole units, as `acefraud.facts.history.events.amount_units` makes them."""
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

    def holds_at(self, time: int) -> bool:
        """Whether it is the latest truth at this time."""
        return self.known_at <= time and (self.until is None or time < self.until)


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

    @property
    def memory(self) -> int:
        """How long a transaction is remembered."""
        return self.plan.longest.length


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
        arrived = [label.is_fraud for label in self.labels[start:end] if label.holds_at(time)]
        yield name.format("frauds"), float(sum(arrived))
        if arrived:
            yield name.format("fraud_share"), sum(arrived) / len(arrived)

    def _usual(self, event: EntityEvent, amount: int, end: int, of: EntityPlan) -> FoundFacts:
        start = bisect_right(self.times, event.time - of.memory)
        known = [one for one in self.amounts[start:end] if one is not None]
        yield from _to_usual(f"{of.name}_amount_to_usual", amount, known)
        if of.plan.category and event.category is not None:
            alike = zip(self.amounts[start:end], self.categories[start:end], strict=True)
            known = [one for one, category in alike if one is not None and category == event.category]
            yield from _to_usual(f"{of.name}_amount_to_usual_in_category", amount, known)

    def _since_last(self, event: EntityEvent, end: int, of: EntityPlan) -> FoundFacts:
        hours = (event.time - self.times[end - 1]) / float(HOUR)
        yield f"{of.name}_hours_since_last", hours
        if of.plan.has_places and self.place and event.place and end == len(self.times):
            way = distance_km(self.place, event.place)
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
        self._forget(self.times[-1] - of.memory, number - of.plan.pair_memory)
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
        if known_at > self.times[-1] - of.memory:
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


def _known_at(label: Label) -> int:
    return label.known_at


def _to_usual(name: str, amount: int, known: Sequence[int]) -> FoundFacts:
    """An amount against the mean of others; left out if that mean is not positive."""
    if known and (total := sum(known)) > 0:
        yield name, float(amount) * len(known) / total
