"""The five stages of a selection: contextual, quality, semantic, hybrid, diversity. Values in, values out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Source
from acefraud.core.bullet_table import FEW, BulletTable, Words, packed, rows_of_each, words_for
from acefraud.core.transaction import FactValue
from acefraud.errors import ConfigurationError
from acefraud.roles.protocols import Vectors
from acefraud.selection.bullet_stats import good_in_use
from acefraud.selection.vectors import Likeness
from acefraud.support.arguments import check_type
from acefraud.support.arrays import FloatArray, IntArray

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


def contextual(request: Request, facts: Mapping[str, FactValue]) -> Applicable:
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


def passed_by(request: Request, facts: Sequence[Mapping[str, FactValue]], threshold: float) -> list[Passed]:
    """Stages 1 and 2 for many transactions."""
    if len(facts) < FEW:
        return [quality(request, contextual(request, each), threshold) for each in facts]
    at_once = max(FEW, CELLS // max(1, len(request.table)))
    parts = [facts[start : start + at_once] for start in range(0, len(facts), at_once)]
    return [one for part in parts for one in _passed_together(request, part, threshold)]


def _passed_together(request: Request, facts: Sequence[Mapping[str, FactValue]], threshold: float) -> list[Passed]:
    table, node, source = request.table, request.node, request.source
    index = table.wording.conditions
    words = words_for(len(table))
    possible, proven = index.match_all(facts)
    possible &= proven if request.proven_only else ~packed([table.unapproved_notes().bits], words)
    least = (threshold, RELAXATION * threshold)
    good_enough = [good_in_use(table, node, source, request.base_rate, one).bits for one in least]
    in_use, strict, relaxed = (
        possible & packed([bits], words) for bits in (table.in_use(node, source).bits, *good_enough)
    )
    good = np.where((_counts(strict) >= request.wanted)[:, None], strict, relaxed)
    applies = good & proven
    resembles = np.where((_counts(applies) >= request.wanted)[:, None], np.uint64(0), good & ~proven)
    in_context, left = _counts(in_use).tolist(), _counts(good).tolist()
    rows = (rows_of_each(some, len(table)) for some in (applies, resembles))
    return [Passed(*one) for one in zip(in_context, left, *rows, strict=True)]


def _counts(rows: Words) -> IntArray:
    counts: IntArray = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    return counts


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


def semantic_by_cosine(rows: IntArray, matrix: Vectors, query: Vectors, threshold: float) -> Candidates:
    """Stage 3 for bullets in prose: those whose cosine with the query reaches the threshold."""
    cosines = np.vecdot(matrix[rows], query)
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
