"""The five stages, one function each. Values in, values out; randomness is an argument."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import Vectors
from acefraud.core.transaction import FactValue

Column = npt.NDArray[np.float64]

RELAXATION = 0.8


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each component counts in the hybrid score."""

    quality: float = 0.3
    semantic: float = 0.4
    thompson: float = 0.3


def contextual(
    snapshot: Snapshot, node: str, source: Source | None, facts: Mapping[str, FactValue]
) -> list[tuple[Bullet, bool]]:
    """Stage 1: the bullets of this node and source that may apply here, and whether that is proven.

    A bullet whose condition is false here is out; one whose condition is left open by an unknown fact stays.
    """
    found = []
    for bullet in snapshot.for_node(node, source):
        truth = bullet.condition.truth(facts) if bullet.condition else None
        if truth is not False:
            found.append((bullet, truth is True))
    return found


def quality(bullets: Sequence[tuple[Bullet, bool]], threshold: float, wanted: int) -> list[tuple[Bullet, bool]]:
    """Stage 2: those with a good enough record; a little less will do where too few are left.

    What an analyst pinned stays, whatever its record.
    """

    def good(least: float) -> list[tuple[Bullet, bool]]:
        return [
            (bullet, proven)
            for bullet, proven in bullets
            if bullet.status is Status.PINNED or bullet.get_success_rate() >= least
        ]

    kept = good(threshold)
    return kept if len(kept) >= wanted else good(RELAXATION * threshold)


def semantic(
    bullets: Sequence[tuple[Bullet, bool]], vectors: Vectors, query: Vectors | None, threshold: float
) -> tuple[list[int], Column]:
    """Stage 3: which of them are relevant, and how much: 1 by proof, else by resemblance to the query."""
    relevance = vectors @ query if query is not None else np.zeros(len(bullets), dtype=np.float32)
    relevance = np.where([proven for _, proven in bullets], 1.0, relevance).astype(np.float64)
    kept = np.flatnonzero(relevance >= threshold)
    return [int(place) for place in kept], relevance[kept]


def thompson(bullets: Sequence[Bullet], generator: np.random.Generator) -> Column:
    """One draw from each bullet's Beta(helpful + 1, harmful + 1)."""
    helpful = np.array([bullet.helpful_count + 1 for bullet in bullets], dtype=np.float64)
    harmful = np.array([bullet.harmful_count + 1 for bullet in bullets], dtype=np.float64)
    return generator.beta(helpful, harmful)


def hybrid(success: Column, relevance: Column, draws: Column, weights: Weights) -> Column:
    """Stage 4: the weighted sum of record, relevance and draw."""
    return weights.quality * success + weights.semantic * relevance + weights.thompson * draws


def diverse(combined: Column, vectors: Vectors, wanted: int, weight: float) -> list[tuple[int, float]]:
    """Stage 5: picks one after another; each place goes to the best sum of score and difference from those picked.

    Returns the picks in order, each with the bonus it had.
    """
    picks: list[tuple[int, float]] = []
    left = np.ones(len(combined), dtype=np.bool_)
    likeness = np.zeros(len(combined))
    while len(picks) < min(wanted, len(combined)):
        bonus = (1 - likeness / len(picks)) * weight if picks else np.zeros(len(combined))
        best = int(np.argmax(np.where(left, combined + bonus, -np.inf)))
        picks.append((best, float(bonus[best])))
        left[best] = False
        likeness += vectors @ vectors[best]
    return picks


def draws_for(seed: int, transaction: str, revision: int) -> np.random.Generator:
    """The generator of one selection: the same for the same seed, transaction and revision of the playbook."""
    digest = hashlib.sha256(f"{seed}\x00{transaction}\x00{revision}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))
