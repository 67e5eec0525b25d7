"""CSV and TSV: every cell as text, with rows of the wrong length found instead of padded."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from acefraud.datasets.table import BadRow, Column, Table
from acefraud.errors import InputError


def read_csv(data: bytes, name: str, separator: str) -> Table:
    """Read with polars where the file is regular, row by row where it is not.

    Polars fills a short row with nulls, which would turn a cut-off line into a row without a label. So the lengths
    of all rows are looked at first.
    """
    text = data.decode("utf-8-sig")
    with _long_cells_allowed():
        header, lengths = _shape(text, name, separator)
        if all(length == len(header) for length in lengths):
            frame = _with_polars(text, header, len(lengths), separator)
            if frame is not None:
                return Table(name, dict(frame.to_dict()), range(1, len(lengths) + 1), typed=False)
        return _row_by_row(text, name, header, separator)


def _with_polars(text: str, header: list[str], height: int, separator: str) -> pl.DataFrame | None:
    """None where polars and the CSV reader disagree about what a row is, as with a stray quote inside a cell."""
    try:
        frame = pl.read_csv(text.encode(), separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
    if frame.shape != (height, len(header)):
        return None
    return frame.rename(dict(zip(frame.columns, header, strict=True)))


def _shape(text: str, name: str, separator: str) -> tuple[list[str], list[int]]:
    rows = _rows(text, name, separator)
    header = [cell.strip() or f"column_{number}" for number, cell in enumerate(next(rows, []), start=1)]
    if not header:
        raise InputError("the file is empty: expected a header and rows", file=name)
    twice = next((column for column in header if header.count(column) > 1), None)
    if twice is not None:
        raise InputError(f"the column '{twice}' appears twice in the header", file=name)
    return header, [len(row) for row in rows]


def _row_by_row(text: str, name: str, header: list[str], separator: str) -> Table:
    rows = _rows(text, name, separator)
    next(rows)
    kept, numbers, bad = [], [], []
    for number, row in enumerate(rows, start=1):
        if len(row) == len(header):
            kept.append(row)
            numbers.append(number)
        elif row:  # an empty line is no row, but it is counted, so that the numbers match what an editor shows
            bad.append(BadRow(name, number, None, f"expected {len(header)} fields, got {len(row)}"))
    columns: dict[str, Column] = {
        column: pl.Series(column, [row[at] or None for row in kept], dtype=pl.String)
        for at, column in enumerate(header)
    }
    return Table(name, columns, numbers, typed=False, bad=tuple(bad))


def _rows(text: str, name: str, separator: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    number = 0
    try:
        for row in reader:
            yield row
            number += 1
    except csv.Error as problem:
        raise InputError(f"not readable as CSV: {_plain(problem)}", file=name, row=max(number, 1)) from problem


def _plain(problem: csv.Error) -> str:
    return "a quote is opened and never closed" if "unexpected end" in str(problem) else str(problem)


@contextmanager
def _long_cells_allowed() -> Iterator[None]:
    """Long cells are refused with their place further on; the reader's own limit would refuse the file."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
