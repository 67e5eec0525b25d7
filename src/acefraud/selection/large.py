"""Stage 3 for a book so large that comparing a transaction with every bullet would cost more than all the rest.

An index proposes the bullets that resemble the transaction most; only these are looked at.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from acefraud.core.page import PAGE, Wording
from acefraud.core.roles import Vectors
from acefraud.selection.nearest import PROPOSED, Nearest
from acefraud.selection.stages import NOBODY, Asked, Kept, Resembling
from acefraud.selection.vectors import LARGE, BookVectors
from acefraud.selection.worth import Rows


@cache
def index_installed() -> bool:
    """Whether the library that the index needs is there."""
    return importlib.util.find_spec("numkong") is not None


def index_can_be_used(bullets: int) -> bool:
    """Whether a book is so large that an index pays, and the library for it is there."""
    return bullets >= LARGE and index_installed()


class BookIndex:
    """An index over the book that was asked about last. Of another revision only the pages that differ are read."""

    def __init__(self, vectors: BookVectors) -> None:
        self._vectors = vectors
        self._nearest: Nearest | None = None
        self._read: list[Wording] = []

    def resembling(
        self, asked: Asked, kept: Sequence[Kept], queries: Sequence[Vectors | None], threshold: float
    ) -> Iterator[Resembling]:
        """For each transaction the bullets that resemble it most, and enough: see `PROPOSED`."""
        for left, query in zip(kept, queries, strict=True):
            yield NOBODY if query is None else self._found(asked, left, query, threshold)

    def _found(self, asked: Asked, kept: Kept, query: Vectors, threshold: float) -> Resembling:
        """Proposals that may not be used make room for others, as long as there are any."""
        nearest = self._current(asked)
        among = np.concatenate(kept.prose)
        count = PROPOSED
        while True:
            proposed = nearest.propose(query, count)
            rows = np.sort(proposed[among[proposed]])
            if len(rows) >= min(asked.wanted, PROPOSED) or len(proposed) < count:
                break
            count *= 4
        if not len(rows):
            return NOBODY
        cosines = np.vecdot(self._vectors.at(asked.book, rows), query).astype(np.float64)
        near = cosines >= threshold
        return Resembling(rows[near], cosines[near], query)

    def _current(self, asked: Asked) -> Nearest:
        pages = asked.book.pages
        for number, page in enumerate(pages):
            if number < len(self._read) and self._read[number] is page.wording:
                continue
            vectors = self._vectors.computed(page)
            if self._nearest is None:
                self._nearest = Nearest(vectors.shape[1])
            rows = np.arange(len(page)) + number * PAGE
            self._nearest.add(rows, vectors)
            self._read[number:] = [page.wording, *self._read[number + 1 :]]
        assert self._nearest is not None
        self._nearest.remove(_beyond(len(asked.book), len(self._read) * PAGE))
        del self._read[len(pages) :]
        return self._nearest


def _beyond(count: int, end: int) -> Rows:
    """The rows that another revision has and this one has not."""
    return np.arange(count, max(count, end))
