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
from acefraud.core.transaction import FactValue, Verdict

Column = npt.NDArray[np.float64]

RELAXATION = 0.8
RAREST = 1e-6
"""A share of fraud, or of honesty, below this counts as this."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each component counts in the hybrid score."""

    quality: float = 0.3
    semantic: float = 0.4
    thompson: float = 0.3


def contextual(
    snapshot: Snapshot, node: str, source: Source | None, facts: Mapping[str, FactValue]
) -> list[tuple[Bullet, bool]]:
    """Stage 1: the bullets of this node and source that may apply here, those for which that is proven first.

    A bullet whose condition is false here is out; one whose condition is left open by an unknown fact stays.
    """
    found = []
    for bullet in snapshot.for_node(node, source):
        truth = bullet.condition.truth(facts) if bullet.condition else None
        if truth is not False:
            found.append((bullet, truth is True))
    return sorted(found, key=lambda one: not one[1])


def quality(bullets: Sequence[tuple[Bullet, bool]], merits: Column, threshold: float, wanted: int) -> list[int]:
    """Stage 2: the places of those with a good enough record; a little less will do where too few are left.

    What an analyst pinned stays, whatever its record.
    """
    success = success_of(merits)

    def good(least: float) -> list[int]:
        return [
            place
            for place, (bullet, _) in enumerate(bullets)
            if bullet.status is Status.PINNED or success[place] >= least
        ]

    kept = good(threshold)
    return kept if len(kept) >= wanted else good(RELAXATION * threshold)


def merits_of(bullets: Sequence[Bullet], base_rate: float) -> Column:
    """For and against each bullet: two columns of counts.

    Where fraud and honesty are equally common these are the helpful and harmful decisions of the ACE system. The rarer
    fraud is, the more they give way to the bullet's own record, counted as if both were equally common: at 1 % fraud
    nearly every decision is right whatever a bullet said, while one that is right one time in five is gold.
    """
    base = min(max(base_rate, RAREST), 1 - RAREST)
    return np.array([_merits(bullet, base) for bullet in bullets], dtype=np.float64).reshape(-1, 2)


def _merits(bullet: Bullet, base_rate: float) -> tuple[float, float]:
    balance = 4 * base_rate * (1 - base_rate)
    helpful, harmful = balance * bullet.helpful_count, balance * bullet.harmful_count
    record = bullet.whole_record
    if bullet.argues is None or not record.support:
        return helpful, harmful
    fraud = record.balanced_precision(base_rate)
    right = fraud if bullet.argues is Verdict.DECLINE else 1 - fraud
    own = (1 - balance) * record.support
    return helpful + own * right, harmful + own * (1 - right)


def success_of(merits: Column) -> Column:
    """The share that speaks for each bullet; 0.5 while nothing is known."""
    total = merits.sum(axis=1)
    return np.where(total > 0, merits[:, 0] / np.where(total > 0, total, 1), 0.5)


def semantic(
    bullets: Sequence[tuple[Bullet, bool]],
    contributions: Column,
    vectors: Vectors,
    query: Vectors | None,
    threshold: float,
) -> tuple[list[int], Column]:
    """Stage 3: which of them are relevant, and how much.

    A bullet whose condition holds is relevant by proof: between the threshold and 1, the more it moves the decision.
    A bullet in prose is relevant by its resemblance to the query.
    """
    proven = np.array([proven for _, proven in bullets], dtype=np.bool_)
    resemblance = vectors @ query if query is not None else np.zeros(len(bullets), dtype=np.float32)
    strength = np.abs(contributions)
    largest = float(strength[proven].max(initial=0.0))
    share = strength / largest if largest > 0 else np.ones(len(bullets))
    relevance = np.where(proven, threshold + (1 - threshold) * share, resemblance).astype(np.float64)
    kept = np.flatnonzero(proven | (relevance >= threshold))
    return [int(place) for place in kept], relevance[kept]


def thompson(merits: Column, generator: np.random.Generator | None) -> Column:
    """One draw from each bullet's Beta(for + 1, against + 1); without a generator, what is expected of it."""
    if generator is None:
        expected: Column = (merits[:, 0] + 1) / (merits.sum(axis=1) + 2)
        return expected
    return generator.beta(merits[:, 0] + 1, merits[:, 1] + 1)


def hybrid(success: Column, relevance: Column, draws: Column, weights: Weights) -> Column:
    """Stage 4: the weighted sum of record, relevance and draw."""
    return weights.quality * success + weights.semantic * relevance + weights.thompson * draws


def diverse(
    combined: Column, proven: Sequence[bool], vectors: Vectors, wanted: int, weight: float
) -> list[tuple[int, float]]:
    """Stage 5: picks one after another; each place goes to the best sum of score and difference from those picked.

    What merely resembles never takes the place of what is proven to apply. Returns the picks in order, each with the
    bonus it had.
    """
    picks: list[tuple[int, float]] = []
    left = np.ones(len(combined), dtype=np.bool_)
    first = np.asarray(proven, dtype=np.bool_)
    likeness = np.zeros(len(combined))
    while len(picks) < min(wanted, len(combined)):
        bonus = (1 - likeness / len(picks)) * weight if picks else np.zeros(len(combined))
        open_to = left & first if (left & first).any() else left
        best = int(np.argmax(np.where(open_to, combined + bonus, -np.inf)))
        picks.append((best, float(bonus[best])))
        left[best] = False
        likeness += vectors @ vectors[best]
    return picks


def draws_for(seed: int, transaction: str, revision: int) -> np.random.Generator:
    """The generator of one selection: the same for the same seed, transaction and revision of the playbook."""
    digest = hashlib.sha256(f"{seed}\x00{transaction}\x00{revision}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))
