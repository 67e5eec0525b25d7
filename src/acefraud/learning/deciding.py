"""Deciding with a playbook: decisions that are recorded, scores that are not, and both explained."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, overload

from acefraud.core.decision import Decision, DecisionRecord
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import DecidingRule
from acefraud.core.table import FactTable
from acefraud.core.transaction import Case, Transaction
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets import SchemaMapping, mapping_of
from acefraud.engine.decider import COMPATIBLE, ENGINE, DecisionList, DecisionSequence, EmbeddedDecisions, remarks_on
from acefraud.engine.entity_memory import Drafted, EntityMemory, memory_for, rows_with_history
from acefraud.engine.familiarity import CheckedInput, FactChanges, FamiliarFacts, fact_changes
from acefraud.engine.inputs import (
    RememberedMapping,
    TransactionInput,
    TransactionsInput,
    as_transaction,
    as_transactions,
)
from acefraud.engine.models import Decider
from acefraud.engine.options import LearnerOptions
from acefraud.engine.own_agents import Context, select_context
from acefraud.engine.rule_context import ReviewCapacity, ReviewsLeft, RuleContext, columns_in_context, ruling_of
from acefraud.engine.score import AdditiveScore, BacktestScores, Scores, backtest_scores, score
from acefraud.errors import CannotExplain, point_out
from acefraud.facts.extraction import KnownFacts, facts_in
from acefraud.learning.decision_recorder import DecisionRequest, record_decisions
from acefraud.llm.synchronous import blocking_twin, run_sync
from acefraud.roles.protocols import Agent
from acefraud.selection.hybrid import HybridSelector, Setup
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arguments import check_type


@dataclass(frozen=True, slots=True)
class RecordedDecisions:
    """Decisions as they were recorded."""

    decisions: DecisionSequence
    known: set[str]
    """The ids of those that were recorded before."""
    at: datetime
    """When the others were recorded."""
    checked: Sequence[CheckedInput] = ()
    """What is unusual about the request of each, if they were made for requests."""


def not_repeatable(decision: Decision, selector: HybridSelector, options: LearnerOptions) -> str:
    """Why a decision of the embedded engine cannot be made again with a selector and options; empty if it can."""
    if decision.engine not in COMPATIBLE:
        return f"it was made by version {decision.engine} of the engine, and this is {ENGINE}"
    trace = decision.selection
    then = Setup(decision.revision, trace.seed, trace.embedder, trace.settings)
    if then != selector.setup(decision.revision, options.n_bullets):
        return f"it was made with another selector ({trace.embedder}, {trace.settings}, seed {trace.seed})"
    return ""


def _waits(learner: Deciding) -> bool:
    return learner.waits


class Deciding:
    """The methods of a `Learner` that decide, score and explain. They never change the playbook."""

    def __init__(
        self, playbook: BulletPlaybook, agent: Agent, selector: HybridSelector, options: LearnerOptions
    ) -> None:
        self.playbook, self.agent, self.selector, self.options = playbook, agent, selector, options
        self._decider = Decider(selector, options)
        self._capacity = ReviewCapacity(playbook.ledger, options.node)
        self._familiar = FamiliarFacts(playbook, options)
        self._mapping = RememberedMapping(playbook.snapshot().mapping, strict=options.strict)
        self._may_wait = False
        """Whether a decision of this learner was made on a transaction whose outcome came before it."""

    # --- recorded decisions ---

    async def decide(self, transaction: TransactionInput) -> Decision:
        """The decision on one transaction. It is recorded.

        >>> from acefraud import BulletPlaybook, Learner, Transaction
        >>> learner = Learner(BulletPlaybook())
        >>> decision = learner.decide_sync(Transaction(id="t1", text="$12 coffee, account 5 years old"))
        >>> str(decision.verdict)
        'APPROVE'
        >>> str(learner.decide_sync({"amount": 900, "emulator": True}).verdict)
        'DECLINE'
        """
        snapshot = self._newest()
        given = as_transaction(transaction, self._mapping_of(snapshot), for_many="decide_all")
        return (await self._decided([given], snapshot))[0]

    async def decide_all(self, transactions: TransactionsInput) -> DecisionSequence:
        """The decisions on many transactions, on the newest revision of the playbook. They are recorded, all or none.

        A data frame (pandas, polars, pyarrow) is read with the mapping that the playbook was trained with.

        If a history is kept, each transaction gets the facts from its past, and counts for those after it. The reasons
        and the trace of a decision are built when you look at it.

        >>> from acefraud import BulletPlaybook, Learner, Transaction
        >>> orders = [Transaction(id="t1", facts={"amount": 12}), Transaction(id="t2", facts={"emulator": True})]
        >>> [str(one.verdict) for one in Learner(BulletPlaybook()).decide_all_sync(orders)]
        ['APPROVE', 'DECLINE']
        """
        snapshot = self._newest()
        given = as_transactions(transactions, self._mapping_of(snapshot), for_one="decide")
        return await self._decided(list(given), snapshot)  # rows of columns are made once

    async def _decided(self, given: Sequence[Transaction], snapshot: Snapshot) -> DecisionSequence:
        """Recorded decisions, with a warning for all that is unusual about them."""
        decisions = (await self._decide(self._checked(given, snapshot), snapshot)).decisions
        point_out(*remarks_on(decisions))
        return decisions

    async def decide_for(self, requests: Sequence[DecisionRequest], *, since: int) -> RecordedDecisions:
        """The decisions on transactions that come with the key of a request, recorded with these keys, all or none.

        Raises AlreadyAnswered, with nothing recorded, if one of the requests was answered, or its transaction decided,
        since an event. That is the last one that the caller has read.
        """
        snapshot = self.playbook.snapshot()
        checked = [self._check([request.to_decide], snapshot) for request in requests]
        given = [transaction for each in checked for transaction in each.transactions]
        return replace(await self._decide(given, snapshot, requests, since=since), checked=checked)

    async def _decide(
        self,
        transactions: Sequence[Transaction],
        snapshot: Snapshot,
        requests: Sequence[DecisionRequest] = (),
        *,
        since: int | None = None,
    ) -> RecordedDecisions:
        given = Drafted.of(self._in_context(transactions, snapshot), snapshot.mapping, self.playbook.ledger)
        reviews = self._capacity.left(snapshot, self.playbook.clock)
        decisions = await self._decider.decide(given.transactions, snapshot, self.agent, reviews=reviews)
        records = (
            decisions.records
            if isinstance(decisions, EmbeddedDecisions)
            else [DecisionRecord.whole(decision) for decision in decisions]
        )
        kept = [new.kept(record.id) for new, record in zip(requests, records, strict=True)] if requests else []
        known, at, repeated = record_decisions(self.playbook, self.options.node, records, given, kept, since=since)
        self._may_wait |= repeated
        if known and not isinstance(decisions, EmbeddedDecisions):  # what the engine computes again is the same
            recorded = self.playbook.ledger.decisions(known)
            decisions = DecisionList([recorded.get(decision.id, decision) for decision in decisions])
        return RecordedDecisions(decisions, known, at)

    def _checked(self, given: Sequence[Transaction], snapshot: Snapshot) -> Sequence[Transaction]:
        """Transactions as they are decided, with a warning for all that is unusual about them."""
        checked = self._check(given, snapshot)
        point_out(*checked.remarks)
        return checked.transactions

    def _check(self, given: Sequence[Transaction], snapshot: Snapshot) -> CheckedInput:
        checked = self._familiar.checked(given, snapshot)
        if self.options.strict:
            checked.refuse()
        return checked

    def check(self, transactions: TransactionsInput) -> CheckedInput:
        """What is unusual about transactions, and the transactions as they would be decided. Nothing is decided.

        That is facts and entities that the playbook does not know, with the nearest that it does; facts that it relies
        on and that are missing; and times that cannot be. `refuse` of the answer raises for what a strict learner does
        not take.

        >>> from acefraud import BulletPlaybook, Learner
        >>> [(one.name, one.nearest) for one in Learner(BulletPlaybook()).check([{"amout": 900}]).unfamiliar_facts]
        [('amout', 'amount')]
        """
        snapshot = self.playbook.snapshot()
        return self._familiar.checked(as_transactions(transactions, self._mapping_of(snapshot)), snapshot)

    def fact_changes(self) -> FactChanges:
        """How the facts of the latest day of decisions differ from those of the cases that were learnt from."""
        self.playbook.refresh()
        return fact_changes(self.playbook, self.options.node)

    def reviews_left(self) -> ReviewsLeft | None:
        """How many cases were sent to people today, and what a review has to save now; None unless there is a limit.

        >>> from acefraud import BulletPlaybook, Learner
        >>> playbook = BulletPlaybook()
        >>> playbook.set_threshold(review="false_decline=15,missed_fraud=200,review=5,per_day=50")
        >>> left = Learner(playbook).reviews_left()
        >>> left.used, left.per_day, left.cut
        (0, 50, 0.0)
        """
        return self._capacity.left(self._newest(), self.playbook.clock)

    @property
    def waits(self) -> bool:
        """Whether deciding waits for a model."""
        return self._decider.waits(self.agent)

    @property
    def threshold(self) -> float:
        """The probability of fraud from which a transaction is declined."""
        calibration = self._newest().calibration(self.options.node)
        return calibration.threshold if calibration else self.options.threshold

    # --- scores, which are not recorded ---

    # A text and a dict can be iterated over too; the first variant that fits counts.
    @overload
    async def score(self, transactions: TransactionInput) -> Decision: ...  # type: ignore[overload-overlap]

    @overload
    async def score(self, transactions: TransactionsInput) -> DecisionSequence: ...

    async def score(self, transactions: TransactionInput | TransactionsInput) -> Decision | DecisionSequence:
        """The decisions that `decide` and `decide_all` would make now, history included. Nothing is recorded.

        >>> from acefraud import BulletPlaybook, Learner, Transaction
        >>> playbook = BulletPlaybook()
        >>> decision = Learner(playbook).score_sync(Transaction(id="t1", facts={"amount": 12}))
        >>> str(decision.verdict), playbook.seq
        ('APPROVE', 0)
        """
        snapshot = self._newest()
        mapping, one = self._mapping_of(snapshot), isinstance(transactions, Transaction | Mapping | str)
        if isinstance(transactions, Transaction | Mapping | str):
            transactions = [as_transaction(transactions, mapping, name="transactions")]
        given = self._with_all_facts(self._checked(as_transactions(transactions, mapping), snapshot), snapshot)
        reviews = self._capacity.left(snapshot, self.playbook.clock)
        decisions = await self._decider.decide(given, snapshot, self.agent, reviews=reviews)
        point_out(*remarks_on(decisions))
        return decisions[0] if one else decisions

    @overload
    def score_sync(self, transactions: TransactionInput) -> Decision: ...  # type: ignore[overload-overlap]

    @overload
    def score_sync(self, transactions: TransactionsInput) -> DecisionSequence: ...

    def score_sync(self, transactions: TransactionInput | TransactionsInput) -> Decision | DecisionSequence:
        """`score` for callers that do not await."""
        scoring: Coroutine[Any, Any, Decision | DecisionSequence] = self.score(transactions)
        return run_sync(scoring, waits=self.waits)

    def score_all(self, transactions: TransactionsInput, *, every_bullet: bool = False) -> Scores:
        """The probabilities of `decide_all` with the embedded engine, as columns. Nothing is recorded.

        With `every_bullet` all bullets that fire count, not only those that the selector picks. If a history is kept,
        rows take their turn in the order of time, where `decide_all` takes them as they come, and none has a label yet;
        `acefraud.backtest` scores labelled rows, each with the labels that had arrived by then.

        >>> from acefraud import BulletPlaybook, Learner, Transaction
        >>> orders = [Transaction(id="t1", facts={"amount": 12}), Transaction(id="t2", facts={"emulator": True})]
        >>> scores = Learner(BulletPlaybook()).score_all(orders)
        >>> scores.probabilities.round(2).tolist(), scores.cited.tolist()
        ([0.27, 0.57], [0, 0])
        """
        snapshot = self._newest()
        given = as_transactions(transactions, self._mapping_of(snapshot), for_one="score", ids=not every_bullet)
        rows = self._rows_in_context(given, snapshot)
        return score(rows, snapshot, None if every_bullet else self.selector, self.options)

    def facts_of(self, transactions: TransactionsInput) -> FactTable:
        """Every fact that the transactions would be decided on now: given, read from texts, times and history.

        >>> from acefraud import BulletPlaybook, Learner
        >>> Learner(BulletPlaybook()).facts_of(["$500 purchase through a VPN"]).rows()
        [{'amount': 500.0, 'vpn': True}]
        """
        snapshot = self._newest()
        return facts_in(self._rows_in_context(as_transactions(transactions, self._mapping_of(snapshot)), snapshot))

    def score_facts(self, facts: FactTable) -> Scores:
        """The scores of transactions whose facts are all known, with every bullet that fires."""
        return self.additive_score().scores(facts)

    def additive_score(self) -> AdditiveScore:
        """The newest playbook as one sum over facts, as `score_all` with `every_bullet` adds it up."""
        return AdditiveScore.of(self._newest(), self.options.node)

    def backtest_scores(
        self, cases: Sequence[Case], waiting: Sequence[Transaction] = (), *, every_bullet: bool = False
    ) -> BacktestScores:
        """What the playbook would have decided on labelled history. `acefraud.backtest` makes figures of it."""
        given = Cases.of(cases)
        given = given.with_facts(columns_in_context(given.transactions, self._newest(), self.playbook.clock).facts)
        selector = None if every_bullet else self.selector
        return backtest_scores(self.playbook, given, Transactions.of(waiting), selector, self.options)

    async def context(self, transaction: TransactionInput, n_bullets: int | None = None) -> Context:
        """The bullets that would be selected for a transaction or a text now, for an agent of your own.

        Nothing is decided or recorded. Paste its `prompt` into that of your agent, and report what the agent decided
        with `record_trace`. Without `n_bullets` there are as many as a decision may cite.

        >>> from acefraud import BulletPlaybook, Learner
        >>> playbook = BulletPlaybook()
        >>> bullet_id = playbook.add_bullet("A new device and a VPN = 95% fraud")
        >>> context = Learner(playbook).context_sync("$900 purchase through a VPN on a new device")
        >>> [(one.content, one.applies, one.claim) for one in context.bullets]
        [('A new device and a VPN = 95% fraud', True, '95% fraud')]
        >>> print(context.prompt[context.prompt.index("Bullets:") :])
        Bullets:
        [b-3fc2238a] DECLINE, unverified
        <bullets>
        [b-3fc2238a] A new device and a VPN
        </bullets>
        """
        snapshot = self._newest()
        given = as_transaction(transaction, self._mapping_of(snapshot))
        (known,) = self._with_all_facts([given], snapshot)
        wanted = self.options.n_bullets if n_bullets is None else n_bullets
        return await select_context(self._decider, known, snapshot, wanted)

    # --- explanations ---

    async def decide_on(self, transaction: TransactionInput, snapshot: Snapshot) -> Decision:
        """The decision on a given revision. Nothing is recorded."""
        given = as_transaction(transaction, self._mapping_of(snapshot))
        return (await self._decider.decide([given], snapshot, self.agent))[0]

    async def replay(self, decision: Decision) -> Decision:
        """The decision again, on the revision of the playbook that it was made with, from the ledger alone.

        >>> from acefraud import BulletPlaybook, Learner, Transaction
        >>> playbook = BulletPlaybook()
        >>> learner = Learner(playbook)
        >>> decision = learner.decide_sync(Transaction(id="t1", facts={"vpn": True}))
        >>> _ = playbook.add_bullet("VPN: decline")
        >>> learner.replay_sync(decision).same_as(decision)
        True
        """
        snapshot = self.playbook.snapshot_at(decision.revision)
        known = [KnownFacts(decision.facts, decision.unread)]
        return (await self._decider.decide([decision.transaction], snapshot, self.agent, known=known))[0]

    async def explain(self, decision: Decision) -> Decision:
        """A recorded decision with its trace and the texts of its reasons.

        A decision of the embedded engine is recorded without them, and made again on its revision of the playbook.
        Raises CannotExplain if that is not possible, or does not give the same.
        """
        check_type("decision", decision, Decision, "a Decision")
        if decision.has_trace or not decision.digest:
            return decision
        if reason := not_repeatable(decision, self.selector, self.options):
            raise CannotExplain(reason)
        again = await self.replay(decision)
        if not again.same_as(decision):
            raise CannotExplain("deciding again gives another trace")
        recorded = ("id", "reader", "engine", "digest", "probability")
        return again.model_copy(update={name: getattr(decision, name) for name in recorded})

    def ruling(self, decision: Decision) -> DecidingRule:
        """Which rule gave a decision its verdict: the threshold, a band, costs, the day's limit, a policy or a model.

        >>> from acefraud import BulletPlaybook, Learner
        >>> playbook = BulletPlaybook()
        >>> playbook.set_threshold(review="false_decline=15,missed_fraud=200")
        >>> learner = Learner(playbook)
        >>> learner.ruling(learner.decide_sync({"amount": 12})).words
        'expected costs: APPROVE 53.79, DECLINE 10.97'
        """
        return ruling_of(decision, self.playbook.snapshot_at(decision.revision))

    decide_sync = blocking_twin(decide, _waits)
    decide_all_sync = blocking_twin(decide_all, _waits)
    decide_for_sync = blocking_twin(decide_for, _waits)
    context_sync = blocking_twin(context)
    decide_on_sync = blocking_twin(decide_on, _waits)
    replay_sync = blocking_twin(replay, _waits)
    explain_sync = blocking_twin(explain, _waits)

    # --- transactions with all their facts ---

    def read(self, transactions: TransactionsInput) -> Sequence[Transaction]:
        """Dicts, texts or the rows of a data frame as the transactions that would be decided."""
        return as_transactions(transactions, self._mapping_of(self._newest()))

    @property
    def mapping(self) -> SchemaMapping | None:
        """How the history that the playbook was last trained on was read; None if it was never trained."""
        return mapping_of(self._newest().mapping)

    def memory(self) -> EntityMemory | None:
        """The memory of entities, if the latest training asks for one."""
        return memory_for(self._newest().mapping)

    def _newest(self, *, counted: bool = True) -> Snapshot:
        self.playbook.refresh()
        return self.playbook.snapshot() if counted else self.playbook.uncounted()

    def _mapping_of(self, snapshot: Snapshot) -> RememberedMapping:
        """The mapping to read records with: the latest training may have brought another."""
        if self._mapping.written != snapshot.mapping:
            self._mapping = RememberedMapping(snapshot.mapping, strict=self.options.strict)
        return self._mapping

    def _in_context(self, transactions: Iterable[Transaction], snapshot: Snapshot) -> list[Transaction]:
        """The transactions with the facts of their time, and with those that only rules ask for."""
        return RuleContext.of(snapshot).added_to(list(transactions), self.playbook.clock)

    def _with_all_facts(self, transactions: Iterable[Transaction], snapshot: Snapshot) -> list[Transaction]:
        """The transactions with every fact that they would be decided on, those of the history included."""
        given, memory = self._in_context(transactions, snapshot), memory_for(snapshot.mapping)
        return given if memory is None else memory.enriched(given, self.playbook.ledger)

    def _rows_in_context(self, transactions: Iterable[Transaction], snapshot: Snapshot) -> Transactions:
        """Transactions in columns, with the facts of the history if one is kept."""
        rows = columns_in_context(transactions, snapshot, self.playbook.clock)
        return rows_with_history(rows, snapshot, self.playbook.ledger)
