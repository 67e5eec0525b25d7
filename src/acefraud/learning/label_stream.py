"""The order in which a stream of cases is decided and its late labels arrive, as in production."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from acefraud.core.arrays import BoolArray, IntArray
from acefraud.core.timestamps import UNKNOWN
from acefraud.core.transactions import Cases

Step = tuple[Literal["decide", "hear"], IntArray]


def label_stream(
    cases: Cases,
    *,
    decide: Sequence[int] | IntArray,
    hear: Sequence[int] | IntArray = (),
    batch: int = 64,
    early: bool = True,
) -> Iterator[Step]:
    """The steps of a stream, as positions of cases: decide a batch, hear the labels that have arrived, and so on.

    `decide` are the cases to decide, in order of time. `hear` are earlier ones that are only heard once their labels
    arrive. A batch is decided after every label that was known when its first case came, and no label is heard before
    its case is decided. With `early` a batch ends when a label arrives; without it, the label waits for the end of the
    batch. Labels of cases without a time are heard right after their batch, which with `early` is one case. Labels that
    arrive after the last case are never heard.

    >>> from acefraud import Case, Cases, Transaction
    >>> rows = [Transaction(id=str(place), facts={"amount": 1.0}) for place in range(2)]
    >>> cases = Cases.of([Case(transaction=row, is_fraud=False) for row in rows])
    >>> [(what, places.tolist()) for what, places in label_stream(cases, decide=[0, 1])]
    [('decide', [0]), ('hear', [0]), ('decide', [1]), ('hear', [1])]
    """
    cases = Cases.of(cases)
    rows, earlier = np.asarray(decide, dtype=np.int64), np.asarray(hear, dtype=np.int64)
    times = cases.transactions.times
    timeless = times[rows] == UNKNOWN
    if timeless.all():  # no time says when earlier labels arrive
        yield from _heard(earlier, batch)
        earlier = earlier[:0]
    due = np.where(cases.known_at == UNKNOWN, times, np.maximum(times, cases.known_at))
    waiting = [(int(due[row]), int(row)) for row in earlier]
    heapq.heapify(waiting)
    start = 0
    while start < len(rows):
        if timeless[start]:
            some = rows[start : start + 1 if early else start + _alike(timeless[start : start + batch])]
            yield "decide", some
            yield "hear", some
            start += len(some)
            continue
        now, arrived = times[rows[start]], []
        while waiting and waiting[0][0] <= now:
            arrived.append(heapq.heappop(waiting)[1])
        yield from _heard(np.array(arrived, dtype=np.int64), batch)
        some = rows[start : start + _alike(timeless[start : start + batch])]
        if early:
            some = _until_a_label(some, times, due, waiting[0][0] if waiting else None)
        yield "decide", some
        for row in some.tolist():
            heapq.heappush(waiting, (int(due[row]), row))
        start += len(some)


def _until_a_label(rows: IntArray, times: IntArray, due: IntArray, first: int | None) -> IntArray:
    """The rows before the next label arrives: nothing is learnt in between."""
    for place, row in enumerate(rows.tolist()):
        if place and first is not None and first <= times[row]:
            return rows[:place]
        first = int(due[row]) if first is None else min(first, int(due[row]))
    return rows


def _alike(flags: BoolArray) -> int:
    """The length of the first run of equal flags."""
    return len(flags) if (flags == flags[0]).all() else int(np.argmax(flags != flags[0]))


def _heard(rows: IntArray, batch: int) -> Iterator[Step]:
    for start in range(0, len(rows), batch):
        yield "hear", rows[start : start + batch]
