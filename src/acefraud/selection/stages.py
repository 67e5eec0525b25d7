"""The five stages of a selection: contextual, quality, semantic, hybrid, diversity. Values in, values out.

The arithmetic of a transaction does not depend on the others in its batch, so a selection is the same to the last bit
whichever way it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Source
from acefraud.core.bullet_table import (
    FEW,
    FEW_ROWS,
    BulletTable,
    Wording,
    Words,
    counts_of,
    packed,
    rows_of_each,
    words_for,
)
from acefraud.core.table import FactTable
from acefraud.errors import ConfigurationError
from acefraud.roles.embedded.embedder import CachedEmbedder, whole
from acefraud.roles.protocols import Embedder, Facts, Vectors
from acefraud.selection.bullet_stats import BulletStats, beta, good_in_use
from acefraud.support.arguments import check_type
from acefraud.support.arrays import BoolArray, FloatArray, IntArray

MOST_COMPARED = 2_048
"""In a playbook of up to this many bullets, each cosine is computed once. Their table takes up to 16 MB."""


@dataclass(frozen=True, slots=True)
class Directions:
    """Vectors in whole numbers, as `whole` makes them, and the squares of their lengths."""

    vectors: Vectors
    squares: FloatArray

    @classmethod
    def of(cls, vectors: Vectors) -> Directions:
        """From vectors of any length."""
        rounded = whole(vectors)
        return cls(rounded, np.vecdot(rounded, rounded).astype(np.float64))

    @classmethod
    def none(cls, count: int, dimensions: int) -> Directions:
        """Rows to be filled."""
        return cls(np.zeros((count, dimensions), dtype=np.float32), np.zeros(count))

    def take(self, rows: IntArray | int) -> Directions:
        """Some of them."""
        return Directions(self.vectors[rows], self.squares[rows])

    def cosines(self, others: Directions) -> Vectors:
        """The cosine of each with its counterpart, or with the only other one."""
        lengths = np.sqrt(np.maximum(self.squares * others.squares, 1.0))
        cosines: Vectors = (np.vecdot(self.vectors, others.vectors) / lengths).astype(np.float32)
        return cosines


class Likeness:
    """How much bullets resemble each other: the cosines of their vectors."""

    def __init__(self, matrix: Directions, known: tuple[BoolArray, Vectors] | None = None) -> None:
        """With a table of `known` cosines, and of which rows of it are filled, each cosine is computed once."""
        self._matrix = matrix
        self._known = known

    def to_one(self, rows: IntArray) -> Callable[[int], Vectors]:
        """A function that gives the cosines of one bullet with these ones."""
        if self._known is not None:
            return lambda picked: self._filled(picked).take(rows)
        matrix, some = self._matrix, self._matrix.take(rows)
        return lambda picked: some.cosines(matrix.take(picked))

    def to_each(self, picked: IntArray, rows: IntArray) -> Vectors:
        """The cosines of some bullets, one for each row of a table of bullets, with the bullets in that row."""
        found: Vectors
        if self._known is None:
            found = self._matrix.take(rows).cosines(self._matrix.take(picked[:, None]))
        else:
            filled, cosines = self._known
            if not filled[picked].all():
                for row in np.unique(picked[~filled[picked]]).tolist():
                    self._filled(row)
            found = cosines.ravel().take(picked[:, None] * len(cosines) + rows)  # faster than with two indices
        return found

    def _filled(self, row: int) -> Vectors:
        assert self._known is not None
        filled, cosines = self._known
        if not filled[row]:
            cosines[row], filled[row] = self._matrix.cosines(self._matrix.take(row)), True
        found: Vectors = cosines[row]
        return found


class BulletVectors:
    """Embeds bullets when they are first needed. Counters leave the matrix as it is, and no text is embedded twice."""

    def __init__(self, embedder: Embedder) -> None:
        # An embedder that fetches ahead keeps its vectors itself.
        self._embedder: Embedder = embedder if embedder.fetches_ahead else CachedEmbedder(embedder)
        self._matrices: WeakKeyDictionary[Wording, tuple[BoolArray, Directions]] = WeakKeyDictionary()
        self._cosines: WeakKeyDictionary[Wording, tuple[BoolArray, Vectors]] = WeakKeyDictionary()

    def matrix(self, table: BulletTable, rows: IntArray) -> Directions:
        """A row for each bullet, in which at least these rows, one or more, are filled."""
        filled, matrix = self._matrices.get(table.wording) or (np.zeros(len(table), dtype=np.bool_), None)
        # What comes over a network is asked for only if it is needed.
        missing = rows[~filled[rows]] if self._embedder.fetches_ahead else np.flatnonzero(~filled)
        if len(missing) or matrix is None:
            missing = np.unique(missing)
            bullets = (table.bullets[row] for row in missing)
            vectors = self._embedder.embed([self._embedder.presentable_bullet(bullet) for bullet in bullets])
            if matrix is None:
                matrix = Directions.none(len(table), vectors.shape[1])
            found = Directions.of(vectors)
            matrix.vectors[missing], matrix.squares[missing], filled[missing] = found.vectors, found.squares, True
            self._matrices[table.wording] = filled, matrix
        return matrix

    def likeness(self, table: BulletTable, rows: IntArray) -> Likeness:
        """How much bullets resemble each other. Only these rows may be asked about."""
        matrix = self.matrix(table, rows)
        if len(table) > MOST_COMPARED or self._embedder.fetches_ahead:
            return Likeness(matrix)
        known = self._cosines.get(table.wording)
        if known is None:
            size = len(table)
            known = np.zeros(size, dtype=np.bool_), np.zeros((size, size), dtype=np.float32)
            self._cosines[table.wording] = known
        return Likeness(matrix, known)


CELLS = 4_000_000
"""Pairs of a transaction and a bullet that are looked at together."""
STAGES = ("contextual", "quality", "semantic", "hybrid", "diversity")
RELAXATION = 0.8
NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each component counts in the hybrid score."""

    quality: float = 0.3
    semantic: float = 0.4
    thompson: float = 0.3

    @classmethod
    def of(cls, given: Mapping[str, float] | None) -> Weights:
        """These weights, with defaults for those not given. Raises ConfigurationError if they make no sense."""
        parts = "a weight for each of quality, semantic and thompson"
        check_type("weights", given or {}, Mapping, parts, ConfigurationError)
        try:
            weights = cls(**(given or {}))
        except TypeError:
            found = sorted(given or {})
            raise ConfigurationError(f"weights takes quality, semantic and thompson, got {found}") from None
        if not all(math.isfinite(part) and part >= 0 for part in (weights.quality, weights.semantic, weights.thompson)):
            raise ConfigurationError(f"weights must be numbers that are not negative, got {given}")
        return weights


