"""The five stages as one would write them down at first: a loop over the bullets, and one over those left per pick."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from acefraud import Bullet, HybridSelector, Status
from benchmarks.speed.prose import NODE, Vectors


def plain_selection(
    selector: HybridSelector, bullets: Sequence[Bullet], vectors: Sequence[Vectors], query: Vectors, wanted: int
) -> list[Bullet]:
    """The bullets picked for a query. ``vectors`` are those of the bullets."""
    dice, weights = random.Random(selector.seed), selector.weights
    left: list[tuple[Bullet, Vectors, float]] = []
    for bullet, vector in zip(bullets, vectors, strict=True):
        if bullet.node != NODE or bullet.status is Status.RETIRED:
            continue
        if bullet.success_rate < selector.quality_threshold:
            continue
        resemblance = cosine(vector, query)
        if resemblance < selector.semantic_threshold:
            continue
        draw = dice.betavariate(bullet.helpful_count + 1, bullet.harmful_count + 1)
        score = weights.quality * bullet.success_rate + weights.semantic * resemblance + weights.thompson * draw
        left.append((bullet, vector, score))
    picked: list[tuple[Bullet, Vectors]] = []
    while left and len(picked) < wanted:
        best = max(range(len(left)), key=lambda place: _total(selector, left[place], picked))
        bullet, vector, _ = left.pop(best)
        picked.append((bullet, vector))
    return [bullet for bullet, _ in picked]


def _total(
    selector: HybridSelector, one: tuple[Bullet, Vectors, float], picked: Sequence[tuple[Bullet, Vectors]]
) -> float:
    """The score, and something for being different from those that were picked before."""
    _, vector, score = one
    if not picked:
        return score
    average = sum(cosine(vector, other) for _, other in picked) / len(picked)
    return score + (1 - average) * selector.diversity_weight


def cosine(one: Vectors, other: Vectors) -> float:
    """How alike two vectors are."""
    return float(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))
