"""Bullets in plain English: what is understood of them, and which are notes because a part is not understood."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.rules.bullet_text import read_bullet

UNDERSTOOD = [
    # words, condition, verdict, claimed share of fraud
    ("amount > $1000 = DECLINE", "amount > 1000", "DECLINE", None),
    ("amount < 1000 = APPROVE", "amount < 1000", "APPROVE", None),
    ("Amount over 2k and VPN: decline", "amount > 2000 and vpn is true", "DECLINE", None),
    ("amount below $20 is not fraud", "amount < 20", "APPROVE", None),
    ("payments of at least 500 EUR are risky", "amount >= 500", "DECLINE", None),
    ("Amount above 8x the usual = 85% fraud", "amount_to_usual > 8", "DECLINE", 0.85),
    ("Purchases at most 1.5 times the usual are 98% legit", "amount_to_usual <= 1.5", "APPROVE", 0.02),
    (
        "Accounts younger than 2 weeks with a new device are 90% fraud",
        "account_age_days < 14 and new_device is true",
        "DECLINE",
        0.9,
    ),
    ("account age < 7 days and amount > $900: DECLINE", "account_age_days < 7 and amount > 900", "DECLINE", None),
    ("accounts older than 2 years are safe", "account_age_days > 730", "APPROVE", None),
    ("accounts under 3 hours old: decline", "account_age_days < 0.125", "DECLINE", None),
    (
        "Decline if amount exceeds €5,000 and the account is newer than 1 month",
        "account_age_days < 30 and amount > 5000",
        "DECLINE",
        None,
    ),
    ("Merchant rating below 2.5/5 -> decline", "merchant_rating < 2.5", "DECLINE", None),
    ("at least 5 fraud reports = DECLINE", "fraud_reports >= 5", "DECLINE", None),
    ("more than 3 failed login attempts => DECLINE", "failed_attempts > 3", "DECLINE", None),
    ("distance from the usual place above 1,000 km = decline", "distance_km > 1000", "DECLINE", None),
    ("VIP customer: approve", "vip is true", "APPROVE", None),
    ("No VPN and a known device = APPROVE", "new_device is false and vpn is false", "APPROVE", None),
    ("without a VPN: approve", "vpn is false", "APPROVE", None),
    ("VPN with no emulator: approve", "emulator is false and vpn is true", "APPROVE", None),
    ("Gift cards at night are suspicious", "gift_cards is true and night is true", "DECLINE", None),
    ("Night-time crypto: fraud", "crypto is true and night is true", "DECLINE", None),
    ("Impossible travel: block", "impossible_travel is true", "DECLINE", None),
    ("Prepaid card + address mismatch = fraud", "address_mismatch is true and prepaid_card is true", "DECLINE", None),
    ("KYC missing and sanctioned country: reject", "kyc_missing is true and sanctioned is true", "DECLINE", None),
    (
        "Password was changed and e-mail address changed: decline",
        "contact_changed is true and password_reset is true",
        "DECLINE",
        None,
    ),
    (
        "VPN from high-risk countries (Nigeria, Romania) + crypto merchant = 95% fraud",
        "crypto is true and high_risk_country is true and vpn is true",
        "DECLINE",
        0.95,
    ),
    ('channel is "online" and amount above 300: decline', 'amount > 300 and channel is "online"', "DECLINE", None),
    ("my_col is missing: decline", "my_col is missing", "DECLINE", None),
    ("`score 2` at least 0.5: decline", "`score 2` >= 0.5", "DECLINE", None),
    ("`a` above 5 = 5% fraud", "a > 5", "APPROVE", 0.05),
    ("amount > $1000 or a VPN = DECLINE", "amount > 1000 or vpn is true", "DECLINE", None),
    ("VPN or emulator = decline", "emulator is true or vpn is true", "DECLINE", None),
    ("amount between 100 and 200 = DECLINE", "amount <= 200 and amount >= 100", "DECLINE", None),
    ("amount not above 500: approve", "amount <= 500", "APPROVE", None),
    ("unless the customer is a VIP, decline crypto", "crypto is true and vip is false", "DECLINE", None),
    (
        "amount > 1 and vpn and emulator and crypto and gift cards: decline",
        "amount > 1 and crypto is true and emulator is true and gift_cards is true and vpn is true",
        "DECLINE",
        None,
    ),
]

NOTES = [
    # A part is not understood, so the condition would be wider than what was meant.
    ("amount > 1000 within 5 minutes = DECLINE", "DECLINE"),
    ("amount above 5% of income: decline", "DECLINE"),
    ("5 fraud reports = DECLINE", "DECLINE"),
    ("velocity > 3 = decline", "DECLINE"),
    ("Small amounts are safe", "APPROVE"),
    ("VPN from a nervous customer: decline", "DECLINE"),
    ("Be careful with customers who sound nervous", None),
]


@pytest.mark.parametrize(("words", "condition", "argues", "claimed"), UNDERSTOOD)
def test_a_bullet_that_is_understood(words: str, condition: str, argues: str, claimed: float | None) -> None:
    reading = read_bullet(words)
    assert str(reading.condition) == condition
    assert reading.argues == argues
    assert (reading.claim.fraud_share if reading.claim else None) == (claimed and pytest.approx(claimed))


@pytest.mark.parametrize(("words", "argues"), NOTES)
def test_a_bullet_of_which_a_part_is_not_understood_is_a_note(words: str, argues: str | None) -> None:
    reading = read_bullet(words)
    assert reading.condition is None
    assert reading.argues == argues


@pytest.mark.parametrize("words", [words for words, *_ in UNDERSTOOD if "=" not in words and ":" not in words])
def test_an_unknown_word_before_an_understood_condition_makes_it_a_note(words: str) -> None:
    assert read_bullet(f"Nervous caller, {words}").condition is None


@pytest.mark.parametrize(
    "words",
    [
        "VPN is fraud unless the customer is a VIP",
        "Amount above 5,000: decline if the caller sounds nervous",
        "A VPN is not fraud when there is a travel notice",
    ],
)
def test_a_qualifier_after_the_verdict_is_not_dropped(words: str) -> None:
    condition = read_bullet(words).condition
    assert condition is None or len(condition.leaves) == 2


@pytest.mark.parametrize(("words", "wrong"), [("Never approve a VPN", "APPROVE"), ("Do not decline a VIP", "DECLINE")])
def test_a_negated_verdict_is_not_read_as_the_verdict(words: str, wrong: str) -> None:
    assert read_bullet(words).argues != wrong


@given(
    st.text(max_size=60) | st.lists(st.sampled_from([w for w, *_ in UNDERSTOOD] + [w for w, _ in NOTES])).map("".join)
)
def test_any_text_can_be_read(text: str) -> None:
    reading = read_bullet(text)
    assert reading.claim is None or 0 <= reading.claim.fraud_share <= 1


def test_a_claim_above_one_hundred_percent_is_held_at_one() -> None:
    claim = read_bullet("VPN = 150% fraud").claim
    assert claim is not None
    assert claim.fraud_share == 1.0
