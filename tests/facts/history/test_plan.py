"""Facts from a history are spoken of in English."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.comparison import MEMBERSHIP, PRESENCE, Op, Test
from acefraud.core.condition import Condition
from acefraud.core.fact_names import words_for
from acefraud.datasets.guess import names_a_label
from acefraud.facts.history import HistoryPlan
from acefraud.rules.english import read_condition, say, say_facts


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("shop_known_fraud_share_7d > 0.2", "share of the shop's labels in the last 7 days that were fraud above 20%"),
        ("terminal_known_frauds_30d >= 2", "known frauds of the terminal in the last 30 days at least 2"),
        ("customer_count_1h > 3", "transactions of the customer in the last hour above 3"),
        ("customer_sum_24h > 1500", "total amount of the customer in the last 24 hours above 1,500"),
        ("customer_mean_1d < 5", "mean amount of the customer in the last day below 5"),
        ("customer_max_7d is missing", "highest amount of the customer in the last 7 days is missing"),
        ("customer_amount_to_usual > 3", "amount above 3 times the customer's usual"),
        ("customer_amount_to_usual > 1", "amount above the customer's usual"),
        ("card_amount_to_usual_in_category > 4", "amount above 4 times the card's usual in this category"),
        ("ip_address_hours_since_last < 0.5", "time since the ip address's last transaction below 30 minutes"),
        ("card_km_from_last > 500", "distance from the card's last place above 500 km"),
        ("card_kmh_from_last > 900", "speed from the card's last place above 900 km/h"),
        ("card_distinct_shop_24h > 4", "different shops of the card in the last 24 hours above 4"),
        ("card_distinct_ip_address_24h > 4", "different ip address values of the card in the last 24 hours above 4"),
        ("card_new_shop is true", "this shop is new to the card"),
        ("card_new_shop is false", "this shop is not new to the card"),
        ("card_new_shop is missing", "whether this shop is new to the card is missing"),
    ],
)  # fmt: skip
def test_a_condition_over_a_history(condition: str, words: str) -> None:
    assert say(Condition.parse(condition)) == words
    assert read_condition(words) == Condition.parse(condition)
    assert read_condition(f"{words[0].upper()}{words[1:]} and a VPN or proxy") == Condition.parse(
        f"{condition} and vpn is true"
    )


def test_a_column_that_only_looks_like_one_is_spoken_of_by_its_name() -> None:
    assert say(Condition.parse("is_new_customer is true")) == "is_new_customer is true"


def test_every_fact_of_a_plan_has_words_of_its_kind() -> None:
    plan = HistoryPlan(entities=("CUSTOMER_ID", "ip"), category="kind", latitude="lat", longitude="lon")
    for name, kind in plan.facts(amounts=True).items():
        words = words_for(name)
        assert words is not None, name
        assert words.kind == kind


def test_facts_of_a_history_in_a_line() -> None:
    said = say_facts({"shop_known_fraud_share_7d": 0.125, "card_new_shop": True})
    assert said == "this shop is new to the card; share of the shop's labels in the last 7 days that were fraud 12.5%"


def test_a_column_of_a_file_that_only_sounds_like_one_may_still_leak_the_label() -> None:
    assert names_a_label("merchant_known_frauds_7d")


figures = st.sampled_from([0.07, 1.0, -0.5, 30.0, 12_500.0, 1e-7, 1e22]) | st.floats(
    allow_nan=False, allow_infinity=False
)
PLAN = HistoryPlan(entities=("CUSTOMER_ID", "ip_address", "is_o"), category="kind", latitude="lat", longitude="lon")


@given(st.sampled_from(list(PLAN.facts(amounts=True).items())), st.sampled_from(sorted(Op)), figures, st.booleans())
def test_what_is_said_of_a_history_is_read_back(fact: tuple[str, str], op: Op, figure: float, flag: bool) -> None:
    name, kind = fact
    if op in PRESENCE:
        condition = Condition.of(Test(name, op))
    elif kind == "flag":
        condition = Condition.of(Test(name, Op.IS, flag))
    else:
        condition = Condition.of(Test(name, op if op not in MEMBERSHIP else Op.IS, figure))
    assert read_condition(say(condition)) == condition
