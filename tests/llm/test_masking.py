"""Personal data does not leave the process, and everything else stays unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import assert_linear

from acefraud.core.transaction import FactValue
from acefraud.display.redaction import Masker, is_personal


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("mail ann.lee+x@mail.example.org.", "mail [email]."),
        ("(ANN@EXAMPLE.ORG,bob@example.co.uk)", "([email],[email])"),
        ("from 192.0.2.7, then 10.0.0.1:8080.", "from [ip], then [ip]:8080."),
        ("src:2001:db8::1, ::1 and fe80::a:b.", "src:[ip], [ip] and [ip]."),
        ("2001:0db8:85a3:0000:0000:8a2e:0370:7334: denied", "[ip]: denied"),
        ("::ffff:192.0.2.1", "[ip]"),
        ("card 4111 1111 1111 1111 12/27", "card [card] 12/27"),
        ("card 4111-1111-1111-1111, 123", "card [card], 123"),
        ("7777 5555555555554444 9", "7777 [card] 9"),
        ("pan_4222222222222,3782 822463 10005;6304000000000000", "pan_[card],[card];[card]"),
        ("to DE89 3704 0044 0532 0130 00 now", "to [iban] now"),
        ("ES91 2100 0418 4502 0005 1332 paid GB82WEST12345698765432", "[iban] paid [iban]"),
        ("ES9121000418450200051332 GB82 WEST 1234 5698 7654 32", "[iban] [iban]"),
        ("call +1 (415) 555-0132 or +4915112345678", "call [phone] or [phone]"),
        ("User 'john_doe' (3 days old), customer: \"Ann O'Hara\"", "User '[name]' (3 days old), customer: \"[name]\""),
        ("Cardholder 'Ann O'Hara' and Name=‘Bo’", "Cardholder '[name]' and Name=‘[name]’"),
    ],
)
def test_personal_patterns_are_masked(text: str, masked: str) -> None:
    assert Masker().masked_text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "tx-1234 paid $2,500.00 at 12:30:45 on 2025-01-15 12:30, rating 4.6/5, 1,500 km, version 1.2.3",
        "order 1234567890123456 and 4111 1111 1111 1112",  # neither passes Luhn
        "GB83 WEST 1234 5698 7654 32",  # a wrong checksum
        "seen 1736899200009 and 1736899200000001",  # milli- and microseconds
        "score 0.4111111111111111, v1.2.3.4, 1.2.3.4.5, 256.1.1.1",
        "the customer's payments and the merchant's rating; users' habits 'as usual'",
        "00:1a:2b:3c:4d:5e std::vector 10:00:00+02:00 +2500 10@5.00 a :: b",
        "2024-01-15-2024-01-16 and 0000 0000 0000 0000",
    ],
)
def test_what_is_not_personal_stays(text: str) -> None:
    assert Masker().masked_text(text) == text


PERSONAL = (
    "email customerEmail e-mail email_address ip IPAddress clientIP ip_address card_number CardNo cc_num pan cvv iban "
    "accountNumber phone phone_number homePhone first_name lastname fullName cardholder cardholder_name customer_name "
    "userName ssn passport_number street_address billing_address address2 name"
)
MEASURED = (
    "ip_country email_age_days email_domain P_emaildomain card_age_days name_match phone_verified merchant_name zip "
    "company trip recipient address_mismatch account_transactions payment_method channel product_name span"
)


@pytest.mark.parametrize("name", PERSONAL.split())
def test_names_that_say_it(name: str) -> None:
    assert is_personal(name)
    assert Masker().masked_facts({name: "some words"}) == {name: "[masked]"}
    assert Masker().masked_facts({name: 3.0}) == {name: 3.0}
    assert Masker().masked_facts({name: True}) == {name: True}
    assert Masker().masked_facts({name: 4111111111111111.0}) == {name: "[masked]"}


@pytest.mark.parametrize("name", MEASURED.split())
def test_names_of_measurements(name: str) -> None:
    assert not is_personal(name)
    assert Masker().masked_facts({name: "some words"}) == {name: "some words"}


def test_what_is_declared_is_masked_whatever_it_holds_and_wherever_it_stands() -> None:
    mask = Masker(sensitive=("Branch", "vip", "number"))
    facts: dict[str, FactValue] = {
        "branch": "North Side", "vip": True, "number": 48_151.0, "amount": 48.0, "note": "north side, a@example.org"
    }  # fmt: skip
    assert mask.masked_facts(facts) == {
        "branch": "[masked]", "vip": "[masked]", "number": "[masked]", "amount": 48.0, "note": "[masked], [email]"
    }  # fmt: skip
    text = "NORTH SIDE (north sides, north side) no. 48151, $48"
    assert mask.masked_text(text, facts) == "[masked] (north sides, [masked]) no. [masked], $48"
    assert mask.masked_text(text) == text
    assert mask == Masker(sensitive={"number", "branch", "VIP"})


def test_values_are_words_not_patterns_and_single_letters_stay() -> None:
    mask = Masker(sensitive=("who", "other", "third"))
    facts: dict[str, FactValue] = {"who": "a.c+", "other": "x", "third": " masked "}
    assert mask.masked_text("abc a.c+ x Masked [masked]", facts) == "abc [masked] x [masked] [masked]"


def test_one_name_is_not_taken_for_several() -> None:
    with pytest.raises(TypeError, match="got the string 'email'"):
        Masker(sensitive="email")


pieces = st.sampled_from(
    [
        "4111 1111 1111 1111", "4111111111111111", "a@example.org", "192.0.2.1", "::1", "2001:db8::1", "+4915112345678",
        "GB82WEST12345698765432", "User 'ann'", "'", '"', "user ", "[masked]", "[card", "]", ".", ":", "_", "-", " ",
        "@", "+", "7", "12", "a", "Ann Lee", "masked", "1.2.", "\n",
    ]
)  # fmt: skip
texts = st.lists(pieces | st.text(max_size=3), max_size=12).map("".join)


@given(texts, st.lists(texts, max_size=3))
def test_masking_twice_changes_nothing(text: str, values: list[str]) -> None:
    facts: dict[str, FactValue] = {f"fact {at}": value for at, value in enumerate(values)}
    mask = Masker(sensitive=tuple(facts))
    once = mask.masked_text(text, facts)
    assert mask.masked_text(once, facts) == once
    patterns = mask.masked_text(text)
    assert mask.masked_text(patterns) == patterns
    shown = mask.masked_facts({"note": text})
    assert mask.masked_facts(shown) == shown


@given(st.text())
def test_facts_that_are_masked_stay_masked(value: str) -> None:
    mask = Masker(sensitive=("x",))
    assert mask.masked_facts(mask.masked_facts({"x": value, "email": value})) == {"x": "[masked]", "email": "[masked]"}


@pytest.mark.parametrize(
    "piece",
    ["a", "a.", "a@", "1", "1 ", "1-", "4111 ", "1.", ":", "a:", "1:", "+1", "+1 ", "user '", "User: \"", "AB12 ",
     "ab12", "[masked]", "Ann ", "192.0.2.1.", "+4915112345678", "4111111111111111 ", "a@1.", " ", "%"],
)  # fmt: skip
def test_a_long_text_is_masked_in_time_proportional_to_its_length(piece: str) -> None:
    part = piece * (10_000 // len(piece))  # whole pieces: both texts end alike, so both are masked in as many rounds
    facts: dict[str, FactValue] = {"name": "Ann", "email": "a" * 900 + "b"}
    assert_linear(lambda one: Masker().masked_text(one, facts), part, part * 5)


def test_facts_may_become_sensitive_later() -> None:
    declared: set[str] = set()
    mask = Masker(["tier"], lambda: declared)
    assert (mask.hides("Tier", 1.0), mask.hides("Segment", 3.0)) == (True, False)
    declared.add("segment")
    assert (mask.hides("Tier", 1.0), mask.hides("Segment", 3.0)) == (True, True)
