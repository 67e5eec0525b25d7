"""The reader of people's words: what it understands, what it refuses, and what it says then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rich_conditions import COLUMNS, LISTS, conditions

from acefraud.core.condition import Condition
from acefraud.core.fact_names import FactCatalog
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.rules.english import say
from acefraud.rules.reader import Vocabulary, read_rule

SHOP = Vocabulary.of(
    FactCatalog.of(
        FactTable(
            [
                {
                    "amount": 50.0,
                    "country": "US",
                    "browser": "Chrome",
                    "hour": 3.5,
                    "night": True,
                    "weekday": "Monday",
                    "weekend": False,
                    "vip": False,
                    "discount": 0.2,
                    "account_age_days": 3.0,
                    "card_count_1h": 2.0,
                    "card_count_24h": 2.0,
                    "card_mean_30d": 40.0,
                    "card_distinct_device_24h": 1.0,
                    "device_distinct_card_24h": 1.0,
                    "card_new_device": True,
                    "card_known_frauds_7d": 0.0,
                    "customer_present": True,
                },
                {"amount": 900.0, "country": "IN", "browser": "Opera", "shipping_country": "GB"},
                {"amount": 9.0, "country": "GB", "browser": "Safari", "shipping_country": "US"},
            ]
        )
    ),
    lists=["watched_cards"],
)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("amount over $500 unless the customer is a VIP", "amount > 500 and vip is false"),
        ("amount over 500 or under 10", "amount < 10 or amount > 500"),
        ("Chrome or Opera at night", 'browser in ("Chrome", "Opera") and night is true'),
        ("country is India or the United States", 'country in ("IN", "US")'),
        ("country is not in US, GB", 'country not in ("US", "GB")'),
        ("country differs from shipping country", "country is not `shipping_country`"),
        ("between 1 am and 5 am", "hour < 5 and hour >= 1"),
        ("between 10 pm and 4 am", "hour < 4 or hour >= 22"),
        ("on weekends", "weekend is true"),
        ("on Mondays and Tuesdays", 'weekday in ("Monday", "Tuesday")'),
        ("discount of at least 20%", "discount >= 0.2"),
        ("amount above twice the card's 30 day average", "amount > 2 * card_mean_30d"),
        ("more than 5 transactions of the card in an hour", "card_count_1h > 5"),
        ("3 or more devices on the card in a day", "card_distinct_device_24h >= 3"),
        ("card used on a new device", "card_new_device is true"),
        ("no country", "country is missing"),
        ("the account is younger than two weeks", "account_age_days < 14"),
        ("card in list watched_cards", "card in list watched_cards"),
        ("card is not on the watched cards list", "card not in list watched_cards"),
        ("customer not present", "customer_present is false"),
        ("either a VIP or over $900, and at night", "night is true and (amount > 900 or vip is true)"),
        ("neither a VIP nor at night", "night is false and vip is false"),
        ("amount > 500 or vip is true and night is true", "amount > 500 or (night is true and vip is true)"),
        ("AMOUNT >= 500", "amount >= 500"),
    ],
)
def test_what_is_understood(text: str, condition: str) -> None:
    reading = read_rule(text, SHOP)
    assert reading.condition == Condition.parse(condition), reading


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("purple orders over $500", "purple"),
        ("amount over 500 and the customer sounds nervous", "nervous"),
        ("more than 5 transactions of the card in 10 minutes", "10 minutes"),
        ("merchant_ratng > 4", "merchant_ratng"),
        ("discount of at least two weeks", "two weeks"),
        ("amount over €2.000", "€2.000"),
        ("average amount over 500", "average"),
        ("even if the amount is over 500", "even"),
    ],
)
def test_what_is_not_understood_is_named(text: str, named: str) -> None:
    reading = read_rule(text, SHOP)
    assert reading.condition is None
    assert any(named.lstrip("€") in words for words in reading.not_understood), reading
    assert named.lstrip("€") in reading.problem


def test_the_nearest_facts_are_suggested() -> None:
    assert "card_count_24h" in read_rule("card_cont_24h > 5", SHOP).did_you_mean
    assert "browser" in read_rule("brwsr is Chrome", SHOP).did_you_mean


def test_two_readings_are_refused_and_both_are_shown() -> None:
    reading = read_rule("amount over 500 and a VIP or at night", SHOP)
    assert reading.condition is None


@pytest.mark.parametrize(
    ("text", "argues", "always"),
    [
        ("Decline if amount over 500", "DECLINE", None),
        ("amount over 500 -> block", "DECLINE", None),
        ("amount over 500 should be approved", "APPROVE", None),
        ("Never approve amounts over 500", "DECLINE", "DECLINE"),
        ("Always decline when the amount is over 5000", "DECLINE", "DECLINE"),
        ("Do not decline amounts under 5", "APPROVE", None),
        ("amount over 500 must always be reviewed", None, "REVIEW"),
        ("amount over 500: check", None, None),
        ("amount over 500", None, None),
        ("Decline customers who are not VIP", "DECLINE", None),
    ],
)
def test_what_a_rule_asks_for(text: str, argues: str | None, always: str | None) -> None:
    reading = read_rule(text, SHOP)
    assert reading.condition is not None
    assert (reading.argues, reading.always) == (argues, always)


def test_a_negation_after_the_verdict_belongs_to_the_condition() -> None:
    reading = read_rule("Decline not VIP customers", SHOP)
    assert reading.condition is None or str(reading.condition) == "vip is false"
    assert reading.argues == "DECLINE"


VALUES: dict[str, FactValue] = {"REAL": 5.0, "INTEGER": True, "TEXT": "FR"}
ALL_FACTS = Vocabulary.of(
    FactCatalog.of(FactTable([{name: VALUES[kind] for name, kind in COLUMNS.items()}])),
    lists=LISTS,
)


@given(conditions)
def test_the_formal_face_and_the_english_face_are_both_read_back(condition: Condition) -> None:
    assert read_rule(str(condition), Vocabulary.general(lists=LISTS)).condition in (condition, None)
    assert read_rule(f"{condition}: decline", ALL_FACTS).condition == condition
    assert read_rule(f"{say(condition)}: decline", ALL_FACTS).condition == condition


WORDS = ["amount", "over", "500", "or", "and", "unless", "(", ")", "not", "VIP", ",", "at", "night", "card", "new"]


@given(st.text(max_size=80) | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_can_be_tried(text: str) -> None:
    reading = read_rule(text, SHOP)
    assert (reading.condition is None) == bool(reading.problem)


@pytest.mark.parametrize(
    "text",
    [
        "Approve customers with no chargebacks or disputes",
        "Approve if no VPN or emulator",
        "Decline amounts over 500 without a VPN or emulator",
        "Decline if the customer is not VIP or verified",
        "Decline, unless verified, amounts over 500 at night",
        "Decline except VIP customers if the amount exceeds 5000",
        "Decline unless VIP or verified if the amount exceeds 5000",
        "Decline amounts over 5000 unless VIP if at night",
        "amount over 500 and any of VPN, emulator or remote access",
        "Decline a new device with VPN, emulator or remote access",
        "Decline gift cards from a high risk country except VIP customers and verified customers",
        "after 10 pm and before 4 am",
        "Decline crypto over $500 and gift cards over $300",
        "Flag crypto or gift cards bought through a VPN",
        "no more than 5 transactions in an hour",
    ],
)
def test_what_could_be_meant_otherwise_is_refused(text: str) -> None:
    assert read_rule(text, Vocabulary.general()).condition is None


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("Unless the customer is a VIP, decline amounts over 5000", "amount > 5000 and vip is false"),
        ("No VPN and a known device", "vpn is false and new_device is false"),
        ("neither a VPN nor an emulator", "vpn is false and emulator is false"),
        ("Decline VPN, emulator, or remote access", "vpn is true or emulator is true or remote_access is true"),
        (
            "gift cards over $500 or crypto over $900",
            "(gift_cards is true and amount > 500) or (crypto is true and amount > 900)",
        ),
        ("amount over 500 unless VIP or verified", "amount > 500 and vip is false and verified is false"),
    ],
)
def test_what_is_clear_is_still_read(text: str, condition: str) -> None:
    assert read_rule(text, Vocabulary.general()).condition == Condition.parse(condition)


def test_a_fact_whose_name_is_only_signs_does_not_stop_the_reader() -> None:
    vocabulary = Vocabulary.of(FactCatalog.of(FactTable([{"amount": 50.0, "·": 1.0, " ": 2.0}])))
    assert str(read_rule("amount above 40: decline", vocabulary).condition) == "amount > 40"


CLAIMS = Vocabulary.of(
    FactCatalog.of(
        FactTable(
            [
                {"PastClaims": past, "CarAge": age, "AddressChange": moved, "PolicyYears": years}
                for past, age, moved, years in zip(
                    ["none", "1", "2 to 4", "5+"],
                    ["new", "1-3 years", "4-7 years", "8 or more years"],
                    ["no change", "under 6 months", "1 year", "2 to 3 years"],
                    ["<1", "1 to 5", "6 to 10", "over 10"],
                    strict=True,
                )
            ]
        )
    )
)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("at least 2 past claims", 'PastClaims in ("2 to 4", "5+")'),
        ("more than 4 past claims", 'PastClaims is "5+"'),
        ("5 or more past claims", 'PastClaims is "5+"'),
        ("fewer than 2 past claims", 'PastClaims in ("none", "1")'),
        ("car age of at least 8 years", 'CarAge is "8 or more years"'),
        ("car age above 7 years", 'CarAge is "8 or more years"'),
        ("policy years above 10", 'PolicyYears is "over 10"'),
        ("policy years below 1", 'PolicyYears is "<1"'),
        ("policy years of at least 6", 'PolicyYears in ("6 to 10", "over 10")'),
    ],
)
def test_a_number_is_compared_with_whole_bands(text: str, condition: str) -> None:
    assert read_rule(text, CLAIMS).condition == Condition.parse(condition)


@pytest.mark.parametrize(
    "text",
    [
        "at least 3 past claims",
        "more than 5 past claims",
        "at most 5 past claims",  # six are in the last band too
        "car age above 8 years",
        "car age of at most 8 years",
        "policy years above 7",
    ],
)
def test_a_number_inside_a_band_is_refused(text: str) -> None:
    assert read_rule(text, CLAIMS).condition is None


@pytest.mark.parametrize("signs", ["-", "..", "$", "'", "`", "", "\u200b", "\x00"])
def test_names_and_values_of_signs_alone_do_no_harm(signs: str) -> None:
    rows: list[dict[str, FactValue]] = [{"amount": 50.0, "kind": kind, signs: True} for kind in (signs, f"a {signs}")]
    read = read_rule("amount over 500: decline", Vocabulary.of(FactCatalog.of(FactTable(rows)), lists=[signs]))
    assert str(read.condition) == "amount > 500"