@dataclass(frozen=True, slots=True)
class Request:
    """What to select from, and how many."""

    table: BulletTable
    node: int | None
    source: Source | None
    base_rate: float
    wanted: int
    proven_only: bool = False
    """Whether to leave out notes, and bullets whose condition an unknown fact leaves open: they are for a language
    model, and never move a decision of the embedded engine."""


class Applicable(NamedTuple):
    """What the facts of a transaction say of the bullets, as bit sets of rows."""

    possible: int
    proven: int


class Candidates(NamedTuple):
    """Bullets in the running for one transaction, by ascending row."""

    rows: IntArray
    relevance: FloatArray


NO_CANDIDATES = Candidates(NO_ROWS, np.empty(0))


class Passed(NamedTuple):
    """The bullets that passed the first two stages for one transaction."""

    in_context: int
    good: int
    proven: IntArray
    """The rows whose condition holds."""
    prose: IntArray = NO_ROWS
    """The rows that may be relevant by similarity; none if enough are proven to apply."""


def contextual(request: Request, facts: Facts) -> Applicable:
    """Stage 1: drop the bullets whose condition is false here, and notes that nobody has approved.

    Node and source are part of the row sets.
    """
    index = request.table.wording.conditions
    possible, proven = index.match(facts)
    return Applicable(proven if request.proven_only else possible & ~request.table.unapproved_notes().bits, proven)


def quality(request: Request, context: Applicable, threshold: float) -> Passed:
    """Stage 2: keep the bullets with a good record. If these are too few, a slightly worse one will do."""
    table, node, source = request.table, request.node, request.source
    in_context = (table.in_use(node, source).bits & context.possible).bit_count()
    good = 0
    for least in (threshold, RELAXATION * threshold):
        good = good_in_use(table, node, source, request.base_rate, least).bits & context.possible
        if good.bit_count() >= request.wanted:
            break
    proven = _rows(good & context.proven, len(table))
    if len(proven) >= request.wanted:
        return Passed(in_context, good.bit_count(), proven)
    return Passed(in_context, good.bit_count(), proven, _rows(good & ~context.proven, len(table)))


