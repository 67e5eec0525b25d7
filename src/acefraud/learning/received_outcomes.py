"""Outcomes that are received now and judged later, in the order of their events.

An outcome is written as an `OutcomeReceived` event. `acefraud.learning.outcome_backlog` judges it, and only decisions
made before that event count for it. If the first decision on a transaction comes later, the outcome is received again
together with that decision. So what is learnt follows from the order of events, not from when a process comes to it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from acefraud.core.events import OUTCOME_KINDS, OUTCOME_RECEIVED, Event, OutcomeHeard, OutcomeReceived
from acefraud.core.ledger import Ledger, Precondition
from acefraud.core.outcome import Outcome, is_known
from acefraud.core.transaction import Transaction
from acefraud.display.short_repr import ShortRepr, quoted
from acefraud.errors import OutcomeConflict
from acefraud.learning.outcome_remarks import outcome_remarks
from acefraud.storage.changes import retried_on_conflict
from acefraud.storage.playbook import BulletPlaybook


@dataclass(frozen=True, slots=True, repr=False)
class Received(ShortRepr):
    """What became of an outcome that was received."""

    outcome: Outcome
    already_known: bool
    """Whether it was received or heard before. If so, nothing was written."""
    remark: str = ""
    """What is odd about it, such as a time before its transaction; it was taken all the same."""


@retried_on_conflict
def receive(
    playbook: BulletPlaybook,
    outcomes: Sequence[Outcome],
    transactions: Sequence[Transaction | None],
    *,
    node: str,
    who: str,
) -> list[Received]:
    """Write the outcomes that are new, all or none. Returns what became of each.

    Raises OutcomeConflict, with nothing written, if one has the id of another one.
    """
    playbook.refresh()
    seen, ids = playbook.seq, {one.transaction_id for one in outcomes}
    earlier = playbook.ledger.received_outcomes({one.key for one in outcomes if one.id})
    with_key = {key: _outcome(event) for key, event in earlier.items()}
    known = {one: [_outcome(event) for event in events] for one, events in _reports(playbook, ids, node).items()}
    found, new = list[Received](), list[OutcomeReceived]()
    remarks = _remarks(playbook, outcomes, transactions, ids)
    for place, (outcome, transaction) in enumerate(zip(outcomes, transactions, strict=True)):
        if outcome.id and with_key.setdefault(outcome.key, outcome) != outcome:
            raise _conflict(outcome, place, received_before=outcome.key in earlier)
        before = known.setdefault(outcome.transaction_id, [])
        there = is_known(outcome, before)
        if not there:
            before.append(outcome)
            new.append(OutcomeReceived(node=node, outcome=outcome, transaction=transaction))
        found.append(Received(outcome, there, remarks[place]))
    if new:
        keys = {one.key for one in outcomes if one.id}
        unchanged = [Precondition.no_reports_since(seen, ids), Precondition.no_reports_with_keys_since(seen, keys)]
        playbook.record(new, who=who, preconditions=unchanged)
    return found


def _remarks(
    playbook: BulletPlaybook, outcomes: Sequence[Outcome], transactions: Sequence[Transaction | None], ids: set[str]
) -> list[str]:
    """What is odd about outcomes, given the decisions on their transactions so far."""
    pasts = playbook.ledger.transaction_events(ids)
    decided = {one: past.records[-1].decision.transaction for one, past in pasts.items() if past.records}
    about = [given or decided.get(one.transaction_id) for one, given in zip(outcomes, transactions, strict=True)]
    return outcome_remarks(outcomes, about, playbook.ledger, playbook.clock())


def _conflict(outcome: Outcome, place: int, *, received_before: bool) -> OutcomeConflict:
    clash = "was received before and said something else" if received_before else "is given twice and says two things"
    message = f"the outcome {quoted(outcome.id)} {clash}; give a revised outcome an id of its own"
    return OutcomeConflict(message, field="id", place=place)


def reports_to_repeat(playbook: BulletPlaybook, transaction_ids: Collection[str], node: str) -> list[OutcomeReceived]:
    """The latest truth of each transaction that has one and no decision yet, to be received again with its first."""
    truths = {
        one: events[-1].payload
        for one, events in _reports(playbook, transaction_ids, node, opinions=False).items()
        if not any(isinstance(event.payload, OutcomeHeard) and event.payload.decision_id for event in events)
    }
    if not truths:
        return []
    pasts = playbook.ledger.transaction_events(truths)
    return [
        OutcomeReceived(node=node, outcome=truth.outcome)
        for one, truth in truths.items()
        if isinstance(truth, OutcomeHeard | OutcomeReceived)
        and not any(record.node == node for record in pasts[one].records)
    ]


def waiting_outcomes(ledger: Ledger) -> list[Outcome]:
    """The latest outcome of each transaction that was neither decided nor described, in the order of their arrival."""
    latest: dict[str, Outcome] = {}
    described: set[str] = set()
    for event in ledger.find_events(OUTCOME_KINDS | {OUTCOME_RECEIVED}, limit=sys.maxsize):
        match event.payload:
            case OutcomeHeard(decision_id=None, remembered=False) | OutcomeReceived(transaction=None):
                latest[event.payload.subject] = _outcome(event)
            case OutcomeHeard() | OutcomeReceived():
                described.add(event.payload.subject)
    pasts = ledger.transaction_events(latest.keys() - described) if latest.keys() - described else {}
    return [outcome for one, outcome in latest.items() if one in pasts and not pasts[one].records]


def _reports(
    playbook: BulletPlaybook, transaction_ids: Collection[str], node: str, *, opinions: bool = True
) -> dict[str, list[Event]]:
    """The outcomes of transactions at a node, each once: those that were heard, then those that wait to be judged."""
    judged, found = playbook.taken_in(node), dict[str, list[Event]]()
    for one, events in playbook.ledger.outcome_events(transaction_ids).items():
        for event in events:
            match event.payload:
                case OutcomeHeard() as report:
                    counts = True
                case OutcomeReceived() as report:
                    counts = event.seq > judged
                case _:
                    continue
            if counts and report.node == node and (opinions or not report.outcome.is_opinion):
                found.setdefault(one, []).append(event)
    return {one: sorted(events, key=_waits) for one, events in found.items()}


def _waits(event: Event) -> bool:
    return isinstance(event.payload, OutcomeReceived)


def _outcome(event: Event) -> Outcome:
    assert isinstance(event.payload, OutcomeHeard | OutcomeReceived)
    return event.payload.outcome
