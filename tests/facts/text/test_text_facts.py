"""Facts from free text: one table of sentences and what must be read from them (None: must not be read)."""

from __future__ import annotations

import pytest

from acefraud.core.fact_names import NAMED_FACTS
from acefraud.errors import ConfigurationError
from acefraud.facts.text import patterns, read_facts, statements, themes
from acefraud.facts.text.document import Document
from acefraud.support.package_data import read_package_toml

N = None
CASES: list[tuple[str, dict[str, object]]] = [
    # the amount of this transaction
    ("Client attempts a $1,999.99 purchase", {"amount": 1999.99}),
    ("amt=1250.00 USD acct_age=3d vpn=Y", {"amount": 1250.0, "account_age_days": 3.0, "vpn": True}),
    ("USD 1250 charged at the till", {"amount": 1250.0}),
    ("Order for €99 placed on the website", {"amount": 99.0, "channel": "online"}),
    ("Order total: 99,50 €", {"amount": 99.5}),
    ("Wire of $2.5k requested", {"amount": 2500.0, "channel": "transfer"}),
    ("amount: 300", {"amount": 300.0}),
    ("a payment of 40 dollars", {"amount": 40.0}),
    ("Sandwich for $20", {"amount": 20.0}),
    ("Tries to send £4,000 to a new payee", {"amount": 4000.0, "new_payee": True}),
    ("$310 at a petrol station", {"amount": 310.0, "merchant_category": "fuel"}),
    (
        "Previous orders were $30, $42 and $51. Now she attempts $600.",
        {"amount": 600.0, "usual_amount": 41.0, "usual_amount_max": 51.0},
    ),
    ("Average basket $40, attempts $80 payment", {"amount": 80.0, "usual_amount": 40.0, "amount_to_usual": 2.0}),
    ("Her credit limit is $5,000", {"amount": N}),
    ("Attempts $50 purchase. Attempts $70 purchase.", {"amount": N}),
    ("A refund of $80 was issued", {"amount": N}),
    ("Attempts €500 purchase, average $100", {"amount": 500.0, "usual_amount": 100.0, "amount_to_usual": N}),
    # ages
    ("Account opened yesterday", {"account_age_days": 1.0}),
    ("Account created 3 hours ago", {"account_age_days": 0.125}),
    ("A two-week-old account", {"account_age_days": 14.0}),
    ("account age: 1.5 years", {"account_age_days": 547.5}),
    ("Account is 6 months old", {"account_age_days": 180.0}),
    ("Customer for 4 years", {"account_age_days": 1460.0}),
    ("Profile created 20 minutes ago", {"account_age_days": 0.013889}),
    ("Signed up 5 days ago", {"account_age_days": 5.0}),
    ("Account open for 2 years and 1 month", {"account_age_days": 760.0}),
    ("Customer since 2019", {"account_age_days": N}),
    ("The caller is a 67-year-old woman", {"account_age_days": N}),
    ("Card added 2 days ago", {"payment_method_age_days": 2.0, "account_age_days": N}),
    ("Payment method on file for 18 months", {"payment_method_age_days": 540.0}),
    ("The debit card was linked to the account today", {"payment_method_age_days": 0.0}),
    ("Device first seen 3 hours ago", {"device_age_days": 0.125, "account_age_days": N}),
    ("device age: 400 days", {"device_age_days": 400.0, "account_age_days": N}),
    # counts
    ("3 total transactions", {"account_transactions": 3.0}),
    ("Profile with 847 transactions", {"account_transactions": 847.0}),
    ("12 prior orders, all delivered", {"account_transactions": 12.0}),
    ("No prior transactions", {"account_transactions": 0.0}),
    (
        "Her last 10 transactions were all under $200",
        {"account_transactions": N, "usual_amount_max": 200.0, "usual_amount": 100.0},
    ),
    ("Makes 15-20 transactions/month", {"transactions_per_month": 17.5}),
    ("About 8 purchases per month", {"transactions_per_month": 8.0}),
    ("7 orders a week", {"transactions_per_month": 30.0}),
    ("No activity for 9 months", {"days_since_last": 270.0, "account_age_days": N}),
    ("Card was dormant for 2 years", {"days_since_last": 730.0}),
    ("Last login was 40 days ago", {"days_since_last": 40.0}),
    ("2 prior chargebacks", {"chargebacks": 2.0}),
    ("No chargebacks", {"chargebacks": 0.0}),
    ("chargebacks: 3", {"chargebacks": 3.0}),
    ("Has made 3 purchases over $400 in the last month", {"larger_purchases": 3.0, "amount": N, "usual_amount": N}),
    ("Made 5 similar purchases between $600 and $900", {"larger_purchases": 5.0, "amount": N}),
    (
        "Has made 12 purchases from this merchant",
        {"purchases_at_merchant": 12.0, "first_time_merchant": False, "account_transactions": N},
    ),
    ("This is the 8th purchase at this merchant", {"purchases_at_merchant": 7.0}),
    ("This is the third order at this shop", {"purchases_at_merchant": 2.0}),
    # usual amounts
    ("avg $85", {"usual_amount": 85.0, "amount": N}),
    ("mostly $15-60", {"usual_amount": 37.5, "usual_amount_max": 60.0, "amount": N}),
    ("Typical spending is $50 to $150", {"usual_amount": 100.0, "usual_amount_max": 150.0}),
    ("Previous payments were all under $120", {"usual_amount": 60.0, "usual_amount_max": 120.0, "amount": N}),
    ("Previous purchase was $45", {"usual_amount": 45.0, "amount": N}),
    ("Usually spends around 35 euros", {"usual_amount": 35.0, "amount": N}),
    ("Never spends more than $60", {"usual_amount_max": 60.0}),
    ("Largest previous order was $340", {"usual_amount_max": 340.0, "amount": N}),
    ("Attempts $600 purchase; usually $50-100", {"amount_to_usual": 8.0, "amount_to_usual_max": 6.0}),
    ("The merchant's average ticket is $40", {"usual_amount": N}),
    # climbing amounts
    ("Increasing amounts: $50, $120, $350", {"escalating_amounts": True}),
    ("Previous transactions were $5, $20, $60, $200", {"escalating_amounts": True, "usual_amount": 71.25}),
    ("Previous transactions were $5, $60, $20, $200", {"escalating_amounts": N}),
    ("Looks like a testing pattern", {"escalating_amounts": True}),
    ("No escalating amounts", {"escalating_amounts": False}),
    # clock
    ("Payment at 3:15 AM", {"hour": 3.25, "night": True}),
    ("Payment at 12:30 AM", {"hour": 0.5, "night": True}),
    ("Payment at 12:10 PM", {"hour": 12.17, "night": False}),
    ("time: 03:15", {"hour": 3.25}),
    ("Withdrawal at 23h", {"hour": 23.0, "night": True}),
    ("Bought at noon", {"hour": 12.0, "night": False}),
    ("Bought just after midnight", {"hour": 0.0, "night": True}),
    ("2024-03-05T22:45:10Z charge", {"hour": 22.75, "night": False}),
    ("Order at 11 p.m.", {"hour": 23.0}),
    ("Password was reset at 2:50 AM, payment at 3:10 AM", {"hour": 3.17, "password_reset": True}),
    ("Seen at 3 AM, seen at 5 PM", {"hour": N}),
    ("Usually shops between 9 AM and 5 PM", {"hour": N, "night": N}),
    ("Bought in the middle of the night", {"night": True}),
    ("Happened during business hours", {"night": False}),
    # merchant
    ("Merchant has 4.2/5 rating", {"merchant_rating": 4.2}),
    ("Shop rated 3.9 out of 5", {"merchant_rating": 3.9}),
    ("Seller with 2.1 stars", {"merchant_rating": 2.1}),
    ("Risk score 4.2/5", {"merchant_rating": N}),
    ("3 out of 5 payments bounced", {"merchant_rating": N}),
    ("No fraud reports", {"fraud_reports": 0.0, "fraud_report_window_days": N}),
    ("5 fraud reports in the last 30 days", {"fraud_reports": 5.0, "fraud_report_window_days": 30.0}),
    ("1 fraud report 6 months ago", {"fraud_reports": 1.0, "fraud_report_window_days": 180.0, "account_age_days": N}),
    ("fraud reports: 4", {"fraud_reports": 4.0}),
    ("Three complaints about the seller", {"fraud_reports": 3.0}),
    ("Paid at 'Corner Coffee House'", {"merchant_category": "restaurant"}),
    ("Paid at 'Gadget Electronics'", {"merchant_category": "electronics"}),
    ("Bought rings at a jeweler", {"merchant_category": "jewellery"}),
    ("Paid an airline for plane tickets", {"merchant_category": "travel"}),
    ("Paid Western Union", {"merchant_category": "money transfer"}),
    ("Paid at 'Blue Door Ltd'", {"merchant_category": N}),
    ("She usually buys groceries", {"merchant_category": N}),
    ("Cash withdrawal from an ATM", {"channel": "cash machine"}),
    ("Telephone order taken by staff", {"channel": "phone order"}),
    ("Chip and PIN, card present", {"channel": "in store"}),
    ("Bank transfer to savings", {"channel": "transfer", "payment_method": "bank transfer"}),
    ("Paid with Apple Pay", {"payment_method": "wallet"}),
    ("Paid with a credit card", {"payment_method": "card"}),
    ("Paid with a prepaid card", {"payment_method": "prepaid card", "prepaid_card": True}),
    # pace
    ("After 4 failed attempts the PIN was right", {"failed_attempts": 4.0}),
    ("three declined tries", {"failed_attempts": 3.0, "declined_before": 3.0}),
    ("No failed logins", {"failed_attempts": 0.0}),
    ("2 declined payments before this one", {"declined_before": 2.0}),
    (
        "12 transactions in the last 10 minutes",
        {"recent_transactions": 12.0, "recent_window_minutes": 10.0, "velocity": True, "account_transactions": N},
    ),
    ("3 payments within an hour and 2 transactions in the last 3 hours", {"velocity": N}),
    ("6 purchases in the last hour", {"recent_transactions": 6.0, "recent_window_minutes": 60.0}),
    ("30 payments in the last 6 months", {"recent_transactions": N}),
    ("A burst of small charges", {"velocity": True}),
    ("Velocity checks passed", {"velocity": False}),
    # places
    ("Card used in Miami, FL. Previous transactions were in New York, NY.", {"location_change": True}),
    ("Card used in Lyon. She lives in Lyon.", {"location_change": False}),
    ("Card used in Miami, FL. Previous payments were mostly in California.", {"location_change": True}),
    ("Card used in Miami. Previous payments were in Florida.", {"location_change": N}),
    ("Bought in her usual neighborhood", {"location_change": False}),
    ("Not in the usual location", {"location_change": True}),
    ("Paid in an unfamiliar city", {"location_change": True}),
    ("2,400 km from home", {"distance_km": 2400.0}),
    ("100 miles from home", {"distance_km": 160.93}),
    ("Impossible travel between logins", {"impossible_travel": True, "travel": N}),
    ("No impossible travel", {"impossible_travel": False}),
    ("IP from Lagos, Nigeria", {"high_risk_country": True}),
    ("Ships to a high-risk country", {"high_risk_country": True}),
    ("Not a high-risk country", {"high_risk_country": False}),
    ("Beneficiary bank in Iran", {"sanctioned": True}),
    ("Sanctions screening clear", {"sanctioned": False}),
    ("Travel notice on file", {"travel": True}),
    ("3 trips to Florida in the last 6 months", {"travel": True}),
    ("No travel notice, VPN detected", {"travel": False, "vpn": True}),
    # device and way in
    ("no VPN", {"vpn": False}),
    ("VPN not detected", {"vpn": False}),
    ("She is not using a proxy", {"vpn": False}),
    ("logged in without a VPN", {"vpn": False}),
    ("vpn=N", {"vpn": False}),
    ("VPN: no", {"vpn": False}),
    ('{"vpn": true, "new_device": false}', {"vpn": True, "new_device": False}),
    ("vpn=1 emulator=0", {"vpn": True, "emulator": False}),
    ("No VPN, proxy or emulator", {"vpn": False, "emulator": False}),
    ("Unclear whether a VPN was used", {"vpn": N}),
    ("Came through a Tor exit node", {"vpn": True}),
    ("Came from an Android emulator", {"emulator": True}),
    ("Logged in from an unknown device", {"new_device": True}),
    ("Logged in from her usual device", {"new_device": False}),
    ("Not a trusted device", {"new_device": True}),
    ("Not a new device", {"new_device": False}),
    ("Password changed an hour before", {"password_reset": True}),
    ("No password reset", {"password_reset": False}),
    ("SIM swap last night", {"contact_changed": True}),
    ("E-mail address was changed", {"contact_changed": True}),
    ("Phone number was not changed", {"contact_changed": False}),
    ("AnyDesk was running", {"remote_access": True}),
    ("no remote access software", {"remote_access": False}),
    # who it is
    ("KYC incomplete", {"kyc_missing": True}),
    ("No KYC", {"kyc_missing": True}),
    ("KYC passed", {"kyc_missing": False}),
    ("KYC complete", {"kyc_missing": False}),
    ("KYC not complete", {"kyc_missing": True}),
    ("kyc=incomplete", {"kyc_missing": True}),
    ("Identity verified", {"verified": True}),
    ("Unverified customer", {"verified": False}),
    ("Customer not verified", {"verified": False}),
    ("3DS passed", {"strong_authentication": True}),
    ("3DS failed", {"strong_authentication": False}),
    ("3-D Secure was completed", {"strong_authentication": True}),
    ("no 3DS", {"strong_authentication": False}),
    ("OTP confirmed", {"strong_authentication": True}),
    ("Platinum customer", {"vip": True}),
    ("not a VIP", {"vip": False}),
    ("Runs a business account", {"business_account": True}),
    ("A personal account", {"business_account": False}),
    # goods and money
    ("Billing address matches delivery address", {"address_mismatch": False}),
    ("Billing address does not match shipping address", {"address_mismatch": True}),
    ("AVS mismatch", {"address_mismatch": True}),
    ("No address mismatch", {"address_mismatch": False}),
    ("Payee added today", {"new_payee": True}),
    ("A long-standing payee", {"new_payee": False}),
    ("Funds were immediately forwarded", {"funds_forwarded": True}),
    ("Funds were not moved on", {"funds_forwarded": False}),
    ("Buys bitcoin", {"crypto": True, "merchant_category": "crypto exchange"}),
    ("Wants ten gift cards", {"gift_cards": True, "merchant_category": "gift cards"}),
    ("no gift cards", {"gift_cards": False}),
    ("First purchase at this merchant", {"first_time_merchant": True, "purchases_at_merchant": 0.0}),
    ("Bought from the same merchant last week", {"first_time_merchant": False}),
    ("No prior payments to this payee", {"new_payee": True, "account_transactions": N, "purchases_at_merchant": N}),
    ("Client (9 years) calls", {"account_age_days": 3285.0}),
    ("dev=new 3ds=failed kyc=ok", {"new_device": True, "strong_authentication": False, "kyc_missing": False}),
    ("Paid online at the weekend", {"weekend": True}),
    ("Paid online on a weekday", {"weekend": False}),
    ("Prior disputes on record", {"disputes_before": True}),
    ("No disputes", {"disputes_before": False}),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text[:60] for text, _ in CASES])
