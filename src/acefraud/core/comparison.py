"""One test of one fact, such as ``amount > 2000``: on a row, on a column, as text and as SQL."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from acefraud.core.context_facts import IN_LIST, STARTING, LookUp
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.display.redaction import personal_values_of
from acefraud.display.short_repr import quoted
from acefraud.support.arrays import BoolArray

KEYWORDS = frozenset(["and", "or", "not", "unless", "is", "in", "between", "true", "false", "missing", "known", "list"])
"""The words of the formal syntax. A fact with such a name is written in backticks."""
_SURELY_EXACT = 15
"""Characters up to which a decimal number in SQL is the double that was meant."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Op(StrEnum):
    """How a fact is compared."""

    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="
    IS = "is"
    IS_NOT = "is not"
    IN = "in"
    NOT_IN = "not in"
    MISSING = "is missing"
    KNOWN = "is known"


ORDERED = frozenset({Op.ABOVE, Op.AT_LEAST, Op.BELOW, Op.AT_MOST})
MEMBERSHIP = frozenset({Op.IN, Op.NOT_IN})
PRESENCE = frozenset({Op.MISSING, Op.KNOWN})
NEGATED = frozenset({Op.IS_NOT, Op.NOT_IN})
_UPWARD = frozenset({Op.ABOVE, Op.AT_LEAST})
_STRICT = frozenset({Op.ABOVE, Op.BELOW})

