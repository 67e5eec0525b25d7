"""Facts from history for a whole table at once.

Rows are sorted by entity, then by time and arrival. A window is then a range of neighbouring rows, so counts and sums
are differences of running totals. The few entities whose rows arrived out of order are replayed row by row through
`acefraud.facts.history.entity_state.EntityState`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.table import Codes, Columns, Flags
from acefraud.facts.history.entity_state import EntityEvent, EntityPlan, EntityState
from acefraud.facts.history.plan import EXACT, HOUR, UNITS, HistoryEvents, HistoryPlan, Window, amounts_units, place
from acefraud.support.arrays import BoolArray, FloatArray, IntArray
from acefraud.support.great_circle import great_circle_km
from acefraud.support.timestamps import UNKNOWN

_MOST = 2**62


@dataclass(frozen=True, slots=True)
class GroupedValues:
    """Sorted values within groups, searched for many at once: group and value make one number."""

    keys: IntArray
    low: int
    width: int
    ticks: IntArray | None
    """All distinct values, whose ranks are used instead if group and value do not fit into one number."""

    @classmethod
    def of(cls, group: IntArray, values: IntArray, *, groups: int) -> GroupedValues:
        """Values that are sorted by group and within groups. Some of the groups may be empty."""
        low, high = int(values.min(initial=2**62)), int(values.max(initial=-(2**62)))
        ticks = np.unique(values) if groups * (high - low + 2) > _MOST else None
        if ticks is not None:
            values, low, high = np.searchsorted(ticks, values), 0, len(ticks) - 1
        width = max(high - low, 0) + 2
        return cls(group * width + (values - low + 1), low, width, ticks)

    def after(self, group: IntArray, values: IntArray) -> IntArray:
        """For each value, the position of the first greater one in its group.

        >>> line = GroupedValues.of(np.array([0, 0, 1]), np.array([10, 20, 20]), groups=2)
        >>> line.after(np.array([0, 0, 1]), np.array([10, 20, 5])).tolist()
        [1, 2, 2]
        """
        if self.ticks is not None:
            values = np.searchsorted(self.ticks, values, side="right") - 1
        steps = np.clip(values, self.low - 1, self.low + self.width - 2) - (self.low - 1)
        return np.searchsorted(self.keys, group * self.width + steps, side="right")


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Rows sorted by group, and within a group by arrival."""

    rows: IntArray
    group: IntArray
    """Numbered from 0 in the order of the rows here."""
    time: IntArray
    groups: int
    values: GroupedValues
    """The times, to search in."""

    @classmethod
    def of(cls, rows: IntArray, codes: npt.NDArray[np.int32] | IntArray, time: IntArray) -> GroupedRows:
        """The given rows, which are in the order of arrival."""
        rows = rows[np.argsort(codes[rows], kind="stable")]
        return cls._sorted(rows, codes[rows].astype(np.int64), time[rows])

    @classmethod
    def _sorted(cls, rows: IntArray, codes: IntArray, time: IntArray) -> GroupedRows:
        group = np.cumsum(np.diff(codes, prepend=codes[:1]) != 0)
        groups = int(group[-1]) + 1 if len(group) else 0
        return cls(rows, group, time, groups, GroupedValues.of(group, time, groups=groups))

    def split_by_order(self) -> tuple[GroupedRows, GroupedRows]:
        """The groups whose rows arrived in order of time, and the others."""
        back = np.flatnonzero((np.diff(self.time) < 0) & (np.diff(self.group) == 0))
        late = np.isin(self.group, self.group[back])
        return self._only(~late), self._only(late)

    def _only(self, kept: npt.NDArray[np.bool_]) -> GroupedRows:
        if kept.all():
            return self
        return self._sorted(self.rows[kept], self.group[kept], self.time[kept])

    def starts(self, window: Window, *, cells: bool = True) -> IntArray:
        """For each row, where its window begins."""
        return window_starts(
            self.values, self.time, (self.group, self.time, np.arange(len(self.rows))), window, cells=cells
        )

    def ends(self) -> IntArray:
        """For each row, the position of the last one in its group."""
        return np.searchsorted(self.group, self.group, side="right") - 1


