"""How long to wait before a call is sent again."""

from __future__ import annotations

from random import Random
from typing import Final

JITTER: Final = 0.5
"""The random share of each wait, so that many callers do not come back at the same moment."""


def wait_after(attempt: int, *, first: float, longest: float, random: Random) -> float:
    """The seconds to wait after a failed attempt, counted from 1: twice as long each time, less some jitter.

    >>> [round(wait_after(n, first=0.5, longest=4.0, random=Random(1)), 2) for n in (1, 2, 3, 4, 5)]
    [0.47, 0.93, 1.87, 3.73, 3.73]
    """
    # The exponent is capped so that the power cannot overflow a float.
    wait = min(longest, first * 2.0 ** min(attempt - 1, 60))
    return wait * (1 - JITTER * random.random())
