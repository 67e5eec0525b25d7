"""What an outcome adds to the counters of bullets, and what a revised one takes back.

If a label arrives twice, there are three cases:

- the same outcome (`Outcome.key`, or the same truth and source without id and time): it is not recorded;
- the same truth under another id, time or source: it is recorded as a revision and counts nothing;
- another truth: it is recorded as a revision. Its credits undo all that the earlier outcomes counted and then count the
  new truth, so every counter is as if only this one had arrived.

The latest truth is the one that arrives last, whatever its `at` says. The first truth that reaches a decision counts,
even if the same outcome was heard before the decision was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import add

from acefraud.core.bullet_table import BulletTable
from acefraud.core.decision import Decision
from acefraud.core.events import Credit, OutcomeHeard
from acefraud.core.ledger import KnownCase
from acefraud.core.outcome import Judgement, Outcome, Ruling, is_known
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import Case, FactValue, Transaction, Verdict
from acefraud.support.validation import construct_unchecked


@dataclass(frozen=True, slots=True)
class JudgedOutcome:
    """An outcome with its judgement, the decision it is about and the facts known then."""

    outcome: Outcome
    decision: Decision | None
    transaction: Transaction | None
    """None if it is unknown."""
    facts: Mapping[str, FactValue]
    """As they were when it was decided, or as they are now if it never was."""
    reader: str
    """The version of the reader that extracted the facts."""
    judgement: Judgement
    is_new: bool = False
    """Whether the transaction came with the outcome and was never seen before."""

    @property
    def is_opinion(self) -> bool:
        """Whether it comes from a judge who does not know the truth. Nothing is measured by it or learnt from it."""
        return self.outcome.is_opinion

    def known_case(self) -> KnownCase:
        """The case to remember."""
        assert self.transaction is not None
        case = Case(transaction=self.transaction, is_fraud=self.outcome.is_fraud, known_at=self.outcome.at)
        return KnownCase(case, self.facts, self.reader)


@dataclass(frozen=True, slots=True)
class CreditedOutcome:
    """An outcome and the event that records it."""

    judged: JudgedOutcome
    event: OutcomeHeard | None
    """None if the outcome was known already."""
    already_known: bool
    """Whether its truth was heard before. If not, it is the first of its transaction, or a different one."""

    @property
    def teaches(self) -> bool:
        """Whether its case is remembered and learnt from."""
        return self.event is not None and self.event.remembered


def credit_outcomes(
    outcomes: Sequence[JudgedOutcome],
    before: Mapping[str, Sequence[OutcomeHeard]],
    snapshot: Snapshot,
    node: str,
    *,
    defers: Sequence[bool],
) -> list[CreditedOutcome]:
    """The events that record outcomes, one after another: later ones in a batch know those before them.

    `before` has the outcomes recorded so far, by transaction id. Where the feed `defers`, the first truth of a decision
    is only noted; it counts with the silence around it.
    """
    known = {one: [event for event in events if event.node == node] for one, events in before.items()}
    credited = []
    for judged, fired, defer in zip(outcomes, _fired(snapshot.table, outcomes), defers, strict=True):
        past = known.setdefault(judged.outcome.transaction_id, [])
        one = _credited(judged, past, fired, snapshot.table, node)
        counted = any(not event.deferred and not event.outcome.is_opinion for event in past)
        if defer and one.event is not None and judged.decision is not None and not counted and not judged.is_opinion:
            deferred = {"credits": (), "remembered": False, "deferred": True}
            one = replace(one, event=one.event.model_copy(update=deferred))
        if one.event is not None:
            past.append(one.event)
        credited.append(one)
    return credited


def judged_by_truth(outcome: Outcome, decision: Decision) -> JudgedOutcome:
    """A decision judged by what turned out to be true."""
    right = decision.verdict is outcome.truth
    ruling = Ruling.CORRECT if right else Ruling.INCORRECT
    if decision.verdict is Verdict.REVIEW:
        ruling = Ruling.UNJUDGED
    judgement = Judgement(ruling=ruling, confidence=float(ruling is not Ruling.UNJUDGED))
    return JudgedOutcome(outcome, decision, decision.transaction, decision.facts, decision.reader or "0", judgement)


def credits_of(outcomes: Sequence[JudgedOutcome], table: BulletTable) -> list[Credit]:
    """What outcomes add to the counters, if each is the first of its transaction."""
    each = zip(outcomes, _fired(table, outcomes), strict=True)
    return [credit for judged, fired in each for credit in _credits_for(judged, fired, table)]


def summed(credits: Iterable[Credit]) -> list[Credit]:
    """One credit for each bullet that some add anything to."""
    counted: dict[str, tuple[int, ...]] = {}
    for credit in credits:
        counted[credit.bullet_id] = tuple(map(add, counted.get(credit.bullet_id, (0,) * 5), credit.counts))
    return [Credit(one, *counts) for one, counts in counted.items() if any(counts)]


def _credited(
    judged: JudgedOutcome, before: Sequence[OutcomeHeard], fired: Sequence[str], table: BulletTable, node: str
) -> CreditedOutcome:
    truths = [event for event in before if not event.outcome.is_opinion]
    known = before if judged.is_opinion else truths
    first_of_a_decision = judged.decision is not None and bool(known) and known[-1].decision_id is None
    repeats_latest = is_known(judged.outcome, [event.outcome for event in known[-1:]])
    there = is_known(judged.outcome, [event.outcome for event in before])
    if there and not (first_of_a_decision and repeats_latest):
        return CreditedOutcome(judged, None, already_known=True)
    news = not known or known[-1].outcome.is_fraud != judged.outcome.is_fraud or first_of_a_decision
    credits = _credits_for(judged, fired, table) if news else []
    taught = next((event for event in truths if event.remembered), None)
    if news and taught is not None:  # bullets learnt since the case was first learnt from have no part in a revision
        then = {credit.bullet_id for credit in taught.credits}
        credits = [credit for credit in credits if credit.bullet_id in then or credit.selected]
    event = construct_unchecked(
        OutcomeHeard,
        kind="outcome_revised" if before else "outcome_heard",
        node=node,
        outcome=judged.outcome,
        decision_id=judged.decision.id if judged.decision else None,
        judgement=judged.judgement,
        credits=(*_reversals(before), *credits) if news else (),
        remembered=news and judged.transaction is not None and not judged.is_opinion,
        deferred=False,
    )
    return CreditedOutcome(judged, event, already_known=not news)


def _credits_for(judged: JudgedOutcome, fired: Sequence[str], table: BulletTable) -> list[Credit]:
    """Helpful or harmful for each bullet that was used, and the own record of each that fired."""
    if judged.transaction is None:
        return []
    decision, right, fraud = judged.decision, judged.judgement.is_correct, int(judged.outcome.is_fraud)
    used = set(decision.cited) if decision and right is not None else set()
    use = int(right is True), int(right is False), 1
    credits = [_credit(one, *use, 1, fraud) if one in used else _credit(one, 0, 0, 0, 1, fraud) for one in fired]
    unproven = [one for one in used.difference(fired) if one in table]
    return credits + [_credit(one, *use) for one in sorted(unproven, key=table.row)]


_credit = lru_cache(maxsize=65_536)(Credit)
"""Cached, because every outcome brings the same few credits."""


def _fired(table: BulletTable, outcomes: Sequence[JudgedOutcome]) -> list[list[str]]:
    """For each outcome the bullets in use whose condition holds, selected or not, in their order.

    They are those of the node that decided, or of all nodes; none for an opinion.
    """
    fired: list[list[str]] = [[] for _ in outcomes]
    nodes: dict[str | None, list[int]] = {}
    for place, judged in enumerate(outcomes):
        if judged.transaction is not None and not judged.is_opinion:
            nodes.setdefault(judged.decision.node if judged.decision else None, []).append(place)
    for node, places in nodes.items():
        in_use = table.not_retired() if node is None else table.of_node(table.node(node))
        rows = table.wording.conditions.proven_rows([outcomes[place].facts for place in places], in_use.bits)
        for place, some in zip(places, rows, strict=True):
            fired[place] = [table.bullets[row].id for row in some]
    return fired


def _reversals(before: Sequence[OutcomeHeard]) -> list[Credit]:
    """Credits that undo all that the earlier outcomes of a transaction have counted."""
    return [credit.reversed() for credit in summed(credit for event in before for credit in event.credits)]
