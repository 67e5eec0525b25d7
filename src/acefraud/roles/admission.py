"""What a model proposes is measured before it enters the playbook. A figure that it stated is never taken over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from acefraud.core.bullet import Source, Status
from acefraud.core.english import sentence
from acefraud.core.evidence import ENOUGH_TO_SHOW, Z95, Evidence, Record, percent, record_in_words, wilson
from acefraud.core.roles import Proposal
from acefraud.core.transaction import Verdict
from acefraud.curation.curator import NewBullet

LEAST_LEFT = 0.5
"""Share of what sets a record apart from the base rate that must be left on the cases counted apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionOptions:
    """What it takes to be taken for true."""

    least_support: int = 10
    """Cases on which a condition must hold before it can be said to have been measured."""
    least_history: int = 100
    """With fewer labelled cases than this, what cannot be measured yet waits as a candidate."""
    certainty: float = Z95
    """Standard errors from the base rate. One condition that somebody named is no search among thousands."""


class Standing(StrEnum):
    """What became of a proposal."""

    MEASURED = "measured"
    UNVERIFIED = "unverified"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What became of a proposal, and why."""

    proposal: Proposal
    standing: Standing
    reason: str
    evidence: Evidence | None = None

    def new_bullet(self, source: Source) -> NewBullet:
        """The bullet to be merged into a playbook. What was measured speaks in its own words."""
        measured = self.standing is Standing.MEASURED
        condition, evidence = self.proposal.condition, self.evidence if measured else None
        words = sentence(condition, evidence) if condition is not None and evidence is not None else None
        return NewBullet(
            content=words or self.proposal.content,
            source=source,
            condition=condition,
            argues=self.proposal.argues,
            evidence=evidence,
            problem_types=self.proposal.problem_types,
            status=Status.ACTIVE if measured else Status.CANDIDATE,
            why=f"proposed by {self.proposal.model}: {self.proposal.content!r}; {self.reason}",
        )

    def as_reply(self) -> dict[str, Any]:
        """The bullet in the shape in which every reflector answers."""
        bullet = self.new_bullet(Source.ONLINE)
        return {
            "new_bullet": bullet.content,
            "problem_types": list(bullet.problem_types),
            "confidence": self.proposal.confidence,
            "condition": None if bullet.condition is None else str(bullet.condition),
            "argues": None if bullet.argues is None else str(bullet.argues),
            "evidence": bullet.evidence,
            "weight": bullet.weight,
        }


def rule_on(proposal: Proposal, evidence: Evidence | None, cases: int, options: AdmissionOptions) -> Ruling:
    """Measured and borne out, measured and refused, or not to be measured and so unverified."""
    if proposal.condition is None:
        return Ruling(proposal, Standing.UNVERIFIED, "prose that cannot be measured")
    support = evidence.learnt.support + (evidence.later.support if evidence.later else 0) if evidence else 0
    if evidence is None or support < options.least_support:
        held = f"held on {support:,} of {cases:,} labelled cases, too few to measure"
        return Ruling(proposal, Standing.UNVERIFIED if cases < options.least_history else Standing.REFUSED, held)
    side = _side(evidence.learnt, evidence.base_rate, options.certainty)
    problem = _problem(proposal.argues, side, evidence)
    if problem is not None:
        return Ruling(proposal, Standing.REFUSED, problem, evidence)
    return Ruling(replace(proposal, argues=side), Standing.MEASURED, f"measured: {evidence.in_words()}", evidence)


def _problem(argues: Verdict | None, side: Verdict | None, evidence: Evidence) -> str | None:
    """Why the measured record does not bear out what a proposal argues for; None where it does."""
    base, ruled_on = f"against {percent(evidence.base_rate)} of all", record_in_words(evidence.learnt)
    if side is None:
        return f"says nothing: {ruled_on}, {base}"
    if argues is not None and side is not argues:
        return f"argues for {argues}, but {ruled_on}, {base}"
    later, learnt = evidence.later, evidence.learnt.precision
    if later is not None and later.support >= ENOUGH_TO_SHOW and later.precision is not None and learnt is not None:
        left = (later.precision - evidence.base_rate) / (learnt - evidence.base_rate)
        if left < LEAST_LEFT:
            return f"did not hold up on other cases: {evidence.in_words()}, {base}"
    return None


def _side(record: Record, base_rate: float, certainty: float) -> Verdict | None:
    """What a record argues for, beyond chance."""
    low, high = wilson(record.frauds, record.support, certainty)
    if low > base_rate:
        return Verdict.DECLINE
    return Verdict.APPROVE if high < base_rate else None
