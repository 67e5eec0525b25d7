"""Columns of a table become facts: a column is found to hold numbers, flags or categories, then read as a whole.

Whether ``12,5x`` is a category or a typing error depends on its neighbours. So the kind is settled per column, and a
cell that does not fit the kind of its column is an error with a place, never a silent category.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from acefraud.core.fact_names import Kind, words_for
from acefraud.core.table import Categories, Columns, coded
from acefraud.core.transaction import MAX_WORD, FactValue
from acefraud.datasets.columns import (
    UNKNOWN_WORDS,
    USUAL_WORDS,
    BadCells,
    distinct_cells,
    distinct_values,
    folded,
    is_null_word,
    plain_text,
    spread,
)
from acefraud.datasets.plain_cells import parse_numbers
from acefraud.datasets.table import Column
from acefraud.support.arrays import IntArray

_FEW = 20
"""With fewer rows than this, the name of a column decides its kind rather than its cells."""
_MOSTLY = 0.95
"""Share of the non-empty cells that settles what a column holds."""

_WORDED_FLAGS = {folded(word): key == "yes" for key in ("yes", "no") for word in USUAL_WORDS["flags"][key]}
_LETTERS = USUAL_WORDS["flags"]["letters"]
FLAGS = {pair[0]: True for pair in _LETTERS} | {pair[1]: False for pair in _LETTERS} | _WORDED_FLAGS
FLAGS |= {"1": True, "0": False, "1.0": True, "0.0": False}
_SURELY_UNKNOWN = UNKNOWN_WORDS - {"none"}
"""Words that are no answer; "none" is more often one ("past claims: none"), but "None" is Python's empty cell."""

_NUMBER = "expected a number"
_FINITE = "expected a finite number or an empty cell"
_FLAG = "expected a flag (true/false, yes/no or 1/0)"

_Cells = tuple[list[FactValue | None], BadCells]
"""A column read as facts, None where a fact is not known, and the cells that do not fit."""


def find_kind(column: Column, fact: str, *, typed: bool) -> Kind | None:
    """What a column holds; None if a JSON column mixes types and each cell keeps its own.

    A fact that the engine knows by name keeps its kind if at least half of the cells can be read so: ``1`` for a VPN
    is a flag.

    >>> find_kind(pl.Series(["1", "0"]), "vpn", typed=False), find_kind(pl.Series(["1", "0"]), "V1", typed=False)
    ('flag', 'number')
    """
    words = words_for(fact)
    few = len(column) < _FEW and words is not None and words.kind != "category"
    if words is not None and (few or suits(column, words.kind)):
        return words.kind
    if isinstance(column, list):
        return _kind_of_mixed(column)
    if column.dtype.is_nested():
        return None
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return "flag" if column.dtype == pl.Boolean else "number"
    if not typed:
        return _kind_of_texts(column)
    texts = column.cast(pl.String).drop_nulls()
    return "flag" if texts.n_unique() > 1 and holds_flags(texts) else "category"  # one word alone says little


def suits(column: Column, kind: Kind) -> bool:
    """Whether at least half of the non-empty cells can be read as this kind."""
    if kind == "category":
        return isinstance(column, pl.Series) and not column.dtype.is_nested()
    if kind == "number" and isinstance(column, pl.Series) and column.dtype.is_numeric():
        return column.null_count() < len(column)
    distinct, places = distinct_cells(column)
    values, bad = _read_cells(distinct, kind, typed=False)
    rows = np.bincount(places, minlength=len(distinct))
    present = int(rows[[value is not None for value in values]].sum())
    return present > 0 and present >= 0.5 * (present + int(rows[[cell for cell, _ in bad]].sum()))


def _kind_of_texts(column: pl.Series) -> Kind:
    text = column.cast(pl.String).str.strip_chars()
    unknown = text.str.to_lowercase().is_in(["", *_SURELY_UNKNOWN]) | (text == "None")
    cells = text.filter(text.is_not_null() & ~unknown)
    if cells.is_empty():
        return "category"
    if holds_flags(cells):
        return "flag"
    numbers = cells.cast(pl.Float64, strict=False)  # `with_plain_numbers` has made them plain
    if numbers.is_finite().sum() and numbers.is_not_null().sum() >= _MOSTLY * len(cells):
        return "number"
    return "category"


def holds_flags(cells: pl.Series) -> bool:
    """Whether cells say yes and no in one of the languages that are known."""
    words = set(map(folded, cells.head(10_000).unique().to_list()))
    if len(words) > 1 and any(words <= set(pair) for pair in _LETTERS):  # a lone "F" is as likely a sex as a flag
        return True
    flags = [word for word in cells.unique() if folded(word) in _WORDED_FLAGS] if words & _WORDED_FLAGS.keys() else []
    return bool(flags) and int(cells.is_in(flags).sum()) >= _MOSTLY * len(cells)