def passed_by(request: Request, facts: Sequence[Facts], threshold: float) -> list[Passed]:
    """Stages 1 and 2 for many transactions."""
    if len(facts) < FEW_ROWS:
        return [quality(request, contextual(request, each), threshold) for each in facts]
    at_once = max(FEW_ROWS, CELLS // max(1, len(request.table)))
    parts = [facts[start : start + at_once] for start in range(0, len(facts), at_once)]
    return [passed for part in parts for passed in _passed_together(request, FactTable(part), threshold)]


def _passed_together(request: Request, facts: FactTable, threshold: float) -> list[Passed]:
    table, index = request.table, request.table.wording.conditions
    words = words_for(len(table))
    possible = proven = index.proven_in(facts)
    if not request.proven_only:
        possible = index.possible_in(facts) & ~packed([table.unapproved_notes().bits], words)
    good = good_of(request, possible, threshold)
    applies = good & proven
    resembles = np.where((counts_of(applies) >= request.wanted)[:, None], np.uint64(0), good & ~proven)
    in_context = counts_of(possible & packed([table.in_use(request.node, request.source).bits], words))
    rows = (rows_of_each(some, len(table)) for some in (applies, resembles))
    return [Passed(*columns) for columns in zip(in_context.tolist(), counts_of(good).tolist(), *rows, strict=True)]


def good_of(request: Request, possible: Words, threshold: float) -> Words:
    """Stage 2 for many transactions, as bit sets: the bullets with a good record, or a slightly worse one."""
    table, node, source, words = request.table, request.node, request.source, words_for(len(request.table))
    strict, relaxed = (
        possible & packed([good_in_use(table, node, source, request.base_rate, least).bits], words)
        for least in (threshold, RELAXATION * threshold)
    )
    return np.where((counts_of(strict) >= request.wanted)[:, None], strict, relaxed)


def semantic_by_proof(rows: IntArray, strength: FloatArray, threshold: float) -> Candidates:
    """Stage 3 for bullets whose condition holds: relevance from the threshold to 1, by how far they move a decision."""
    strength = strength[rows]
    largest = strength.max(initial=0.0)
    share = strength / largest if largest > 0 else np.ones(len(strength))
    return Candidates(rows, threshold + (1 - threshold) * share)


def all_semantic_by_proof(each: Sequence[IntArray], strength: FloatArray, threshold: float) -> list[Candidates]:
    """Stage 3 for many transactions, as `semantic_by_proof` does it for one."""
    if len(each) < FEW:
        return [semantic_by_proof(rows, strength, threshold) for rows in each]
    lengths = np.array([len(rows) for rows in each])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    flat = strength[np.concatenate(each)]
    largest = np.maximum.reduceat(np.append(flat, 0.0), starts[:-1])
    of_each = np.repeat(np.where(lengths > 0, largest, 0.0), lengths)
    share = np.divide(flat, of_each, out=np.ones(len(flat)), where=of_each > 0)
    relevance = threshold + (1 - threshold) * share
    ends = starts.tolist()
    return [Candidates(rows, relevance[start:end]) for rows, start, end in zip(each, ends, ends[1:], strict=False)]


def semantic_by_cosine(rows: IntArray, matrix: Directions, query: Directions, threshold: float) -> Candidates:
    """Stage 3 for bullets in prose: those whose cosine with the query reaches the threshold."""
    cosines = matrix.take(rows).cosines(query)
    near = cosines >= threshold
    return Candidates(rows[near], cosines[near].astype(np.float64))


def hybrid(success: FloatArray, relevance: FloatArray, draws: FloatArray, weights: Weights) -> FloatArray:
    """Stage 4: the weighted sum of record, relevance and draw."""
    return weights.quality * success + weights.semantic * relevance + weights.thompson * draws


def diversity(
    scores: FloatArray, rows: IntArray, likeness: Likeness, wanted: int, weight: float, *, picked: IntArray
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Stage 5, for many transactions: each place goes to the best sum of score and difference from those picked.

    `scores` has a row for each transaction and a column for each candidate, `rows` the candidates themselves. `picked`
    are those that were picked before, -1 where there is none. Returns the columns of the picks in order, and the bonus
    of each.
    """
    each = np.arange(len(scores))
    places = np.zeros((len(scores), wanted), dtype=np.intp)
    bonuses = np.zeros((len(scores), wanted))
    left, alike, bonus = scores.copy(), np.zeros(scores.shape), np.zeros(scores.shape)
    for before in picked.T:
        alike += np.where(before[:, None] >= 0, likeness.to_each(np.maximum(before, 0), rows), np.float32(0))
    counts = (picked >= 0).sum(axis=1)[:, None]
    others = np.maximum(counts, 1)
    for turn in range(wanted):
        if turn or picked.shape[1]:  # the first of all differs from nobody
            np.divide(alike, counts + turn if turn else others, out=bonus)
            np.subtract(1, bonus, out=bonus)
            bonus *= weight
            if not turn:
                bonus[counts[:, 0] == 0] = 0.0
        best = (left + bonus).argmax(axis=1)
        places[:, turn], bonuses[:, turn] = best, bonus[each, best]
        if turn + 1 < wanted:
            left[each, best] = -math.inf
            alike += likeness.to_each(rows[each, best], rows)
    return places, bonuses


def diversity_alone(
    scores: FloatArray, rows: IntArray, likeness: Likeness, wanted: int, weight: float, *, picked: Sequence[int]
) -> tuple[list[int], list[float]]:
    """Diversity for one transaction, with the same arithmetic and a third of the calls."""
    if wanted == 1 and not picked:  # it is compared with nothing
        return [int(scores.argmax())], [0.0]
    to_one = likeness.to_one(rows)
    left, alike, bonus = scores.copy(), np.zeros(len(scores)), np.zeros(len(scores))
    for before in picked:
        alike += to_one(before)
    places, bonuses = [], []
    for turn in range(wanted):
        if others := len(picked) + turn:
            np.divide(alike, others, out=bonus)
            np.subtract(1, bonus, out=bonus)
            np.multiply(bonus, weight, out=bonus)
        best = int((left + bonus).argmax())
        places.append(best)
        bonuses.append(float(bonus[best]))
        if turn + 1 < wanted:
            left[best] = -math.inf
            alike += to_one(int(rows[best]))
    return places, bonuses


def _rows(bits: int, count: int) -> IntArray:
    raw = np.frombuffer(bits.to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(raw, bitorder="little", count=count))


TABLE_CELLS = 32_768
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
        some = [candidates[at] for at in batch]
        rows, parts = _pick_batch(some, wanted[which], [keys[at] for at in batch], picks.rows[which], ranking)
        turns = np.arange(rows.shape[1])
        row, turn = np.nonzero(turns < np.minimum(wanted[which], [len(each.rows) for each in some])[:, None])
        into = which[row], taken[which][row] + turn
        picks.rows[into], picks.parts[into] = rows[row, turn], parts[row, turn]


def _batches(sizes: Sequence[int], wanted: IntArray) -> Iterator[list[int]]:
    """Transactions with about as many candidates, which waste the least room in a table."""
    batch: list[int] = []
    for index in sorted(range(len(sizes)), key=sizes.__getitem__):
        if not sizes[index] or not wanted[index]:
            continue
        if batch and (len(batch) + 1) * sizes[index] > TABLE_CELLS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _pick_batch(
    batch: Sequence[Candidates], wanted: IntArray, keys: Sequence[np.uint64 | None], before: IntArray, ranking: Ranking
) -> tuple[IntArray, FloatArray]:
    """As many picks for each transaction as any of them wants."""
    stats = ranking.stats
    lengths = np.array([len(some.rows) for some in batch])
    is_candidate: BoolArray = np.arange(lengths.max()) < lengths[:, None]
    flat = np.concatenate([some.rows for some in batch])
    rows = np.zeros(is_candidate.shape, dtype=np.int64)
    rows[is_candidate] = flat
    relevance, draws = np.zeros(is_candidate.shape), np.zeros(is_candidate.shape)
    relevance[is_candidate] = np.concatenate([some.relevance for some in batch])
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
    for index, part in enumerate((success, relevance, draws, combined)):
        parts[:, :, index] = part[each, places]
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
        return Likeness(Directions.none(0, 0))
    return ranking.likeness_of(np.concatenate([rows, before]) if len(before) else rows)


def _draws(keys: Sequence[np.uint64 | None], rows: IntArray, lengths: IntArray, stats: BulletStats) -> FloatArray:
    shapes = stats.shapes.take(rows)
    drawn_from = [key for key in keys if key is not None]
    if not drawn_from:
        return shapes.expected
    return beta(stats.keys[rows] ^ np.repeat(np.array(drawn_from, dtype=np.uint64), lengths), shapes)
