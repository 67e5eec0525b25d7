"""General fraud knowledge as a fixed scorecard: what a sensible analyst would say before seeing any of your cases.

It is the whole of vanilla mode, and the starting point of a playbook that has learnt nothing yet. The points are
log-odds of fraud. They were set by judgement from what card schemes, banks and fraud guides commonly publish as
red and green flags; none was fitted to any data set, and none is learnt later (a playbook that has labelled
history fits one scale for the card as a whole, which may shrink it to nothing).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from acefraud.core.condition import Condition
from acefraud.core.english import say
from acefraud.core.rules import Rules, places_in
from acefraud.core.scoring import Calibration
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue

INTERCEPT = -1.0
"""With nothing known for or against, about one case in four is treated as suspicious: below every threshold."""

POINTS: tuple[tuple[str, float], ...] = (
    # the amount against the habit
    ("amount_to_usual > 3", 0.7),
    ("amount_to_usual > 8", 0.7),
    ("amount_to_usual < 1.5", -0.4),
    ("amount > 5000", 0.4),
    ("larger_purchases >= 2", -0.8),
    # the account
    ("account_age_days < 30", 0.8),
    ("account_age_days < 7", 0.4),
    ("account_age_days > 365", -0.5),
    ("account_transactions < 5", 0.5),
    ("account_transactions > 300", -0.3),
    ("payment_method_age_days < 3", 0.5),
    ("payment_method_age_days > 180", -0.3),
    ("device_age_days < 1", 0.4),
    ("days_since_last > 180", 0.4),
    ("chargebacks >= 1", 0.7),
    ("disputes_before is true", 0.5),
    # the hour and the place
    ("night is true", 0.5),
    ("location_change is true", 0.6),
    ("location_change is false", -0.3),
    ("travel is true", -0.7),
    ("distance_km > 1000", 0.4),
    ("impossible_travel is true", 1.4),
    ("high_risk_country is true", 0.9),
    ("sanctioned is true", 2.0),
    # the merchant
    ("merchant_rating < 3.5", 0.8),
    ("merchant_rating < 2.5", 0.5),
    ("merchant_rating >= 4.3", -0.4),
    ("fraud_reports >= 3", 0.8),
    ("fraud_reports >= 8", 0.4),
    ("fraud_reports < 1", -0.3),
    ("purchases_at_merchant >= 3", -0.6),
    ("first_time_merchant is true", 0.3),
    ("crypto is true", 0.6),
    ("gift_cards is true", 0.6),
    ("prepaid_card is true", 0.4),
    # the device and the way in
    ("vpn is true", 0.8),
    ("emulator is true", 1.3),
    ("new_device is true", 0.6),
    ("new_device is false", -0.3),
    ("password_reset is true", 0.9),
    ("contact_changed is true", 0.9),
    ("remote_access is true", 1.3),
    ("failed_attempts >= 3", 0.9),
    ("declined_before >= 2", 0.8),
    ("velocity is true", 1.0),
    ("escalating_amounts is true", 1.1),
    # who it is and where the money goes
    ("kyc_missing is true", 0.9),
    ("verified is true", -0.5),
    ("strong_authentication is true", -0.8),
    ("vip is true", -0.6),
    ("business_account is true", -0.4),
    ("address_mismatch is true", 0.7),
    ("address_mismatch is false", -0.3),
    ("new_payee is true", 0.5),
    ("funds_forwarded is true", 1.2),
)


GENERAL = Calibration(intercept=INTERCEPT)
"""The frame of a playbook that has learnt nothing yet."""


@dataclass(frozen=True, slots=True)
class Point:
    """One line of the scorecard."""

    condition: Condition
    points: float
    words: str
    """The line in English."""


@cache
def scorecard() -> tuple[Point, ...]:
    """The lines, read once."""
    conditions = [Condition.parse(text) for text, _ in POINTS]
    return tuple(Point(one, points, say(one)) for one, (_, points) in zip(conditions, POINTS, strict=True))


@cache
def _rules() -> Rules:
    return Rules.of([point.condition for point in scorecard()])


def points_for(facts: Mapping[str, FactValue]) -> list[Point]:
    """The lines that apply.

    >>> [point.words for point in points_for({"vpn": True, "account_age_days": 3.0})]
    ['account younger than 30 days', 'account younger than 7 days', 'a VPN or proxy']
    """
    return [scorecard()[place] for place in places_in(_rules().standing(facts)[1])]


def score_in(table: FactTable) -> npt.NDArray[np.float64]:
    """The sum of points for each row, without the intercept."""
    total = np.zeros(len(table))
    for point in scorecard():
        total += point.points * point.condition.holds_in(table)
    return total
