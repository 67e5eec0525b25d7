"""Watching bullets: when recent outcomes speak against one, and when it holds again.

Every retirement, demotion and revival carries its reason. The reason is written with the status change in the ledger,
and `acefraud playbook history BULLET_ID` shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from acefraud.core.bullet import Bullet, Evidence, Record, Source, Status, percent, record_in_words
from acefraud.core.calibration import log_odds, sigmoid
from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.rules.induction.induce import Lesson
from acefraud.rules.induction.out_of_time import record_of

MUCH_CHANGED = math.log(2)
"""If the log-odds of fraud elsewhere have changed by this much, bullets are held to figures that change as well."""
LEAST_RECORD = 20
"""Outcomes a bullet must have fired on before its record can count against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceLimit:
    """How long a bullet may stay silent."""

    least_expected: float = 10.0
    """Expected firings, or expected frauds, below which their absence proves nothing."""
    silent: float = 0.1
    """At or below this share of what was expected, a pattern has stopped."""

    def reached(self, seen: int, expected: float) -> bool:
        """Whether so little was seen of what was expected that the pattern has stopped."""
        return expected >= self.least_expected and seen <= self.silent * expected


FOR_BULLETS = SilenceLimit()
FOR_NEWCOMERS = SilenceLimit(least_expected=5.0, silent=0.2)
"""Stricter for new bullets: otherwise a pattern that just ended would be learnt again from older cases."""
NEVER = SilenceLimit(least_expected=math.inf)
"""Silence proves nothing."""


@dataclass(frozen=True, slots=True)
class StatusMove:
    """The status that a bullet should get, and why."""

    status: Status
    reason: str


def demotion_of(
    bullet: Bullet, base_rate: float, recent: Record, among: int, limit: SilenceLimit = FOR_BULLETS
) -> StatusMove | None:
    """What the latest `among` outcomes, with the bullet's `recent` record on them, mean for a bullet.

    It is retired if its record argues the other way, if it has gone silent, or if the fraud it warns of has stopped.
    It becomes a candidate if its record has left the interval it was learnt with. If fraud has become much more or less
    common elsewhere too, what was learnt is moved by as much: that is no fault of the bullet.

    >>> bullet = Bullet(id="b", content="x", argues=Verdict.DECLINE,
    ...                 evidence=Evidence(learnt=Record(support=50, frauds=47), base_rate=0.4, cases=1000))
    >>> demotion_of(bullet, 0.4, Record(support=60, frauds=5), 2000).reason
    'of the latest 2,000 outcomes: 5 of 60 past cases were fraud (8.3%, 3.6-18.1%), against DECLINE at 40% overall'
    >>> demotion_of(bullet, 0.4, Record(support=0, frauds=0), 2000).reason
    'held on 0 of the latest 2,000 outcomes, where 100 would be usual'
    >>> demotion_of(bullet, 0.4, Record(support=12, frauds=0), 2000).reason
    'held on 12 of the latest 2,000 outcomes, 0 of them fraud, where 94 frauds would be usual'
    """
    if bullet.evidence is None or bullet.argues is None:
        return None
    declines, enough = bullet.argues is Verdict.DECLINE, recent.support >= LEAST_RECORD
    low, high = recent.interval
    change = _change_elsewhere(bullet.evidence, base_rate, recent, among)
    learnt_low, learnt_high = (_moved(share, change) for share in bullet.evidence.interval)
    if enough and ((high < base_rate) if declines else (low > base_rate)):
        overall = f"against {bullet.argues} at {percent(base_rate)} overall"
        return StatusMove(Status.RETIRED, f"{_in_words(recent, among)}, {overall}")
    ended = _ended(bullet.argues, bullet.evidence, recent, among, limit=limit, change=change)
    if ended is not None or not enough or bullet.status is Status.CANDIDATE:
        return ended
    if (high < learnt_low) if declines else (low > learnt_high):
        learnt = f"outside {percent(learnt_low)}-{percent(learnt_high)} as learnt"
        return StatusMove(Status.CANDIDATE, f"{_in_words(recent, among)}, {learnt}")
    return None


def _in_words(recent: Record, among: int) -> str:
    return f"of the latest {among:,} outcomes: {record_in_words(recent)}"


def _change_elsewhere(evidence: Evidence, base_rate: float, recent: Record, among: int) -> float:
    """By how much the log-odds of fraud have changed where the bullet does not fire; 0 if they have not doubled.

    >>> evidence = Evidence(learnt=Record(support=50, frauds=20), base_rate=0.05, cases=1000)
    >>> _change_elsewhere(evidence, 0.06, Record(support=100, frauds=40), 2000)
    0.0
    >>> round(_change_elsewhere(evidence, 0.4, Record(support=100, frauds=90), 2000), 1)
    2.9
    """
    if not evidence.cases:
        return 0.0
    then = _odds_outside(evidence.base_rate, evidence.cases, evidence.shown)
    now = _odds_outside(base_rate, among, recent)
    change = math.log(now / then)
    return change if abs(change) >= MUCH_CHANGED else 0.0


