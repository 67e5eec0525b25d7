"""Which rows are learnt from and which are decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.table import Mask
from acefraud.datasets.columns import LabelledColumns
from acefraud.errors import ConfigurationError, InputError

TEST_SHARE = 0.3
_ENOUGH = 30
"""Frauds of newcomers that make a test; with fewer, a share of all entities is kept aside instead."""

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to learn from and rows to decide, in the order of the data, and how they were chosen."""

    train: Places
    test: Places
    late: Places
    """Rows that are not learnt from because their label arrived only after the test had begun."""
    how: str


def split_rows(data: LabelledColumns, *, seed: int = 0, entity_disjoint: str | None = None) -> Split:
    """The latest rows are the test where times are known, else a share of each label at random.

    With ``entity_disjoint``, no value of that entity is on both sides.
    """
    if entity_disjoint is not None:
        train, test, how = _disjoint(data, entity_disjoint, seed)
    elif data.times is not None:
        cut = _cut(data)
        train, test = np.arange(cut), np.arange(cut, len(data))
        how = "last 30 % by time"
    else:
        train, test = _stratified(data.labels, seed)
        how = f"30 % of each label at random, seed {seed}"
    train, late = _in_time(data, train, test)
    for rows, part in ((train, "training"), (test, "test")):
        _require_both(data, rows, part)
    return Split(train, test, late, how)


def taken(data: LabelledColumns, rows: Places) -> LabelledColumns:
    """Some rows; neighbours in their order are not copied."""
    whole = len(rows) and rows[-1] - rows[0] + 1 == len(rows) and (np.diff(rows) == 1).all()
    return data.take(slice(int(rows[0]), int(rows[-1]) + 1) if whole else rows)


def _cut(data: LabelledColumns) -> int:
    return len(data) - round(TEST_SHARE * len(data))


def _stratified(labels: Mask, seed: int) -> tuple[Places, Places]:
    generator = np.random.default_rng(seed)
    tested = np.zeros(len(labels), dtype=np.bool_)
    for label in (True, False):
        rows = np.flatnonzero(labels == label)
        tested[generator.permutation(rows)[: round(TEST_SHARE * len(rows))]] = True
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def _disjoint(data: LabelledColumns, entity: str, seed: int) -> tuple[Places, Places, str]:
    codes = data.entities.get(entity)
    if codes is None:
        known = ", ".join(data.entities) or "none"
        raise ConfigurationError(
            f"{data.name}: '{entity}' is not among the entities of its mapping ([history] entities: {known})"
        )
    late = np.ones(len(data), dtype=np.bool_)
    if data.times is not None:
        late[: _cut(data)] = False
        fresh = late & (codes >= 0) & ~np.isin(codes, codes[~late])
        if data.labels[fresh].sum() >= _ENOUGH:
            return np.flatnonzero(~late), np.flatnonzero(fresh), f"last 30 % by time, only new values of {entity}"
    some = np.unique(codes[codes >= 0])
    chosen = np.random.default_rng(seed).permutation(some)[: round(TEST_SHARE * len(some))]
    held = np.isin(codes, chosen)
    train = ~held & ~late if data.times is not None else ~held
    how = f"30 % of the values of {entity} kept aside, seed {seed}"
    how += ", and of these the last 30 % by time" if data.times is not None else ""
    return np.flatnonzero(train), np.flatnonzero(held & late), how


def _in_time(data: LabelledColumns, train: Places, test: Places) -> tuple[Places, Places]:
    if data.times is None or data.known_at is None or not len(test):
        return train, train[:0]
    heard = data.known_at[train] <= data.times[test[0]]
    return train[heard], train[~heard]


def _require_both(data: LabelledColumns, rows: Places, part: str) -> None:
    frauds = int(data.labels[rows].sum())
    if frauds in (0, len(rows)):
        raise InputError(
            f"the {part} part has {len(rows):,} rows of which {frauds:,} are fraud: expected both kinds", file=data.name
        )
