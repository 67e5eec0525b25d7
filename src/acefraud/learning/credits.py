"""What an outcome adds to the counters of bullets, and what a revised one takes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from acefraud.core.decision import Decision
from acefraud.core.events import Credit, OutcomeHeard
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource
from acefraud.core.playbook import Snapshot
from acefraud.core.rules import places_in
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
    fired = set(fired_in(snapshot, facts, decision.node if decision else None)) if measured else set()
    return tuple(
        Credit(
            bullet_id=one,
            helpful=int(one in used and right is True),
            harmful=int(one in used and right is False),
            selected=int(one in used),
            fired=int(one in fired),
            fired_frauds=int(one in fired and hearing.outcome.is_fraud),
        )
        for one in sorted(used | fired, key=lambda one: snapshot.book.row(one) or 0)
        if one in snapshot.book
    )


def fired_in(snapshot: Snapshot, facts: Mapping[str, FactValue], node: str | None) -> Iterator[str]:
    """The bullets whose condition held, selected or not; of one node, or each of its own."""
    for page in snapshot.book.pages:
        if page.rules.any:
            proven = page.rules.standing(facts)[1]
            in_use = page.in_use(snapshot.book.node(node)) if node is not None else page.not_retired()
            for place in places_in(proven & in_use.bits):
                yield page.ids[place]


def taken_back(before: Sequence[OutcomeHeard]) -> list[Credit]:
    """What undoes all that the outcomes of one transaction have counted so far."""
    counted: dict[str, Counter[str]] = {}
    for credit in (credit for heard in before for credit in heard.credits):
        counts = counted.setdefault(credit.bullet_id, Counter())
        counts.update(credit.model_dump(exclude={"bullet_id"}))
    return [Credit(bullet_id=one, **counts).reversed() for one, counts in counted.items() if any(counts.values())]
