"""Which decisions get an outcome, told by the outcomes so far, and how late reports are."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

import numpy as np

from acefraud.core.decision import DecisionRecord
from acefraud.core.events import DecisionMade, Event, FeedSet, OutcomeHeard
from acefraud.core.ledger import DecisionFilter
from acefraud.core.outcome import FeedKind, Outcome
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.playbook_reading import LATEST_OUTCOMES
from acefraud.support.arrays import FloatArray

LATEST = LATEST_OUTCOMES
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
    every = OFTEN if feed.kind in (FeedKind.UNKNOWN, FeedKind.FRAUD_ONLY) else SELDOM
    looks = range(every - 1 - count % every, len(outcomes), every)
    if feed.declared or not looks:
        return None
    truths, start = _latest(playbook, node), 0
    made = _decided(playbook, {*truths, *(outcome.transaction_id for outcome in outcomes[: looks[-1] + 1])})
    for index in looks:
        new = (outcome for outcome in outcomes[start : index + 1] if not outcome.is_opinion)
        truths.update((outcome.transaction_id, outcome.is_fraud) for outcome in new)
        start = index + 1
        said = _recognised(playbook, truths, _reported(made, truths, node), node)
        if said is not None:
            return index, said
    return None


def _recognised(
    playbook: BulletPlaybook, truths: Mapping[str, bool], reported: Sequence[int], node: str
) -> FeedSet | None:
    """Which kind of feed tells these truths, if that is news. They are about the decisions that are `reported`.

    A complete feed reaches nearly all decisions that are older than those it reports on. Others reach few of them.
    """
    feed, calibration = playbook.feed(node), playbook.uncounted().calibration(node)
    latest = dict(list(truths.items())[-LATEST:])
    frauds, covered = sum(latest.values()), None
    mostly_frauds = frauds >= (1 - FEW_LEGITIMATE) * len(latest)
    by_chance = 1.0 if calibration is None else math.prod([calibration.base_rate] * frauds)
    in_a_row = frauds == len(latest) and by_chance < UNLIKELY
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
    truths = _latest(playbook, node)
    reported = _reported(_decided(playbook, truths), truths, node)
    if len(reported) < LEAST_DECISIONS:
        return True
    lasts = reported[-1], reported[len(reported) // 10]
    return any(_covered(playbook, last, truths, node) >= MOST_COVERED for last in lasts)


def _are_few(playbook: BulletPlaybook, reports: int) -> bool:
    """Whether so many reports are few beside the decisions so far."""
    least = math.ceil(reports / FEW_REPORTED)
    return len(playbook.ledger.find_decisions(DecisionFilter(), limit=least)) == least


def _latest(playbook: BulletPlaybook, node: str) -> dict[str, bool]:
    """The truths told lately, by transaction."""
    heard = truths_in(playbook.latest_outcomes(), node)
    return {event.outcome.transaction_id: event.outcome.is_fraud for event in heard}


def _decided(playbook: BulletPlaybook, transaction_ids: Collection[str]) -> list[Event]:
    """All decisions on transactions, newest first."""
    wanted = DecisionFilter(transaction_ids=list(transaction_ids))
    return playbook.ledger.find_decisions(wanted, limit=sys.maxsize) if transaction_ids else []


def _reported(made: Iterable[Event], truths: Mapping[str, bool], node: str) -> list[int]:
    """The events of the decisions that the latest truths are about: of those made, the first on each transaction."""
    wanted = set(list(truths)[-LATEST:])
    some = islice((event for event in made if event.payload.subject in wanted), 4 * LATEST)
    return sorted({record.transaction_id: event.seq for event, record in decisions_of(some, node)}.values())


def _covered(playbook: BulletPlaybook, last: int, truths: Mapping[str, bool], node: str) -> float:
    """The share of the latest decisions up to one that have an outcome; 0 if there are too few to tell."""
    made = playbook.ledger.find_decisions(DecisionFilter(), before=last + 1, limit=LATEST)
    ids = {record.transaction_id for _, record in decisions_of(made, node)}
    if len(ids) < LEAST_DECISIONS:
        return 0.0
    others = playbook.ledger.outcome_events(ids - truths.keys())
    known = {name for name, events in others.items() if truths_in(events, node)}
    return len(ids & (known | truths.keys())) / len(ids)


def decisions_of(events: Iterable[Event], node: str) -> list[tuple[Event, DecisionRecord]]:
    """The decisions of a node among events, each with its event."""
    made = ((event, event.payload) for event in events)
    return [(event, each.record) for event, each in made if isinstance(each, DecisionMade) and each.record.node == node]


def truths_in(events: Iterable[Event], node: str) -> list[OutcomeHeard]:
    """The truths that events tell about a node."""
    heard = (event.payload for event in events)
    return [
        each for each in heard if isinstance(each, OutcomeHeard) and each.node == node and not each.outcome.is_opinion
    ]


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
    return shares[np.searchsorted(distinct, at, side="right")]