def _kind_of_mixed(column: list[Any]) -> Kind | None:
    present = [value for value in column if value is not None and not _says_nothing(value)]
    flags = sum(isinstance(value, bool) for value in present)
    numbers = sum(isinstance(value, int | float) for value in present) - flags
    if present and numbers >= _MOSTLY * len(present):
        return "number"
    return "flag" if present and flags >= _MOSTLY * len(present) else None


def _says_nothing(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in {"", *_SURELY_UNKNOWN}


def read_fact(
    fact: str, column: Column, kind: Kind | None, *, typed: bool, nan_is_unknown: bool = False
) -> tuple[Columns, BadCells]:
    """One fact in the kind of its column, and the cells that do not fit.

    >>> facts, bad = read_fact("amount", pl.Series(["5", "", "5", "x"]), "number", typed=False)
    >>> facts.numbers["amount"].tolist(), bad
    ([5.0, nan, 5.0, nan], [(3, "expected a number, got 'x'")])
    """
    if kind == "number" and isinstance(column, pl.Series) and column.dtype.is_numeric():
        numbers, bad = _finite(column.cast(pl.Float64), column, nan_is_unknown=nan_is_unknown)
        return Columns({fact: numbers.fill_null(np.nan).to_numpy()}), bad
    distinct, places = distinct_cells(column)
    values, bad = _read_cells(distinct, kind, typed=typed)
    return _by_kind(fact, values, places), spread([*bad, *_too_long(values)], places)


def read_words(column: Column) -> tuple[Categories, BadCells]:
    """A column of plain words, such as who took part, and the cells that are too long for one."""
    distinct, places = distinct_values(plain_text(column))
    texts = distinct.to_list()
    codes, words = coded(texts)
    return (codes[places], words), spread(_too_long(texts), places)


def _by_kind(fact: str, values: Sequence[FactValue | None], places: IntArray) -> Columns:
    """The values of a fact, each among its own kind: a JSON column may mix them."""
    kinds = {type(value) for value in values}
    columns = Columns()
    if float in kinds:
        numbers = np.array([value if type(value) is float else np.nan for value in values], dtype=np.float64)
        columns = Columns({fact: numbers[places]})
    if bool in kinds:
        flags = np.array([value if type(value) is bool else -1 for value in values], dtype=np.int8)
        columns = Columns(columns.numbers, {fact: flags[places]})
    if str in kinds:
        codes, words = coded([value if isinstance(value, str) else None for value in values])
        columns = Columns(columns.numbers, columns.flags, {fact: (codes[places], words)})
    return columns


def _too_long(values: Sequence[FactValue | None]) -> BadCells:
    return [(place, problem) for place, value in enumerate(values) if (problem := too_long(value))]


def too_long(value: FactValue | None) -> str | None:
    """What is wrong with a word that is too long; None if it is not."""
    if not isinstance(value, str) or len(value) <= MAX_WORD:
        return None
    return f"expected at most {MAX_WORD:,} characters, got {len(value):,}"


def _read_cells(column: Column, kind: Kind | None, *, typed: bool) -> _Cells:
    if isinstance(column, pl.Series) and (column.dtype.is_nested() or column.dtype == pl.Binary):
        column = column.to_list()
    if isinstance(column, list):
        return _read_mixed(column, kind)
    match kind:
        case "number":
            return _read_numbers(column)
        case "flag":
            return _read_flags(column)
    return _read_categories(column, typed=typed), []


def _without_null_words(column: pl.Series) -> pl.Series:
    """Trimmed text, null where it is empty or says that there is none."""
    text = column.cast(pl.String).str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(["", *UNKNOWN_WORDS]).fill_null(False), None)


def _as_floats(text: pl.Series) -> pl.Series:
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() == text.null_count():
        return numbers
    return numbers.zip_with(numbers.is_not_null(), parse_numbers(text))


def _finite(numbers: pl.Series, column: pl.Series, *, nan_is_unknown: bool = False) -> tuple[pl.Series, BadCells]:
    """The numbers that are finite, and the cells of ``column`` that are not. NaN may stand for an empty cell."""
    wrong = numbers.is_infinite() if nan_is_unknown else numbers.is_finite().not_()
    wrong = wrong.fill_null(False)
    bad = [(row, f"{_FINITE}, got {str(column[row]).strip()[:60]!r}") for row in wrong.arg_true().to_list()]
    return (numbers.set(wrong, None) if bad else numbers), bad


def _read_numbers(column: pl.Series) -> _Cells:
    if column.dtype.is_numeric():
        numbers, bad = _finite(column.cast(pl.Float64), column)
        return numbers.to_list(), bad
    text = _without_null_words(column)
    parsed = _as_floats(text)
    numbers, bad = _finite(parsed, column)
    wrong = (parsed.is_null() & text.is_not_null()).arg_true().to_list()
    return numbers.to_list(), sorted([*bad, *((row, f"{_NUMBER}, got {text[row][:60]!r}") for row in wrong)])


