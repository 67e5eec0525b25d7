"""API keys as a server looks them up: on every request, and so from memory for a few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple

from acefraud.storage.service_tables import ApiKey, KeyStore, hash_of

SECONDS: Final = 5.0
MOST: Final = 1_000


class KeyRing:
    """Finds keys by their secrets, and remembers for some seconds what it found.

    So a key that was revoked stops working within that time, in every process. Secrets that belong to no key are
    remembered apart from the others, so that no flood of them makes it forget those that do.
    """

    def __init__(
        self,
        store: KeyStore,
        seconds: float = SECONDS,
        *,
        most: int = MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        self._known = _Recent(seconds, most)
        self._unknown = _Recent(seconds, most)
        self._lock = Lock()

    def find(self, secret: str) -> ApiKey | None:
        """The live key with this secret; None if there is none."""
        remembered = self.remembered(secret)
        if remembered is not None:
            return remembered.key
        now, key = self._clock(), self._store.find(secret)
        with self._lock:
            (self._unknown if key is None else self._known).put(hash_of(secret), key, now)
        return key

    def remembered(self, secret: str) -> FoundKey | None:
        """What was found with this secret a moment ago, without a look into the store; None if nothing was."""
        hashed, now = hash_of(secret), self._clock()  # memory keeps no secrets either
        with self._lock:
            return self._known.get(hashed, now) or self._unknown.get(hashed, now)

    def has_worked(self, secret: str) -> bool:
        """Whether a key with this secret was found before, however long ago."""
        with self._lock:
            return hash_of(secret) in self._known


class FoundKey(NamedTuple):
    """A key, or that there is none, and when that was found."""

    key: ApiKey | None
    at: float


class _Recent:
    """What was found in the last seconds, by hash. It is bounded: the oldest entry is evicted first."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._found: dict[str, FoundKey] = {}

    def get(self, hashed: str, now: float) -> FoundKey | None:
        found = self._found.get(hashed)
        return None if found is None or now - found.at >= self._seconds else found

    def __contains__(self, hashed: str) -> bool:
        return hashed in self._found

    def put(self, hashed: str, key: ApiKey | None, now: float) -> None:
        self._found.pop(hashed, None)  # a dict is in the order of insertion
        self._found[hashed] = FoundKey(key, now)
        if len(self._found) > self._most:
            del self._found[next(iter(self._found))]
