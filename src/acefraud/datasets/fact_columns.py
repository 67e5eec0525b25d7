"""Columns of a file become columns of facts and of words, by the rules for single cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from acefraud.core.lexicon import Kind
from acefraud.core.table import Columns, Numbers, coded
from acefraud.core.transaction import MAX_WORD, FactValue
from acefraud.core.transactions import Words
from acefraud.datasets.cells import FINITE, read_cells
from acefraud.datasets.distinct import BadCells, Places, distinct_cells, distinct_values, spread
from acefraud.datasets.labels import plain_text
from acefraud.datasets.table import Column


def read_fact(fact: str, column: Column, kind: Kind | None, *, typed: bool) -> tuple[Columns, BadCells]:
    """One fact in the kind of its column, and the cells that do not fit.

    >>> facts, bad = read_fact("amount", pl.Series(["5", "", "5", "x"]), "number", typed=False)
    >>> facts.numbers["amount"].tolist(), bad
    ([5.0, nan, 5.0, nan], [(3, "expected a number, got 'x'")])
    """
    if kind == "number" and isinstance(column, pl.Series) and column.dtype.is_numeric():
        numbers, bad = _typed_numbers(column)
        return Columns({fact: numbers}), bad
    distinct, places = distinct_cells(column)
    cells = read_cells(distinct, kind, typed=typed)
    return _by_kind(fact, cells.values, places), spread([*cells.bad, *_too_long(cells.values)], places)


def read_words(column: Column) -> tuple[Words, BadCells]:
    """A column of plain words, such as who took part, and the cells that are too long for one."""
    distinct, places = distinct_values(plain_text(column))
    texts = distinct.to_list()
    codes, words = coded(texts)
    return (codes[places], words), spread(_too_long(texts), places)


def together(parts: Sequence[Columns]) -> Columns:
    """The facts of all."""
    return Columns(
        {name: column for part in parts for name, column in part.numbers.items()},
        {name: column for part in parts for name, column in part.flags.items()},
        {name: column for part in parts for name, column in part.categories.items()},
    )


def compact(columns: Columns) -> Columns:
    """Without facts that no row knows and words that no row uses.

    >>> compact(Columns({"amount": np.array([np.nan])}, {}, {"kind": (np.array([1]), ("a", "b"))})).categories
    {'kind': (array([0], dtype=int32), ('b',))}
    """
    numbers = {name: column for name, column in columns.numbers.items() if not np.isnan(column).all()}
    flags = {name: column for name, column in columns.flags.items() if (column >= 0).any()}
    words = {name: _used(found) for name, found in columns.categories.items() if (found[0] >= 0).any()}
    return Columns(numbers, flags, words)


def _used(found: Words) -> Words:
    codes, words = found
    used = np.bincount(codes[codes >= 0], minlength=len(words)) > 0
    if used.all():
        return found
    new = np.full(len(words) + 1, -1, dtype=np.int32)  # the last one is where -1 leads
    new[:-1][used] = np.arange(used.sum(), dtype=np.int32)
    return new[codes], tuple(words[code] for code in np.flatnonzero(used))


def _typed_numbers(column: pl.Series) -> tuple[Numbers, BadCells]:
    numbers = column.cast(pl.Float64)
    values: Numbers = numbers.fill_null(np.nan).to_numpy()
    wrong = numbers.is_finite().fill_null(True).not_().arg_true().to_list()
    if wrong:
        values = values.copy()
        values[wrong] = np.nan
    return values, [(row, f"{FINITE}, got {str(column[row]).strip()!r}") for row in wrong]


def _by_kind(fact: str, values: Sequence[FactValue | None], places: Places) -> Columns:
    """The values of a fact, each among its own kind: a JSON column may mix them."""
    kinds = {type(value) for value in values}
    parts = []
    if float in kinds:
        numbers = np.array([value if type(value) is float else np.nan for value in values], dtype=np.float64)
        parts.append(Columns({fact: numbers[places]}))
    if bool in kinds:
        flags = np.array([value if type(value) is bool else -1 for value in values], dtype=np.int8)
        parts.append(Columns(flags={fact: flags[places]}))
    if str in kinds:
        codes, words = coded([value if isinstance(value, str) else None for value in values])
        parts.append(Columns(categories={fact: (codes[places], words)}))
    return together(parts)


def _too_long(values: Sequence[FactValue | None]) -> BadCells:
    return [
        (place, f"expected at most {MAX_WORD:,} characters, got {len(value):,}")
        for place, value in enumerate(values)
        if isinstance(value, str) and len(value) > MAX_WORD
    ]