def _read_flags(column: pl.Series) -> _Cells:
    if column.dtype == pl.Boolean:
        return column.to_list(), []
    if column.dtype.is_float():
        column = column.fill_nan(None)
    texts = _without_null_words(column).to_list()
    values = [None if text is None else FLAGS.get(folded(text)) for text in texts]
    bad = [
        (row, f"{_FLAG}, got {text[:60]!r}")
        for row, (text, value) in enumerate(zip(texts, values, strict=True))
        if value is None and text is not None
    ]
    return list(values), bad


def _read_categories(column: pl.Series, *, typed: bool) -> list[FactValue | None]:
    """``none`` is a category like another ("past claims: none"), ``null`` in a file of text is an empty cell."""
    is_float = column.dtype.is_float()
    text = (column.fill_nan(None) if is_float else column).cast(pl.String).str.strip_chars()
    if is_float:
        text = text.str.replace(r"\.0$", "")
    empty = text == "" if typed else text.str.to_lowercase().is_in(["", "null"])
    return text.set(empty.fill_null(False), None).to_list()


def _read_mixed(column: list[Any], kind: Kind | None) -> _Cells:
    values: list[FactValue | None] = []
    bad: BadCells = []
    for row, value in enumerate(column):
        try:
            values.append(read_cell(value, kind))
        except ValueError as unfit:
            values.append(None)
            bad.append((row, str(unfit)))
    return values, bad


def kind_of_cell(value: Any, fact: str) -> Kind | None:
    """What `find_kind` finds for a typed column with this one cell; None if the cell keeps its own kind."""
    words = words_for(fact)
    if words is None or (words.kind == "category" and not isinstance(value, str | bool | int | float)):
        return None
    return words.kind


def read_cell(value: Any, kind: Kind | None) -> FactValue | None:
    """One cell of a column of mixed types. Without a kind, it keeps its own."""
    text = str(value).strip()
    if value is None or text == "":
        return None
    if not isinstance(value, str | bool | int | float):
        shape = {"dict": "an object", "list": "a list"}.get(type(value).__name__, type(value).__name__)
        raise ValueError(f"expected a number, a flag or text, got {shape}")
    if kind == "number" or (kind is None and not isinstance(value, str | bool)):
        return _read_number(value, text)
    if kind == "flag":
        if isinstance(value, str) and is_null_word(text):
            return None
        if folded(text) not in FLAGS:
            raise ValueError(f"{_FLAG}, got {text[:60]!r}")
        return FLAGS[folded(text)]
    if kind == "category":
        return text.lower() if isinstance(value, bool) else re.sub(r"\.0$", "", text)
    return text if isinstance(value, str) else bool(value)


def _read_number(value: str | bool | float, text: str) -> float | None:
    if isinstance(value, str) and is_null_word(text):
        return None
    parsed: float | None
    if isinstance(value, str):
        parsed = _as_floats(pl.Series([text]))[0]
    else:
        parsed = None if isinstance(value, bool) else _float(value)
    if parsed is None:
        written = text.lower() if isinstance(value, bool) else text  # a flag as files write it
        raise ValueError(f"{_NUMBER}, got {written[:60]!r}")
    if not math.isfinite(parsed):
        raise ValueError(f"{_FINITE}, got {text[:60]!r}")
    return parsed


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond what a float can hold
        return math.inf


def join_columns(parts: Sequence[Columns]) -> Columns:
    """The facts of all parts side by side."""
    return Columns(
        {name: column for part in parts for name, column in part.numbers.items()},
        {name: column for part in parts for name, column in part.flags.items()},
        {name: column for part in parts for name, column in part.categories.items()},
    )


def compact(columns: Columns) -> Columns:
    """The columns without facts that no row knows and words that no row uses.

    >>> compact(Columns({"amount": np.array([np.nan])}, {}, {"kind": (np.array([1]), ("a", "b"))})).categories
    {'kind': (array([0], dtype=int32), ('b',))}
    """
    numbers = {name: column for name, column in columns.numbers.items() if not np.isnan(column).all()}
    flags = {name: column for name, column in columns.flags.items() if (column >= 0).any()}
    words = {name: _used(found) for name, found in columns.categories.items() if (found[0] >= 0).any()}
    return Columns(numbers, flags, words)


def _used(found: Categories) -> Categories:
    codes, words = found
    used = np.bincount(codes[codes >= 0], minlength=len(words)) > 0
    if used.all():
        return found
    new = np.full(len(words) + 1, -1, dtype=np.int32)  # the last one is where -1 leads
    new[:-1][used] = np.arange(used.sum(), dtype=np.int32)
    return new[codes], tuple(words[code] for code in np.flatnonzero(used))
