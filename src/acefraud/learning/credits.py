"""What outcomes and silence add to the counters of bullets, and what a revised outcome takes back.

If a label arrives twice, there are three cases:

- the same outcome (`Outcome.key`, or the same truth and source without id and time): it is not recorded;
- the same truth under another id, time or source: it is recorded as a revision and counts nothing;
- another truth: it is recorded as a revision. Its credits undo all that the earlier outcomes counted and then count the
  new truth, so every counter is as if only this one had arrived.

The latest truth is the one that arrives last, whatever its `at` says. The first truth that reaches a decision counts,
even if the same outcome was heard before the decision was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain
from operator import add

from acefraud.core.bullet_table import BulletTable
from acefraud.core.decision import Decision
from acefraud.core.events import SILENCE_MATURED, Credit, OutcomeHeard, SilenceMatured
from acefraud.core.ledger import DecisionFilter, KnownCase, Precondition
from acefraud.core.outcome import Judgement, Outcome, OutcomeFeed, OutcomeSource, Ruling, is_known
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import Case, FactValue, Transaction, Verdict
from acefraud.engine.entity_memory import memory_for
from acefraud.engine.inputs import nearly_reported
from acefraud.learning.outcome_feeds import decisions_of, truths_in
from acefraud.storage.changes import retried_on_conflict
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.validation import construct_unchecked


@dataclass(frozen=True, slots=True)
class HeardOutcome:
    """An outcome with its judgement, the decision it is about, the facts known then, and the event that records it."""

    outcome: Outcome
    decision: Decision | None
    transaction: Transaction | None
    """None if it is unknown."""
    facts: Mapping[str, FactValue]
    """As they were when it was decided, or as they are now if it never was."""
    reader: str
    """The version of the reader that extracted the facts."""
    judgement: Judgement
    is_new: bool = False
    """Whether the transaction came with the outcome and was never seen before."""
    event: OutcomeHeard | None = None
    """None if the outcome was known already, or is not credited yet."""
    already_known: bool = False
    """Whether its truth was heard before. If not, it is the first of its transaction, or a different one."""

    @property
    def is_opinion(self) -> bool:
        """Whether it comes from a judge who does not know the truth. Nothing is measured by it or learnt from it."""
        return self.outcome.is_opinion

    @property
    def tells_news(self) -> bool:
        """Whether it is a truth that is recorded."""
        return self.event is not None and not self.is_opinion

    @property
    def teaches(self) -> bool:
        """Whether its case is remembered and learnt from."""
        return self.event is not None and self.event.remembered

    def known_case(self) -> KnownCase:
        """The case to remember."""
        assert self.transaction is not None
        case = Case(transaction=self.transaction, is_fraud=self.outcome.is_fraud, known_at=self.outcome.at)
        return KnownCase(case, self.facts, self.reader)


def credit_outcomes(
    outcomes: Sequence[HeardOutcome],
    before: Mapping[str, Sequence[OutcomeHeard]],
    snapshot: Snapshot,
    node: str,
    *,
    defers: Sequence[bool],
) -> list[HeardOutcome]:
    """Outcomes with the events that record them, one after another: later ones in a batch know those before them.

    `before` has the outcomes recorded so far, by transaction id. Where the feed `defers`, the first truth of a decision
    is only noted; it counts with the silence around it.
    """
    known = {name: [event for event in events if event.node == node] for name, events in before.items()}
    credited = []
    for judged, fired, defer in zip(outcomes, _fired(snapshot.table, outcomes), defers, strict=True):
        past = known.setdefault(judged.outcome.transaction_id, [])
        heard = _credited(judged, past, fired, snapshot.table, node)
        counted = any(not event.deferred and not event.outcome.is_opinion for event in past)
        event = heard.event
        if event is not None:
            if defer and heard.decision is not None and not counted and not heard.is_opinion:
                event = event.model_copy(update={"credits": (), "remembered": False, "deferred": True})
                heard = replace(heard, event=event)
            past.append(event)
        credited.append(heard)
    return credited


def _credited(
    judged: HeardOutcome, before: Sequence[OutcomeHeard], fired: Sequence[str], table: BulletTable, node: str
) -> HeardOutcome:
    truths = [event for event in before if not event.outcome.is_opinion]
    known = before if judged.is_opinion else truths
    first_of_a_decision = judged.decision is not None and bool(known) and known[-1].decision_id is None
    repeats_latest = is_known(judged.outcome, [event.outcome for event in known[-1:]])
    there = is_known(judged.outcome, [event.outcome for event in before])
    if there and not (first_of_a_decision and repeats_latest):
        return replace(judged, already_known=True)
    news = not known or known[-1].outcome.is_fraud != judged.outcome.is_fraud or first_of_a_decision
    credits = _credits_for(judged, fired, table) if news else []
    taught = next((event for event in truths if event.remembered), None)
    if taught is not None:  # bullets learnt since the case was first learnt from have no part in a revision
        then = {credit.bullet_id for credit in taught.credits}
        credits = [credit for credit in credits if credit.bullet_id in then or credit.selected]
    undone = [credit.reversed() for credit in summed(credit for event in before for credit in event.credits)]
    event = construct_unchecked(
        OutcomeHeard,
        kind="outcome_revised" if before else "outcome_heard",
        node=node,
        outcome=judged.outcome,
        decision_id=judged.decision.id if judged.decision else None,
        judgement=judged.judgement,
        credits=(*undone, *credits) if news else (),
        remembered=news and judged.transaction is not None and not judged.is_opinion,
        deferred=False,
    )
    return replace(judged, event=event, already_known=not news)


def summed(credits: Iterable[Credit]) -> list[Credit]:
    """One credit for each bullet that some add anything to."""
    counted: dict[str, tuple[int, ...]] = {}
    for credit in credits:
        counted[credit.bullet_id] = tuple(map(add, counted.get(credit.bullet_id, (0,) * 5), credit.counts))
    return [Credit(bullet_id, *counts) for bullet_id, counts in counted.items() if any(counts)]


def _credits_for(judged: HeardOutcome, fired: Sequence[str], table: BulletTable) -> list[Credit]:
    """Helpful or harmful for each bullet that was used, and the own record of each that fired."""
    if judged.transaction is None:
        return []
    decision, right, fraud = judged.decision, judged.judgement.is_correct, int(judged.outcome.is_fraud)
    used = set(decision.cited) if decision and right is not None else set()
    use = int(right is True), int(right is False), 1
    credits = [_credit(name, *(use if name in used else (0, 0, 0)), 1, fraud) for name in fired]
    unproven = [name for name in used.difference(fired) if name in table]
    return credits + [_credit(name, *use) for name in sorted(unproven, key=table.row)]


_credit = lru_cache(maxsize=65_536)(Credit)
"""Cached, because every outcome brings the same few credits."""


def _fired(table: BulletTable, outcomes: Sequence[HeardOutcome]) -> list[list[str]]:
    """For each outcome the bullets in use whose condition holds, selected or not, in their order.

    They are those of the node that decided, or of all nodes; none for an opinion.
    """
    fired: list[list[str]] = [[] for _ in outcomes]
    nodes: dict[str | None, list[int]] = {}
    for index, judged in enumerate(outcomes):
        if judged.transaction is not None and not judged.is_opinion:
            nodes.setdefault(judged.decision.node if judged.decision else None, []).append(index)
    for node, indices in nodes.items():
        in_use = table.not_retired() if node is None else table.of_node(table.node(node))
        rows = table.wording.conditions.proven_rows([outcomes[index].facts for index in indices], in_use.bits)
        for index, some in zip(indices, rows, strict=True):
            fired[index] = [table.bullets[row].id for row in some]
    return fired


AT_ONCE = 5_000
"""Decisions of one event."""
STEPS = 60
"""The time of silence is cut into so many steps, so that a quiet service does not write an event for each decision."""


@retried_on_conflict
def mature(playbook: BulletPlaybook, node: str, now: datetime) -> SilenceMatured | None:
    """Let the next decisions without a report count as legitimate, if enough time has passed; None if there are none.

    It is tried again if a report on one of them, or another process, was faster.
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
    latest = {record.transaction_id: record for _, record in decisions_of(events, node)}
    unclear = nearly_reported(latest, playbook.ledger)
    told = playbook.ledger.outcome_events(latest.keys() - unclear)
    known = playbook.ledger.known_cases(latest.keys() - unclear)
    counted = [
        _counted(record.decision, truths_in(told.get(name, ()), node), feed)
        for name, record in latest.items()
        if name not in unclear and name not in known
    ]
    judged = [heard for heard in counted if heard is not None]
    silent = [heard for heard in judged if heard.outcome.source is OutcomeSource.SILENCE]
    snapshot = playbook.snapshot()
    fired = _fired(snapshot.table, judged)
    credits = (_credits_for(heard, names, snapshot.table) for heard, names in zip(judged, fired, strict=True))
    matured = SilenceMatured(
        node=node,
        until=until if len(events) < AT_ONCE else events[-1].at,
        through=events[-1].seq,
        silent=len(silent),
        frauds=sum(heard.outcome.is_fraud for heard in judged),
        cases=len(judged),
        credits=tuple(summed(chain.from_iterable(credits))),
        unclear=tuple(sorted(unclear)),
    )
    memory = memory_for(snapshot.mapping)
    playbook.record(
        [matured],
        preconditions=[
            Precondition.no_outcomes_since(seen, latest),
            Precondition(seen, frozenset({SILENCE_MATURED}), {node}),
        ],
        cases=[heard.known_case() for heard in judged],
        rows=memory.adding_outcomes([(heard.outcome, None) for heard in silent]) if memory and silent else None,
    )
    return matured


