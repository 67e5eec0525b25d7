"""What the reader makes of words about the past of cards and customers, about ages, places and times."""

from __future__ import annotations

import pytest

from acefraud.core.condition import Condition
from acefraud.core.fact_names import FactCatalog
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.facts.history import HistoryPlan
from acefraud.rules.english import read_condition, say
from acefraud.rules.reader import Vocabulary, read_rule

PLAN = HistoryPlan(entities=("card_id", "user_id", "store_id"), latitude="lat", longitude="lon")
ROW: dict[str, FactValue] = {
    **{name: 1.0 if kind == "number" else True for name, kind in PLAN.facts(amounts=True).items()},
    "amount": 20.0,
    "age": 30.0,
    "hour": 12.0,
    "night": False,
    "weekday": "Monday",
    "weekend": False,
    "lat": 50.0,
    "days_since_signup_time": 4.0,
    "rep_number": 7.0,
    "discount_percent": 5.0,
    "sex": "F",
    "month": "Jan",
    "plan type": "Gold",
    "channel": "phone order",
}
MONTHS: list[dict[str, FactValue]] = [{"month": name} for name in ("Feb", "Mar", "Apr", "May", "Jun", "Dec")]
WORLD = Vocabulary.of(FactCatalog.of(FactTable([ROW, *MONTHS, {"sex": "M", "plan type": "none", "channel": "web"}])))

