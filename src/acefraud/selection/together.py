"""Stages 3 to 5 for many transactions at once, where all that may be picked is proven to apply.

The arithmetic is that of one transaction, element by element, so the outcome is the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.selection.contest import Pick, Weights, hybrid
from acefraud.selection.draws import Keys, Shapes, beta
from acefraud.selection.stages import Asked, Kept
from acefraud.selection.vectors import BookVectors
from acefraud.selection.worth import Column, Mask, drawn_from, worth_in

WIDEST = 256
"""Candidates of one transaction, beyond which it is looked at by itself."""
TOGETHER = 64
"""Transactions that are computed in one table."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """What a selector has to say about scores."""

    semantic_threshold: float
    weights: Weights
    diversity: float


def can_be_together(kept: Kept) -> bool:
    """Whether all of a transaction's candidates are proven, and not too many to be looked at as a whole."""
    return not kept.prose and 0 < len(kept.proven) <= WIDEST


def picked_together(
    asked: Asked, kept: Sequence[Kept], keys: Sequence[np.uint64 | None], scoring: Scoring, vectors: BookVectors
) -> list[list[tuple[int, Pick]]]:
    """The picks of each transaction, by their rows in the book."""
    order = sorted(range(len(kept)), key=lambda place: len(kept[place].proven))  # those of a size fill a table best
    found: dict[int, list[tuple[int, Pick]]] = {}
    for start in range(0, len(order), TOGETHER):
        some = order[start : start + TOGETHER]
        picks = _picked(asked, [kept[i] for i in some], [keys[i] for i in some], scoring, vectors)
        found.update(zip(some, picks, strict=True))
    return [found[place] for place in range(len(kept))]


def _picked(
    asked: Asked, kept: Sequence[Kept], keys: Sequence[np.uint64 | None], scoring: Scoring, vectors: BookVectors
) -> list[list[tuple[int, Pick]]]:
    there = _lengths_as_mask([len(one.proven) for one in kept])
    rows = np.zeros(there.shape, dtype=np.int64)
    rows[there] = np.concatenate([one.proven for one in kept])
    distinct, which = np.unique(rows[there], return_inverse=True)
    worth = worth_in(asked.book, asked.base_rate)
    success = _spread(worth.success[distinct][which], there)
    relevance = _relevance(worth.strength[distinct][which], there, scoring)
    own_keys, shapes = drawn_from(asked.book, distinct, asked.base_rate)
    draws = _spread(_draws(own_keys[which], shapes.take(which), there, keys), there)
    combined = hybrid(success, relevance, draws, scoring.weights)
    gathered = vectors.at(asked.book, distinct)
    own = np.zeros((*there.shape, gathered.shape[1]), dtype=np.float32)
    own[there] = gathered[which]
    wanted = min(asked.wanted, there.shape[1])
    places, bonus = _diverse(np.where(there, combined, -math.inf), own, wanted, scoring.diversity)
    each = np.arange(len(kept))[:, None]
    columns = [rows[each, places], places, *(part[each, places] for part in (success, relevance, draws, combined))]
    listed = [column.tolist() for column in (*columns, bonus)]
    return [
        [(row, Pick(*of_pick)) for row, *of_pick in zip(*(column[i] for column in listed), strict=True)][
            : len(one.proven)
        ]
        for i, one in enumerate(kept)
    ]


def _diverse(
    open_to: Column, vectors: npt.NDArray[np.float32], wanted: int, weight: float
) -> tuple[npt.NDArray[np.int64], Column]:
    """Stage 5 for each row: the places picked in order, and the bonus of each."""
    each = np.arange(len(open_to))
    places = np.zeros((len(open_to), wanted), dtype=np.int64)
    bonuses = np.zeros((len(open_to), wanted))
    likeness = np.zeros(open_to.shape)
    bonus = np.zeros(open_to.shape)
    for turn in range(wanted):
        if turn:
            bonus = (1 - likeness / turn) * weight
        best = (open_to + bonus).argmax(axis=1)
        places[:, turn], bonuses[:, turn] = best, bonus[each, best]
        open_to[each, best] = -math.inf
        likeness += np.vecdot(vectors, vectors[each, best][:, None, :])
    return places, bonuses


def _relevance(strength: Column, there: Mask, scoring: Scoring) -> Column:
    spread = _spread(strength, there)
    largest = spread.max(axis=1, keepdims=True)
    share = np.where(largest > 0, spread / np.where(largest > 0, largest, 1.0), 1.0)
    relevance: Column = scoring.semantic_threshold + (1 - scoring.semantic_threshold) * share
    return relevance


def _draws(own: Keys, shapes: Shapes, there: Mask, start: Sequence[np.uint64 | None]) -> Column:
    first = [key for key in start if key is not None]
    if not first:
        return shapes.expected
    return beta(own ^ np.broadcast_to(np.array(first, dtype=np.uint64)[:, None], there.shape)[there], shapes)


def _spread(values: Column, there: Mask) -> Column:
    spread = np.zeros(there.shape)
    spread[there] = values
    return spread


def _lengths_as_mask(lengths: Sequence[int]) -> Mask:
    mask: Mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    return mask
