"""What the readers of columns share: cells as plain text, and reading each distinct cell once."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl

from acefraud.core.arrays import IntArray
from acefraud.datasets.table import Column

BadCells = list[tuple[int, str]]
"""Rows with what is wrong in them."""

T = TypeVar("T")

UNKNOWN_WORDS = frozenset({"na", "n/a", "n.a.", "#n/a", "#nv", "null", "-", "--", "–", "—", "?", "none"}) | frozenset(
    # of German, Spanish, French and Italian exports
    {"k.a.", "k. a.", "n.v.", "n. v.", "s/d", "n/d", "n.d.", "n. d.", "nc"}
)
"""What people and programs write, in any case, where there is no value."""


def folded(text: str) -> str:
    """A text without case and accents, so that ``SÍ`` and ``si`` are the same word.

    >>> folded("Rückbuchung"), folded("Não"), folded("Straße")
    ('ruckbuchung', 'nao', 'strasse')
    """
    if text.isascii():
        return text.lower()
    return "".join(one for one in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(one))


def plain_texts(column: Column) -> list[str | None]:
    """The cells of `plain_text` as a list.

    >>> plain_texts([7, " x ", None, True, ""])
    ['7', 'x', None, 'true', None]
    """
    return plain_text(column).to_list()


def plain_text(column: Column) -> pl.Series:
    """Cells as trimmed text, null where empty: the form in which ids, labels and times are read."""
    if isinstance(column, list) or column.dtype.is_nested() or column.dtype == pl.Object:
        cells = column if isinstance(column, list) else column.to_list()
        return pl.Series([plain_cell(value) for value in cells], dtype=pl.String)
    is_float = column.dtype.is_float()
    text = (column.fill_nan(None) if is_float else column).cast(pl.String, strict=False)
    if is_float:
        text = text.str.replace(r"\.0$", "")
    text = text.str.strip_chars()
    return text.set(text == "", None)


def plain_cell(value: Any) -> str | None:
    """One cell as `plain_text` gives it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() or None


def is_null_word(text: str | None) -> bool:
    """Whether a text only says that there is none."""
    return text is None or text.casefold() in UNKNOWN_WORDS


def unknown_words(column: Column) -> pl.Series:
    """Whether each cell holds a word that only says that there is no value. An empty cell holds none.

    >>> unknown_words(pl.Series(["5", " N/A ", "", None])).to_list()
    [False, True, False, False]
    """
    if isinstance(column, pl.Series) and column.dtype != pl.String:
        return pl.repeat(False, len(column), eager=True)
    texts = [cell if isinstance(cell, str) else None for cell in column] if isinstance(column, list) else column
    words = pl.Series(texts, dtype=pl.String).str.strip_chars().str.to_lowercase()
    return words.is_in(UNKNOWN_WORDS).fill_null(False)


def distinct_cells(column: Column) -> tuple[Column, IntArray]:
    """The cells that have to be read, and for each row the place of its own among them.

    Mixed, nested and fractional cells come as they are: they are unhashable, or equal without being written alike.

    >>> cells, places = distinct_cells(pl.Series(["web", None, "web"]))
    >>> cells.to_list(), places.tolist()
    (['web', None], [0, 1, 0])
    """
    if isinstance(column, list):
        return column, np.arange(len(column))
    dtype = column.dtype
    if dtype in (pl.String, pl.Boolean) or dtype.is_integer() or dtype.is_temporal():
        return distinct_values(column)
    return column, np.arange(len(column))


def distinct_values(column: pl.Series) -> tuple[pl.Series, IntArray]:
    """The distinct values of a column whose cells can be compared, and for each row the place of its own."""
    values = column.unique(maintain_order=True)
    places = pl.DataFrame({"cell": values, "place": np.arange(len(values))})
    joined = pl.DataFrame({"cell": column}).join(places, on="cell", how="left", nulls_equal=True, maintain_order="left")
    return values, joined["place"].to_numpy()


def read_distinct(
    column: Column, read: Callable[[str | None], T | None], expected: Callable[[str], str]
) -> tuple[list[T | None], IntArray, BadCells]:
    """What ``read`` makes of each distinct text, for each row the place of its own, and the cells it cannot read."""
    texts, places = distinct_values(plain_text(column))
    found = [read(text) for text in texts]
    bad = [
        (place, expected(text))
        for place, (text, value) in enumerate(zip(texts, found, strict=True))
        if value is None and not is_null_word(text)
    ]
    return found, places, spread(bad, places)


def spread(bad: Sequence[tuple[int, str]], places: IntArray) -> BadCells:
    """The bad rows: what is wrong with a distinct cell is wrong with every row that holds it.

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
