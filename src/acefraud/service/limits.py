"""How many requests a caller may send, and how much may be under way at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, NamedTuple

from acefraud.errors import ConfigurationError
from acefraud.service.problems import RETRY_AFTER, Refused

MOST: Final = 10_000


class RateLimit:
    """Lets each caller send `burst` requests at once, and `rate` a second in the long run.

    >>> limit = RateLimit(rate=2, burst=1, clock=lambda: 0.0)
    >>> limit.take("checkout"), limit.take("checkout"), limit.take("till")
    (0.0, 0.5, 0.0)
    """

    def __init__(
        self, rate: float, burst: float, *, most: int = MOST, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not (rate > 0 and burst >= 1):
            raise ConfigurationError(f"expected a rate above 0 and a burst of at least 1, got {rate:g} and {burst:g}")
        self._rate = rate
        self._burst = burst
        self._most = most
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}
        self._lock = Lock()

    def take(self, name: str, cost: float = 1, *, paid: float = 0) -> float:
        """0.0 if the caller may send a request of this cost now, which is then counted; else the seconds until it may.

        What costs more than a burst takes all of it. `paid` was taken for this request before; it is given back if the
        request has to wait.
        """
        with self._lock:
            now = self._clock()
            tokens = min(self._burst, self._tokens(name, now) + paid)
            wait = max(0.0, (min(cost, self._burst) - tokens) / self._rate)
            self._buckets.pop(name, None)  # a dict is in the order of insertion
            self._buckets[name] = _Bucket(tokens if wait else tokens - min(cost, self._burst), now)
            if len(self._buckets) > self._most:  # the one used least recently, which has filled up most
                del self._buckets[next(iter(self._buckets))]
        return wait

    def wait(self, name: str) -> float:
        """The seconds until the caller may send a request. Nothing is counted."""
        with self._lock:
            return max(0.0, (1 - self._tokens(name, self._clock())) / self._rate)

    def _tokens(self, name: str, now: float) -> float:
        bucket = self._buckets.get(name)
        return self._burst if bucket is None else min(self._burst, bucket.tokens + self._rate * (now - bucket.at))


class _Bucket(NamedTuple):
    tokens: float
    at: float


class TooManyWaiting(Refused):
    """So many requests wait that another would have to wait too long."""

    def __init__(self) -> None:
        again = {"Retry-After": str(RETRY_AFTER)}
        super().__init__(503, "too many requests wait for an answer; try again soon", headers=again)


class Capacity:
    """Counts what is under way in one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.under_way = 0

    @contextmanager
    def admit(self, count: int = 1) -> Iterator[None]:
        """Count these for the time of a block. Raises TooManyWaiting if that makes too many.

        A batch that is too large by itself is admitted when nothing else is under way.

        >>> capacity = Capacity(2)
        >>> with capacity.admit(), capacity.admit(2):
        ...     pass
        Traceback (most recent call last):
        acefraud.service.limits.TooManyWaiting: too many requests wait for an answer; try again soon
        """
        if self.under_way and self.under_way + count > self._most:
            raise TooManyWaiting()
        self.under_way += count
        try:
            yield
        finally:
            self.under_way -= count
