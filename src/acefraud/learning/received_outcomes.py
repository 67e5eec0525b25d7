"""Outcomes that are received now and judged later, in the order of their events.

An outcome is written as an `OutcomeReceived` event. `acefraud.learning.received_outcomes` judges it, and only decisions
made before that event count for it. If the first decision on a transaction comes later, the outcome is received again
together with that decision. So what is learnt follows from the order of events, not from when a process comes to it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from acefraud.core.events import (
    OUTCOME_KINDS,
    OUTCOME_RECEIVED,
    Event,
    OutcomeHeard,
    OutcomeReceived,
    OutcomesTakenIn,
    Reviewed,
)
from acefraud.core.ledger import Ledger, Precondition
from acefraud.core.outcome import Outcome, is_known
from acefraud.core.transaction import Transaction
from acefraud.display.short_repr import ShortRepr, quoted
from acefraud.engine.inputs import outcome_remarks
from acefraud.errors import OutcomeConflict, StoreConflict
from acefraud.learning.credits import CreditedOutcome
from acefraud.learning.outcome_intake import OUTCOME_ATTEMPTS, Draft, OutcomeRecorder
from acefraud.learning.reviewer import Reviewer
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


_PAGE = 100
"""Received outcomes that are read at once, at least: some may be of other nodes."""
_Waiting = tuple[int, OutcomeReceived]
"""A received outcome and the number of its event."""


@dataclass(frozen=True, slots=True, repr=False)
class TakenIn(ShortRepr):
    """What taking in received outcomes did."""

    count: int = 0
    """Received outcomes that were judged, or passed over because they were known by then."""
    already_known: int = 0
    """How many of them were passed over, or only confirm a truth."""
    reviews: tuple[Reviewed, ...] = ()
    """The reviews that were due, each with what it did or why it declined."""
    left: bool = False
    """Whether outcomes may still wait: there were more, or another process is at them."""
    announced: tuple[str, ...] = ()
    """What moved many verdicts, or was held for a person, in words."""


class OutcomeBacklog:
    """Takes in the outcomes that were received at one node."""

    def __init__(self, playbook: BulletPlaybook, recorder: OutcomeRecorder, reviewer: Reviewer, node: str) -> None:
        self._playbook = playbook
        self._recorder = recorder
        self._reviewer = reviewer
        self._node = node
        self._learnt_from = -1
        """How many outcomes there were when this process last learnt what was due."""

    async def take_in(self, limit: int) -> TakenIn:
        """Judge up to `limit` outcomes and learn from them; nothing if another process is at it."""
        if not self._waiting(1) and not self._is_due:
            return TakenIn()
        with self._playbook.ledger.claim(f"received outcomes {self._node}") as mine:
            return await self._take_in(limit) if mine else TakenIn(left=True)

    @property
    def _is_due(self) -> bool:
        """Whether something is to be learnt first. The level may be if another process heard the latest outcomes."""
        others = self._learnt_from != self._playbook.outcomes
        return self._reviewer.is_due or (others and self._reviewer.ends_at_a_level)

    async def _take_in(self, limit: int) -> TakenIn:
        waiting, taken, conflicts = self._waiting(limit), list[CreditedOutcome](), 0
        reviews = [await self._reviewer.resume()] if self._is_due else []
        self._learnt_from = self._playbook.outcomes
        # While something is to be learnt, it comes first: another process may be at it.
        while waiting and not self._reviewer.is_due:
            try:
                credited = await self._record(waiting[: self._reviewer.room])
            except StoreConflict:  # an outcome was heard directly, or the claim was lost and another process came first
                conflicts += 1
                if conflicts == OUTCOME_ATTEMPTS:
                    raise
                waiting = self._waiting(len(waiting))
                continue
            taken += credited
            waiting = waiting[len(credited) :]
            reviews.append(await self._reviewer.learn_if_due(credited))
            self._learnt_from = self._playbook.outcomes
        return TakenIn(
            count=len(taken),
            already_known=sum(one.already_known for one in taken),
            reviews=tuple(one for one in reviews if one is not None),
            left=bool(waiting) or len(taken) >= limit,
        )

    async def _record(self, waiting: Sequence[_Waiting]) -> list[CreditedOutcome]:
        """Judge outcomes and record those that may be recorded together: at least one.

        Raises StoreConflict, with nothing written, if somebody else has taken in outcomes.
        """
        self._playbook.refresh()
        fence = Precondition.nothing_taken_in_since(self._playbook.seq, self._node)
        if self._playbook.taken_in(self._node) >= waiting[0][0]:
            raise StoreConflict("another process has taken in these outcomes")
        received = [report for _, report in waiting]
        draft = await self._recorder.draft(
            [report.outcome for report in received],
            [report.transaction for report in received],
            received=[seq for seq, _ in waiting],
        )
        count = self._together(draft)
        done = OutcomesTakenIn(node=self._node, until=waiting[count - 1][0], count=count)
        self._recorder.write(draft.first(count), more=[done], preconditions=[fence])
        return draft.credited[:count]

    def _together(self, draft: Draft) -> int:
        """How many outcomes of a draft to record together, so that nothing differs from one by one."""
        count = self._reviewer.before_due(draft.credited)
        if not any(one.feed for one in draft.snapshot.lists.values()):
            return count
        changing = (place for place in range(count) if self._recorder.changes_lists(draft, place))
        return next(changing, count - 1) + 1

    def _waiting(self, limit: int) -> list[_Waiting]:
        """The first received outcomes of the node that wait."""
        self._playbook.refresh()
        found: list[_Waiting] = []
        after, page, more = self._playbook.taken_in(self._node), limit, True
        while more and len(found) < limit:
            events = self._playbook.ledger.find_events({OUTCOME_RECEIVED}, after=after, limit=page)
            found += [
                (event.seq, event.payload)
                for event in events
                if isinstance(event.payload, OutcomeReceived) and event.payload.node == self._node
            ]
            more = len(events) >= page
            after = events[-1].seq if events else after
            page = max(limit, _PAGE)  # those of other nodes are passed over in larger steps
        return found[:limit]
