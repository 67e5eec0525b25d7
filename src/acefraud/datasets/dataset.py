"""Labelled transactions, and how they are parted without letting the answer slip through."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import overload

from acefraud.core.transaction import Case, Transaction
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import BadRow
from acefraud.errors import ConfigurationError

Fold = tuple[tuple[Case, ...], tuple[Case, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Dataset(Sequence[Case]):
    """A sequence over the rows to learn from. The test rows have to be asked for by name."""

    name: str
    train: tuple[Case, ...]
    test: tuple[Case, ...] = ()
    mapping: SchemaMapping = field(default_factory=SchemaMapping)
    bad_rows: tuple[BadRow, ...] = ()
    unlabelled: int = 0
    """Rows whose label had not arrived; they are no cases, and nothing is wrong with them."""
    waiting: tuple[Transaction, ...] = ()
    """Those rows, where a history is kept: they happened, and count for the rows after them."""
    dropped: int = 0
    """Rows that `without_duplicates` left out."""

    def __len__(self) -> int:
        return len(self.train)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.train)

    @overload
    def __getitem__(self, index: int) -> Case: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Case]: ...

    def __getitem__(self, index: int | slice) -> Case | Sequence[Case]:
        return self.train[index]

    @property
    def has_time(self) -> bool:
        """Whether every row has a time, so that the order of events is known."""
        return all(case.transaction.time is not None for case in (*self.train, *self.test))

    @property
    def frauds(self) -> int:
        """How many of the rows to learn from are fraud."""
        return sum(case.is_fraud for case in self.train)

    @property
    def duplicates(self) -> int:
        """How many of the rows to learn from repeat the facts and the text of an earlier one."""
        return len(self.train) - len({_sameness(case) for case in self.train})

    def without_duplicates(self) -> Dataset:
        """The same without rows that repeat the facts and the text of an earlier one.

        Meant for collections of texts. Where transactions have few facts, two that are alike are still two.
        """
        seen: set[Hashable] = set()
        train = _first_of_each(self.train, seen)
        test = _first_of_each(self.test, seen)
        gone = len(self.train) + len(self.test) - len(train) - len(test)
        return replace(self, train=train, test=test, dropped=self.dropped + gone)

    def split(self, test_share: float = 0.3, seed: int = 0) -> Dataset:
        """Part all rows anew: the latest are the test where times are known, else a share of each label at random.

        Rows at the same time stay in the order of the file. Without times, rows with the same facts and text
        stay on one side.
        """
        if not 0 < test_share < 1:
            raise ConfigurationError(f"test_share must be between 0 and 1, got {test_share}")
        cases = (*self.train, *self.test)
        if self.has_time:
            ordered = sorted(cases, key=_time)
            cut = len(ordered) - round(test_share * len(ordered))
            return replace(self, train=tuple(ordered[:cut]), test=tuple(ordered[cut:]))
        sides = _deal(cases, (1 - test_share, test_share), seed)
        return replace(self, train=_on_side(cases, sides, 0), test=_on_side(cases, sides, 1))

    def folds(self, k: int = 5, seed: int = 0) -> list[Fold]:
        """The rows to learn from as k pairs of train and test, each label shared out evenly.

        Rows with the same facts and text always go to the same fold: apart, they would give the answer away.
        """
        groups = len(self.train) - self.duplicates
        if not 2 <= k <= groups:
            raise ConfigurationError(f"k must be between 2 and the {groups} distinct rows, got {k}")
        sides = _deal(self.train, (1 / k,) * k, seed)
        return [
            (
                tuple(c for c, side in zip(self.train, sides, strict=True) if side != one),
                _on_side(self.train, sides, one),
            )
            for one in range(k)
        ]


def _time(case: Case) -> float:
    assert case.transaction.time is not None
    return case.transaction.time.timestamp()


def _sameness(case: Case) -> Hashable:
    return case.transaction.text, frozenset(case.transaction.facts.items())


def _first_of_each(cases: Iterable[Case], seen: set[Hashable]) -> tuple[Case, ...]:
    kept = []
    for case in cases:
        same = _sameness(case)
        if same not in seen:
            seen.add(same)
            kept.append(case)
    return tuple(kept)


def _deal(cases: Sequence[Case], shares: Sequence[float], seed: int) -> list[int]:
    """For each case its side, so that every label is shared out in the given proportion and likes stay together."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for at, case in enumerate(cases):
        groups[_sameness(case)].append(at)
    dealt = list(groups.values())
    random.Random(seed).shuffle(dealt)
    sides = [0] * len(cases)
    filled = [[0.0, 0.0] for _ in shares]
    for group in dealt:
        frauds = sum(cases[at].is_fraud for at in group)
        label = int(2 * frauds > len(group))
        # The side that would stay the furthest behind its share takes the group.
        side = min(
            range(len(shares)), key=lambda one: ((filled[one][label] + len(group)) / shares[one], sum(filled[one]))
        )
        filled[side][1] += frauds
        filled[side][0] += len(group) - frauds
        for at in group:
            sides[at] = side
    return sides


def _on_side(cases: Sequence[Case], sides: Sequence[int], side: int) -> tuple[Case, ...]:
    return tuple(case for case, one in zip(cases, sides, strict=True) if one == side)
