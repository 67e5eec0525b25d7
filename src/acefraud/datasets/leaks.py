"""Columns that give the label away because they were filled after the fact, such as the reason of a chargeback.

What a column holds comes first: it has values on fraud alone, or tells every fraud from every legitimate row, on so
many rows that chance does not explain it. A name such as ``refund_date`` only lowers what the contents have to show.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from acefraud.core.fact_names import words_for
from acefraud.core.table import Flags
from acefraud.datasets.columns import UNKNOWN_WORDS, USUAL_WORDS, folded, name_parts, plain_name, plain_text
from acefraud.datasets.table import FACTS, Column

LEAK = "a likely leak of the label: "
_AFTERWARDS = tuple(map(plain_name, USUAL_WORDS["leaks"]["names"]))
_BEFOREHAND = frozenset(map(folded, USUAL_WORDS["leaks"]["beforehand"]))
_NOTHING = {*USUAL_WORDS["leaks"]["nothing"], *map(folded, USUAL_WORDS["leaks"]["nothing"])}
_ZERO = r"^[^\d\pL]*0[0.,]*[^\d]*$"
_MOST_VALUES = 20
_FEWEST = 20
"""Frauds on which a column of any name must have values, and no legitimate row; three in a row prove nothing."""
_FEWEST_NAMED = 5
FEWEST_EACH = 50
"""Rows of each label from which a column that tells them apart without a mistake is no feature any more."""
_SURE, _SURE_NAMED = math.log(1e6), math.log(1e3)
"""How unlikely chance must be as an explanation."""
_PURE, _LIFT = 0.99, 3


@dataclass(frozen=True, slots=True)
class _Share:
    """How many rows have something, and how many of them are fraud, beside all rows."""

    rows: int
    frauds: int
    all_rows: int
    all_frauds: int

    @property
    def surprise(self) -> float:
        """A bound on how unlikely this share of frauds is among rows drawn by chance, as minus its logarithm."""
        share, base = self.frauds / max(self.rows, 1), self.all_frauds / self.all_rows
        parts = ((share, base), (1 - share, 1 - base))
        return self.rows * sum(part * math.log(part / usual) for part, usual in parts if part)

    @property
    def mistakes(self) -> int:
        """How many rows are wrong if having it means fraud, or means legitimate, whichever is better."""
        wrong = self.rows + self.all_frauds - 2 * self.frauds
        return min(wrong, self.all_rows - wrong)

    def is_only_fraud(self, *, fewest: int, sure: float) -> bool:
        """Whether hardly any of the rows is legitimate, beyond chance."""
        return self.frauds >= max(fewest, _PURE * self.rows) and self.surprise >= sure

    def is_raised(self) -> bool:
        """Whether it goes with a good part of the frauds, and has far more of them than other rows."""
        lifted = self.frauds * self.all_rows >= _LIFT * self.all_frauds * self.rows
        return lifted and self.frauds >= max(_FEWEST_NAMED, 0.2 * self.all_frauds) and self.surprise >= _SURE


def likely_leaks(
    columns: Mapping[str, Column], labels: Flags, *, by_name: bool = True, flawless: bool = False
) -> dict[str, str]:
    """The columns that look like leaks of the labels (1 fraud, 0 legitimate, -1 unknown), each with what shows it.

    Not ``by_name``, only what they hold counts. The ``flawless`` ones tell the label of every row without a mistake.

    >>> import numpy as np
    >>> labels = np.repeat(np.array([1, 0], dtype=np.int8), [30, 300])
    >>> likely_leaks({"Rückbuchungsgrund": pl.Series(["10.4", "4837"] * 15 + [None] * 300)}, labels)
    {'Rückbuchungsgrund': 'it has values in 30 rows, 30 of them fraud'}
    """
    known = pl.Series(labels >= 0)
    frauds = pl.Series(labels == 1).filter(known)
    if not 0 < int(frauds.sum()) < len(frauds):
        return {}
    reasons = {
        name: next(_reasons(name, column, known, frauds, by_name=by_name, flawless=flawless), "")
        for name, column in columns.items()
    }
    return {name: reason for name, reason in reasons.items() if reason}


def _reasons(
    name: str, column: Column, known: pl.Series, frauds: pl.Series, *, by_name: bool, flawless: bool
) -> Iterator[str]:
    """What speaks for a leak, the plainest first."""
    if isinstance(column, pl.Series) and column.dtype.is_nested():
        return
    cells = plain_text(column) if isinstance(column, list) or not column.dtype.is_numeric() else column.fill_nan(None)
    rows = pl.DataFrame({"cell": cells.filter(known), "fraud": frauds})
    values = rows.group_by("cell").agg(pl.len().alias("rows"), pl.col("fraud").sum())
    filled, telling = _filled(values["cell"])
    has, tells = _share(values, filled), _share(values, telling)
    named = by_name and names_what_comes_after(name)
    fewest, sure = (_FEWEST_NAMED, _SURE_NAMED) if named else (_FEWEST, _SURE)
    several = int(filled.sum()) > 1 or has.frauds >= 0.95 * has.all_frauds  # one value may be a flag of few frauds
    for share, counts in ((has, named or several), (tells, named)):
        if counts and not flawless and share.is_only_fraud(fewest=fewest, sure=sure):
            yield f"it has values in {share.rows:,} rows, {share.frauds:,} of them fraud"
    least = min(has.all_frauds, has.all_rows - has.all_frauds)
    if least >= FEWEST_EACH and words_for(name.removeprefix(FACTS).lower()) is None:
        by_value = values.select(pl.min_horizontal("fraud", pl.col("rows") - pl.col("fraud")).sum()).item()
        mistakes = min(has.mistakes, tells.mistakes, by_value if values.height <= _MOST_VALUES else least)
        if mistakes <= (0 if flawless else 0.005 * least):
            yield f"it tells fraud from legitimate with {mistakes:,} mistakes in {has.all_rows:,} rows"
    if not named or flawless:
        return
    some = values["cell"].filter(telling) if values.height <= _MOST_VALUES else ()
    for share in (has, tells, *(_share(values, values["cell"] == cell) for cell in some)):
        if share.is_raised():
            yield f"by its name it comes after the fact, and {share.frauds:,} of {share.rows:,} rows with it are fraud"
    if has.rows >= _FEWEST and has.frauds <= (1 - _PURE) * has.rows and has.surprise >= _SURE_NAMED:
        yield f"it has values in {has.rows:,} rows, {has.frauds:,} of them fraud"


def _filled(cells: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Which cells hold anything, and which hold something other than no, none or zero."""
    if cells.dtype.is_numeric():
        return cells.is_not_null(), (cells != 0).fill_null(False)
    words = cells.str.to_lowercase()
    filled = ~words.is_in(UNKNOWN_WORDS).fill_null(True)
    return filled, filled & ~(words.is_in(_NOTHING) | words.str.contains(_ZERO)).fill_null(True)


def _share(values: pl.DataFrame, which: pl.Series) -> _Share:
    return _Share(*(int(some[key].sum()) for some in (values.filter(which), values) for key in ("rows", "fraud")))


def names_what_comes_after(column: str) -> bool:
    """Whether a name says that a column is filled after the fact. What came before the transaction is none.

    >>> names_what_comes_after("Rückbuchungsgrund"), names_what_comes_after("refunds_last_90_days")
    (True, False)
    """
    plain = plain_name(column)
    return any(word in plain for word in _AFTERWARDS) and not _BEFOREHAND & set(name_parts(column))
