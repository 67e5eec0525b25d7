"""A condition printed as SQL picks the rows of a real database that it holds for."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.comparison import MEMBERSHIP, ORDERED, PRESENCE
from acefraud.core.condition import Condition, Op, Test
from acefraud.core.transaction import FactValue

COLUMNS = {
    "amount": "REAL",
    "select": "REAL",
    "vpn": "INTEGER",
    'odd "name"': "INTEGER",
    "it's; --": "TEXT",
    "é": "TEXT",
}
WORDS = ["FR", "it's", 'a "b"', "", "%", "null", "--", "é"]
# Six decimals: what SQLite and Python read from a literal agrees to the last bit there.
figures = st.integers(-5_000_000, 5_000_000).map(lambda n: n / 1_000_000) | st.sampled_from([-2.0, 0.0, 1.0, 1e6])
OF_TYPE: dict[str, st.SearchStrategy[FactValue]] = {
    "REAL": figures,
    "INTEGER": st.booleans(),
    "TEXT": st.sampled_from(WORDS),
}


@st.composite
def typed_tests(draw: st.DrawFn) -> Test:
    name = draw(st.sampled_from(list(COLUMNS)))
    kind = COLUMNS[name]
    ops = [Op.IS, Op.IS_NOT, *PRESENCE]
    if kind == "REAL":
        ops += ORDERED
    if kind == "TEXT":
        ops += MEMBERSHIP
    op = draw(st.sampled_from(sorted(ops)))
    if op in PRESENCE:
        return Test(name, op)
    if op in MEMBERSHIP:
        return Test(name, op, tuple(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))))
    return Test(name, op, draw(OF_TYPE[kind]))


conditions = st.lists(typed_tests(), min_size=1, max_size=4).map(lambda tests: Condition(tuple(tests)))
rows = st.fixed_dictionaries({}, optional={name: OF_TYPE[kind] for name, kind in COLUMNS.items()})


def chosen_by_sqlite(condition: Condition, given_rows: list[dict[str, FactValue]]) -> list[int]:
    quoted = ['"' + name.replace('"', '""') + '"' for name in COLUMNS]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(quoted, COLUMNS.values(), strict=True))
    database = sqlite3.connect(":memory:")
    try:
        database.execute(f"CREATE TABLE facts (place INTEGER, {columns})")
        places = ", ".join("?" * (len(COLUMNS) + 1))
        values = [(index, *(row.get(name) for name in COLUMNS)) for index, row in enumerate(given_rows)]
        database.executemany(f"INSERT INTO facts VALUES ({places})", values)
        found = database.execute(f"SELECT place FROM facts WHERE {condition.to_sql()} ORDER BY place")
        return [at for (at,) in found]
    finally:
        database.close()


@given(conditions, st.lists(rows, min_size=1, max_size=10))
def test_sql_picks_the_rows_the_condition_holds_for(
    condition: Condition, given_rows: list[dict[str, FactValue]]
) -> None:
    expected = [index for index, row in enumerate(given_rows) if condition.holds(row)]
    assert chosen_by_sqlite(condition, given_rows) == expected


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("amount > 2000", '"amount" > 2000'),
        ("vpn is true and amount <= 0.5", '"amount" <= 0.5 AND "vpn" = 1'),
        ("vpn is not true", '"vpn" = 0'),
        ('country is not "it\'s"', "\"country\" <> 'it''s'"),
        ('country not in ("FR", "DE")', "\"country\" NOT IN ('FR', 'DE')"),
        ('`odd "name"` is missing', '"odd ""name""" IS NULL'),
        ("amount is known", '"amount" IS NOT NULL'),
    ],
)
def test_sql_by_example(text: str, sql: str) -> None:
    assert Condition.parse(text).to_sql() == sql
