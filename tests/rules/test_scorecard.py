"""General knowledge: every line is readable, points the way an analyst would, and adds up the same everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.fact_names import NAMED_FACTS
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.roles.embedded.agent import weigh
from acefraud.rules.english import read_condition
from acefraud.rules.scorecard import GENERAL, points_for, score_in, scorecard

REASSURING = {
    "amount_to_usual < 1.5", "larger_purchases >= 2", "account_age_days > 365", "account_transactions > 300",
    "payment_method_age_days > 180", "location_change is false", "travel is true", "merchant_rating >= 4.3",
    "fraud_reports < 1", "purchases_at_merchant >= 3", "new_device is false", "verified is true",
    "strong_authentication is true", "vip is true", "business_account is true", "address_mismatch is false",
}  # fmt: skip
POINTS = [(str(line.condition), line.points) for line in scorecard()]
facts_given = st.fixed_dictionaries(
    {},
    optional={
        name: st.booleans() if words.kind == "flag" else st.floats(0, 10_000)
        for name, words in NAMED_FACTS.items()
        if words.kind != "category"
    },
)


@pytest.mark.parametrize(("text", "points"), POINTS)
def test_a_line_is_a_condition_over_known_facts_that_reads_back_from_english(text: str, points: float) -> None:
    (line,) = (point for point in scorecard() if str(point.condition) == text)
    assert line.points == points
    assert line.condition.facts <= set(NAMED_FACTS)
    assert read_condition(line.words) == line.condition


@pytest.mark.parametrize(("text", "points"), POINTS)
def test_red_flags_add_and_reassuring_facts_take_away(text: str, points: float) -> None:
    assert (points < 0) is (text in REASSURING)
    assert 0 < abs(points) <= 2


def test_no_condition_is_listed_twice() -> None:
    assert len({point.condition for point in scorecard()}) == len(POINTS)


@given(st.lists(facts_given, max_size=6))
def test_the_column_sum_is_the_sum_of_the_lines_that_apply(rows: list[dict[str, FactValue]]) -> None:
    expected = [sum(point.points for point in points_for(row)) for row in rows]
    assert score_in(FactTable(rows)).tolist() == pytest.approx(expected)


def test_with_nothing_known_nothing_applies_and_the_case_is_approved() -> None:
    assert points_for({}) == []
    assessed = weigh({}, [], None)
    assert (assessed.verdict, assessed.reasons) == ("APPROVE", ())
    assert assessed.probability < GENERAL.threshold


def chance(facts: dict[str, FactValue]) -> float:
    return weigh(facts, [], None).probability


@pytest.mark.parametrize(
    ("fact", "ascending"),
    [
        ("amount_to_usual", [0.5, 2.0, 4.0, 9.0]),
        ("amount", [10.0, 6000.0]),
        ("account_age_days", [900.0, 100.0, 20.0, 1.0]),
        ("account_transactions", [500.0, 50.0, 1.0]),
        ("merchant_rating", [4.8, 4.0, 3.0, 1.5]),
        ("fraud_reports", [0.0, 1.0, 4.0, 9.0]),
        ("failed_attempts", [0.0, 5.0]),
        ("distance_km", [3.0, 4000.0]),
    ],
)
def test_more_of_a_red_flag_never_makes_a_case_less_suspicious(fact: str, ascending: list[float]) -> None:
    chances = [chance({fact: value}) for value in ascending]
    assert chances == sorted(chances)
    assert chances[0] < chances[-1]


@pytest.mark.parametrize("flag", [t.removesuffix(" is true") for t, p in POINTS if t.endswith(" is true") and p > 0])
def test_one_more_red_flag_makes_any_case_more_suspicious(flag: str) -> None:
    ordinary: dict[str, FactValue] = {"amount": 80.0, "account_age_days": 400.0}
    assert chance({**ordinary, flag: True}) > chance(ordinary)


def test_plain_cases_go_the_way_an_analyst_would_expect() -> None:
    takeover: dict[str, FactValue] = {"new_device": True, "password_reset": True, "vpn": True, "amount_to_usual": 9.0}
    regular: dict[str, FactValue] = {"account_age_days": 900.0, "new_device": False, "amount_to_usual": 0.9}
    assert weigh(takeover, [], None).verdict == "DECLINE"
    assert weigh(regular, [], None).verdict == "APPROVE"
