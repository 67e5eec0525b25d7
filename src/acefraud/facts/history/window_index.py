"""Rows sorted by group and time, and what can be counted over windows of neighbouring rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.support.arrays import IntArray
from acefraud.support.timestamps import UNKNOWN

_MOST = 2**62


@dataclass(frozen=True, slots=True)
class GroupedValues:
    """Sorted values within groups, searched for many at once: group and value make one number."""

    keys: IntArray
    low: int
    width: int
    ticks: IntArray | None
    """All distinct values, whose ranks are used instead if group and value do not fit into one number."""

    @classmethod
    def of(cls, group: IntArray, values: IntArray, *, groups: int) -> GroupedValues:
        """Values that are sorted by group and within groups. Some of the groups may be empty."""
        low, high = int(values.min(initial=2**62)), int(values.max(initial=-(2**62)))
        ticks = np.unique(values) if groups * (high - low + 2) > _MOST else None
        if ticks is not None:
            values, low, high = np.searchsorted(ticks, values), 0, len(ticks) - 1
        width = max(high - low, 0) + 2
        return cls(group * width + (values - low + 1), low, width, ticks)

    def after(self, group: IntArray, values: IntArray) -> IntArray:
        """For each value, the position of the first greater one in its group.

        >>> line = GroupedValues.of(np.array([0, 0, 1]), np.array([10, 20, 20]), groups=2)
        >>> line.after(np.array([0, 0, 1]), np.array([10, 20, 5])).tolist()
        [1, 2, 2]
        """
        if self.ticks is not None:
            values = np.searchsorted(self.ticks, values, side="right") - 1
        steps = np.clip(values, self.low - 1, self.low + self.width - 2) - (self.low - 1)
        return np.searchsorted(self.keys, group * self.width + steps, side="right")


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Rows sorted by group, and within a group by arrival."""

    rows: IntArray
    group: IntArray
    """Numbered from 0 in the order of the rows here."""
    time: IntArray
    groups: int
    values: GroupedValues
    """The times, to search in."""

    @classmethod
    def of(cls, rows: IntArray, codes: npt.NDArray[np.int32] | IntArray, time: IntArray) -> GroupedRows:
        """The given rows, which are in the order of arrival."""
        rows = rows[np.argsort(codes[rows], kind="stable")]
        return cls._sorted(rows, codes[rows].astype(np.int64), time[rows])

    @classmethod
    def _sorted(cls, rows: IntArray, codes: IntArray, time: IntArray) -> GroupedRows:
        group = np.cumsum(np.diff(codes, prepend=codes[:1]) != 0)
        groups = int(group[-1]) + 1 if len(group) else 0
        return cls(rows, group, time, groups, GroupedValues.of(group, time, groups=groups))

    def split_by_order(self) -> tuple[GroupedRows, GroupedRows]:
        """The groups whose rows arrived in order of time, and the others."""
        back = np.flatnonzero((np.diff(self.time) < 0) & (np.diff(self.group) == 0))
        late = np.isin(self.group, self.group[back])
        return self._only(~late), self._only(late)

    def _only(self, kept: npt.NDArray[np.bool_]) -> GroupedRows:
        if kept.all():
            return self
        return self._sorted(self.rows[kept], self.group[kept], self.time[kept])

    def ends(self) -> IntArray:
        """For each row, the position of the last one in its group."""
        return np.searchsorted(self.group, self.group, side="right") - 1


def running(values: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> IntArray:
    """Totals before each position, and of all at the end.

    >>> running(np.array([5, 7])).tolist()
    [0, 5, 12]
    """
    totals = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=totals[1:])
    return totals


def highest(values: IntArray, starts: Mapping[str, IntArray]) -> Iterator[tuple[str, IntArray]]:
    """For each position, the highest value from a start up to before it, by the name of the start; `UNKNOWN` if none.

    Two windows whose length is a power of two cover any window. The powers are taken in turn, so that only the maxima
    over windows of one length are in memory.

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


def neighbours(group: IntArray, codes: npt.NDArray[np.int32]) -> tuple[IntArray, IntArray]:
    """For each position, those before and after it in its group with the same code; -1 if there is none.

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
    codes: npt.NDArray[np.int32], following: IntArray, start: IntArray, ends: IntArray
) -> npt.NDArray[np.float64]:
    """For each position, the number of distinct codes from its start up to before it.

    A code counts once, by its last occurrence: from the position after it up to the next occurrence, or to the last
    position whose window still reaches back to it.
    """
    there = np.flatnonzero(codes >= 0)
    reach = np.searchsorted(start, there, side="right") - 1
    last = np.minimum(np.where(following[there] < 0, ends[there], following[there]), np.minimum(reach, ends[there]))
    change = np.bincount(there + 1, minlength=len(codes) + 1) - np.bincount(last + 1, minlength=len(codes) + 1)
    return np.cumsum(change)[: len(codes)].astype(np.float64)
