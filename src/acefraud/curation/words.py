"""Which bullets of a book a text could be like, without comparing it with each.

A ratio of `SequenceMatcher` above a threshold takes so many characters in common, and two texts have no more in common
than the smaller count of each character. Counts of a page of bullets are compared at once. What is left is compared by
the longest common subsequence, which the matching blocks of `SequenceMatcher` are one of.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from acefraud.core.book import Book
from acefraud.core.following import BookFollower, content_at, renewed_rows
from acefraud.core.page import PAGE, Mask, Page

CLASSES = 32
"""Characters are told apart by their last five bits: letters by each, the others as it comes."""
MOST = 255
"""Counts above this are not told apart."""
AT_ONCE = 2048
"""Texts whose counts are compared at once: so few stay close at hand meanwhile."""
A_LITTLE = 1e-9
"""For what rounding may take from a bound."""

Counts = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.intp]


class BookWords:
    """The words of a book, letter case aside.

    >>> from acefraud.core.bullet import Bullet
    >>> texts = ["Nervous callers: decline", "Refunds asked for twice", "nervous caller: decline"]
    >>> book = Book.of(Bullet(id=text, content=text) for text in texts)
    >>> words = BookWords()
    >>> words.keep_up_with(book)
    >>> words.candidates("A nervous caller: decline", 0.85, np.array([True, True, True]))
    [0, 2]
    """

    def __init__(self) -> None:
        self._follower = BookFollower()
        self._shelves: dict[tuple[bool, int], _Shelf] = {}
        self._shelf_of: list[_Shelf | None] = []
        self._place_of = array("q")

    def keep_up_with(self, book: Book) -> None:
        """Stand for this book from now on; only what changed is looked at."""
        room = len(book.pages) * PAGE - len(self._shelf_of)
        self._shelf_of.extend([None] * room)
        self._place_of.extend([0] * room)
        for number, page, before in self._follower.changes(book):
            if before is not None and _says_the_same(page, before):
                continue
            rows, conditioned = renewed_rows(page, before), page.table["conditioned"].tolist()
            texts = [content_at(page, row).lower() for row in rows]
            for row, text, counts in zip(rows, texts, np.minimum(_counts(texts), MOST), strict=True):
                self._write(number * PAGE + row, text, counts, conditioned[row])

    def candidates(self, content: str, threshold: float, among: Mask, *, conditioned: bool = True) -> list[int]:
        """Of the rows asked for, all that a text could be like above the threshold, and few others, in order.

        Those with a condition are left out if need be.
        """
        wanted = _Wanted(content.lower(), threshold)
        rows: list[int] = []
        texts: list[str] = []
        for (having_one, size), shelf in self._shelves.items():
            if (conditioned or not having_one) and size in wanted.sizes:
                found = shelf.candidates(wanted, among)
                rows += shelf.rows[found].tolist()
                texts += [shelf.texts[place] for place in found.tolist()]
        if not rows:
            return []
        cutoff = max(0.0, threshold - A_LITTLE)
        likeness = cdist([wanted.text], texts, scorer=Indel.normalized_similarity, score_cutoff=cutoff, workers=1)[0]
        return sorted(rows[place] for place in np.flatnonzero(likeness > 0).tolist())

    def _write(self, row: int, text: str, counts: npt.NDArray[np.intp], conditioned: bool) -> None:
        key = (conditioned, _size(len(text)))
        shelf = self._shelves.get(key)
        if shelf is None:
            shelf = self._shelves[key] = _Shelf()
        before, place = self._shelf_of[row], self._place_of[row]
        if before is shelf and shelf.texts[place] == text:
            return
        if before is not None:
            self._place_of[before.take_out(place)] = place
        self._shelf_of[row], self._place_of[row] = shelf, shelf.put(row, text, counts)


class _Wanted:
    """A text to be compared with many."""

    def __init__(self, text: str, threshold: float) -> None:
        counts = _counts([text])[0]
        self.text = text
        self.counts: Counts = np.minimum(counts, MOST).astype(np.uint8)[:, None]
        self.length = len(text)
        self.half = threshold / 2
        """The share of both lengths together that has to be in common."""
        shortest, longest = (
            int(self.length * ratio) for ratio in (self.half / (1 - self.half), (1 - self.half) / self.half)
        )
        self.sizes = range(_size(shortest), _size(longest + 1) + 1)
        """Of other lengths there is no text with as much in common."""
        self.hidden = int((counts - self.counts[:, 0]).sum()) + 0.01
        """What may be in common beyond the counts, and a little for rounding."""
        self.total: type[np.uint8 | np.uint16] = np.uint8 if self.length <= MOST else np.uint16
        """What a sum of counts fits into: there are no more in common than there are."""


class _Shelf:
    """Texts of about the same length, in no order."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.rows: Rows = np.zeros(8, dtype=np.intp)
        self._lengths = np.zeros(8, dtype=np.float32)
        self._counts: Counts = np.zeros((CLASSES, 8), dtype=np.uint8)

    def put(self, row: int, text: str, counts: npt.NDArray[np.intp]) -> int:
        """Add the text of a row; returns at which place."""
        place = len(self.texts)
        if place == len(self.rows):
            self.rows, self._lengths = _with_room(self.rows), _with_room(self._lengths)
            self._counts = _with_room(self._counts)
        self.texts.append(text)
        self.rows[place], self._lengths[place], self._counts[:, place] = row, len(text), counts
        return place

    def take_out(self, place: int) -> int:
        """Put the last text in the place of this one; returns the row of that."""
        last = len(self.texts) - 1
        for each in (self.rows, self._lengths, self._counts):
            each[..., place] = each[..., last]
        self.texts[place] = self.texts[last]
        self.texts.pop()
        return int(self.rows[place])

    def candidates(self, wanted: _Wanted, among: Mask) -> Rows:
        """The places of rows asked for that have characters enough in common."""
        count = len(self.texts)
        common: npt.NDArray[np.uint8 | np.uint16] = np.empty(count, dtype=wanted.total)
        for start in range(0, count, AT_ONCE):
            part = slice(start, min(start + AT_ONCE, count))
            common[part] = np.add.reduce(np.minimum(self._counts[:, part], wanted.counts), axis=0, dtype=wanted.total)
        needed = (self._lengths[:count] + wanted.length) * wanted.half - wanted.hidden
        found = np.flatnonzero(common > needed)
        rows = self.rows[found]
        return found[(rows < len(among)) & among.take(rows, mode="clip")]


def _says_the_same(page: Page, before: Page) -> bool:
    """Whether the words of a page did not change, nor which of its bullets have a condition."""
    return page.wording is before.wording and np.array_equal(page.table["conditioned"], before.table["conditioned"])


def _size(length: int) -> int:
    """The lengths that are put together: four sizes from one length to its double."""
    return int(4 * math.log2(max(1, length)))


def _with_room(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same with room for half as many more."""
    return np.concatenate([values, np.zeros_like(values[..., : values.shape[-1] // 2])], axis=-1)


def _counts(texts: Sequence[str]) -> npt.NDArray[np.intp]:
    """How often each class of characters occurs, a row for each text."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32) % CLASSES
    begins = np.repeat(np.arange(len(texts)) * CLASSES, [len(text) for text in texts])
    return np.bincount(begins + codes, minlength=len(texts) * CLASSES).reshape(len(texts), CLASSES)
