"""A comparison of two facts, such as ``amount > 2 * usual_amount``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from acefraud.core.arrays import BoolArray
from acefraud.core.comparison import COMPARE, OPPOSITE, ORDERED, Op, plain_number, sql_name, written_name
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue


@dataclass(frozen=True, slots=True)
class PairTest:
    """One fact compared with another, or with a multiple of it. Unknown if either is unknown or their types differ.

    >>> test = PairTest("amount", Op.ABOVE, "usual_amount", times=2.0)
    >>> str(test), test.on({"amount": 50.0, "usual_amount": 20.0}), test.on({"amount": 50.0})
    ('amount > 2 * usual_amount', True, None)
    """

    fact: str
    op: Op
    other: str
    times: float = 1.0
    """A multiple, for numbers only."""

    def __post_init__(self) -> None:
        if self.op not in ORDERED and self.op not in (Op.IS, Op.IS_NOT):
            raise ValueError(f"'{self.op}' does not compare two facts")
        if not math.isfinite(self.times) or self.times <= 0:
            raise ValueError(f"expected a multiple above 0 of '{self.other}', got {self.times}")
        for name in (self.fact, self.other):
            if not name or "`" in name:
                raise ValueError(f"not a fact name: {name!r}")
        if self.fact == self.other:
            raise ValueError(f"'{self.fact}' is compared with itself")

    @property
    def facts(self) -> frozenset[str]:
        """The names of both facts."""
        return frozenset({self.fact, self.other})

    @property
    def _words_too(self) -> bool:
        """Whether flags and categories can be compared too: only plain equality makes sense for them."""
        return self.op not in ORDERED and self.times == 1

    def on(self, facts: Mapping[str, FactValue]) -> bool | None:
        """Whether it is true of these facts; None if a fact is unknown, or the two are of different types."""
        actual, other = facts.get(self.fact), facts.get(self.other)
        if actual is None or other is None or type(actual) is not type(other):
            return None
        if isinstance(other, float) and type(other) is float:
            return bool(COMPARE[self.op](actual, self.times * other))
        return bool(COMPARE[self.op](actual, other)) if self._words_too else None

    def in_table(self, table: FactTable) -> BoolArray:
        """For each row of a table, whether it is true."""
        mine, other = table.numbers(self.fact), table.numbers(self.other)
        with np.errstate(over="ignore", invalid="ignore"):
            mask: BoolArray = ~np.isnan(mine) & ~np.isnan(other) & COMPARE[self.op](mine, self.times * other)
        return mask | self._same_words(table) if self._words_too else mask

    def _same_words(self, table: FactTable) -> BoolArray:
        flags, other_flags = table.flags(self.fact), table.flags(self.other)
        mask: BoolArray = (flags >= 0) & (other_flags >= 0) & COMPARE[self.op](flags, other_flags)
        codes, names = table.categories(self.fact)
        other_codes, other_names = table.categories(self.other)
        place = {name: code for code, name in enumerate(names)}
        shared = np.array([*(place.get(name, -2) for name in other_names), -1], dtype=np.int64)[other_codes]
        same_word: BoolArray = (codes >= 0) & (other_codes >= 0) & COMPARE[self.op](codes, shared)
        return mask | same_word

    def fails_in(self, table: FactTable) -> BoolArray:
        """For each row of a table, whether it is false."""
        return self.negated().in_table(table)

    def negated(self) -> PairTest:
        """The test that is true where this one is false, and unknown where this one is."""
        return PairTest(self.fact, OPPOSITE[self.op], self.other, self.times)

    def __str__(self) -> str:
        # After "is" a bare word would look like a category.
        other = written_name(self.other) if self.op in ORDERED or self.times != 1 else f"`{self.other}`"
        multiple = "" if self.times == 1 else f"{plain_number(self.times)} * "
        return f"{written_name(self.fact)} {self.op} {multiple}{other}"

    def to_sql(self) -> str:
        """The test in SQL, over columns named like the facts."""
        symbol = {Op.IS: "=", Op.IS_NOT: "<>"}.get(self.op, self.op.value)
        multiple = "" if self.times == 1 else f"{plain_number(self.times)} * "
        return f"{sql_name(self.fact)} {symbol} {multiple}{sql_name(self.other)}"