def test_reads(text: str, expected: dict[str, object]) -> None:
    facts = read_facts(text).facts
    assert {name: facts.get(name) for name in expected} == expected


@pytest.mark.parametrize("name", [n for n, w in NAMED_FACTS.items() if w.kind == "flag"])
def test_reads_the_words_of_the_named_facts(name: str) -> None:
    words = NAMED_FACTS[name]
    assert read_facts(f"Seen: {words.true}.").facts.get(name) is True
    assert read_facts(f"Seen: {words.false}.").facts.get(name) is False


def test_every_named_fact_has_an_example() -> None:
    shown = {name for _, expected in CASES for name, value in expected.items() if value is not None}
    assert set(NAMED_FACTS) - {"weekday"} <= shown  # the day of the week comes from the time of a record


def test_reads_only_named_facts() -> None:
    assert {name for text, _ in CASES for name in read_facts(text).facts} <= set(NAMED_FACTS)


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("Customer since 2019. Attempts $40 purchase.", "Customer since 2019"),
        ("Attempts $50 purchase. Then attempts $70 purchase.", "Attempts $50 purchase"),
        ("Seen at 3 AM. Seen at 5 PM.", "Seen at 5 PM"),
        ("Largest by 6x. No VPN.", "Largest by 6x"),
        ("Unclear whether a VPN was used.", "Unclear whether a VPN was used"),
        ('She said "my nephew did this". No VPN.', 'She said "my nephew did this"'),
        ("VPN on. VPN not detected.", "VPN on"),
    ],
)
def test_lists_what_it_could_not_read(text: str, piece: str) -> None:
    assert piece in read_facts(text).unread


