"""Labels that arrive late: in which order a stream of cases is decided and heard of, as in production."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from acefraud.core.timestamps import UNKNOWN, Micros
from acefraud.core.transactions import Cases

Places = npt.NDArray[np.int64]
Step = tuple[Literal["decide", "hear"], Places]


def label_stream(
    cases: Cases,
    *,
    decide: Sequence[int] | Places,
    hear: Sequence[int] | Places = (),
    batch: int = 64,
    early: bool = True,
) -> Iterator[Step]:
    """The steps of a stream, as places among the cases: decide a batch, hear the labels that have arrived, and so on.

    `decide` are the cases to be decided, in the order of time; `hear` are earlier ones, not decided here, whose labels
    are heard once they have arrived. A batch is decided after every label that was known when its first case came, and
    no label is heard before its case was decided. With `early` a batch ends where a label arrives; without, labels that
    arrive meanwhile wait for its end. Labels of cases without a time are heard right after their batch, which with
    `early` is one case. Labels that arrive after the last case are never heard.

    >>> from acefraud.core.transaction import Case, Transaction
    >>> rows = [Transaction(id=str(place), facts={"amount": 1.0}) for place in range(2)]
    >>> cases = Cases.of([Case(transaction=row, is_fraud=False) for row in rows])
    >>> [(what, places.tolist()) for what, places in label_stream(cases, decide=[0, 1])]
    [('decide', [0]), ('hear', [0]), ('decide', [1]), ('hear', [1])]
    """
    rows, earlier = np.asarray(decide, dtype=np.int64), np.asarray(hear, dtype=np.int64)
    times = cases.transactions.times
    timeless = times[rows] == UNKNOWN
    if timeless.all():  # nothing tells when earlier labels arrive
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


def _until_a_label(rows: Places, times: Micros, due: Micros, first: int | None) -> Places:
    """The first rows, up to the one before which a label arrives: nothing is learnt in between."""
    for place, row in enumerate(rows.tolist()):
        if place and first is not None and first <= times[row]:
            return rows[:place]
        first = int(due[row]) if first is None else min(first, int(due[row]))
    return rows


def _alike(flags: npt.NDArray[np.bool_]) -> int:
    """How many, from the first on, are the same."""
    return len(flags) if (flags == flags[0]).all() else int(np.argmax(flags != flags[0]))


def _batches(rows: Places, size: int) -> Iterator[Places]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _heard(rows: Places, batch: int) -> Iterator[Step]:
    for some in _batches(rows, batch):
        yield "hear", some
