"""Facts in the form that other learners take: matrices and dictionaries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud import FactTable
from benchmarks.arrays import Codes, Numbers

MOST_WORDS = 30
"""Words of a category that get their own column; the others share one."""

OTHER = "(other)"
"""What stream learners see in place of a rare word."""

Matrix = npt.NDArray[np.float64]


def plain_columns(facts: FactTable) -> Iterator[tuple[str, Numbers]]:
    """Numbers as they are, flags as 1 and 0; NaN for what is not known."""
    for name, numbers in sorted(facts.columns.numbers.items()):
        yield name, numbers
    for name, flags in sorted(facts.columns.flags.items()):
        yield name, np.where(flags < 0, np.nan, flags)


def by_frequency(codes: Codes, words: Sequence[str]) -> list[str]:
    """The words that occur, the most frequent first."""
    counts = np.bincount(codes[codes >= 0], minlength=len(words))
    return [words[code] for code in np.argsort(-counts, kind="stable") if counts[code]]


@dataclass(slots=True)
class OneHot:
    """Numbers and flags as they are, a column for each frequent word of a category and one for the rest.

    With ``fill``, missing values become the median of the training rows, with a column that marks them. ``numbers``
    may be a scikit-learn transformer for the numbers and flags.
    """

    fill: bool = True
    numbers: Any = None
    _medians: dict[str, float] = field(default_factory=dict)
    _gaps: list[str] = field(default_factory=list)
    _words: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def fit(self, facts: FactTable) -> OneHot:
        """Learn the frequent words, the medians and the distribution of numbers from training rows."""
        for name, column in plain_columns(facts):
            empty = np.isnan(column)
            self._medians[name] = 0.0 if empty.all() else float(np.median(column[~empty]))
            if empty.any():
                self._gaps.append(name)
        for name, (codes, words) in sorted(facts.columns.categories.items()):
            self._words[name] = tuple(by_frequency(codes, words)[:MOST_WORDS])
        if self.numbers is not None and self._medians:
            self.numbers.fit(self._raw(facts)[:, : len(self._medians)])
        return self

    def matrix(self, facts: FactTable) -> Matrix:
        """The facts as numbers."""
        raw, count = self._raw(facts), len(self._medians)
        if self.numbers is None or not count:
            return raw
        return np.column_stack([self.numbers.transform(raw[:, :count]), raw[:, count:]])

    def _raw(self, facts: FactTable) -> Matrix:
        plain = dict(plain_columns(facts))
        columns = [
            np.where(np.isnan(column), self._medians[name], column) if self.fill else column
            for name, column in plain.items()
        ]
        if self.fill:
            columns += [np.isnan(plain[name]).astype(np.float64) for name in self._gaps]
        for name, frequent in self._words.items():
            codes, words = facts.categories(name)
            place = {word: at for at, word in enumerate(frequent)}
            slot = np.array([*(place.get(word, len(frequent)) for word in words), -1], dtype=np.int64)[codes]
            columns += [(slot == at).astype(np.float64) for at in range(len(frequent) + 1)]
        return _stacked(columns, len(facts))


def _stacked(columns: list[Numbers], count: int) -> Matrix:
    return np.column_stack(columns).astype(np.float64, copy=False) if columns else np.zeros((count, 0))


@dataclass(slots=True)
class CommonWords:
    """The words that a stream learner sees: the most frequent of the first rows, then new ones while there is room.

    All others become one word.
    """

    _known: dict[str, set[str]] = field(default_factory=dict)

    def hear(self, facts: FactTable) -> None:
        """Take in the words of some rows."""
        for name, (codes, words) in facts.columns.categories.items():
            known = self._known.setdefault(name, set())
            if len(known) < MOST_WORDS:
                new = [word for word in by_frequency(codes, words) if word not in known]
                known.update(new[: MOST_WORDS - len(known)])

    def told_apart(self, name: str, words: Sequence[str]) -> list[str]:
        """Each word of a category as the learner sees it."""
        known = self._known.get(name, set())
        return [word if word in known else OTHER for word in words]


def row_dicts(facts: FactTable, common: CommonWords) -> list[dict[str, float | str]]:
    """Each row as a dictionary of its known facts: flags as 1 and 0, categories as words."""
    rows: list[dict[str, float | str]] = [{} for _ in range(len(facts))]
    for name, column in plain_columns(facts):
        for row, value in zip(rows, column.tolist(), strict=True):
            if not math.isnan(value):
                row[name] = value
    for name, (codes, words) in sorted(facts.columns.categories.items()):
        shown = common.told_apart(name, words)
        for row, code in zip(rows, codes.tolist(), strict=True):
            if code >= 0:
                row[name] = shown[code]
    return rows
