"""Stages 4 and 5 for many transactions at once, in tables of a row for each transaction.

The arithmetic of a transaction does not depend on the others in its table, so a selection is the same to the last bit
whichever way it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from acefraud.selection.bullet_stats import BulletStats
from acefraud.selection.draws import beta
from acefraud.selection.stages import Candidates, Weights, diversity, diversity_alone, hybrid
from acefraud.selection.vectors import Likeness
from acefraud.support.arrays import BoolArray, FloatArray, IntArray

CELLS = 32_768
"""Candidates in one table."""


class Pick(NamedTuple):
    """A bullet that was picked, by its row in the table of bullets, with every component of its score."""

    row: int
    quality: float
    semantic: float
    thompson: float
    combined: float
    diversity: float


class Picks:
    """The picks for many transactions, in columns: a row for each transaction, a column for each place.

    >>> picks = Picks.none(transactions=2, wanted=3)
    >>> picks.counts.tolist(), picks[0]
    ([0, 0], [])
    """

    def __init__(self, rows: IntArray, parts: FloatArray) -> None:
        self.rows = rows
        """The rows of the bullets, -1 after the last pick."""
        self.parts = parts
        """For each pick its quality, semantic, thompson, combined and diversity scores."""

    @classmethod
    def none(cls, transactions: int, wanted: int) -> Picks:
        """No picks yet, with room for as many as are wanted."""
        return cls(np.full((transactions, wanted), -1), np.zeros((transactions, wanted, len(Pick._fields) - 1)))

    @property
    def counts(self) -> IntArray:
        """How many were picked for each transaction."""
        counts: IntArray = (self.rows >= 0).sum(axis=1)
        return counts

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> list[Pick]:
        rows = self.rows[place]
        found = rows[rows >= 0].tolist()
        return [Pick(row, *parts) for row, parts in zip(found, self.parts[place].tolist(), strict=False)]

    def __iter__(self) -> Iterator[list[Pick]]:
        return (self[place] for place in range(len(self)))


@dataclass(frozen=True, slots=True)
class Ranking:
    """How candidates are compared."""

    stats: BulletStats
    likeness_of: Callable[[IntArray], Likeness]
    """How much bullets resemble each other, if only these rows are asked about."""
    weights: Weights
    diversity_weight: float


def add_picks(
    picks: Picks, candidates: Sequence[Candidates], keys: Sequence[np.uint64 | None], ranking: Ranking
) -> None:
    """Fill the places that are left with the best candidates of each transaction, best first.

    Draws start from `keys`; where there is none, the expected value takes the place of a draw.
    """
    if not any(len(some.rows) for some in candidates):
        return
    if len(candidates) == 1:
        _add_alone(picks, candidates[0], keys, ranking)
        return
    taken = picks.counts
    wanted = picks.rows.shape[1] - taken
    for batch in _batches([len(some.rows) for some in candidates], wanted):
        which = np.array(batch)
        some = [candidates[place] for place in batch]
        rows, parts = _pick_batch(some, wanted[which], [keys[place] for place in batch], picks.rows[which], ranking)
        turns = np.arange(rows.shape[1])
        row, turn = np.nonzero(turns < np.minimum(wanted[which], [len(one.rows) for one in some])[:, None])
        into = which[row], taken[which][row] + turn
        picks.rows[into], picks.parts[into] = rows[row, turn], parts[row, turn]


def _batches(sizes: Sequence[int], wanted: IntArray) -> Iterator[list[int]]:
    """Transactions with about as many candidates, which waste the least room in a table."""
    batch: list[int] = []
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        if not sizes[place] or not wanted[place]:
            continue
        if batch and (len(batch) + 1) * sizes[place] > CELLS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _pick_batch(
    batch: Sequence[Candidates], wanted: IntArray, keys: Sequence[np.uint64 | None], before: IntArray, ranking: Ranking
) -> tuple[IntArray, FloatArray]:
    """As many picks for each transaction as any of them wants."""
    stats = ranking.stats
    lengths = np.array([len(one.rows) for one in batch])
    is_candidate: BoolArray = np.arange(lengths.max()) < lengths[:, None]
    flat = np.concatenate([one.rows for one in batch])
    rows = np.zeros(is_candidate.shape, dtype=np.int64)
    rows[is_candidate] = flat
    relevance, draws = np.zeros(is_candidate.shape), np.zeros(is_candidate.shape)
    relevance[is_candidate] = np.concatenate([one.relevance for one in batch])
    draws[is_candidate] = _draws(keys, flat, lengths, stats)
    success = stats.success[rows]
    combined = hybrid(success, relevance, draws, ranking.weights)
    most = int(np.minimum(wanted, lengths).max())
    before = before[:, : int((before >= 0).sum(axis=1).max(initial=0))]
    likeness = _likeness(ranking, flat, before[before >= 0], most)
    scores = np.where(is_candidate, combined, -math.inf)
    places, bonuses = diversity(scores, rows, likeness, most, ranking.diversity_weight, picked=before)
    each = np.arange(len(batch))[:, None]
    parts = np.empty((*places.shape, 5))
    for place, part in enumerate((success, relevance, draws, combined)):
        parts[:, :, place] = part[each, places]
    parts[:, :, 4] = bonuses
    return rows[each, places], parts


def _add_alone(picks: Picks, candidates: Candidates, keys: Sequence[np.uint64 | None], ranking: Ranking) -> None:
    """The picks for a single transaction: the same arithmetic, without tables."""
    before = picks.rows[0]
    taken = int((before >= 0).sum())
    stats, rows, relevance = ranking.stats, candidates.rows, candidates.relevance
    most = min(len(before) - taken, len(rows))
    if most == 0:
        return
    draws = _draws(keys, rows, np.array([len(rows)]), stats)
    success = stats.success[rows]
    combined = hybrid(success, relevance, draws, ranking.weights)
    likeness = _likeness(ranking, rows, before[:taken], most)
    picked = before[:taken].tolist()
    places, bonuses = diversity_alone(combined, rows, likeness, most, ranking.diversity_weight, picked=picked)
    into = slice(taken, taken + most)
    picks.rows[0, into] = rows[places]
    parts = picks.parts[0, into]
    for column, part in enumerate((success, relevance, draws, combined)):
        parts[:, column] = part[places]
    parts[:, 4] = bonuses


def _likeness(ranking: Ranking, rows: IntArray, before: IntArray, most: int) -> Likeness:
    """How much candidates resemble each other and those picked before. A single pick is compared with nothing."""
    if most == 1 and not len(before):
        return Likeness(np.empty((0, 0), dtype=np.float32))
    return ranking.likeness_of(np.concatenate([rows, before]) if len(before) else rows)


def _draws(keys: Sequence[np.uint64 | None], rows: IntArray, lengths: IntArray, stats: BulletStats) -> FloatArray:
    shapes = stats.shapes.take(rows)
    drawn_from = [key for key in keys if key is not None]
    if not drawn_from:
        return shapes.expected
    return beta(stats.keys[rows] ^ np.repeat(np.array(drawn_from, dtype=np.uint64), lengths), shapes)
