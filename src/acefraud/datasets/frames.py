"""Data frames as tables: pandas, polars, pyarrow and whatever else narwhals reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from acefraud.datasets.files import json_column, typed_columns, whole_numbers
from acefraud.datasets.table import Column, Table
from acefraud.errors import InputError

FRAME = "frame"
"""What a frame is called in messages, since it has no file name."""
_NUMPY_KINDS = "bifuMm"
"""Kinds of NumPy columns that polars reads without a copy of every cell."""


def frame_table(frame: Any, name: str = FRAME) -> Table:
    """The columns of a data frame. Numbers are shared with it, not copied, where their type allows it.

    A lazy frame is collected. Texts are read as in a CSV file, and NaN is an unknown number, as it is to pandas.

    >>> table = frame_table(pl.DataFrame({"amount": [5.0, None], "country": ["FR", "DE"]}))
    >>> list(table.columns), table.height
    (['amount', 'country'], 2)
    """
    try:
        lazy_or_eager = nw.from_native(frame)
        given = lazy_or_eager.collect("polars") if isinstance(lazy_or_eager, nw.LazyFrame) else lazy_or_eager
        names = [str(column) for column in given.columns]
    except nw.exceptions.DuplicateError:
        raise InputError("a column appears twice: expected names that differ", file=name) from None
    columns, metadata = typed_columns(dict(zip(names, _columns(given), strict=True)))
    rows = range(1, len(given) + 1)
    return Table(name, columns, rows, typed=False, metadata=metadata, is_frame=True)


def _columns(frame: nw.DataFrame[Any]) -> Iterator[Column]:
    for column in frame.iter_columns():
        native = column.to_native()
        if not nw.dependencies.is_pandas_like_series(native):
            yield column.to_polars()
        elif isinstance(native.dtype, np.dtype) and native.dtype.kind in _NUMPY_KINDS:
            yield _from_numpy(native.to_numpy())
        elif native.dtype == object:
            yield _from_objects(column.name, native)
        else:
            yield _from_extension(column)


def _from_numpy(cells: Any) -> pl.Series:
    if cells.dtype.kind in "Mm":
        return pl.Series(cells.astype(f"{cells.dtype.kind}8[us]"))
    series = pl.Series(cells)
    return whole_numbers(series) if cells.dtype.kind == "f" and series.is_nan().any() else series


def _from_extension(column: nw.Series[Any]) -> Column:
    """Texts, categories, masked numbers, times with a zone. Without pyarrow they are read cell by cell."""
    native = column.to_native()
    categories = getattr(native.dtype, "categories", native)  # of which `pd.cut` makes intervals
    if str(getattr(categories, "dtype", "")).startswith(("interval", "period")):
        return pl.Series([None if missing else str(cell) for cell, missing in zip(native, native.isna(), strict=True)])
    try:
        return column.to_polars()
    except ImportError:
        return _from_objects(column.name, column.to_native())


def _from_objects(name: str, series: Any) -> Column:
    cells = [_plain(cell) for cell in series.astype(object).where(series.notna(), None).to_list()]
    kinds = {type(cell) for cell in cells} - {type(None)}
    if len(kinds) == 1 and issubclass(kinds.pop(), date | Decimal):
        return pl.Series(cells)
    return json_column(name, cells)


def _plain(cell: Any) -> Any:
    if isinstance(cell, np.generic):
        return cell.item()
    return cell.tolist() if isinstance(cell, np.ndarray) else cell
