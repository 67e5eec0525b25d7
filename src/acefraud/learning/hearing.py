"""Outcomes on their way into the ledger: what each is about, what it counts, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Sequence

from acefraud.core.decision import Decision
from acefraud.core.ledger import Past, RowsChange, Unless
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource, Ruling
from acefraud.core.roles import Judge
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.embedded.facts import READER, KnownFacts, facts_of
from acefraud.errors import StoreConflict
from acefraud.learning.credits import Hearing, Taken, take_in
from acefraud.learning.options import LearnerOptions
from acefraud.learning.remembering import EntityMemory, memory_for
from acefraud.storage.playbook import BulletPlaybook

HEARING_ATTEMPTS = 50
"""How often outcomes are worked out anew because others of the same transactions came first."""
_NO_FACTS = KnownFacts({})


class OutcomeRecorder:
    """Judges outcomes and records them together, or none of them."""

    def __init__(self, playbook: BulletPlaybook, judge: Judge, options: LearnerOptions) -> None:
        self._playbook = playbook
        self._judge = judge
        self._options = options

    async def record(
        self,
        outcomes: Sequence[Outcome],
        transactions: Sequence[Transaction | None],
        judgements: Sequence[Judgement] | None,
    ) -> list[Taken]:
        """Write outcomes with what they count, on top of what was heard of the same transactions before."""
        ids = {outcome.transaction_id for outcome in outcomes}
        sources = {str(outcome.source) for outcome in outcomes}
        who = sources.pop() if len(sources) == 1 else str(OutcomeSource.LABEL)
        for _ in range(HEARING_ATTEMPTS):
            self._playbook.refresh()
            seen, memory = self._playbook.seq, memory_for(self._playbook.snapshot().mapping)
            pasts = self._playbook.ledger.pasts_of(ids)
            hearings = await self._hearings(outcomes, transactions, pasts, judgements, memory)
            before = {one: past.outcomes for one, past in pasts.items()}
            taken = take_in(hearings, before, self._playbook.snapshot(), self._options.node)
            events = [one.heard for one in taken if one.heard is not None]
            if not events:
                return taken
            try:
                self._playbook.record(
                    events,
                    who=who,
                    unless=Unless.heard(seen, ids),
                    cases=[one.hearing.known_case() for one in taken if one.teaches],
                    rows=_remembered_truths(memory, taken),
                )
                return taken
            except StoreConflict:  # another outcome of one of these transactions came first
                continue
        raise StoreConflict(f"other outcomes of the same transactions came first {HEARING_ATTEMPTS} times in a row")

    async def _hearings(
        self,
        outcomes: Sequence[Outcome],
        transactions: Sequence[Transaction | None],
        pasts: dict[str, Past],
        judgements: Sequence[Judgement] | None,
        memory: EntityMemory | None,
    ) -> list[Hearing]:
        """Each outcome with the decision it is about and the facts that were known then."""
        decisions = [_latest_decision(pasts.get(one.transaction_id), self._options.node) for one in outcomes]
        undecided = [None if decision else one for one, decision in zip(transactions, decisions, strict=True)]
        if memory is not None and any(undecided):
            undecided = memory.told(list(zip(outcomes, undecided, strict=True)), self._playbook.ledger)
        unknown = zip(outcomes, decisions, undecided, strict=True)
        bare = {outcome.transaction_id for outcome, decision, one in unknown if decision is None and one is None}
        kept = self._playbook.ledger.known_cases(bare) if bare else {}
        hearings = []
        for place, (outcome, decision) in enumerate(zip(outcomes, decisions, strict=True)):
            judgement = judgements[place] if judgements else await self._judged(outcome, decision)
            known = kept.get(outcome.transaction_id)
            subject = undecided[place]
            about: tuple[Transaction | None, dict[str, FactValue], str]
            if decision is not None:
                about = (decision.transaction, decision.facts, decision.reader or "0")
            elif subject is None and known is not None:  # it was learnt from before
                about = (known.case.transaction, dict(known.facts), known.reader)
            else:
                about = (subject, (facts_of(subject) if subject else _NO_FACTS).facts, READER)
            hearings.append(Hearing(outcome, decision, *about, judgement, is_new=subject is not None))
        return hearings

    async def _judged(self, outcome: Outcome, decision: Decision | None) -> Judgement:
        if decision is None:
            return _NOT_DECIDED
        if decision.verdict is Verdict.REVIEW:
            return _LEFT_TO_A_PERSON
        return await self._judge.rule(decision.transaction.text, str(decision.verdict), str(outcome.truth))


_NOT_DECIDED = Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="no decision was made on it")
_LEFT_TO_A_PERSON = Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="it was left to a person to decide")


def _latest_decision(past: Past | None, node: str) -> Decision | None:
    made = [decision for decision in past.decisions if decision.node == node] if past else []
    return made[-1] if made else None


def _remembered_truths(memory: EntityMemory | None, taken: Sequence[Taken]) -> RowsChange | None:
    """What outcomes add to the memory of entities, and before them transactions that were never decided."""
    if memory is None:
        return None
    truths = [
        (one.hearing.outcome, one.hearing.subject if one.hearing.is_new else None)
        for one in taken
        if one.heard is not None and not one.hearing.is_opinion
    ]
    return memory.hearing(truths) if truths else None
