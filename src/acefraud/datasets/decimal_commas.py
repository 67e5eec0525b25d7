"""Numbers with a decimal comma, as in ``1.234,50``: how a file writes numbers is found once and kept in its mapping."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import polars as pl

from acefraud.datasets.columns import plain_text, unknown_words
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import Column, Table

_SAMPLE = 2000
_MOSTLY = 0.95
_COMMA = r"^[-+]?[$€£]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?$"
_POINT = r"^[-+]?[$€£]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?$"
# One, two or more than three digits follow only a decimal sign; three may follow a sign between thousands.
_SURELY_COMMA = r"^[-+]?[$€£]?(?:[\d.]+,(?:\d{1,2}|\d{4,})|0,\d+|\d{1,3}(?:\.\d{3})+,\d+)$"
_SURELY_POINT = r"^[-+]?[$€£]?(?:[\d,]+\.(?:\d{1,2}|\d{4,})|0\.\d+|\d{1,3}(?:,\d{3})+\.\d+)$"
_ANY_COMMA = r"\d,\d"


def find_decimal_sign(table: Table) -> Literal[","] | None:
    """A comma if a column of numbers can only be read so and none has a decimal point; else None.

    In a file separated by semicolons, ``1,234`` is a number with a comma too.

    >>> find_decimal_sign(Table("a.csv", {"sum": pl.Series(["1.250,00", "3"])}, range(1, 3), typed=False))
    ','
    """
    commas = False
    for column in table.columns.values():
        if isinstance(column, list) or column.dtype != pl.String:
            continue
        cells = _known(column[:: max(1, len(column) // _SAMPLE)])
        if _share(cells, _POINT) >= _MOSTLY and cells.str.contains(_SURELY_POINT).any():
            return None
        sign = _ANY_COMMA if table.semicolons else _SURELY_COMMA
        commas |= _share(cells, _COMMA) >= _MOSTLY and bool(cells.str.contains(sign).any())
    return "," if commas else None


def with_decimal_points(table: Table, mapping: SchemaMapping) -> Table:
    """The table with decimal points where it has decimal commas. Categories stay as they are written."""
    numbers = {*mapping.numbers, mapping.amount}
    columns = {
        name: column if name in mapping.categories else _converted(column, always=name in numbers)
        for name, column in table.columns.items()
    }
    return replace(table, columns=columns)


def _converted(column: Column, *, always: bool) -> Column:
    if isinstance(column, list) or column.dtype != pl.String:
        return column
    if not always and _share(_known(column), _COMMA) < _MOSTLY:
        return column
    text = column.str.strip_chars()
    with_point = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return column.zip_with(~text.str.contains(_COMMA).fill_null(False), with_point)


def _known(column: pl.Series) -> pl.Series:
    return plain_text(column.filter(~unknown_words(column))).drop_nulls()


def _share(cells: pl.Series, pattern: str) -> float:
    return 0.0 if cells.is_empty() else float(cells.str.contains(pattern).sum()) / len(cells)
