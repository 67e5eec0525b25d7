"""Conditions in English. `test_english` checks the exact words of `say`; here are other ways to say the same."""

from __future__ import annotations

import pytest

from acefraud.rules.parse_english import read_condition


@pytest.mark.parametrize(
    ("words", "condition"),
    [
        (
            "the amount exceeds $2,000 and the account is younger than 30 days",
            "account_age_days < 30 and amount > 2000",
        ),
        ("accounts under 2 weeks", "account_age_days < 14"),
        ("payments of at least 1.5k", "amount >= 1500"),
        ("amount above the usual", "amount_to_usual > 1"),
        ("without a VPN", "vpn is false"),
        ("different cards of the ip address in the last 7 days above 3", "ip_address_distinct_card_7d > 3"),
    ],
)
def test_other_ways_to_say_a_condition(words: str, condition: str) -> None:
    assert str(read_condition(words)) == condition


@pytest.mark.parametrize("words", ["", "VPN or emulator", "amount above 1e999", "a nervous customer with a VPN"])
def test_words_that_are_not_understood_completely_give_no_condition(words: str) -> None:
    assert read_condition(words) is None


def test_letter_case_and_punctuation_do_not_matter() -> None:
    assert read_condition("THE AMOUNT EXCEEDS $2,000; A VPN.") == read_condition("the amount exceeds $2,000 and a vpn")
    assert read_condition("the amount exceeds $2,000 and a vpn") is not None