def test_a_text_that_is_understood_leaves_nothing_unread() -> None:
    text = (
        "Customer (account age: 45 days, 12 prior orders) attempts $250 purchase at 14:05. "
        "Shop rated 4.1/5, no fraud reports."
    )
    assert read_facts(text).unread == ()


def test_spans_locate_each_fact() -> None:
    text = "Customer attempts a $1,250.00 purchase. No VPN."
    found = {name: text[start:end] for name, start, end in read_facts(text).spans}
    assert "$1,250.00" in found["amount"]
    assert found["vpn"] == "VPN"


def test_the_index_never_keeps_a_pattern_from_matching() -> None:
    documents = [Document(text) for text, _ in CASES]
    located = [each for each in patterns._PATTERNS if each.not_after]
    differing = [
        (each.pattern, document.text)
        for each in located
        for document in documents
        if [match.span() for match in document.matches(each)]
        != [match.span() for match in each.regex.finditer(document.plain)]
    ]
    assert len(located) > 100
    assert differing == []


def test_cues_never_keep_a_search_from_finding() -> None:
    documents = [Document(text) for text, _ in CASES]
    searched = [each for each in patterns._PATTERNS if not each.not_after]
    missed = [
        (each.pattern, document.text)
        for each in searched
        for document in documents
        if each.regex.search(document.plain) and not document.survey.may_hold(each)
    ]
    assert len(searched) > 20
    assert missed == []


