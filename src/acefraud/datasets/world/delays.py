"""When the truth about a payment becomes known."""

from __future__ import annotations

import math
from datetime import timedelta

from acefraud.datasets.world.dice import Dice

_SETTLING = 0.8
_CHARGEBACK = 1.3
_TAIL = 0.9


def label_delay(reported_fraud: bool, mean_days: float, dice: Dice) -> timedelta:
    """The wait for a label.

    A payment nobody complains about counts as good after a fixed settling time. A complaint comes when a statement is
    read: mostly within weeks, now and then after months. At a prevalence of 0.4 the two average to `mean_days`.
    """
    if not reported_fraud:
        days = _SETTLING * mean_days
    else:
        median = _CHARGEBACK * mean_days / math.exp(_TAIL**2 / 2)
        days = dice.around(median, _TAIL)
    return timedelta(seconds=round(days * 86_400))
