"""Conditions compiled together answer exactly as each of them would alone."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.bullet_table import ConditionIndex
from acefraud.core.comparison import MEMBERSHIP, ORDERED, PRESENCE
from acefraud.core.condition import Condition, Op, Test
from acefraud.core.transaction import FactValue

LARGEST = math.nextafter(math.inf, 0)
AFTER_ONE = math.nextafter(1.0, math.inf)

# Few of each, so that values meet thresholds, words meet lists, and one fact is asked about in several ways.
names = st.sampled_from(["amount", "age", "country"])
words = st.sampled_from(["FR", "DE", "IT", "1.0", "true"])
figures = st.sampled_from([-LARGEST, -2.0, -0.0, 0.0, 5e-324, 1.0, AFTER_ONE, 1.5, 2.0, 3.0, LARGEST])
values = st.booleans() | figures | words
rows = st.dictionaries(names, values)


@st.composite
def any_test(draw: st.DrawFn) -> Test:
    fact, op = draw(names), draw(st.sampled_from(list(Op)))
    if op in PRESENCE:
        return Test(fact, op)
    if op in ORDERED:
        return Test(fact, op, draw(figures))
    if op in MEMBERSHIP:
        return Test(fact, op, tuple(draw(st.lists(words, min_size=1, max_size=3))))
    return Test(fact, op, draw(values))


conditions = st.lists(any_test(), min_size=1, max_size=4).map(lambda tests: Condition(tuple(tests)))
# Sometimes with rows before them, so that the bit sets are longer than a machine word.
many = st.builds(
    lambda before, listed: [None] * before + listed,
    st.sampled_from([0, 70]),
    st.lists(st.none() | conditions, max_size=12),
)
Conditions = list[Condition | None]
Row = dict[str, FactValue]


def expected(given_conditions: Conditions, facts: Row) -> tuple[int, int]:
    """Row by row, from the conditions themselves."""
    possible = proven = 0
    for index, condition in enumerate(given_conditions):
        truth = None if condition is None else condition.truth(facts)
        possible |= (truth is not False) << index
        proven |= (truth is True) << index
    return possible, proven


@given(many, st.lists(rows, max_size=6))
def test_facts_are_answered_as_by_each_condition(given_conditions: Conditions, given_rows: list[Row]) -> None:
    index = ConditionIndex(given_conditions)
    for facts in given_rows * 2:  # again, for what is kept from the first time
        assert index.match(facts) == expected(given_conditions, facts)


@pytest.mark.parametrize(
    ("text", "facts", "possible", "proven"),
    [
        ("amount > 5", {"amount": 5.0}, 0, 0),
        ("amount > 5", {"amount": math.nextafter(5.0, 6.0)}, 1, 1),
        ("amount >= 5", {"amount": 5.0}, 1, 1),
        ("amount < 5", {"amount": 5.0}, 0, 0),
        ("amount <= 5", {"amount": 5.0}, 1, 1),
        ("amount <= 5", {"amount": math.nextafter(5.0, 6.0)}, 0, 0),
        ("amount is 5", {"amount": 5.0}, 1, 1),
        ("amount is not 5", {"amount": 5.0}, 0, 0),
        ("amount is 0", {"amount": -0.0}, 1, 1),
        ("amount > 5", {"amount": "6"}, 1, 0),
        ("amount is 1", {"amount": True}, 1, 0),
        ("vpn is true", {"vpn": 1.0}, 1, 0),
        ("vpn is true", {"vpn": False}, 0, 0),
        ("country is known", {"country": True}, 1, 1),
        ("country is missing", {"other": 1.0}, 1, 1),
        ("country is missing", {"country": 1.0}, 0, 0),
        ('country in ("FR", "DE") and country in ("DE", "IT")', {"country": "FR"}, 0, 0),
        ('country in ("FR", "DE") and country in ("DE", "IT")', {"country": "IT"}, 0, 0),
        ('country in ("FR", "DE") and country in ("DE", "IT")', {"country": "DE"}, 1, 1),
        ('country in ("FR", "DE") and country is not "FR"', {"country": "FR"}, 0, 0),
        ('country not in ("FR", "DE")', {"country": "IT"}, 1, 1),
        ("amount > 5 and amount < 9", {"amount": 9.0}, 0, 0),
        ('amount > 5 and amount is "many"', {"amount": 9.0}, 1, 0),
        ('amount > 5 and amount is "many"', {"amount": 4.0}, 0, 0),
    ],
)
def test_match_by_example(text: str, facts: Row, possible: int, proven: int) -> None:
    assert ConditionIndex([Condition.parse(text)]).match(facts) == (possible, proven)


def test_rows_without_a_condition_are_possible_and_never_proven() -> None:
    index = ConditionIndex([None, None])
    assert index.conditioned == 0
    assert index.match({"amount": 5.0}) == (0b11, 0)


def test_no_rows_at_all() -> None:
    index = ConditionIndex([])
    assert (index.conditioned, index.match({"amount": 5.0})) == (0, (0, 0))


def thresholds(count: int) -> Conditions:
    return [Condition.of(Test("amount", Op.ABOVE, index)) for index in range(count)]


def test_many_thresholds_of_one_fact() -> None:
    index = ConditionIndex(thresholds(200))
    for value in (-1.0, 0.0, 0.5, 99.0, 99.5, 100.0, 199.0, 500.0):
        above = (1 << max(0, math.ceil(value))) - 1 if value < 200 else (1 << 200) - 1
        assert index.match({"amount": value}) == (above, above)


def test_cached_answers_stay_few_and_correct() -> None:
    count = 1_100  # a few more than are cached
    index = ConditionIndex([Condition.of(Test(f"fact{place}", Op.KNOWN)) for place in range(count)])
    for place in (*range(count), 0, 1):
        assert index.match({f"fact{place}": 1.0}) == (1 << place, 1 << place)
    assert len(index._plans) <= 1_024


def test_values_of_another_type_are_not_answered_from_the_cache() -> None:
    index = ConditionIndex([Condition.parse("amount > 5")])
    answers = [index.match({"amount": value}) for value in (7.0, "7", True, 3.0)]
    assert answers == [(1, 1), (1, 0), (1, 0), (0, 0)]


class Country(StrEnum):
    FRANCE = "FR"


@pytest.mark.parametrize("value", [7, None, Country.FRANCE, np.float64(7.0)])
def test_a_value_of_a_type_that_facts_do_not_have_is_left_to_the_conditions(value: Any) -> None:
    texts = ["x > 5", "x is true", 'x is "FR"', 'x in ("DE")', 'x not in ("DE")', "x is known", "x is missing"]
    given_conditions: Conditions = [Condition.parse(text) for text in texts]
    assert ConditionIndex(given_conditions).match({"x": value}) == expected(given_conditions, {"x": value})
