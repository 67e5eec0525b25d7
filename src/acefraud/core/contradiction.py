"""When two bullets cannot both be right."""

from __future__ import annotations

import numpy as np

from acefraud.core.book import Book
from acefraud.core.condition import Condition
from acefraud.core.encoding import EncodedConditions, Rows
from acefraud.core.page import PAGE, VERDICTS, Mask, Page
from acefraud.core.transaction import Verdict


def contradicted_in(
    book: Book, encoded: EncodedConditions, node: str, condition: Condition, argues: Verdict
) -> tuple[str, ...]:
    """The bullets in use that argue for another verdict under a condition that this one shares or narrows, by id.

    One condition implies the other, so that where the narrower holds the two disagree.
    """
    number = book.node(node)
    if number is None or not book.pages:
        return ()

    def against(rows: Rows) -> Mask:
        if len(rows) > len(book.pages):  # quicker in one go
            return np.concatenate([_in_use_against(page, number, argues) for page in book.pages])[rows]
        places = [divmod(row, PAGE) for row in rows.tolist()]
        return np.array([_in_use_against(book.pages[page], number, argues)[row] for page, row in places], np.bool_)

    found = encoded.overlapping(condition, against).tolist()
    return tuple(book.pages[row // PAGE].ids[row % PAGE] for row in found)


def opposed(one: Verdict | None, other: Verdict | None) -> bool:
    """Whether two verdicts are known and differ."""
    return one is not None and other is not None and one is not other


def opposed_rows(page: Page, argues: Verdict | None) -> Mask:
    """The rows of a page that argue for another verdict."""
    theirs = page.table["argues"]
    against: Mask = (theirs != VERDICTS.index(None)) & (theirs != VERDICTS.index(argues)) & (argues is not None)
    return against


def _in_use_against(page: Page, node: int, argues: Verdict) -> Mask:
    def work_out() -> Mask:
        against: Mask = page.in_use(node).mask & page.table["conditioned"] & opposed_rows(page, argues)
        return against

    return page.once((_in_use_against, node, argues), work_out)
