"""Outcomes on their way into the ledger: the decision each is about, its judgement, its credits, its case.

What happens to a label that arrives twice is decided in `acefraud.learning.credits`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acefraud.core.decision import Decision
from acefraud.core.ledger import Precondition, TransactionEvents
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource, Ruling
from acefraud.core.row_store import RowUpdate
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.errors import StoreConflict
from acefraud.facts.extraction import READER, facts_of
from acefraud.learning.credits import CreditedOutcome, JudgedOutcome, credit_outcomes
from acefraud.learning.entity_memory import EntityMemory, memory_for, time_facts_of
from acefraud.learning.list_feeds import fed_lists
from acefraud.learning.options import LearnerOptions
from acefraud.learning.rule_context import RuleContext
from acefraud.roles.protocols import Judge
from acefraud.storage.playbook import BulletPlaybook

OUTCOME_ATTEMPTS = 50
"""How often outcomes are credited again because others of the same transactions came first."""
_About = tuple[Transaction | None, Mapping[str, FactValue], str]
"""A transaction, its facts, and the version of the reader that extracted them."""
_UNKNOWN: _About = None, {}, READER
_NOT_DECIDED = Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="no decision was made on it")
_ARCHIVED = Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="the decision on it was archived")
_LEFT_TO_A_PERSON = Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="it was left to a person to decide")


class OutcomeRecorder:
    """Judges outcomes and records them, all or none."""

    def __init__(self, playbook: BulletPlaybook, judge: Judge, options: LearnerOptions) -> None:
        self._playbook = playbook
        self._judge = judge
        self._node = options.node

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
        sources = {str(outcome.source) for outcome in outcomes}
        who = sources.pop() if len(sources) == 1 else str(OutcomeSource.LABEL)
        for _ in range(OUTCOME_ATTEMPTS):
            self._playbook.refresh()
            seen, memory = self._playbook.seq, memory_for(self._playbook.snapshot().mapping)
            pasts = self._playbook.ledger.transaction_events(ids)
            judged = await self._judged(outcomes, transactions, pasts, judgement, memory)
            before = {one: past.outcomes for one, past in pasts.items()}
            credited = credit_outcomes(judged, before, self._playbook.snapshot(), self._node)
            events = [one.event for one in credited if one.event is not None]
            if not events:
                return credited
            try:
                self._playbook.record(
                    [*events, *fed_lists(credited, self._playbook.snapshot(), self._playbook.clock)],
                    who=who,
                    preconditions=[Precondition.no_outcomes_since(seen, ids)],
                    cases=[one.judged.known_case() for one in credited if one.teaches],
                    rows=_memory_change(memory, credited),
                )
                return credited
            except StoreConflict:  # another outcome of one of these transactions came first
                continue
        raise StoreConflict(f"other outcomes of the same transactions came first {OUTCOME_ATTEMPTS} times in a row")

    async def _judged(
        self,
        outcomes: Sequence[Outcome],
        transactions: Sequence[Transaction | None],
        pasts: dict[str, TransactionEvents],
        judgement: Judgement | None,
        memory: EntityMemory | None,
    ) -> list[JudgedOutcome]:
        """Each outcome with the decision it is about and the facts known then."""
        decisions = [_latest_decision(pasts.get(one.transaction_id), self._node) for one in outcomes]
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
            return _ARCHIVED if was_decided else _NOT_DECIDED
        if decision.verdict is Verdict.REVIEW:
            return _LEFT_TO_A_PERSON
        return await self._judge.rule(decision.transaction.text, str(decision.verdict), str(outcome.truth))


def _latest_decision(past: TransactionEvents | None, node: str) -> Decision | None:
    made = [record for record in past.records if record.node == node] if past else []
    return made[-1].decision if made else None


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