def _counted(decision: Decision, truths: Sequence[OutcomeHeard], feed: OutcomeFeed) -> HeardOutcome | None:
    """A decision judged by its deferred truth, or as legitimate if there was no report, when its time has come.

    None if its truth has counted when it was heard, or if nothing can be known of it.
    """
    if (truths and not truths[-1].deferred) or (decision.verdict is Verdict.DECLINE and not feed.declines_pass):
        return None
    silent = Outcome(transaction_id=decision.transaction.id, is_fraud=False, source=OutcomeSource.SILENCE)
    outcome = truths[-1].outcome if truths else silent
    ruling = Ruling.CORRECT if decision.verdict is outcome.truth else Ruling.INCORRECT
    if decision.verdict is Verdict.REVIEW:
        ruling = Ruling.UNJUDGED
    judgement = Judgement(ruling=ruling, confidence=float(ruling is not Ruling.UNJUDGED))
    return HeardOutcome(outcome, decision, decision.transaction, decision.facts, decision.reader or "0", judgement)


def with_silence(
    playbook: BulletPlaybook, outcomes: Mapping[str, Sequence[OutcomeHeard]], node: str
) -> dict[str, list[OutcomeHeard]]:
    """The outcomes heard of transactions, by id, with what silence has counted of them as if it had been heard."""
    feed, whole = playbook.feed(node), {name: list(heard) for name, heard in outcomes.items()}
    if not feed.silent_through:
        return whole
    wanted = DecisionFilter(transaction_ids=list(outcomes))
    made = playbook.ledger.find_decisions(wanted, before=feed.silent_through + 1, limit=AT_ONCE, newest_first=False)
    told = playbook.ledger.outcome_events(outcomes)
    decided: dict[str, list[tuple[int, Decision]]] = {}
    for event, record in decisions_of(made, node):
        decided.setdefault(record.transaction_id, []).append((event.seq, record.decision))
    for name, decisions in decided.items():
        first = decisions[0][0]
        events = playbook.ledger.find_events({SILENCE_MATURED}, subject=node, after=first, limit=2 * STEPS)
        silences = [(event.seq, event.payload) for event in events if isinstance(event.payload, SilenceMatured)]
        matured_at, matured = next((pair for pair in silences if pair[1].through >= first), (0, None))
        if matured is None or name in matured.unclear:
            continue
        heard = [each for each in told.get(name, ()) if isinstance(each.payload, OutcomeHeard)]
        before = [each for each in heard if each.seq < matured_at]
        decision = [each for seq, each in decisions if seq <= matured.through][-1]
        judged = _counted(decision, truths_in(before, node), feed)
        if judged is not None:
            whole[name].insert(len(before), _heard_alone(playbook.snapshot(), judged, matured))
    return whole


def _heard_alone(snapshot: Snapshot, judged: HeardOutcome, matured: SilenceMatured) -> OutcomeHeard:
    """The event with which an outcome would have counted, had it been heard by itself."""
    (heard,) = credit_outcomes([judged], {}, snapshot, matured.node, defers=[False])
    assert heard.event is not None, "nothing was heard before"
    credited = {credit.bullet_id for credit in matured.credits}
    credits = [credit for credit in heard.event.credits if credit.bullet_id in credited]
    return heard.event.model_copy(update={"credits": tuple(credits)})


def left_unclear(playbook: BulletPlaybook, node: str) -> set[str]:
    """Transactions whose silence has passed without counting, because it was not clear whether they were reported."""
    if not playbook.feed(node).silent_through:
        return set()
    events = playbook.ledger.find_events({SILENCE_MATURED}, subject=node, limit=2 * STEPS, newest_first=True)
    return {name for event in events if isinstance(event.payload, SilenceMatured) for name in event.payload.unclear}
