"""Heuristics that a model proposes: the cases it is shown, and how a proposal is measured before the playbook has it.

A figure that the model stated is never taken over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from acefraud.core.bullet import (
    ENOUGH_TO_SHOW,
    Z95,
    Bullet,
    Evidence,
    NewBullet,
    Record,
    Source,
    Status,
    percent,
    record_in_words,
    wilson,
)
from acefraud.core.comparison import Op, Test, plain_number
from acefraud.core.condition import Condition
from acefraud.core.context_facts import is_context_fact
from acefraud.core.table import FactTable
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.display.short_repr import ShortRepr
from acefraud.facts.extraction import facts_of
from acefraud.roles.embedded.reflector import EmbeddedReflector
from acefraud.roles.protocols import Example, FactSummary, Proposal, Proposer, Reflection, name_of
from acefraud.rules.bullet_text import read_bullet
from acefraud.rules.english import quoted, sentence
from acefraud.support.arrays import FloatArray

WORDS_SHOWN = 8
"""The most words of a category that a reflector is shown."""
KNOWN_SHOWN = 12
"""Known bullets that a model is shown, so that it does not repeat them."""
LEAST_LEFT = 0.5
"""Share of the measured difference from the base rate that must remain on the held-out cases."""
LEAST_SUPPORT = 10
"""Cases that a condition must hold on before it counts as measured."""
LEAST_HISTORY = 100
"""With fewer labelled cases than this, a proposal that cannot be measured yet waits as a candidate."""


class AdmissionStatus(StrEnum):
    """What became of a proposal."""

    MEASURED = "measured"
    UNVERIFIED = "unverified"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, repr=False)
class Admission(ShortRepr):
    """What became of a proposal, and why."""

    proposal: Proposal
    status: AdmissionStatus
    reason: str
    evidence: Evidence | None = None

    def new_bullet(self, source: Source) -> NewBullet:
        """The bullet to merge into a playbook. A measured one is reworded from its evidence."""
        measured = self.status is AdmissionStatus.MEASURED
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

    def draft(self, number: int) -> Bullet:
        """The bullet as it would stand in the playbook."""
        new = self.new_bullet(Source.OFFLINE)
        return Bullet(
            id=f"draft-{number}",
            content=new.content,
            status=new.status,
            argues=new.argues,
            condition=new.condition,
            evidence=new.evidence,
        )


class Proposals:
    """Reflects with a model: the model proposes, and the embedded engine remembers cases and measures."""

    def __init__(self, proposer: Proposer, engine: EmbeddedReflector) -> None:
        self.proposer = proposer
        self.engine = engine
        self._proposed: dict[Condition | str, Bullet] = {}
        """Earlier proposals by condition, or by content if they have none."""

    @property
    def model(self) -> str:
        """The model that proposes."""
        return name_of(self.proposer)

    async def reflect(
        self, query: str | Transaction, predicted: str, correct: str, agent_reasoning: str = ""
    ) -> Reflection | None:
        """The model's proposal from one case, unless the remembered cases refute it or it was made before.

        Raises ModelError if the call fails.
        """
        example = self.engine.remember_example(query, predicted, correct, agent_reasoning)
        known = list(self._proposed.values())[-KNOWN_SHOWN:]
        proposal = await self.proposer.propose([example], summaries(self.engine.memory.cases.facts), known)
        admission = None if proposal is None else self.measure(proposal)
        if admission is None or admission.status is AdmissionStatus.REFUSED:
            return None
        bullet = admission.draft(len(self._proposed))
        if self._proposed.setdefault(bullet.condition or bullet.content, bullet) is not bullet:
            return None
        return Reflection(admission.new_bullet(Source.ONLINE), admission.proposal.confidence, example)

    def measure(self, proposal: Proposal) -> Admission:
        """What the remembered cases say about a proposal."""
        cases = self.engine.memory.cases
        if proposal.condition is None:  # its words may state a condition that can be measured
            condition = read_bullet(proposal.content).condition
            if condition is not None and condition.facts <= set(cases.facts.names):
                proposal = replace(proposal, condition=condition)
        evidence = cases.measure(proposal.condition, apart=True) if proposal.condition else None
        return judge_proposal(proposal, evidence, len(cases))


def weightiest(known: Sequence[Bullet]) -> list[Bullet]:
    """The bullets that a model is shown: those with the largest weights."""
    return sorted(known, key=lambda bullet: -abs(bullet.weight or 0.0))[:KNOWN_SHOWN]


def judge_proposal(proposal: Proposal, evidence: Evidence | None, cases: int) -> Admission:
    """Measured if the evidence confirms the proposal, refused if it does not, unverified if it cannot tell."""
    if proposal.condition is None:
        return Admission(proposal, AdmissionStatus.UNVERIFIED, "prose that cannot be measured")
    support = evidence.learnt.support + (evidence.later.support if evidence.later else 0) if evidence else 0
    if evidence is None or support < LEAST_SUPPORT:
        status = AdmissionStatus.UNVERIFIED if cases < LEAST_HISTORY else AdmissionStatus.REFUSED
        return Admission(proposal, status, f"held on {support:,} of {cases:,} labelled cases, too few to measure")
    side = _side(evidence.learnt, evidence.base_rate)
    problem = _problem(proposal.argues, side, evidence)
    if problem is not None:
        return Admission(proposal, AdmissionStatus.REFUSED, problem, evidence)
    measured = replace(proposal, argues=side)
    return Admission(measured, AdmissionStatus.MEASURED, f"measured: {evidence.in_words()}", evidence)


def _problem(argues: Verdict | None, side: Verdict | None, evidence: Evidence) -> str | None:
    """Why the evidence does not confirm what a proposal argues for; None if it does."""
    base, record = f"against {percent(evidence.base_rate)} of all", record_in_words(evidence.learnt)
    if side is None:
        return f"says nothing: {record}, {base}"
    if argues is not None and side is not argues:
        return f"argues for {argues}, but {record}, {base}"
    later, learnt = evidence.later, evidence.learnt.precision
    if later is not None and later.support >= ENOUGH_TO_SHOW and later.precision is not None and learnt is not None:
        left = (later.precision - evidence.base_rate) / (learnt - evidence.base_rate)
        if left < LEAST_LEFT:
            return f"did not hold up on other cases: {evidence.in_words()}, {base}"
    return None


def _side(record: Record, base_rate: float) -> Verdict | None:
    """The verdict that a record argues for, beyond chance. One named condition needs no correction for many tests."""
    low, high = wilson(record.frauds, record.support, Z95)
    if low > base_rate:
        return Verdict.DECLINE
    return Verdict.APPROVE if high < base_rate else None


def example_of(case: Case, predicted: Verdict, reasoning: str = "") -> Example:
    """A labelled case in the form that a reflector is shown."""
    return Example(case.transaction.text, facts_of(case.transaction).facts, predicted, case.answer, reasoning)


def summaries(table: FactTable) -> list[FactSummary]:
    """The values that each fact of a history takes, as a basis for writing conditions.

    >>> summaries(FactTable([{"amount": 5.0, "vpn": True}, {"amount": 20.0, "vpn": False}, {"amount": 7.0}]))[0].values
    '5 to 20, half of them up to 7'
    """
    columns = table.columns
    found = []
    for name in columns.names:
        if is_context_fact(name) or not name or "`" in name:  # a condition cannot name it
            continue
        if name in columns.numbers and not np.isnan(columns.numbers[name]).all():
            found.append(_of_numbers(name, columns.numbers[name]))
        elif name in columns.flags and (columns.flags[name] >= 0).any():
            share = float(np.mean(columns.flags[name][columns.flags[name] >= 0]))
            values = f"true in {100 * share:.0f}% of the cases that say so"
            found.append(FactSummary(name, "flag", values, str(Test(name, Op.IS, True))))
        elif name in columns.categories and (columns.categories[name][0] >= 0).any():
            codes, words = columns.categories[name]
            common = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(words)), kind="stable")
            shown = tuple(words[code] for code in common[:WORDS_SHOWN])
            more = ", ..." if len(words) > WORDS_SHOWN else ""
            listed = "one of " + ", ".join(map(quoted, shown)) + more
            found.append(FactSummary(name, "category", listed, str(Test(name, Op.IN, shown[:2]))))
    return found


def _of_numbers(name: str, values: FloatArray) -> FactSummary:
    known = values[~np.isnan(values)]
    low, middle, high = (float(f"{value:.4g}") for value in np.quantile(known, [0, 0.5, 1], method="lower"))
    summary = f"{plain_number(low)} to {plain_number(high)}, half of them up to {plain_number(middle)}"
    return FactSummary(name, "number", summary, str(Test(name, Op.ABOVE, middle)))
