"""Cells that say something only with what is beside them: a time of day with its date, a mark with the empty cells."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from acefraud.core.timestamps import UNKNOWN
from acefraud.datasets.columns import plain_text, unknown_words
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.reading_report import Remark
from acefraud.datasets.table import Column, Table
from acefraud.datasets.times import read_times
from acefraud.facts.time_facts import DAY

MARKS = ("x", "✓", "✔")
_CLOCK = r"(?i)^(?:[01]?\d|2[0-3])(?::| ?h ?)[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?: ?[ap]\.? ?m\.?)?$"


def holds_marks(column: Column) -> bool:
    """Whether a column holds one mark and empty cells, and nothing else.

    >>> holds_marks(pl.Series(["X", None, ""])), holds_marks(pl.Series(["x", "x"])), holds_marks(pl.Series(["x", "y"]))
    (True, False, False)
    """
    if not isinstance(column, pl.Series) or column.dtype != pl.String:
        return False
    words = plain_text(column).str.to_lowercase().unique()
    return len(words) == 2 and words.has_nulls() and words.is_in(MARKS).any()


def holds_clocks(column: Column) -> bool:
    """Whether nearly all cells are times of day."""
    if not isinstance(column, pl.Series) or column.dtype not in (pl.String, pl.Time):
        return False
    cells = plain_text(column).drop_nulls()
    return len(cells) > 0 and int(cells.str.contains(_CLOCK).sum()) >= 0.95 * len(cells)


def holds_days(column: Column) -> bool:
    """Whether no time in a column has a time of day."""
    times = read_times(column).values
    return not (times[times != UNKNOWN] % DAY).any()


def with_whole_cells(table: Table, mapping: SchemaMapping, *, done: SchemaMapping | None = None) -> Table:
    """The table with the time of day beside its date, and yes or no for marks; not what was ``done`` before.

    >>> table = Table("a.csv", {"Tag": pl.Series(["3.4.25"]), "Zeit": pl.Series(["9:05"])}, range(1, 2), typed=False)
    >>> with_whole_cells(table, SchemaMapping(time="Tag", clock="Zeit")).columns["Tag"].to_list()
    ['3.4.25 9:05']
    """
    done = done or SchemaMapping()
    columns, unfit, remarks = dict(table.columns), dict(table.unfit), list(table.remarks)
    for name in (one for one in mapping.marked if one in columns and one not in done.marked):
        cells = plain_text(columns[name])
        columns[name] = cells.str.replace(f"(?i)^(?:{'|'.join(MARKS)})$", "yes").fill_null("no")
        example = f"{cells.drop_nulls().first()!r} is yes, an empty cell is no"
        remarks.append(Remark(name, "is read as yes or no", example, f'categories = ["{name}"]'))
    if mapping.clock and mapping.time and not done.clock and {mapping.clock, mapping.time} <= columns.keys():
        clocks = (texts := plain_text(columns[mapping.clock])).set(unknown_words(texts), None)
        wrong = (~clocks.str.contains(_CLOCK)).fill_null(False).arg_true().to_list()
        unfit[mapping.clock] = [(row, f"expected a time of day like 14:05, got {clocks[row][:60]!r}") for row in wrong]
        days = plain_text(columns[mapping.time]).str.replace(r"[ T]00:00[:.0]*$", "")
        columns[mapping.time] = (days + " " + clocks).alias(mapping.time)
    return replace(table, columns=columns, unfit=unfit, remarks=tuple(remarks))