def window_starts(
    values: GroupedValues,
    line: IntArray,
    asked: tuple[IntArray, IntArray, IntArray],
    window: Window,
    *,
    cells: bool = True,
) -> IntArray:
    """For each group, time and end that is asked for, where the window begins on a line of sorted times.

    Those before the latest `EXACT` count if their cell lies wholly in the window, or never without ``cells``.
    """
    group, time, end = asked
    start = values.after(group, time - window.length)
    if len(busy := np.flatnonzero(end - start > EXACT)):
        last = line[end[busy] - EXACT - 1]
        cut = np.minimum(last, window.first_whole_cell(time[busy]) - 1) if cells else last
        start[busy] = np.maximum(start[busy], values.after(group[busy], cut))
    return start


def running(values: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> IntArray:
    """Totals before each position, and of all at the end.

    >>> running(np.array([5, 7])).tolist()
    [0, 5, 12]
    """
    totals = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=totals[1:])
    return totals


def highest(values: IntArray, starts: Mapping[str, IntArray]) -> Iterator[tuple[str, IntArray]]:
    """For each position, the highest value from a start up to before it, by the name of the start; `UNKNOWN` if none.

    Two windows whose length is a power of two cover any window. The powers are taken in turn, so that only the maxima
    over windows of one length are in memory.

    >>> dict(highest(np.array([5, 7, 6]), {"all": np.array([0, 0, 0])}))["all"].tolist()[1:]
    [5, 7]
    """
    here = np.arange(len(values))
    found = {name: np.full(len(values), UNKNOWN, dtype=np.int64) for name in starts}
    lengths = {name: here - start for name, start in starts.items()}
    longest = max((int(length.max(initial=0)) for length in lengths.values()), default=0)
    best, size = values, 1
    while size <= longest:
        for name, length in lengths.items():
            at = np.flatnonzero((length >= size) & (length < 2 * size))
            found[name][at] = np.maximum(best[starts[name][at]], best[at - size])
        best, size = np.maximum(best[:-size], best[size:]), 2 * size
    yield from found.items()


def neighbours(group: IntArray, codes: npt.NDArray[np.int32]) -> tuple[IntArray, IntArray]:
    """For each position, those before and after it in its group with the same code; -1 if there is none.

    >>> [side.tolist() for side in neighbours(np.array([0, 0, 0]), np.array([4, 5, 4], dtype=np.int32))]
    [[-1, -1, 0], [2, -1, -1]]
    """
    pairs = group * (int(codes.max(initial=0)) + 2) + codes + 1
    order = np.argsort(pairs, kind="stable")
    same = pairs[order[1:]] == pairs[order[:-1]]
    before = np.full(len(group), -1, dtype=np.int64)
    after = np.full(len(group), -1, dtype=np.int64)
    before[order[1:][same]] = order[:-1][same]
    after[order[:-1][same]] = order[1:][same]
    return before, after


def distinct_before(
    codes: npt.NDArray[np.int32], following: IntArray, start: IntArray, ends: IntArray
) -> npt.NDArray[np.float64]:
    """For each position, the number of distinct codes from its start up to before it.

    A code counts once, by its last occurrence: from the position after it up to the next occurrence, or to the last
    position whose window still reaches back to it.
    """
    there = np.flatnonzero(codes >= 0)
    reach = np.searchsorted(start, there, side="right") - 1
    last = np.minimum(np.where(following[there] < 0, ends[there], following[there]), np.minimum(reach, ends[there]))
    change = np.bincount(there + 1, minlength=len(codes) + 1) - np.bincount(last + 1, minlength=len(codes) + 1)
    return np.cumsum(change)[: len(codes)].astype(np.float64)


Figures = Iterator[tuple[str, FloatArray]]


