"""A table: named columns, the number of each row in its file, and the rows that could not be read.

Every source becomes a table first, and everything after works on the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from acefraud.core.arrays import FloatArray
from acefraud.display.short_repr import ShortRepr
from acefraud.errors import InputError

if TYPE_CHECKING:
    import polars as pl

Column: TypeAlias = "pl.Series | list[Any]"
"""A series if all cells have one type; a plain list if a JSON file mixes types in one column."""

Purpose: TypeAlias = Literal["train", "decide", "learn"]
"""What a table is read for: labelled cases, transactions to decide, or outcomes."""

FACTS = "facts."
"""Prefix of the columns that come from a row's own ``facts`` object, so that an error can name the place."""


@dataclass(frozen=True, slots=True, repr=False)
class BadRow(ShortRepr):
    """A row that was left out, and why.

    ``row`` counts the records under the header from 1; in a file of JSON lines it is the line.

    >>> print(BadRow("tx.csv", 7, "amount", "expected a number, got '12,5x'"))
    tx.csv, row 7, field 'amount': expected a number, got '12,5x'
    """

    file: str
    row: int
    field: str | None
    message: str

    @property
    def error(self) -> InputError:
        """The same as an error, for a caller that wants to stop at the first."""
        return InputError(self.message, file=self.file, row=self.row, field=self.field)

    def __str__(self) -> str:
        return str(self.error)


@dataclass(frozen=True, slots=True, repr=False)
class Table(ShortRepr):
    """Columns of equal length with the number of each row in its file."""

    name: str
    columns: dict[str, Column]
    rows: Sequence[int]
    typed: bool
    """False if every cell came as text, so that numbers and flags have to be recognised."""
    bad: tuple[BadRow, ...] = ()
    metadata: Sequence[dict[str, Any]] = ()
    open_ended: bool = False
    """True if a column may be absent only because no row happened to have it (JSON)."""
    is_frame: bool = False
    """True for a data frame: NaN is an unknown number, and ids of rows are hashed column by column."""
    weights: FloatArray | None = None
    """How much each row counts in a fit; None if all count alike."""
    labels_apart: bool = False
    """True if the labels were no column of the data, so that no column is another one for them by its name."""
    semicolons: bool = False
    """True if semicolons separate the cells, as they do where numbers have a decimal comma."""

    remarks: tuple[str, ...] = ()
    """What a person should know about how the file was read."""
    unfit: Mapping[str, Sequence[tuple[int, str]]] = field(default_factory=dict)
    """By column, the rows whose number is written otherwise than in the rest of the column, and what is wrong."""
    as_written: Mapping[str, Column] = field(default_factory=dict)
    """Columns before their numbers were made plain: ids are made from what a file says."""

    @property
    def content(self) -> Iterator[tuple[str, Column]]:
        """The columns as the file has them."""
        return ((name, self.as_written.get(name, column)) for name, column in self.columns.items())

    @property
    def height(self) -> int:
        """How many rows could be read."""
        return len(self.rows)
