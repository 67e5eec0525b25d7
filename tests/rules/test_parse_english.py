"""The exact words of `say` and no others. `test_english` reads back whatever `say` may say."""

from __future__ import annotations

import pytest

from acefraud.rules.english import read_condition


@pytest.mark.parametrize(
    ("words", "condition"),
    [
        ("amount above the usual", "amount_to_usual > 1"),
        ("different cards of the ip address in the last 7 days above 3", "ip_address_distinct_card_7d > 3"),
        (
            "transactions of the card in the last hour above 5 or transactions of the user in the last day below 3",
            "card_count_1h > 5 or user_count_1d < 3",
        ),
        ("amount above 2 times the mean amount of the card in the last 7 days", "amount > 2 * card_mean_7d"),
        ('merchant_id is not in list "watched" and (a VIP customer or `a and b` differs from `c`)', None),
    ],
)
def test_the_words_of_the_engine(words: str, condition: str | None) -> None:
    found = read_condition(words)
    assert found is not None
    assert condition is None or str(found) == condition


@pytest.mark.parametrize(
    "words", ["", "VPN or emulator", "amount above 1e999", "a nervous customer with a VPN", "amount over 5", "(amount"]
)
def test_other_words_give_no_condition(words: str) -> None:
    assert read_condition(words) is None
