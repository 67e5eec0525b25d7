"""How cases are split for a comparison: what a mode may learn from, and what it is tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from acefraud import Cases, Dataset, SchemaMapping, known_by


@dataclass(frozen=True, slots=True)
class Part:
    """One train and test pair of one seed."""

    seed: int
    train: Cases
    test: Cases
    rows: tuple[int, ...]
    """The position of each test case among all rows."""
    mapping: SchemaMapping | None = None
    """How the file was read. It may ask for a history of entities."""


def parts_of_worlds(make: Callable[[int], Dataset], seeds: Sequence[int]) -> Iterator[Part]:
    """One synthetic world for each seed, with its own split by time."""
    for seed in seeds:
        data = make(seed)
        yield Part(seed, data.train, data.test, tuple(range(len(data.test))))


SMALL, FOLDS = 500, 5
"""Below so many rows, data without times is cross-validated in so many folds."""


def parts_of_data(
    data: Dataset, seeds: Sequence[int], *, folds: int | None = None, test_share: float = 0.3
) -> Iterator[Part]:
    """The parts of a dataset: split by time, or by chance without repeated rows; small ones in folds."""
    if data.test:
        yield from (Part(seed, data.train, data.test, tuple(range(len(data.test))), data.mapping) for seed in seeds)
        return
    if folds is None:
        folds = FOLDS if len(data) < SMALL and not data.has_time else 0
    yield from parts_of_file(
        data if data.has_time else data.without_duplicates(), seeds, folds=folds, test_share=test_share
    )


def parts_of_file(data: Dataset, seeds: Sequence[int], *, folds: int = 0, test_share: float = 0.3) -> Iterator[Part]:
    """The same rows for every seed: the later part of the file is the test, or each fold in turn."""
    position = {one: row for row, one in enumerate((*data.train.transactions.ids, *data.test.transactions.ids))}
    for seed in seeds:
        if folds:
            pairs = data.folds(folds, seed)
        else:
            split = data.split(test_share, seed=0)
            pairs = [(split.train, split.test)]
        for train, test in pairs:
            yield Part(seed, train, test, tuple(position[one] for one in test.transactions.ids), data.mapping)


def limited(part: Part, most: int) -> Part:
    """A smaller part: the latest training cases whose label is known, and test cases from the whole test period.

    Test cases next to each other in time would all be decided before the first of their labels arrives, so nothing
    could be learnt on the way.
    """
    known, _ = known_by(part.train, part.test)
    places = np.unique(np.linspace(0, len(part.test) - 1, min(most, len(part.test))).astype(int))
    rows = tuple(part.rows[place] for place in places)
    return replace(part, train=known[-most:], test=part.test.take(places), rows=rows)
