"""Facts of one transaction, drawn from a profile so that they never contradict each other."""

from __future__ import annotations

from dataclasses import dataclass

from acefraud.core.transaction import FactValue
from acefraud.datasets.world.dice import Dice
from acefraud.datasets.world.stories import City, Profile, names, recording
from acefraud.support.great_circle import great_circle_km


@dataclass(frozen=True, slots=True)
class Scene:
    """A transaction before it is written down: its facts, and the cities behind them."""

    facts: dict[str, FactValue]
    minute: int
    home: City
    place: City


def draw_scene(profile: Profile, dice: Dice) -> Scene:
    """Everything that is true of one transaction of this profile."""
    category, channel = dice.weighted(profile.settings)
    hour = dice.pick(recording().hours[dice.weighted(profile.hours)])
    facts: dict[str, FactValue] = {"hour": float(hour), "night": hour >= 23 or hour < 6, "channel": channel}
    facts |= _account(profile, dice)
    facts |= _amounts(profile, dice)
    facts |= _merchant(profile, category, channel, dice)
    facts |= _pace(profile, dice)
    facts |= {name: dice.chance(profile.flags[name]) for name in recording().plain_flags}
    place_facts, home, place = _place(profile, dice)
    facts |= place_facts
    facts |= _access(profile, facts, dice)
    return Scene(facts, dice.whole(0, 60), home, place)


def recorded_facts(facts: dict[str, FactValue], dice: Dice) -> dict[str, FactValue]:
    """The part of the facts that is recorded.

    A sign that is present is usually recorded, its absence only when somebody looked for it; how thoroughly people look
    differs from case to case.
    """
    thoroughness = dice.uniform(0.1, 0.6)
    kept: dict[str, FactValue] = {}
    rules = recording()
    for name, value in facts.items():
        if name in rules.follows:
            noticed = rules.follows[name] in kept and (name not in rules.windows.values() or dice.chance(0.85))
        else:
            noticed = dice.chance(_noticed(name, value, thoroughness))
        if noticed:
            kept[name] = value
    return kept


def _noticed(name: str, value: FactValue, thoroughness: float) -> float:
    if name == "amount":
        return 1.0
    if name in ("hour", "merchant_category", "channel", "account_age_days"):
        return 0.95
    if value is False:
        return thoroughness * (0.5 if name in recording().seldom_denied else 1.2)
    if value is True:
        return 0.95
    if value == 0.0:
        return 0.8
    return 0.92


def round_age(days: float) -> float:
    """An age in the units that people use: minutes, hours, days, weeks, months, then half years.

    >>> round_age(0.03), round_age(37.2), round_age(242), round_age(900)
    (0.0312, 35.0, 240.0, 912.5)
    """
    if days < 1 / 24:
        return round(max(5, 5 * round(days * 288)) / 1440, 4)
    if days < 35.5 / 24:
        return round(round(days * 24) / 24, 4)
    if days < 14:
        return float(round(days))
    if days < 59.5:
        return float(7 * round(days / 7))
    if days < 525:
        return float(30 * round(days / 30))
    return 182.5 * round(days / 182.5)


def round_money(amount: float) -> float:
    """An amount with two leading figures, as habits are quoted."""
    digits = 2 - len(str(int(max(amount, 1.0))))
    return max(1.0, float(round(amount, min(digits, 0))))


def _account(profile: Profile, dice: Dice) -> dict[str, FactValue]:
    spreads = profile.spreads
    age = min(dice.around(*spreads["account_age_days"]), 6000.0)
    monthly = max(1.0, float(round(dice.around(*spreads["transactions_per_month"]))))
    made = max(1.0, float(round(monthly * age / 30.4 * dice.around(0.9, 0.25))))
    new_device = dice.chance(profile.flags["new_device"])
    device = dice.uniform(0.004, 2.0) if new_device else max(3.0, dice.around(*spreads["device_age_days"]))
    said = round_age(age)
    facts: dict[str, FactValue] = {
        "account_age_days": said,
        "account_transactions": made if made < 1000 else float(round(made, -1)),
        "transactions_per_month": monthly,
        "new_device": new_device,
        "device_age_days": min(said, round_age(device)),
        "payment_method_age_days": min(said, round_age(dice.around(*spreads["payment_method_age_days"]))),
        "days_since_last": float(max(1, round(min(age, dice.around(*spreads["days_since_last"]))))),
    }
    chargebacks = dice.count(profile.counts["chargebacks"])
    facts["chargebacks"] = float(chargebacks)
    facts["disputes_before"] = dice.chance(0.8 if chargebacks else profile.flags["disputes_before"])
    return facts


