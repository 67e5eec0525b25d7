"""A table at once, one transaction at a time, and the plain definitions: all three give the same facts, to the bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.ledger import MemoryRows
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.facts.history import HistoryEvent, HistoryEvents, HistoryPlan, HistoryState, history_columns
from acefraud.facts.history.events import UNITS, distance_km
from acefraud.facts.history.plan import HOUR, Window
from acefraud.support.timestamps import UNKNOWN

ENTITIES = ("card_id", "shop_id", "device_id")
PLAN = HistoryPlan(
    entities=ENTITIES,
    windows=("2h", "20h", "3d"),
    label_delay="5h",
    label_patience="1d",
    category="kind",
    latitude="lat",
    longitude="lon",
    pair_memory=4,
)


@dataclass(frozen=True)
class Row:
    """A transaction together with its label."""

    event: HistoryEvent
    label: bool | None = None
    known_at: int | None = None

    @property
    def time(self) -> int:
        assert self.event.time_us is not None
        return self.event.time_us

    def heard_at(self, plan: HistoryPlan) -> int:
        return max(self.time, self.time + plan.delay if self.known_at is None else self.known_at)


hours = st.integers(0, 40) | st.integers(0, 300)
amounts = st.none() | st.sampled_from([0.0, 10.0, -5.5, 19.99, 0.00005, 123456.789, 2e11]) | st.floats(-1e6, 1e6)
values = st.sampled_from(["a", "a", "b", "c"]) | st.none()


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Transactions that mostly come in the order of time, some of them twice."""
    moments = draw(st.lists(hours, min_size=1, max_size=25))
    if draw(st.booleans()):
        moments.sort()
    found = []
    for place, moment in enumerate(moments):
        given = {column: draw(values) for column in ENTITIES}
        time = None if draw(st.integers(0, 15)) == 0 else moment * HOUR + draw(st.sampled_from([0, 0, 1]))
        event = HistoryEvent(
            id=f"t{draw(st.integers(0, place)) if draw(st.integers(0, 7)) == 0 else place}",
            time_us=time,
            amount=draw(amounts),
            entities={column: value for column, value in given.items() if value is not None},
            category=draw(st.sampled_from(["x", "y", None])),
            latitude=draw(st.sampled_from([48.1, -33.9, 0.0, None])),
            longitude=draw(st.sampled_from([11.6, 151.2, 180.0])),
        )
        known_at = draw(st.none() | st.integers(-10, 110))
        found.append(Row(event, draw(st.sampled_from([True, False, None])), _later(time, known_at)))
    return found


def _later(time: int | None, by_hours: int | None) -> int | None:
    return None if time is None or by_hours is None else time + by_hours * HOUR


def columns_of(stream: Sequence[Row]) -> HistoryEvents:
    events = [row.event for row in stream]
    labels = [-1 if row.label is None else int(row.label) for row in stream]
    return HistoryEvents(
        time=np.array([UNKNOWN if one.time_us is None else one.time_us for one in events], dtype=np.int64),
        entities={column: codes([one.entities.get(column) for one in events]) for column in ENTITIES},
        ids=np.array([one.id for one in events]),
        amount=numbers([one.amount for one in events]),
        category=codes([one.category for one in events]),
        latitude=numbers([one.latitude for one in events]),
        longitude=numbers([one.longitude for one in events]),
        label=np.array(labels, dtype=np.int8),
        known_at=np.array([UNKNOWN if row.known_at is None else row.known_at for row in stream], dtype=np.int64),
    )


