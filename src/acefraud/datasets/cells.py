"""Cells become facts: a column is found to hold numbers, flags or categories, then read as a whole.

Whether ``12,5x`` is a category or a slip depends on its neighbours. So the kind is settled per column, and a cell
that does not fit the kind of its column is an error with a place, never a silent category.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from acefraud.core.lexicon import Kind, words_for
from acefraud.core.transaction import FactValue
from acefraud.datasets.distinct import BadCells, distinct_cells
from acefraud.datasets.table import Column

_FEW = 20
"""Rows below which a column says too little of itself to overrule the name it bears."""
MOSTLY = 0.95
"""Share of the non-empty cells that settles what a column holds."""

_WORDED_FLAGS = {"true": True, "yes": True, "false": False, "no": False}
_LETTERED_FLAGS = {"t": True, "y": True, "f": False, "n": False}
_FLAGS = _WORDED_FLAGS | _LETTERED_FLAGS | {"1": True, "0": False, "1.0": True, "0.0": False}
_MONEY = r"^[-+]?[$€£]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?$"
_NO_VALUE = ("", "null", "none")

NUMBER = "expected a number"
FINITE = "expected a finite number or an empty cell"
FLAG = "expected a flag (true/false, yes/no or 1/0)"
VALUE = "expected a number, a flag or text"


@dataclass(frozen=True, slots=True)
class Cells:
    """A column read as facts, None where a fact is not known, and the cells that do not fit."""

    values: list[FactValue | None]
    bad: BadCells


def find_kind(column: Column, fact: str, *, typed: bool) -> Kind | None:
    """What a column holds; None where a JSON column mixes types and each cell keeps its own.

    A fact of the house has its kind, if at least half of the cells can be read so: few rows say little about a
    column, and ``1`` for a VPN is a flag.

    >>> find_kind(pl.Series(["1", "0"]), "vpn", typed=False), find_kind(pl.Series(["1", "0"]), "V1", typed=False)
    ('flag', 'number')
    """
    words = words_for(fact)
    few = len(column) < _FEW and words is not None and words.kind != "category"
    if words is not None and (few or _suits(column, words.kind, at_least=0.5)):
        return words.kind
    if isinstance(column, list):
        return _kind_of_mixed(column)
    if column.dtype.is_nested():
        return None
    if column.dtype.is_numeric():
        return "number"
    if column.dtype == pl.Boolean:
        return "flag"
    return "category" if typed else _kind_of_texts(column)


def read_cells(column: Column, kind: Kind | None, *, typed: bool) -> Cells:
    """Read a column as one kind; what is empty is absent."""
    if isinstance(column, pl.Series) and (column.dtype.is_nested() or column.dtype == pl.Binary):
        column = column.to_list()
    if isinstance(column, list):
        return _read_mixed(column, kind)
    match kind:
        case "number":
            return _numbers(column)
        case "flag":
            return _flags(column)
    return Cells(_categories(column, typed=typed), [])


def _suits(column: Column, kind: Kind, *, at_least: float) -> bool:
    if kind == "category":
        return isinstance(column, pl.Series) and not column.dtype.is_nested()
    distinct, places = distinct_cells(column)
    cells = read_cells(distinct, kind, typed=False)
    rows = np.bincount(places, minlength=len(distinct))
    present = int(rows[[value is not None for value in cells.values]].sum())
    return present > 0 and present >= at_least * (present + int(rows[[cell for cell, _ in cells.bad]].sum()))


def _kind_of_texts(column: pl.Series) -> Kind:
    text = column.cast(pl.String).str.strip_chars()
    # "None" is how Python writes an empty cell; "none" is more often an answer ("past claims: none").
    cells = text.filter(text.is_not_null() & ~text.str.to_lowercase().is_in(["", "null"]) & (text != "None"))
    if cells.is_empty():
        return "category"
    words = set(cells.head(10_000).str.to_lowercase().unique().to_list())
    if words <= _LETTERED_FLAGS.keys() and words not in ({"t"}, {"f"}, {"y"}, {"n"}):
        return "flag"  # a lone "F" is as likely a sex as a flag
    if cells.str.to_lowercase().is_in(list(_WORDED_FLAGS)).sum() >= MOSTLY * len(cells):
        return "flag"
    numbers = _as_floats(cells)
    if numbers.is_finite().sum() and numbers.is_not_null().sum() >= MOSTLY * len(cells):
        return "number"
    return "category"


def _cleaned(column: pl.Series) -> pl.Series:
    """Trimmed text with empty cells as nulls."""
    text = column.cast(pl.String).str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(_NO_VALUE).fill_null(False), None)


def _as_floats(text: pl.Series) -> pl.Series:
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() == text.null_count():
        return numbers
    money = text.str.contains(_MONEY) & numbers.is_null()
    stripped = text.set(~money.fill_null(False), None).str.replace_all(r"[$€£,]", "").cast(pl.Float64, strict=False)
    return pl.select(pl.coalesce(numbers, stripped)).to_series()


def _numbers(column: pl.Series) -> Cells:
    text = None if column.dtype.is_numeric() else _cleaned(column)
    numbers = column.cast(pl.Float64) if text is None else _as_floats(text)
    values: list[FactValue | None] = numbers.to_list()
    bad: BadCells = []
    if text is not None:
        wrong = (numbers.is_null() & text.is_not_null()).arg_true().to_list()
        bad += [(row, f"{NUMBER}, got {text[row][:60]!r}") for row in wrong]
    for row in numbers.is_finite().fill_null(True).not_().arg_true().to_list():
        bad.append((row, f"{FINITE}, got {str(column[row]).strip()!r}"))
        values[row] = None
    return Cells(values, sorted(bad))


def _flags(column: pl.Series) -> Cells:
    if column.dtype == pl.Boolean:
        return Cells(column.to_list(), [])
    texts = _cleaned(column).to_list()
    return Cells(
        [None if text is None else _FLAGS.get(text.lower()) for text in texts],
        [
            (row, f"{FLAG}, got {text[:60]!r}")
            for row, text in enumerate(texts)
            if text is not None and text.lower() not in _FLAGS
        ],
    )


def _categories(column: pl.Series, *, typed: bool) -> list[FactValue | None]:
    """``none`` is a category like another ("past claims: none"), ``null`` in a file of text is an empty cell."""
    text = column.cast(pl.String).str.strip_chars()
    if column.dtype.is_float():
        text = text.str.replace(r"\.0$", "")
    empty = text == "" if typed else text.str.to_lowercase().is_in(["", "null"])
    return text.set(empty.fill_null(False), None).to_list()


def _kind_of_mixed(column: list[Any]) -> Kind | None:
    present = [value for value in column if value is not None and value != ""]
    flags = sum(isinstance(value, bool) for value in present)
    numbers = sum(isinstance(value, int | float) for value in present) - flags
    if present and numbers >= MOSTLY * len(present):
        return "number"
    return "flag" if present and flags >= MOSTLY * len(present) else None


def _read_mixed(column: list[Any], kind: Kind | None) -> Cells:
    values: list[FactValue | None] = []
    bad: BadCells = []
    for row, value in enumerate(column):
        try:
            values.append(_one_cell(value, kind))
        except ValueError as unfit:
            values.append(None)
            bad.append((row, str(unfit)))
    return Cells(values, bad)


def _one_cell(value: Any, kind: Kind | None) -> FactValue | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str | bool | int | float):
        raise ValueError(f"{VALUE}, got {_shape(value)}")
    match kind:
        case "number":
            return _one_number(value)
        case "flag":
            flag = _FLAGS.get(str(value).strip().lower())
            if flag is None:
                raise ValueError(f"{FLAG}, got {str(value)[:60]!r}")
            return flag
        case "category":
            return _one_category(value)
    return _one_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else _own(value)


def _own(value: str | bool | int | float) -> FactValue:
    return value.strip() if isinstance(value, str) else value


def _one_category(value: str | bool | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return re.sub(r"\.0$", "", str(value).strip())


def _one_number(value: str | bool | float) -> float | None:
    if isinstance(value, str):
        if value.strip().lower() in _NO_VALUE:
            return None
        parsed = _as_floats(pl.Series([value.strip()]))[0]
    else:
        parsed = None if isinstance(value, bool) else _float(value)
    if parsed is None:
        raise ValueError(f"{NUMBER}, got {str(value)[:60]!r}")
    if not math.isfinite(parsed):
        raise ValueError(f"{FINITE}, got {str(value)[:60]!r}")
    return float(parsed)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond what a float can hold
        return math.inf


def _shape(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else type(value).__name__
