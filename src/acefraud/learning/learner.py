"""The loop on one playbook. Deciding never changes the playbook; learning never decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Unpack, overload

from acefraud.core.arguments import check_has, check_text, check_type, check_whole
from acefraud.core.bullet import Bullet, BulletDetails, NewBullet
from acefraud.core.condition import Condition
from acefraud.core.decision import Decision
from acefraud.core.decision_record import DecisionRecord
from acefraud.core.events import THE_ENGINE, EventPayload, Reread, Reviewed, Trained
from acefraud.core.evidence import Evidence
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource
from acefraud.core.playbook import Snapshot
from acefraud.core.table import FactTable
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.core.transactions import Cases, Transactions
from acefraud.curation.curator import Curator
from acefraud.datasets import SchemaMapping
from acefraud.display.short_repr import ShortRepr, quoted
from acefraud.errors import CannotExplain, ConfigurationError, InputError
from acefraud.facts.extraction import KnownFacts, facts_in
from acefraud.facts.time_facts import with_time_facts
from acefraud.learning.additive_score import AdditiveScore
from acefraud.learning.apply_review import refit
from acefraud.learning.backtest_scores import BacktestScores, backtest_scores
from acefraud.learning.batch_scoring import Scores, score
from acefraud.learning.decider import Decider
from acefraud.learning.decision_frames import DecisionList, DecisionSequence
from acefraud.learning.decision_recorder import DecisionRecorder, DecisionRequest, ToDecide
from acefraud.learning.embedded_decisions import COMPATIBLE, ENGINE, EmbeddedDecisions
from acefraud.learning.entity_memory import EntityMemory, mapping_of, memory_for, time_facts_of
from acefraud.learning.external_traces import Trace, decision_from, trace_id, truth_of
from acefraud.learning.history_inputs import HistoryInput, as_history
from acefraud.learning.model_lessons import Proposed
from acefraud.learning.odds_calibration import FittedOdds
from acefraud.learning.options import LearnerOptions
from acefraud.learning.outcome_backlog import OutcomeBacklog, TakenIn
from acefraud.learning.outcome_intake import OutcomeRecorder
from acefraud.learning.planners import Depth, planner_for
from acefraud.learning.preview import Preview, preview
from acefraud.learning.received_outcomes import Received, receive
from acefraud.learning.reflection_policy import ReflectionPolicy
from acefraud.learning.remembered_cases import RememberedCases
from acefraud.learning.review_count import ReviewCount
from acefraud.learning.reviewer import Reviewer
from acefraud.learning.rule_checks import cases_for, rule_remarks
from acefraud.learning.rule_context import RuleContext
from acefraud.learning.selected_context import Context, select_context
from acefraud.learning.synchronous_learner import SynchronousLearner
from acefraud.learning.training import Training, TrainingOptions, written_mapping
from acefraud.learning.transaction_inputs import (
    OptionalTransactionsInput,
    OutcomeInput,
    OutcomesInput,
    RememberedMapping,
    TransactionInput,
    TransactionsInput,
    as_optional_transactions,
    as_outcome,
    as_outcomes,
    as_transaction,
    as_transactions,
)
from acefraud.roles.agent import SimpleFraudAgent
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.roles.embedded.judge import SimpleJudge
from acefraud.roles.protocols import Agent, Judge
from acefraud.roles.reflector import Reflector
from acefraud.rules.induction.fitting import probabilities
from acefraud.selection.hybrid import HybridSelector, Setup
from acefraud.storage.changes import plan_addition
from acefraud.storage.playbook import BulletPlaybook


@dataclass(frozen=True, slots=True, repr=False)
class Heard(ShortRepr):
    """What hearing one outcome did."""

    judgement: Judgement
    new_bullet: str | None = None
    """The first of the bullets that were learnt."""
    already_known: bool = False
    review: Reviewed | None = None
    """What the review that followed did, or why it declined. In a batch, the last outcome has it."""


@dataclass(frozen=True, slots=True)
class RecordedDecisions:
    """Decisions as they were recorded."""

    decisions: DecisionSequence
    known: set[str]
    """The ids of those that were recorded before."""
    at: datetime
    """When the others were recorded."""


@dataclass(frozen=True, slots=True, repr=False)
class Traced(ShortRepr):
    """What recording the decision of another agent did."""

    decision: Decision
    already_known: bool = False
    """Whether it was recorded before."""
    heard: Heard | None = None
    """What its truth did, if that was given."""


class Learner(SynchronousLearner):
    """Decides transactions with a playbook, and turns outcomes into a better one.

    A transaction is a `Transaction`, a dict such as {"amount": 250, "country": "FR"}, or a text. Every method that has
    to be awaited has a twin that blocks instead: `learner.decide_sync(...)` is `await learner.decide(...)`.

    It works on column tables; one transaction is a table of one row. What it remembers, and when it reviews, follows
    from the ledger alone. So several learners on one file learn from all outcomes.

    >>> from acefraud import BulletPlaybook, Outcome, Transaction
    >>> playbook = BulletPlaybook()
    >>> bullet_id = playbook.add_bullet("A new device and a VPN: decline")
    >>> learner = Learner(playbook)
    >>> order = Transaction(id="t1", facts={"amount": 900, "vpn": True, "new_device": True})
    >>> decision = learner.decide_sync(order)
    >>> str(decision.verdict), bullet_id in decision.cited
    ('DECLINE', True)
    >>> heard = learner.hear_sync(Outcome(transaction_id="t1", is_fraud=True))
    >>> heard.judgement.is_correct, playbook.get_bullet(bullet_id).helpful_count
    (True, 1)
    """

    def __init__(
        self,
        playbook: BulletPlaybook,
        *,
        agent: Agent | None = None,
        judge: Judge | None = None,
        reflector: Reflector | None = None,
        curator: Curator | None = None,
        selector: HybridSelector | None = None,
        policy: ReflectionPolicy | None = None,
        options: LearnerOptions | None = None,
    ) -> None:
        """`policy` says which outcomes are worth a call, if the reflector is on a model."""
        check_type("playbook", playbook, BulletPlaybook, "a BulletPlaybook, such as open_playbook(path)")
        for name, value, kind in (
            ("reflector", reflector, Reflector),
            ("curator", curator, Curator),
            ("selector", selector, HybridSelector),
            ("policy", policy, ReflectionPolicy),
            ("options", options, LearnerOptions),
        ):
            if value is not None:
                check_type(name, value, kind, f"a {kind.__name__}", ConfigurationError)
        for name, role, method in (("agent", agent, "assess"), ("judge", judge, "rule")):
            if role is not None:
                check_has(name, role, method, f"an object that plays the {name}, such as build_roles(settings).{name}")
        self.playbook = playbook
        self.options = options or LearnerOptions()
        self.agent: Agent = SimpleFraudAgent() if agent is None else agent
        self.judge: Judge = SimpleJudge() if judge is None else judge
        self.reflector = Reflector(seed=self.options.seed) if reflector is None else reflector
        self.curator = Curator() if curator is None else curator
        self.selector = HybridSelector(seed=self.options.seed) if selector is None else selector
        self._decider = Decider(self.selector, self.options)
        self._decision_recorder = DecisionRecorder(playbook, self.options.node)
        self._review_count = ReviewCount(playbook.ledger)
        self._recorder = OutcomeRecorder(playbook, self.judge, self.options)
        self._cases = RememberedCases(playbook, self.reflector.memory, self.options.node)
        self._odds = FittedOdds(playbook, self.options)
        self._planner = planner_for(self.reflector, self.options, policy)
        self._reviewer = Reviewer(playbook, self._planner, self._cases, self._odds, self.curator, self.options)
        self._backlog = OutcomeBacklog(playbook, self._recorder, self._reviewer, self.options.node)
        self._mapping = RememberedMapping(playbook.snapshot().mapping)

    def __repr__(self) -> str:
        roles = f"agent={quoted(self.agent.model, 40)}, reflector={quoted(self.reflector.model, 40)}"
        return f"Learner({self.playbook!r}, {roles})"

    # --- deciding ---

    async def decide(self, transaction: TransactionInput) -> Decision:
        """The decision on one transaction. It is recorded.

        >>> from acefraud import BulletPlaybook, Transaction
        >>> learner = Learner(BulletPlaybook())
        >>> decision = learner.decide_sync(Transaction(id="t1", text="$12 coffee, account 5 years old"))
        >>> str(decision.verdict)
        'APPROVE'
        >>> str(learner.decide_sync({"amount": 900, "emulator": True}).verdict)
        'DECLINE'
        """
        snapshot = self._newest()
        given = as_transaction(transaction, self._mapping_of(snapshot), for_many="decide_all")
        return (await self._decide([given], snapshot)).decisions[0]

    async def decide_all(self, transactions: TransactionsInput) -> DecisionSequence:
        """The decisions on many transactions, on the newest revision of the playbook. They are recorded, all or none.

        A data frame (pandas, polars, pyarrow) is read with the mapping that the playbook was trained with.

        If a history is kept, each transaction gets the facts from its past, and counts for those after it. The reasons
        and the trace of a decision are built when you look at it.

        >>> from acefraud import BulletPlaybook, Transaction
        >>> orders = [Transaction(id="t1", facts={"amount": 12}), Transaction(id="t2", facts={"emulator": True})]
        >>> [str(one.verdict) for one in Learner(BulletPlaybook()).decide_all_sync(orders)]
        ['APPROVE', 'DECLINE']
        """
        snapshot = self._newest()
        given = as_transactions(transactions, self._mapping_of(snapshot), for_one="decide")
        return (await self._decide(given, snapshot)).decisions

    async def decide_for(self, requests: Sequence[DecisionRequest], *, since: int) -> RecordedDecisions:
        """The decisions on transactions that come with the key of a request, recorded with these keys, all or none.

        Raises AlreadyAnswered, with nothing recorded, if one of the requests was answered, or its transaction decided,
        since an event.
        """
        return await self._decide([one.transaction for one in requests], self._newest(), requests, since=since)

    async def _decide(
        self,
        transactions: Sequence[Transaction],
        snapshot: Snapshot,
        requests: Sequence[DecisionRequest] = (),
        *,
        since: int | None = None,
    ) -> RecordedDecisions:
        given = ToDecide.of(self._in_context(transactions, snapshot), snapshot, self.playbook.ledger)
        reviews_today = self._reviews_today(snapshot)
        decisions = await self._decider.decide(given.transactions, snapshot, self.agent, reviews_today=reviews_today)
        records = (
            decisions.records
            if isinstance(decisions, EmbeddedDecisions)
            else [DecisionRecord.whole(decision) for decision in decisions]
        )
        kept = [new.kept(record.id) for new, record in zip(requests, records, strict=True)] if requests else []
        known, at = self._decision_recorder.record(records, given, kept, since=since)
        if known and not isinstance(decisions, EmbeddedDecisions):  # what the engine computes again is the same
            recorded = self.playbook.ledger.decisions(known)
            decisions = DecisionList([recorded.get(one.id, one) for one in decisions])
        return RecordedDecisions(decisions, known, at)

    # A text and a dict can be iterated over too; the first variant that fits counts.
    @overload
    async def score(self, transactions: TransactionInput) -> Decision: ...  # type: ignore[overload-overlap]

    @overload
    async def score(self, transactions: TransactionsInput) -> DecisionSequence: ...

    async def score(self, transactions: TransactionInput | TransactionsInput) -> Decision | DecisionSequence:
        """The decisions that `decide` and `decide_all` would make now, history included. Nothing is recorded.

        >>> from acefraud import BulletPlaybook, Transaction
        >>> playbook = BulletPlaybook()
        >>> decision = Learner(playbook).score_sync(Transaction(id="t1", facts={"amount": 12}))
        >>> str(decision.verdict), playbook.seq
        ('APPROVE', 0)
        """
        snapshot = self._newest()
        mapping, one = self._mapping_of(snapshot), isinstance(transactions, Transaction | Mapping | str)
        if isinstance(transactions, Transaction | Mapping | str):
            transactions = [as_transaction(transactions, mapping, name="transactions")]
        given = self._with_all_facts(as_transactions(transactions, mapping), snapshot)
        decisions = await self._decider.decide(given, snapshot, self.agent, reviews_today=self._reviews_today(snapshot))
        return decisions[0] if one else decisions

    async def context(self, transaction: TransactionInput, n_bullets: int | None = None) -> Context:
        """The bullets that would be selected for a transaction or a text now, for an agent of your own.

        Nothing is decided or recorded. Paste its `prompt` into that of your agent, and report what the agent decided
        with `record_trace`. Without `n_bullets` there are as many as a decision may cite.

        >>> from acefraud import BulletPlaybook
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
        return await select_context(self._decider, known, snapshot, node=self.options.node, n_bullets=wanted)

    async def record_trace(
        self,
        transaction: TransactionInput,
        verdict: Verdict | str,
        *,
        probability: float | None = None,
        cited: Sequence[str] = (),
        agent: str = "",
        reasons: str = "",
        truth: bool | Outcome | None = None,
        who: str,
    ) -> Traced:
        """Record what an agent of your own decided, so that the bullets it `cited` are counted when the truth comes.

        The `truth` may come along: True for fraud, or an `Outcome`. If nobody knows it, `judge_pending` asks the judge.
        Without a `probability`, that of the embedded engine is recorded. The same trace again records nothing. Raises
        InputError if a cited bullet is not in the playbook.

        >>> from acefraud import BulletPlaybook
        >>> playbook = BulletPlaybook()
        >>> vpn, night = playbook.add_bullet("VPN: decline"), playbook.add_bullet("At night: decline")
        >>> order = {"id": "t1", "facts": {"vpn": True, "night": True}}
        >>> learner = Learner(playbook)
        >>> traced = learner.record_trace_sync(order, "DECLINE", cited=[vpn], agent="our-agent", truth=True, who="ana")
        >>> traced.decision.model, traced.heard.judgement.is_correct
        ('our-agent', True)
        >>> playbook.get_bullet(vpn).helpful_count, playbook.get_bullet(night).helpful_count
        (1, 0)
        """
        check_text("who", who, "the name of an author")
        trace = Trace.of(verdict, probability=probability, cited=cited, agent=agent, reasons=reasons)
        given = as_transaction(transaction, self._mapping_of(self._newest()))
        outcome = None if truth is None else truth_of(truth, given.id)
        decision, known = self._recorded(trace, given, who)
        return Traced(decision, known, None if outcome is None else await self.hear(outcome))

    def _recorded(self, trace: Trace, given: Transaction, who: str) -> tuple[Decision, bool]:
        """The decision of a trace, and whether it was recorded before."""
        snapshot, decision_id = self._newest(), trace_id(given, trace, self.options.node)
        if before := self.playbook.ledger.decisions([decision_id]):
            return before[decision_id], True
        all_facts = ToDecide.of(self._in_context([given], snapshot), snapshot, self.playbook.ledger)
        decision = decision_from(trace, all_facts.transactions[0], decision_id, snapshot, self.options)
        known, _ = self._decision_recorder.record([DecisionRecord.whole(decision)], all_facts, who=who)
        return decision, bool(known)

    def _with_all_facts(self, transactions: Iterable[Transaction], snapshot: Snapshot) -> list[Transaction]:
        """The transactions with every fact that they would be decided on, those of the history included."""
        given, memory = self._in_context(transactions, snapshot), memory_for(snapshot.mapping)
        return given if memory is None else memory.enriched(given, self.playbook.ledger)

    def _reviews_today(self, snapshot: Snapshot) -> int:
        """How many cases the day has sent to people; not counted unless there is a limit."""
        rule = snapshot.reviews.get(self.options.node)
        return self._review_count.today(self.playbook.clock()) if rule is not None and rule.is_limited else 0

    def _mapping_of(self, snapshot: Snapshot) -> RememberedMapping:
        """The mapping to read records with: the latest training may have brought another."""
        if self._mapping.written != snapshot.mapping:
            self._mapping = RememberedMapping(snapshot.mapping)
        return self._mapping

    def _in_context(self, transactions: Iterable[Transaction], snapshot: Snapshot) -> list[Transaction]:
        """The transactions with the facts of their time, and with those that only rules ask for."""
        context = RuleContext.of(snapshot, time_facts_of(snapshot.mapping))
        return context.added_to(list(transactions), self.playbook.clock)

    def score_all(self, transactions: TransactionsInput, *, every_bullet: bool = False) -> Scores:
        """The probabilities of `decide_all` with the embedded engine, as columns. Nothing is recorded.

        With `every_bullet` all bullets that fire count, not only those that the selector picks.

        >>> from acefraud import BulletPlaybook, Transaction
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

        >>> from acefraud import BulletPlaybook
        >>> Learner(BulletPlaybook()).facts_of(["$500 purchase through a VPN"]).rows()
        [{'amount': 500.0, 'vpn': True}]
        """
        snapshot = self._newest()
        return facts_in(self._rows_in_context(as_transactions(transactions, self._mapping_of(snapshot)), snapshot))

    def score_facts(self, facts: FactTable) -> Scores:
        """The scores of transactions whose facts are all known, with every bullet that fires."""
        margin, cited = self.additive_score().sums(facts)
        return Scores(probabilities(margin), cited, margin)

    @property
    def threshold(self) -> float:
        """The probability of fraud from which a transaction is declined."""
        calibration = self._newest().calibration(self.options.node)
        return calibration.threshold if calibration else self.options.threshold

    @property
    def mapping(self) -> SchemaMapping | None:
        """How the history that the playbook was last trained on was read; None if it was never trained."""
        return mapping_of(self._newest().mapping)

    def additive_score(self) -> AdditiveScore:
        """The newest playbook as one sum over facts, as `score_all` with `every_bullet` adds it up."""
        return AdditiveScore.of(self._newest(), self.options.node)

    def _rows_in_context(self, transactions: Iterable[Transaction], snapshot: Snapshot) -> Transactions:
        """The same in columns, with the facts of the history if one is kept."""
        context = RuleContext.of(snapshot, time_facts_of(snapshot.mapping))
        if context.needs_rows:
            rows = Transactions.of(context.added_to(list(transactions), self.playbook.clock))
        else:
            rows = with_time_facts(Transactions.of(transactions), context.time_facts)
        memory = memory_for(snapshot.mapping)
        return rows if memory is None else Transactions.of(memory.enriched(rows, self.playbook.ledger))

    async def decide_on(self, transaction: TransactionInput, snapshot: Snapshot) -> Decision:
        """The decision on a given revision. Nothing is recorded."""
        given = as_transaction(transaction, self._mapping_of(snapshot))
        return (await self._decider.decide([given], snapshot, self.agent))[0]

    async def replay(self, decision: Decision) -> Decision:
        """The decision again, on the revision of the playbook that it was made with, from the ledger alone.

        >>> from acefraud import BulletPlaybook, Transaction
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
        if decision.engine not in COMPATIBLE:
            raise CannotExplain(f"it was made by version {decision.engine} of the engine, and this is {ENGINE}")
        trace = decision.selection
        then = Setup(decision.revision, trace.seed, trace.embedder, trace.settings)
        if then != self.selector.setup(decision.revision, self.options.n_bullets):
            made = f"{trace.embedder}, {trace.settings}, seed {trace.seed}"
            raise CannotExplain(f"it was made with another selector ({made})")
        again = await self.replay(decision)
        if again.digest != decision.digest:
            raise CannotExplain("deciding again gives another trace")
        return again.model_copy(update={"id": decision.id, "reader": decision.reader})

    @property
    def waits(self) -> bool:
        """Whether deciding waits for a model."""
        return self._decider.waits(self.agent)

    def memory(self) -> EntityMemory | None:
        """The memory of entities, if the latest training asks for one."""
        return memory_for(self._newest().mapping)

    def _newest(self) -> Snapshot:
        self.playbook.refresh()
        return self.playbook.snapshot()

    # --- outcomes ---

    async def hear(
        self, outcome: OutcomeInput, transaction: TransactionInput | None = None, judgement: Judgement | None = None
    ) -> Heard:
        """Take in the truth of a transaction and learn from it. Returns the judgement and what was learnt.

        The same outcome again changes nothing; a different truth takes back what the first one counted. Pass the
        `transaction` to learn from one that was never decided. A `judgement` by somebody who does not know the truth
        counts as a use of bullets, but nothing is measured by it or learnt from it.

        >>> from acefraud import BulletPlaybook, Outcome, Transaction
        >>> learner = Learner(BulletPlaybook())
        >>> _ = learner.decide_sync(Transaction(id="t1", facts={"amount": 12}))
        >>> chargeback = Outcome(transaction_id="t1", is_fraud=True, source="chargeback")
        >>> learner.hear_sync(chargeback).judgement.is_correct
        False
        >>> learner.hear_sync(chargeback).already_known
        True
        """
        mapping = self._mapping_of(self._newest())
        heard, about = as_outcome(outcome, mapping, for_many="hear_all")
        if transaction is not None:
            about = as_transaction(transaction, mapping, for_many="hear_all")
        _check_same(heard, about)
        return (await self._hear([heard], [about], judgement))[0]

    async def hear_all(
        self, outcomes: OutcomesInput, transactions: OptionalTransactionsInput | None = None
    ) -> list[Heard]:
        """Take in many outcomes in order, recorded all or none, and then learn from them.

        `transactions` are those that the outcomes are about, in the same order; None for one that was decided.

        >>> from acefraud import BulletPlaybook, Outcome, Transaction
        >>> orders = [Transaction(id=f"t{number}", facts={"amount": 10 * number}) for number in range(3)]
        >>> outcomes = [Outcome(transaction_id=order.id, is_fraud=False) for order in orders]
        >>> learner = Learner(BulletPlaybook())
        >>> len(learner.hear_all_sync(outcomes, orders)), len(learner.remembered().facts)
        (3, 3)
        """
        return await self._hear(*self._read_outcomes(outcomes, transactions))

    def receive(
        self, outcomes: OutcomesInput, transactions: OptionalTransactionsInput | None = None, *, who: str
    ) -> list[Received]:
        """Accept outcomes to be judged and learnt from later, by `take_in`. They are recorded, all or none.

        An outcome that was received or heard before is reported as known. `transactions` are as in `hear_all`, `who`
        reports the outcomes. Raises OutcomeConflict if an outcome has the id of another one.

        >>> from acefraud import BulletPlaybook, Outcome, Transaction
        >>> learner = Learner(BulletPlaybook())
        >>> _ = learner.decide_sync(Transaction(id="t1", facts={"amount": 12}))
        >>> chargeback = Outcome(id="o1", transaction_id="t1", is_fraud=True, source="chargeback")
        >>> [learner.receive([chargeback], who="the bank")[0].already_known for _ in range(2)]
        [False, True]
        >>> learner.take_in_sync().count, learner.playbook.outcomes
        (1, 1)
        """
        check_text("who", who, "who reports the outcomes")
        return receive(self.playbook, *self._read_outcomes(outcomes, transactions), node=self.options.node, who=who)

    async def take_in(self, limit: int = 1_000) -> TakenIn:
        """Judge received outcomes in the order in which they were received, up to `limit`, and learn from them.

        What is learnt does not depend on `limit`: it is the same as if each outcome were heard by itself. One process
        at a time takes in the outcomes of a playbook; the others return at once.

        >>> from acefraud import BulletPlaybook, Outcome, Transaction
        >>> learner = Learner(BulletPlaybook())
        >>> orders = [Transaction(id=f"t{number}", facts={"amount": 10 * number}) for number in range(3)]
        >>> outcomes = [Outcome(transaction_id=order.id, is_fraud=False) for order in orders]
        >>> _ = learner.receive(outcomes, orders, who="the bank")
        >>> [learner.take_in_sync(limit=2).count for _ in range(3)]
        [2, 1, 0]
        """
        check_whole("limit", limit, least=1)
        return await self._backlog.take_in(limit)

    def _read_outcomes(
        self, outcomes: OutcomesInput, transactions: OptionalTransactionsInput | None
    ) -> tuple[list[Outcome], list[Transaction | None]]:
        """Outcomes, and the transactions that came with them."""
        mapping = self._mapping_of(self._newest())
        given = as_outcomes(outcomes, mapping, for_one="hear")
        about = [described for _, described in given]
        if transactions is not None:
            named = as_optional_transactions(transactions, mapping, for_one="hear")
            if len(named) != len(given):
                wrong = f"{len(given):,} outcomes and {len(named):,} transactions"
                raise InputError(f"{wrong}: expected one for each, or none")
            about = [one or described for one, described in zip(named, about, strict=True)]
        for (outcome, _), transaction in zip(given, about, strict=True):
            _check_same(outcome, transaction)
        return [outcome for outcome, _ in given], about

    async def _hear(
        self,
        outcomes: Sequence[Outcome],
        transactions: Sequence[Transaction | None],
        judgement: Judgement | None = None,
    ) -> list[Heard]:
        credited = await self._recorder.record(outcomes, transactions, judgement)
        reviewed = await self._reviewer.learn_if_due(credited)
        heard = [Heard(one.judged.judgement, already_known=one.already_known) for one in credited]
        if reviewed is not None:
            last = max(place for place, one in enumerate(credited) if one.event is not None)
            first_added = reviewed.added[0] if reviewed.added else None
            heard[last] = replace(heard[last], new_bullet=first_added, review=reviewed)
        return heard

    async def judge_pending(self, decision: Decision) -> Judgement:
        """Ask the judge about a decision whose truth is unknown, and take in its opinion if it has one."""
        text = self.judge.presentable(decision.transaction.text, decision.facts)
        judgement = await self.judge.rule(text, str(decision.verdict), None)
        if judgement.is_correct is None or decision.verdict is Verdict.REVIEW:
            return judgement
        fraud = (decision.verdict is Verdict.DECLINE) == judgement.is_correct
        outcome = Outcome(transaction_id=decision.transaction.id, is_fraud=fraud, source=OutcomeSource.JUDGE)
        await self.hear(outcome, judgement=judgement)
        return judgement

    # --- learning ---

    async def finish_lessons(self) -> list[str]:
        """Reflect on the failures that still wait for others of their kind. Returns the ids of the new bullets."""
        if not self._planner.waits:
            return []
        reviewed = await self._reviewer.ask_and_review(Depth.WHOLE)
        return list(reviewed.added) if reviewed else []

    def review(self) -> Reviewed:
        """Review the playbook now: watch, retire, revive, induce, fit, calibrate. Returns what was done.

        A model that reflects is not asked: `finish_lessons` does that.
        """
        done = self._reviewer.review(Depth.WHOLE, forced=True)
        assert done is not None, "a forced review is always due"
        return done

    def refit(self) -> None:
        """Fit the weights of bullets with a condition, and the calibration, on the remembered cases."""
        fit = partial(refit, self.playbook, self.reflector.engine, self.remembered(), self.options)
        self.playbook.run_unit_of_work(fit, why="weights fitted anew")

    # --- what is remembered ---

    @property
    def proposed(self) -> Proposed | None:
        """What a model that reflects was asked so far, and what became of it; None if none reflects."""
        return self._planner.proposed

    def use_mapping(self, mapping: SchemaMapping | Path | str) -> None:
        """Read records and data frames by this mapping, its history included, before the first outcome or training.

        A training brings its own. Raises ConfigurationError if there was one, or an outcome.

        >>> from acefraud import BulletPlaybook, SchemaMapping
        >>> learner = Learner(BulletPlaybook())
        >>> learner.use_mapping(SchemaMapping(amount="TX_AMOUNT", categories=("KIND",)))
        >>> learner.facts_of([{"TX_AMOUNT": 250, "KIND": 7}]).rows()
        [{'KIND': '7', 'amount': 250.0}]
        """
        self.playbook.refresh()
        if self.playbook.outcomes or self.playbook.snapshot().mapping:
            raise ConfigurationError("the mapping is set before the first outcome or training; this playbook has one")
        written = written_mapping(mapping)
        self.playbook.record([Trained(node=self.options.node, dataset="", rows=0, frauds=0, mapping=written)])

    def read(self, transactions: TransactionsInput) -> Sequence[Transaction]:
        """Dicts, texts or the rows of a data frame as the transactions that would be decided."""
        return as_transactions(transactions, self._mapping_of(self._newest()))

    def too_little(self) -> str:
        """Why nothing can be learnt from the remembered cases yet; empty if something can."""
        return self.reflector.engine.too_little(self.remembered())

    def remembered(self) -> LabelledFacts:
        """The labelled cases that learning looks back on, including what other learners heard."""
        return self._cases.catch_up()

    def reread(self, *, everything: bool = False) -> Reread:
        """Read the texts of remembered cases with the reader of this version, and review the playbook.

        Cases that this version has read already are skipped, unless you ask for `everything`.
        """
        done = self._cases.reread(everything=everything)
        if done.changed:
            self.review()
        return done

    def measure(self, condition: Condition) -> Evidence | None:
        """What the remembered cases say of a condition; None if there are none.

        >>> from acefraud import BulletPlaybook, Condition, Outcome, Transaction
        >>> learner = Learner(BulletPlaybook())
        >>> orders = [Transaction(id=f"t{number}", facts={"vpn": number % 3 == 0}) for number in range(30)]
        >>> outcomes = [Outcome(transaction_id=order.id, is_fraud=order.facts["vpn"]) for order in orders]
        >>> _ = learner.hear_all_sync(outcomes, orders)
        >>> learner.measure(Condition.parse("vpn is true")).in_words()
        '10 of 10 past cases were fraud (100%, 72-100%)'
        """
        check_type("condition", condition, Condition, "a Condition, such as Condition.parse(text)")
        return cases_for(self.remembered(), condition).measure(condition)

    def remarks_on(self, bullet: Bullet) -> list[str]:
        """What the author of a rule should know: that it never fires, is mostly unknown, or is shadowed."""
        check_type("bullet", bullet, Bullet, "a Bullet")
        if bullet.condition is None:
            return []
        others = [one for one in self.playbook.get_bullets_for_node(bullet.node) if one.id != bullet.id]
        return rule_remarks(bullet.condition, self.remembered(), others, bullet.policy)

    def preview(self, content: str, **details: Unpack[BulletDetails]) -> Preview:
        """What adding a bullet would do to the latest labelled cases and decisions. Nothing is recorded.

        The details are those of `BulletPlaybook.add_bullet`.

        >>> from acefraud import BulletPlaybook, Transaction
        >>> learner = Learner(BulletPlaybook())
        >>> orders = [Transaction(id=f"t{number}", facts={"amount": 400 * number}) for number in range(5)]
        >>> _ = learner.decide_all_sync(orders)
        >>> preview = learner.preview("amount > $1000: decline")
        >>> preview.decisions, preview.fires_on_decisions
        (5, 2)
        """
        self.playbook.refresh()
        new = NewBullet(content, **details)
        change = plan_addition(self.playbook, new, self.options.node, who=THE_ENGINE)
        return self.preview_change(change.payloads, self.playbook.snapshot_with(change.payloads).bullets[change.result])

    def preview_change(self, payloads: Sequence[EventPayload], rule: Bullet | None = None) -> Preview:
        """What any change would do. `rule` is the bullet that the events add, edit or retire."""
        self.playbook.refresh()
        condition = None if rule is None else rule.condition
        cases = self.remembered() if condition is None else cases_for(self.remembered(), condition)
        return preview(self.playbook, payloads, rule, cases=cases, selector=self.selector, options=self.options)

    # --- whole histories ---

    def backtest_scores(self, cases: Sequence[Case], waiting: Sequence[Transaction] = ()) -> BacktestScores:
        """What the playbook would have decided on labelled history. `acefraud.backtest` makes figures of it."""
        self.playbook.refresh()
        return backtest_scores(self.playbook, Cases.of(cases), Transactions.of(waiting), self.selector, self.options)

    def study(self, cases: HistoryInput, **options: Unpack[TrainingOptions]) -> list[str]:
        """Learn from a whole labelled history at once. Returns the ids of the new bullets.

        The history is a sequence of cases, a `Dataset` or a data frame (pandas, polars, pyarrow). If its mapping asks
        for a history of entities, the cases get facts from it and stay remembered, together with the transactions that
        are still `waiting` for their label. Without a `threshold` rule the threshold stays. The other options are the
        name of the `dataset`, its `mapping` and `progress`, which is called with the share done. Use `train` with a
        reflector on a model, which has to be awaited.

        Raises InputError if the history is empty or has one label only, which teaches nothing; with
        ``both_labels=False`` it is remembered all the same. If it has both labels but too few cases to learn from, the
        result is empty.

        >>> from acefraud import BulletPlaybook, Case, Transaction
        >>> history = [
        ...     Case(transaction=Transaction(id=f"t{n}", facts={"vpn": n % 3 == 0, "amount": n}), is_fraud=n % 3 == 0)
        ...     for n in range(60)
        ... ]
        >>> playbook = BulletPlaybook()
        >>> learnt = Learner(playbook).study(history)
        >>> playbook.get_bullet(learnt[0]).content
        'A VPN or proxy: 16 of 16 past cases were fraud (100%, 51-100%), against 33% of all'
        """
        if self._planner.waits:
            raise ConfigurationError(
                f"the reflector is {self.reflector.model}, which has to be waited for: use `await learner.train(...)`"
            )
        given, known = as_history(cases, options)
        training = Training.of(given, self.playbook, self.reflector, self.options.node, **known)
        return self._reviewer.study(training, (), self.selector)

    async def train(self, cases: HistoryInput, **options: Unpack[TrainingOptions]) -> list[str]:
        """Learn from a labelled history with any reflector. Options and result are those of `study`."""
        given, known = as_history(cases, options)
        training = Training.of(given, self.playbook, self.reflector, self.options.node, **known)
        if self._planner.waits:  # what a model says is measured on all that is remembered
            self.remembered()
        admitted = await self._planner.ask_about(training, self.playbook.snapshot(), self.selector)
        return self._reviewer.study(training, admitted, self.selector)

    async def scale_odds(self, cases: Sequence[Case], base_rate: float | None = None) -> None:
        """Fit what the odds of the model's verdict tokens mean, on labelled cases decided as they would be now.

        If the cases were drawn by their label, `base_rate` says how common fraud really is.
        """
        snapshot = self.playbook.snapshot()
        model = self.agent.without_tier
        decisions = await self._decider.decide([case.transaction for case in cases], snapshot, model)
        pairs = [(one.odds, case.is_fraud) for one, case in zip(decisions, cases, strict=True) if one.odds is not None]
        self._odds.fit(model.model, pairs, base_rate)


def _check_same(outcome: Outcome, transaction: Transaction | None) -> None:
    if transaction is not None and transaction.id != outcome.transaction_id:
        raise InputError(f"the outcome is of '{outcome.transaction_id}', the transaction is '{transaction.id}'")
