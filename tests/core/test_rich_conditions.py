"""The whole language of conditions: one text form, three values, the same answers on rows, columns and SQL."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rich_conditions import COLUMNS, LISTS, conditions, leaves, rows

from acefraud.core.bullet_table import FEW, ConditionIndex, unpacked
from acefraud.core.comparison import sql_name
from acefraud.core.condition import AnyOf, Condition
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue

Row = dict[str, FactValue]


@given(conditions)
def test_the_text_form_reads_back_to_an_equal_condition(condition: Condition) -> None:
    assert Condition.parse(str(condition)) == condition
    assert hash(Condition.parse(str(condition))) == hash(condition)


@given(conditions, rows)
def test_a_negated_condition_is_false_where_the_condition_is_true(condition: Condition, row: Row) -> None:
    opposite = {True: False, False: True, None: None}
    assert condition.negated().truth(row) is opposite[condition.truth(row)]
    assert condition.negated().negated().truth(row) is condition.truth(row)


@given(conditions, conditions, rows)
def test_and_and_or_follow_kleene(one: Condition, other: Condition, row: Row) -> None:
    truths = [one.truth(row), other.truth(row)]
    both = False if False in truths else None if None in truths else True
    either = True if True in truths else None if None in truths else False
    assert Condition.all_of([one, other]).truth(row) is both
    assert Condition.any_of([one, other]).truth(row) is either


@given(conditions, st.lists(rows, max_size=6))
def test_columns_and_rows_agree_on_all_three_values(condition: Condition, given_rows: list[Row]) -> None:
    table = FactTable(given_rows)
    assert condition.holds_in(table).tolist() == [condition.truth(row) is True for row in given_rows]
    assert condition.fails_in(table).tolist() == [condition.truth(row) is False for row in given_rows]


@given(st.lists(conditions | st.none(), max_size=70), st.lists(rows, max_size=FEW + 2))
def test_an_index_agrees_with_each_condition(given_conditions: list[Condition | None], given_rows: list[Row]) -> None:
    index = ConditionIndex(given_conditions)
    truths = [
        [None if condition is None else condition.truth(row) for condition in given_conditions] for row in given_rows
    ]
    table = FactTable(given_rows)
    sets = index.possible_in(table), index.proven_in(table)
    possible, proven = (unpacked(some, len(given_conditions)).tolist() for some in sets)
    assert proven == [[truth is True for truth in each] for each in truths]
    assert possible == [[truth is not False for truth in each] for each in truths]
    for row, each in zip(given_rows, truths, strict=True):
        first, second = index.match(row)
        assert [bool(first >> place & 1) for place in range(len(each))] == [truth is not False for truth in each]
        assert [bool(second >> place & 1) for place in range(len(each))] == [truth is True for truth in each]


@given(conditions, conditions, rows)
def test_implies_never_overstates(one: Condition, other: Condition, row: Row) -> None:
    if one.implies(other) and one.holds(row):
        assert other.holds(row)


@given(conditions, leaves())
def test_a_condition_implies_itself_and_any_choice_with_it(condition: Condition, other: object) -> None:
    assert condition.implies(condition)
    assert condition.implies(Condition.any_of([condition, Condition.of(other)]))  # type: ignore[arg-type]


@given(conditions, st.lists(rows, min_size=1, max_size=4))
def test_sqlite_agrees_and_says_null_for_unknown(condition: Condition, given_rows: list[Row]) -> None:
    expected = [condition.truth(row) for row in given_rows]
    assert _in_sqlite(condition, given_rows) == [None if each is None else int(each) for each in expected]


def _in_sqlite(condition: Condition, given_rows: list[Row]) -> list[int | None]:
    with closing(sqlite3.connect(":memory:")) as database:
        columns = ", ".join(f"{sql_name(name)} {kind}" for name, kind in COLUMNS.items())
        database.execute(f"CREATE TABLE facts (place INTEGER, {columns})")
        for name, values in LISTS.items():
            database.execute(f'CREATE TABLE {sql_name(f"list_{name}")} ("value" TEXT)')
            database.executemany(f"INSERT INTO {sql_name(f'list_{name}')} VALUES (?)", [(value,) for value in values])
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        inserted = [(index, *(row.get(name) for name in COLUMNS)) for index, row in enumerate(given_rows)]
        database.executemany(f"INSERT INTO facts VALUES ({marks})", inserted)
        found = database.execute(f"SELECT {condition.to_sql()} FROM facts ORDER BY place").fetchall()
    return [None if truth is None else int(truth) for (truth,) in found]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("amount = 5 AND NOT vpn = true", "amount is 5 and vpn is false"),
        ("amount between 5 and 9", "amount <= 9 and amount >= 5"),
        ("amount not between 5 and 9", "amount < 5 or amount > 9"),
        ("a > 1 or b > 1 and c > 1", "a > 1 or (b > 1 and c > 1)"),
        ("(a > 1 or b > 1) and c > 1", "c > 1 and (a > 1 or b > 1)"),
        ("amount > 300 unless vip is true or vpn is true", "amount > 300 and vip is false and vpn is false"),
        ("not (a > 1 or not (b in ('x', 'y')))", 'a <= 1 and b in ("x", "y")'),
        ("merchant in list watched", "merchant in list watched"),
        ("not merchant in list `my list`", "merchant not in list `my list`"),
        ("amount >= 2 * usual_amount", "amount >= 2 * usual_amount"),
        ("a is not `b`", "a is not `b`"),
        ("device is not missing", "device is known"),
        ("a > 1 or (b > 1 or c > 1)", "a > 1 or b > 1 or c > 1"),
    ],
)
def test_many_ways_to_write_one_condition(text: str, form: str) -> None:
    assert str(Condition.parse(text)) == form


def test_a_choice_needs_two_options() -> None:
    with pytest.raises(ValueError, match="at least two different options"):
        AnyOf((Condition.parse("a > 1"), Condition.parse("a > 1")))


def test_only_a_plain_condition_has_tests() -> None:
    with pytest.raises(ValueError, match="not a plain conjunction"):
        _ = Condition.parse("a > 1 or b > 1").tests
