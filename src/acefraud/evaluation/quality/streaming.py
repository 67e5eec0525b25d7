"""As in production: decide, wait for the label, learn."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from acefraud.core.table import Numbers
from acefraud.datasets.columns import LabelledColumns
from acefraud.evaluation.quality.protocol import StreamContender
from acefraud.evaluation.quality.splits import TEST_SHARE, Places, Split, taken

BATCH = 50
"""Rows that are decided together, before any of their labels is heard."""

_HEARD_AT_ONCE = 1000

Step = tuple[Literal["learn", "predict"], Places]


@dataclass(frozen=True, slots=True)
class Stream:
    """The rows of a stream: what is learnt before the measuring begins, and what is measured."""

    warm_up: Places
    """Earlier rows whose labels are known when the measuring begins."""
    waiting: Places
    """Earlier rows whose labels are heard later, or not at all."""
    measured: Places
    capped: bool
    """Whether the measured rows are fewer than those of the test."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """The scores of the measured rows, and how long everything took."""

    scores: Numbers
    learn_seconds: float
    predict_seconds: float
    rows: int

    @property
    def rows_per_second(self) -> float:
        """Rows that went by, learnt or decided or both, in a second of the learner's own time."""
        return self.rows / max(self.learn_seconds + self.predict_seconds, 1e-9)


def stream_of(data: LabelledColumns, split: Split, cap: int) -> Stream:
    """The latest rows, ``cap`` at most. Of a capped stream at most 30 % are measured, so that there is a warm-up.

    Rows whose labels are still awaited do not count: where labels take long, they would be all that there is.
    """
    before = np.sort(np.concatenate([split.train, split.late]))
    rows = np.concatenate([before, split.test])
    count = len(split.test)
    if len(rows) > cap:
        count = min(count, round(TEST_SHARE * cap))
    earlier, measured = rows[: len(rows) - count], rows[len(rows) - count :]
    known = np.ones(len(earlier), dtype=np.bool_)
    if data.times is not None and data.known_at is not None:
        known = data.known_at[earlier] <= data.times[measured[0]]
    warm_up = earlier[known][-max(1, cap - count) :]
    return Stream(warm_up, earlier[~known], measured, capped=count < len(split.test))


def schedule(data: LabelledColumns, stream: Stream, batch: int = BATCH) -> Iterator[Step]:
    """What is heard and what is decided, in order: the same for every learner.

    A batch is decided after every label that was known when its first row came. Where nothing says when labels
    arrive, they are heard right after the batch is decided.
    """
    times, known_at = data.times, data.known_at
    if times is None or known_at is None:
        yield from _heard(stream.warm_up)
        for rows in _batches(stream.measured, batch):
            yield "predict", rows
            yield "learn", rows
        return
    waiting = [(int(known_at[row]), int(row)) for row in (*stream.warm_up, *stream.waiting)]
    heapq.heapify(waiting)
    for rows in _batches(stream.measured, batch):
        arrived = []
        while waiting and waiting[0][0] <= times[rows[0]]:
            arrived.append(heapq.heappop(waiting)[1])
        yield from _heard(np.array(arrived, dtype=np.int64))
        yield "predict", rows
        for row in rows:
            heapq.heappush(waiting, (int(known_at[row]), int(row)))


def _batches(rows: Places, size: int) -> Iterator[Places]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _heard(rows: Places) -> Iterator[Step]:
    for some in _batches(rows, _HEARD_AT_ONCE):
        yield "learn", some


def run_stream(
    learner: StreamContender, data: LabelledColumns, stream: Stream, progress: Callable[[float], None] | None = None
) -> Streamed:
    """Let a learner go through a stream."""
    scores: list[Numbers] = []
    learnt: list[Places] = [stream.warm_up]
    seconds = {"learn": 0.0, "predict": 0.0}
    total, seen = len(stream.warm_up) + 2 * len(stream.measured), 0
    for what, places in schedule(data, stream):
        rows = taken(data, places)
        began = time.perf_counter()
        if what == "learn":
            learner.learn(rows)
            learnt.append(places)
        else:
            scores.append(np.asarray(learner.predict(rows), dtype=np.float64))
        seconds[what] += time.perf_counter() - began
        seen += len(places)
        if progress is not None:
            progress(min(1.0, seen / total))
    gone_by = len(np.unique(np.concatenate([*learnt, stream.measured])))
    return Streamed(np.concatenate(scores), seconds["learn"], seconds["predict"], gone_by)
