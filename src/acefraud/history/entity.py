"""What is remembered of one customer, terminal or other entity, and the facts that follow from it."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

from acefraud.core.transaction import FactValue
from acefraud.history.measures import UNITS, Place, distance_km
from acefraud.history.plan import HOUR, HistoryPlan, Window


@dataclass(frozen=True, slots=True)
class Sight:
    """What one entity sees of a transaction: its time, amount, category and place, and who else took part."""

    time: int
    amount: int | None = None
    """In whole units, as `acefraud.history.measures.amount_units` makes them."""
    category: str | None = None
    others: tuple[str | None, ...] = ()
    """The values of the other entities, in the order of the plan."""
    place: Place | None = None


@dataclass(slots=True)
class Label:
    """A truth that was heard: of which transaction, from when on, and until when it was not revised."""

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
class Outlook:
    """The part of a plan that one entity needs."""

    name: str
    others: tuple[str, ...]
    spans: tuple[Window, ...]
    pair_spans: tuple[Window, ...]
    pair_memory: int
    amounts: bool
    categories: bool
    places: bool

    @classmethod
    def of(cls, plan: HistoryPlan, column: str, *, amounts: bool) -> Outlook:
        """What a plan says of the entities in a column."""
        return cls(
            name=plan.name_of(column),
            others=tuple(name for _, name in plan.others(column)),
            spans=plan.spans,
            pair_spans=plan.pair_spans,
            pair_memory=plan.pair_memory,
            amounts=amounts,
            categories=bool(plan.category),
            places=plan.has_places,
        )

    @property
    def memory(self) -> int:
        """How long a transaction is remembered."""
        return self.spans[-1].length


@dataclass(slots=True)
class EntityState:
    """The memory of one entity, in the order of time and then of arrival.

    It holds what the longest window can need, counted back from the newest transaction seen. A transaction that
    arrives late sees only those before it that are still remembered, and no places: the way from the last place is
    the way from the newest.
    """

    count: int = 0
    """How many transactions were ever added; each has the number it came with."""
    times: list[int] = field(default_factory=list)
    amounts: list[int | None] = field(default_factory=list)
    categories: list[str | None] = field(default_factory=list)
    others: list[tuple[str | None, ...]] = field(default_factory=list)
    place: Place | None = None
    labels: list[Label] = field(default_factory=list)
    """In the order in which they became known."""
    pairs: dict[int, dict[str, Pair]] = field(default_factory=dict)
    """By the position of the other entity in the plan; the one met longest ago stands first."""

    # --- what follows from it ----------------------------------------------------------------------------------

    def facts(self, sight: Sight, outlook: Outlook) -> Iterator[tuple[str, FactValue]]:
        """The facts of a transaction that comes next. What is unknown is left out."""
        end = bisect_right(self.times, sight.time)
        for span in outlook.spans:
            start = bisect_right(self.times, sight.time - span.length)
            yield f"{outlook.name}_count_{span.name}", float(end - start)
            if outlook.amounts:
                yield from self._amounts(f"{outlook.name}_{{}}_{span.name}", start, end)
            yield from self._frauds(f"{outlook.name}_known_{{}}_{span.name}", sight.time, span.length)
        if outlook.amounts and sight.amount is not None:
            yield from self._usual(sight, sight.amount, end, outlook)
        if end:
            yield from self._since_last(sight, end, outlook)
        for position, other in enumerate(outlook.others):
            yield from self._met(sight, position, other, end, outlook)

    def _amounts(self, name: str, start: int, end: int) -> Iterator[tuple[str, FactValue]]:
        known = [amount for amount in self.amounts[start:end] if amount is not None]
        total = sum(known)
        yield name.format("sum"), total / float(UNITS)
        if known:
            yield name.format("mean"), total / float(len(known) * UNITS)
            yield name.format("max"), max(known) / float(UNITS)

    def _frauds(self, name: str, time: int, length: int) -> Iterator[tuple[str, FactValue]]:
        start = bisect_right(self.labels, time - length, key=_known_at)
        end = bisect_right(self.labels, time, key=_known_at)
        arrived = [label.is_fraud for label in self.labels[start:end] if label.holds_at(time)]
        yield name.format("frauds"), float(sum(arrived))
        if arrived:
            yield name.format("fraud_share"), sum(arrived) / len(arrived)

    def _usual(self, sight: Sight, amount: int, end: int, outlook: Outlook) -> Iterator[tuple[str, FactValue]]:
        start = bisect_right(self.times, sight.time - outlook.memory)
        known = [one for one in self.amounts[start:end] if one is not None]
        yield from _to_usual(f"{outlook.name}_amount_to_usual", amount, known)
        if outlook.categories and sight.category is not None:
            alike = zip(self.amounts[start:end], self.categories[start:end], strict=True)
            known = [one for one, category in alike if one is not None and category == sight.category]
            yield from _to_usual(f"{outlook.name}_amount_to_usual_in_category", amount, known)

    def _since_last(self, sight: Sight, end: int, outlook: Outlook) -> Iterator[tuple[str, FactValue]]:
        hours = (sight.time - self.times[end - 1]) / float(HOUR)
        yield f"{outlook.name}_hours_since_last", hours
        if outlook.places and self.place and sight.place and end == len(self.times):
            way = distance_km(self.place, sight.place)
            yield f"{outlook.name}_km_from_last", way
            if hours:
                yield f"{outlook.name}_kmh_from_last", way / hours

    def _met(
        self, sight: Sight, position: int, other: str, end: int, outlook: Outlook
    ) -> Iterator[tuple[str, FactValue]]:
        for span in outlook.pair_spans:
            start = bisect_right(self.times, sight.time - span.length)
            met = {others[position] for others in self.others[start:end]} - {None}
            yield f"{outlook.name}_distinct_{other}_{span.name}", float(len(met))
        value = sight.others[position]
        if value is not None:
            pair = self.pairs.get(position, {}).get(value)
            yield f"{outlook.name}_new_{other}", pair is None or pair.earliest > sight.time

    # --- what is added to it -----------------------------------------------------------------------------------

    def add(self, sight: Sight, outlook: Outlook) -> int:
        """Remember a transaction, and forget what no window needs any more. Returns its number."""
        number = self.count
        self.count += 1
        at = bisect_right(self.times, sight.time)
        if at == len(self.times):
            self.place = sight.place
        self.times.insert(at, sight.time)
        self.amounts.insert(at, sight.amount)
        self.categories.insert(at, sight.category)
        self.others.insert(at, sight.others)
        for position, value in enumerate(sight.others):
            self._meet(position, value, sight.time, number)
        self._forget(self.times[-1] - outlook.memory, number - outlook.pair_memory)
        return number

    def _meet(self, position: int, value: str | None, time: int, number: int) -> None:
        if value is not None:
            pairs = self.pairs.setdefault(position, {})
            known = pairs.pop(value, None)
            pairs[value] = Pair(time if known is None else min(time, known.earliest), number)

    def _forget(self, time: int, number: int) -> None:
        gone = bisect_right(self.times, time)
        for column in (self.times, self.amounts, self.categories, self.others):
            del column[:gone]
        del self.labels[: bisect_right(self.labels, time, key=_known_at)]
        for pairs in self.pairs.values():
            while pairs and pairs[oldest := next(iter(pairs))].number <= number:
                del pairs[oldest]

    def hear(self, number: int, is_fraud: bool, known_at: int, outlook: Outlook) -> None:
        """The truth of one of its transactions, which replaces an earlier one from its arrival on."""
        for label in self.labels:
            if label.number == number:
                label.until = known_at if label.until is None else min(label.until, known_at)
        if known_at > self.times[-1] - outlook.memory:
            label = Label(known_at, number, is_fraud)
            self.labels.insert(bisect_right(self.labels, known_at, key=_known_at), label)

    # --- keeping it --------------------------------------------------------------------------------------------

    def dump(self) -> bytes:
        """All of it as compact JSON."""
        return json.dumps(
            {
                "n": self.count,
                "t": _steps(self.times),
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
            },
            separators=(",", ":"),
            ensure_ascii=False,
        ).encode("utf-8", "surrogatepass")

    @classmethod
    def load(cls, kept: bytes) -> EntityState:
        """The state that was dumped.

        >>> state = EntityState()
        >>> EntityState.load(state.dump()) == state
        True
        """
        content: dict[str, Any] = json.loads(kept.decode("utf-8", "surrogatepass"))
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


def _to_usual(name: str, amount: int, known: Sequence[int]) -> Iterator[tuple[str, FactValue]]:
    """An amount against the mean of others; a usual amount of nothing, or of money back, compares with nothing."""
    if known and (total := sum(known)) > 0:
        yield name, float(amount) * len(known) / total


def _steps(times: Sequence[int]) -> list[int]:
    """The first time and then the differences, which are shorter to write."""
    return [*times[:1], *(later - earlier for earlier, later in pairwise(times))]
