"""Outcomes on their way into the ledger: received, judged, credited and recorded with their cases.

`receive` only writes an outcome down, as an `OutcomeReceived` event. `OutcomeRecorder` judges it later, in the order of
these events, and only decisions made before that event count for it. If the first decision on a transaction comes
later, the outcome is received again together with that decision. So what is learnt follows from the order of events,
not from when a process comes to it. What happens to a label that arrives twice is decided in
`acefraud.learning.credits`.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from acefraud.core.context_facts import ListItem, ValueList
from acefraud.core.decision import Decision
from acefraud.core.events import (
    OUTCOME_KINDS,
    OUTCOME_RECEIVED,
    EventPayload,
    FeedSet,
    ListChanged,
    OutcomeHeard,
    OutcomeReceived,
    OutcomesTakenIn,
    Reviewed,
)
from acefraud.core.ledger import DecisionFilter, Ledger, Precondition, TransactionEvents
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource, Ruling, is_known
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.display.short_repr import ShortRepr, quoted
from acefraud.engine.entity_memory import memory_for
from acefraud.engine.inputs import outcome_remarks
from acefraud.engine.rule_context import RuleContext, entity_columns, value_of
from acefraud.errors import OutcomeConflict, StoreConflict
from acefraud.facts.extraction import READER, facts_of
from acefraud.learning.credits import HeardOutcome, credit_outcomes, left_unclear, with_silence
from acefraud.learning.outcome_feeds import decisions_of, recognised
from acefraud.learning.reviewer import Reviewer
from acefraud.roles.judge import ruled
from acefraud.roles.protocols import Judge
from acefraud.storage.changes import retried_on_conflict
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.playbook_reading import Clock

ATTEMPTS = 50
"""How often outcomes are credited again because others of the same transactions came first."""
NOT_DECIDED = Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="no decision was made on it")
_ARCHIVED = Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="the decision on it was archived")
_LEFT_TO_A_PERSON = Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="it was left to a person to decide")
_PAGE = 100
"""Received outcomes that are read at once, at least: some may be of other nodes."""
_About = tuple[Transaction | None, Mapping[str, FactValue], str]
"""A transaction, its facts, and the version of the reader that extracted them."""
_Given = tuple[Outcome, Decision | None, Transaction | None]
"""An outcome, the decision that it is about, and the transaction that came with it if there is no decision."""
_Waiting = tuple[int, OutcomeReceived]
"""A received outcome and the number of its event."""


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
    seen, ids = playbook.seq, {outcome.transaction_id for outcome in outcomes}
    keys = {outcome.key for outcome in outcomes if outcome.id}
    earlier = playbook.ledger.received_outcomes(keys)
    told = {key: event.payload for key, event in earlier.items()}
    with_key = {key: each.outcome for key, each in told.items() if isinstance(each, OutcomeHeard | OutcomeReceived)}
    known = {name: [each.outcome for each in some] for name, some in _told(playbook, ids, node).items()}
    pasts = playbook.ledger.transaction_events(ids)
    decided = {name: past.records[-1].decision.transaction for name, past in pasts.items() if past.records}
    about = [given or decided.get(each.transaction_id) for each, given in zip(outcomes, transactions, strict=True)]
    remarks = outcome_remarks(outcomes, about, playbook.ledger, playbook.clock())
    received, new = list[Received](), list[OutcomeReceived]()
    for index, (outcome, transaction) in enumerate(zip(outcomes, transactions, strict=True)):
        if outcome.id and with_key.setdefault(outcome.key, outcome) != outcome:
            before = outcome.key in earlier
            clash = "was received before and said something else" if before else "is given twice and says two things"
            message = f"the outcome {quoted(outcome.id)} {clash}; give a revised outcome an id of its own"
            raise OutcomeConflict(message, field="id", place=index)
        past = known.setdefault(outcome.transaction_id, [])
        there = is_known(outcome, past)
        if not there:
            past.append(outcome)
            new.append(OutcomeReceived(node=node, outcome=outcome, transaction=transaction))
        received.append(Received(outcome, there, remarks[index]))
    if new:
        unchanged = [Precondition.no_reports_since(seen, ids), Precondition.no_reports_with_keys_since(seen, keys)]
        playbook.record(new, who=who, preconditions=unchanged)
    return received


def to_receive_again(playbook: BulletPlaybook, transaction_ids: Collection[str], node: str) -> list[OutcomeReceived]:
    """The latest truth of each transaction that has one and no decision yet, to be received again with its first."""
    truths: dict[str, Outcome] = {}
    for name, some in _told(playbook, transaction_ids, node).items():
        told = [each for each in some if not each.outcome.is_opinion]
        if told and not any(isinstance(each, OutcomeHeard) and each.decision_id for each in told):
            truths[name] = told[-1].outcome
    pasts = playbook.ledger.transaction_events(truths) if truths else {}
    return [
        OutcomeReceived(node=node, outcome=outcome)
        for name, outcome in truths.items()
        if not any(record.node == node for record in pasts[name].records)
    ]


def waiting_outcomes(ledger: Ledger) -> list[Outcome]:
    """The latest outcome of each transaction that was neither decided nor described, in the order of their arrival."""
    latest: dict[str, Outcome] = {}
    described: set[str] = set()
    for event in ledger.find_events(OUTCOME_KINDS | {OUTCOME_RECEIVED}, limit=sys.maxsize):
        match event.payload:
            case OutcomeHeard(decision_id=None, remembered=False) | OutcomeReceived(transaction=None) as told:
                latest[told.subject] = told.outcome
            case OutcomeHeard() | OutcomeReceived() as told:
                described.add(told.subject)
    pasts = ledger.transaction_events(latest.keys() - described) if latest.keys() - described else {}
    return [outcome for name, outcome in latest.items() if name in pasts and not pasts[name].records]


def _told(
    playbook: BulletPlaybook, transaction_ids: Collection[str], node: str
) -> dict[str, list[OutcomeHeard | OutcomeReceived]]:
    """The outcomes of transactions at a node, each once: those that were heard, then those that wait to be judged."""
    judged, told = playbook.taken_in(node), dict[str, list[OutcomeHeard | OutcomeReceived]]()
    for name, events in playbook.ledger.outcome_events(transaction_ids).items():
        heard = [event.payload for event in events if isinstance(event.payload, OutcomeHeard)]
        later = [event.payload for event in events if event.seq > judged and isinstance(event.payload, OutcomeReceived)]
        both: list[OutcomeHeard | OutcomeReceived] = [*heard, *later]
        if mine := [each for each in both if each.node == node]:
            told[name] = mine
    return told


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


@dataclass(frozen=True, slots=True)
class _Draft:
    """Outcomes that were judged and credited on one revision of the playbook, and are not recorded yet."""

    seen: int
    """The last event that was known."""
    snapshot: Snapshot
    """The playbook, except that the counters of its bullets may be older."""
    credited: list[HeardOutcome]
    feed: tuple[int, FeedSet] | None
    """Which kind of feed they show, if that is news, and before which of them."""


class OutcomeRecorder:
    """Judges the outcomes of one node and records them: directly, or those that were received."""

    def __init__(self, playbook: BulletPlaybook, judge: Judge, reviewer: Reviewer, node: str) -> None:
        self._playbook = playbook
        self._judge = judge
        self._reviewer = reviewer
        self._node = node
        self._learnt_from = -1
        """How many outcomes there were when this process last learnt what was due."""

    async def record(
        self, outcomes: Sequence[Outcome], transactions: Sequence[Transaction | None], judgement: Judgement | None
    ) -> list[HeardOutcome]:
        """Record outcomes with their credits, all or none. `judgement`, if given, replaces that of the judge.

        An outcome that is delivered again is not recorded; `acefraud.learning.credits` says what else may happen to a
        label that arrives twice.
        """
        ids = {outcome.transaction_id for outcome in outcomes}
        for _ in range(ATTEMPTS):
            draft = await self._draft(outcomes, transactions, judgement)
            if all(heard.event is None for heard in draft.credited):
                return draft.credited
            try:
                self._write(draft, preconditions=[Precondition.no_decisions_since(draft.seen, ids)])
                return draft.credited
            except StoreConflict:  # another outcome of one of these transactions came first, or a decision
                self._playbook.refresh()
        raise StoreConflict(f"other outcomes of the same transactions came first {ATTEMPTS} times in a row")

    async def take_in(self, limit: int) -> TakenIn:
        """Judge up to `limit` received outcomes and learn from them; nothing if another process is at it."""
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
        waiting, taken, conflicts = self._waiting(limit), list[HeardOutcome](), 0
        reviews = [await self._reviewer.resume()] if self._is_due else []
        self._learnt_from = self._playbook.outcomes
        # While something is to be learnt, it comes first: another process may be at it.
        while waiting and not self._reviewer.is_due:
            try:
                credited = await self._record_received(waiting[: self._reviewer.room])
            except StoreConflict:  # an outcome was heard directly, or the claim was lost and another process came first
                conflicts += 1
                if conflicts == ATTEMPTS:
                    raise
                waiting = self._waiting(len(waiting))
                continue
            taken += credited
            waiting = waiting[len(credited) :]
            reviews.append(await self._reviewer.learn_if_due(credited))
            self._learnt_from = self._playbook.outcomes
        return TakenIn(
            count=len(taken),
            already_known=sum(heard.already_known for heard in taken),
            reviews=tuple(review for review in reviews if review is not None),
            left=bool(waiting) or len(taken) >= limit,
        )

    def _waiting(self, limit: int) -> list[_Waiting]:
        """The first received outcomes of the node that wait."""
        self._playbook.refresh()
        waiting: list[_Waiting] = []
        after, page, more = self._playbook.taken_in(self._node), limit, True
        while more and len(waiting) < limit:
            events = self._playbook.ledger.find_events({OUTCOME_RECEIVED}, after=after, limit=page)
            waiting += [
                (event.seq, event.payload)
                for event in events
                if isinstance(event.payload, OutcomeReceived) and event.payload.node == self._node
            ]
            more = len(events) >= page
            after = events[-1].seq if events else after
            page = max(limit, _PAGE)  # those of other nodes are passed over in larger steps
        return waiting[:limit]

    async def _record_received(self, waiting: Sequence[_Waiting]) -> list[HeardOutcome]:
        """Judge outcomes and record those that may be recorded together: at least one.

        Raises StoreConflict, with nothing written, if somebody else has taken in outcomes.
        """
        self._playbook.refresh()
        fence = Precondition.nothing_taken_in_since(self._playbook.seq, self._node)
        if self._playbook.taken_in(self._node) >= waiting[0][0]:
            raise StoreConflict("another process has taken in these outcomes")
        outcomes, transactions = zip(*((each.outcome, each.transaction) for _, each in waiting), strict=True)
        draft = await self._draft(outcomes, transactions, received=[seq for seq, _ in waiting])
        count = self._together(draft)
        done = OutcomesTakenIn(node=self._node, until=waiting[count - 1][0], count=count)
        # Later outcomes may build on earlier ones, but not the other way round.
        draft = replace(draft, credited=draft.credited[:count])
        self._write(draft, more=[done], preconditions=[fence])
        return draft.credited

    def _together(self, draft: _Draft) -> int:
        """How many outcomes of a draft to record together, so that nothing differs from one by one.

        One that changes a list is the last, because facts of later ones may depend on that list.
        """
        count, snapshot, clock = self._reviewer.before_due(draft.credited), draft.snapshot, self._playbook.clock
        changing = (at for at in range(count) if any(_fed_lists(draft.credited[at : at + 1], snapshot, clock)))
        return next(changing, count - 1) + 1

    async def _draft(
        self,
        outcomes: Sequence[Outcome],
        transactions: Sequence[Transaction | None],
        judgement: Judgement | None = None,
        received: Sequence[int] = (),
    ) -> _Draft:
        """Judge and credit outcomes on the current revision of the playbook, without recording them.

        `received` are the events with which they were received, if they were: decisions made later are left out, so
        that it does not matter when an outcome is judged.
        """
        playbook, node = self._playbook, self._node
        seen, snapshot, feed = playbook.seq, playbook.uncounted(), playbook.feed(node)
        memory = memory_for(snapshot.mapping)
        pasts = playbook.ledger.transaction_events({outcome.transaction_id for outcome in outcomes})
        decisions = self._decisions(outcomes, pasts, received)
        # Those that came with their outcome and were never decided get all their facts here.
        undecided = [None if decision else given for given, decision in zip(transactions, decisions, strict=True)]
        if any(undecided):
            context = RuleContext.of(snapshot)
            undecided = [given and context.added_to([given], playbook.clock)[0] for given in undecided]
            if memory is not None:
                undecided = memory.enriched_outcomes(list(zip(outcomes, undecided, strict=True)), playbook.ledger)
        judged = await self._judged(list(zip(outcomes, decisions, undecided, strict=True)), pasts, judgement)
        news = recognised(playbook, outcomes, node)
        defers = [feed.defers] * len(outcomes)
        if news is not None:
            place, said = news
            defers[place:] = [said.applied_to(feed).defers] * (len(outcomes) - place)
        before = with_silence(playbook, {name: past.outcomes for name, past in pasts.items()}, node)
        late = left_unclear(playbook, node)
        defers = [each and outcome.transaction_id not in late for each, outcome in zip(defers, outcomes, strict=True)]
        return _Draft(seen, snapshot, credit_outcomes(judged, before, snapshot, node, defers=defers), news)

    def _write(
        self, draft: _Draft, *, more: Sequence[EventPayload] = (), preconditions: Sequence[Precondition] = ()
    ) -> None:
        """Record a draft, with `more` events in the same entry.

        Raises StoreConflict if another outcome of one of the transactions was recorded since.
        """
        credited, memory = draft.credited, memory_for(draft.snapshot.mapping)
        sources = {str(heard.outcome.source) for heard in credited}
        ids = {heard.outcome.transaction_id for heard in credited}
        place, feed = draft.feed if draft.feed and draft.feed[0] < len(credited) else (0, None)
        parts = [[heard.event for heard in some if heard.event] for some in (credited[:place], credited[place:])]
        events: list[EventPayload] = [*parts[0], *([] if feed is None else [feed]), *parts[1]]
        # A transaction that was never decided is remembered with its outcome.
        news = [heard for heard in credited if heard.tells_news]
        truths = [(heard.outcome, heard.transaction if heard.is_new else None) for heard in news]
        self._playbook.record(
            [*events, *_fed_lists(credited, draft.snapshot, self._playbook.clock), *more],
            who=sources.pop() if len(sources) == 1 else str(OutcomeSource.LABEL),
            preconditions=[Precondition.no_outcomes_since(draft.seen, ids), *preconditions],
            cases=[heard.known_case() for heard in credited if heard.teaches],
            rows=memory.adding_outcomes(truths) if memory and truths else None,
        )
        if feed is not None:
            self._reviewer.announce(feed)

    def _decisions(
        self, outcomes: Sequence[Outcome], pasts: Mapping[str, TransactionEvents], received: Sequence[int]
    ) -> list[Decision | None]:
        """The latest decision that each outcome is about."""
        made_at: dict[str, int] = {}
        if received:
            wanted = DecisionFilter(transaction_ids=list(pasts))
            later = self._playbook.ledger.find_decisions(wanted, after=min(received), limit=sys.maxsize)
            made_at = {record.id: event.seq for event, record in decisions_of(later, self._node)}
        decisions = []
        for outcome, until in zip(outcomes, received or [sys.maxsize] * len(outcomes), strict=True):
            made = [
                record
                for record in pasts[outcome.transaction_id].records
                if record.node == self._node and made_at.get(record.id, 0) < until
            ]
            decisions.append(made[-1].decision if made else None)
        return decisions

    async def _judged(
        self, given: Sequence[_Given], pasts: Mapping[str, TransactionEvents], judgement: Judgement | None
    ) -> list[HeardOutcome]:
        """Each outcome with the decision it is about and the facts known then."""
        bare = {outcome.transaction_id for outcome, decision, about in given if decision is None and about is None}
        learnt_from = self._playbook.ledger.known_cases(bare) if bare else {}
        described: dict[str, _About] = {
            name: (known.case.transaction, dict(known.facts), known.reader) for name, known in learnt_from.items()
        }
        judged = []
        for outcome, decision, transaction in given:
            ruling = judgement or await self._ruling(outcome, decision, pasts[outcome.transaction_id])
            if decision is not None:
                about: _About = decision.transaction, decision.facts, decision.reader or "0"
            elif transaction is not None:  # a later outcome of the batch may revise this one by its id alone
                about = described[transaction.id] = transaction, facts_of(transaction).facts, READER
            else:
                about = described.get(outcome.transaction_id, (None, {}, READER))
            judged.append(HeardOutcome(outcome, decision, *about, ruling, is_new=transaction is not None))
        return judged

    async def _ruling(self, outcome: Outcome, decision: Decision | None, past: TransactionEvents) -> Judgement:
        if decision is None:
            was_decided = any(event.node == self._node and event.decision_id for event in past.outcomes)
            return _ARCHIVED if was_decided else NOT_DECIDED
        if decision.verdict is Verdict.REVIEW:
            return _LEFT_TO_A_PERSON
        return await ruled(self._judge, decision.transaction.text, str(decision.verdict), str(outcome.truth))


def _fed_lists(credited: Sequence[HeardOutcome], snapshot: Snapshot, clock: Clock) -> Iterator[ListChanged]:
    """What new outcomes put on lists, and what revised ones take off again. Opinions of a judge change nothing."""
    news = [heard for heard in credited if heard.tells_news]
    for listed in snapshot.lists.values():
        kept = listed
        for heard in news if listed.feed is not None else ():
            change = _list_change(kept, heard, entity_columns(snapshot.mapping), clock)
            if change is not None:
                kept = kept.changed({item.value: item for item in change.added}, dict.fromkeys(change.removed))
                yield change


def _list_change(
    listed: ValueList, heard: HeardOutcome, columns: Mapping[str, str], clock: Clock
) -> ListChanged | None:
    """What one outcome changes in a list that outcomes feed."""
    feed, outcome, transaction = listed.feed, heard.outcome, heard.transaction
    if not outcome.is_fraud:
        items = listed.items.values()
        gone = tuple(item.value for item in items if item.transaction_id == outcome.transaction_id)
        return ListChanged(name=listed.name, removed=gone) if gone else None
    if feed is None or transaction is None or (value := value_of(transaction, feed.key, columns)) is None:
        return None
    until, before = feed.until(outcome.at or clock()), listed.items.get(value)
    if before is not None and (before.until is None or (until is not None and until <= before.until)):
        return None  # it is listed for at least as long
    item = ListItem(
        value=value,
        reason=f"{outcome.source} of {outcome.transaction_id}",
        who=str(outcome.source),
        until=until,
        transaction_id=outcome.transaction_id,
    )
    return ListChanged(name=listed.name, added=(item,))
