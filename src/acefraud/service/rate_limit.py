"""How many requests a caller may send: a token bucket for each."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple

from acefraud.errors import ConfigurationError

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

    def take(self, name: str) -> float:
        """0.0 if the caller may send a request now, which is then counted; else the seconds until it may."""
        with self._lock:
            now = self._clock()
            bucket = self._buckets.pop(name, None) or _Bucket(self._burst, now)
            tokens = min(self._burst, bucket.tokens + self._rate * (now - bucket.at))
            allowed = tokens >= 1
            self._buckets[name] = _Bucket(tokens - allowed, now)
            if len(self._buckets) > self._most:  # the one used least recently, which has filled up most
                del self._buckets[next(iter(self._buckets))]
        return 0.0 if allowed else (1 - tokens) / self._rate


class _Bucket(NamedTuple):
    tokens: float
    at: float