def test_every_pattern_is_part_of_the_index() -> None:
    used = [each.pattern for theme in statements.THEMES.values() for each in theme]
    used += [flag.pattern for flag in themes.FLAGS] + [pattern for pattern, _ in themes._CATEGORIES.values()]
    assert len(used) > 100
    assert set(used) <= set(patterns._PATTERNS)


@pytest.mark.parametrize(
    ("pattern", "needs"),
    [
        (r"(?:card|wallet) (?:was )?(?:added|removed)", [({"added", "removed"}, 2), ({"card", "wallet"}, 0)]),
        (r"(?:open )?proxy", [({"proxy"}, 1)]),
        (r"(?:\bi\b|vpn)", []),
        (r"colou?r(?! blind)s", [({"colo"}, 0)]),
        ("rated {rating}", [({"rated"}, 0), (set(patterns.expand("{rating}")), 1)]),
        ("{number} in", [({"in"}, 2), (set(patterns.expand("{count}{count_range}")), 0)]),
        (r"paid (?:[a-z]+ ){0,2}?twice", [({"twice"}, 3), ({"paid"}, 0)]),
        (r"paid [^.]*twice", [({"twice"}, 1_001), ({"paid"}, 0)]),
        (r"(?:a b, ){1,3}(?:cc-)+dd", [({"cc"}, 9 + 1_000), ({"dd"}, 9 + 1_000)]),
    ],
)
def test_needs_are_words_that_a_match_cannot_do_without(pattern: str, needs: list[tuple[set[str], int]]) -> None:
    (way,) = patterns.parse(patterns.expand(pattern))
    assert [(set(need.cues), need.signs) for need in patterns.needs_of(way)] == needs


