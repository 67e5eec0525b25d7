"""The vectors of a playbook's bullets, a matrix for each page, kept for as long as somebody holds the page.

Whoever changes counters leaves the words as they are, and with them the matrix. A bullet that is added writes one
row behind those that are there, which readers of an older revision never look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from acefraud.core.book import Book
from acefraud.core.bullet import Bullet
from acefraud.core.page import PAGE, Page, Wording
from acefraud.core.roles import Embedder, Vectors
from acefraud.selection.axis import Axis, Bins
from acefraud.selection.worth import Mask, Rows, by_page


@dataclass(slots=True)
class _Buffer:
    """Room for the vectors of a page; a row is written once and never again."""

    claimed: int
    """How many rows belong to somebody already."""
    rows: Vectors | None = None
    slab: _Slab | None = None
    """What it is a part of, where pages one after the other stand one after the other in memory too."""
    place: int = 0

    def goes_on(self, other: _Buffer) -> bool:
        """Whether the other one stands right behind this one."""
        return self.slab is not None and self.slab is other.slab and self.place + 1 == other.place


@dataclass(slots=True)
class _Slab:
    """Room for several pages, so that one product serves them all."""

    rows: Vectors
    used: int = 0


@dataclass(slots=True)
class _Matrix:
    """What one wording of a page sees of a buffer."""

    buffer: _Buffer
    filled: Mask
    whole: bool = False
    """Whether all rows are filled."""
    bins: Bins | None = None
    """How far each leans to the axis, worked out when it is first asked for."""

    def __len__(self) -> int:
        return len(self.filled)


SLAB = 16
"""Pages whose vectors stand together in memory where they come in at once."""
LARGE = 200_000
"""From so many bullets on an index proposes which of them resemble a transaction, and vectors are not held in memory
but looked up as they are needed.