def codes(words: Sequence[str | None]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    known = sorted({word for word in words if word is not None})
    return np.array([-1 if word is None else known.index(word) for word in words], dtype=np.int32)


def numbers(figures: Sequence[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([np.nan if figure is None else figure for figure in figures])


def at_once(plan: HistoryPlan, events: HistoryEvents) -> list[dict[str, FactValue]]:
    table = FactTable.of_columns(history_columns(plan, events), len(events))
    return [table.row(place) for place in range(len(table))]


def one_by_one(
    plan: HistoryPlan, stream: Sequence[Row], *, on_arrival: bool = False, reopen_every: int = 10**9
) -> list[dict[str, FactValue]]:
    """Labels are heard with the transaction or when they arrive; now and then the state is stored and reopened."""
    store = MemoryRows()
    state = HistoryState(plan, store)
    waiting: list[Row] = []
    clock = UNKNOWN
    found = []

    def hear(until: int) -> None:
        for one in [one for one in waiting if one.heard_at(plan) <= until or not on_arrival]:
            state.hear(one.event.id, bool(one.label), one.heard_at(plan))
            waiting.remove(one)

    for place, row in enumerate(stream):
        time = row.event.time_us
        hear(clock if time is None else max(clock, time))
        found.append(state.facts(row.event))
        is_new = time is not None and state._remembered(row.event.id) is None
        state.add(row.event)
        if is_new and time is not None:
            waiting += [row] if row.label is not None else []
            clock = max(clock, time)
            hear(clock)
        if place % reopen_every == reopen_every - 1:
            state.flush()
            state = HistoryState(plan, store)
    return found


def by_definition(plan: HistoryPlan, stream: Sequence[Row]) -> list[dict[str, FactValue]]:
    counted: list[Row] = []
    first: dict[str, tuple[int, dict[str, FactValue]]] = {}
    found: list[dict[str, FactValue]] = []
    for row in stream:
        facts: dict[str, FactValue] = {}
        if row.event.time_us is not None:
            clock = max((one.time for one in counted), default=UNKNOWN)
            time, facts = first.get(row.event.id, (UNKNOWN, {}))
            if row.event.id not in first or time <= clock - plan.reach:
                facts = {name: value for column in ENTITIES for name, value in _facts_of(plan, column, row, counted)}
                first[row.event.id] = row.time, facts
                too_late = bool(counted) and row.time <= clock - plan.reach
                counted.append(replace(row, label=None) if too_late else row)
        found.append(facts)
    return found


def _facts_of(plan: HistoryPlan, column: str, row: Row, before: Sequence[Row]) -> Iterator[tuple[str, FactValue]]:
    if column not in row.event.entities:
        return
    name, longest = plan.name_of(column), plan.longest
    arrived = [one for one in before if one.event.entities.get(column) == row.event.entities[column]]
    newest = max((one.time for one in arrived), default=0)
    past = [one for one in arrived if newest - longest.length < one.time <= row.time]

    def within(span: Window) -> list[Row]:
        return [one for one in past if row.time - span.length < one.time]

    for span in plan.spans:
        yield f"{name}_count_{span.name}", float(len(within(span)))
        known = [unit for one in within(span) if (unit := units(one)) is not None]
        yield f"{name}_sum_{span.name}", sum(known) / UNITS
        if known:
            yield f"{name}_mean_{span.name}", sum(known) / (len(known) * UNITS)
            yield f"{name}_max_{span.name}", max(known) / UNITS
        labels = [one for one in arrived if one.label is not None and one.heard_at(plan) - one.time < plan.reach]
        heard = [one for one in labels if max(row.time - span.length, newest - longest.length) < one.heard_at(plan)]
        heard = [one for one in heard if one.heard_at(plan) <= row.time]
        frauds = sum(one.label is True for one in heard)
        yield f"{name}_known_frauds_{span.name}", float(frauds)
        if heard:
            yield f"{name}_known_fraud_share_{span.name}", frauds / len(heard)
    yield from _usual(f"{name}_amount_to_usual", row, within(longest))
    if row.event.category is not None:
        alike = [one for one in within(longest) if one.event.category == row.event.category]
        yield from _usual(f"{name}_amount_to_usual_in_category", row, alike)
    if past:
        last = max(enumerate(past), key=lambda at: (at[1].time, at[0]))[1]
        since = (row.time - last.time) / HOUR
        yield f"{name}_hours_since_last", since
        here, there = row.event, last.event
        if newest <= row.time and here.latitude is not None and there.latitude is not None:
            assert here.longitude is not None
            assert there.longitude is not None
            way = distance_km((there.latitude, there.longitude), (here.latitude, here.longitude))
            yield f"{name}_km_from_last", way
            if since:
                yield f"{name}_kmh_from_last", way / since
    for other, called in plan.others(column):
        for span in plan.pair_spans:
            met = {one.event.entities[other] for one in within(span) if other in one.event.entities}
            yield f"{name}_distinct_{called}_{span.name}", float(len(met))
        if (partner := row.event.entities.get(other)) is not None:
            yield f"{name}_new_{called}", _is_new(plan, arrived, other, partner, row.time)


def units(row: Row) -> int | None:
    amount = row.event.amount
    return None if amount is None or abs(amount) > 1e11 else round(amount * UNITS)


def _usual(name: str, row: Row, past: Sequence[Row]) -> Iterator[tuple[str, FactValue]]:
    own = units(row)
    known = [unit for one in past if (unit := units(one)) is not None]
    if own is not None and sum(known) > 0:
        yield name, float(own) * len(known) / sum(known)


def _is_new(plan: HistoryPlan, arrived: Sequence[Row], other: str, partner: str, time: int) -> bool:
    """Meetings count as one acquaintance while no more than so many transactions lie between them."""
    earliest: int | None = None
    last = -1
    for number, one in enumerate(arrived):
        if one.event.entities.get(other) == partner:
            apart = earliest is None or number - last > plan.pair_memory
            earliest = one.time if apart or earliest is None else min(earliest, one.time)
            last = number
    return earliest is None or len(arrived) - last > plan.pair_memory or earliest > time


@given(rows(), st.booleans(), st.integers(1, 30))
def test_three_ways_give_the_same_facts(stream: list[Row], on_arrival: bool, reopen_every: int) -> None:
    expected = by_definition(PLAN, stream)
    assert at_once(PLAN, columns_of(stream)) == expected
    assert one_by_one(PLAN, stream, on_arrival=on_arrival, reopen_every=reopen_every) == expected
