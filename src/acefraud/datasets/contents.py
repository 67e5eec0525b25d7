"""What only many rows show of a column: that it gives the label away, holds codes, free text or a value for each row.

A leak was filled after the fact, such as the reason of a chargeback. What a column holds comes first: it has values on
fraud alone, or tells every fraud from every legitimate row, on so many rows that chance does not explain it. A name
such as ``refund_date`` only lowers what the contents have to show.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from acefraud.core.fact_names import words_for
from acefraud.core.table import Flags
from acefraud.datasets.columns import (
    UNKNOWN_WORDS,
    USUAL_WORDS,
    folded,
    name_parts,
    names_what_comes_after,
    plain_text,
    thinned,
    unknown_words,
)
from acefraud.datasets.table import FACTS, Column
from acefraud.facts.text import read_facts
from acefraud.support.arrays import IntArray
from acefraud.support.exact_math import log

MANY_VALUES = 50
_FEWEST_SENTENCES, _DISTINCT, _FEWEST_WORDS = 20, 0.1, 4
_TEXTS_READ = 300
"""How many texts are read for facts."""
_TELLING = 0.02
"""Share of the texts that must state a fact the engine knows: a text without any would teach nothing."""
LEAK = "a likely leak of the label: "
_NOTHING = {*USUAL_WORDS["leaks"]["nothing"], *map(folded, USUAL_WORDS["leaks"]["nothing"])}
_ZERO = r"^[^\d\pL]*0[0.,]*[^\d]*$"
_MOST_VALUES = 20
_FEWEST_FRAUDS = 20
"""Frauds on which a column of any name must have values, and no legitimate row; three in a row prove nothing."""
_FEWEST_NAMED = 5
FEWEST_EACH = 50
"""Rows of each label from which a column that tells them apart without a mistake is no feature any more."""
_SURE, _SURE_NAMED = log(1e6), log(1e3)
"""How unlikely chance must be as an explanation."""
_PURE, _LIFT = 0.99, 3
_MEASURES, _CODES = (frozenset(USUAL_WORDS["name_parts"][key]) for key in ("measure", "code"))
FEWEST_CODED = 200
"""Rows from which whole numbers may be found to be codes."""
FEWEST_TELLING = 20
"""Rows from which a column may be found to have a value for each row, or to grow with time."""
_MOST_CODES = 50
_MOST_NAMED_CODES = 300
_ROUGH = 1.75
_ROUND = 5


def has_one_value_per_row(cells: pl.Series) -> bool:
    """Measurements differ in every row too, so of numbers only whole ones count, and only with at least 100 rows."""
    present = cells.filter(~unknown_words(cells)).drop_nulls()
    if len(present) < FEWEST_TELLING or present.dtype.is_float():
        return False
    distinct = present.n_unique()
    if present.dtype == pl.String and present.cast(pl.Float64, strict=False).null_count() < 0.05 * len(present):
        present = present.cast(pl.Int64, strict=False)
    if present.dtype.is_integer():
        return len(present) >= 100 and not present.has_nulls() and distinct == len(present)
    return present.dtype == pl.String and distinct >= 0.9 * len(present)


def hardly_repeats(cells: pl.Series) -> bool:
    """Whether words are so many that rules would only memorise who or what they name."""
    if cells.dtype != pl.String or cells.n_unique() <= max(MANY_VALUES, len(cells) // 3):
        return False
    known = plain_text(cells.filter(~unknown_words(cells))).drop_nulls()
    return known.cast(pl.Float64, strict=False).null_count() > 0.05 * len(known)


def grows_with_time(cells: pl.Series, times: IntArray) -> bool:
    """Whether a column only counts up with the times of its thinned cells, such as the number of the day."""
    figures = pl.Series(thinned(cells)).cast(pl.Float64, strict=False)
    return (
        not figures.has_nulls() and figures.n_unique() > 1 and figures.gather(pl.Series(times).arg_sort()).is_sorted()
    )


def holds_sentences(column: Column) -> bool:
    """Whether most cells are several words long and few of them are alike.

    >>> holds_sentences(pl.Series([f"paid {n} dollars with a new card" for n in range(30)]))
    True
    >>> holds_sentences(pl.Series(["Visa", "Mastercard"] * 20))
    False
    """
    if not isinstance(column, pl.Series) or column.dtype != pl.String:
        return False
    cells = plain_text(thinned(column)).drop_nulls()
    if len(cells) < _FEWEST_SENTENCES or cells.n_unique() < max(_FEWEST_SENTENCES, _DISTINCT * len(cells)):
        return False
    return 2 * int((cells.str.count_matches(r"\pL{2,}") >= _FEWEST_WORDS).sum()) > len(cells)


def states_facts(column: Column) -> bool:
    """Whether a column holds sentences, and they state facts that the engine knows.

    >>> states_facts(pl.Series([f"order {n} came here through a VPN" for n in range(30)]))
    True
    """
    if not holds_sentences(column):
        return False
    cells = plain_text(column).drop_nulls()
    cells = cells[:: max(1, len(cells) // _TEXTS_READ)]
    return sum(bool(read_facts(cell).facts) for cell in cells) >= _TELLING * len(cells) > 0


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
        return self.rows * sum(part * log(part / usual) for part, usual in parts if part)

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
    values = rows.group_by("cell", maintain_order=True).agg(pl.len().alias("rows"), pl.col("fraud").sum())
    filled, telling = _filled(values["cell"])
    has, tells = _share(values, filled), _share(values, telling)
    named = by_name and names_what_comes_after(name)
    fewest, sure = (_FEWEST_NAMED, _SURE_NAMED) if named else (_FEWEST_FRAUDS, _SURE)
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
    if has.rows >= _FEWEST_FRAUDS and has.frauds <= (1 - _PURE) * has.rows and has.surprise >= _SURE_NAMED:
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


def holds_codes(name: str, column: Column) -> bool:
    """Whether whole numbers are codes: few of them in many rows, and either the name says so or the numbers do.

    Amounts, counts and ages are common around one figure and get rarer away from it. Codes are common here and there,
    with gaps between. Round figures are measures too.
    """
    if isinstance(column, list) or not (column.dtype.is_integer() or column.dtype == pl.String):
        return False
    cells = plain_text(column.filter(~unknown_words(column))).drop_nulls().cast(pl.Int64, strict=False)
    parts = set(name_parts(name))
    if len(cells) < FEWEST_CODED or cells.has_nulls() or parts & _MEASURES:
        return False
    distinct, counts = np.unique(cells.to_numpy(), return_counts=True)
    if len(distinct) < 3:
        return False
    if parts & _CODES:
        return len(distinct) <= _MOST_NAMED_CODES
    few = len(distinct) <= min(_MOST_CODES, len(cells) // 20)
    return few and math.gcd(*distinct.tolist()) < _ROUND and _roughness(distinct.tolist(), counts.tolist()) >= _ROUGH


def _roughness(values: Sequence[int], counts: Sequence[int]) -> float:
    """How often the counts rise and fall again along the numbers: 1 if there is one peak, 2 for two of equal height.

    Differences that chance explains do not count.

    >>> _roughness([1, 2, 3], [100, 500, 80]), _roughness([1, 2, 7], [500, 20, 500])
    (1.0, 2.0)
    """
    steps: list[tuple[float, float]] = []
    for at, count in enumerate(counts):
        beside = counts[at - 1] if at and values[at] == values[at - 1] + 1 else 0
        if at and not beside:
            steps.append((counts[at - 1], 0))
        steps.append((beside, count))
    steps.append((counts[-1], 0))
    told = [abs(new - old) for old, new in steps if abs(new - old) > 4 * math.sqrt(old + new)]
    return float(sum(told) / (2 * max(counts)))