UNDERSTOOD = {
    "the card and the store have done business before": "card_new_store is false",
    "a first meeting of the card and the store": "card_new_store is true",
    "a card we haven't seen this user with before": "card_new_user is true",
    "Same card, more than one user id in 24 hours": "card_distinct_user_24h > 1",
    "Card suddenly busy: more than 50 payments in an hour": "card_count_1h > 50",
    "the 2nd or later payment on the card in 24h": "card_count_24h >= 1",
    "third or later payment that day on the card": "card_count_24h >= 2",
    "more than $500 on one card in 24h": "card_sum_24h > 500",
    "Sleeping account waking up: card had nothing for 30 days": "card_hours_since_last >= 720",
    "the card has 3 payments in 24 hours and the amount is over twice the usual": (
        "card_count_24h >= 3 and card_amount_to_usual > 2"
    ),
    "a card we have never seen with this user": "card_new_user is true",
    "first time the card shows up at this store": "card_new_store is true",
    "the card has never been to that store": "card_new_store is true",
    "a card with no history in the last 30 days": "card_count_30d is 0",
    "the card goes through 5 different stores or more in a day": "card_distinct_store_24h >= 5",
    "three in an hour on one card": "card_count_1h >= 3",
    "the card has no fraud on it in the last month": "card_known_frauds_30d is 0",
    "the card is clean for the last 30 days": "card_known_frauds_30d is 0",
    "the card has at least 3 payments in the last 7 days and zero fraud among them": (
        "card_count_7d >= 3 and card_known_frauds_7d is 0"
    ),
    "the user has at least 10 payments in 7 days, none of them charged back": (
        "user_count_7d >= 10 and user_known_frauds_7d is 0"
    ),
    "the store has no fraud in 7 days and at least 200 payments in that time": (
        "store_count_7d >= 200 and store_known_frauds_7d is 0"
    ),
    "card: 3 payments in 1h and total over 2000": "card_count_1h >= 3 and card_sum_1h > 2000",
    "the card has 4 or more payments in 24 hours, averaging under $20": "card_count_24h >= 4 and card_mean_24h < 20",
    "stores where over 10% of the last 30 days' payments turned out fraud": "store_known_fraud_share_30d > 0.1",
    "half or more of what the card bought in the last 30 days turned out to be fraud": (
        "card_known_fraud_share_30d >= 0.5"
    ),
    "the amount is 10x what this card usually spends": "card_amount_to_usual >= 10",
    "the user has 5+ payments in 7 days and the amount is over 3x his normal": (
        "user_amount_to_usual > 3 and user_count_7d >= 5"
    ),
    "the store's payment is over 8 times its usual ticket": "store_amount_to_usual > 8",
    "the amount is about the same as the card's average of the last 30 days (within 20% up or down)": (
        "amount <= 1.2 * card_mean_30d and amount >= 0.8 * card_mean_30d"
    ),
    "amount bigger than the largest one that card made in the last 30 days": "amount > card_max_30d",
    "it isn't bigger than anything the user has paid in the last 30 days": "amount <= user_max_30d",
    "the user made a payment less than 30 minutes ago": "user_hours_since_last < 0.5",
    "second payment in less than 3 minutes on the same card": "card_hours_since_last < 0.05",
    "payment by the same card within 36 seconds of the one before": "card_hours_since_last <= 0.01",
    "amount over 900, more than 500 km from where the card was last used": "amount > 900 and card_km_from_last > 500",
    "cards whose last payment was more than 2000 km away": "card_km_from_last > 2000",
    "the card was over 1000 km away less than an hour ago": "card_hours_since_last < 1 and card_km_from_last > 1000",
    "anything bought within 12 hours of signing up": "days_since_signup_time <= 0.5",
    "less than 12 hours between signup and purchase": "days_since_signup_time < 0.5",
    "accounts that sat around for three months or more before buying": "days_since_signup_time >= 90",
    "right after signup (under 12 hours)": "days_since_signup_time < 0.5",
    "at 3 in the morning": "hour < 4 and hour >= 3",
    "payments between 2 and 5 in the morning": "hour < 5 and hour >= 2",
    "on weekdays between 9 and 5": "hour < 17 and hour >= 9 and weekend is false",
    "in the middle of the night": "night is true",
    "more than 5 transactions of the card in an hour": "card_count_1h > 5",
    "over 3 payments per user in the last 24 hours": "user_count_24h > 3",
    "card used more than 5 times in 24h": "card_count_24h > 5",
    "card seen at least twice in the past hour": "card_count_1h >= 2",
    "User with 3+ transactions in the last hour": "user_count_1h >= 3",
    "the store had zero transactions in the past 30 days": "store_count_30d is 0",
    "not a single transaction by the user in the past week": "user_count_7d is 0",
    "the card made no transactions in the last 7 days": "card_count_7d is 0",
    "both the card and the user made more than one transaction in the last 24 hours": (
        "card_count_24h > 1 and user_count_24h > 1"
    ),
    "neither the user nor the card had known frauds in the past 30 days": (
        "card_known_frauds_30d is 0 and user_known_frauds_30d is 0"
    ),
    "either the card or the user made over 9 transactions in an hour": "card_count_1h > 9 or user_count_1h > 9",
    "3 or more users on the card in 30 days": "card_distinct_user_30d >= 3",
    "card used at two or more different stores in the past 24 hours": "card_distinct_store_24h >= 2",
    "a dozen or more different cards at one store in 24 hours": "store_distinct_card_24h >= 12",
    "store with at most 5 different users in 30 days": "store_distinct_user_30d <= 5",
    "the card spent more than 120k in the last 7 days": "card_sum_7d > 120000",
    "a user that spent $200 or more in total over the last 24 hours": "user_sum_24h >= 200",
    "the store either took more than 10k in the last 24 hours or had over 20 transactions in 7 days": (
        "store_count_7d > 20 or store_sum_24h > 10000"
    ),
    "store's known fraud share over 30 days is above 20%": "store_known_fraud_share_30d > 0.2",
    "any card with a known fraud share of at least 40% over the last 24 hours": "card_known_fraud_share_24h >= 0.4",
    "more than half of the card's transactions in the last 30 days are known fraud": (
        "card_known_fraud_share_30d > 0.5"
    ),
    "three quarters or more of the user's transactions in the past 30 days are known fraud": (
        "user_known_fraud_share_30d >= 0.75"
    ),
    "at least two known frauds on the card in the last 30 days": "card_known_frauds_30d >= 2",
    "total amount of the card in the last 7 days above 500": "card_sum_7d > 500",
    "amount above the card's 30 day maximum": "amount > card_max_30d",
    "amount at least three times the card's 30 day mean": "amount >= 3 * card_mean_30d",
    "amount is 300% or more of the store's 30 day mean": "amount >= 3 * store_mean_30d",
    "amount reaches 80% of the card's 7 day maximum or more": "amount >= 0.8 * card_max_7d",
    "amount less than half of the store's 30 day average": "amount < 0.5 * store_mean_30d",
    "amount more than 4 times the user's usual amount": "user_amount_to_usual > 4",
    "at least 10 times the user's usual amount": "user_amount_to_usual >= 10",
    "amount between 0.5 and 1.5 times the user's usual": (
        "user_amount_to_usual >= 0.5 and user_amount_to_usual <= 1.5"
    ),
    "the card's last transaction was more than 60 days ago": "card_hours_since_last > 1440",
    "card back less than half an hour after its last transaction": "card_hours_since_last < 0.5",
    "within 10 minutes of the card's last transaction": "card_hours_since_last <= 0.16666666666666666",
    "last transaction of this user was over 30 days back": "user_hours_since_last > 720",
    "store quiet for more than 60 days": "store_hours_since_last > 1440",
    "hours since the card's last transaction below 2": "card_hours_since_last < 2",
    "the card moved faster than 900 km/h since its last transaction": "card_kmh_from_last > 900",
    "card's last place more than 5,000 km away": "card_km_from_last > 5000",
    "distance from the card's last place above 100 km": "card_km_from_last > 100",
    "card with a new user": "card_new_user is true",
    "a card that is new to the store": "store_new_card is true",
    "a card that is not new to the store": "store_new_card is false",
    "a new card for the user": "user_new_card is true",
    "the user was never seen at the store before": "user_new_store is true",
    "the user has been seen at the store before": "user_new_store is false",
    "card unknown": "card_count_1h is missing",
    "the account is younger than two weeks": "days_since_signup_time < 14",
    "account under 48h old": "days_since_signup_time < 2",
    "account 60 days old or older": "days_since_signup_time >= 60",
    "an account that has existed for at least 60 days": "days_since_signup_time >= 60",
    "signed up less than 7 days ago": "days_since_signup_time < 7",
    "the account was opened less than a day before the purchase": "days_since_signup_time < 1",
    "within an hour of signing up": "days_since_signup_time <= 0.041666666666666664",
    "women under 25": 'age < 25 and sex is "F"',
    "customers aged between 20 and 30": "age >= 20 and age <= 30",
    "the buyer is 40 or older": "age >= 40",
    "users younger than 30 years": "age < 30",
    "between 10pm and 6am": "hour >= 22 or hour < 6",
    "before 6 in the morning": "hour < 6",
    "after 10 in the evening": "hour >= 22",
    "from 8pm on": "hour >= 20",
    "9 p.m. or later": "hour >= 21",
    "from 13:30 to 15:00": "hour >= 13.5 and hour < 15",
    "noon to 2:30 pm": "hour >= 12 and hour < 14.5",
    "not between 9 am and 5 pm": "hour < 9 or hour >= 17",
    "hour >= 23": "hour >= 23",
    "not on a weekend": "weekend is false",
    "on a working day": "weekend is false",
    "not at night": "night is false",
    "on Mondays, Tuesdays or Fridays": 'weekday in ("Monday", "Tuesday", "Friday")',
    "rep number 7 or 9": "rep_number is 7 or rep_number is 9",
    "discount percent over 20%": "discount_percent > 20",
    "month is December or January": 'month in ("Dec", "Jan")',
    "latitude above 60": "lat > 60",
    "phone orders above $500": 'amount > 500 and channel is "phone order"',
    "no plan type": '`plan type` is "none"',
    "channel other than web": 'channel is not "web"',
    "payments of 1.5k or more": "amount >= 1500",
    "transactions over 10 million": "amount > 10000000",
    "over two hundred and fifty dollars": "amount > 250",
    "anything from 10 to 20 dollars": "amount >= 10 and amount <= 20",
    "amount not between 5 and 9": "amount < 5 or amount > 9",
    "amount 500 at most": "amount <= 500",
    "half a dozen or more stores for the card in a day": "card_distinct_store_24h >= 6",
    "except for web, amount over 90": 'amount > 90 and channel is not "web"',
    "amount over 90, at night, and either web or phone order": (
        'amount > 90 and night is true and channel in ("phone order", "web")'
    ),
}


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_what_is_understood(text: str) -> None:
    reading = read_rule(text, WORLD)
    assert reading.condition == Condition.parse(UNDERSTOOD[text]), reading