def test_alternatives_are_those_of_the_groups_that_make_up_a_pattern() -> None:
    ways = patterns.parse("(?P<fails>no card|(?:home|own) ip)|(?:vpn|proxy)")
    assert [patterns.needs_of(way)[0].cues for way in patterns.phrases(ways)] == [
        {"card"}, {"home", "own"}, {"vpn"}, {"proxy"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "openings"),
    [
        (r"(?:card|e-?mail) (?:was )?added", {"card ", "e-", "email "}),
        (r"(?:very )?first", {"very ", "first"}),
        (r"[a-z]+ card", {""}),
        (r"(?<!gift )cards?\b", {"card", "cards"}),
    ],
)
def test_openings_are_how_a_match_can_begin(pattern: str, openings: set[str]) -> None:
    assert {text for text, _ in patterns.openings_of(patterns.parse(pattern))} == openings


# --- the vocabulary files ----------------------------------------------------------------------------------------


def test_a_flag_that_is_no_named_fact_is_refused() -> None:
    tables = themes._FlagTables.model_validate(
        {"parts": {}, "stance": {}, "flags": {"levitating": {"holds": ["floats"]}}}
    )
    with pytest.raises(ConfigurationError, match="'levitating' is not a flag"):
        tables.flag("levitating")


@pytest.mark.parametrize(
    "name", ["statements.toml", "figures.toml", "flags.toml", "categories.toml", "log_keys.toml", "places.toml"]
)
def test_a_vocabulary_file_that_is_not_as_expected_is_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"vocabulary/{name}"):
        read_package_toml("acefraud.facts.text", f"vocabulary/{name}", dict[str, int])
