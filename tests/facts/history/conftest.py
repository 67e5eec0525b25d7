"""A stream of payments with habits, thieves and labels that take their time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from acefraud.facts.history import HistoryEvents
from acefraud.facts.history.plan import DAY, HOUR
from acefraud.support.timestamps import UNKNOWN

Stream = Callable[[int], HistoryEvents]


def stream_of(count: int) -> HistoryEvents:
    """So many transactions of a hundred days; one in a hundred arrives late, one in two hundred twice."""
    dice = np.random.default_rng(count)
    time = np.sort(dice.integers(0, 100 * DAY, count))
    late = dice.random(count) < 0.01
    time[late] -= dice.integers(0, 40 * DAY, int(late.sum()))
    shops = dice.integers(0, 5 + count // 100, count).astype(np.int32)
    shops[dice.random(count) < 0.02] = -1
    ids = np.array([f"t{index}" for index in range(count)])
    again = np.flatnonzero(dice.random(count) < 0.005)
    ids[again] = ids[(again * dice.random(len(again))).astype(np.int64)]
    amount = np.round(dice.lognormal(3, 1, count), 2)
    amount[dice.random(count) < 0.02] = np.nan
    known_at = time + dice.integers(0, 30 * DAY, count)
    known_at[dice.random(count) < 0.3] = UNKNOWN
    label = (dice.random(count) < 0.1).astype(np.int8)
    label[dice.random(count) < 0.1] = -1
    return HistoryEvents(
        time=time,
        entities={"card_id": dice.integers(0, 5 + count // 50, count).astype(np.int32), "shop_id": shops},
        ids=ids,
        amount=amount,
        category=dice.integers(-1, 5, count).astype(np.int32),
        latitude=dice.uniform(-90, 90, count),
        longitude=dice.uniform(-180, 180, count),
        label=label,
        known_at=known_at + HOUR * (known_at != UNKNOWN),
    )


@pytest.fixture(scope="session")
def stream() -> Stream:
    """Makes a stream of so many transactions, the same each time."""
    return stream_of
