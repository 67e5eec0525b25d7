"""The ids of rows: those that a file brings, and those made from the content where it brings none."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

import numpy as np
import polars as pl

from acefraud.core.transactions import Ids
from acefraud.datasets.distinct import BadCells
from acefraud.datasets.labels import plain_text
from acefraud.datasets.table import Column, Table

MAX_ID = 200
_BLOCK = 20_000
"""Rows whose cells are held as Python objects at once."""


def read_ids(table: Table, column: Column, *, unique: bool) -> tuple[Ids, BadCells]:
    """The ids in a column, and the cells that are none or, where ids are ``unique``, repeat an earlier one."""
    texts = plain_text(column)
    ids: Ids = texts.to_numpy()
    wrong = texts.is_null() | (texts.str.len_chars() > MAX_ID).fill_null(True)
    if unique:
        wrong |= ~texts.is_first_distinct()
    bad: BadCells = []
    first: dict[str, int] = {}
    if wrong.any():
        first = {one: row for row, one in reversed(list(enumerate(ids)))}
    for row in wrong.arg_true().to_list():
        one = ids[row]
        if one is None:
            bad.append((row, "expected an id, got an empty cell"))
        elif len(one) > MAX_ID:
            bad.append((row, f"expected an id of at most {MAX_ID} characters, got {len(one):,}"))
        else:
            bad.append((row, f"duplicate id {one!r}, first at row {table.rows[first[one]]}"))
    return ids, bad


def numbered_ids(table: Table) -> Ids:
    """Ids from the positions of rows, for rows that need none of their own."""
    return np.array([f"row-{row}" for row in table.rows], dtype=object)


def made_ids(table: Table) -> Ids:
    """Rows without an id are known by their content: positions would be the same in every file.

    >>> made_ids(Table("a.csv", {"amount": [5.0, 7.0, 5.0]}, range(1, 4), typed=True)).tolist()
    ['tx-05ada8048523', 'tx-d045c119ea48', 'tx-05ada8048523-2']
    """
    if not table.columns:
        return numbered_ids(table)
    ids = np.fromiter(_content_hashes(table), dtype=object, count=table.height)
    seen: Counter[str] = Counter()
    for row in pl.Series(ids, dtype=pl.String).is_duplicated().arg_true().to_list():
        made = ids[row]
        seen[made] += 1
        if seen[made] > 1:
            ids[row] = f"{made}-{seen[made]}"
    return ids


def _content_hashes(table: Table) -> Iterator[str]:
    for start in range(0, table.height, _BLOCK):
        blocks = [_cells(column[start : start + _BLOCK]) for column in table.columns.values()]
        for cells in zip(*blocks, strict=True):
            yield "tx-" + hashlib.sha256(repr(cells).encode(errors="surrogatepass")).hexdigest()[:12]


def _cells(column: Column) -> list[object]:
    return column if isinstance(column, list) else column.to_list()
