"""Which decisions get an outcome, told by the outcomes so far, and how late reports are."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np

from acefraud.core.decision import Decision
from acefraud.core.events import (
    OUTCOME_KINDS,
    SILENCE_MATURED,
    DecisionMade,
    Event,
    FeedSet,
    OutcomeHeard,
    SilenceMatured,
)
from acefraud.core.ledger import DecisionFilter, Precondition
from acefraud.core.outcome import FeedKind, Outcome, OutcomeFeed, OutcomeSource
from acefraud.core.transaction import Verdict
from acefraud.engine.entity_memory import memory_for
from acefraud.engine.inputs import nearly_reported
from acefraud.learning.credits import JudgedOutcome, credits_of, judged_by_truth, summed
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arrays import FloatArray

LATEST = 200
"""Outcomes, and decisions, that a feed is recognised by."""
LEAST_DECISIONS = 10
LEAST_REPORTS, MANY_REPORTS = 20, 100
"""Outcomes from which on a feed can be told to be of frauds only, and of reviewed cases only."""
UNLIKELY = 1e-5
"""Fewer frauds in a row do, if a complete feed would bring them with this probability at most..."""
FEW_REPORTED = 0.1
"""...and no more than this share of the decisions was reported."""
MOST_COVERED = 0.6
"""The share of earlier decisions that a complete feed has reached, at least."""
FEW_LEGITIMATE = 0.1
"""Disputes that were won, and corrections, may be among the reports of frauds."""
OFTEN, SELDOM = 5, 250
"""Outcomes between two looks at a feed: as long as it is unknown or seems to bring frauds only, and otherwise."""


def recognised(playbook: BulletPlaybook, outcomes: Sequence[Outcome], node: str) -> tuple[int, FeedSet] | None:
    """The event that says which kind of feed brings these outcomes, and before which of them; None if it is no news.

    It is the same whether outcomes are heard together or one by one.
    """
    feed, count = playbook.feed(node), playbook.outcomes
    if feed.declared:
        return None
    every = OFTEN if feed.kind in (FeedKind.UNKNOWN, FeedKind.FRAUD_ONLY) else SELDOM
    for place in range(every - 1 - count % every, len(outcomes), every):
        said = _recognised(playbook, outcomes[: place + 1], node)
        if said is not None:
            return place, said
    return None


def _recognised(playbook: BulletPlaybook, outcomes: Sequence[Outcome], node: str) -> FeedSet | None:
    """Which kind of feed brings these outcomes, if that is news.

    A complete feed reaches nearly all decisions that are older than those it reports on. Others reach few of them.
    """
    feed, calibration = playbook.feed(node), playbook.snapshot().calibration(node)
    truths, reported = _latest(playbook, node, outcomes)
    latest = dict(list(truths.items())[-LATEST:])
    frauds, covered = sum(latest.values()), None
    mostly_frauds = frauds >= (1 - FEW_LEGITIMATE) * len(latest)
    in_a_row = calibration is not None and frauds == len(latest) and calibration.base_rate**frauds < UNLIKELY
    if reported:
        # Other outcomes of the latest decisions may be still to come. But if a feed that is not known to be complete
        # brings frauds only, these may have been picked: then all decisions so far count.
        doubtful = mostly_frauds and not feed.is_complete
        lasts = [playbook.seq] if doubtful else [reported[-1], reported[len(reported) // 10]]
        covered = max(_covered(playbook, last, truths, node) for last in lasts)
    kind = feed.kind
    if covered is not None and covered >= MOST_COVERED:
        kind = FeedKind.COMPLETE
    elif mostly_frauds and (len(latest) >= LEAST_REPORTS or (in_a_row and _are_few(playbook, frauds))):
        kind = FeedKind.FRAUD_ONLY
    elif len(reported) >= MANY_REPORTS:
        kind = FeedKind.REVIEWED_ONLY
    elif kind is FeedKind.FRAUD_ONLY and not mostly_frauds:
        kind = FeedKind.UNKNOWN
    if kind is feed.kind:
        return None
    kept = feed.model_dump(include={"silence_days", "declines_pass", "follow_level"})
    said = FeedSet(node=node, feed=kind, declared=False, **kept, reports=len(latest), frauds=frauds)
    return said.model_copy(update={"covered": covered})


def reaches_most(playbook: BulletPlaybook, node: str) -> bool:
    """Whether the latest outcomes reach most decisions, as those of a complete feed do; also if few were decided."""
    truths, reported = _latest(playbook, node)
    if len(reported) < LEAST_DECISIONS:
        return True
    lasts = reported[-1], reported[len(reported) // 10]
    return max(_covered(playbook, last, truths, node) for last in lasts) >= MOST_COVERED


def _are_few(playbook: BulletPlaybook, reports: int) -> bool:
    """Whether so many reports are few beside the decisions so far."""
    least = math.ceil(reports / FEW_REPORTED)
    return len(playbook.ledger.find_decisions(DecisionFilter(), limit=least)) == least


def _latest(playbook: BulletPlaybook, node: str, new: Sequence[Outcome] = ()) -> tuple[dict[str, bool], list[int]]:
    """The truths told lately, with new ones, by transaction; and the events of the decisions that they are about."""
    heard = playbook.ledger.find_events(OUTCOME_KINDS, limit=LATEST, newest_first=True)
    truths = {one.transaction_id: one.is_fraud for event in reversed(heard) if (one := _truth(event, node))}
    truths |= {one.transaction_id: one.is_fraud for one in new if not one.is_opinion}
    wanted = DecisionFilter(transaction_ids=list(truths)[-LATEST:])
    made = playbook.ledger.find_decisions(wanted, limit=4 * LATEST) if truths else []
    return truths, sorted({event.payload.subject: event.seq for event in made if _by(event, node)}.values())


def _covered(playbook: BulletPlaybook, last: int, truths: dict[str, bool], node: str) -> float:
    """The share of the latest decisions up to one that have an outcome; 0 if there are too few to tell."""
    made = playbook.ledger.find_decisions(DecisionFilter(), before=last + 1, limit=LATEST)
    ids = {event.payload.subject for event in made if _by(event, node)}
    if len(ids) < LEAST_DECISIONS:
        return 0.0
    known = {one for one, events in playbook.ledger.outcome_events(ids).items() if any(_truth(e, node) for e in events)}
    return len(ids & (known | truths.keys())) / len(ids)


def _by(event: Event, node: str) -> bool:
    return isinstance(event.payload, DecisionMade) and event.payload.record.node == node


def _truth(event: Event, node: str) -> Outcome | None:
    """The truth that an event tells about a node."""
    heard = event.payload
    told = isinstance(heard, OutcomeHeard) and heard.node == node and not heard.outcome.is_opinion
    return heard.outcome if told and isinstance(heard, OutcomeHeard) else None


def arrived_share(lags: FloatArray, ages: FloatArray, at: FloatArray) -> FloatArray:
    """The share of all reports that has usually arrived at some ages of a decision.

    `lags` are the times that reports took, `ages` how old these decisions are by now: longer lags than that could not
    be seen yet. This is the estimator of Lynden-Bell for lags that are cut off at the present.

    >>> arrived_share(np.array([1.0, 2.0, 3.0]), np.array([9.0, 9.0, 9.0]), np.array([0.5, 2.0, 9.0])).round(2).tolist()
    [0.0, 0.67, 1.0]
    >>> arrived_share(np.array([1.0, 1.0, 3.0]), np.array([2.0, 9.0, 9.0]), np.array([1.0])).round(2).tolist()
    [0.5]
    """
    distinct, counts = np.unique(lags, return_counts=True)
    at_risk = np.array([((lags <= lag) & (ages >= lag)).sum() for lag in distinct])
    later = np.append((1 - counts / np.maximum(at_risk, counts))[1:], 1.0)
    shares = np.append(0.0, np.cumprod(later[::-1])[::-1])
    found: FloatArray = shares[np.searchsorted(distinct, at, side="right")]
    return found


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
