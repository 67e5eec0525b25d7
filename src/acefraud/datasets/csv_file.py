"""CSV and TSV: every cell as text, with rows of the wrong length found instead of padded."""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import polars as pl

from acefraud.datasets.table import BadRow, Column, Table
from acefraud.errors import InputError

_BLOCK = 50_000
"""Rows held as Python objects at once."""


def read_csv(data: bytes, name: str, separator: str) -> Table:
    """Read with polars where the file is regular, row by row where it is not.

    Polars fills a short row with nulls, which would turn a cut-off line into a row without a label. So the lengths
    of all rows are looked at first.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    with _long_cells_allowed():
        header = _header(data, name, separator)
        height = _regular_height(data, name, header, separator)
        frame = None if height is None else _with_polars(data, header, height, separator)
        if frame is None:
            return _row_by_row(data, name, header, separator)
        return Table(name, dict(frame.to_dict()), range(1, frame.height + 1), typed=False)


def _header(data: bytes, name: str, separator: str) -> list[str]:
    first = next(_rows(data, name, separator), [])
    header = [cell.strip() or f"column_{number}" for number, cell in enumerate(first, start=1)]
    if not header:
        raise InputError("the file is empty: expected a header and rows", file=name)
    twice = next((column for column in header if header.count(column) > 1), None)
    if twice is not None:
        raise InputError(f"the column '{twice}' appears twice in the header", file=name)
    return header


def _regular_height(data: bytes, name: str, header: list[str], separator: str) -> int | None:
    """How many rows there are under the header, if each is as long as that; else None."""
    width = len(header)
    height = -1
    for row in _rows(data, name, separator):
        if len(row) != width:
            return None
        height += 1
    return height


def _with_polars(data: bytes, header: list[str], height: int, separator: str) -> pl.DataFrame | None:
    """None where polars and the CSV reader disagree about what a row is, as with a stray quote inside a cell."""
    try:
        frame = pl.read_csv(data, separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
    if frame.shape != (height, len(header)):
        return None
    return frame.rename(dict(zip(frame.columns, header, strict=True)))


def _row_by_row(data: bytes, name: str, header: list[str], separator: str) -> Table:
    numbers: list[int] = []
    bad: list[BadRow] = []

    def sound() -> Iterator[list[str | None]]:
        rows = _rows(data, name, separator)
        next(rows)
        for number, row in enumerate(rows, start=1):
            if len(row) == len(header):
                numbers.append(number)
                yield [cell or None for cell in row]
            elif row:  # an empty line is no row, but it is counted, so that the numbers match what an editor shows
                bad.append(BadRow(name, number, None, f"expected {len(header)} fields, got {len(row)}"))

    schema = dict.fromkeys(header, pl.String)
    rows = sound()
    frame = pl.DataFrame(schema=schema)
    while block := list(islice(rows, _BLOCK)):
        frame.vstack(pl.DataFrame(block, schema=schema, orient="row"), in_place=True)
    return Table(name, dict[str, Column](frame.rechunk().to_dict()), numbers, typed=False, bad=tuple(bad))


def _rows(data: bytes, name: str, separator: str) -> Iterator[list[str]]:
    lines = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    number = 0
    try:
        for row in csv.reader(lines, delimiter=separator, strict=True):
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
