"""Cells become arrays, by the rules that hold for single rows; each distinct cell is looked at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from acefraud.core.lexicon import Kind
from acefraud.core.table import Codes, Columns, Flags, Numbers
from acefraud.core.timestamps import UNKNOWN
from acefraud.core.transaction import FactValue
from acefraud.datasets.assembly import too_long
from acefraud.datasets.cells import FINITE, read_cells
from acefraud.datasets.labels import plain_texts
from acefraud.datasets.table import Column
from acefraud.datasets.times import ISO, find_format, read_times

Micros = npt.NDArray[np.int64]
Places = npt.NDArray[np.int64]
BadCells = list[tuple[int, str]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def parted(column: Column) -> tuple[Column, Places]:
    """The cells that have to be looked at, and for each row the one that it holds."""
    if isinstance(column, pl.Series) and _is_plain(column):
        return _distinct(column)
    return column, np.arange(len(column))


def _distinct(column: pl.Series) -> tuple[pl.Series, Places]:
    """The different cells of a column, and for each row which of them it holds."""
    cells = column.unique(maintain_order=True)
    places = pl.DataFrame({"cell": cells, "place": np.arange(len(cells))})
    joined = pl.DataFrame({"cell": column}).join(places, on="cell", how="left", nulls_equal=True, maintain_order="left")
    return cells, joined["place"].to_numpy()


def _is_plain(column: Column) -> bool:
    return isinstance(column, pl.Series) and not column.dtype.is_nested() and column.dtype not in (pl.Object, pl.Binary)


def spread(bad: Sequence[tuple[int, str]], places: Places) -> BadCells:
    """What is wrong with a cell is wrong with every row that holds it."""
    if not bad:
        return []
    messages = dict(bad)
    rows = np.flatnonzero(np.isin(places, list(messages)))
    return [(int(row), messages[int(places[row])]) for row in rows]


def read_micros(column: Column, time_format: str | None) -> tuple[Micros, BadCells, str]:
    """Times in microseconds since 1970, `UNKNOWN` where there is none; what is wrong; and the format that was found."""
    if isinstance(column, pl.Series) and isinstance(column.dtype, pl.Datetime):
        stamps = column.cast(pl.Datetime("us", column.dtype.time_zone)).to_physical()
        return stamps.fill_null(UNKNOWN).to_numpy(), [], time_format or ISO
    if not (isinstance(column, pl.Series) and column.dtype.is_temporal()):
        time_format = time_format or find_format(plain_texts(column)) or ISO
    cells, places = parted(column)
    read = read_times(cells, time_format)
    return micros_of(read.values)[places], spread(read.bad, places), read.format


def micros_of(times: Sequence[datetime | None]) -> Micros:
    """Microseconds since 1970, `UNKNOWN` where there is no time."""
    return np.array([UNKNOWN if one is None else (one - _EPOCH) // _MICROSECOND for one in times], dtype=np.int64)


def coded_flags(values: Sequence[FactValue | None]) -> Flags:
    """1 for true, 0 for false, -1 where there is none."""
    return np.array([-1 if value is None else value is True for value in values], dtype=np.int8)


def read_fact(fact: str, column: Column, kind: Kind | None, *, typed: bool) -> tuple[Columns, BadCells]:
    """One fact in the kind of its column, and the cells that do not fit."""
    if kind == "number" and isinstance(column, pl.Series) and column.dtype.is_numeric():
        numbers, bad = _typed_numbers(column)
        return Columns({fact: numbers}), bad
    cells, places = parted(column)
    read = read_cells(cells, kind, typed=typed)
    return _by_kind(fact, read.values, places), spread([*read.bad, *too_long(read.values)], places)


def _typed_numbers(column: pl.Series) -> tuple[Numbers, BadCells]:
    numbers = column.cast(pl.Float64)
    values: Numbers = numbers.fill_null(np.nan).to_numpy().copy()
    wrong = numbers.is_finite().fill_null(True).not_().arg_true().to_list()
    bad = [(row, f"{FINITE}, got {str(column[row]).strip()!r}") for row in wrong]
    values[wrong] = np.nan
    return values, bad


def _by_kind(fact: str, values: Sequence[FactValue | None], places: Places) -> Columns:
    """The values of a fact, each among its own kind: a JSON column may mix them."""
    kinds = {type(value) for value in values}
    columns = Columns({}, {}, {})
    if float in kinds:
        numbers = np.array([value if type(value) is float else np.nan for value in values], dtype=np.float64)
        columns = Columns({fact: numbers[places]}, {}, {})
    if bool in kinds:
        flags = coded_flags([value if type(value) is bool else None for value in values])
        columns = together(columns, Columns(flags={fact: flags[places]}))
    if str in kinds:
        words = tuple(sorted({value for value in values if isinstance(value, str)}))
        code = {word: at for at, word in enumerate(words)}
        codes = np.array([code[value] if isinstance(value, str) else -1 for value in values], dtype=np.int32)
        columns = together(columns, Columns(categories={fact: (codes[places], words)}))
    return columns


def entity_codes(column: Column) -> Codes:
    """A code for each value, -1 where a cell is empty."""
    cells, places = parted(column)
    code: dict[str, int] = {}
    codes = [-1 if text is None else code.setdefault(text, len(code)) for text in plain_texts(cells)]
    return np.array(codes, dtype=np.int32)[places]


def read_numbers(column: Column, *, typed: bool) -> Numbers:
    """A column of numbers, NaN where a cell holds none."""
    columns, _ = read_fact("", column, "number", typed=typed)
    return columns.numbers.get("", np.full(len(column), np.nan))


def together(one: Columns, other: Columns) -> Columns:
    """The facts of both."""
    return Columns(
        {**one.numbers, **other.numbers}, {**one.flags, **other.flags}, {**one.categories, **other.categories}
    )


def compact(columns: Columns) -> Columns:
    """Without facts that no row knows and words that no row uses."""
    numbers = {name: column for name, column in columns.numbers.items() if not np.isnan(column).all()}
    flags = {name: column for name, column in columns.flags.items() if (column >= 0).any()}
    categories = {}
    for name, (codes, words) in columns.categories.items():
        used = np.unique(codes[codes >= 0])
        if not len(used):
            continue
        new = np.full(len(words) + 1, -1, dtype=np.int32)
        new[used] = np.arange(len(used), dtype=np.int32)
        categories[name] = (new[codes], tuple(words[code] for code in used))
    return Columns(numbers, flags, categories)
