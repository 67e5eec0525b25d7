"""Column tables: one under the other, one beside the other, and in part, read as their rows do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.table import Columns, FactTable, RowIndex, coded
from acefraud.core.transaction import FactValue

Row = dict[str, FactValue]
names = st.sampled_from(["amount", "vpn", "shop", "odd"])
values = st.booleans() | st.sampled_from([0.0, -0.0, 1.5, -2.0, 1e300]) | st.sampled_from(["web", "app", "", "1.5"])
rows_given = st.lists(st.dictionaries(names, values), max_size=6)


def rows_of(table: FactTable) -> list[Row]:
    return [table.row(index) for index in range(len(table))]


@given(rows_given)
def test_rows_come_back_and_every_view_shows_its_own_type(rows: list[Row]) -> None:
    table = FactTable(rows)
    assert rows_of(table) == rows
    for name in ("amount", "vpn", "shop", "odd", "never"):
        found = [row.get(name) for row in rows]
        codes, words = table.categories(name)
        seen = zip(table.numbers(name), table.flags(name), codes, strict=True)
        assert table.known(name).tolist() == [value is not None for value in found]
        for value, (number, flag, code) in zip(found, seen, strict=True):
            assert (None if np.isnan(number) else number) == (value if type(value) is float else None)
            assert flag == (int(value) if type(value) is bool else -1)
            assert (words[code] if code >= 0 else None) == (value if type(value) is str else None)
    assert table.names == sorted({name for row in rows for name in row})


@given(st.lists(rows_given, max_size=4))
def test_stacked_tables_are_all_rows_in_order(parts: list[list[Row]]) -> None:
    stacked = FactTable.stacked([FactTable(part) for part in parts])
    together = [row for part in parts for row in part]
    assert len(stacked) == len(together)
    assert rows_of(stacked) == together
    for name, (codes, words) in stacked.columns.categories.items():
        assert list(words) == sorted(set(words)), name
        assert codes.dtype == np.int32
    for flags in stacked.columns.flags.values():
        assert flags.dtype == np.int8


@given(st.lists(st.tuples(st.dictionaries(names, values), st.dictionaries(names, values)), max_size=6))
def test_beside_each_other_a_row_keeps_what_it_knows_and_learns_the_rest(pairs: list[tuple[Row, Row]]) -> None:
    mine, theirs = FactTable([each for each, _ in pairs]), FactTable([other for _, other in pairs])
    before = rows_of(mine), rows_of(theirs)
    both = mine.beside(theirs.columns)
    assert rows_of(both) == [{**other, **each} for each, other in pairs]
    assert both.names == sorted({*mine.names, *theirs.names})
    assert (rows_of(mine), rows_of(theirs)) == before, "neither was changed"


def test_a_fact_of_another_kind_does_not_stand_beside_the_one_a_row_knows() -> None:
    mine = FactTable([{"shop": 5.0}, {"shop": True}, {}, {"shop": "web"}])
    both = mine.beside(FactTable([{"shop": "app"}, {"shop": 1.0}, {"shop": "app"}, {"shop": False}]).columns)
    assert rows_of(both) == [{"shop": 5.0}, {"shop": True}, {"shop": "app"}, {"shop": "web"}]
    assert both.categories("shop")[0].tolist() == [-1, -1, 0, 1]
    assert np.isnan(both.numbers("shop")[1:]).all()
    assert both.flags("shop").tolist() == [-1, 1, -1, -1]


def test_nothing_beside_a_table_is_the_table() -> None:
    table = FactTable([{"amount": 5.0, "shop": "web"}])
    assert rows_of(table.beside(Columns())) == rows_of(table)
    assert rows_of(FactTable([{}, {}]).beside(FactTable([{}, {"vpn": True}]).columns)) == [{}, {"vpn": True}]


@pytest.mark.parametrize(
    ("taken", "places"),
    [
        (slice(1, 3), [1, 2]),
        (np.array([2, 0, 2]), [2, 0, 2]),
        (np.array([True, False, True, False]), [0, 2]),
        (np.array([], dtype=np.int64), []),
    ],
)
def test_some_of_the_rows(taken: RowIndex, places: list[int]) -> None:
    rows: list[Row] = [{"amount": 1.0}, {"vpn": True}, {"shop": "web", "amount": 3.0}, {}]
    table = FactTable(rows).take(taken)
    assert len(table) == len(places)
    assert rows_of(table) == [rows[at] for at in places]
    assert rows_of(FactTable([{}] * 4).take(taken)) == [{}] * len(places), "also where there are no columns"


def test_words_as_codes() -> None:
    codes, words = coded(["b", None, "a", "b", ""])
    assert (codes.tolist(), words) == ([2, -1, 1, 2, 0], ("", "a", "b"))
    assert [part.tolist() if isinstance(part, np.ndarray) else part for part in coded([])] == [[], ()]
