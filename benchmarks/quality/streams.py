"""Streams as in production: decide, wait for the label, learn."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from acefraud import Cases, label_stream
from benchmarks.arrays import Numbers, Places
from benchmarks.quality.contender import Streaming
from benchmarks.quality.splits import TEST_SHARE, Split, labels_known, taken

BATCH = 50
"""Rows that are decided together before any of their labels arrives, and labels that arrive together."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The rows of a stream: the warm-up, and the rows that are measured."""

    warm_up: Places
    """Earlier rows whose labels are known before the first measured row."""
    waiting: Places
    """Earlier rows whose labels arrive later, or never."""
    measured: Places
    capped: bool
    """Whether fewer rows are measured than the test has."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """The scores of the measured rows, and how long everything took."""

    scores: Numbers
    learn_seconds: float
    predict_seconds: float
    rows: int

    @property
    def rows_per_second(self) -> float:
        """Rows learnt, decided or both per second of the learner's own time."""
        return self.rows / max(self.learn_seconds + self.predict_seconds, 1e-9)


def stream_of(cases: Cases, split: Split, cap: int) -> Stream:
    """The latest rows, ``cap`` at most. Of a capped stream at most 30 % are measured, so that there is a warm-up.

    Rows whose labels have not arrived do not count: with long delays there would be no others.
    """
    before = np.sort(np.concatenate([split.train, split.late]))
    rows = np.concatenate([before, split.test])
    count = len(split.test)
    if len(rows) > cap:
        count = min(count, round(TEST_SHARE * cap))
    earlier, measured = rows[: len(rows) - count], rows[len(rows) - count :]
    known = labels_known(cases, earlier, measured[0])
    warm_up = earlier[known][-max(1, cap - count) :]
    return Stream(warm_up, earlier[~known], measured, capped=count < len(split.test))


def run_stream(
    learner: Streaming, cases: Cases, stream: Stream, progress: Callable[[float], None] | None = None
) -> Streamed:
    """Run a learner through a stream, with the same batches in the same order for everyone.

    The dataset is hidden from the garbage collector meanwhile; otherwise everyone would pay for its size.
    """
    gc.collect()
    gc.freeze()
    try:
        return _run(learner, cases, stream, progress)
    finally:
        gc.unfreeze()


def _run(learner: Streaming, cases: Cases, stream: Stream, progress: Callable[[float], None] | None) -> Streamed:
    scores: list[Numbers] = []
    heard: list[Places] = [stream.warm_up]
    seconds = {"hear": 0.0, "decide": 0.0}
    total, seen = len(stream.warm_up) + 2 * len(stream.measured), 0
    earlier = np.concatenate([stream.warm_up, stream.waiting])
    for what, places in label_stream(cases, decide=stream.measured, hear=earlier, batch=BATCH, early=False):
        rows = taken(cases, places)
        began = time.perf_counter()
        if what == "hear":
            learner.learn(rows)
            heard.append(places)
        else:
            scores.append(np.asarray(learner.predict(rows), dtype=np.float64))
        seconds[what] += time.perf_counter() - began
        seen += len(places)
        if progress is not None:
            progress(min(1.0, seen / total))
    gone_by = len(np.unique(np.concatenate([*heard, stream.measured])))
    return Streamed(np.concatenate(scores), seconds["hear"], seconds["decide"], gone_by)
