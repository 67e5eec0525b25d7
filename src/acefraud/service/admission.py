"""What lets a request in: keys that are remembered, how many requests a caller may send, how much may be under way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from threading import Lock
from typing import Final, NamedTuple, TypeVar

from acefraud.errors import ConfigurationError
from acefraud.service.problems import RETRY_AFTER, Refused
from acefraud.storage.service_tables import ApiKey, KeyStore, hash_of

T = TypeVar("T")
MOST_CALLERS: Final = 10_000


def _put(table: dict[str, T], name: str, value: T, most: int) -> None:
    """Put an entry last in a table. If these are too many, the first is evicted."""
    table.pop(name, None)  # a dict is in the order of insertion
    table[name] = value
    if len(table) > most:
        del table[next(iter(table))]


class RateLimit:
    """Lets each caller send `burst` requests at once, and `rate` a second in the long run.

    >>> limit = RateLimit(rate=2, burst=1, clock=lambda: 0.0)
    >>> limit.take("checkout"), limit.take("checkout"), limit.take("till")
    (0.0, 0.5, 0.0)
    """

    def __init__(
        self, rate: float, burst: float, *, most: int = MOST_CALLERS, clock: Callable[[], float] = time.monotonic
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
            # Evicts the one used least recently, which has filled up most.
            _put(self._buckets, name, _Bucket(tokens if wait else tokens - min(cost, self._burst), now), self._most)
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
        acefraud.service.admission.TooManyWaiting: too many requests wait for an answer; try again soon
        """
        if self.under_way and self.under_way + count > self._most:
            raise TooManyWaiting()
        self.under_way += count
        try:
            yield
        finally:
            self.under_way -= count


SECONDS: Final = 5.0
MOST_KEYS: Final = 1_000


class FoundKey(NamedTuple):
    """A key, or that there is none, and when that was found."""

    key: ApiKey | None
    at: float


@dataclass(eq=False)
class KeyRing:
    """Finds keys by their secrets, and remembers for some seconds what it found.

    So a key that was revoked stops working within that time, in every process. Secrets that belong to no key are
    remembered apart from the others, so that no flood of them makes it forget those that do.
    """

    store: KeyStore
    seconds: float = SECONDS
    _: KW_ONLY
    most: int = MOST_KEYS
    clock: Callable[[], float] = time.monotonic
    _known: dict[str, FoundKey] = field(default_factory=dict, init=False)
    _unknown: dict[str, FoundKey] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def find(self, secret: str) -> ApiKey | None:
        """The live key with this secret; None if there is none."""
        remembered = self.remembered(secret)
        if remembered is not None:
            return remembered.key
        now, key = self.clock(), self.store.find(secret)
        with self._lock:
            _put(self._unknown if key is None else self._known, hash_of(secret), FoundKey(key, now), self.most)
        return key

    def remembered(self, secret: str) -> FoundKey | None:
        """What was found with this secret a moment ago, without a look into the store; None if nothing was."""
        hashed, now = hash_of(secret), self.clock()  # memory keeps no secrets either
        with self._lock:
            there = (table[hashed] for table in (self._known, self._unknown) if hashed in table)
            return next((each for each in there if now - each.at < self.seconds), None)

    def has_worked(self, secret: str) -> bool:
        """Whether a key with this secret was found before, however long ago."""
        with self._lock:
            return hash_of(secret) in self._known
