"""The selector over many transactions at once, for bullets that all have a condition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from acefraud.core.book import Book
from acefraud.core.bullet import Bullet
from acefraud.selection.draws import key_for
from acefraud.selection.hybrid import HybridSelector
from acefraud.selection.worth import worth_in

Mask = npt.NDArray[np.bool_]


def cited_in(
    selector: HybridSelector,
    bullets: Sequence[Bullet],
    fired: Mask,
    base_rate: float,
    wanted: int,
    *,
    ids: Sequence[str] | None = None,
    revision: int = 0,
) -> Mask:
    """Which of the bullets that fire (a column for each) the selector picks for each row.

    Without exploration the choice depends only on which bullets fire, so each set of them is looked at once; with it,
    on the id of the transaction too.
    """
    cited = fired.copy()
    book = Book.of(bullets)
    unsure = _to_be_chosen(selector, book, fired, base_rate, wanted)
    if not len(unsure):
        return cited
    packed = np.packbits(fired[unsure], axis=1)
    keys = packed if not selector.explore else np.column_stack([packed, _numbers(len(unsure))])
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    picked = np.zeros((len(first), len(bullets)), dtype=np.bool_)
    for place, row in enumerate(unsure[first]):
        key = key_for(selector.seed, str(row) if ids is None else ids[row], revision) if selector.explore else None
        picked[place, selector.pick_proven(book, np.flatnonzero(fired[row]), base_rate, wanted, key)] = True
    cited[unsure] = picked[which.reshape(-1)]
    return cited


def _to_be_chosen(
    selector: HybridSelector, book: Book, fired: Mask, base_rate: float, wanted: int
) -> npt.NDArray[np.int64]:
    """The rows where more fire than are wanted, or one may be of too little quality. The rest cite all that fire."""
    success = worth_in(book, base_rate).success
    doubtful = success < selector.quality_threshold
    return np.flatnonzero((fired.sum(axis=1) > wanted) | fired[:, doubtful].any(axis=1))


def _numbers(count: int) -> npt.NDArray[np.uint8]:
    return np.arange(count, dtype=np.uint64).view(np.uint8).reshape(count, 8)
