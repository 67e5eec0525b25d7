"""Other ways to say the same: what they become, and that no text takes long."""

from __future__ import annotations

import pytest
from tests.growth import assert_linear

from acefraud.rules.reader.wording import reworded

ENTITIES = frozenset({("card",), ("merchant",), ("device",)})


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("Hi team, block amounts over 500. Thanks, Jana", "block amounts over 500"),
        ("the merchant already knows the card", "the merchant has seen the card before"),
        ("over 500 w/o a VPN", "over 500 without a VPN"),
        ("the shop is 'Hi team, Thanks'", "the shop is 'Hi team, Thanks'"),
        ("more than what the card usually spends", "more than the card's usual amount"),
        ("Never let it through", "always decline"),
    ],
)
def test_what_a_text_becomes(text: str, instead: str) -> None:
    assert reworded(text, ENTITIES) == instead


@pytest.mark.parametrize(
    "piece",
    ["a", "a ", "the card ", "the card the merchant ", "or ", ", or ", "or a ", "- ", " ", "\n", "more than ", "now ",
     "don't know the ", "last transaction ", "in the last 24 hours ", "decline ", "thanks ", "5 ", "('", "high risk "],
)  # fmt: skip
def test_a_long_text_is_reworded_in_time_proportional_to_its_length(piece: str) -> None:
    part = piece * (600 // len(piece))
    assert_linear(lambda text: reworded(text, ENTITIES), part, part * 5)