@pytest.mark.parametrize(
    "text",
    [
        "more than 5 transactions of the card in 2 hours",
        "card spent more than 5 users in a day",
        "amount over 20 minutes",
        "amount over 20%",
        "hour over two weeks",
        "before midnight",
        "3 or more users on the card in 7 days",
        "average age over 30",
        "the user's last transaction",
        "channel is purple",
        "amount",
        "twice the usual",
        "the amount is twice the card's 7 day mean",
        "amount over 90 unless web, and at night",
    ],
)
def test_what_cannot_be_said_or_is_ambiguous_is_refused(text: str) -> None:
    reading = read_rule(text, WORLD)
    assert reading.condition is None
    assert reading.problem


NEW_CARD = "card_count_30d is 0 and card_hours_since_last is missing"
WITHOUT_A_PERIOD = {
    "card with any fraud history: decline": "card_known_frauds_30d > 0",
    "user with a chargeback already on file": "user_known_frauds_30d >= 1",
    "store with 3+ known chargebacks": "store_known_frauds_30d >= 3",
    "stores with more than 2 frauds known": "store_known_frauds_30d > 2",
    "card or user has prior fraud": "card_known_frauds_30d > 0 or user_known_frauds_30d > 0",
    "known fraud on the card": "card_known_frauds_30d > 0",
    "the user has a clean history": "user_known_frauds_30d is 0",
    "user without any dispute": "user_known_frauds_30d is 0",
    "card shared by more than two users": "card_distinct_user_30d > 2",
    "5+ users on the same card": "card_distinct_user_30d >= 5",
    "card run by different users": "card_distinct_user_30d >= 2",
    "a card with just one user": "card_distinct_user_30d <= 1",
    "more than 5 transactions of the card": "card_count_30d > 5",
    "amount over the card's maximum": "amount > card_max_30d",
}
OF_THE_PAST = {
    "a new card": NEW_CARD,
    "first-time cards spending more than a thousand": f"{NEW_CARD} and amount > 1000",
    "card we have not seen before": NEW_CARD,
    "card never seen before taking 500 or more": f"{NEW_CARD} and amount >= 500",
    "a returning customer": "user_hours_since_last is known",
    "users we've known w/o any chargeback in 30 days": "user_hours_since_last is known and user_known_frauds_30d is 0",
    "the card already did over 4000 in the last 24h": "card_sum_24h > 4000",
    "user spent more than 5k today": "user_sum_24h > 5000",
    "card's daily total above 5000": "card_sum_24h > 5000",
    "store hit by 10 or more different cards inside a day": "store_distinct_card_24h >= 10",
    "stores that suddenly take more than 20 payments in an hour": "store_count_1h > 20",
    "5 withdrawals within an hour from one card": "card_count_1h >= 5",
    "more than 3 swipes per card per day": "card_count_24h > 3",
    "a dormant card, nothing for 60 days, now above 3500": "card_hours_since_last >= 1440 and amount > 3500",
    "card not seen for over 2 weeks and suddenly 900+": "card_hours_since_last > 336 and amount >= 900",
    "amount 5x higher than what the user normally spends": "user_amount_to_usual >= 5",
}


