"""When the recent record of a bullet no longer bears it out, and when it does again."""

from __future__ import annotations

from dataclasses import dataclass

from acefraud.core.bullet import Bullet, Status
from acefraud.core.evidence import Evidence, Record, percent, record_in_words
from acefraud.core.transaction import Verdict

LEAST_RECORD = 20
"""Outcomes a bullet must have fired on before its record can be held against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long the silence of a bullet is borne with."""

    least_expected: float = 10.0
    """Times it should have fired, or frauds it should have met, before their absence can be held against it."""
    silent: float = 0.1
    """Firing this much less often than usual is silence; meeting this much less fraud is the end of a pattern."""

    def ends(self, seen: int, expected: float) -> bool:
        """Whether so few were seen of what was expected that it has stopped."""
        return expected >= self.least_expected and seen <= self.silent * expected


WITH_BULLETS = Patience()
WITH_NEWCOMERS = Patience(least_expected=5.0, silent=0.2)
"""What comes in must show more life than what stays: else what has just ended is learnt again from older cases."""


@dataclass(frozen=True, slots=True)
class Demotion:
    """Where a bullet should stand, and why."""

    status: Status
    reason: str


def demotion_of(
    bullet: Bullet, base_rate: float, recent: Record, among: int, patience: Patience = WITH_BULLETS
) -> Demotion | None:
    """What the latest outcomes (so many, of which it fired on `recent`) mean for a bullet.

    Retired where its record argues the other way, where it has fallen silent, or where it speaks of fraud that no
    longer comes; a candidate again where its record left its interval.

    >>> bullet = Bullet(id="b", content="x", argues=Verdict.DECLINE,
    ...                 evidence=Evidence(learnt=Record(support=50, frauds=47), base_rate=0.4, cases=1000))
    >>> demotion_of(bullet, 0.4, Record(support=60, frauds=5), 2000).reason
    'of the latest 2,000 outcomes: 5 of 60 past cases were fraud (8.3%, 3.6-18.1%), against DECLINE at 40% overall'
    >>> demotion_of(bullet, 0.4, Record(support=0, frauds=0), 2000).reason
    'held on 0 of the latest 2,000 outcomes, where 100 would be usual'
    >>> demotion_of(bullet, 0.02, Record(support=12, frauds=0), 2000).reason
    'held on 12 of the latest 2,000 outcomes, 0 of them fraud, where 94 frauds would be usual'
    """
    if bullet.evidence is None or bullet.argues is None:
        return None
    declines, enough = bullet.argues is Verdict.DECLINE, recent.support >= LEAST_RECORD
    low, high = recent.interval
    learnt_low, learnt_high = bullet.evidence.interval
    words = f"of the latest {among:,} outcomes: {record_in_words(recent)}"
    if enough and ((high < base_rate) if declines else (low > base_rate)):
        return Demotion(Status.RETIRED, f"{words}, against {bullet.argues} at {percent(base_rate)} overall")
    ended = _ended(bullet.argues, bullet.evidence, recent, among, patience)
    if ended is not None or not enough or bullet.status is Status.CANDIDATE:
        return ended
    if (high < learnt_low) if declines else (low > learnt_high):
        return Demotion(Status.CANDIDATE, f"{words}, outside {percent(learnt_low)}-{percent(learnt_high)} as learnt")
    return None


def revival_of(bullet: Bullet, evidence: Evidence) -> Demotion:
    """A bullet that had been demoted is active again, because of what was measured since.

    >>> evidence = Evidence(learnt=Record(support=50, frauds=47), base_rate=0.4)
    >>> bullet = Bullet(id="b", content="x", status=Status.CANDIDATE, status_by="the engine")
    >>> revival_of(bullet, evidence).reason.split("; ")[-1]
    'it had been made a candidate by the engine'
    """
    before = "retired" if bullet.status is Status.RETIRED else "made a candidate"
    return Demotion(Status.ACTIVE, f"holds up again: {evidence.in_words()}; it had been {before} by {bullet.status_by}")


def _ended(argues: Verdict, evidence: Evidence, recent: Record, among: int, patience: Patience) -> Demotion | None:
    """Retired where what it speaks of has stopped: it no longer holds, or the fraud it warns of no longer comes."""
    if not evidence.cases:
        return None
    times, frauds = (among * count / evidence.cases for count in (evidence.shown.support, evidence.shown.frauds))
    if patience.ends(recent.support, times):
        reason = f"held on {recent.support} of the latest {among:,} outcomes, where {times:.0f} would be usual"
        return Demotion(Status.RETIRED, reason)
    if argues is Verdict.DECLINE and patience.ends(recent.frauds, frauds):
        held = f"held on {recent.support} of the latest {among:,} outcomes, {recent.frauds} of them fraud"
        return Demotion(Status.RETIRED, f"{held}, where {frauds:.0f} frauds would be usual")
    return None
