"""Conditions: one text form, one meaning on a row and on a column, and an `implies` that never overstates."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from acefraud.core.bullet import Bullet
from acefraud.core.comparison import MEMBERSHIP, ORDERED, PRESENCE
from acefraud.core.condition import Condition, Op, Test
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue

FEW = ("amount", "country", "vpn", "and", "two words", 'quote"d')
names = st.sampled_from(FEW) | st.text(st.characters(exclude_characters="`", exclude_categories=["Cs"]), min_size=1)
words = st.sampled_from(["FR", "it's", 'a "b"', "", "true", "5", "back\\slash"]) | st.text(max_size=5)
figures = st.sampled_from([-1.5, 0.0, 1.0, 2.0, 2.5, 1e16]) | st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def any_test(draw: st.DrawFn, facts: st.SearchStrategy[str] = names) -> Test:
    fact, op = draw(facts), draw(st.sampled_from(list(Op)))
    if op in PRESENCE:
        return Test(fact, op)
    if op in ORDERED:
        return Test(fact, op, draw(figures))
    if op in MEMBERSHIP:
        return Test(fact, op, tuple(draw(st.lists(words, min_size=1, max_size=3))))
    return Test(fact, op, draw(st.booleans() | figures | words))


def conditions(facts: st.SearchStrategy[str] = names, most: int = 4) -> st.SearchStrategy[Condition]:
    return st.lists(any_test(facts), min_size=1, max_size=most).map(lambda tests: Condition(tuple(tests)))


few_names = st.sampled_from(FEW)
"""Drawing takes as long as the machine lets it."""
rows = st.dictionaries(few_names, st.booleans() | figures | words)


@given(conditions())
def test_the_text_form_reads_back_to_an_equal_condition(condition: Condition) -> None:
    assert Condition.parse(str(condition)) == condition


@given(conditions())
def test_the_order_of_the_tests_does_not_matter(condition: Condition) -> None:
    assert Condition(tuple(reversed(condition.tests))) == condition
    assert hash(Condition(tuple(reversed(condition.tests)))) == hash(condition)


@given(conditions(few_names, most=2), st.lists(rows, max_size=8))
def test_a_column_table_gives_the_same_answers_as_the_rows(
    condition: Condition, given_rows: list[dict[str, FactValue]]
) -> None:
    column = condition.holds_in(FactTable(given_rows))
    assert column.tolist() == [condition.holds(row) for row in given_rows]


@given(any_test(few_names), st.lists(rows, max_size=8))
def test_a_test_of_a_column_is_true_where_it_is_of_the_rows(test: Test, given_rows: list[dict[str, FactValue]]) -> None:
    assert test.in_table(FactTable(given_rows)).tolist() == [test.on(row) is True for row in given_rows]


@given(conditions(few_names), rows)
def test_the_truth_of_a_conjunction_is_three_valued(condition: Condition, row: dict[str, FactValue]) -> None:
    answers = [test.on(row) for test in condition.tests]
    expected = False if False in answers else None if None in answers else True
    assert condition.truth(row) is expected
    assert condition.holds(row) is (expected is True)


@pytest.mark.parametrize(
    ("text", "facts", "truth"),
    [
        ("amount > 5", {"amount": 6.0}, True),
        ("amount > 5", {"amount": 5.0}, False),
        ("amount >= 5", {"amount": 5.0}, True),
        ("amount > 5", {}, None),
        ("amount > 5", {"amount": "6"}, None),
        ("amount is not 5", {}, None),
        ("amount is not 5", {"amount": 6.0}, True),
        ("vpn is not true", {"vpn": False}, True),
        ("vpn is not true", {}, None),
        ("vpn is true", {"vpn": 1.0}, None),
        ('country in ("FR", "DE")', {"country": "DE"}, True),
        ('country not in ("FR", "DE")', {"country": "IT"}, True),
        ('country not in ("FR", "DE")', {}, None),
        ('country not in ("FR", "DE")', {"country": 3.0}, None),
        ("country is missing", {}, True),
        ("country is missing", {"country": "FR"}, False),
        ("country is known", {"country": "FR"}, True),
        ("amount > 5 and vpn is true", {"amount": 3.0}, False),
        ("amount > 5 and vpn is true", {"amount": 7.0}, None),
    ],
)
def test_truth_by_example(text: str, facts: dict[str, FactValue], truth: bool | None) -> None:
    assert Condition.parse(text).truth(facts) is truth


@st.composite
def narrowing(draw: st.DrawFn) -> tuple[Test, Test]:
    """Two tests of one fact, so that one often implies the other."""
    fact = st.just("amount")
    return draw(any_test(fact)), draw(any_test(fact))


@given(narrowing(), st.lists(st.booleans() | figures | words, max_size=12))
def test_implies_never_says_yes_where_a_row_says_no(pair: tuple[Test, Test], values: list[FactValue]) -> None:
    one, other = pair
    near = [v for t in pair for v in (t.value if isinstance(t.value, tuple) else (t.value,)) if v is not None]
    around = [v + step for v in near if type(v) is float for step in (-1e-3, 1e-3)]
    everything: list[dict[str, FactValue]] = [{}, *({"amount": v} for v in (*values, *near, *around))]
    if one.implies(other):
        assert [row for row in everything if one.on(row) is True and other.on(row) is not True] == []


@given(conditions(few_names), conditions(few_names), st.lists(rows, max_size=8))
def test_implies_is_sound_for_conjunctions(
    one: Condition, other: Condition, given_rows: list[dict[str, FactValue]]
) -> None:
    both = Condition(tuple({*one.tests[:2], *other.tests[:2]}))
    part = Condition(other.tests[:2])
    assert both.implies(part)
    for narrow, wide in ((one, other), (both, part)):
        if narrow.implies(wide):
            assert all(wide.holds(row) for row in given_rows if narrow.holds(row))


@pytest.mark.parametrize(
    ("narrow", "wide", "implied"),
    [
        ("amount > 9000", "amount > 1000", True),
        ("amount > 1000", "amount > 9000", False),
        ("amount >= 5", "amount > 5", False),
        ("amount > 5", "amount >= 5", True),
        ("amount < 5", "amount <= 5", True),
        ("amount < 5", "amount > 1", False),
        ('country is "FR"', 'country in ("DE", "FR")', True),
        ('country in ("DE", "FR")', 'country is "FR"', False),
        ("amount > 5", "amount is known", True),
        ("amount is missing", "amount is known", False),
        ("amount > 9 and vpn is true", "amount > 5", True),
        ("amount > 9", "amount > 5 and vpn is true", False),
    ],
)
def test_implies_by_example(narrow: str, wide: str, implied: bool) -> None:
    assert Condition.parse(narrow).implies(Condition.parse(wide)) is implied


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("amount", "ends too early"),
        ("amount >", "ends too early"),
        ("amount is lots", "expected a number, a word in quotes, true, false, or a fact in backticks before 'lots'"),
        ("amount > 2 * 5", "expected a fact after '*'"),
        ('amount > "5"', "cannot take '5'"),
        ("amount ~ 5", "cannot read condition at ' ~ 5'"),
        ("> 5", "expected a fact before '>'"),
        ("amount > 5 vpn is true", "expected 'and' or 'or' before 'vpn'"),
        ("amount > 5 and (vpn is true", "expected ')', but"),
        ("amount not > 5", "expected 'in' or 'between' after 'not'"),
        ("amount between 5 or 6", "expected 'and' before 'or'"),
        ("amount > amount", "compared with itself"),
        ("amount > 0 * usual_amount", "a multiple above 0"),
        ("amount > 5 and", "ends too early"),
        ('country in "FR"', "expected a list"),
        ("country in ()", "expected a word in quotes before ')'"),
        ('country in ("FR" "DE")', "expected ')' before"),
        ("country in (5)", "expected a word in quotes before '5'"),
        ("amount > 1e999", "cannot take inf"),
        ("amount above 5", "expected a comparison after 'amount' before 'above'"),
        ("`` > 5", "cannot read condition"),
        (" and ".join(f"f{n} > 1" for n in range(51)), "at most 50 tests, got 51"),
        ("(" * 51 + "a > 1" + ")" * 51, "nested at most 50 times"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        Condition.parse(text)


@given(st.text(st.sampled_from("amounti sd<>=()\"`,'.0123456789-\\né"), max_size=30))
def test_reading_any_text_gives_a_condition_or_a_value_error(text: str) -> None:
    with suppress(ValueError):  # any other error escapes and fails the test
        condition = Condition.parse(text)
        assert str(Condition.parse(str(condition))) == str(condition)


def test_a_condition_has_at_least_one_test() -> None:
    with pytest.raises(ValueError, match="at least one test"):
        Condition(())


def test_a_test_said_twice_counts_once() -> None:
    same = Test("amount", Op.ABOVE, 5)
    assert Condition.of(*[same] * 6) == Condition.of(same)


@pytest.mark.parametrize(
    ("fact", "op", "value"),
    [
        ("amount", Op.ABOVE, "5"),
        ("amount", Op.ABOVE, True),
        ("amount", Op.ABOVE, float("nan")),
        ("amount", Op.IS, float("inf")),
        ("amount", Op.IS, None),
        ("amount", Op.MISSING, 5.0),
        ("country", Op.IN, ()),
        ("country", Op.IN, "FR"),
        ("", Op.KNOWN, None),
        ("tick`", Op.KNOWN, None),
    ],
)
def test_a_test_that_makes_no_sense_cannot_be_built(fact: str, op: Op, value: bool | float | str | None) -> None:
    with pytest.raises(ValueError, match=r"cannot take|not a fact name"):
        Test(fact, op, value)


@given(conditions())
def test_in_json_a_condition_is_its_text_form(condition: Condition) -> None:
    assume(str(condition).isprintable())
    bullet = Bullet(id="b", content="anything", condition=condition)
    assert bullet.model_dump(mode="json")["condition"] == str(condition)
    assert Bullet.model_validate_json(bullet.model_dump_json()) == bullet


def test_a_flag_and_a_figure_are_not_the_same_test() -> None:
    flag, figure = Condition.parse("vpn is true"), Condition.parse("vpn is 1")
    assert flag != figure
    assert not flag.implies(figure)
    assert len(Condition.parse("vpn is true and vpn is 1").tests) == 2


@pytest.mark.parametrize("value", [5, None, "amount >"])
def test_a_bullet_whose_condition_cannot_be_read_is_refused(value: object) -> None:
    if value is None:
        assert Bullet.model_validate({"id": "b", "content": "c", "condition": None}).condition is None
    else:
        with pytest.raises(ValueError, match="condition"):
            Bullet.model_validate({"id": "b", "content": "c", "condition": value})
