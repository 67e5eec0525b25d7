"""Finds facts that know what nobody could have known yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from acefraud.core.table import Columns, FactTable
from acefraud.facts.history.plan import HOUR, HistoryEvents
from acefraud.support.arrays import IntArray
from acefraud.support.timestamps import UNKNOWN


def leaks(
    compute: Callable[[HistoryEvents], Columns], events: HistoryEvents, *, label_delay: int = 0, probes: int = 25
) -> list[str]:
    """The facts of a computation that depend on the future, in alphabetical order.

    For some rows from all over the table, the row's own label and all labels that had not arrived are flipped, and all
    rows that arrive later are changed. The facts of the row must stay the same. ``label_delay`` is how long labels take
    in microseconds, unless ``known_at`` says so.
    """
    count = len(events)
    before = FactTable.of_columns(compute(events), count)
    found: set[str] = set()
    for row in sorted({int(at) for at in np.linspace(0, count - 1, min(probes, count))}):
        after = FactTable.of_columns(compute(_changed(events, row, label_delay)), count)
        was, now = before.row(row), after.row(row)
        found |= {name for name in was.keys() | now.keys() if was.get(name) != now.get(name)}
    return sorted(found)


def _changed(events: HistoryEvents, row: int, label_delay: int) -> HistoryEvents:
    """Events changed in all that was not known yet at a row."""
    later = np.arange(len(events)) > row
    arrival = _arrivals(events, label_delay)
    waiting = arrival > events.time[row]
    hidden = later | waiting
    hidden[row] = True
    time = np.where(later & (events.time != UNKNOWN), events.time + HOUR, events.time)
    return replace(
        events,
        time=time,
        entities={column: np.where(later, np.roll(codes, 1), codes) for column, codes in events.entities.items()},
        amount=None if events.amount is None else np.where(later, 3 * events.amount + 1, events.amount),
        category=None if events.category is None else np.where(later, np.roll(events.category, 1), events.category),
        latitude=None if events.latitude is None else np.where(later, -events.latitude, events.latitude),
        label=np.where(hidden, events.label != 1, events.label).astype(np.int8),
        known_at=np.where(waiting, arrival + HOUR, events.known_at),
    )


def _arrivals(events: HistoryEvents, label_delay: int) -> IntArray:
    """When labels arrive, also for rows that have none."""
    usual = np.where(events.time == UNKNOWN, UNKNOWN, events.time + label_delay)
    return np.where(events.known_at == UNKNOWN, usual, np.maximum(events.known_at, events.time))
