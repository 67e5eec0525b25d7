"""What analysts say that is easily misread: nights, "or" beside "and", orders that forbid, and names of entities."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from acefraud import BulletPlaybook, Learner, Transaction
from acefraud.core.bullet import Policy
from acefraud.core.condition import Condition
from acefraud.core.fact_names import FactCatalog
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue, Verdict
from acefraud.rules.english import read_condition, say
from acefraud.rules.reader import Vocabulary, read_rule, wording
from acefraud.rules.reader.advice import NO_ADVICE, advise

BANK = Vocabulary.of(
    FactCatalog.of(
        FactTable(
            [
                {
                    "amount": 50.0,
                    "provider": provider,
                    "hour": 3.5,
                    "night": True,
                    "weekday": "Monday",
                    "weekend": False,
                    "vip": False,
                    "age": 30.0,
                    "witness": True,
                    "past_claims": claims,
                    "merchant_count_24h": 2.0,
                    "card_count_24h": 2.0,
                }
                for provider, claims in zip(
                    ["VISA 13 digit", "VISA 16 digit", "Mastercard", "Maestro"],
                    ["none", "1", "2 to 4", "more than 4"],
                    strict=True,
                )
            ]
        )
    ),
    lists=["vip"],
)
FIGURES = ("count", "sum", "mean", "known_frauds")
SATURDAY_NIGHT = '(weekday is "Saturday" and hour >= 23) or (weekday is "Sunday" and hour < 6)'


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("Saturday night", SATURDAY_NIGHT),
        ("on Saturday nights", SATURDAY_NIGHT),
        ("Saturdays at night", SATURDAY_NIGHT),
        ("at night on Saturdays", SATURDAY_NIGHT),
        (
            "Friday or Saturday night, amount from 300 to 900",
            "amount >= 300 and amount <= 900 and "
            '((weekday in ("Friday", "Saturday") and hour >= 23) or (weekday in ("Saturday", "Sunday") and hour < 6))',
        ),
        ("age over 60 or under 21, and no witness", "(age > 60 or age < 21) and witness is false"),
        (
            "neither Visa nor Mastercard",
            'provider not in ("VISA 13 digit", "VISA 16 digit") and provider is not "Mastercard"',
        ),
        ("Visa or Maestro", 'provider in ("VISA 13 digit", "VISA 16 digit", "Maestro")'),
        ("not a Visa card", 'provider not in ("VISA 13 digit", "VISA 16 digit")'),
        ("always decline merchant 56107", 'merchant named "56107"'),
        ("Merchant is CryptoNow", 'merchant named "CryptoNow"'),
        ("the merchant is neither 12 nor 34", 'merchant not named "12" and merchant not named "34"'),
        ("merchants 12, 34 or 56: decline", 'merchant named "12" or merchant named "34" or merchant named "56"'),
        ("card numbers starting with 6505", 'card starting with "6505"'),
        ("cards in list vip", "card in list vip"),
    ],
)
def test_it_is_read_as_it_is_meant(text: str, condition: str) -> None:
    reading = read_rule(text, BANK)
    assert reading.condition == Condition.parse(condition), reading.problem
    assert read_condition(say(reading.condition)) == reading.condition, "as it is shown back, it is read again"
    assert Condition.parse(str(reading.condition)) == reading.condition


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        (
            "age over 60 or under 21 and no witness",
            ["age > 60 or (age < 21 and witness is false)", "witness is false and (age < 21 or age > 60)"],
        ),
        (
            "more than 4 past claims or 2 to 4 past claims with no witness",
            [
                'past_claims is "more than 4" or (past_claims is "2 to 4" and witness is false)',
                'past_claims in ("2 to 4", "more than 4") and witness is false',
            ],
        ),
    ],
)
def test_what_has_two_readings_is_refused_with_both(text: str, readings: list[str]) -> None:
    reading = read_rule(text, BANK)
    assert reading.condition is None
    assert set(reading.readings) == {Condition.parse(each) for each in readings}


@pytest.mark.parametrize(
    "text", ["card 5 transactions in an hour", "user 12 years old", "merchant over 50", "a purple merchant"]
)
def test_not_every_word_beside_an_entity_is_its_name(text: str) -> None:
    assert read_rule(text, BANK).condition is None


def test_never_decline_is_not_taken_for_always_approve() -> None:
    reading = read_rule("never decline VIPs", BANK)
    assert (reading.condition, reading.always, reading.not_understood) == (None, None, ("never decline",))
    assert "say 'always approve' or 'always review'" in reading.problem
    assert str(read_rule("never approve VIPs", BANK).always) == "DECLINE"


def test_the_night_of_a_day_ends_on_the_next_morning() -> None:
    condition = Condition.parse(SATURDAY_NIGHT)
    assert condition.holds({"weekday": "Saturday", "hour": 23.5})
    assert condition.holds({"weekday": "Sunday", "hour": 1.0})
    assert not condition.holds({"weekday": "Saturday", "hour": 1.0})
    assert not condition.holds({"weekday": "Sunday", "hour": 23.5})


@pytest.mark.parametrize(
    ("rule", "declined"),
    [('merchant named "56107"', ["t1"]), ('card starting with "6505"', ["t2"]), ('merchant not named "56107"', ["t2"])],
)
def test_a_policy_on_the_name_of_an_entity_decides(rule: str, declined: list[str]) -> None:
    playbook = BulletPlaybook()
    playbook.add_bullet(rule, condition=Condition.parse(rule), policy=Policy(verdict=Verdict.DECLINE))
    at = datetime(2026, 1, 5, tzinfo=UTC)
    orders = [
        Transaction(id="t1", time=at, facts={"amount": 10}, entities={"merchant": "56107", "card": "4111"}),
        Transaction(id="t2", time=at, facts={"amount": 10}, entities={"merchant": "561", "card": "650512"}),
        Transaction(id="t3", time=at, facts={"amount": 10}),
    ]
    decisions = Learner(playbook).decide_all_sync(orders)
    assert [each.transaction.id for each in decisions if each.policy] == declined


def test_the_name_of_a_personal_entity_is_hidden_as_its_value_would_be() -> None:
    assert Condition.parse('email named "ann@example.org"').hidden_values == ["ann@example.org"]
    assert Condition.parse('email starting with "ann@"').hidden_values == ["ann@"]
    assert Condition.parse('merchant named "ACME"').hidden_values == []


def test_the_name_of_an_entity_in_sql() -> None:
    assert Condition.parse('card starting with "65"').to_sql() == (
        """CASE WHEN "card" IS NOT NULL THEN substr("card", 1, 2) IN ('65') END"""
    )


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("block amounts over 500", Verdict.DECLINE),
        ("reject all amounts over 500", Verdict.DECLINE),
        ("please stop payments over 500", Verdict.DECLINE),
        ("kill payments over 500", Verdict.DECLINE),
        ("allow amounts under 500", Verdict.APPROVE),
        ("let it through if the amount is under 500", Verdict.APPROVE),
        ("send to review: amount over 800", Verdict.REVIEW),
        ("amount over 800, have someone look at it", Verdict.REVIEW),
        ("amount over 800 smells a bit, a second pair of eyes please", Verdict.REVIEW),
        ("never approve amounts over 800", Verdict.DECLINE),
        ("do not approve amounts over 800", Verdict.DECLINE),
        ("we do not trust amounts over 500", None),
        ("amounts over 500 are fraud", None),
        ("amount over 500: decline", None),
        ("amounts over 500 are always suspicious", None),
    ],
)
def test_what_the_words_order(text: str, orders: Verdict | None) -> None:
    assert read_rule(text, BANK).orders is orders


@pytest.mark.parametrize(
    ("text", "argues"),
    [
        ("amount over 500 looks off to me", Verdict.DECLINE),
        ("amount over 500, that's a family, lower the score", Verdict.APPROVE),
        ("If the amount is over 500, it is suspicious.", Verdict.DECLINE),
        ("amount over 500, no discussion, kill it", Verdict.DECLINE),
        ("amount over 500 is nothing to worry about", Verdict.APPROVE),
        ("amount over 500 -> bot attack", Verdict.DECLINE),
        ("amount over 500 makes no sense", Verdict.DECLINE),
        ("amount over 500: no problem", Verdict.APPROVE),
        ("suspicous: amount over 500", Verdict.DECLINE),
    ],
)
def test_opinions_are_verdicts(text: str, argues: Verdict) -> None:
    reading = read_rule(text, BANK)
    assert (str(reading.condition), reading.argues) == ("amount > 500", argues)


@pytest.mark.parametrize(
    "text",
    [
        "VIPs or Maestro over 500",  # VIPs below 500 as well?
        "decline, otherwise approve",
        "amount over 500, decline, otherwise approve",
        "Decline if the amount is over 500. Also if it is night.",
        "weekend nights",
        "at night after 10 pm",
        "not in the morning on Fridays",
        "neither amount over 500 nor on Mondays in the morning",
        "no witness: do not review",
    ],
)
def test_what_may_mean_something_else_is_refused(text: str) -> None:
    assert read_rule(text, BANK).condition is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("purple payments over 500: decline", "No fact here is about 'purple'"),
        ("any payment over 500 without 3DS", "No fact here is about '3DS'"),
        ("cards in list gold: decline", "There is no list 'gold': there is 'vip'"),
        ("more than 3 payments of the card within 10 minutes", "kept over 24 hours"),
        ("devices with more than 3 users: block", "'users' cannot be counted here"),
        ("amount over 500 on 3 December", "No fact here tells the date or the month"),
    ],
)
def test_a_refusal_tells_what_would_be_needed(text: str, says: str) -> None:
    assert any(says in line for line in advise(text, BANK).lines)


@pytest.mark.parametrize(
    ("text", "suggestions"),
    [
        ("purple payments over 500: decline", ["amount above 500: decline (without 'purple')"]),
        ("block purple payments over 500", ["decline amount above 500 (without 'purple')"]),
        ("never decline Maestro", ['always approve `provider` is "Maestro"', 'always review `provider` is "Maestro"']),
        ("amount over 900 unless purple: decline", []),  # without its exception it would be turned round
    ],
)
def test_suggestions_can_be_said_and_mean_no_more_than_was_read(text: str, suggestions: list[str]) -> None:
    made = advise(text, BANK).suggestions
    assert [str(suggestion) for suggestion in made] == suggestions
    assert all(read_rule(suggestion.text, BANK).condition == suggestion.condition for suggestion in made)


MARKET = Vocabulary.of(
    FactCatalog.of(
        FactTable(
            [
                {
                    "amount": 50.0,
                    "hour": 3.5,
                    "weekday": "Monday",
                    "weekend": False,
                    "night": True,
                    "fault": fault,
                    "region": region,
                    "country": country,
                    "provider": provider,
                    "Age": 30.0,
                    "days_since_signup": 3.0,
                    "new_account": False,
                    **{f"device_{figure}_{window}": 2.0 for figure in FIGURES for window in ("24h", "30d")},
                    "device_hours_since_last": 3.0,
                    "user_distinct_device_30d": 1.0,
                    "user_count_30d": 1.0,
                }
                for fault, region, country, provider in [
                    ("Policy Holder", "Same", "HR", "Diners Club"),
                    ("Third Party", "Iringa", "US", "Visa"),
                    ("Policy Holder", "Arusha", "CA", "Maestro"),
                ]
            ]
        )
    )
)


def offered(text: str) -> list[str]:
    return [str(suggestion) for suggestion in advise(text, MARKET).suggestions]


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        ("purple payments over 500 smell a bit, I want it reviewed", ["review amount above 500 (without 'purple')"]),
        ("payments over 500 with purple frauds: let them through", []),  # an approval must not be broader
        ("decline purple payments over 500. They are fine", ["amount above 500"]),
        ("send purple payments over 500 to a person. Purple ones are fine", []),
    ],
)
def test_an_offer_keeps_the_verdict_or_names_none(text: str, offers: list[str]) -> None:
    assert [offer.split(" (")[0] for offer in offered(text)] == [offer.split(" (")[0] for offer in offers]


@pytest.mark.parametrize(
    "text",
    [
        "3 jumps of the device in 4 hrs: decline",
        "purple payments out for dinner: decline",
        "Same purple device: decline",
        "no fault on our purple side: decline",
        "decline if the total in 24 hours purple goes over 5000",
        "more than $500 on one purple device in 24h: decline",
        "3 different purple users on a single device in 30 days: decline",
        "purple cars aged 6 years or more: decline",
        "used outside of purple US: decline",
        "registered purple people over the weekend: decline",
        "at least 3 purchases of the device already, average purple in 24h over 10: decline",
        "Two or more of these, purple: at night, amount over 500: decline",
        "Visa in the US should be purple, if country is something else: decline",
    ],
)
def test_what_the_words_around_it_may_turn_is_not_offered(text: str) -> None:
    assert offered(text) == []


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        (
            "purple payments at night, over 500: decline",
            ["amount above 500 and between 11 PM and 6 AM: decline (without 'purple payments')"],
        ),
        (
            "at night or over 500, purple: decline",
            ["amount above 500 or between 11 PM and 6 AM: decline (without 'purple')"],
        ),
        ("over 500, purple at 3 golden tills, green at 4 silver tills: decline", []),  # one of three conditions
    ],
)
def test_an_offer_joins_as_the_words_do_and_holds_most_of_them(text: str, offers: list[str]) -> None:
    assert offered(text) == offers


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "Five or more purchases off one wobbly device in 24h: decline",
            "'transactions of the device in the last 24 hours at least 5'",
        ),
        (
            "more than $500 on one wobbly device in 24h: decline",
            "'total amount of the device in the last 24 hours above 500'",
        ),
        ("more than one device off the same wobbly user in 30 days: decline", "'different devices of the user"),
        ("someone signs up and buys oddly: decline", "`days_since_signup`"),
    ],
)
def test_a_rule_of_the_kind_of_what_was_not_read_is_shown(text: str, says: str) -> None:
    assert says in "\n".join(advise(text, MARKET).missing)


@pytest.mark.parametrize(
    ("text", "not_said"),
    [
        ("had their account for 3 odd months on a device: decline", "cannot be counted"),
        ("purple frauds in the past month: decline", "the date or the month"),
        ("the device bought oddly: decline", "Counts and sums are kept"),
    ],
)
def test_nothing_is_said_to_be_missing_that_is_there(text: str, not_said: str) -> None:
    assert not_said not in "\n".join(advise(text, MARKET).missing)


def test_what_stopped_the_reading_is_shown_clause_by_clause() -> None:
    advice = advise("the device is known oddly and none of it was fraud but it hides something, decline", MARKET)
    assert len(advice.unread) > 1


def test_a_rule_that_can_be_read_needs_no_advice() -> None:
    assert advise("amount over 500: decline", BANK) == NO_ADVICE


@pytest.mark.parametrize(
    ("text", "condition", "remarks"),
    [
        ("Decline amounts over 500, we got burned on that BIN", "amount > 500", ["we got burned on that BIN"]),
        ("Decline amounts over 500 so we don't hit on noise", "amount > 500", ["so we don't hit on noise"]),
        ("amount over 500, decline it until it calms down", "amount > 500", ["until it calms down"]),
        ("amount over 500: decline, I don't care which provider", "amount > 500", ["I don't care which provider"]),
    ],
)
def test_what_only_comments_is_passed_over_and_shown(text: str, condition: str, remarks: list[str]) -> None:
    reading = read_rule(text, BANK)
    assert reading.condition == Condition.parse(condition), reading.problem
    assert reading.argues is Verdict.DECLINE
    assert reading.assumed == tuple(f"Passed over: '{remark}'." for remark in remarks)


@pytest.mark.parametrize(
    "text",
    [
        "Decline purple payments over 500, we got burned on those",
        "Decline amounts over 500, that's only for gold cards",
        "Decline amounts over 500 because it is night",
        "At night we see more stolen cards. Over 500: decline",
        "Amount over 500, we got burned on those",  # no verdict is left
        "Small payments at night: decline",
        "Small payments (over 500) at night: decline",
        "Amounts over 500 are fine, put it in the queue",
    ],
)
def test_what_may_restrict_a_rule_is_not_passed_over(text: str) -> None:
    assert read_rule(text, BANK).condition is None


@pytest.mark.parametrize(
    ("text", "condition", "argues", "orders"),
    [
        ("amount over 500 is almost always card testing", "amount > 500", "DECLINE", None),
        ("amounts over 500 usually go bad", "amount > 500", "DECLINE", None),
        ("amount over 500, doesn't look like a normal customer", "amount > 500", "DECLINE", None),
        ("night payments are when stolen cards get used", "night is true", "DECLINE", None),
        ("amount over 500, stop the card", "amount > 500", "DECLINE", None),
        ("Don't let anything through over 500", "amount > 500", "DECLINE", "DECLINE"),
        ("amounts below 50 are rarely a problem", "amount < 50", "APPROVE", None),
        ("amounts below 50 aren't worse than the rest", "amount < 50", "APPROVE", None),
        ("No declines for amounts below 50, just let them pass", "amount < 50", "APPROVE", None),
        ("amount over 500, go to a colleague", "amount > 500", None, "REVIEW"),
        ("amounts over 500 should be handled by the commercial desk", "amount > 500", None, "REVIEW"),
        ("amount over 500 isn't an automatic no, have an agent check it", "amount > 500", None, "REVIEW"),
        ("Hold for a human: amount over 500", "amount > 500", None, "REVIEW"),
        (
            "On Sundays send payments above 500 to our fraud team",
            'amount > 500 and weekday is "Sunday"',
            None,
            "REVIEW",
        ),
        ("amounts over 500 are risky, put it in the queue", "amount > 500", "DECLINE", "REVIEW"),
        ("big ones (500+) at night: decline", "amount >= 500 and night is true", "DECLINE", None),
        (
            "payments between 2 and 5 in the morning UTC are riskier than the rest",
            "hour >= 2 and hour < 5",
            "DECLINE",
            None,
        ),
    ],
)
def test_verdicts_in_other_words(text: str, condition: str, argues: str | None, orders: str | None) -> None:
    reading = read_rule(text, BANK)
    assert reading.condition == Condition.parse(condition), reading.problem
    assert (reading.argues, reading.orders) == (argues, orders)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("Payments between 10 and 12 at night are risky", "hour >= 22"),
        (
            "Payments during the day on weekdays over 50: decline",
            "amount > 50 and hour >= 6 and hour < 23 and weekend is false",
        ),
        ("Decline amounts over 500. That isn't normal shopping", "amount > 500"),
        ("Decline amounts over 500, those are not issued any more", "amount > 500"),
        ("Amounts over 500 in whatever currency: decline", "amount > 500"),
        ("Payments of 990 to 999, just below our 1000 limit: decline", "amount >= 990 and amount <= 999"),
        ("Amounts below 50 are almost never fraud", "amount < 50"),
        ("Never decline below 5, just let it go", "amount < 5"),
        ("Age is 0 or blank: decline", "age is 0 or age is missing"),
        ("Friday nights after 22:00: decline", None),
        ("Amounts over 1500 EUR or USD: decline", None),
        ("Never decline below 5, review it", None),
        ("Amounts over 500 are easy", None),
    ],
)
def test_what_a_rule_says_is_kept(text: str, condition: str | None) -> None:
    reading = read_rule(text, BANK)
    assert reading.condition == (Condition.parse(condition) if condition else None), reading.problem


@pytest.mark.parametrize("word", ["= ", "the ", "is very ", "send it to ", "("])
def test_a_text_that_is_too_long_is_matched_with_no_pattern(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wording, "reworded", lambda *_: pytest.fail("a pattern was matched"))
    text = word * 700
    assert read_rule(text, BANK).condition is None
    assert advise(text, BANK).missing == ("It is too long for a rule: say each rule by itself.",)


@pytest.mark.parametrize("text", ["amount above EUR 150: decline", "over 20 dollars: decline", "over $20: decline"])
def test_where_a_column_tells_the_currency_it_is_said_that_it_is_not_tested(text: str) -> None:
    rows: list[dict[str, FactValue]] = [{"amount": 5.0, "currency": code} for code in ("EUR", "USD")]
    told = read_rule(text, Vocabulary.of(FactCatalog.of(FactTable(rows)))).assumed
    assert told == ("Amounts in any currency are meant: to test `currency` too, say it, as in 'in EUR'.",)
    assert read_rule(text, BANK).assumed == ()


def test_a_currency_that_is_tested_is_not_told_of() -> None:
    rows: list[dict[str, FactValue]] = [{"amount": 5.0, "currency": code} for code in ("EUR", "USD")]
    reading = read_rule("amount over 900, in USD: decline", Vocabulary.of(FactCatalog.of(FactTable(rows))))
    assert (str(reading.condition), reading.assumed) == ('amount > 900 and currency is "USD"', ())


@pytest.mark.parametrize(
    "text",
    [
        "Approve payments under 5000, given that they come from staff",
        "Approve payments under 5000, considering it is contactless",
        "Approve payments under 5000, we don't want those by bots",
        "Decline payments over 500, we can't risk crypto",
        "Decline payments over 500, I suspect gift cards",
        "Decline payments over 500, not sure about gift cards",
        "Decline payments over 500, as they pay by phone",
        "Decline payments over 500, those are mostly contactless",
        "Decline payments over 500, we don't want any at petrol stations",
        "Decline payments over 500, don't annoy our staff",
        "from 11 to 2 in the morning: risky",
        "Decline amounts over 1e999",
        f"Decline amounts over {'9' * 400}",
    ],
)
def test_what_may_narrow_a_rule_is_no_remark(text: str) -> None:
    assert read_rule(text, Vocabulary.general()).condition is None


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("from 9 to 1 in the afternoon: fine", "hour >= 9 and hour < 13"),
        ("between 2 and 5 in the morning: risky", "hour >= 2 and hour < 5"),
        ("Approve payments under 50, we got burned on those", "amount < 50"),
        ("Approve payments under 50, thanks Anna", "amount < 50"),
    ],
)
def test_hours_and_remarks_that_are_plain(text: str, condition: str) -> None:
    assert read_rule(text, Vocabulary.general()).condition == Condition.parse(condition)


def test_a_last_word_that_is_a_value_is_no_greeting() -> None:
    rows: list[dict[str, FactValue]] = [{"amount": 5.0, "device type": kind} for kind in ("tablet", "phone")]
    reading = read_rule("Decline amounts over 500, tablet", Vocabulary.of(FactCatalog.of(FactTable(rows))))
    assert reading.condition == Condition.parse('amount > 500 and `device type` is "tablet"')
