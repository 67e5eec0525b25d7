"""Rows sorted by group and time, and what can be counted over stretches of neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.timestamps import UNKNOWN

Indices = npt.NDArray[np.int64]
_MOST = 2**62


@dataclass(frozen=True, slots=True)
class Line:
    """Values in order within each group, to be searched for many at once: group and value make one number."""

    keys: Indices
    low: int
    width: int
    ticks: Indices | None
    """Where one number cannot hold group and value: all values in order, whose ranks stand for them."""

    @classmethod
    def of(cls, group: Indices, values: Indices, *, groups: int) -> Line:
        """A line of values that are in order within groups that are in order; some of the groups may be empty."""
        low, high = int(values.min(initial=2**62)), int(values.max(initial=-(2**62)))
        ticks = np.unique(values) if groups * (high - low + 2) > _MOST else None
        if ticks is not None:
            values, low, high = np.searchsorted(ticks, values), 0, len(ticks) - 1
        width = max(high - low, 0) + 2
        return cls(group * width + (values - low + 1), low, width, ticks)

    def after(self, group: Indices, values: Indices) -> Indices:
        """For each value, the place of the first in its group that is greater.

        >>> line = Line.of(np.array([0, 0, 1]), np.array([10, 20, 20]), groups=2)
        >>> line.after(np.array([0, 0, 1]), np.array([10, 20, 5])).tolist()
        [1, 2, 2]
        """
        if self.ticks is not None:
            values = np.searchsorted(self.ticks, values, side="right") - 1
        steps = np.clip(values, self.low - 1, self.low + self.width - 2) - (self.low - 1)
        return np.searchsorted(self.keys, group * self.width + steps, side="right")


@dataclass(frozen=True, slots=True)
class Past:
    """Rows by group, and within a group by arrival."""

    rows: Indices
    group: Indices
    """Numbered from 0 in the order of the rows here."""
    time: Indices
    groups: int
    line: Line

    @classmethod
    def of(cls, rows: Indices, codes: npt.NDArray[np.int32] | Indices, time: Indices) -> Past:
        """These rows, which are given in the order of arrival."""
        rows = rows[np.argsort(codes[rows], kind="stable")]
        return cls._sorted(rows, codes[rows].astype(np.int64), time[rows])

    @classmethod
    def _sorted(cls, rows: Indices, codes: Indices, time: Indices) -> Past:
        group = np.cumsum(np.diff(codes, prepend=codes[:1]) != 0)
        groups = int(group[-1]) + 1 if len(group) else 0
        return cls(rows, group, time, groups, Line.of(group, time, groups=groups))

    def parted(self) -> tuple[Past, Past]:
        """The groups whose rows arrived in the order of time, and the rest."""
        back = np.flatnonzero((np.diff(self.time) < 0) & (np.diff(self.group) == 0))
        late = np.isin(self.group, self.group[back])
        return self._only(~late), self._only(late)

    def _only(self, kept: npt.NDArray[np.bool_]) -> Past:
        if kept.all():
            return self
        return self._sorted(self.rows[kept], self.group[kept], self.time[kept])

    def ends(self) -> Indices:
        """For each row, the place of the last one in its group."""
        return np.searchsorted(self.group, self.group, side="right") - 1


def running(values: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Indices:
    """Totals before each place, and of all at the end.

    >>> running(np.array([5, 7])).tolist()
    [0, 5, 12]
    """
    totals = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=totals[1:])
    return totals


def highest(values: Indices, starts: Mapping[str, Indices]) -> Iterator[tuple[str, Indices]]:
    """For each place, the highest value from a start up to before it, under the name of the start; `UNKNOWN` if none.

    A stretch is covered by two others whose length is a power of two. One power after another is looked at, so that
    only the maxima over stretches of one length have to be held.

    >>> dict(highest(np.array([5, 7, 6]), {"all": np.array([0, 0, 0])}))["all"].tolist()[1:]
    [5, 7]
    """
    here = np.arange(len(values))
    found = {name: np.full(len(values), UNKNOWN, dtype=np.int64) for name in starts}
    lengths = {name: here - start for name, start in starts.items()}
    longest = max((int(length.max(initial=0)) for length in lengths.values()), default=0)
    best, size = values, 1
    while size <= longest:
        for name, length in lengths.items():
            at = np.flatnonzero((length >= size) & (length < 2 * size))
            found[name][at] = np.maximum(best[starts[name][at]], best[at - size])
        best, size = np.maximum(best[:-size], best[size:]), 2 * size
    yield from found.items()


def neighbours(group: Indices, codes: npt.NDArray[np.int32]) -> tuple[Indices, Indices]:
    """For each place, the places before and after it in its group with the same code; -1 where there is none.

    >>> [side.tolist() for side in neighbours(np.array([0, 0, 0]), np.array([4, 5, 4], dtype=np.int32))]
    [[-1, -1, 0], [2, -1, -1]]
    """
    pairs = group * (int(codes.max(initial=0)) + 2) + codes + 1
    order = np.argsort(pairs, kind="stable")
    same = pairs[order[1:]] == pairs[order[:-1]]
    before = np.full(len(group), -1, dtype=np.int64)
    after = np.full(len(group), -1, dtype=np.int64)
    before[order[1:][same]] = order[:-1][same]
    after[order[:-1][same]] = order[1:][same]
    return before, after


def distinct_before(
    codes: npt.NDArray[np.int32], following: Indices, start: Indices, ends: Indices
) -> npt.NDArray[np.float64]:
    """For each place, how many different codes stand from its start up to before it.

    A code counts once, by its last occurrence: from the place after it up to the next occurrence, or to the last
    place whose stretch still reaches back to it.
    """
    there = np.flatnonzero(codes >= 0)
    reach = np.searchsorted(start, there, side="right") - 1
    last = np.minimum(np.where(following[there] < 0, ends[there], following[there]), np.minimum(reach, ends[there]))
    change = np.bincount(there + 1, minlength=len(codes) + 1) - np.bincount(last + 1, minlength=len(codes) + 1)
    return np.cumsum(change)[: len(codes)].astype(np.float64)
