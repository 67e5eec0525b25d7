"""Each distinct cell of a column is looked at once; what was found of it holds for every row that has it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from acefraud.datasets.table import Column

Places = npt.NDArray[np.int64]
BadCells = list[tuple[int, str]]
"""Rows with what is wrong in them."""


def distinct_cells(column: Column) -> tuple[Column, Places]:
    """The cells that have to be looked at, and for each row the place of its own among them.

    Mixed, nested and fractional cells come as they are: they are unhashable, or equal without being written alike.

    >>> cells, places = distinct_cells(pl.Series(["web", None, "web"]))
    >>> cells.to_list(), places.tolist()
    (['web', None], [0, 1, 0])
    """
    if isinstance(column, pl.Series) and _is_comparable(column.dtype):
        return distinct_values(column)
    return column, np.arange(len(column))


def distinct_values(column: pl.Series) -> tuple[pl.Series, Places]:
    """The same of a column that is known to be comparable."""
    values = column.unique(maintain_order=True)
    places = pl.DataFrame({"cell": values, "place": np.arange(len(values))})
    joined = pl.DataFrame({"cell": column}).join(places, on="cell", how="left", nulls_equal=True, maintain_order="left")
    return values, joined["place"].to_numpy()


def _is_comparable(dtype: pl.DataType) -> bool:
    return dtype in (pl.String, pl.Boolean) or dtype.is_integer() or dtype.is_temporal()


def spread(bad: Sequence[tuple[int, str]], places: Places) -> BadCells:
    """What is wrong with a cell is wrong with every row that holds it.

    >>> spread([(1, "expected a number, got 'x'")], np.array([0, 1, 1]))
    [(1, "expected a number, got 'x'"), (2, "expected a number, got 'x'")]
    """
    if not bad:
        return []
    messages: dict[int, str] = {}
    for cell, message in bad:
        messages.setdefault(cell, message)
    rows = np.flatnonzero(np.isin(places, list(messages)))
    return [(int(row), messages[int(places[row])]) for row in rows]
