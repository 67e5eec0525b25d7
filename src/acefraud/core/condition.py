"""Conditions: conjunctions of at most four typed tests over facts. Data, never code.

A condition has one text form (`str(condition)`), which parses back to an equal condition. It can also be said in
English, printed as SQL, and evaluated on the facts of one transaction or on a table. A test on an unknown fact is
neither true nor false; a condition *holds* only if every test is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from acefraud.core.comparison import Op, Test
from acefraud.core.condition_syntax import ConditionParser
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue

__all__ = ["MAX_TESTS", "Condition", "Op", "Test"]

MAX_TESTS = 4


@dataclass(frozen=True, slots=True)
class Condition:
    """A conjunction of one to four tests, sorted so that equal conditions are equal values.

    >>> condition = Condition.parse("amount > 2000 and account_age_days < 30")
    >>> condition.holds({"amount": 2500.0, "account_age_days": 3.0})
    True
    >>> condition.truth({"amount": 2500.0}) is None
    True
    >>> condition.to_sql()
    '"account_age_days" < 30 AND "amount" > 2000'
    """

    tests: tuple[Test, ...]

    def __post_init__(self) -> None:
        ordered = tuple(sorted(set(self.tests), key=str))
        object.__setattr__(self, "tests", ordered)
        if not 1 <= len(ordered) <= MAX_TESTS:
            raise ValueError(f"a condition has 1 to {MAX_TESTS} tests, got {len(ordered)}")

    @classmethod
    def of(cls, *tests: Test) -> Condition:
        """A condition from its tests."""
        return cls(tests)

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read the text form. Raises ValueError that says where the text stops making sense."""
        return cls(tuple(ConditionParser(text).tests()))

    @property
    def facts(self) -> frozenset[str]:
        """The names of the facts it tests."""
        return frozenset(test.fact for test in self.tests)

    def truth(self, facts: Mapping[str, FactValue]) -> bool | None:
        """True, False, or None if an unknown fact leaves it open."""
        result: bool | None = True
        for test in self.tests:
            answer = test.on(facts)
            if answer is False:
                return False
            if answer is None:
                result = None
        return result

    def holds(self, facts: Mapping[str, FactValue]) -> bool:
        """Whether every test is true of these facts."""
        return self.truth(facts) is True

    def holds_in(self, table: FactTable) -> npt.NDArray[np.bool_]:
        """For each row of a table, whether it holds."""
        mask = self.tests[0].in_table(table)
        for test in self.tests[1:]:
            mask = mask & test.in_table(table)
        return mask

    def implies(self, other: Condition) -> bool:
        """Whether the other holds wherever this one does.

        >>> Condition.parse("amount > 9000").implies(Condition.parse("amount > 1000"))
        True
        """
        return all(any(mine.implies(theirs) for mine in self.tests) for theirs in other.tests)

    def __str__(self) -> str:
        return " and ".join(str(test) for test in self.tests)

    def to_sql(self) -> str:
        """The condition in SQL, over columns named like the facts."""
        return " AND ".join(test.to_sql() for test in self.tests)

    @classmethod
    def _validate(cls, value: Any) -> Condition:
        if isinstance(value, cls):
            return value
        if not isinstance(value, str):
            raise ValueError(f"a condition is written as text, got {value!r}")
        return cls.parse(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """In JSON a condition is its text form."""
        return core_schema.no_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )
