"""The vectors of a playbook's bullets, one matrix per wording, and how much the bullets resemble each other."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np

from acefraud.core.bullet_table import BulletTable, Wording
from acefraud.roles.embedded.embedder import CachedEmbedder
from acefraud.roles.protocols import Embedder, Vectors
from acefraud.support.arrays import BoolArray, IntArray

MOST_COMPARED = 2_048
"""In a playbook of up to this many bullets, each cosine is computed once. Their table takes up to 16 MB."""


class Likeness:
    """How much bullets resemble each other: the cosines of their vectors, which have length one."""

    def __init__(self, matrix: Vectors, known: tuple[BoolArray, Vectors] | None = None) -> None:
        """With a table of `known` cosines, and of which rows of it are filled, each cosine is computed once."""
        self._matrix = matrix
        self._known = known

    def to_one(self, rows: IntArray) -> Callable[[int], Vectors]:
        """A function that gives the cosines of one bullet with these ones."""
        if self._known is not None:
            return lambda picked: self._filled(picked).take(rows)
        matrix, some = self._matrix, self._matrix[rows]
        return lambda picked: np.vecdot(some, matrix[picked])

    def to_each(self, picked: IntArray, rows: IntArray) -> Vectors:
        """The cosines of some bullets, one for each row of a table of bullets, with the bullets in that row."""
        found: Vectors
        if self._known is None:
            found = np.vecdot(self._matrix[rows], self._matrix[picked][:, None, :])
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
            cosines[row], filled[row] = np.vecdot(self._matrix, self._matrix[row]), True
        found: Vectors = cosines[row]
        return found


class BulletVectors:
    """Embeds bullets when they are first needed. Counters leave the matrix as it is, and no text is embedded twice."""

    def __init__(self, embedder: Embedder) -> None:
        # An embedder that fetches ahead keeps its vectors itself.
        self._embedder: Embedder = embedder if embedder.fetches_ahead else CachedEmbedder(embedder)
        self._matrices: WeakKeyDictionary[Wording, tuple[BoolArray, Vectors]] = WeakKeyDictionary()
        self._cosines: WeakKeyDictionary[Wording, tuple[BoolArray, Vectors]] = WeakKeyDictionary()

    def matrix(self, table: BulletTable, rows: IntArray) -> Vectors:
        """A row for each bullet, in which at least these rows, one or more, are filled."""
        filled, matrix = self._matrices.get(table.wording) or (np.zeros(len(table), dtype=np.bool_), None)
        # What comes over a network is asked for only if it is needed.
        missing = rows[~filled[rows]] if self._embedder.fetches_ahead else np.flatnonzero(~filled)
        if len(missing) or matrix is None:
            missing = np.unique(missing)
            bullets = (table.bullets[row] for row in missing)
            vectors = self._embedder.embed([self._embedder.presentable_bullet(bullet) for bullet in bullets])
            if matrix is None:
                matrix = np.zeros((len(table), vectors.shape[1]), dtype=np.float32)
            matrix[missing], filled[missing] = vectors, True
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
