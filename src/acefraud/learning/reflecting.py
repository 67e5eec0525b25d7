"""Which cases a reflector on a model is shown, and how: few calls, several cases of one kind in each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.table import FactTable
from acefraud.errors import ConfigurationError
from acefraud.learning.kinds import alike, grouped, nearest_of

Column = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionPolicy:
    """What is worth a call. The plain flow of the ACE system is `ReflectionPolicy.plain()`."""

    near_miss: float = 0.1
    """A right decision whose probability is this close to the threshold is looked at too."""
    success_share: float = 0.05
    """Share of the other right decisions that is looked at."""
    together: int = 3
    """Cases of one kind that go into one call."""
    contrast: int = 2
    """Cases of the other truth, most like them, that are shown beside them."""
    rounds: int = 3
    """How often a labelled history is gone through: what is still wrong then is shown again."""
    most_share: float = 0.4
    """Calls that studying a labelled history may make at most, as a share of its cases."""
    every_case: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.success_share <= 1 and 0 <= self.near_miss <= 1 and self.most_share > 0):
            raise ConfigurationError("near_miss and success_share lie between 0 and 1, most_share above 0")
        if self.together < 1 or self.contrast < 0 or self.rounds < 1:
            raise ConfigurationError("together and rounds are at least 1, contrast at least 0")

    @classmethod
    def plain(cls) -> ReflectionPolicy:
        """One call for every case, as the ACE system has it."""
        return cls(together=1, contrast=0, rounds=1, most_share=1.0, every_case=True)

    def worth(self, probability: float, threshold: float, missed: bool, draw: float) -> bool:
        """Whether a case is shown to a reflector. `draw` is a number between 0 and 1 that belongs to the case."""
        near = abs(probability - threshold) <= self.near_miss
        return self.every_case or missed or near or draw < self.success_share


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that go into one call, by their place in the history."""

    places: tuple[int, ...]
    beside: tuple[int, ...]


def groups_of(
    said: Column,
    labels: npt.NDArray[np.bool_],
    threshold: float,
    table: FactTable,
    *,
    draws: Column,
    policy: ReflectionPolicy,
    without: Collection[int] = (),
) -> list[Group]:
    """The cases that are worth a call, in groups of one kind and one truth, the most missed first."""
    missed = (said >= threshold) != labels
    worth = [
        place
        for place in range(len(labels))
        if place not in without
        and policy.worth(float(said[place]), threshold, bool(missed[place]), float(draws[place]))
    ]
    vectors = alike(table)
    found = []
    for truth in (True, False):
        mine = sorted((p for p in worth if labels[p] == truth), key=lambda p: (not missed[p], p))
        others = [place for place in range(len(labels)) if labels[place] != truth]
        for places in grouped(mine, vectors, policy.together):
            found.append(Group(tuple(places), tuple(nearest_of(places, others, vectors, policy.contrast))))
    most = max(1, int(policy.most_share * len(labels) / policy.rounds))
    return sorted(found, key=lambda group: -sum(bool(missed[place]) for place in group.places))[:most]
