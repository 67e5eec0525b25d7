"""Parquet: columns keep their types."""

from __future__ import annotations

import io

import polars as pl

from acefraud.datasets.table import FACTS, Column, Table
from acefraud.errors import InputError


def read_parquet(data: bytes, name: str) -> Table:
    """Read a file whole; a ``facts`` struct becomes columns and a ``metadata`` struct is kept apart, as in JSON."""
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, OSError) as problem:
        raise InputError(f"not readable as Parquet: {str(problem).splitlines()[0]}", file=name) from problem
    columns = {column: _plain(frame[column]) for column in frame.columns}
    metadata = columns.pop("metadata").to_list() if frame.schema.get("metadata") == pl.Struct else []
    if frame.schema.get("facts") == pl.Struct:
        facts = columns.pop("facts").struct.unnest()
        columns |= {FACTS + fact: _plain(facts[fact]) for fact in facts.columns}
    rows = range(1, frame.height + 1)
    return Table(name, dict[str, Column](columns), rows, typed=True, metadata=[one or {} for one in metadata])


def _plain(series: pl.Series) -> pl.Series:
    """Types that say the same as a plainer one."""
    if series.dtype in (pl.Categorical, pl.Enum, pl.Null):
        return series.cast(pl.String)
    return series.dt.total_seconds() if series.dtype == pl.Duration else series
