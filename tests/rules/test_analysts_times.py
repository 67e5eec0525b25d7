"""Times, days, values and flags as analysts type them, and what of that stays refused."""

from __future__ import annotations

import pytest
from tests.rules.test_phrasings import needs_data, vocabulary

from acefraud.core.condition import Condition
from acefraud.core.fact_names import FactCatalog
from acefraud.core.table import FactTable
from acefraud.rules.reader import Vocabulary, read_rule

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PROVIDERS = (
    "VISA 13 digit",
    "VISA 16 digit",
    "Mastercard",
    "Maestro",
    "Diners Club / Carte Blanche",
    "Discover",
    "JCB",
)
SHOP = Vocabulary.of(
    FactCatalog.of(
        FactTable(
            [
                {
                    "amount": 50.0,
                    "provider": provider,
                    "hour": 3.5,
                    "night": True,
                    "weekday": day,
                    "weekend": False,
                    "age": 30.0,
                    "customer_present": True,
                    "merchant_count_24h": 2.0,
                }
                for provider, day in zip(PROVIDERS, DAYS, strict=True)
            ]
        )
    )
)
WORKING_DAYS = 'weekday in ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")'
NIGHT = "hour >= 22 or hour < 5"


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("at night (22-05)", NIGHT),
        ("at night, i.e. between 10pm and 5", NIGHT),
        ("22-05", NIGHT),
        ("between 22 and 5", NIGHT),
        ("0-6h", "hour < 6"),
        ("2-5 in the night", "hour >= 2 and hour < 5"),
        ("between 10 and 2 at night", "hour >= 22 or hour < 2"),
        ("from 8 to 11 in the evening", "hour >= 20 and hour < 23"),
        ("weekend nights (10pm to 6am)", "weekend is true and (hour >= 22 or hour < 6)"),
        ("Saturday night (22-05)", '(weekday is "Saturday" and hour >= 22) or (weekday is "Sunday" and hour < 5)'),
        ("late in the evening, say after 9", "hour >= 21"),
        ("Evening 18 to 22", "hour >= 18 and hour < 22"),
        ("sunday mornings before 7", 'weekday is "Sunday" and hour < 7'),
        ("on a Sunday morning", 'weekday is "Sunday" and hour >= 6 and hour < 12'),
        (
            "weekend evenings, 700 to 1500",
            "weekend is true and hour >= 18 and hour < 23 and amount >= 700 and amount <= 1500",
        ),
        ("payments during the day", "hour >= 6 and hour < 23"),
        ("late at night", "night is true"),
        ("nightly payments", "night is true"),
        ("office hours", "weekend is false and hour >= 9 and hour < 17"),
        ("outside office hours", "weekend is true or hour < 9 or hour >= 17"),
        ("outside business hours 8-18", "hour < 8 or hour >= 18"),
        ("mon-fri 9 to 18", f"{WORKING_DAYS} and hour >= 9 and hour < 18"),
        ("Mon to Fri", WORKING_DAYS),
        ("sat/sun", 'weekday in ("Saturday", "Sunday")'),
        ("sat & sun", 'weekday in ("Saturday", "Sunday")'),
        ("payments during the week", "weekend is false"),
        ("13 digit visas", 'provider is "VISA 13 digit"'),
        ("visa 16 or diners", 'provider in ("VISA 16 digit", "Diners Club / Carte Blanche")'),
        ("Mastercrd or Maestro", 'provider in ("Mastercard", "Maestro")'),
        ("anything but Visa and Mastercard", 'provider not in ("VISA 13 digit", "VISA 16 digit", "Mastercard")'),
        ("Discover or Visa at night", 'provider in ("Discover", "VISA 13 digit", "VISA 16 digit") and night is true'),
        ("the customer is standing there", "customer_present is true"),
        ("amounts under 500 are fine if the customer is there", "amount < 500 and customer_present is true"),
        ("Maestro, not present", 'provider is "Maestro" and customer_present is false'),
        ("online payments over 500", "amount > 500 and customer_present is false"),
        ("nobody was present", "customer_present is false"),
        ("males under 22", None),
        ("under 18s", "age < 18"),
        ("kids under 18", "age < 18"),
        ("young customers (16 to 20)", "age >= 16 and age <= 20"),
        ("amount above 2.5 juta", "amount > 2500000"),
        ("amount under 500rb", "amount < 500000"),
        ("amount above 7,5 million", "amount > 7500000"),
        ("amount 3jt+", "amount >= 3000000"),
        ("amount of 1.250.000", "amount is 1250000"),
        ("IDR 5 million or more", "amount >= 5000000"),
        ("merchant -2", 'merchant named "-2"'),
        # These may mean more than one thing, or nothing that is known.
        ("after 9", None),
        ("before 7", None),
        ("after hours", None),
        ("late in the evening", None),
        ("early morning", None),
        ("midweek", None),
        ("from midnight till dawn", None),
        ("between 9 and 18", None),
        ("from 10 to 4 am", None),
        ("weekend evenings, 10 to 20", None),
        ("at night between 5 and 20 transactions", None),
        ("no online payments", None),
        ("no CNP payments over 500", None),
    ],
)
def test_analysts_times_and_values(text: str, condition: str | None) -> None:
    reading = read_rule(text, SHOP)
    assert reading.condition == (Condition.parse(condition) if condition else None), reading.problem


