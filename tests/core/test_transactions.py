"""Columns one after the other read as their rows one after the other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from acefraud.core.table import FactTable, RowIndex
from acefraud.core.transaction import Case, Transaction
from acefraud.core.transactions import Cases, Transactions
from acefraud.support.timestamps import UNKNOWN, micros_of

TIME = datetime(2025, 1, 6, 9, 30, tzinfo=UTC)
ROWS = [
    Transaction(id="a", time=TIME, facts={"amount": 5.0, "shop": "web"}, entities={"card": "c2"}),
    Transaction(id="b", text="a purchase", entities={"card": "c1", "user": "u1"}),
    Transaction(id="c", facts={"amount": "much", "vpn": True}),
]
CASES = [
    Case(transaction=ROWS[0], is_fraud=True, known_at=TIME),
    Case(transaction=ROWS[1], is_fraud=False, difficulty="hard"),
    Case(transaction=ROWS[2], is_fraud=False, metadata={"kind": "x"}),
]


def bare(rows: list[Case]) -> Cases:
    """Columns that do not remember the rows they were made of."""
    cases = Cases.of(rows)
    return cases.with_facts(FactTable([row.transaction.facts for row in rows]))


@pytest.mark.parametrize("cut", range(4))
@pytest.mark.parametrize("make", [Cases.of, bare])
def test_stacked_cases_are_all_of_them_in_order(make: Callable[[list[Case]], Cases], cut: int) -> None:
    stacked = Cases.stacked([make(CASES[:cut]), make(CASES[cut:])])
    assert list(stacked) == CASES
    assert stacked[1:] == CASES[1:]
    assert stacked.take(np.array([2, 0])) == [CASES[2], CASES[0]]


def test_nothing_stacked_is_nothing() -> None:
    assert list(Transactions.stacked([Transactions.of(()), Transactions.of(())])) == []
    assert list(Cases.stacked([Cases.of(()), Cases.of(())])) == []


# --- columns read as rows ----------------------------------------------------------------------------------------


def bare_rows(rows: list[Transaction]) -> Transactions:
    return Transactions.of(rows).with_facts(FactTable([row.facts for row in rows]))


@pytest.mark.parametrize("make", [Transactions.of, bare_rows])
def test_rows_are_read_by_place_and_by_slice(make: Callable[[list[Transaction]], Transactions]) -> None:
    rows = make(ROWS)
    assert list(rows) == ROWS
    assert [rows[place] for place in (0, 1, 2, -1, -3)] == [ROWS[place] for place in (0, 1, 2, -1, -3)]
    assert rows[1:] == ROWS[1:]
    assert rows[::-1] == ROWS[::-1]
    assert rows[5:] == []
    assert rows == ROWS
    assert rows != ROWS[:2]
    assert rows != [ROWS[1], ROWS[0], ROWS[2]]
    assert [rows.text(index) for index in range(3)] == ["", "a purchase", ""]
    assert ROWS[1] in rows
    with pytest.raises(IndexError):
        rows[3]


@pytest.mark.parametrize("make", [Transactions.of, bare_rows])
@pytest.mark.parametrize("taken", [np.array([2, 0]), np.array([True, False, True]), slice(0, 3, 2)])
def test_some_rows_bring_everything_they_have(
    make: Callable[[list[Transaction]], Transactions], taken: RowIndex
) -> None:
    places = np.arange(3)[taken].tolist()
    some = make(ROWS).take(taken)
    assert list(some) == [ROWS[at] for at in places]
    assert some.take(np.array([1])) == [ROWS[places[1]]]


def test_columns_are_taken_as_they_are() -> None:
    rows, cases = Transactions.of(ROWS), Cases.of(CASES)
    assert Transactions.of(rows) is rows
    assert Cases.of(cases) is cases
    assert Transactions.of(iter(ROWS)) == rows


def test_a_row_made_of_columns_is_as_good_as_one_that_was_checked() -> None:
    for made, given in zip(bare_rows(ROWS), ROWS, strict=True):
        assert made.model_dump_json() == given.model_dump_json()
        assert hash(made.id) == hash(given.id)
    for case, as_given in zip(bare(CASES), CASES, strict=True):
        assert case.model_dump_json() == as_given.model_dump_json()
        assert type(case.is_fraud) is bool


def test_columns_with_a_time_or_a_text_nowhere_have_none() -> None:
    plain = Transactions.of([ROWS[2], ROWS[2]])
    assert plain.texts is None
    assert plain.times.tolist() == [UNKNOWN] * 2
    assert plain.entities == {}
    assert (plain.timed, Transactions.of(ROWS[:1]).timed, Transactions.of(ROWS).timed) == (False, True, False)


def test_other_facts_leave_the_rest_as_it_was() -> None:
    changed = Cases.of(CASES).with_facts(FactTable([{"amount": 1.0}] * 3))
    assert changed.facts.numbers("amount").tolist() == [1.0] * 3
    for case, before in zip(changed, CASES, strict=True):
        transaction = before.transaction.model_copy(update={"facts": {"amount": 1.0}})
        assert case == before.model_copy(update={"transaction": transaction})


def test_cases_are_read_by_place_and_differ_by_their_labels() -> None:
    cases = Cases.of(CASES)
    assert [cases[place] for place in (0, -1)] == [CASES[0], CASES[-1]]
    assert cases.labels.tolist() == [True, False, False]
    assert cases.known_at.tolist() == [micros_of(TIME), UNKNOWN, UNKNOWN]
    turned = Cases(cases.transactions, ~cases.labels, known_at=cases.known_at)
    assert turned != cases
    with pytest.raises(IndexError):
        cases[3]


def at(name: str, hours: int | None) -> Case:
    time = None if hours is None else TIME + timedelta(hours=hours)
    return Case(transaction=Transaction(id=name, time=time, facts={"amount": 1.0}), is_fraud=name == "b")


def test_cases_are_put_in_the_order_of_time_and_ties_go_by_id() -> None:
    rows = [at("a", 3), at("b", 1), at("c", 3), at("d", 2), at("e", 1)]
    cases = Cases.of(rows)
    ordered = cases.in_order().transactions.ids.tolist()
    assert [set(ordered[:2]), ordered[2], set(ordered[3:])] == [{"b", "e"}, "d", {"a", "c"}]
    assert Cases.of(rows[::-1]).in_order().transactions.ids.tolist() == ordered, "the order of a file says nothing"
    assert cases.in_order().labels.tolist() == [name == "b" for name in ordered]
    assert cases.transactions.ids.tolist() == ["a", "b", "c", "d", "e"], "the cases themselves stay as they were"
    again = cases.in_order()
    assert again.in_order() is again


def test_cases_without_a_time_come_first_and_without_any_the_order_stays() -> None:
    cases = Cases.of([at("a", 3), at("b", None), at("c", 1)])
    assert cases.in_order().transactions.ids.tolist() == ["b", "c", "a"]
    untimed = Cases.of([at("b", None), at("a", None)])
    assert untimed.in_order() is untimed


def test_stacked_parts_of_different_make_are_all_of_them_in_order() -> None:
    stacked = Cases.stacked([Cases.of(CASES[:1]), Cases.of(()), bare(CASES[1:2]), Cases.of(CASES[2:])])
    assert list(stacked) == CASES
    assert set(stacked.transactions.entities) == {"card", "user"}
    codes, words = stacked.transactions.entities["card"]
    assert ([words[code] if code >= 0 else None for code in codes], words) == (["c2", "c1", None], ("c1", "c2"))