def history_columns(plan: HistoryPlan, events: HistoryEvents, only: str = "") -> Columns:
    """The facts of every row, from the rows that arrived before it; `only` those of the entities in a column.

    >>> plan = HistoryPlan(entities=("card",), windows=("24h",))
    >>> times = np.array([0, 3_600_000_000, 7_200_000_000])
    >>> cards, ids, labels = np.array([0, 0, 1], dtype=np.int32), np.array(["a", "b", "c"]), np.zeros(3, dtype=np.int8)
    >>> events = HistoryEvents(times, {"card": cards}, ids, labels, known_at=times)
    >>> history_columns(plan, events).numbers["card_count_24h"].tolist()
    [0.0, 1.0, 0.0]
    """
    counted, repeated, original = _arrivals(plan, events)
    amount = None if events.amount is None else amounts_units(events.amount)
    table = _Table(plan, events, amount, _label_arrivals(plan, events, counted))
    kinds = plan.facts(amounts=events.amount is not None, only=only)
    numbers = {name: np.full(len(events), np.nan) for name, kind in kinds.items() if kind == "number"}
    flags = {name: np.full(len(events), -1, dtype=np.int8) for name, kind in kinds.items() if kind == "flag"}
    for column in (only,) if only else plan.entities:
        rows = counted[events.entities[column][counted] >= 0]
        past = GroupedRows.of(rows, events.entities[column], events.time)
        calm, late = past.split_by_order()
        for name, figures in _numbers(table, column, calm):
            numbers[name][calm.rows] = figures
        for name, new in _new_pairs(table, column, calm):
            flags[name][calm.rows] = new
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


def _label_arrivals(plan: HistoryPlan, events: HistoryEvents, counted: IntArray) -> IntArray:
    said = np.maximum(events.known_at, events.time)
    arrival = np.where(events.known_at == UNKNOWN, events.time + plan.delay, said)
    useless = (events.label < 0) | (events.time == UNKNOWN) | (arrival - events.time >= plan.reach)
    arrival[useless] = UNKNOWN
    clock = np.maximum.accumulate(events.time[counted])
    arrival[counted[events.time[counted] <= clock - plan.reach]] = UNKNOWN
    return arrival


def _arrivals(plan: HistoryPlan, events: HistoryEvents) -> tuple[IntArray, IntArray, IntArray]:
    """The rows that count, and the rows that only repeat an id, each with the row that it repeats."""
    timed = events.time != UNKNOWN
    import polars as pl  # noqa: PLC0415  # slow to import, and deciding one transaction does not need it

    shared = pl.Series(events.ids).is_duplicated().to_numpy() & timed
    repeats = dict(_repeats(events, shared, plan.reach))
    counts = timed.copy()
    repeated = np.fromiter(repeats, dtype=np.int64, count=len(repeats))
    counts[repeated] = False
    return np.flatnonzero(counts), repeated, np.fromiter(repeats.values(), dtype=np.int64, count=len(repeats))


def _repeats(events: HistoryEvents, shared: BoolArray, reach: int) -> Iterator[tuple[int, int]]:
    """Each row whose id is still known, with the row it came with first. A forgotten id counts as new."""
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
    starts = {span.name: past.starts(span) for span in plan.spans}
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
    for span, most in highest(amounts, starts):
        yield f"{entity}_max_{span}", np.where(most == UNKNOWN, np.nan, most / UNITS)


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
    start = past.starts(table.plan.longest, cells=False)[alike.rows]
    places = GroupedValues.of(alike.group, alike.rows, groups=alike.groups)
    found[alike.rows] = _to_usual(amounts, places.after(alike.group, start - 1))
    return found


def _known_frauds(table: _Table, entity: str, past: GroupedRows) -> Figures:
    """Labels are counted by the time at which they arrive.

    Of the labels that arrive at the very time of a row, those of the row itself and of later rows of the same time do
    not count.
    """
    fraud = table.events.label[past.rows] == 1
    arrival = table.arrival[past.rows]
    heard = np.flatnonzero(arrival != UNKNOWN)
    heard = heard[np.lexsort((arrival[heard], past.group[heard]))]
    known = GroupedValues.of(past.group[heard], arrival[heard], groups=past.groups)
    frauds = running(fraud[heard])
    at_once = arrival == past.time
    ties = past.values.after(past.group, past.time)
    early = running(at_once)
    end = known.after(past.group, past.time) - (early[ties] - early[:-1])  # those of the time itself come last
    for span in table.plan.spans:
        start = window_starts(known, arrival[heard], (past.group, past.time, end), span)
        found = (frauds[end] - frauds[start]).astype(np.float64)
        yield f"{entity}_known_frauds_{span.name}", found
        yield f"{entity}_known_fraud_share_{span.name}", _share(found, end - start)


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
            found[at] = great_circle_km(last, here)
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
        for name, value in state.facts(event, of).items():
            (found.flags if isinstance(value, bool) else found.numbers)[name][row] = value
        number = state.add(event, of)
        arrival = int(table.arrival[row])
        if arrival != UNKNOWN:
            state.hear(number, bool(table.events.label[row]), arrival, None, of)


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