@pytest.mark.parametrize("text", [*WITHOUT_A_PERIOD, *OF_THE_PAST])
def test_what_analysts_say_of_the_past(text: str) -> None:
    reading = read_rule(text, WORLD)
    assert reading.condition == Condition.parse({**WITHOUT_A_PERIOD, **OF_THE_PAST}[text]), reading
    assert bool(reading.assumed) == (text in WITHOUT_A_PERIOD)


def test_the_period_that_was_assumed_is_told() -> None:
    reading = read_rule("card with known fraud and user with 3 payments in 24h", WORLD)
    assert reading.condition is None, "the period may be meant for both"
    assert read_rule("block cards with known fraud", WORLD).assumed == (
        "No period was said for 'known frauds of the card': the longest that is kept, 30 days, was taken.",
    )


@pytest.mark.parametrize(
    "text",
    [
        "card used 5 times in 10 minutes",
        "card with 2 known frauds in 10 minutes",
        "card with 5 payments over 500",
        "card used 5 times in 24 hours in 3 different stores",
        "the user bought 3 times in an hour, new card",
        "new card and new store for the user",
        "a new account",
        "device with known fraud",
        "a driver with 2 known frauds and a new card",
        "a new card, and the driver has a known fraud",
        "card spent more than 500",
    ],
)
def test_what_may_mean_another_past_is_refused(text: str) -> None:
    assert read_rule(text, WORLD).condition is None


@pytest.mark.parametrize(("text", "seconds", "holds"), [
    ("within 10 seconds of signing up", 10, True),
    ("within 10 seconds of signing up", 11, False),
    ("within 50 minutes of signing up", 3000, True),
    ("signed up less than an hour ago", 3600, False),
    ("signed up less than an hour ago", 3599, True),
])  # fmt: skip
def test_a_period_ends_at_the_very_second(text: str, seconds: int, holds: bool) -> None:
    condition = read_rule(text, WORLD).condition
    assert condition is not None
    assert condition.holds({"days_since_signup_time": seconds * 1_000_000 / 86_400_000_000}) is holds
    assert read_condition(say(condition)) == condition