def test_a_clause_without_a_fact_is_not_passed_over() -> None:
    general = Vocabulary.general()
    assert read_rule("amounts under 500 are fine if the customer is there", general).condition is None


CHEAP = 'VehiclePrice is "less than 20000"'
DEAR = 'VehiclePrice in ("more than 69000", "60000 to 69000")'
WITHIN_30_DAYS = 'Days_Policy_Claim in ("15 to 30", "8 to 15", "none")'
FROM_40K = 'VehiclePrice in ("40000 to 59000", "60000 to 69000", "more than 69000")'
WITHIN_A_MONTH = 'Days_Policy_Accident in ("none", "1 to 7", "8 to 15", "15 to 30")'
WITHIN_A_WEEK = 'Days_Policy_Accident in ("none", "1 to 7")'
MOVED = 'AddressChange_Claim in ("1 year", "under 6 months")'


@needs_data
@pytest.mark.parametrize(
    ("text", "condition"),
    [
        (
            "Claimed on a Monday after a saturday or sunday accident",
            'DayOfWeekClaimed is "Monday" and DayOfWeek in ("Saturday", "Sunday")',
        ),
        ("december accidents", 'Month is "Dec"'),
        ("claims filed in January", 'MonthClaimed is "Jan"'),
        ("filed in a different month than the accident", "MonthClaimed is not `Month`"),
        ("accident within a week of taking out the policy", WITHIN_A_WEEK),
        ("accident in the first week of the policy", WITHIN_A_WEEK),
        ("policy younger than 30 days when the claim comes in", WITHIN_30_DAYS),
        ("claim within 30 days of the policy start", WITHIN_30_DAYS),
        ("claim came in more than 30 days after the policy", 'Days_Policy_Claim is "more than 30"'),
        ("more than 4 past claims and at fault", 'PastNumberOfClaims is "more than 4" and Fault is "Policy Holder"'),
        ("the other side is at fault", 'Fault is "Third Party"'),
        ("not at fault", 'Fault is not "Policy Holder"'),
        ("the driver caused it himself", 'Fault is "Policy Holder"'),
        ("liability only policies", 'BasePolicy is "Liability"'),
        ("collision or all perils, at fault", 'BasePolicy in ("Collision", "All Perils") and Fault is "Policy Holder"'),
        ("cheap car under 20k", CHEAP),
        ("vehicle under 20k", CHEAP),
        ("price over 60k", DEAR),
        ("old car (more than 7 yrs)", 'AgeOfVehicle is "more than 7"'),
        ("cars aged 6 years or more", 'AgeOfVehicle in ("6 years", "7 years", "more than 7")'),
        (
            "any car over 69k that's less than 3 years old",
            'VehiclePrice is "more than 69000" and AgeOfVehicle in ("new", "2 years")',
        ),
        ("old banger (more than 7 years) but valued at 40,000 or up", f'AgeOfVehicle is "more than 7" and {FROM_40K}'),
        ("accident in first 30 days of the new policy", WITHIN_A_MONTH),
        ("no witness and no police report either", "WitnessPresent is false and PoliceReportFiled is false"),
        ("a car that picks up more than 5 supplements", 'NumberOfSuppliments is "more than 5"'),
        ("it isn't all perils", 'BasePolicy is not "All Perils"'),
        ("a driver of a car over 69k that is less than 30 years old", None),
        ("a car of 2-3 years", 'AgeOfVehicle in ("3 years", "2 years")'),
        ("brand new car", 'AgeOfVehicle is "new"'),
        ("young drivers, under 21", "Age < 21"),
        ("Married, over 40", 'MaritalStatus is "Married" and Age > 40'),
        ("holder 16-17", 'AgeOfPolicyHolder is "16 to 17"'),
        ("police never called, nobody saw it", "PoliceReportFiled is false and WitnessPresent is false"),
        ("moved within the last year", MOVED),
        ("recent address change (a year or less)", MOVED),
        ("first claim", 'PastNumberOfClaims is "none"'),
        ("rep 7 and rep 12", "RepNumber is 7 or RepNumber is 12"),
        ("Mercedes, Porsche or Acura", 'Make in ("Mecedes", "Porche", "Accura")'),
        ("collusion", None),
        ("price over 65000", None),
        ("more than 3 past claims", None),
    ],
)
def test_analysts_words_of_claims(text: str, condition: str | None) -> None:
    reading = read_rule(text, vocabulary("vehicle"))
    assert reading.condition == (Condition.parse(condition) if condition else None), reading.problem


@needs_data
@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("country code other than 96", 'id_negara is not "96"'),
        ("channel id 9", 'id_channel is "9"'),
        ("card types 111 and 93", 'tipe_kartu in ("111", "93")'),
        ("tx type 26 or 58", 'tipe_transaksi in ("26", "58")'),
        ("kepemilikan 1", 'kepemilikan_kartu is "1"'),
        ("quarter 1 of the day", "kuartal_transaksi is 1"),
        ("merchant -2", 'merchant named "-2"'),
    ],
)
def test_codes_of_columns(text: str, condition: str) -> None:
    reading = read_rule(text, vocabulary("bri_atm"))
    assert reading.condition == Condition.parse(condition), reading.problem
