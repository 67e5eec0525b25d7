"""The five stages of a selection: contextual, quality, semantic, hybrid, diversity. Values in, values out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from acefraud.core.arrays import FloatArray, IntArray
from acefraud.core.bullet import Source
from acefraud.core.bullet_table import BulletTable
from acefraud.core.transaction import FactValue
from acefraud.errors import ConfigurationError
from acefraud.roles.protocols import Vectors
from acefraud.selection.bullet_stats import good_in_use

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
    """Whether to leave out a bullet whose condition an unknown fact leaves open: the embedded engine cannot use it."""


class Context(NamedTuple):
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


def contextual(request: Request, facts: Mapping[str, FactValue]) -> Context:
    """Stage 1: drop the bullets whose condition is false here. Node and source are part of the row sets."""
    index = request.table.wording.conditions
    possible, proven = index.match(facts)
    return Context(proven | (possible & ~index.conditioned) if request.proven_only else possible, proven)


def quality(request: Request, context: Context, threshold: float) -> Passed:
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


def semantic_by_proof(rows: IntArray, strength: FloatArray, threshold: float) -> Candidates:
    """Stage 3 for bullets whose condition holds: relevance from the threshold to 1, by how far they move a decision."""
    strength = strength[rows]
    largest = strength.max(initial=0.0)
    share = strength / largest if largest > 0 else np.ones(len(strength))
    return Candidates(rows, threshold + (1 - threshold) * share)


def semantic_by_cosine(rows: IntArray, matrix: Vectors, query: Vectors, threshold: float) -> Candidates:
    """Stage 3 for bullets in prose: those whose cosine with the query reaches the threshold."""
    cosines = np.vecdot(matrix[rows], query)
    near = cosines >= threshold
    return Candidates(rows[near], cosines[near].astype(np.float64))


def hybrid(success: FloatArray, relevance: FloatArray, draws: FloatArray, weights: Weights) -> FloatArray:
    """Stage 4: the weighted sum of record, relevance and draw."""
    return weights.quality * success + weights.semantic * relevance + weights.thompson * draws


def diversity(
    scores: FloatArray, vectors: Vectors, wanted: int, weight: float, *, picked: Sequence[Vectors], counts: IntArray
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Stage 5, for many transactions: each place goes to the best sum of score and difference from those picked.

    `scores` has a row for each transaction and a column for each candidate, `vectors` their vectors. `picked` are the
    vectors that were picked before, one of each transaction at a time, padded with zeros; `counts` says how many there
    are. Returns the columns of the picks in order, and the bonus of each.
    """
    each = np.arange(len(scores))
    places = np.zeros((len(scores), wanted), dtype=np.intp)
    bonuses = np.zeros((len(scores), wanted))
    left, likeness = scores.copy(), np.zeros(scores.shape)
    for before in picked:
        likeness += np.vecdot(vectors, before[:, None, :])
    for turn in range(wanted):
        count = (counts + turn)[:, None]
        bonus = np.where(count > 0, (1 - likeness / np.maximum(count, 1)) * weight, 0.0)
        best = (left + bonus).argmax(axis=1)
        places[:, turn], bonuses[:, turn] = best, bonus[each, best]
        left[each, best] = -math.inf
        if turn + 1 < wanted:
            likeness += np.vecdot(vectors, vectors[each, best][:, None, :])
    return places, bonuses


def _rows(bits: int, count: int) -> IntArray:
    raw = np.frombuffer(bits.to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(raw, bitorder="little", count=count))
