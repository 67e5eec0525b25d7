"""Outcomes on their way into the ledger: the decision each is about, its judgement, its credits, its case.

What happens to a label that arrives twice is decided in `acefraud.learning.credits`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from acefraud.core.context_facts import Feed, ListItem, ValueList
from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade, EventPayload, FeedSet, ListChanged
from acefraud.core.ledger import DecisionFilter, Precondition, RowUpdate, TransactionEvents
from acefraud.core.outcome import Judgement, Outcome, OutcomeFeed, OutcomeSource, Ruling
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.engine.entity_memory import EntityMemory, memory_for, time_facts_of
from acefraud.engine.options import LearnerOptions
from acefraud.engine.rule_context import RuleContext, entity_columns, value_of
from acefraud.errors import StoreConflict
from acefraud.facts.extraction import READER, facts_of
from acefraud.learning.credits import CreditedOutcome, JudgedOutcome, credit_outcomes
from acefraud.learning.outcome_feeds import left_unclear, recognised, with_silence
from acefraud.roles.embedded.judge import ruled
from acefraud.roles.protocols import Judge
from acefraud.storage.playbook import BulletPlaybook


def fed_lists(
    credited: Sequence[CreditedOutcome], snapshot: Snapshot, clock: Callable[[], datetime]
) -> Iterator[ListChanged]:
    """What new outcomes put on lists, and what revised ones take off again. Opinions of a judge change nothing."""
    truths = [one for one in credited if one.event is not None and not one.judged.is_opinion]
    columns = entity_columns(snapshot.mapping)
    for listed in snapshot.lists.values():
        kept = listed
        for one in truths if listed.feed is not None else ():
            change = _change(kept, one, columns, clock)
            if change is not None:
                kept = kept.changed({item.value: item for item in change.added}, dict.fromkeys(change.removed))
                yield change


def _change(
    listed: ValueList, one: CreditedOutcome, columns: Mapping[str, str], clock: Callable[[], datetime]
) -> ListChanged | None:
    """What one outcome changes in a list."""
    assert listed.feed is not None
    transaction_id = one.judged.outcome.transaction_id
    if not one.judged.outcome.is_fraud:
        gone = tuple(item.value for item in listed.items.values() if item.transaction_id == transaction_id)
        return ListChanged(name=listed.name, removed=gone) if gone else None
    item = _item(listed.feed, one, columns, clock)
    return ListChanged(name=listed.name, added=(item,)) if item is not None and _is_news(listed, item) else None


def _item(
    feed: Feed, one: CreditedOutcome, columns: Mapping[str, str], clock: Callable[[], datetime]
) -> ListItem | None:
    outcome, transaction = one.judged.outcome, one.judged.transaction
    value = None if transaction is None else value_of(transaction, feed.key, columns)
    if value is None:
        return None
    return ListItem(
        value=value,
        reason=f"{outcome.source} of {outcome.transaction_id}",
        who=str(outcome.source),
        until=feed.until(outcome.at or clock()),
        transaction_id=outcome.transaction_id,
    )


def _is_news(listed: ValueList, item: ListItem) -> bool:
    """Whether an item adds anything: it is not listed yet, or it stays longer than before."""
    before = listed.items.get(item.value)
    if before is None:
        return True
    return before.until is not None and (item.until is None or item.until > before.until)


OUTCOME_ATTEMPTS = 50
"""How often outcomes are credited again because others of the same transactions came first."""
_About = tuple[Transaction | None, Mapping[str, FactValue], str]
"""A transaction, its facts, and the version of the reader that extracted them."""
_UNKNOWN: _About = None, {}, READER
NOT_DECIDED = Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="no decision was made on it")
_ARCHIVED = Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="the decision on it was archived")
_LEFT_TO_A_PERSON = Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="it was left to a person to decide")


@dataclass(frozen=True, slots=True)
class Draft:
    """Outcomes that were judged and credited on one revision of the playbook, and are not recorded yet."""

    seen: int
    """The last event that was known."""
    snapshot: Snapshot
    memory: EntityMemory | None
    credited: list[CreditedOutcome]
    feed: tuple[int, FeedSet] | None = None
    """Which kind of feed they show, if that is news, and before which of them."""

    def first(self, count: int) -> Draft:
        """The first of them. Later ones may build on earlier ones, but not the other way round."""
        return replace(self, credited=self.credited[:count])


class OutcomeRecorder:
    """Judges outcomes and records them, all or none."""

    def __init__(
        self,
        playbook: BulletPlaybook,
        judge: Judge,
        options: LearnerOptions,
        announce: Callable[[EventPayload], None] = lambda _: None,
    ) -> None:
        """`announce` is called with what the outcomes show of their feed, if that is news."""
        self._playbook = playbook
        self._judge = judge
        self._node = options.node
        self._announce = announce

    async def record(
        self,
        outcomes: Sequence[Outcome],
        transactions: Sequence[Transaction | None],
        judgement: Judgement | None = None,
    ) -> list[CreditedOutcome]:
        """Record outcomes with their credits. `judgement`, if given, replaces that of the judge.

        An outcome that is delivered again is not recorded; `acefraud.learning.credits` says what else may happen to a
        label that arrives twice.
        """
        ids = {outcome.transaction_id for outcome in outcomes}
        for _ in range(OUTCOME_ATTEMPTS):
            draft = await self.draft(outcomes, transactions, judgement)
            if all(one.event is None for one in draft.credited):
                return draft.credited
            try:
                self.write(draft, preconditions=[Precondition.no_decisions_since(draft.seen, ids)])
                return draft.credited
            except StoreConflict:  # another outcome of one of these transactions came first, or a decision
                continue
        raise StoreConflict(f"other outcomes of the same transactions came first {OUTCOME_ATTEMPTS} times in a row")

    async def draft(
        self,
        outcomes: Sequence[Outcome],
        transactions: Sequence[Transaction | None],
        judgement: Judgement | None = None,
        received: Sequence[int] | None = None,
    ) -> Draft:
        """Judge and credit outcomes on the newest revision of the playbook, without recording them.

        `received` are the events with which they were received, if they were: decisions made later are left out, so
        that it does not matter when an outcome is judged.
        """
        self._playbook.refresh()
        seen, snapshot = self._playbook.seq, self._playbook.snapshot()
        memory = memory_for(snapshot.mapping)
        pasts = self._playbook.ledger.transaction_events({outcome.transaction_id for outcome in outcomes})
        decisions = self._decisions(outcomes, pasts, received)
        judged = await self._judged(outcomes, transactions, decisions, pasts, judgement=judgement, memory=memory)
        feed = recognised(self._playbook, outcomes, self._node)
        defers = [self._playbook.feed(self._node).defers] * len(outcomes)
        if feed is not None:
            place, said = feed
            kind = OutcomeFeed(kind=said.feed, silence_days=said.silence_days)
            defers[place:] = [kind.defers] * (len(outcomes) - place)
        heard = {one: past.outcomes for one, past in pasts.items()}
        before = with_silence(self._playbook, heard, self._node)
        late = left_unclear(self._playbook, self._node)
        defers = [one and outcome.transaction_id not in late for one, outcome in zip(defers, outcomes, strict=True)]
        credited = credit_outcomes(judged, before, snapshot, self._node, defers=defers)
        return Draft(seen, snapshot, memory, credited, feed)

    def write(
        self, draft: Draft, *, more: Sequence[EventPayload] = (), preconditions: Sequence[Precondition] = ()
    ) -> None:
        """Record a draft, with `more` events in the same entry.

        Raises StoreConflict if another outcome of one of the transactions was recorded since.
        """
        credited = draft.credited
        sources = {str(one.judged.outcome.source) for one in credited}
        ids = {one.judged.outcome.transaction_id for one in credited}
        place, feed = draft.feed if draft.feed and draft.feed[0] < len(credited) else (0, None)
        parts = [[one.event for one in some if one.event is not None] for some in (credited[:place], credited[place:])]
        events: list[EventPayload] = [*parts[0], *([] if feed is None else [feed]), *parts[1]]
        self._playbook.record(
            [*events, *fed_lists(credited, draft.snapshot, self._playbook.clock), *more],
            who=sources.pop() if len(sources) == 1 else str(OutcomeSource.LABEL),
            preconditions=[Precondition.no_outcomes_since(draft.seen, ids), *preconditions],
            cases=[one.judged.known_case() for one in credited if one.teaches],
            rows=_memory_change(draft.memory, credited),
        )
        if feed is not None:
            self._announce(feed)

    def changes_lists(self, draft: Draft, place: int) -> bool:
        """Whether the outcome at a place of a draft changes a list, on which the facts of later ones may depend."""
        return any(fed_lists(draft.credited[place : place + 1], draft.snapshot, self._playbook.clock))

    def _decisions(
        self, outcomes: Sequence[Outcome], pasts: Mapping[str, TransactionEvents], received: Sequence[int] | None
    ) -> list[Decision | None]:
        """The latest decision that each outcome is about."""
        made_at: dict[str, int] = {}
        if received:
            wanted = DecisionFilter(transaction_ids=list(pasts))
            later = self._playbook.ledger.find_decisions(wanted, after=min(received), limit=sys.maxsize)
            made_at = {event.payload.record.id: event.seq for event in later if isinstance(event.payload, DecisionMade)}
        found = []
        for place, outcome in enumerate(outcomes):
            until = received[place] if received else sys.maxsize
            made = [
                record
                for record in pasts[outcome.transaction_id].records
                if record.node == self._node and made_at.get(record.id, 0) < until
            ]
            found.append(made[-1].decision if made else None)
        return found

    async def _judged(
        self,
        outcomes: Sequence[Outcome],
        transactions: Sequence[Transaction | None],
        decisions: Sequence[Decision | None],
        pasts: Mapping[str, TransactionEvents],
        *,
        judgement: Judgement | None,
        memory: EntityMemory | None,
    ) -> list[JudgedOutcome]:
        """Each outcome with the decision it is about and the facts known then."""
        snapshot = self._playbook.snapshot()
        context = RuleContext.of(snapshot, time_facts_of(snapshot.mapping))
        undecided = [
            None if decision or one is None else context.added_to([one], self._playbook.clock)[0]
            for one, decision in zip(transactions, decisions, strict=True)
        ]
        if memory is not None and any(undecided):
            undecided = memory.enriched_outcomes(list(zip(outcomes, undecided, strict=True)), self._playbook.ledger)
        each = list(zip(outcomes, decisions, undecided, strict=True))
        bare = {outcome.transaction_id for outcome, decision, one in each if decision is None and one is None}
        learnt_from = self._playbook.ledger.known_cases(bare) if bare else {}
        judged = []
        described: dict[str, _About] = {
            one: (known.case.transaction, dict(known.facts), known.reader) for one, known in learnt_from.items()
        }
        for outcome, decision, transaction in each:
            ruling = judgement or await self._ruling(outcome, decision, pasts.get(outcome.transaction_id))
            if decision is not None:
                about: _About = decision.transaction, decision.facts, decision.reader or "0"
            elif transaction is not None:  # a later outcome of the batch may revise this one by its id alone
                about = described[transaction.id] = transaction, facts_of(transaction).facts, READER
            else:
                about = described.get(outcome.transaction_id, _UNKNOWN)
            judged.append(JudgedOutcome(outcome, decision, *about, ruling, is_new=transaction is not None))
        return judged

    async def _ruling(self, outcome: Outcome, decision: Decision | None, past: TransactionEvents | None) -> Judgement:
        if decision is None:
            earlier = past.outcomes if past else ()
            was_decided = any(event.node == self._node and event.decision_id for event in earlier)
            return _ARCHIVED if was_decided else NOT_DECIDED
        if decision.verdict is Verdict.REVIEW:
            return _LEFT_TO_A_PERSON
        return await ruled(self._judge, decision.transaction.text, str(decision.verdict), str(outcome.truth))


def _memory_change(memory: EntityMemory | None, credited: Sequence[CreditedOutcome]) -> RowUpdate | None:
    """What truths add to the memory of entities, with their transactions if those were never decided."""
    if memory is None:
        return None
    truths = [
        (one.judged.outcome, one.judged.transaction if one.judged.is_new else None)
        for one in credited
        if one.event is not None and not one.judged.is_opinion
    ]
    return memory.adding_outcomes(truths) if truths else None
