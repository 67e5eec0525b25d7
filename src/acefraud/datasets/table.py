"""A table, into which every source is read first, and what there is to say of how it was read.

Tables have named columns and the number of each row in its file; everything after works on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from acefraud.display.short_repr import ShortRepr
from acefraud.errors import InputError
from acefraud.support.arrays import FloatArray

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
        """The bad cell as an error, for callers that stop at the first one."""
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
    """True for a data frame: NaN is an unknown number."""
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

    @property
    def height(self) -> int:
        """How many rows could be read."""
        return len(self.rows)


Weight: TypeAlias = Literal["usual", "note", "warning"]
"""How much a remark matters: it goes without saying, it is worth knowing, or it may cost something."""


class Remark(str):
    """One thing that was guessed, left out or read in a special way, in words.

    >>> remark = Remark("zip", "is left out", "an id: a rule about it would not generalise", 'categories = ["zip"]')
    >>> print(remark)
    `zip` is left out: an id: a rule about it would not generalise; `categories = ["zip"]` in a mapping changes that
    >>> remark.column, remark.done, remark.change
    ('zip', 'is left out', 'categories = ["zip"]')
    """

    column: str
    """The column; empty if it is about the whole."""
    done: str
    why: str
    change: str
    """The line of a mapping that changes it: of a TOML file, and an argument of `SchemaMapping` alike."""
    weight: Weight

    def __new__(cls, column: str, done: str, why: str = "", change: str = "", weight: Weight = "note") -> Self:
        said = f"`{column}` {done}" if column else done
        said += f": {why}" if why else ""
        remark = super().__new__(cls, f"{said}; `{change}` in a mapping changes that" if change else said)
        remark.column, remark.done, remark.why, remark.change, remark.weight = column, done, why, change, weight
        return remark

    def __getnewargs__(self) -> tuple[str, str, str, str, Weight]:  # type: ignore[override]
        return self.column, self.done, self.why, self.change, self.weight


class ReadingReport(tuple[Remark, ...]):
    """All remarks on how a file or a data frame was read, one on a line.

    >>> import polars as pl
    >>> from acefraud import load_dataset
    >>> data = load_dataset(pl.DataFrame({"id": ["a", "b"], "amount": [5.0, 900.0], "is_fraud": [0, 1]}))
    >>> print(data.report[2])
    `amount` is read as the column that becomes the fact 'amount'; `amount = "..."` in a mapping changes that
    >>> data.report[2].column, data.report.remarks
    ('amount', ())
    """

    __slots__ = ()

    def __new__(cls, remarks: Iterable[str] = ()) -> Self:
        return super().__new__(
            cls, (remark if isinstance(remark, Remark) else Remark("", remark) for remark in remarks)
        )

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Those that do not go without saying."""
        return tuple(remark for remark in self if remark.weight != "usual")

    def __repr__(self) -> str:
        return "\n".join(self) or "nothing was guessed or left out"

    __str__ = __repr__
