"""Ids made from the content of rows: positions would be the same in every file."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from acefraud.core.transactions import Ids
from acefraud.datasets.columns import distinct_values, plain_text
from acefraud.datasets.table import Column, Table

_BLOCK = 20_000
"""Rows whose cells are held as Python objects at once."""
_Hashes = npt.NDArray[np.uint64]
_NOTHING = np.uint64(0x9E3779B97F4A7C15)
"""The hash of an empty cell."""


def content_ids(table: Table) -> Ids:
    """Ids made from the content of rows: positions would be the same in every file.

    >>> content_ids(Table("a.csv", {"amount": [5.0, 7.0, 5.0]}, range(1, 4), typed=True)).tolist()
    ['tx-05ada8048523', 'tx-d045c119ea48', 'tx-05ada8048523-2']
    """
    return _numbered(np.fromiter(_content_hashes(table), dtype=object, count=table.height))


def _numbered(ids: Ids) -> Ids:
    """Ids of which repeated ones get a number."""
    seen: Counter[str] = Counter()
    for row in pl.Series(ids, dtype=pl.String).is_duplicated().arg_true().to_list():
        one = ids[row]
        seen[one] += 1
        if seen[one] > 1:
            ids[row] = f"{one}-{seen[one]}"
    return ids


def _content_hashes(table: Table) -> Iterator[str]:
    for start in range(0, table.height, _BLOCK):
        blocks = [list(column[start : start + _BLOCK]) for _, column in table.content]
        for cells in zip(*blocks, strict=True):
            yield content_id(cells)


def content_id(cells: Sequence[object]) -> str:
    """An id made from the cells of a row."""
    return "tx-" + hashlib.sha256(repr(tuple(cells)).encode(errors="surrogatepass")).hexdigest()[:12]


def hashed_ids(table: Table) -> Ids:
    """Ids made from the content of rows, column by column: for data frames, where rows are no Python objects.

    >>> hashed_ids(Table("frame", {"amount": pl.Series([5.0, 7.0, 5.0])}, range(1, 4), typed=True)).tolist()
    ['tx-f2a770ab53fc', 'tx-912bcdbd48f2', 'tx-f2a770ab53fc-2']
    """
    found = np.full(table.height, _NOTHING)
    for name, column in table.content:
        found = _mixed(found ^ _mixed(_hashes(column) + _hash_of(name)))
    return _numbered(np.array([f"tx-{one:012x}" for one in (found >> np.uint64(16)).tolist()], dtype=object))


def _hashes(column: Column) -> _Hashes:
    """A hash of each cell. Whole numbers and floats of the same value are equal, as are texts of every type."""
    if isinstance(column, pl.Series) and (column.dtype.is_float() or column.dtype == pl.Boolean):
        numbers = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
        return np.where(np.isnan(numbers), _NOTHING, (numbers + 0.0).view(np.uint64))  # -0.0 equals 0.0
    if isinstance(column, pl.Series) and column.dtype.is_integer() and not column.has_nulls():
        whole = column.to_numpy()
        exact = np.abs(whole.astype(np.float64)) < 2**53  # beyond that, a float would merge neighbours
        return np.where(exact, whole.astype(np.float64).view(np.uint64), whole.astype(np.uint64))
    texts, places = distinct_values(plain_text(column))
    return np.array([_hash_of(text) for text in texts.to_list()], dtype=np.uint64)[places]


def _hash_of(text: str | None) -> np.uint64:
    if text is None:
        return _NOTHING
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    return np.uint64(int.from_bytes(digest[:8], "little"))


def _mixed(values: _Hashes) -> _Hashes:
    """Every bit of a value spread over all bits (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: _Hashes = values ^ (values >> np.uint64(31))
    return mixed
