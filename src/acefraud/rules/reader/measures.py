"""What the number of a fact counts, from the fact's name."""

from __future__ import annotations

import re
from enum import Enum

from acefraud.core.fact_names import FactWords

HISTORY_NAME = re.compile(
    r"(?P<entity>\w+?)_(?:(?P<figure>count|sum|mean|max|known_frauds|known_fraud_share)_\d+[hd]"
    r"|distinct_(?P<other>\w+?)_\d+[hd]"
    r"|new_(?P<new>\w+)"
    r"|(?P<single>hours_since_last|km_from_last|kmh_from_last|amount_to_usual))"
)
"""The name of a fact about the past of an entity."""


class Measure(Enum):
    """What a number counts, which says which figures fit it."""

    PLAIN = "plain"
    MONEY = "money"
    COUNT = "count"
    DAYS = "days"
    HOURS = "hours"
    MINUTES = "minutes"
    YEARS = "years"
    KM = "km"
    KMH = "km/h"
    SHARE = "share"
    TIMES = "times"
    CLOCK = "clock"


_COUNTS = (
    "chargebacks",
    "failed_attempts",
    "fraud_reports",
    "declined_before",
    "recent_transactions",
    "purchases_at_merchant",
    "larger_purchases",
    "account_transactions",
    "transactions_per_month",
)
_HISTORY = {
    "count": Measure.COUNT,
    "known_frauds": Measure.COUNT,
    "known_fraud_share": Measure.SHARE,
    "hours_since_last": Measure.HOURS,
    "km_from_last": Measure.KM,
    "kmh_from_last": Measure.KMH,
    "amount_to_usual": Measure.TIMES,
}
_UNITS = {
    "days": Measure.DAYS,
    "minutes": Measure.MINUTES,
    "km": Measure.KM,
    "km/h": Measure.KMH,
    "times": Measure.TIMES,
}
_BY_NAME = (
    (r"^hour$", Measure.CLOCK),
    (r"^days_|_days$", Measure.DAYS),
    (r"^hours_|_hours$", Measure.HOURS),
    (r"^minutes_|_minutes$", Measure.MINUTES),
    (r"(?:^|_)age$", Measure.YEARS),
    (r"amount|value|price|nilai|cost|total|balance|income|_sum_|_mean_|_max_", Measure.MONEY),
)
"""Patterns of names in lower case, tried in order."""


def measure_of(name: str, known: FactWords | None) -> Measure:
    """What the number of a fact counts, from its name and from what the engine knows of it.

    >>> [measure_of(name, None).value for name in ("card_count_24h", "days_since_signup", "holder_age", "V14")]
    ['count', 'days', 'years', 'plain']
    """
    if (match := HISTORY_NAME.fullmatch(name)) is not None:
        figure = match["figure"] or ("count" if match["other"] else match["single"])
        return _HISTORY.get(figure, Measure.MONEY)
    if known is not None and known.share:
        return Measure.SHARE
    if name in _COUNTS:
        return Measure.COUNT
    if known is not None and known.unit in _UNITS:
        return _UNITS[known.unit]
    lower = name.lower()
    return next((measure for pattern, measure in _BY_NAME if re.search(pattern, lower)), Measure.PLAIN)
