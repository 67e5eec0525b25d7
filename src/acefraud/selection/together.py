"""Stages 4 and 5 for many transactions at once, where all that may be picked for each is of one kind and not too much.

The arithmetic is that of one transaction, element by element, so the outcome is the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from acefraud.core.roles import Vectors
from acefraud.selection.contest import Pick, Weights, hybrid
from acefraud.selection.draws import Keys, Shapes, beta
from acefraud.selection.stages import Asked, Kept, Resembling
from acefraud.selection.vectors import BookVectors
from acefraud.selection.worth import Column, Mask, Rows, drawn_from, worth_in

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


@dataclass(frozen=True, slots=True)
class Alone:
    """All who may be picked for one transaction: bullets that are proven to apply, or that resemble it."""

    rows: Rows
    key: np.uint64 | None
    """What draws start from; None where nothing is left to chance."""
    query: Vectors | None
    """What they resemble; None where they are proven to apply."""

    @classmethod
    def of(cls, kept: Kept, prose: Resembling, key: np.uint64 | None) -> Alone | None:
        """Where there are bullets of one kind only, and not too many to be looked at as a whole."""
        rows = kept.proven if len(kept.proven) else prose.rows
        mixed = len(kept.proven) and len(prose.rows)
        if mixed or not 0 < len(rows) <= WIDEST:
            return None
        return cls(rows, key, None if len(kept.proven) else prose.query)


def picked_together(
    asked: Asked, fields: Sequence[Alone], scoring: Scoring, vectors: BookVectors
) -> list[list[tuple[int, Pick]]]:
    """The picks of each transaction, by their rows in the book."""
    order = sorted(range(len(fields)), key=lambda i: (fields[i].query is None, len(fields[i].rows)))
    found: dict[int, list[tuple[int, Pick]]] = {}
    for _, group in groupby(order, key=lambda i: fields[i].query is None):
        alike = list(group)  # of one kind and about one size: these fill a table best
        for start in range(0, len(alike), TOGETHER):
            some = alike[start : start + TOGETHER]
            found.update(zip(some, _picked(asked, [fields[i] for i in some], scoring, vectors), strict=True))
    return [found[place] for place in range(len(fields))]


def _picked(
    asked: Asked, fields: Sequence[Alone], scoring: Scoring, vectors: BookVectors
) -> list[list[tuple[int, Pick]]]:
    there = _lengths_as_mask([len(one.rows) for one in fields])
    rows = np.zeros(there.shape, dtype=np.int64)
    rows[there] = np.concatenate([one.rows for one in fields])
    distinct, which = np.unique(rows[there], return_inverse=True)
    gathered = vectors.at(asked.book, distinct)
    own = np.zeros((*there.shape, gathered.shape[1]), dtype=np.float32)
    own[there] = gathered[which]
    worth = worth_in(asked.book, asked.base_rate)
    success = _spread(worth.success[distinct][which], there)
    queries = [one.query for one in fields if one.query is not None]
    if queries:
        relevance = np.vecdot(own, np.stack(queries)[:, None, :]).astype(np.float64)
    else:
        relevance = _relevance(worth.strength[distinct][which], there, scoring)
    own_keys, shapes = drawn_from(asked.book, distinct, asked.base_rate)
    draws = _spread(_draws(own_keys[which], shapes.take(which), there, [one.key for one in fields]), there)
    combined = hybrid(success, relevance, draws, scoring.weights)
    wanted = min(asked.wanted, there.shape[1])
    places, bonus = _diverse(np.where(there, combined, -math.inf), own, wanted, scoring.diversity)
    each = np.arange(len(fields))[:, None]
    columns = [rows[each, places], places, *(part[each, places] for part in (success, relevance, draws, combined))]
    listed = [column.tolist() for column in (*columns, bonus)]
    return [
        [(row, Pick(*of_pick)) for row, *of_pick in zip(*(column[i] for column in listed), strict=True)][
            : len(one.rows)
        ]
        for i, one in enumerate(fields)
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
