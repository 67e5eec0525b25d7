"""Cases of one kind: those whose facts are most alike, so that several can be shown to a reflector at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from acefraud.core.table import FactTable

Matrix = npt.NDArray[np.float64]


def alike(table: FactTable) -> Matrix:
    """Each case as a vector: numbers by their rank, flags and the commonest words as 0 or 1, unknown in the middle."""
    columns = table.columns
    parts: list[Matrix] = []
    for name in sorted(columns.numbers):
        values = columns.numbers[name]
        known = ~np.isnan(values)
        ranked = np.full(len(values), 0.5)
        if known.any():
            _, place = np.unique(values[known], return_inverse=True)
            ranked[known] = place / max(1, int(place.max()))
        parts.append(ranked)
    for name in sorted(columns.flags):
        flags = columns.flags[name].astype(np.float64)
        parts.append(np.where(flags < 0, 0.5, flags))
    for name in sorted(columns.categories):
        codes, words = columns.categories[name]
        common = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(words)), kind="stable")[:5]
        parts.extend((codes == code).astype(np.float64) for code in common)
    return np.column_stack(parts) if parts else np.zeros((len(table), 0))


def grouped(places: Sequence[int], vectors: Matrix, size: int) -> list[list[int]]:
    """The places in groups of at most `size`, each around the first that is left over.

    >>> grouped([0, 1, 2, 3], np.array([[0.0], [1.0], [0.1], [0.9]]), 2)
    [[0, 2], [1, 3]]
    """
    left = list(places)
    groups = []
    while left:
        far = np.linalg.norm(vectors[left] - vectors[left[0]], axis=1)
        nearest = sorted(np.argsort(far, kind="stable")[:size].tolist(), key=lambda place: (place != 0, far[place]))
        groups.append([left[place] for place in nearest])
        taken = set(nearest)
        left = [place for index, place in enumerate(left) if index not in taken]
    return groups


def nearest_of(places: Sequence[int], others: Sequence[int], vectors: Matrix, wanted: int) -> list[int]:
    """Those among `others` that are most like the middle of some places."""
    if not others or wanted <= 0:
        return []
    far = np.linalg.norm(vectors[list(others)] - vectors[list(places)].mean(axis=0), axis=1)
    return [others[place] for place in np.argsort(far, kind="stable")[:wanted]]
