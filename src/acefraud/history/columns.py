"""Facts with memory for a whole table at once.

Rows are sorted by entity, and within one they stand in the order of time and arrival. A window is then a stretch of
neighbours: counts and sums are differences of running totals. Entities with rows that arrived out of the order of
time are few; theirs are taken through `acefraud.history.entity.EntityState` one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from acefraud.core.table import Columns, Flags, Mask, Numbers
from acefraud.core.timestamps import UNKNOWN, Micros
from acefraud.history.entity import EntityState, Outlook, Sight
from acefraud.history.events import HistoryEvents
from acefraud.history.lines import Line, Past, distinct_before, highest, neighbours, running
from acefraud.history.measures import UNITS, amounts_units, distance_km, place
from acefraud.history.plan import HOUR, HistoryPlan

Indices = npt.NDArray[np.int64]
Figures = Iterator[tuple[str, Numbers]]


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
        past = Past.of(rows, events.entities[column], events.time)
        calm, late = past.parted()
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
    amount: Indices | None
    arrival: Micros
    """`UNKNOWN` where no label arrives in time to be of use, or the transaction itself came too late for that."""

    @classmethod
    def of(cls, plan: HistoryPlan, events: HistoryEvents, counted: Indices) -> _Table:
        amount = None if events.amount is None else amounts_units(events.amount)
        return cls(plan, events, amount, _label_arrivals(plan, events, counted))


def _label_arrivals(plan: HistoryPlan, events: HistoryEvents, counted: Indices) -> Micros:
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


def _arrivals(plan: HistoryPlan, events: HistoryEvents) -> tuple[Indices, Indices, Indices]:
    """The rows that count; and those that only repeat an id, each with the row that it repeats."""
    timed = events.time != UNKNOWN
    nothing = np.empty(0, dtype=np.int64)
    if events.ids is None:
        return np.flatnonzero(timed), nothing, nothing
    shared = pl.Series(events.ids).is_duplicated().to_numpy() & timed
    repeats = dict(_repeats(events, shared, plan.reach))
    counts = timed.copy()
    repeated = np.fromiter(repeats, dtype=np.int64, count=len(repeats))
    counts[repeated] = False
    return np.flatnonzero(counts), repeated, np.fromiter(repeats.values(), dtype=np.int64, count=len(repeats))


def _repeats(events: HistoryEvents, shared: Mask, reach: int) -> Iterator[tuple[int, int]]:
    """Each row whose id is still known, with the row that brought it. An id that was forgotten counts as new."""
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


def _numbers(table: _Table, column: str, past: Past) -> Figures:
    """All numbers of the entities in a column, in the order of ``past``."""
    plan = table.plan
    entity = plan.name_of(column)
    starts = {span.name: past.line.after(past.group, past.time - span.length) for span in plan.spans}
    here = np.arange(len(past.rows))
    for span in plan.spans:
        yield f"{entity}_count_{span.name}", (here - starts[span.name]).astype(np.float64)
    if table.amount is not None:
        amounts = table.amount[past.rows]
        yield from _amounts(entity, amounts, starts)
        usual = _to_usual(amounts, amounts, starts[plan.longest.name])
        yield f"{entity}_amount_to_usual", usual
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


def _amounts(entity: str, amounts: Indices, starts: dict[str, Indices]) -> Figures:
    known = amounts != UNKNOWN
    totals, counts = running(np.where(known, amounts, 0)), running(known)
    for span, start in starts.items():
        total = (totals[:-1] - totals[start]).astype(np.float64)
        count = counts[:-1] - counts[start]
        yield f"{entity}_sum_{span}", total / UNITS
        yield f"{entity}_mean_{span}", _share(total, count * UNITS)
    for span, found in highest(amounts, starts):
        yield f"{entity}_max_{span}", np.where(found == UNKNOWN, np.nan, found / UNITS)


def _to_usual(own: Indices, amounts: Indices, start: Indices) -> Numbers:
    known = amounts != UNKNOWN
    totals, counts = running(np.where(known, amounts, 0)), running(known)
    total, count = totals[:-1] - totals[start], counts[:-1] - counts[start]
    found = np.full(len(own), np.nan)
    comparable = (own != UNKNOWN) & (total > 0)
    np.divide(own.astype(np.float64) * count, total, out=found, where=comparable)
    return found


def _usual_in_category(table: _Table, past: Past) -> Numbers:
    """Against the rows of the same entity in the same category; in the order of ``past``."""
    assert table.amount is not None
    assert table.events.category is not None
    codes = table.events.category[past.rows].astype(np.int64)
    there = np.flatnonzero(codes >= 0)
    kinds = int(codes.max(initial=0)) + 1
    alike = Past.of(there, past.group * kinds + codes, past.time)
    amounts = table.amount[past.rows][alike.rows]
    found = np.full(len(past.rows), np.nan)
    start = alike.line.after(alike.group, alike.time - table.plan.longest.length)
    found[alike.rows] = _to_usual(amounts, amounts, start)
    return found


def _known_frauds(table: _Table, entity: str, past: Past) -> Figures:
    """Labels stand on a line of their own, by the time at which they arrive.

    Of the labels that arrive at the very time of a row, those of the row itself and of rows that came after it at
    the same time do not count.
    """
    label = table.events.label
    fraud = np.zeros(len(past.rows), np.bool_) if label is None else label[past.rows] == 1
    arrival = table.arrival[past.rows]
    heard = np.flatnonzero(arrival != UNKNOWN)
    heard = heard[np.lexsort((arrival[heard], past.group[heard]))]
    line = Line.of(past.group[heard], arrival[heard], groups=past.groups)
    labels, frauds = running(np.ones(len(heard), np.bool_)), running(fraud[heard])
    at_once = arrival == past.time
    ties = past.line.after(past.group, past.time)
    end = line.after(past.group, past.time)
    too_early = {"labels": _between(running(at_once), ties), "frauds": _between(running(at_once & fraud), ties)}
    for span in table.plan.spans:
        start = line.after(past.group, past.time - span.length)
        found = (frauds[end] - frauds[start] - too_early["frauds"]).astype(np.float64)
        yield f"{entity}_known_frauds_{span.name}", found
        yield (
            f"{entity}_known_fraud_share_{span.name}",
            _share(found, labels[end] - labels[start] - too_early["labels"]),
        )


def _between(totals: Indices, ends: Indices) -> Indices:
    """What is added from each place on up to an end."""
    return totals[ends] - totals[:-1]


def _since_last(table: _Table, entity: str, past: Past) -> Figures:
    hours = np.full(len(past.rows), np.nan)
    follows = np.flatnonzero(past.group[1:] == past.group[:-1]) + 1
    hours[follows] = (past.time[follows] - past.time[follows - 1]) / float(HOUR)
    yield f"{entity}_hours_since_last", hours
    latitude, longitude = table.events.latitude, table.events.longitude
    if table.plan.has_places and latitude is not None and longitude is not None:
        way = _ways(latitude[past.rows], longitude[past.rows], follows)
        yield f"{entity}_km_from_last", way
        yield f"{entity}_kmh_from_last", np.divide(way, hours, out=np.full(len(way), np.nan), where=hours > 0)


def _ways(latitude: Numbers, longitude: Numbers, follows: Indices) -> Numbers:
    places = [place(*where) for where in zip(latitude.tolist(), longitude.tolist(), strict=True)]
    found = np.full(len(places), np.nan)
    for at in follows.tolist():
        here, last = places[at], places[at - 1]
        if here is not None and last is not None:
            found[at] = distance_km(last, here)
    return found


def _new_pairs(table: _Table, column: str, past: Past) -> Iterator[tuple[str, Flags]]:
    here = np.arange(len(past.rows))
    for other, name in table.plan.others(column):
        codes = table.events.entities[other][past.rows]
        before, _ = neighbours(past.group, codes)
        new = (before < 0) | (here - before > table.plan.pair_memory)
        yield f"{table.plan.name_of(column)}_new_{name}", np.where(codes < 0, -1, new).astype(np.int8)


def _share(part: Numbers, whole: npt.NDArray[np.int64]) -> Numbers:
    found = np.full(len(part), np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


def _replay(table: _Table, column: str, late: Past, found: Columns) -> None:
    """Take entities with rows out of order through their state, one row at a time."""
    outlook = Outlook.of(table.plan, column, amounts=table.amount is not None)
    see = _sights(table, column)
    group = -1
    state = EntityState()
    for row, of in zip(late.rows.tolist(), late.group.tolist(), strict=True):
        if of != group:
            group, state = of, EntityState()
        sight = see(row)
        for name, value in state.facts(sight, outlook):
            (found.flags if isinstance(value, bool) else found.numbers)[name][row] = value
        number = state.add(sight, outlook)
        arrival = int(table.arrival[row])
        if arrival != UNKNOWN and table.events.label is not None:
            state.hear(number, bool(table.events.label[row]), arrival, outlook)


def _sights(table: _Table, column: str) -> Callable[[int], Sight]:
    """How an entity in this column sees a row."""
    plan, events, amounts = table.plan, table.events, table.amount
    others = [events.entities[other] for other, _ in plan.others(column)]
    latitude, longitude = events.latitude, events.longitude

    def see(row: int) -> Sight:
        amount = UNKNOWN if amounts is None else int(amounts[row])
        where = None
        if plan.has_places and latitude is not None and longitude is not None:
            where = place(float(latitude[row]), float(longitude[row]))
        return Sight(
            time=int(events.time[row]),
            amount=None if amount == UNKNOWN else amount,
            category=_word(events.category, row) if plan.category else None,
            others=tuple(_word(codes, row) for codes in others),
            place=where,
        )

    return see


def _word(codes: npt.NDArray[np.int32] | None, row: int) -> str | None:
    return None if codes is None or codes[row] < 0 else str(codes[row])
