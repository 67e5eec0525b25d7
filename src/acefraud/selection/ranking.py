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

from acefraud.core.arrays import BoolArray, FloatArray, IntArray
from acefraud.roles.protocols import Vectors
from acefraud.selection.bullet_stats import BulletStats
from acefraud.selection.draws import beta
from acefraud.selection.stages import Candidates, Weights, diversity, hybrid

CELLS = 16_384
"""Candidates in one table, so that their vectors take about 16 MB."""


class Pick(NamedTuple):
    """A bullet that was picked, by its row in the table of bullets, with every component of its score."""

    row: int
    quality: float
    semantic: float
    thompson: float
    combined: float
    diversity: float


class Shortlist(NamedTuple):
    """The candidates for one transaction, and how many of them to pick."""

    candidates: Candidates
    wanted: int
    key: np.uint64 | None
    """What draws start from; None for the expected value in place of a draw."""
    picked: Sequence[Pick] = ()
    """Bullets that were picked before, which the new ones should differ from."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """How candidates are compared."""

    stats: BulletStats
    matrix_with: Callable[[IntArray], Vectors]
    """The vectors of bullets, with at least these rows filled."""
    weights: Weights
    diversity_weight: float


def picks_of(shortlists: Sequence[Shortlist], ranking: Ranking) -> list[list[Pick]]:
    """The picks of each shortlist, best first."""
    found: list[list[Pick]] = [[] for _ in shortlists]
    for places in _batches(shortlists):
        picks = _pick_batch([shortlists[place] for place in places], ranking)
        for place, some in zip(places, picks, strict=True):
            found[place] = some
    return found


def _batches(shortlists: Sequence[Shortlist]) -> Iterator[list[int]]:
    """Shortlists of about the same size, which waste the least room in a table."""
    sizes = {place: len(one.candidates.rows) for place, one in enumerate(shortlists)}
    batch: list[int] = []
    for place in sorted(sizes, key=sizes.__getitem__):
        if not sizes[place] or not shortlists[place].wanted:
            continue
        if batch and (len(batch) + 1) * sizes[place] > CELLS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _pick_batch(batch: Sequence[Shortlist], ranking: Ranking) -> list[list[Pick]]:
    stats = ranking.stats
    lengths = np.array([len(one.candidates.rows) for one in batch])
    is_candidate: BoolArray = np.arange(lengths.max()) < lengths[:, None]
    flat = np.concatenate([one.candidates.rows for one in batch])
    rows = np.zeros(is_candidate.shape, dtype=np.int64)
    rows[is_candidate] = flat
    relevance, draws = np.zeros(is_candidate.shape), np.zeros(is_candidate.shape)
    relevance[is_candidate] = np.concatenate([one.candidates.relevance for one in batch])
    draws[is_candidate] = _draws(batch, flat, lengths, stats)
    success = stats.success[rows]
    combined = hybrid(success, relevance, draws, ranking.weights)
    places_wanted = [min(one.wanted, len(one.candidates.rows)) for one in batch]
    counts = np.array([len(one.picked) for one in batch])
    most = max(places_wanted)
    vectors, before = _vectors(batch, rows, flat, most, ranking)
    scores = np.where(is_candidate, combined, -math.inf)
    places, bonuses = diversity(scores, vectors, most, ranking.diversity_weight, picked=before, counts=counts)
    parts = (rows, success, relevance, draws, combined)
    each = np.arange(len(batch))[:, None]
    columns = [part[each, places].tolist() for part in parts]
    of_each = zip(*columns, bonuses.tolist(), places_wanted, strict=True)
    return [[Pick(*one) for one in zip(*parts, strict=True)][:wanted] for *parts, wanted in of_each]


def _draws(batch: Sequence[Shortlist], rows: IntArray, lengths: IntArray, stats: BulletStats) -> FloatArray:
    shapes = stats.shapes.take(rows)
    keys = [one.key for one in batch if one.key is not None]
    if not keys:
        return shapes.expected
    return beta(stats.keys[rows] ^ np.repeat(np.array(keys, dtype=np.uint64), lengths), shapes)


def _vectors(
    batch: Sequence[Shortlist], rows: IntArray, needed: IntArray, wanted: int, ranking: Ranking
) -> tuple[Vectors, list[Vectors]]:
    """The vectors of candidates, and of those picked before; nothing if a single pick differs from nobody."""
    most = max(len(one.picked) for one in batch)
    if wanted == 1 and not most:
        return np.zeros((*rows.shape, 0), dtype=np.float32), []
    earlier = [[one.picked[place].row if place < len(one.picked) else -1 for one in batch] for place in range(most)]
    before = np.array(earlier, dtype=np.int64).reshape(most, len(batch))
    matrix = ranking.matrix_with(np.concatenate([needed, before[before >= 0]]))
    return matrix[rows], [np.where(some[:, None] >= 0, matrix[some], np.float32(0)) for some in before]