def _amounts(profile: Profile, dice: Dice) -> dict[str, FactValue]:
    usual = round_money(dice.around(*profile.spreads["usual_amount"]))
    usual_max = round_money(usual * max(1.2, dice.around(*profile.spreads["range"])))
    amount = max(0.5, usual * dice.around(*profile.spreads["ratio"]))
    if dice.chance(profile.flags["round_amount"]):
        amount = round_money(amount)
    elif amount > 300 and dice.chance(0.5):
        amount = float(round(amount))
    amount = round(amount, 2)
    facts: dict[str, FactValue] = {
        "amount": amount,
        "usual_amount": usual,
        "usual_amount_max": usual_max,
        "amount_to_usual": round(amount / usual, 2),
        "amount_to_usual_max": round(amount / usual_max, 2),
    }
    if amount >= 1.5 * usual:
        facts["larger_purchases"] = float(dice.count(profile.counts["larger_purchases"]))
    return facts


def _merchant(profile: Profile, category: str, channel: str, dice: Dice) -> dict[str, FactValue]:
    method = "bank transfer" if channel == "transfer" else dice.weighted(profile.methods)
    facts: dict[str, FactValue] = {"payment_method": method, "prepaid_card": method == "prepaid card"}
    if channel in ("online", "phone order"):
        facts["address_mismatch"] = dice.chance(profile.flags["address_mismatch"])
    if category:
        facts["merchant_category"] = category
        facts["crypto"] = category == "crypto exchange"
        facts["gift_cards"] = category == "gift cards" or (
            category in ("marketplace", "electronics") and dice.chance(profile.flags["gift_cards"])
        )
    if channel == "transfer" or category == "crypto exchange":
        facts["new_payee"] = dice.chance(profile.flags["new_payee"])
    if channel in ("transfer", "cash machine") or category == "crypto exchange":
        facts["funds_forwarded"] = dice.chance(profile.flags["funds_forwarded"])
        return facts
    reports = float(dice.count(profile.counts["fraud_reports"]))
    visits = float(dice.count(profile.counts["purchases_at_merchant"]))
    rating = round(max(1.0, min(4.9, 5 - dice.around(*profile.spreads["rating_gap"]))), 1)
    facts |= {"merchant_rating": rating, "fraud_reports": reports, "purchases_at_merchant": visits}
    facts["first_time_merchant"] = visits == 0
    if reports:
        facts["fraud_report_window_days"] = dice.pick((30.0, 60.0, 90.0))
    return facts


def _pace(profile: Profile, dice: Dice) -> dict[str, FactValue]:
    burst = dice.chance(profile.flags["velocity"])
    facts: dict[str, FactValue] = {
        "velocity": burst,
        "failed_attempts": float(dice.count(profile.counts["failed_attempts"])),
        "declined_before": float(dice.count(profile.counts["declined_before"])),
    }
    if burst:
        facts["recent_transactions"] = float(2 + dice.count(profile.counts["recent_transactions"]))
        minutes = dice.around(*profile.spreads["recent_window_minutes"])
        step = 5 if minutes < 90 else 60
        facts["recent_window_minutes"] = float(max(step, step * round(minutes / step)))
    facts["escalating_amounts"] = dice.chance(min(1.0, profile.flags["escalating_amounts"] * (2.0 if burst else 0.5)))
    return facts


def _access(profile: Profile, facts: dict[str, FactValue], dice: Dice) -> dict[str, FactValue]:
    """How the customer came in: an unfamiliar device or place calls for a proof that mostly only the owner can give."""
    challenged = facts["new_device"] or facts["location_change"]
    drawn: dict[str, FactValue] = {
        "verified": facts["verified"] and not facts["kyc_missing"],
        "strong_authentication": dice.chance(profile.flags["step_up" if challenged else "strong_authentication"]),
    }
    if facts["channel"] in ("in store", "cash machine"):
        drawn |= {"vpn": False, "emulator": False, "remote_access": False}
    return drawn


def _place(profile: Profile, dice: Dice) -> tuple[dict[str, FactValue], City, City]:
    cities, flags = names().cities, profile.flags
    home = place = dice.pick(cities["home"])
    sanctioned = dice.chance(flags["sanctioned"])
    away = sanctioned or dice.chance(flags["location_change"])
    risky = sanctioned or (away and dice.chance(flags["high_risk_country"]))
    if sanctioned:
        place = dice.pick(cities["sanctioned"])
    elif risky:
        place = dice.pick(cities["high_risk"])
    elif away:
        place = dice.pick(cities["abroad" if dice.chance(flags["abroad"]) else "home"])
    away = place is not home
    facts: dict[str, FactValue] = {
        "location_change": away,
        "high_risk_country": risky,
        "sanctioned": sanctioned,
        "impossible_travel": away and dice.chance(flags["impossible_travel"]),
        "travel": away and dice.chance(flags["travel"]),
    }
    if away:
        facts["distance_km"] = distance_km(home, place)
    return facts, home, place


def distance_km(one: City, other: City) -> float:
    """Great-circle distance, rounded as a person would quote it.

    >>> boston, chicago = names().cities["home"][:2]
    >>> distance_km(boston, chicago)
    1370.0
    """
    way = great_circle_km((one.latitude, one.longitude), (other.latitude, other.longitude))
    return float(round(way, -1))
