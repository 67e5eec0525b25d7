"""Which rows are for learning and which for the test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acefraud import Cases
from acefraud.errors import ConfigurationError, InputError
from benchmarks.arrays import UNKNOWN, Mask, Places

TEST_SHARE = 0.3
_ENOUGH = 30
"""Frauds of new entities that are enough for a test; with fewer, a share of all entities is held out instead."""


@dataclass(frozen=True, slots=True)
class Split:
    """Training and test rows, in the order of the data, and how they were chosen."""

    train: Places
    test: Places
    late: Places
    """Rows that nobody learns from, because their label arrived after the test had begun."""
    how: str


def split_rows(cases: Cases, *, name: str = "", seed: int = 0, entity_disjoint: str | None = None) -> Split:
    """If times are known, the latest rows are the test; otherwise a share of each label at random.

    With ``entity_disjoint``, no value of that entity is on both sides. Error messages use ``name`` for the data.
    """
    if entity_disjoint is not None:
        train, test, how = _disjoint(cases, entity_disjoint, seed, name)
    elif cases.transactions.timed:
        cut = _cut(cases)
        train, test = np.arange(cut), np.arange(cut, len(cases))
        how = "last 30 % by time"
    else:
        train, test = stratified(cases.labels, TEST_SHARE, seed)
        how = f"30 % of each label at random, seed {seed}"
    heard = labels_known(cases, train, test[0]) if len(test) else np.ones(len(train), dtype=np.bool_)
    split = Split(train[heard], test, train[~heard], how)
    for rows, part in ((split.train, "training"), (split.test, "test")):
        require_both(cases.labels[rows], part, name)
    return split


def labels_known(cases: Cases, rows: Places, first: np.int64) -> Mask:
    """Whether the label of each row was known when another row came. Without times, all are."""
    times, known_at = cases.transactions.times, cases.known_at[rows]
    known: Mask = (known_at == UNKNOWN) | (times[first] == UNKNOWN) | (known_at <= times[first])
    return known


def taken(cases: Cases, rows: Places) -> Cases:
    """Some of the rows; consecutive rows are not copied."""
    whole = len(rows) and rows[-1] - rows[0] + 1 == len(rows) and (np.diff(rows) == 1).all()
    return cases.take(slice(int(rows[0]), int(rows[-1]) + 1) if whole else rows)


def stratified(labels: Mask, share: float, seed: int) -> tuple[Places, Places]:
    """The rows that stay, and the share of each label that is held out at random."""
    generator = np.random.default_rng(seed)
    held = np.zeros(len(labels), dtype=np.bool_)
    for label in (True, False):
        rows = np.flatnonzero(labels == label)
        held[generator.permutation(rows)[: round(share * len(rows))]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def require_both(labels: Mask, part: str, name: str) -> None:
    """Raise an error that names the data and its part, unless there are both frauds and honest rows."""
    frauds = int(labels.sum())
    if frauds in (0, len(labels)):
        raise InputError(
            f"the {part} part has {len(labels):,} rows of which {frauds:,} are fraud: expected both kinds", file=name
        )


def _cut(cases: Cases) -> int:
    return len(cases) - round(TEST_SHARE * len(cases))


def _disjoint(cases: Cases, entity: str, seed: int, name: str) -> tuple[Places, Places, str]:
    entities, timed = cases.transactions.entities, cases.transactions.timed
    if entity not in entities:
        known = ", ".join(entities) or "none"
        raise ConfigurationError(
            f"{name}: '{entity}' is not among the entities of its mapping ([history] entities: {known})"
        )
    codes, _ = entities[entity]
    late = np.ones(len(cases), dtype=np.bool_)
    if timed:
        late[: _cut(cases)] = False
        fresh = late & (codes >= 0) & ~np.isin(codes, codes[~late])
        if cases.labels[fresh].sum() >= _ENOUGH:
            return np.flatnonzero(~late), np.flatnonzero(fresh), f"last 30 % by time, only new values of {entity}"
    some = np.unique(codes[codes >= 0])
    chosen = np.random.default_rng(seed).permutation(some)[: round(TEST_SHARE * len(some))]
    held = np.isin(codes, chosen)
    train = ~held & ~late if timed else ~held
    how = f"30 % of the values of {entity} kept aside, seed {seed}"
    how += ", and of these the last 30 % by time" if timed else ""
    return np.flatnonzero(train), np.flatnonzero(held & late), how
