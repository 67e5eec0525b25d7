"""Silence: decisions that nobody reported for long enough count as legitimate.

That time has passed is one event for many decisions (`SilenceMatured`), with what they add to the counters in all, so
that a replay needs no clock. Reports on decisions of the same time were deferred until then and count with them, in the
order of the decisions: what is learnt from is a fair sample of one stretch of time after another.

A report that comes later still revises a decision that was taken for legitimate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from acefraud.core.decision import Decision
from acefraud.core.events import SILENCE_MATURED, DecisionMade, Event, OutcomeHeard, SilenceMatured
from acefraud.core.ledger import DecisionFilter, Precondition
from acefraud.core.outcome import Outcome, OutcomeSource
from acefraud.core.outcome_feed import OutcomeFeed
from acefraud.core.transaction import Verdict
from acefraud.learning.credits import JudgedOutcome, credits_of, judged_by_truth, summed
from acefraud.learning.entity_memory import memory_for
from acefraud.learning.outcome_remarks import nearly_reported
from acefraud.storage.playbook import BulletPlaybook

AT_ONCE = 5_000
"""Decisions of one event."""
STEPS = 60
"""The time of silence is cut into so many steps, so that a quiet service does not write an event for each decision."""


def mature(playbook: BulletPlaybook, node: str, now: datetime) -> SilenceMatured | None:
    """Let the next decisions without a report count as legitimate, if enough time has passed; None if there are none.

    Raises StoreConflict, with nothing written, if a report on one of them, or another process, was faster.
    """
    playbook.refresh()
    feed, seen = playbook.feed(node), playbook.seq
    if feed.silence_days is None or feed.is_complete:
        return None
    until = now - timedelta(days=feed.silence_days)
    step = timedelta(days=feed.silence_days / STEPS)
    if feed.silent_until is not None and until - feed.silent_until < step:
        return None
    events = playbook.ledger.find_decisions(
        DecisionFilter(until=until), after=feed.silent_through, limit=AT_ONCE, newest_first=False
    )
    if not events:
        return None
    latest = {event.payload.subject: event for event in events if _is_by(event, node)}
    unclear = nearly_reported(latest, playbook.ledger)
    judged = _judged(playbook, [event for one, event in latest.items() if one not in unclear], feed, node)
    snapshot = playbook.snapshot()
    cases = [one.known_case() for one in judged]
    matured = SilenceMatured(
        node=node,
        until=until if len(events) < AT_ONCE else events[-1].at,
        through=events[-1].seq,
        silent=sum(one.outcome.source is OutcomeSource.SILENCE for one in judged),
        frauds=sum(one.outcome.is_fraud for one in judged),
        cases=len(cases),
        credits=tuple(summed(credits_of(judged, snapshot.table))),
        unclear=tuple(sorted(unclear)),
    )
    silent = [one for one in judged if one.outcome.source is OutcomeSource.SILENCE]
    memory = memory_for(snapshot.mapping)
    playbook.record(
        [matured],
        preconditions=[
            Precondition.no_outcomes_since(seen, latest),
            Precondition(seen, frozenset({SILENCE_MATURED}), {node}),
        ],
        cases=cases,
        rows=memory.adding_outcomes([(one.outcome, None) for one in silent]) if memory and silent else None,
    )
    return matured


def _judged(playbook: BulletPlaybook, events: Collection[Event], feed: OutcomeFeed, node: str) -> list[JudgedOutcome]:
    """The decisions that count from now on, each with its deferred truth, or as legitimate if there was no report."""
    heard = playbook.ledger.outcome_events({event.payload.subject for event in events})
    known = playbook.ledger.known_cases({event.payload.subject for event in events})
    found = []
    for event in events:
        assert isinstance(event.payload, DecisionMade)
        truths = _truths(heard.get(event.payload.subject, ()), node)
        if event.payload.subject in known or (truths and not truths[-1].deferred):
            continue  # it counted when it was heard
        one = _as_counted(event.payload.record.decision, truths, feed)
        if one is not None:
            found.append(one)
    return found


def _as_counted(decision: Decision, truths: Sequence[OutcomeHeard], feed: OutcomeFeed) -> JudgedOutcome | None:
    """A decision with the truth that counts when its time has come; None if nothing can be known of it."""
    if decision.verdict is Verdict.DECLINE and not feed.declines_pass:
        return None
    silent = Outcome(transaction_id=decision.transaction.id, is_fraud=False, source=OutcomeSource.SILENCE)
    return judged_by_truth(truths[-1].outcome if truths else silent, decision)


def with_silence(
    playbook: BulletPlaybook, outcomes: Mapping[str, Sequence[OutcomeHeard]], node: str
) -> dict[str, list[OutcomeHeard]]:
    """The outcomes heard of transactions, by id, with what silence has counted of them as if it had been heard."""
    feed, found = playbook.feed(node), {one: list(heard) for one, heard in outcomes.items()}
    if not feed.silent_through:
        return found
    wanted = DecisionFilter(transaction_ids=list(outcomes))
    made = playbook.ledger.find_decisions(wanted, before=feed.silent_through + 1, limit=AT_ONCE, newest_first=False)
    events = playbook.ledger.outcome_events(outcomes)
    decided: dict[str, list[Event]] = {}
    for event in made:
        if _is_by(event, node):
            decided.setdefault(event.payload.subject, []).append(event)
    for one, decisions in decided.items():
        matured = _matured_after(playbook, decisions[0].seq, node)
        if matured is None or not isinstance(matured.payload, SilenceMatured) or one in matured.payload.unclear:
            continue
        decision = [event.payload for event in decisions if event.seq <= matured.payload.through][-1]
        heard = [event for event in events.get(one, ()) if isinstance(event.payload, OutcomeHeard)]
        before = [event for event in heard if event.seq < matured.seq]
        truths = _truths(before, node)
        if not isinstance(decision, DecisionMade) or (truths and not truths[-1].deferred):
            continue
        judged = _as_counted(decision.record.decision, truths, feed)
        if judged is not None:
            found[one].insert(len(before), _heard_alone(playbook, judged, matured.payload, node))
    return found


def left_unclear(playbook: BulletPlaybook, node: str) -> set[str]:
    """Transactions whose silence has passed without counting, because it was not clear whether they were reported."""
    if not playbook.feed(node).silent_through:
        return set()
    events = playbook.ledger.find_events({SILENCE_MATURED}, subject=node, limit=2 * STEPS, newest_first=True)
    return {one for event in events if isinstance(event.payload, SilenceMatured) for one in event.payload.unclear}


def _heard_alone(playbook: BulletPlaybook, judged: JudgedOutcome, matured: SilenceMatured, node: str) -> OutcomeHeard:
    """The event with which an outcome would have counted, had it been heard by itself."""
    credited = {credit.bullet_id for credit in matured.credits}
    credits = [one for one in credits_of([judged], playbook.snapshot().table) if one.bullet_id in credited]
    return OutcomeHeard(
        node=node,
        outcome=judged.outcome,
        decision_id=judged.decision.id if judged.decision else None,
        judgement=judged.judgement,
        credits=tuple(credits),
        remembered=True,
    )


def _matured_after(playbook: BulletPlaybook, seq: int, node: str) -> Event | None:
    """The event with which a decision matured."""
    events: Iterable[Event] = playbook.ledger.find_events({SILENCE_MATURED}, subject=node, after=seq, limit=2 * STEPS)
    return next((one for one in events if isinstance(one.payload, SilenceMatured) and one.payload.through >= seq), None)


def _truths(events: Iterable[Event], node: str) -> list[OutcomeHeard]:
    heard = (event.payload for event in events)
    return [one for one in heard if isinstance(one, OutcomeHeard) and one.node == node and not one.outcome.is_opinion]


def _is_by(event: Event, node: str) -> bool:
    return isinstance(event.payload, DecisionMade) and event.payload.record.node == node
