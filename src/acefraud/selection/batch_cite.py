"""Which bullets the selector cites for each row of a table of transactions, where every bullet has a condition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from acefraud.core.arrays import BoolArray
from acefraud.core.bullet import Bullet
from acefraud.core.bullet_table import BulletTable, RowSet
from acefraud.selection.bullet_stats import stats_of
from acefraud.selection.draws import key_for
from acefraud.selection.hybrid import HybridSelector


def cited_in(
    selector: HybridSelector,
    bullets: Sequence[Bullet],
    fired: BoolArray,
    base_rate: float,
    wanted: int,
    *,
    ids: Sequence[str] | None = None,
    revision: int = 0,
) -> BoolArray:
    """Which of the bullets of a node that fire (a column for each) the selector picks for each row.

    Without exploration the choice depends only on which bullets fire, so it is made once for each set of them.
    """
    cited = fired.copy()
    table = BulletTable.of(bullets)
    doubtful = stats_of(table, base_rate).success < selector.quality_threshold
    # The other rows cite all that fire.
    rows = np.flatnonzero((fired.sum(axis=1) > wanted) | fired[:, doubtful].any(axis=1))
    if not len(rows):
        return cited
    packed = np.packbits(fired[rows], axis=1)
    sets = np.column_stack([packed, _row_numbers(len(rows))]) if selector.explore else packed
    _, first, which = np.unique(sets, axis=0, return_index=True, return_inverse=True)
    distinct = rows[first]
    keys = [
        key_for(selector.seed, str(row) if ids is None else ids[row], revision) if selector.explore else None
        for row in distinct
    ]
    chosen = selector.pick_fired(table, [RowSet(fired[row]).bits for row in distinct], base_rate, wanted, keys)
    picked = np.zeros((len(distinct), len(bullets)), dtype=np.bool_)
    picked[np.nonzero(chosen >= 0)[0], chosen[chosen >= 0]] = True
    cited[rows] = picked[which.reshape(-1)]
    return cited


def _row_numbers(count: int) -> npt.NDArray[np.uint8]:
    """A different row of bytes for each number."""
    return np.arange(count, dtype=np.uint64).view(np.uint8).reshape(count, 8)
