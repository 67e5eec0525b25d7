"""When a bullet's record since it was added no longer bears it out."""

from __future__ import annotations

from dataclasses import dataclass

from acefraud.core.bullet import Bullet, Status
from acefraud.core.evidence import record_in_words
from acefraud.core.transaction import Verdict

LEAST_RECORD = 30
"""Outcomes a bullet must have fired on before its record can be held against it."""


@dataclass(frozen=True, slots=True)
class Demotion:
    """Where a bullet should stand, and why."""

    status: Status
    reason: str


def demotion_of(bullet: Bullet, base_rate: float) -> Demotion | None:
    """Retired where its record argues the other way; a candidate again where its record left its interval.

    >>> from acefraud.core.evidence import Evidence, Record
    >>> bullet = Bullet(id="b", content="x", argues=Verdict.DECLINE, record=Record(support=60, frauds=5),
    ...                 evidence=Evidence(learnt=Record(support=50, frauds=47), base_rate=0.4))
    >>> demotion_of(bullet, 0.4).reason
    'since it was added 5 of 60 past cases were fraud (8.3%, 3.6-18.1%), which argues against DECLINE at 40% overall'
    """
    if bullet.evidence is None or bullet.argues is None or bullet.record.support < LEAST_RECORD:
        return None
    low, high = bullet.record.interval
    learnt_low, learnt_high = bullet.evidence.shown.interval
    words = f"since it was added {record_in_words(bullet.record)}"
    declines = bullet.argues is Verdict.DECLINE
    if (high < base_rate) if declines else (low > base_rate):
        reason = f"{words}, which argues against {bullet.argues} at {100 * base_rate:.0f}% overall"
        return Demotion(Status.RETIRED, reason)
    if (high < learnt_low) if declines else (low > learnt_high):
        return Demotion(Status.CANDIDATE, f"{words}, outside {100 * learnt_low:.0f}-{100 * learnt_high:.0f}% as learnt")
    return None
