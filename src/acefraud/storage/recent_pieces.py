"""The pieces of decisions that were used last, so that they are not read or written again every time."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from threading import Lock
from typing import Final

from acefraud.core.decision import Common

MOST: Final = 2_000


class RecentPieces:
    """Pieces by key; at most so many, of which the one that was not used for longest goes first. Threads can share it.

    >>> recent = RecentPieces(most=2)
    >>> recent.put(Common(key, "{}") for key in (1, 2))
    >>> _ = recent.get([1])
    >>> recent.put([Common(3, "{}")])
    >>> sorted(recent.get([1, 2, 3]))
    [1, 3]
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._pieces: dict[int, Common] = {}  # a dict is in the order of insertion
        self._lock = Lock()

    def get(self, keys: Collection[int]) -> dict[int, Common]:
        """Those of the pieces with these keys that are here."""
        with self._lock:
            found = {key: self._pieces.pop(key) for key in keys if key in self._pieces}
            self._pieces |= found
            return found

    def put(self, pieces: Iterable[Common]) -> None:
        """Take in pieces that were just used."""
        with self._lock:
            for piece in pieces:
                self._pieces.pop(piece.key, None)
                self._pieces[piece.key] = piece
            while len(self._pieces) > self._most:
                del self._pieces[next(iter(self._pieces))]

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._pieces.clear()

    def __len__(self) -> int:
        return len(self._pieces)
