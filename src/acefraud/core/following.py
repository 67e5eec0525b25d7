"""Keeping up with a book, so that what is derived from its bullets is derived once for each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress, count
from operator import is_not

from pydantic import BaseModel

from acefraud.core.book import Book
from acefraud.core.condition import Condition
from acefraud.core.page import Page


class BookFollower:
    """Tells which pages of a book are others than in the book it was shown before.

    >>> from acefraud.core.bullet import Bullet
    >>> one, two, three = (Bullet(id=f"b{place}", content="a VPN: decline") for place in range(3))
    >>> follower = BookFollower()
    >>> [renewed_rows(page, before) for _, page, before in follower.changes(Book.of([one, two]))]
    [[0, 1]]
    >>> [renewed_rows(page, before) for _, page, before in follower.changes(Book.of([one, three, two]))]
    [[1, 2]]
    """

    def __init__(self) -> None:
        self._pages: list[Page] = []

    def changes(self, book: Book) -> Iterator[tuple[int, Page, Page | None]]:
        """Each of them with its number, and the page that was there before. To be exhausted."""
        pages = self._pages
        del pages[len(book.pages) :]
        for number, page in enumerate(book.pages):
            if number == len(pages):
                yield number, page, None
                pages.append(page)
            elif page is not pages[number]:
                yield number, page, pages[number]
                pages[number] = page


def renewed_rows(page: Page, before: Page | None) -> list[int]:
    """The rows whose bullet is another object than before: whatever changes a bullet puts a new one in its place."""
    if before is None:
        return list(range(len(page)))
    old, new = before.entries, page.entries
    return [*compress(count(), map(is_not, old, new)), *range(len(old), len(new))]


class _PackedWords(BaseModel):
    content: str


class _PackedCondition(BaseModel):
    condition: Condition | None = None


def content_at(page: Page, row: int) -> str:
    """The words of a bullet; where it is packed, nothing else of it is read."""
    entry = page.entries[row]
    return _PackedWords.model_validate_json(entry).content if isinstance(entry, bytes) else entry.content


def condition_at(page: Page, row: int) -> Condition | None:
    """The condition of a bullet, likewise."""
    entry = page.entries[row]
    return _PackedCondition.model_validate_json(entry).condition if isinstance(entry, bytes) else entry.condition
