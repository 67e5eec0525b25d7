"""What an outcome adds to the counters of bullets, and what a revised one takes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acefraud.core.bullet import Bullet, Status
from acefraud.core.decision import Decision
from acefraud.core.events import Credit, OutcomeHeard
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import FactValue, Transaction
from acefraud.embedded.facts import facts_of


@dataclass(frozen=True, slots=True)
class Hearing:
    """An outcome, and what it is about."""

    outcome: Outcome
    decision: Decision | None
    subject: Transaction | None
    """The transaction, where it is known."""
    judgement: Judgement


def heard_before(hearing: Hearing, before: Sequence[OutcomeHeard]) -> bool:
    """Whether an outcome says nothing new: delivered again, or the same truth from the same source.

    The first truth that reaches a decision is news even where the outcome was heard before the decision was made.
    """
    if not before:
        return False
    outcome, latest = hearing.outcome, before[-1]
    if outcome.id or outcome.at:
        return any(heard.outcome.key == outcome.key for heard in before)
    same = latest.outcome.is_fraud == outcome.is_fraud and latest.outcome.source is outcome.source
    return same and (latest.decision_id is not None or hearing.decision is None)


def all_credits(before: Sequence[OutcomeHeard], hearing: Hearing, snapshot: Snapshot) -> tuple[Credit, ...]:
    """What earlier truths counted is taken back. A bullet that was learnt since has no part in the revision."""
    fresh = credits_for(hearing, snapshot)
    labelled = labels_in(before)
    if labelled:
        then = {credit.bullet_id for credit in labelled[0].credits}
        fresh = tuple(credit for credit in fresh if credit.bullet_id in then or credit.selected)
    return (*taken_back(before), *fresh)


def labels_in(before: Sequence[OutcomeHeard]) -> list[OutcomeHeard]:
    """What was heard as the truth; the opinions of a judge left out."""
    return [heard for heard in before if heard.outcome.source is not OutcomeSource.JUDGE]


def credits_for(hearing: Hearing, snapshot: Snapshot) -> tuple[Credit, ...]:
    """Helpful or harmful where a bullet was used, and its own record where it fired."""
    if hearing.subject is None:
        return ()
    decision, right = hearing.decision, hearing.judgement.is_correct
    facts = decision.facts if decision else facts_of(hearing.subject).facts
    used = set(decision.cited) if decision and right is not None else set()
    measured = hearing.outcome.source is not OutcomeSource.JUDGE  # an opinion is no measurement
    credits = []
    for bullet in snapshot.bullets.values():
        fired = measured and _fired(bullet, facts, decision.node if decision else bullet.node)
        if bullet.id in used or fired:
            credits.append(
                Credit(
                    bullet_id=bullet.id,
                    helpful=int(bullet.id in used and right is True),
                    harmful=int(bullet.id in used and right is False),
                    selected=int(bullet.id in used),
                    fired=int(fired),
                    fired_frauds=int(fired and hearing.outcome.is_fraud),
                )
            )
    return tuple(credits)


def taken_back(before: Sequence[OutcomeHeard]) -> list[Credit]:
    """What undoes all that the outcomes of one transaction have counted so far."""
    counted: dict[str, Counter[str]] = {}
    for credit in (credit for heard in before for credit in heard.credits):
        counts = counted.setdefault(credit.bullet_id, Counter())
        counts.update(credit.model_dump(exclude={"bullet_id"}))
    return [Credit(bullet_id=one, **counts).reversed() for one, counts in counted.items() if any(counts.values())]


def _fired(bullet: Bullet, facts: Mapping[str, FactValue], node: str) -> bool:
    """Whether its condition held, selected or not."""
    if bullet.condition is None or bullet.node != node or bullet.status is Status.RETIRED:
        return False
    return bullet.condition.holds(facts)
