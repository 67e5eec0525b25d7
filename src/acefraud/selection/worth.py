"""What the columns of a playbook say of its bullets at one base rate, worked out once for each page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from acefraud.core.book import Book
from acefraud.core.bullet import Source, Status
from acefraud.core.evidence import balanced_share
from acefraud.core.page import PAGE, STATUSES, VERDICTS, Page, Table
from acefraud.core.page import Rows as PageRows
from acefraud.core.transaction import Verdict
from acefraud.embedded.agent import weights_in
from acefraud.selection.draws import Keys, Shapes

Column = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
T = TypeVar("T")

RAREST = 1e-6
"""A share of fraud, or of honesty, below this counts as this."""
_PINNED = STATUSES.index(Status.PINNED)


@dataclass(frozen=True)
class Worth:
    """Bullets in columns: what tells their draws apart, their record, and how much each moves a decision."""

    keys: Keys
    success: Column
    strength: Column
    a: Column
    """What speaks for each, and one more: the first parameter of its draw."""
    b: Column

    @cached_property
    def shapes(self) -> Shapes:
        """What all of them are drawn from."""
        return Shapes.of(self.a, self.b)


NO_WORTH = Worth(np.empty(0, np.uint64), np.empty(0), np.empty(0), np.empty(0), np.empty(0))


def merits_in(table: Table, base_rate: float) -> Column:
    """For and against each bullet: two columns of counts.

    Where fraud and honesty are equally common these are the helpful and harmful decisions of the ACE system. The rarer
    fraud is, the more they give way to the bullet's own record, counted as if both were equally common: at 1 % fraud
    nearly every decision is right whatever a bullet said, while one that is right one time in five is gold.
    """
    base = min(max(base_rate, RAREST), 1 - RAREST)
    balance = 4 * base * (1 - base)
    support = table["shown_support"] + table["support"]
    fraud = balanced_share(table["shown_frauds"] + table["frauds"], support, base)
    right = np.where(table["argues"] == VERDICTS.index(Verdict.DECLINE), fraud, 1 - fraud)
    own = np.where((table["argues"] == 0) | (support == 0), 0.0, (1 - balance) * support)
    return np.column_stack([balance * table["helpful"] + own * right, balance * table["harmful"] + own * (1 - right)])


def success_of(merits: Column) -> Column:
    """The share that speaks for each bullet; 0.5 while nothing is known."""
    total = merits.sum(axis=1)
    return np.where(total > 0, merits[:, 0] / np.where(total > 0, total, 1), 0.5)


def worth_of(page: Page, base_rate: float) -> Worth:
    """What a page's bullets are worth."""

    def worked_out() -> Worth:
        merits = merits_in(page.table, base_rate)
        return Worth(
            np.ascontiguousarray(page.table["key"]),
            success_of(merits),
            np.abs(weights_in(page.table, base_rate)),
            merits[:, 0] + 1,
            merits[:, 1] + 1,
        )

    return _kept(page.derived, "worth", base_rate, worked_out)


def worth_in(book: Book, base_rate: float) -> Worth:
    """The same for a whole book."""
    if len(book.pages) == 1:
        return worth_of(book.pages[0], base_rate)

    def joined() -> Worth:
        pages = [worth_of(page, base_rate) for page in book.pages]
        names = [field.name for field in fields(Worth)]
        return Worth(*(np.concatenate([getattr(page, name) for page in pages]) for name in names))

    return _kept(book.derived, "worth", base_rate, joined if book.pages else lambda: NO_WORTH)


def drawn_from(book: Book, rows: Rows, base_rate: float) -> tuple[Keys, Shapes]:
    """What the bullets of some rows are drawn from."""
    worth = worth_in(book, base_rate)
    return worth.keys[rows], worth.shapes.take(rows)


def pinned_at(book: Book, rows: Rows) -> Mask:
    """Whether an analyst pinned them."""
    return np.array([book.pages[row // PAGE].table["status"][row % PAGE] == _PINNED for row in rows], dtype=np.bool_)


def by_page(rows: Rows) -> list[tuple[int, Rows]]:
    """Rows of the book in ascending order as the rows of its pages."""
    if not len(rows):
        return []
    first, last = int(rows[0]) // PAGE, int(rows[-1]) // PAGE
    starts = np.searchsorted(rows, np.arange(first, last + 2) * PAGE).tolist()
    return [
        (number, rows[start:end] - number * PAGE)
        for number, start, end in zip(range(first, last + 1), starts, starts[1:], strict=False)
        if end > start
    ]


def good_in(page: Page, node: int | None, source: Source | None, base_rate: float, least: float) -> PageRows:
    """The rows of a node with a record that is good enough; what an analyst pinned stays, whatever its record."""

    def worked_out() -> PageRows:
        good = worth_of(page, base_rate).success >= least
        good |= page.table["status"] == _PINNED
        good &= page.in_use(node, source).mask
        return PageRows(good)

    return _kept(page.derived, ("good", node, source, least), base_rate, worked_out)


def _kept(place: dict[object, Any], name: object, base_rate: float, work_out: Callable[[], T]) -> T:
    """What was worked out before, unless at another base rate: each name keeps the latest only."""
    kept: tuple[float, T] | None = place.get(name)
    if kept is None or kept[0] != base_rate:
        kept = base_rate, work_out()
        place[name] = kept
    return kept[1]
