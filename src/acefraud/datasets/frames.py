"""Sources with typed columns as tables: data frames of any library that narwhals reads, Parquet files, workbooks."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from acefraud.datasets.columns import json_column
from acefraud.datasets.table import FACTS, Column, Table
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
    columns, metadata = _typed_columns(dict(zip(names, _columns(given), strict=True)))
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
    return _whole_numbers(series) if cells.dtype.kind == "f" and series.is_nan().any() else series


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


def read_parquet(data: bytes, name: str) -> Table:
    """The table in a Parquet file."""
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, OSError) as problem:
        raise InputError(f"not readable as Parquet: {str(problem).splitlines()[0]}", file=name) from problem
    columns, metadata = _typed_columns(frame.to_dict())
    return Table(name, columns, range(1, frame.height + 1), typed=True, metadata=metadata)


def read_excel(data: bytes, name: str) -> Table:
    """The first sheet of a workbook. Its texts are read as those of a CSV file."""
    try:
        import fastexcel  # noqa: PLC0415  # an extra
    except ImportError:
        how = "pip install 'acefraud[xlsx]', or save it as CSV (UTF-8)"
        raise InputError(f"a workbook of Excel needs fastexcel: {how}", file=name) from None
    try:
        book = fastexcel.read_excel(data)
        frame = book.load_sheet(0, schema_sample_rows=None).to_polars()
    except fastexcel.FastExcelError as problem:
        raise InputError(f"not readable as a workbook of Excel: {str(problem).splitlines()[0]}", file=name) from problem
    used, *others = book.sheet_names
    remarks = (f"only the first sheet is read, {used!r}; the others are: {', '.join(others)}",) if others else ()
    columns, _ = _typed_columns({column.strip(): _whole_numbers(cells) for column, cells in frame.to_dict().items()})
    return Table(name, columns, range(1, frame.height + 1), typed=False, remarks=remarks)


def _whole_numbers(series: pl.Series) -> pl.Series:
    """A column of floats as whole numbers where all are: Excel knows no others, and pandas none with empty cells."""
    if not series.dtype.is_float():
        return series
    known = series.fill_nan(None)
    is_whole = bool((known == known.round()).all()) and float(known.abs().max() or 0) < 2**53  # type: ignore[arg-type]
    return known.cast(pl.Int64) if is_whole else series


def _typed_columns(given: Mapping[str, Column]) -> tuple[dict[str, Column], list[dict[str, Any]]]:
    """Columns that keep their types, and the metadata of each row.

    A ``facts`` struct becomes columns and a ``metadata`` struct is kept apart. Other structs are opened.
    """
    columns: dict[str, Column] = {}
    metadata: list[dict[str, Any]] = []
    for name, column in given.items():
        if isinstance(column, list):
            columns[name] = column
        elif name == "metadata" and column.dtype == pl.Struct:
            metadata = [one or {} for one in column.to_list()]
        elif name == "facts" and column.dtype == pl.Struct:
            facts = column.struct.unnest()
            columns |= {FACTS + fact: _simple_type(facts[fact]) for fact in facts.columns}
        else:
            columns |= _opened_struct(name, _simple_type(column))
    return columns, metadata


def _opened_struct(name: str, series: pl.Series) -> dict[str, Column]:
    """A column, or the fields of a struct under dotted names; lists as Python objects."""
    if series.dtype != pl.Struct:
        return {name: series.to_list() if series.dtype.is_nested() or series.dtype == pl.Object else series}
    opened: dict[str, Column] = {}
    for field in series.struct.fields:
        opened |= _opened_struct(f"{name}.{field}", _simple_type(series.struct.field(field)))
    return opened


def _simple_type(series: pl.Series) -> pl.Series:
    """Categories as text, and durations as seconds."""
    if series.dtype in (pl.Categorical, pl.Enum, pl.Null):
        return series.cast(pl.String)
    return series.dt.total_seconds() if series.dtype == pl.Duration else series
