"""Words that are easily read as less than they say: counted nouns, haste, limits that are only near, and currencies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.growth import assert_linear

from acefraud.core.condition import MOST_LEAVES, Condition
from acefraud.core.fact_names import FactCatalog
from acefraud.core.table import FactTable
from acefraud.rules.reader import Vocabulary, read_rule
from acefraud.rules.reader.advice import advise
from acefraud.rules.reader.tokens import PhraseTable
from acefraud.rules.reader.wording import nearest_facts

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


@pytest.mark.parametrize(
    "text", ["decline: not through a VPN and at night", "never through a VPN", "no VPN: not through"]
)
def test_through_alone_is_no_approval_that_could_be_denied(text: str) -> None:
    assert read_rule(text, CLAIMS).condition is None


@pytest.mark.parametrize("text", ["outside the US and EUR", "outside US, EUR", "outside US and EUR/GB"])
def test_outside_a_place_and_a_code_may_exclude_both(text: str) -> None:
    reading = read_rule(text, CLAIMS)
    assert (reading.condition, reading.readings) == (None, ())


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("just under 500", "just under"),
        ("amounts just over 2000: decline", "just over"),
        ("a little under $500", "little under"),
        ("amount slightly above 2000", "slightly above"),
        ("just after 10 pm", "just after"),
    ],
)
def test_a_limit_that_is_only_near_is_refused_with_what_to_say(text: str, near: str) -> None:
    assert read_rule(text, CLAIMS).not_understood == (near,)
    advice = advise(text, CLAIMS)
    assert advice.missing == (f"'{near}' leaves one limit open: say both, as in 'between 450 and 500'.",)
    assert advice.suggestions == ()


@pytest.mark.parametrize(
    "text",
    [
        "over 500 USD or over 400 EUR",
        "amount over $500 or €400",
        "amount between $500 and €900",
        "over 500€ or over 400$",
        "over five hundred dollars or over 400 euros",
    ],
)
def test_one_rule_has_one_currency(text: str) -> None:
    assert read_rule(text, CLAIMS).condition is None
    advice = advise(text, CLAIMS)
    assert "A rule compares amounts in one currency" in advice.missing[0]
    assert advice.suggestions == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("amount over $500", "Amounts in any currency are meant: to test `currency` too, say it, as in 'in EUR'."),
        ("amount over 500€", "Amounts in any currency are meant: to test `currency` too, say it, as in 'in EUR'."),
        (
            "amount over ₹500",
            "No amount at hand is in INR: `currency` is EUR, GBP, USD. The figure was taken as it is.",
        ),
    ],
)
def test_a_currency_is_compared_with_those_at_hand(text: str, told: str) -> None:
    assert read_rule(text, CLAIMS).assumed == (told,)


def test_a_currency_is_compared_with_that_of_the_column() -> None:
    vocabulary = Vocabulary.of(FactCatalog.of(FactTable([{"amount_usd": 5.0}, {"amount_usd": 7.0}])))
    assert read_rule("amount_usd over 500 USD", vocabulary).assumed == ()
    told = ("`amount_usd` is in USD, not in EUR: the figure was taken as it is.",)
    assert read_rule("amount_usd over 500 EUR", vocabulary).assumed == told


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("payments of the card totalling over 500 in a day", "card_sum_24h > 500"),
        ("cards with payments adding up to over 500 in a day", "card_sum_24h > 500"),
        ("a payment totalling over 500", "amount > 500"),
        ("payments totalling over 500 in a day", None),
        ("payments totalling over 500", None),
        ("payments over 500 in total", None),
        ("payments over 500 altogether in a day", None),
    ],
)
def test_a_sum_of_payments_is_no_amount_of_one(text: str, condition: str | None) -> None:
    assert read_rule(text, CLAIMS).condition == (None if condition is None else Condition.parse(condition))


@pytest.mark.parametrize("word", ["because", "alone", "slightly", "going", "email", "nervous", "weather", "holiday"])
def test_no_fact_is_suggested_that_has_nothing_to_do_with_a_word(word: str) -> None:
    catalog = FactCatalog.of(
        FactTable([{"sex": "male", "AgeOfVehicle": 3.0, "night": True, "card_new_device": True, "merchant": "gaming"}])
    )
    assert nearest_facts([word], Vocabulary.of(catalog)) == ()


def test_facts_are_suggested_for_a_wrong_letter_and_a_like_meaning() -> None:
    catalog = FactCatalog.of(FactTable([{"high_risk_country": True, "browser": "Opera", "vpn": True, "amount": 5.0}]))
    near = {word: nearest_facts([word], Vocabulary.of(catalog)) for word in ("cuntry", "brwsr", "tor", "expensive")}
    assert near == {"cuntry": ("high_risk_country",), "brwsr": ("browser",), "tor": (), "expensive": ("amount",)}


@pytest.mark.parametrize("text", ["payments totalling over 500", "payments by the user that total over 500 in a day"])
def test_advice_names_no_fact_of_something_else(text: str) -> None:
    catalog = FactCatalog.of(
        FactTable([{"amount": 5.0, "payment_method_age_days": 3.0, "device_sum_24h": 5.0, "device_count_24h": 2.0}])
    )
    assert not any("may be meant" in line for line in advise(text, Vocabulary.of(catalog)).missing)


def test_advice_keeps_a_negation_before_or() -> None:
    assert advise("decline orders not through a purple one or a VPN", CLAIMS).read == ()


def test_advice_gives_a_fact_no_number_of_another() -> None:
    lines = advise("a purple 3 deductible over 500 wobbles", CLAIMS).missing
    assert not any("above 500" in line for line in lines)


@pytest.mark.parametrize("sign", [" ", "\n", "-", ".", "—", " -"])
def test_many_blanks_or_signs_take_time_in_proportion(sign: str) -> None:
    some = "amount over 500" + sign * (500 // len(sign))
    assert_linear(lambda text: read_rule(text, CLAIMS), some, some + sign * (2_000 // len(sign)))


def test_signs_that_are_repeated_say_no_more_than_once() -> None:
    assert str(read_rule(f"amount{' ' * 400}over{chr(10) * 400}500 {'-' * 900}", CLAIMS).condition) == "amount > 500"
    assert str(read_rule('channel is "by   phone"', CLAIMS).condition) == 'channel is "by   phone"'


@pytest.mark.parametrize("said", ["vpn", "over 500", "amount over 500 and", "not"])
def test_the_same_words_again_and_again_are_no_rule(said: str) -> None:
    text = " ".join([said] * (290 // len(said.split())))
    assert read_rule(text, CLAIMS).condition is None
    assert advise(text, CLAIMS).missing == ("It is too long for a rule: say each rule by itself.",)


@pytest.mark.parametrize("before", ["card numbers starting with", "merchants", "deductible is"])
@pytest.mark.parametrize(("count", "is_read"), [(MOST_LEAVES, True), (MOST_LEAVES + 1, False), (140, False)])
def test_a_list_is_a_rule_as_long_as_a_condition_holds_it(before: str, count: int, *, is_read: bool) -> None:
    listed = ", ".join(str(6_500 + number) for number in range(count - 1)) + " or 9999"
    text = f"decline if {before} {listed}" if before == "deductible is" else f"{before} {listed}: decline"
    vocabulary = replace(CLAIMS, entities=PhraseTable({("card",): "card", ("merchant",): "merchant"}))
    condition = read_rule(text, vocabulary).condition
    assert (condition is not None) is is_read
    assert condition is None or len(condition.leaves) == count
    assert bool(advise(text, vocabulary).lines) is not is_read
