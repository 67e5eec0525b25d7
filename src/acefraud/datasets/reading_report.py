"""How a file or a data frame was read: what was guessed, left out or read in a special way, and what changes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self, TypeAlias

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
        return super().__new__(cls, (one if isinstance(one, Remark) else Remark("", one) for one in remarks))

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Those that do not go without saying."""
        return tuple(remark for remark in self if remark.weight != "usual")

    def __repr__(self) -> str:
        return "\n".join(self) or "nothing was guessed or left out"

    __str__ = __repr__