Measured with 256 dimensions: to propose 256 bullets takes 4 ms at this size, where the product of the whole matrix with
the query takes 13 ms on one thread. The index pays from 50,000 on, but it changes who takes part in a draw; below this
size all who resemble do.
"""


class BookVectors:
    """The vectors of bullets by one embedder, over all revisions of all books that somebody holds."""

    def __init__(self, embedder: Embedder, *, hold_all: bool = True) -> None:
        self._embedder = embedder
        self.hold_all = hold_all
        """Whether the vectors of a large book are held in memory too."""
        self._fetches = embedder.fetches_ahead
        self._axis: Axis | None = None
        self._binned: tuple[Book, Bins] | None = None
        self._slab: _Slab | None = None
        self._stretched: tuple[Book, list[tuple[int, Vectors]]] | None = None
        self._matrices: WeakKeyDictionary[Wording, _Matrix] = WeakKeyDictionary()

    def of_page(self, page: Page, wanted: Mask | Rows) -> Vectors:
        """The matrix of a page, in which at least the wanted rows are filled. There must be one."""
        matrix = self._matrices.get(page.wording)
        if matrix is None:
            matrix = self._matrices[page.wording] = self._begun(page)
        if not matrix.whole:
            missing = ~matrix.filled
            if self._fetches:  # what is not needed is not asked for over a network
                asked = np.zeros(len(matrix), dtype=np.bool_)
                asked[wanted] = True
                missing &= asked
            self._fill(matrix, page, np.flatnonzero(missing))
        assert matrix.buffer.rows is not None
        return matrix.buffer.rows[: len(matrix)]

    def stretches(self, book: Book, wanted: Sequence[Mask] | None = None) -> list[tuple[int, Vectors]]:
        """The matrices of all pages, as few and as large as can be had, each with the row at which it begins.

        Where vectors are asked for over a network, of pages of which some rows are wanted.
        """
        if not self._fetches and self._stretched is not None and self._stretched[0] is book:
            return self._stretched[1]
        found: list[tuple[int, Vectors]] = []
        stretch: list[tuple[int, _Matrix]] = []
        for number, page in enumerate(book.pages):
            rows = np.ones(len(page), dtype=np.bool_) if wanted is None else wanted[number]
            if self._fetches and not rows.any():
                continue
            self.of_page(page, rows)
            matrix = self._matrices[page.wording]
            if stretch and not (stretch[-1][0] + 1 == number and stretch[-1][1].buffer.goes_on(matrix.buffer)):
                found.append(_joined(stretch))
                stretch = []
            stretch.append((number, matrix))
        found.extend([_joined(stretch)] if stretch else [])
        self._stretched = None if self._fetches else (book, found)
        return found

    def at(self, book: Book, rows: Rows) -> Vectors:
        """The vectors of some rows of a book, at least one, in ascending order."""
        if len(book.pages) == 1:
            return self.of_page(book.pages[0], rows)[rows]
        if self._looks_up(book):
            return self._embedder.embed([self.text_of(book.at(int(row))) for row in rows])
        if self._fetches:
            return np.concatenate([self.of_page(book.pages[number], own)[own] for number, own in by_page(rows)])
        stretches = self.stretches(book)
        ends = np.searchsorted(rows, [start + len(matrix) for start, matrix in stretches]).tolist()
        return np.concatenate(
            [
                matrix[rows[first:end] - start]
                for (start, matrix), first, end in zip(stretches, [0, *ends], ends, strict=False)
                if end > first
            ]
        )

    def axis(self, book: Book, rows: Rows) -> tuple[Axis, Bins] | None:
        """A direction that most vectors have in common, and how far those of some rows, in ascending order, lean to it.

        None where vectors are not held, or only those that were asked for.
        """
        if self._looks_up(book) or self._fetches:
            return None
        if self._binned is None or self._binned[0] is not book:
            self._binned = book, np.concatenate([self._bins_of(page) for page in book.pages])
        assert self._axis is not None
        return self._axis, self._binned[1][rows]

    def products(self, book: Book, rows: Rows, vector: Vectors) -> Vectors:
        """Of the vectors of some rows with another one, roughly."""
        products = np.zeros(len(book), dtype=np.float32)
        for start, matrix in self.stretches(book):
            np.dot(matrix, vector, out=products[start : start + len(matrix)])
        return products[rows]

    def _bins_of(self, page: Page) -> Bins:
        vectors = self.of_page(page, np.arange(len(page)))
        matrix = self._matrices[page.wording]
        if matrix.bins is None:
            if self._axis is None:
                self._axis = Axis.through(vectors)
            matrix.bins = self._axis.bins(vectors)
        return matrix.bins

    def _looks_up(self, book: Book) -> bool:
        """Whether the vectors of a book are not held, but looked up as they are needed."""
        return not self.hold_all and len(book) >= LARGE

    def computed(self, page: Page) -> Vectors:
        """The vectors of a whole page, which are not kept."""
        return self._embedder.embed([self.text_of(bullet) for bullet in page.bullets()])

    def text_of(self, bullet: Bullet) -> str:
        """What is embedded of a bullet: of one that would leave the house, what may."""
        return self._embedder.presentable_bullet(bullet)

    def _fill(self, matrix: _Matrix, page: Page, rows: Rows) -> None:
        if not len(rows):
            return
        vectors = self._embedder.embed([self.text_of(page.bullet(int(row))) for row in rows])
        if matrix.buffer.rows is None:
            self._make_room(matrix.buffer, vectors.shape[1])
        assert matrix.buffer.rows is not None
        matrix.buffer.rows[rows] = vectors
        matrix.filled[rows] = True
        matrix.whole = bool(matrix.filled.all())
        matrix.bins = None

    def _make_room(self, buffer: _Buffer, width: int) -> None:
        if self._slab is None or self._slab.used == SLAB:
            self._slab = _Slab(np.zeros((SLAB * PAGE, width), dtype=np.float32))  # memory only where it is written to
        buffer.slab, buffer.place = self._slab, self._slab.used
        buffer.rows = self._slab.rows[buffer.place * PAGE : (buffer.place + 1) * PAGE]
        self._slab.used += 1

    def _begun(self, page: Page) -> _Matrix:
        """Room for a page's vectors, with those of the page it came from as far as they still hold."""
        filled = np.zeros(len(page), dtype=np.bool_)
        for origin, anew in page.wording.origins():
            before = self._matrices.get(origin)
            if before is None:
                continue
            if not origin.in_use:  # nobody will ask for it again
                del self._matrices[origin]
            filled[: len(before)] = before.filled
            filled[list(anew)] = False
            buffer = before.buffer
            if min(anew) < len(before) or buffer.claimed != len(before):  # its rows are somebody else's
                buffer = _Buffer(len(page), None if buffer.rows is None else buffer.rows.copy())
            buffer.claimed = len(page)
            return _Matrix(buffer, filled)
        return _Matrix(_Buffer(len(page)), filled)


def _joined(stretch: list[tuple[int, _Matrix]]) -> tuple[int, Vectors]:
    (number, first), (_, last) = stretch[0], stretch[-1]
    if len(stretch) > 1:
        assert first.buffer.slab is not None
        start = first.buffer.place * PAGE
        return number * PAGE, first.buffer.slab.rows[start : last.buffer.place * PAGE + len(last)]
    assert first.buffer.rows is not None
    return number * PAGE, first.buffer.rows[: len(first)]