TestValue = bool | float | str | tuple[str, ...] | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Test:
    """One comparison of one fact. ``Test("amount", Op.ABOVE, 2000.0)``."""

    __test__ = False  # not a test case for pytest

    fact: str
    op: Op
    value: TestValue = None

    def __post_init__(self) -> None:
        value = self.value
        if isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if self.op in MEMBERSHIP and isinstance(value, tuple):
            value = tuple(dict.fromkeys(value))
        if isinstance(value, bool) and self.op is Op.IS_NOT:  # for a flag that is known, "is not true" means "is false"
            object.__setattr__(self, "op", Op.IS)
            value = not value
        object.__setattr__(self, "value", value)
        if not _fits(self.op, value):
            raise ValueError(f"'{self.op}' on fact '{self.fact}' cannot take {value!r}")
        if not self.fact or "`" in self.fact:
            raise ValueError(f"not a fact name: {self.fact!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Test) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[str, Op, type, TestValue | frozenset[str]]:
        """Includes the type of the value, because in Python True equals 1. The order of a list does not matter."""
        value = frozenset(self.value) if isinstance(self.value, tuple) else self.value
        return self.fact, self.op, type(self.value), value

    def on(self, facts: Mapping[str, FactValue]) -> bool | None:
        """Whether it is true of these facts; None if the fact is unknown or of another type."""
        actual = facts.get(self.fact)
        if self.op in PRESENCE:
            return (actual is None) == (self.op is Op.MISSING)
        if actual is None:
            return None
        if isinstance(self.value, tuple):
            return (actual in self.value) != (self.op is Op.NOT_IN) if type(actual) is str else None
        if type(actual) is not type(self.value):
            return None
        return bool(COMPARE[self.op](actual, self.value))

    def in_table(self, table: FactTable) -> BoolArray:
        """For each row of a table, whether it is true."""
        mask: BoolArray
        if self.op in PRESENCE:
            mask = table.known(self.fact) == (self.op is Op.KNOWN)
        elif isinstance(self.value, bool):
            mask = table.flags(self.fact) == int(self.value)
        elif isinstance(self.value, float):
            numbers = table.numbers(self.fact)
            mask = ~np.isnan(numbers) & COMPARE[self.op](numbers, self.value)
        else:
            codes, names = table.categories(self.fact)
            wanted = frozenset(self.value if isinstance(self.value, tuple) else (self.value,))
            listed = np.array([*(name in wanted for name in names), False])  # the last is for code -1
            mask = (codes >= 0) & (listed[codes] != (self.op in NEGATED))
        return mask

    def implies(self, other: Test) -> bool:
        """Whether the other test is true wherever this one is."""
        if self == other:
            return True
        if self.fact != other.fact:
            return False
        if other.op is Op.KNOWN:
            return self.op is not Op.MISSING
        if self.op in ORDERED and other.op in ORDERED:
            return _bound_implies(self, other)
        mine, theirs = _admitted(self), _admitted(other)
        if mine is None or theirs is None:
            return False
        return mine <= theirs

    def negated(self) -> Test:
        """The test that is true where this one is false, and unknown where this one is."""
        if isinstance(self.value, bool):
            return Test(self.fact, Op.IS, not self.value)
        return Test(self.fact, OPPOSITE[self.op], self.value)

    @property
    def facts(self) -> frozenset[str]:
        """The name of the fact it tests."""
        return frozenset({self.fact})

    def fails_in(self, table: FactTable) -> BoolArray:
        """For each row of a table, whether it is false. Where a row has neither, the fact is unknown."""
        return self.negated().in_table(table)

    def __str__(self) -> str:
        if (sought := LookUp.of(self.fact)) is not None and isinstance(self.value, bool):
            what = written_name(sought.what) if sought.how == IN_LIST else _literal(sought.what)
            return f"{written_name(sought.key)} {'' if self.value else 'not '}{sought.how} {what}"
        name = written_name(self.fact)
        if self.op in PRESENCE:
            return f"{name} {self.op}"
        if isinstance(self.value, tuple):
            return f"{name} {self.op} ({', '.join(_literal(v) for v in self.value)})"
        return f"{name} {self.op} {_literal(self.value)}"

    def __repr__(self) -> str:
        return f"Test({quoted(self, 150, hidden=self.hidden_values)})"

    @property
    def hidden_values(self) -> list[str]:
        """The values that it asks for if its fact is personal."""
        if (sought := LookUp.of(self.fact)) is not None and sought.how != IN_LIST:
            return personal_values_of(sought.key, [sought.what])
        values = self.value if isinstance(self.value, tuple) else () if self.value is None else (self.value,)
        return personal_values_of(self.fact, values)

    def to_sql(self) -> str:
        """The test in SQL, over a column named like the fact."""
        if (sought := LookUp.of(self.fact)) is not None and isinstance(self.value, bool):
            key, what = sql_name(sought.key), f"({_sql_literal(sought.what)})"
            if sought.how == IN_LIST:
                what = f'(SELECT "value" FROM {sql_name(f"list_{sought.what}")})'
            begun = f"substr({key}, 1, {len(sought.what)})" if sought.how == STARTING else key
            return f"CASE WHEN {key} IS NOT NULL THEN {begun} {'' if self.value else 'NOT '}IN {what} END"
        column = sql_name(self.fact)
        if self.op in PRESENCE:
            return f"{column} IS {'' if self.op is Op.MISSING else 'NOT '}NULL"
        if isinstance(self.value, tuple):
            return f"{column} {self.op.upper()} ({', '.join(_sql_literal(v) for v in self.value)})"
        symbol = {Op.IS: "=", Op.IS_NOT: "<>"}.get(self.op, self.op.value)
        return f"{column} {symbol} {_sql_literal(self.value)}"


def _fits(op: Op, value: TestValue) -> bool:
    if op in PRESENCE:
        return value is None
    if op in ORDERED:
        return isinstance(value, float) and math.isfinite(value)
    if op in MEMBERSHIP:
        return isinstance(value, tuple) and bool(value) and all(isinstance(v, str) for v in value)
    return isinstance(value, bool | str) or (isinstance(value, float) and math.isfinite(value))


COMPARE: Mapping[Op, Callable[[Any, Any], Any]] = {
    Op.ABOVE: operator.gt,
    Op.AT_LEAST: operator.ge,
    Op.BELOW: operator.lt,
    Op.AT_MOST: operator.le,
    Op.IS: operator.eq,
    Op.IS_NOT: operator.ne,
}


OPPOSITE = {Op.ABOVE: Op.AT_MOST, Op.AT_LEAST: Op.BELOW, Op.IS: Op.IS_NOT, Op.IN: Op.NOT_IN, Op.MISSING: Op.KNOWN}
OPPOSITE |= {opposite: op for op, opposite in OPPOSITE.items()}


def written_name(fact: str) -> str:
    """The name of a fact in the formal syntax, in backticks where it could be taken for something else.

    >>> written_name("amount"), written_name("card type"), written_name("in")
    ('amount', '`card type`', '`in`')
    """
    plain = _PLAIN_NAME.fullmatch(fact) and fact.lower() not in KEYWORDS
    return fact if plain else f"`{fact}`"


def sql_name(name: str) -> str:
    """The name of a column or a table in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _bound_implies(one: Test, other: Test) -> bool:
    """Whether one bound is at least as tight as another in the same direction."""
    assert isinstance(one.value, float)
    assert isinstance(other.value, float)
    upward = one.op in _UPWARD
    if upward != (other.op in _UPWARD):
        return False
    if one.value == other.value:
        return one.op in _STRICT or other.op not in _STRICT
    return (one.value > other.value) == upward


def _admitted(test: Test) -> frozenset[str] | None:
    """The words a test allows, or None if it does not list them."""
    if test.op is Op.IS and isinstance(test.value, str):
        return frozenset({test.value})
    if test.op is Op.IN and isinstance(test.value, tuple):
        return frozenset(test.value)
    return None


def _literal(value: TestValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return plain_number(value)
    return json.dumps(value, ensure_ascii=False)


def _sql_literal(value: TestValue) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and len(repr(value)) > _SURELY_EXACT:
        return sql_float(value)
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else _literal(value)


def sql_float(value: float) -> str:
    """A number in SQL that every database reads as a double. Some take ``0.1`` for a decimal.

    >>> sql_float(0.1), sql_float(-2.0)
    ('0.1e0', '-2e0')
    """
    text = plain_number(value)
    return text if "e" in text else f"{text}e0"


def plain_number(value: float) -> str:
    """The shortest text that parses to the same number.

    >>> plain_number(2000.0), plain_number(4.25)
    ('2000', '4.25')
    """
    text = repr(value)
    return text[:-2] if text.endswith(".0") else text


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