def _odds_outside(base_rate: float, cases: int, record: Record) -> float:
    frauds = max(0.0, base_rate * cases - record.frauds)
    honest = max(0.0, cases - record.support - frauds)
    return (frauds + 0.5) / (honest + 0.5)


def _moved(share: float, change: float) -> float:
    """A share of fraud after a change of its log-odds."""
    return share if share in (0.0, 1.0) or not change else sigmoid(log_odds(share) + change)


def _ended(
    argues: Verdict, evidence: Evidence, recent: Record, among: int, *, limit: SilenceLimit, change: float
) -> StatusMove | None:
    """Retired if the pattern has stopped: it no longer occurs, or it no longer comes with fraud."""
    if not evidence.cases:
        return None
    times = among * evidence.shown.support / evidence.cases
    frauds = times * _moved(evidence.shown.precision or 0.0, change)
    held = f"held on {recent.support} of the latest {among:,} outcomes"
    if limit.reached(recent.support, times):
        return StatusMove(Status.RETIRED, f"{held}, where {times:.0f} would be usual")
    if argues is Verdict.DECLINE and limit.reached(recent.frauds, frauds):
        reason = f"{held}, {recent.frauds} of them fraud, where {frauds:.0f} frauds would be usual"
        return StatusMove(Status.RETIRED, reason)
    return None


def revival_of(bullet: Bullet, evidence: Evidence) -> StatusMove:
    """Makes a demoted bullet active again, because of new evidence.

    >>> evidence = Evidence(learnt=Record(support=50, frauds=47), base_rate=0.4)
    >>> bullet = Bullet(id="b", content="x", status=Status.CANDIDATE, status_by="the engine")
    >>> revival_of(bullet, evidence).reason.split("; ")[-1]
    'it had been made a candidate by the engine'
    """
    before = "retired" if bullet.status is Status.RETIRED else "made a candidate"
    reason = f"holds up again: {evidence.in_words()}; it had been {before} by {bullet.status_by}"
    return StatusMove(Status.ACTIVE, reason)


@dataclass(frozen=True)
class LatestOutcomes:
    """The latest labelled cases, against which bullets are checked."""

    facts: LabelledFacts
    sees_declines: bool = True
    """Whether declined transactions are among them. If not, a bullet that declines all it fires on looks silent."""

    @cached_property
    def _stretches(self) -> list[tuple[int, int, float]]:
        """Where all of them and where their later half begin, how many these are, and how common fraud is there."""
        labels = self.facts.labels
        return [(first, len(labels) - first, float(labels[first:].mean())) for first in (0, len(labels) // 2)]

    @classmethod
    def of(cls, cases: LabelledFacts, most: int, *, sees_declines: bool = True) -> LatestOutcomes:
        """At most so many, the latest ones."""
        return cls(cases.take(slice(max(0, len(cases) - most), None)), sees_declines)

    def demotions(self, bullets: list[Bullet]) -> Iterator[tuple[str, StatusMove]]:
        """The bullets that these outcomes speak against, by id. Pinned bullets stay as they are."""
        for bullet in bullets:
            if bullet.condition is None or bullet.status is Status.PINNED or not len(self.facts):
                continue
            move = self._demotion_of(bullet, bullet.condition)
            if move is not None and by_people(bullet):  # people's bullets become candidates, never retired
                move = replace(move, status=Status.CANDIDATE)
            if move is not None and move.status is not bullet.status:
                yield bullet.id, move

    def confirm(self, lesson: Lesson, among: int, base_rate: float) -> bool:
        """Whether a rule found in `among` cases, most of them possibly old, would not be demoted at once.

        `base_rate` is the share of fraud among these cases.
        """
        learnt, later = lesson.evidence.learnt, lesson.evidence.later or Record(support=0, frauds=0)
        whole = Record(support=learnt.support + later.support, frauds=learnt.frauds + later.frauds)
        changes = {"learnt": whole, "later": None, "cases": among, "base_rate": base_rate}
        evidence = lesson.evidence.model_copy(update=changes)
        bullet = Bullet(id="new", content="new", argues=lesson.argues, evidence=evidence)
        return self._demotion_of(bullet, lesson.condition, FOR_NEWCOMERS) is None

    def _demotion_of(
        self, bullet: Bullet, condition: Condition, limit: SilenceLimit = FOR_BULLETS
    ) -> StatusMove | None:
        """What all of the outcomes mean, or else their later half, where a frequent pattern shows its end sooner."""
        mask, labels = condition.holds_in(self.facts.facts), self.facts.labels
        limit = limit if self.sees_declines else NEVER
        for first, among, base_rate in self._stretches:
            move = demotion_of(bullet, base_rate, record_of(mask[first:], labels[first:]), among, limit)
            if move is not None:
                return move
        return None


def by_people(bullet: Bullet) -> bool:
    """Whether a person wrote or pinned a bullet."""
    return bullet.source is Source.MANUAL or bullet.status is Status.PINNED
