"""Which bullets of a large playbook resemble a text most, with a quarter of the memory their vectors take.

Each vector is kept as whole numbers of eight bits and looked at for every query. The dot products of whole numbers are
exact on every processor, so what is proposed depends on nothing but the vectors that are in: not on the order they
came in, and not on the computer.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud.core.roles import Vectors
from acefraud.errors import ConfigurationError

Rows = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]

PROPOSED = 256
"""How many rows are proposed unless said otherwise.

Measured on a million bullets in prose, asked with texts of transactions: the ten most alike were all among the first
16 that were proposed, every time. The rest is for what is left out afterwards, such as bullets of another node.
"""

_LEVELS = 127
_BLOCK = 16_384
"""Rows kept together, so that a new one moves none of the others."""


class Nearest:
    """Row numbers and their vectors of length one, coarsely kept, to propose the rows that resemble a query most.

    Rows are numbers of the rows of a matrix, so they start at zero and leave few gaps: memory goes by the highest.

    >>> nearest = Nearest(dimensions=2)
    >>> nearest.add(np.array([0, 1, 2]), np.array([[1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32))
    >>> nearest.propose(np.array([0.1, 0.9], dtype=np.float32), 2)
    array([2, 1])
    """

    def __init__(self, dimensions: int) -> None:
        if dimensions < 1:
            raise ConfigurationError(f"a vector has at least one dimension, not {dimensions}")
        _numkong()
        self.dimensions = dimensions
        self._end = 0
        """One more than the highest row that was ever in."""
        self._held = 0
        self._codes: list[Codes] = []
        self._scales: list[Vectors] = []
        """What a row's codes are multiplied by; NaN where the row is not in."""

    def __len__(self) -> int:
        """How many rows are in."""
        return self._held

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return sum(codes.nbytes + scales.nbytes for codes, scales in zip(self._codes, self._scales, strict=True))

    def add(self, rows: Rows, vectors: Vectors) -> None:
        """Put these rows in, each with its vector; a row that is in already gets the new vector."""
        rows = _checked(rows)
        if vectors.shape != (len(rows), self.dimensions):
            raise ConfigurationError(
                f"expected {len(rows)} vectors of {self.dimensions} dimensions, got an array of shape {vectors.shape}"
            )
        with np.errstate(invalid="ignore"):  # the sum of a row tells as much, and takes no second matrix
            if not np.isfinite(vectors.sum(axis=1)).all():
                raise ConfigurationError("a vector holds what is no number")
        if not len(rows):
            return
        self._reach(int(rows.max()) + 1)
        for number, chosen in _by_block(rows):
            places = rows[chosen] - number * _BLOCK
            scales = self._scales[number]
            self._held += int(np.isnan(scales[np.unique(places)]).sum())
            scales[places] = np.abs(vectors[chosen]).max(axis=1)
            self._codes[number][places] = _coded(vectors[chosen])

    def remove(self, rows: Rows) -> None:
        """Take these rows out; a row that is not in is passed over."""
        rows = _checked(rows)
        rows = np.unique(rows[rows < self._end])
        for number, chosen in _by_block(rows):
            places = rows[chosen] - number * _BLOCK
            scales = self._scales[number]
            self._held -= int((~np.isnan(scales[places])).sum())
            scales[places] = np.nan

    def propose(self, query: Vectors, count: int = PROPOSED) -> Rows:
        """The rows whose vectors have the highest cosine with the query as far as eight bits tell, best first.

        Rows that are told apart by nothing come in the order of their numbers. There are `count` of them, or all.
        """
        if query.shape != (self.dimensions,) or not np.isfinite(query).all():
            raise ConfigurationError(f"expected a vector of {self.dimensions} numbers, got an array of {query.shape}")
        wanted = min(count, self._held)
        if wanted < 1:
            return np.zeros(0, dtype=np.int64)
        distances = self._distances(query)
        worst = np.partition(distances, wanted - 1)[wanted - 1]
        near = np.flatnonzero(distances <= worst)
        return near[np.argsort(distances[near], kind="stable")][:wanted]

    def _distances(self, query: Vectors) -> Vectors:
        """For every row the product with the query turned round: the best is lowest, and NaN is sorted behind all."""
        numkong = _numkong()
        turned = numkong.dots_pack(_coded(-query[np.newaxis]))
        distances = np.empty(self._end, dtype=np.float32)
        for number, (codes, scales) in enumerate(zip(self._codes, self._scales, strict=True)):
            part = distances[number * _BLOCK : (number + 1) * _BLOCK]
            products = np.asarray(numkong.dots_packed(codes[: len(part)], turned)).reshape(-1)
            np.multiply(products, scales[: len(part)], out=part, dtype=np.float32, casting="same_kind")
        return distances

    def _reach(self, end: int) -> None:
        """Make room for the rows below `end`; none of the new ones is in."""
        self._end = max(self._end, end)
        while len(self._codes) * _BLOCK < self._end:
            self._codes.append(np.zeros((_BLOCK, self.dimensions), dtype=np.int8))
            self._scales.append(np.full(_BLOCK, np.nan, dtype=np.float32))


def _coded(vectors: Vectors) -> Codes:
    """Each vector in whole numbers from -127 to 127, its largest part at the end of that range."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    shares = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    codes: Codes = np.rint(shares * _LEVELS).astype(np.int8)
    return codes


def _checked(rows: Rows) -> Rows:
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or (len(rows) and rows.min() < 0):
        raise ConfigurationError("the rows of an index are whole numbers from zero")
    return rows.astype(np.int64, copy=False)


def _by_block(rows: Rows) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """The number of each block that holds some of the rows, and the places of those among them."""
    blocks = rows // _BLOCK
    for number in np.unique(blocks):
        yield int(number), np.flatnonzero(blocks == number)


@cache
def _numkong() -> Any:
    """The library that multiplies whole numbers of eight bits."""
    try:
        import numkong  # noqa: PLC0415  # an extra, and only large playbooks need it
    except ImportError as missing:
        raise ConfigurationError(
            "the index of a large playbook needs the package numkong: pip install 'acefraud[index]'"
        ) from missing
    return numkong
