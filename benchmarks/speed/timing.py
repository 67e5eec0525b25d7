"""Taking times: the least of many, with everybody who is compared measured by turns."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Effort:
    """How often something is repeated: as long as there are seconds left, at least and at most so many rounds."""

    seconds: float = 3.0
    least: int = 3
    most: int = 300


def taken(work: Work) -> float:
    """The seconds that one piece of work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def interleaved(works: Mapping[str, Sequence[Work]], effort: Effort) -> dict[str, float]:
    """For each of those who are compared, the seconds of a piece of work: the mean of the least that each took.

    All of them take turns, so that whatever slows the computer down slows down everybody.

    >>> sorted(interleaved({"one": [lambda: 1], "other": [lambda: 2, lambda: 3]}, Effort(0.0, 1, 1)))
    ['one', 'other']
    """
    for pieces in works.values():
        for piece in pieces:
            piece()
    gc.collect()
    least = {name: np.full(len(pieces), np.inf) for name, pieces in works.items()}
    began, rounds = time.perf_counter(), 0
    while rounds < effort.least or (rounds < effort.most and time.perf_counter() - began < effort.seconds):
        for name, pieces in works.items():
            least[name] = np.minimum(least[name], [taken(piece) for piece in pieces])
        rounds += 1
    return {name: float(seconds.mean()) for name, seconds in least.items()}


def median(seconds: Sequence[float]) -> float:
    """The middle one of some times."""
    return float(statistics.median(seconds))


def growth(seconds: Mapping[int, float]) -> float | None:
    """The exponent with which time grows with size: the slope of its logarithm, by least squares.

    >>> round(growth({10: 1.0, 100: 10.0, 1000: 100.0}), 6), growth({10: 1.0})
    (1.0, None)
    """
    if len(seconds) < 2:
        return None
    return float(np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0])


def label(size: int) -> str:
    """A size as it stands in names.

    >>> label(1_000), label(1_000_000), label(250)
    ('1k', '1m', '250')
    """
    for unit, sign in ((1_000_000, "m"), (1_000, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{sign}"
    return str(size)
