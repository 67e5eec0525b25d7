"""Which cases a reflector on a model is shown: few calls, with several similar cases in each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from acefraud.core.arguments import check_share, check_type, check_whole
from acefraud.core.arrays import BoolArray, FloatArray
from acefraud.core.table import FactTable
from acefraud.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionPolicy:
    """Which cases are worth a call. The plain flow of the ACE system is `ReflectionPolicy.plain()`.

    >>> policy = ReflectionPolicy(near_miss=0.05)
    >>> policy.worth(probability=0.9, threshold=0.5, missed=False, draw=0.5)
    False
    >>> policy.worth(probability=0.47, threshold=0.5, missed=False, draw=0.5)
    True
    """

    near_miss: float = 0.1
    """A correct decision whose probability is this close to the threshold is shown too."""
    success_share: float = 0.05
    """The share of the other correct decisions that is shown."""
    together: int = 3
    """Similar cases in one call."""
    contrast: int = 2
    """Similar cases with the opposite label that are shown beside them."""
    rounds: int = 3
    """How often to go through a labelled history; what is still wrong is shown again."""
    most_share: float = 0.4
    """The most calls for a labelled history, as a share of its cases."""
    every_case: bool = False
    """Whether every case is worth a call."""

    def __post_init__(self) -> None:
        check_share("near_miss", self.near_miss)
        check_share("success_share", self.success_share)
        check_type("most_share", self.most_share, (int, float), "a number above 0", ConfigurationError)
        if self.most_share <= 0:
            raise ConfigurationError(f"most_share: expected a number above 0, got {self.most_share}")
        for name, least in (("together", 1), ("contrast", 0), ("rounds", 1)):
            check_whole(name, getattr(self, name), least=least)

    @classmethod
    def plain(cls) -> ReflectionPolicy:
        """The policy of one call for every case, as in the ACE system.

        >>> ReflectionPolicy.plain().worth(probability=0.99, threshold=0.5, missed=False, draw=0.5)
        True
        """
        return cls(together=1, contrast=0, rounds=1, most_share=1.0, every_case=True)

    def worth(self, probability: float, threshold: float, missed: bool, draw: float) -> bool:
        """Whether to show a case to the reflector. `draw` is a random number from 0 to 1 that belongs to the case.

        >>> ReflectionPolicy().worth(probability=0.9, threshold=0.5, missed=True, draw=0.5)
        True
        """
        near = abs(probability - threshold) <= self.near_miss
        return self.every_case or missed or near or draw < self.success_share


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of a history that go into one call."""

    rows: tuple[int, ...]
    contrast: tuple[int, ...]
    """Similar rows with the opposite label."""


def groups_of(
    scores: FloatArray,
    labels: BoolArray,
    threshold: float,
    table: FactTable,
    *,
    draws: FloatArray,
    policy: ReflectionPolicy,
    without: Collection[int] = (),
) -> list[Group]:
    """The cases worth a call, in groups of similar cases with one label, those with the most wrong decisions first."""
    missed = (scores >= threshold) != labels
    worth = [
        row
        for row in range(len(labels))
        if row not in without and policy.worth(float(scores[row]), threshold, bool(missed[row]), float(draws[row]))
    ]
    vectors = case_vectors(table)
    found = []
    for label in (True, False):
        mine = sorted((row for row in worth if labels[row] == label), key=lambda row: (not missed[row], row))
        others = [row for row in range(len(labels)) if labels[row] != label]
        for rows in similar_groups(mine, vectors, policy.together):
            found.append(Group(tuple(rows), tuple(nearest_rows(rows, others, vectors, policy.contrast))))
    most = max(1, int(policy.most_share * len(labels) / policy.rounds))
    return sorted(found, key=lambda group: -sum(bool(missed[row]) for row in group.rows))[:most]


def case_vectors(table: FactTable) -> FloatArray:
    """Each case as a vector: numbers by rank, flags and the most common words as 0 or 1, unknown values as 0.5."""
    columns = table.columns
    parts: list[FloatArray] = []
    for name in sorted(columns.numbers):
        values = columns.numbers[name]
        known = ~np.isnan(values)
        ranked = np.full(len(values), 0.5)
        if known.any():
            _, rank = np.unique(values[known], return_inverse=True)
            ranked[known] = rank / max(1, int(rank.max()))
        parts.append(ranked)
    for name in sorted(columns.flags):
        flags = columns.flags[name].astype(np.float64)
        parts.append(np.where(flags < 0, 0.5, flags))
    for name in sorted(columns.categories):
        codes, words = columns.categories[name]
        common = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(words)), kind="stable")[:5]
        parts.extend((codes == code).astype(np.float64) for code in common)
    return np.column_stack(parts) if parts else np.zeros((len(table), 0))


def similar_groups(rows: Sequence[int], vectors: FloatArray, size: int) -> list[list[int]]:
    """The rows in groups of at most `size`, each the nearest to the first row that is left.

    >>> similar_groups([0, 1, 2, 3], np.array([[0.0], [1.0], [0.1], [0.9]]), 2)
    [[0, 2], [1, 3]]
    """
    left = list(rows)
    groups = []
    while left:
        distance = np.linalg.norm(vectors[left] - vectors[left[0]], axis=1)
        nearest = sorted(np.argsort(distance, kind="stable")[:size].tolist(), key=lambda at: (at != 0, distance[at]))
        groups.append([left[at] for at in nearest])
        left = [row for at, row in enumerate(left) if at not in nearest]
    return groups


def nearest_rows(rows: Sequence[int], others: Sequence[int], vectors: FloatArray, wanted: int) -> list[int]:
    """The rows among `others` that are nearest to the mean of `rows`."""
    if not others or wanted <= 0:
        return []
    distance = np.linalg.norm(vectors[list(others)] - vectors[list(rows)].mean(axis=0), axis=1)
    return [others[at] for at in np.argsort(distance, kind="stable")[:wanted]]
