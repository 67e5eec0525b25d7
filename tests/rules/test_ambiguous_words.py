"""Words that are easily read as less than they say: counted nouns, haste, limits that are only near, and currencies."""

from __future__ import annotations

import pytest

from acefraud.core.condition import Condition
from acefraud.core.fact_names import FactCatalog
from acefraud.core.table import FactTable
from acefraud.rules.reader import Vocabulary, read_rule

CLAIMS = Vocabulary.of(
    FactCatalog.of(
        FactTable(
            [
                {
                    "amount": 50.0,
                    "deductible": 400.0,
                    "driver_rating": 2.0,
                    "police_report": True,
                    "past_claims": claims,
                    "vpn": False,
                    "channel": "online",
                    "country": country,
                    "currency": currency,
                    "hour": 3.5,
                    "night": True,
                    "card_sum_24h": 80.0,
                    "card_count_24h": 2.0,
                }
                for claims, country, currency in zip(
                    ["none", "1", "2 to 4", "more than 4"],
                    ["US", "GB", "FR", "JP"],
                    ["USD", "GBP", "EUR", "EUR"],
                    strict=True,
                )
            ]
        )
    )
)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a 400 deductible", "deductible is 400"),
        ("claims with a 400 deductible", "deductible is 400"),
        ("over 400 deductible", "deductible > 400"),
        ("not through a VPN", "vpn is false"),
        ("amount over 500 and not through a VPN", "amount > 500 and vpn is false"),
        ("hour between 22 and 5", "hour >= 22 or hour < 5"),
        ("hour not between 22 and 5", "hour < 22 and hour >= 5"),
        ("hour between 22 and 5 and amount over 500", "amount > 500 and (hour >= 22 or hour < 5)"),
        ("hour between 22 and 5 and amount > 500", "amount > 500 and (hour >= 22 or hour < 5)"),
        ("hour between 5 and 22", "hour >= 5 and hour <= 22"),
        ("outside the US and GB", 'country not in ("US", "GB")'),
        ("outside US/GB", 'country not in ("US", "GB")'),
        ("outside the US and over 500", 'country is not "US" and amount > 500'),
    ],
)
def test_it_is_read_as_it_is_meant(text: str, condition: str) -> None:
    reading = read_rule(text, CLAIMS)
    assert reading.condition == Condition.parse(condition), reading.problem


@pytest.mark.parametrize(
    "text",
    [
        "3 deductible claims",
        "more than 3 deductible claims",
        "between 3 and 5 deductible claims",
        "3+ deductible claims",
        "3 driver rating claims",
        "2 police report claims",
        "at least 2 past claims claims",
    ],
)
def test_a_number_before_a_fact_may_count_the_noun_after_it(text: str) -> None:
    assert read_rule(text, CLAIMS).condition is None


@pytest.mark.parametrize(
    "text",
    [
        "don't decline just because the amount is over 500",
        "don't just decline amounts over 500",
        "not just decline amounts over 500",
        "amount over 500 is not just suspicious",
        "amount over 500 shouldn't just be declined",
        "amount over 500 must not just be approved",
        "amount over 500 should not automatically be declined",
        "do not decline outright: amount over 500",
        "amount over 500: don't decline automatically",
        "never just approve amounts over 500",
        "amount over 500 is not immediately fraud",
        "amount over 500 isn't merely suspicious",
        "decline not only amounts over 500",
        "not just through a VPN",
    ],
)
def test_a_denial_of_haste_is_no_verdict(text: str) -> None:
    assert read_rule(text, CLAIMS).condition is None


def test_words_before_a_denial_do_not_weaken_it() -> None:
    reading = read_rule("please just don't approve amounts over 500", CLAIMS)
    assert (str(reading.condition), reading.argues) == ("amount > 500", "DECLINE")


@pytest.mark.parametrize("text", ["decline: not through a VPN and at night", "never through a VPN", "no VPN: not through"])
def test_through_alone_is_no_approval_that_could_be_denied(text: str) -> None:
    assert read_rule(text, CLAIMS).condition is None


@pytest.mark.parametrize("text", ["outside the US and EUR", "outside US, EUR", "outside US and EUR/GB"])
def test_outside_a_place_and_a_code_may_exclude_both(text: str) -> None:
    reading = read_rule(text, CLAIMS)
    assert (reading.condition, reading.readings) == (None, ())
