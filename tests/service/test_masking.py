"""What logs and lists show of a transaction."""

from __future__ import annotations

from acefraud.core.transaction import FactValue
from acefraud.datasets import SchemaMapping
from acefraud.service.masking import masked_facts, masked_text

CARD = 4111111111111111.0
FACTS: dict[str, FactValue] = {
    "amount": 20.0,
    "vpn": True,
    "country": "FR",
    "email": "ann@example.org",
    "full_name": "Ann Lee",
    "contact": CARD,
    "note": "Ann Lee called from 192.0.2.7",
    "Segment": 3.0,
    "tier": "gold",
}
MAPPING = SchemaMapping(sensitive=("segment", "level"), rename={"level": "tier"})


def test_names_stay_and_personal_and_sensitive_values_go() -> None:
    shown = masked_facts(FACTS, MAPPING.sensitive_facts)
    assert list(shown) == list(FACTS)
    assert {name: shown[name] for name in ("amount", "vpn", "country")} == {
        "amount": 20.0,
        "vpn": True,
        "country": "FR",
    }
    hidden = ("email", "full_name", "contact", "Segment", "tier")
    assert {name: shown[name] for name in hidden} == dict.fromkeys(hidden, "[masked]")
    assert shown["note"] == "[masked] called from [ip]"


def test_what_is_not_declared_sensitive_is_shown() -> None:
    shown = masked_facts(FACTS)
    assert (shown["Segment"], shown["tier"]) == (3.0, "gold")


def test_a_text_is_shown_without_the_values_of_masked_facts() -> None:
    text = "Ann Lee (gold) pays $20 with 4111111111111111"
    assert masked_text(text, FACTS, MAPPING.sensitive_facts) == "[masked] ([masked]) pays $20 with [card]"
