"""The vectors of a playbook's bullets, one matrix per wording."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from acefraud.core.arrays import BoolArray, IntArray
from acefraud.core.bullet_table import BulletTable, Wording
from acefraud.roles.embedded.embedder import CachedEmbedder
from acefraud.roles.protocols import Embedder, Vectors


class BulletVectors:
    """Embeds bullets when they are first needed. Counters leave the matrix as it is, and no text is embedded twice."""

    def __init__(self, embedder: Embedder) -> None:
        # An embedder that fetches ahead keeps its vectors itself.
        self._embedder: Embedder = embedder if embedder.fetches_ahead else CachedEmbedder(embedder)
        self._matrices: WeakKeyDictionary[Wording, tuple[BoolArray, Vectors]] = WeakKeyDictionary()

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
