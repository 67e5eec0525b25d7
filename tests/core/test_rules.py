"""Rules: conditions compiled together answer exactly as each of them would alone."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acefraud.core.comparison import MEMBERSHIP, ORDERED, PRESENCE
from acefraud.core.condition import Condition, Op, Test
from acefraud.core.rules import Rules
from acefraud.core.table import Columns, FactTable
from acefraud.core.transaction import FactValue

LARGEST = math.nextafter(math.inf, 0)
AFTER_ONE = math.nextafter(1.0, math.inf)

# Few of each, so that values meet thresholds, words meet lists, and one fact is asked about in several ways.
names = st.sampled_from(["amount", "age", "country"])
words = st.sampled_from(["FR", "DE", "IT", "1.0", "true"])
figures = st.sampled_from([-LARGEST, -2.0, -0.0, 0.0, 5e-324, 1.0, AFTER_ONE, 1.5, 2.0, 3.0, LARGEST])
values = st.booleans() | figures | words
rows = st.dictionaries(names, values)
breaks = st.sampled_from([1, 2, 4, 256])


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
    for place, condition in enumerate(given_conditions):
        truth = None if condition is None else condition.truth(facts)
        possible |= (truth is not False) << place
        proven |= (truth is True) << place
    return possible, proven


def as_bits(answers: np.ndarray[Any, np.dtype[np.bool_]]) -> list[int]:
    return [sum(int(answer) << place for place, answer in enumerate(row)) for row in answers.tolist()]


@settings(max_examples=400)
@given(many, breaks, st.lists(rows, max_size=6))
def test_one_set_of_facts_is_answered_as_by_each_condition(
    given_conditions: Conditions, most: int, given_rows: list[Row]
) -> None:
    rules = Rules.of(given_conditions, most_breaks=most)
    for facts in given_rows * 2:  # again, for what is kept from the first time
        assert rules.standing(facts) == expected(given_conditions, facts)


@settings(max_examples=300)
@given(many, breaks, st.lists(rows, max_size=8))
def test_a_table_is_answered_as_its_rows_are(given_conditions: Conditions, most: int, given_rows: list[Row]) -> None:
    possible, proven = Rules.of(given_conditions, most_breaks=most).standing_in(FactTable(given_rows))
    assert possible.shape == proven.shape == (len(given_rows), len(given_conditions))
    assert possible.dtype == proven.dtype == np.bool_
    answers = list(zip(as_bits(possible), as_bits(proven), strict=True))
    assert answers == [expected(given_conditions, row) for row in given_rows]


@settings(max_examples=300)
@given(many, st.lists(many, max_size=4), breaks, st.lists(rows, min_size=1, max_size=4))
def test_extended_rules_answer_for_all_rows_and_the_original_for_its_own(
    first: Conditions, more: list[Conditions], most: int, given_rows: list[Row]
) -> None:
    stages = [(first, Rules.of(first, most_breaks=most))]
    for added in more:
        before, rules = stages[-1]
        rules.standing(given_rows[0])  # so that something is kept which the next must not go by
        stages.append(([*before, *added], rules.extended(added)))
    table = FactTable(given_rows)
    for given_conditions, rules in stages:
        answers = [expected(given_conditions, row) for row in given_rows]
        assert len(rules) == len(given_conditions)
        assert rules.any is any(condition is not None for condition in given_conditions)
        assert [rules.standing(row) for row in given_rows] == answers
        assert list(zip(*map(as_bits, rules.standing_in(table)), strict=True)) == answers


@given(many, many)
def test_rows_that_come_later_are_compiled_as_if_they_came_at_once(first: Conditions, more: Conditions) -> None:
    def sets(rules: Rules) -> list[Any]:
        kinds = [(fact.numbers, fact.flags, fact.words) for _, fact in sorted(rules._facts.items())]
        return [(*each, rules.any) for each in kinds]

    assert sets(Rules.of(first).extended(more)) == sets(Rules.of([*first, *more]))


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
def test_standing_by_example(text: str, facts: Row, possible: int, proven: int) -> None:
    assert Rules.of([Condition.parse(text)]).standing(facts) == (possible, proven)


def test_rows_without_a_condition_are_possible_and_never_proven() -> None:
    rules = Rules.of([None, None])
    assert not rules.any
    assert rules.standing({"amount": 5.0}) == (0b11, 0)
    possible, proven = rules.standing_in(FactTable([{"amount": 5.0}, {}]))
    assert possible.all()
    assert not proven.any()


def test_no_rows_at_all() -> None:
    rules = Rules.of([])
    assert (len(rules), rules.any, rules.standing({"amount": 5.0})) == (0, False, (0, 0))
    assert [answer.shape for answer in rules.standing_in(FactTable([{}, {}]))] == [(2, 0), (2, 0)]


def thresholds(count: int) -> Conditions:
    return [Condition.of(Test("amount", Op.ABOVE, place)) for place in range(count)]


@pytest.mark.parametrize("most", [1, 16, 100, 256])
def test_many_rows_are_answered_alike_however_few_breaks_are_kept(most: int) -> None:
    rules = Rules.of(thresholds(200), most_breaks=most)
    for value in (-1.0, 0.0, 0.5, 99.0, 99.5, 100.0, 199.0, 500.0):
        above = (1 << max(0, math.ceil(value))) - 1 if value < 200 else (1 << 200) - 1
        assert rules.standing({"amount": value}) == (above, above)
        assert as_bits(rules.standing_in(FactTable([{"amount": value}]))[1]) == [above]


def test_fewer_breaks_take_less_memory_also_when_rows_come_one_by_one() -> None:
    def one_by_one(most: int) -> Rules:
        rules = Rules.of([], most_breaks=most)
        for condition in thresholds(200):
            rules = rules.extended([condition])
        return rules

    few = one_by_one(4)
    assert 2 * few.footprint < one_by_one(256).footprint
    assert 2 * few.footprint < Rules.of(thresholds(200)).footprint


def test_breaks_move_with_the_rows_that_come() -> None:
    rules = Rules.of(thresholds(10), most_breaks=4)
    for condition in thresholds(300)[10:]:
        rules = rules.extended([condition])
    assert max(rules._facts["amount"].numbers.cuts) > 100


@pytest.mark.parametrize("most", [0, -1])
def test_at_least_one_break_is_kept(most: int) -> None:
    with pytest.raises(ValueError, match=f"at least 1, got {most}"):
        Rules.of([], most_breaks=most)


def test_what_is_kept_of_earlier_facts_stays_small_and_never_misleads() -> None:
    given_conditions = [Condition.of(Test(f"fact{place}", Op.KNOWN)) for place in range(2_000)]
    rules = Rules.of(given_conditions)
    for place in (*range(2_000), 0, 1):
        assert rules.standing({f"fact{place}": 1.0}) == (1 << place, 1 << place)
    assert len(rules._plans) <= 1_024


def test_the_same_names_with_values_of_another_type_are_another_matter() -> None:
    rules = Rules.of([Condition.parse("amount > 5")])
    answers = [rules.standing({"amount": value}) for value in (7.0, "7", True, 3.0)]
    assert answers == [(1, 1), (1, 0), (1, 0), (0, 0)]


class Country(StrEnum):
    FRANCE = "FR"


@pytest.mark.parametrize("value", [7, None, Country.FRANCE, np.float64(7.0)])
def test_a_value_of_a_type_that_facts_do_not_have_is_left_to_the_conditions(value: Any) -> None:
    texts = ["x > 5", "x is true", 'x is "FR"', 'x in ("DE")', 'x not in ("DE")', "x is known", "x is missing"]
    given_conditions: Conditions = [Condition.parse(text) for text in texts]
    assert Rules.of(given_conditions).standing({"x": value}) == expected(given_conditions, {"x": value})


def test_a_table_whose_row_has_a_fact_in_two_kinds_is_answered_as_by_the_columns() -> None:
    given_conditions = [Condition.parse(text) for text in ("x > 5", 'x is "FR"', "x is true", "x is known")]
    columns = Columns({"x": np.array([7.0, np.nan])}, {}, {"x": (np.array([0, 0], dtype=np.int32), ("FR",))})
    table = FactTable.of_columns(columns, 2)
    proven = Rules.of(given_conditions).standing_in(table)[1]
    assert proven.T.tolist() == [condition.holds_in(table).tolist() for condition in given_conditions]
