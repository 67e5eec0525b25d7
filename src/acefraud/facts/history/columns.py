"""Facts from history for a whole table at once.

Rows are sorted by entity, then by time and arrival. A window is then a range of neighbouring rows, so counts and sums
are differences of running totals. The few entities whose rows arrived out of order are replayed row by row through
`acefraud.facts.history.entity.EntityState`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from acefraud.core.table import Codes, Columns, Flags
from acefraud.facts.history.entity import EntityEvent, EntityPlan, EntityState
from acefraud.facts.history.events import UNITS, HistoryEvents, amounts_units, distance_km, place
from acefraud.facts.history.plan import HOUR, HistoryPlan
from acefraud.facts.history.window_index import (
    GroupedRows,
    GroupedValues,
    distinct_before,
    highest,
    neighbours,
    running,
)
from acefraud.support.arrays import BoolArray, FloatArray, IntArray
from acefraud.support.timestamps import UNKNOWN

Figures = Iterator[tuple[str, FloatArray]]


def history_columns(plan: HistoryPlan, events: HistoryEvents) -> Columns:
    """The facts of every row, from the rows that arrived before it.

    >>> plan = HistoryPlan(entities=("card",), windows=("24h",))
    >>> times = np.array([0, 3_600_000_000, 7_200_000_000])
    >>> cards = np.array([0, 0, 1], dtype=np.int32)
    >>> history_columns(plan, HistoryEvents(times, {"card": cards})).numbers["card_count_24h"].tolist()
    [0.0, 1.0, 0.0]
    """
    counted, repeated, original = _arrivals(plan, events)
    table = _Table.of(plan, events, counted)
    kinds = plan.facts(amounts=events.amount is not None)
    numbers = {name: np.full(len(events), np.nan) for name, kind in kinds.items() if kind == "number"}
    flags = {name: np.full(len(events), -1, dtype=np.int8) for name, kind in kinds.items() if kind == "flag"}
    for column in plan.entities:
        rows = counted[events.entities[column][counted] >= 0]
        past = GroupedRows.of(rows, events.entities[column], events.time)
        calm, late = past.split_by_order()
        for name, figures in _numbers(table, column, calm):
            numbers[name][calm.rows] = figures
        for name, found in _new_pairs(table, column, calm):
            flags[name][calm.rows] = found
        _replay(table, column, late, Columns(numbers, flags))
    for facts in (*numbers.values(), *flags.values()):
        facts[repeated] = facts[original]
    return Columns(numbers, flags)


@dataclass(frozen=True, slots=True)
class _Table:
    """The events with amounts in whole units and the time at which each label arrives."""

    plan: HistoryPlan
    events: HistoryEvents
    amount: IntArray | None
    arrival: IntArray
    """`UNKNOWN` if no label arrives in time to be of use, or the transaction itself came too late for that."""

    @classmethod
    def of(cls, plan: HistoryPlan, events: HistoryEvents, counted: IntArray) -> _Table:
        amount = None if events.amount is None else amounts_units(events.amount)
        return cls(plan, events, amount, _label_arrivals(plan, events, counted))


def _label_arrivals(plan: HistoryPlan, events: HistoryEvents, counted: IntArray) -> IntArray:
    if events.label is None:
        return np.full(len(events), UNKNOWN, dtype=np.int64)
    arrival = events.time + plan.delay
    if events.known_at is not None:
        said = events.known_at != UNKNOWN
        arrival[said] = np.maximum(events.known_at, events.time)[said]
    useless = (events.label < 0) | (events.time == UNKNOWN) | (arrival - events.time >= plan.reach)
    arrival[useless] = UNKNOWN
    clock = np.maximum.accumulate(events.time[counted])
    arrival[counted[events.time[counted] <= clock - plan.reach]] = UNKNOWN
    return arrival


def _arrivals(plan: HistoryPlan, events: HistoryEvents) -> tuple[IntArray, IntArray, IntArray]:
    """The rows that count, and the rows that only repeat an id, each with the row that it repeats."""
    timed = events.time != UNKNOWN
    nothing = np.empty(0, dtype=np.int64)
    if events.ids is None:
        return np.flatnonzero(timed), nothing, nothing
    import polars as pl  # noqa: PLC0415  # slow to import, and deciding one transaction does not need it

    shared = pl.Series(events.ids).is_duplicated().to_numpy() & timed
    repeats = dict(_repeats(events, shared, plan.reach))
    counts = timed.copy()
    repeated = np.fromiter(repeats, dtype=np.int64, count=len(repeats))
    counts[repeated] = False
    return np.flatnonzero(counts), repeated, np.fromiter(repeats.values(), dtype=np.int64, count=len(repeats))


def _repeats(events: HistoryEvents, shared: BoolArray, reach: int) -> Iterator[tuple[int, int]]:
    """Each row whose id is still known, with the row it came with first. A forgotten id counts as new."""
    assert events.ids is not None
    newest = np.maximum.accumulate(np.where(shared, UNKNOWN, events.time))
    clock = UNKNOWN
    first: dict[object, int] = {}
    for row in np.flatnonzero(shared).tolist():
        known = first.get(events.ids[row])
        now = max(clock, int(newest[row]))
        if known is not None and int(events.time[known]) > now - reach:
            yield row, known
        else:
            first[events.ids[row]] = row
            clock = max(clock, int(events.time[row]))


def _numbers(table: _Table, column: str, past: GroupedRows) -> Figures:
    """All numbers of the entities in a column, in the order of ``past``."""
    plan = table.plan
    entity = plan.name_of(column)
    starts = {span.name: past.values.after(past.group, past.time - span.length) for span in plan.spans}
    here = np.arange(len(past.rows))
    for span in plan.spans:
        yield f"{entity}_count_{span.name}", (here - starts[span.name]).astype(np.float64)
    if table.amount is not None:
        amounts = table.amount[past.rows]
        yield from _amounts(entity, amounts, starts)
        yield f"{entity}_amount_to_usual", _to_usual(amounts, starts[plan.longest.name])
        if table.events.category is not None and plan.category:
            yield f"{entity}_amount_to_usual_in_category", _usual_in_category(table, past)
    yield from _known_frauds(table, entity, past)
    yield from _since_last(table, entity, past)
    for other, name in plan.others(column):
        codes = table.events.entities[other][past.rows]
        _, following = neighbours(past.group, codes)
        for span in plan.pair_spans:
            found = distinct_before(codes, following, starts[span.name], past.ends())
            yield f"{entity}_distinct_{name}_{span.name}", found


def _sums(amounts: IntArray, starts: dict[str, IntArray]) -> Iterator[tuple[str, IntArray, IntArray]]:
    """The sum and the number of known amounts from each start up to before each position."""
    known = amounts != UNKNOWN
    totals, counts = running(np.where(known, amounts, 0)), running(known)
    for span, start in starts.items():
        yield span, totals[:-1] - totals[start], counts[:-1] - counts[start]


def _amounts(entity: str, amounts: IntArray, starts: dict[str, IntArray]) -> Figures:
    for span, units, count in _sums(amounts, starts):
        total = units.astype(np.float64)
        yield f"{entity}_sum_{span}", total / UNITS
        yield f"{entity}_mean_{span}", _share(total, count * UNITS)
    for span, found in highest(amounts, starts):
        yield f"{entity}_max_{span}", np.where(found == UNKNOWN, np.nan, found / UNITS)


def _to_usual(amounts: IntArray, start: IntArray) -> FloatArray:
    """Each amount against the mean of those before it."""
    ((_, total, count),) = _sums(amounts, {"": start})
    found = np.full(len(amounts), np.nan)
    comparable = (amounts != UNKNOWN) & (total > 0)
    np.divide(amounts.astype(np.float64) * count, total, out=found, where=comparable)
    return found


def _usual_in_category(table: _Table, past: GroupedRows) -> FloatArray:
    """Against the rows of the same entity in the same category; in the order of ``past``."""
    assert table.amount is not None
    assert table.events.category is not None
    codes = table.events.category[past.rows].astype(np.int64)
    there = np.flatnonzero(codes >= 0)
    kinds = int(codes.max(initial=0)) + 1
    alike = GroupedRows.of(there, past.group * kinds + codes, past.time)
    amounts = table.amount[past.rows][alike.rows]
    found = np.full(len(past.rows), np.nan)
    start = alike.values.after(alike.group, alike.time - table.plan.longest.length)
    found[alike.rows] = _to_usual(amounts, start)
    return found


def _known_frauds(table: _Table, entity: str, past: GroupedRows) -> Figures:
    """Labels are counted by the time at which they arrive.

    Of the labels that arrive at the very time of a row, those of the row itself and of later rows of the same time do
    not count.
    """
    label = table.events.label
    fraud = np.zeros(len(past.rows), np.bool_) if label is None else label[past.rows] == 1
    arrival = table.arrival[past.rows]
    heard = np.flatnonzero(arrival != UNKNOWN)
    heard = heard[np.lexsort((arrival[heard], past.group[heard]))]
    known = GroupedValues.of(past.group[heard], arrival[heard], groups=past.groups)
    labels, frauds = running(np.ones(len(heard), np.bool_)), running(fraud[heard])
    at_once = arrival == past.time
    ties = past.values.after(past.group, past.time)
    end = known.after(past.group, past.time)
    early_labels, early_frauds = _between(running(at_once), ties), _between(running(at_once & fraud), ties)
    for span in table.plan.spans:
        start = known.after(past.group, past.time - span.length)
        found = (frauds[end] - frauds[start] - early_frauds).astype(np.float64)
        yield f"{entity}_known_frauds_{span.name}", found
        yield f"{entity}_known_fraud_share_{span.name}", _share(found, labels[end] - labels[start] - early_labels)


def _between(totals: IntArray, ends: IntArray) -> IntArray:
    """What is added from each position up to an end."""
    return totals[ends] - totals[:-1]


def _since_last(table: _Table, entity: str, past: GroupedRows) -> Figures:
    hours = np.full(len(past.rows), np.nan)
    follows = np.flatnonzero(past.group[1:] == past.group[:-1]) + 1
    hours[follows] = (past.time[follows] - past.time[follows - 1]) / float(HOUR)
    yield f"{entity}_hours_since_last", hours
    latitude, longitude = table.events.latitude, table.events.longitude
    if table.plan.has_places and latitude is not None and longitude is not None:
        way = _ways(latitude[past.rows], longitude[past.rows], follows)
        yield f"{entity}_km_from_last", way
        yield f"{entity}_kmh_from_last", np.divide(way, hours, out=np.full(len(way), np.nan), where=hours > 0)


def _ways(latitude: FloatArray, longitude: FloatArray, follows: IntArray) -> FloatArray:
    places = [place(*where) for where in zip(latitude.tolist(), longitude.tolist(), strict=True)]
    found = np.full(len(places), np.nan)
    for at in follows.tolist():
        here, last = places[at], places[at - 1]
        if here is not None and last is not None:
            found[at] = distance_km(last, here)
    return found


def _new_pairs(table: _Table, column: str, past: GroupedRows) -> Iterator[tuple[str, Flags]]:
    here = np.arange(len(past.rows))
    for other, name in table.plan.others(column):
        codes = table.events.entities[other][past.rows]
        before, _ = neighbours(past.group, codes)
        new = (before < 0) | (here - before > table.plan.pair_memory)
        yield f"{table.plan.name_of(column)}_new_{name}", np.where(codes < 0, -1, new).astype(np.int8)


def _share(part: FloatArray, whole: IntArray) -> FloatArray:
    found = np.full(len(part), np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


def _replay(table: _Table, column: str, late: GroupedRows, found: Columns) -> None:
    """Replay entities with rows out of order through their state, one row at a time."""
    of = EntityPlan.of(table.plan, column, amounts=table.amount is not None)
    others = [table.events.entities[other] for other, _ in table.plan.others(column)]
    group, state = -1, EntityState()
    for row, row_group in zip(late.rows.tolist(), late.group.tolist(), strict=True):
        if row_group != group:
            group, state = row_group, EntityState()
        event = _event(table, others, row)
        for name, value in state.facts(event, of):
            (found.flags if isinstance(value, bool) else found.numbers)[name][row] = value
        number = state.add(event, of)
        arrival = int(table.arrival[row])
        if arrival != UNKNOWN and table.events.label is not None:
            state.hear(number, bool(table.events.label[row]), arrival, of)


def _event(table: _Table, others: Sequence[Codes], row: int) -> EntityEvent:
    plan, events = table.plan, table.events
    amount = UNKNOWN if table.amount is None else int(table.amount[row])
    where = None
    if plan.has_places and events.latitude is not None and events.longitude is not None:
        where = place(float(events.latitude[row]), float(events.longitude[row]))
    return EntityEvent(
        time=int(events.time[row]),
        amount=None if amount == UNKNOWN else amount,
        category=_word(events.category, row) if plan.category else None,
        others=tuple(_word(codes, row) for codes in others),
        place=where,
    )


def _word(codes: Codes | None, row: int) -> str | None:
    return None if codes is None or codes[row] < 0 else str(codes[row])
