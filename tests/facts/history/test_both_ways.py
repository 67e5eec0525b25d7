"""A table at once, one transaction at a time, and the plain definitions: all three give the same facts, to the bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.ledger import MemoryRows
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.facts.history import HistoryEvent, HistoryEvents, HistoryPlan, HistoryState, entity_state, history_columns
from acefraud.facts.history import columns as columns_module
from acefraud.facts.history import plan as plan_module
from acefraud.facts.history.plan import HOUR, UNITS, Window
from acefraud.support.great_circle import great_circle_km
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
    for index, moment in enumerate(moments):
        given = {column: draw(values) for column in ENTITIES}
        time = None if draw(st.integers(0, 15)) == 0 else moment * HOUR + draw(st.sampled_from([0, 0, 1]))
        event = HistoryEvent(
            id=f"t{draw(st.integers(0, index)) if draw(st.integers(0, 7)) == 0 else index}",
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
        time=np.array([UNKNOWN if event.time_us is None else event.time_us for event in events], dtype=np.int64),
        entities={column: codes([event.entities.get(column) for event in events]) for column in ENTITIES},
        ids=np.array([event.id for event in events]),
        amount=numbers([event.amount for event in events]),
        category=codes([event.category for event in events]),
        latitude=numbers([event.latitude for event in events]),
        longitude=numbers([event.longitude for event in events]),
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
    return [table.row(index) for index in range(len(table))]


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
        for one in [each for each in waiting if each.heard_at(plan) <= until or not on_arrival]:
            state.hear(one.event.id, bool(one.label), one.heard_at(plan))
            waiting.remove(one)

    for index, row in enumerate(stream):
        time = row.event.time_us
        hear(clock if time is None else max(clock, time))
        found.append(state.facts(row.event))
        is_new = time is not None and state._remembered(row.event.id) is None
        state.add(row.event)
        if is_new and time is not None:
            waiting += [row] if row.label is not None else []
            clock = max(clock, time)
            hear(clock)
        if index % reopen_every == reopen_every - 1:
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
            clock = max((each.time for each in counted), default=UNKNOWN)
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
    arrived = [each for each in before if each.event.entities.get(column) == row.event.entities[column]]
    newest = max((each.time for each in arrived), default=0)
    past = [each for each in arrived if newest - longest.length < each.time <= row.time]

    def within(span: Window, *, cells: bool = True) -> list[Row]:
        return latest([(each.time, each) for each in past], row.time, span, cells=cells)

    for span in plan.spans:
        yield f"{name}_count_{span.name}", float(len(within(span)))
        known = [unit for each in within(span) if (unit := units(each)) is not None]
        yield f"{name}_sum_{span.name}", sum(known) / UNITS
        if known:
            yield f"{name}_mean_{span.name}", sum(known) / (len(known) * UNITS)
            yield f"{name}_max_{span.name}", max(known) / UNITS
        labels = [each for each in arrived if each.label is not None and each.heard_at(plan) - each.time < plan.reach]
        heard = [
            label for label in labels if max(row.time - span.length, newest - longest.length) < label.heard_at(plan)
        ]
        heard = [each for each in heard if each.heard_at(plan) <= row.time]
        heard = latest([(each.heard_at(plan), each) for each in heard], row.time, span)
        frauds = sum(each.label is True for each in heard)
        yield f"{name}_known_frauds_{span.name}", float(frauds)
        if heard:
            yield f"{name}_known_fraud_share_{span.name}", frauds / len(heard)
    yield from _usual(f"{name}_amount_to_usual", row, within(longest))
    if row.event.category is not None:
        alike = [each for each in within(longest, cells=False) if each.event.category == row.event.category]
        yield from _usual(f"{name}_amount_to_usual_in_category", row, alike)
    if past:
        last = max(enumerate(past), key=lambda at: (at[1].time, at[0]))[1]
        since = (row.time - last.time) / HOUR
        yield f"{name}_hours_since_last", since
        here, there = row.event, last.event
        if newest <= row.time and here.latitude is not None and there.latitude is not None:
            assert here.longitude is not None
            assert there.longitude is not None
            way = great_circle_km((there.latitude, there.longitude), (here.latitude, here.longitude))
            yield f"{name}_km_from_last", way
            if since:
                yield f"{name}_kmh_from_last", way / since
    for other, called in plan.others(column):
        for span in plan.pair_spans:
            met = {each.event.entities[other] for each in within(span) if other in each.event.entities}
            yield f"{name}_distinct_{called}_{span.name}", float(len(met))
        if (partner := row.event.entities.get(other)) is not None:
            yield f"{name}_new_{called}", _is_new(plan, arrived, other, partner, row.time)


def latest(dated: Sequence[tuple[int, Row]], time: int, span: Window, *, cells: bool = True) -> list[Row]:
    """Those in a window: the latest few, and of the others those whose cell lies wholly in it."""
    there = sorted((when for when, _ in dated if when > time - span.length), reverse=True)
    first = time - span.length
    if len(there) > plan_module.EXACT:
        whole = (first // span.cell + 1) * span.cell - 1
        first = max(first, min(there[plan_module.EXACT], whole) if cells else there[plan_module.EXACT])
    return [row for when, row in dated if when > first]


def units(row: Row) -> int | None:
    amount = row.event.amount
    return None if amount is None or abs(amount) > 1e11 else round(amount * UNITS)


def _usual(name: str, row: Row, past: Sequence[Row]) -> Iterator[tuple[str, FactValue]]:
    own = units(row)
    known = [unit for each in past if (unit := units(each)) is not None]
    if own is not None and sum(known) > 0:
        yield name, float(own) * len(known) / sum(known)


def _is_new(plan: HistoryPlan, arrived: Sequence[Row], other: str, partner: str, time: int) -> bool:
    """Meetings count as one acquaintance while no more than so many transactions lie between them."""
    earliest: int | None = None
    last = -1
    for number, each in enumerate(arrived):
        if each.event.entities.get(other) == partner:
            apart = earliest is None or number - last > plan.pair_memory
            earliest = each.time if apart or earliest is None else min(earliest, each.time)
            last = number
    return earliest is None or len(arrived) - last > plan.pair_memory or earliest > time


@given(rows(), st.booleans(), st.integers(1, 30))
def test_three_ways_give_the_same_facts(stream: list[Row], on_arrival: bool, reopen_every: int) -> None:
    expected = by_definition(PLAN, stream)
    assert at_once(PLAN, columns_of(stream)) == expected
    assert one_by_one(PLAN, stream, on_arrival=on_arrival, reopen_every=reopen_every) == expected


@pytest.fixture(scope="module")
def few() -> Iterator[None]:
    """Entities are busy with four transactions."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (plan_module, entity_state, columns_module):
            patch.setattr(module, "EXACT", 3)
        patch.setattr(entity_state, "_SPARE", 1)
        patch.setattr(plan_module, "CELLS", 5)
        yield


@given(rows(), st.booleans(), st.integers(1, 30))
@pytest.mark.usefixtures("few")
def test_three_ways_give_the_same_facts_of_busy_entities(
    stream: list[Row], on_arrival: bool, reopen_every: int
) -> None:
    stream.sort(key=lambda row: -1 if row.event.time_us is None else row.time)
    expected = by_definition(PLAN, stream)
    assert at_once(PLAN, columns_of(stream)) == expected
    assert one_by_one(PLAN, stream, on_arrival=on_arrival, reopen_every=reopen_every) == expected


@given(rows(), st.booleans(), st.integers(1, 30))
@pytest.mark.usefixtures("few")
def test_late_rows_of_busy_entities_are_the_same_at_once_and_one_by_one(
    stream: list[Row], on_arrival: bool, reopen_every: int
) -> None:
    found = at_once(PLAN, columns_of(stream))
    assert one_by_one(PLAN, stream, on_arrival=on_arrival, reopen_every=reopen_every) == found
