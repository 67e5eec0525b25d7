"""A fact that knows the future is found, whichever way it came by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from tests.facts.history.leakage import leaks

from acefraud.core.table import Columns
from acefraud.facts.history import HistoryEvents, HistoryPlan, history_columns
from acefraud.facts.history.plan import DAY
from acefraud.support.timestamps import UNKNOWN

Stream = Callable[[int], HistoryEvents]
Mask = npt.NDArray[np.bool_]

PLAN = HistoryPlan(entities=("card_id", "shop_id"), label_delay="7d", category="kind", latitude="lat", longitude="lon")


def test_our_own_facts_know_nothing_of_the_future(stream: Stream) -> None:
    events = stream(300)
    assert leaks(lambda changed: history_columns(PLAN, changed), events, label_delay=7 * DAY) == []
    by_delay = replace(events, known_at=np.full(len(events), UNKNOWN))
    assert leaks(lambda changed: history_columns(PLAN, changed), by_delay, label_delay=7 * DAY) == []


def share_of_frauds(events: HistoryEvents, counts: Callable[[HistoryEvents, int], Mask]) -> Columns:
    """The share of fraud in the same shop among the rows that count for each row."""
    assert events.label is not None
    shop = events.entities["shop_id"]
    found = np.full(len(events), np.nan)
    for row in range(len(events)):
        rows = counts(events, row) & (shop == shop[row]) & (events.label >= 0)
        found[row] = np.mean(events.label[rows]) if rows.any() else np.nan
    return Columns({"share": found, "hour": (events.time // 3_600_000_000 % 24).astype(np.float64)})


def with_the_row_itself(events: HistoryEvents, row: int) -> Mask:
    return np.asarray(arrived(events, row) | (np.arange(len(events)) == row))


def before_labels_arrive(events: HistoryEvents, row: int) -> Mask:
    return np.asarray(np.arange(len(events)) < row)


def with_the_rows_after(events: HistoryEvents, row: int) -> Mask:
    return np.asarray(np.arange(len(events)) != row)


def arrived(events: HistoryEvents, row: int) -> Mask:
    assert events.known_at is not None
    on_time = (events.known_at != UNKNOWN) & (np.maximum(events.known_at, events.time) <= events.time[row])
    return np.asarray(on_time & (np.arange(len(events)) < row))


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        (with_the_row_itself, ["share"]),
        (before_labels_arrive, ["share"]),
        (with_the_rows_after, ["share"]),
        (arrived, []),
    ],
)
def test_a_planted_leak_is_found(
    stream: Stream, counts: Callable[[HistoryEvents, int], Mask], found: list[str]
) -> None:
    assert leaks(lambda events: share_of_frauds(events, counts), stream(200), label_delay=7 * DAY) == found


def test_figures_over_the_whole_table_are_found(stream: Stream) -> None:
    def against_all(events: HistoryEvents) -> Columns:
        assert events.amount is not None
        return Columns({"to_mean": events.amount / np.nanmean(events.amount), "amount": events.amount})

    assert leaks(against_all, stream(100)) == ["to_mean"]
