"""Whether time grows in proportion to the input: a check that also holds on a slow or busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

ATTEMPTS = 3
Input = TypeVar("Input")


def assert_linear(work: Callable[[Input], object], part: Input, whole: Input) -> None:
    """Working on `whole` takes time in proportion to `part`, a fifth of it. Quadratic time would be 25 times as much.

    Only this thread's own processor time counts. Where other processes fill the caches or garbage is collected,
    even that varies, so one attempt of three that shows linear growth is enough: quadratic work shows it in none.
    """
    work(part)  # compiles patterns and fills caches
    measured = []
    for _ in range(ATTEMPTS):
        measured.append((_seconds(work, part), _seconds(work, whole)))
        if measured[-1][1] < 15 * measured[-1][0] + 0.1:
            return
    raise AssertionError(f"more than linear: seconds for a fifth and for the whole were {measured}")


def _seconds(work: Callable[[Input], object], given: Input) -> float:
    began = time.thread_time()
    work(given)
    return time.thread_time() - began
