"""The bullets of a playbook in pages, so that a new revision shares with the one before all that did not change.

A bullet keeps its row for good, in the order bullets were added. What selection and curation look at most (counters,
node, source, status, weights) stands beside the bullets in columns. Of a very large book the bullets themselves are
kept packed and are read when somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from typing import Any

import numpy as np

from acefraud.core.bullet import Bullet
from acefraud.core.page import FEW_BREAKS, PAGE, ROW, KeptPage, OpenPage, Page
from acefraud.core.rules import MOST_BREAKS

LIVE_PAGES = 32
"""Bullets that are added beyond so many pages are kept packed: an object takes ten times the memory."""


class Places:
    """At which row each bullet stands. Rows are only ever added, so that all revisions can share one."""

    __slots__ = ("_added", "_known")

    def __init__(self, known: dict[str, int] | None = None, added: dict[str, int] | None = None) -> None:
        self._known: dict[str, int] = {} if known is None else known
        self._added = added

    def find(self, bullet_id: str) -> int | None:
        """Where it stands, or would stand: whoever asks has to see whether it does in the revision at hand."""
        if self._added is not None and bullet_id in self._added:
            return self._added[bullet_id]
        return self._known.get(bullet_id)

    def put(self, bullet_id: str, row: int) -> None:
        """Note where one was added."""
        (self._known if self._added is None else self._added)[bullet_id] = row

    def branched(self) -> Places:
        """The same, to which others can be added without anybody else seeing them."""
        return Places(self._known, dict(self._added or {}))


class Book(Mapping[str, Bullet]):
    """The bullets of one revision by id, in the order they were added. It never changes.

    >>> book = Book.of([Bullet(id="b1", content="a VPN: decline"), Bullet(id="b2", content="a regular: approve")])
    >>> book["b2"].content, list(book), len(book.pages)
    ('a regular: approve', ['b1', 'b2'], 1)
    """

    __slots__ = ("_nodes", "_places", "derived", "pages")

    def __init__(self, pages: tuple[Page, ...], places: Places, nodes: Mapping[str, int]) -> None:
        self.pages = pages
        self._places = places
        self._nodes = nodes
        self.derived: dict[object, Any] = {}
        """What others have computed from this very book, under a key of their own."""

    @classmethod
    def of(cls, bullets: Iterable[Bullet]) -> Book:
        """A book of these bullets."""
        draft = Draft()
        for bullet in bullets:
            draft.put(bullet)
        return draft.book()

    def __len__(self) -> int:
        return (len(self.pages) - 1) * PAGE + len(self.pages[-1]) if self.pages else 0

    def __iter__(self) -> Iterator[str]:
        for page in self.pages:
            yield from page.ids

    def __contains__(self, bullet_id: object) -> bool:
        return isinstance(bullet_id, str) and self.row(bullet_id) is not None

    def __getitem__(self, bullet_id: str) -> Bullet:
        row = self.row(bullet_id)
        if row is None:
            raise KeyError(bullet_id)
        return self.at(row)

    def values(self) -> ValuesView[Bullet]:
        """The bullets, in order."""
        return _Bullets(self)

    def row(self, bullet_id: str) -> int | None:
        """The row of a bullet; None where this revision has none of that id."""
        row = self._places.find(bullet_id)
        if row is None or row >= len(self) or self.pages[row // PAGE].ids[row % PAGE] != bullet_id:
            return None
        return row

    def at(self, row: int) -> Bullet:
        """The bullet of a row."""
        return self.pages[row // PAGE].bullet(row % PAGE)

    def node(self, name: str) -> int | None:
        """The number that a node goes by in the columns; None where no bullet was ever written for it."""
        return self._nodes.get(name)


class _Bullets(ValuesView[Bullet]):
    """All bullets, read page by page."""

    _mapping: Book

    def __iter__(self) -> Iterator[Bullet]:
        for page in self._mapping.pages:
            yield from page.bullets()


class Draft:
    """A book that is being written. Its revisions share the pages that stay as they are."""

    def __init__(
        self, pages: Iterable[Page] = (), places: Places | None = None, nodes: dict[str, int] | None = None
    ) -> None:
        self._pages = list(pages)
        self._open: dict[int, OpenPage] = {}
        self._places = places or Places()
        self._nodes = nodes if nodes is not None else {}
        self._count = sum(len(page) for page in self._pages)

    @classmethod
    def of_kept(cls, kept: Iterable[KeptPage], nodes: Sequence[str]) -> Draft:
        """What was kept, without reading every bullet of a large book."""
        pages: list[Page] = []
        places = Places()
        for number, page in enumerate(kept):
            live = number < LIVE_PAGES
            entries: list[Bullet | bytes] = [
                Bullet.model_validate_json(bullet) if live else bullet for bullet in page.bullets
            ]
            ids = [entry.id if isinstance(entry, Bullet) else _id_of(entry) for entry in entries]
            for row, one in enumerate(ids, number * PAGE):
                places.put(one, row)
            table = np.frombuffer(page.table, dtype=ROW)
            if len(table) != len(entries):
                raise ValueError(f"page {number} has {len(entries)} bullets and {len(table)} rows of columns")
            if pages and len(pages[-1]) != PAGE:
                raise ValueError(f"page {number} comes after one that is not full")
            pages.append(Page(entries, ids, table, most_breaks=MOST_BREAKS if live else FEW_BREAKS))
        return cls(pages, places, {name: number for number, name in enumerate(nodes)})

    def __len__(self) -> int:
        return self._count

    def __contains__(self, bullet_id: str) -> bool:
        return self._row(bullet_id) is not None

    def __iter__(self) -> Iterator[Bullet]:
        for number in range(len(self._pages)):
            page = self._page(number)
            yield from (page.bullet(row) for row in range(len(page)))

    def get(self, bullet_id: str) -> Bullet | None:
        """The bullet of that id."""
        row = self._row(bullet_id)
        return None if row is None else self._page(row // PAGE).bullet(row % PAGE)

    def put(self, bullet: Bullet) -> None:
        """Add a bullet, or write it over the one of the same id."""
        row = self._row(bullet.id)
        if row is None:
            row = self._count
            self._places.put(bullet.id, row)
            self._count += 1
        node = self._nodes.setdefault(bullet.node, len(self._nodes))
        self._opened(row // PAGE).put(row % PAGE, bullet, node)

    def book(self) -> Book:
        """The book as it stands."""
        pack = len(self._pages) > LIVE_PAGES
        for number, page in self._open.items():
            self._pages[number] = page.frozen(pack=pack)
        self._open.clear()
        return Book(tuple(self._pages), self._places, self._nodes)

    def branched(self) -> Draft:
        """A draft that goes on from here by itself."""
        self.book()
        return Draft(self._pages, self._places.branched(), dict(self._nodes))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes in the order of their numbers."""
        return tuple(self._nodes)

    def _row(self, bullet_id: str) -> int | None:
        row = self._places.find(bullet_id)
        if row is None or row >= self._count or self._page(row // PAGE).ids[row % PAGE] != bullet_id:
            return None
        return row

    def _page(self, number: int) -> Page | OpenPage:
        return self._open[number] if number in self._open else self._pages[number]

    def _opened(self, number: int) -> OpenPage:
        if number == len(self._pages):
            self._pages.append(_NO_PAGE)
            self._open[number] = OpenPage(None)
        elif number not in self._open:
            self._open[number] = self._pages[number].opened()
        return self._open[number]


_NO_PAGE = Page((), (), np.empty(0, dtype=ROW))


def _id_of(entry: bytes) -> str:
    """The id of a packed bullet, which stands first; where it needed escaping, all of it is read."""
    start = len(b'{"id":"')
    found = entry[start : entry.index(b'"', start)]
    return Bullet.model_validate_json(entry).id if b"\\" in found else found.decode()
