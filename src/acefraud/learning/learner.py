"""The loop on one playbook. Deciding never changes the playbook; learning never decides."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Unpack, overload

from acefraud.core.bullet import Bullet, BulletDetails, Evidence, NewBullet
from acefraud.core.calibration import sigmoid
from acefraud.core.condition import Condition
from acefraud.core.decision import Decision, DecisionRecord
from acefraud.core.events import THE_ENGINE, EventPayload, Reread, Reviewed, Trained
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import DecidingRule
from acefraud.core.table import FactTable
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.core.transactions import Cases, Transactions
from acefraud.curation.curator import Curator
from acefraud.datasets import SchemaMapping
from acefraud.display.short_repr import ShortRepr, quoted
from acefraud.engine.backtest_scores import BacktestScores, backtest_scores
from acefraud.engine.decider import Decider
from acefraud.engine.embedded_decisions import COMPATIBLE, ENGINE, DecisionList, DecisionSequence, EmbeddedDecisions
from acefraud.engine.entity_memory import EntityMemory, mapping_of, memory_for, time_facts_of
from acefraud.engine.external_traces import Trace, decision_from, trace_id, truth_of
from acefraud.engine.familiarity import (
    CheckedInput,
    FactChanges,
    FamiliarFacts,
    InputRemark,
    fact_changes,
    unfamiliar_remarks,
)
from acefraud.engine.inputs import (
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
    outcome_remarks,
    warn_of,
)
from acefraud.engine.odds_calibration import FittedOdds
from acefraud.engine.options import LearnerOptions
from acefraud.engine.review_capacity import ReviewCapacity, ReviewsLeft
from acefraud.engine.rule_context import RuleContext, ruling_of
from acefraud.engine.score import AdditiveScore, Scores, score
from acefraud.engine.selected_context import Context, select_context
from acefraud.errors import CannotExplain, ConfigurationError, InputError, point_out
from acefraud.facts.extraction import KnownFacts, facts_in
from acefraud.facts.time_facts import with_time_facts
from acefraud.learning.decision_recorder import DecisionRecorder, DecisionRequest, ToDecide
from acefraud.learning.model_lessons import Proposed, ReflectionPolicy
from acefraud.learning.outcome_feeds import mature
from acefraud.learning.outcome_intake import NOT_DECIDED, OutcomeRecorder
from acefraud.learning.planners import Depth, planner_for
from acefraud.learning.preview import Preview, cases_for, preview, rule_remarks
from acefraud.learning.received_outcomes import OutcomeBacklog, Received, TakenIn, receive
from acefraud.learning.review import refit
from acefraud.learning.reviewer import RememberedCases, Reviewer
from acefraud.learning.training import HistoryInput, Training, TrainingOptions, as_history, written_mapping
from acefraud.llm.synchronous import blocking_twin, run_sync
from acefraud.roles.agent import SimpleFraudAgent
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.roles.embedded.judge import SimpleJudge, ruled
from acefraud.roles.protocols import Agent, Judge, OwnRole, name_of
from acefraud.roles.reflector import Reflector
from acefraud.rules.induction.fitting import probabilities
from acefraud.selection.hybrid import HybridSelector, Setup
from acefraud.storage.change_log import what_happened
from acefraud.storage.changes import plan_addition, retry_on_conflict
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arguments import check_has, check_text, check_type, check_whole


@dataclass(frozen=True, slots=True, repr=False)
class Heard(ShortRepr):
    """What hearing one outcome did."""

    judgement: Judgement
    new_bullet: str | None = None
    """The first of the bullets that were learnt."""
    already_known: bool = False
    review: Reviewed | None = None
    """What the review that followed did, or why it declined. In a batch, the last outcome has it."""
    is_waiting: bool = False
    """Whether nothing is known of its transaction. It is kept, and counts once that is decided."""
    remark: str = ""
    """What is odd about it, such as a time before its transaction; it was taken all the same."""
    announced: tuple[str, ...] = ()
    """What moved many verdicts, or was held for a person, in words. In a batch, the last outcome has it."""


@dataclass(frozen=True, slots=True, repr=False)
class Silent(ShortRepr):
    """What the passing of time did."""

    decisions: int
    """How many count as legitimate from now on, because nobody reported them."""
    reviews: tuple[Reviewed, ...] = ()
    announced: tuple[str, ...] = ()
    """What moved many verdicts, or was held for a person, in words."""


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


@dataclass(frozen=True, slots=True, repr=False)
class Traced(ShortRepr):
    """What recording the decision of another agent did."""

    decision: Decision
    already_known: bool = False
    """Whether it was recorded before."""
    heard: Heard | None = None
    """What its truth did, if that was given."""


def _waits(learner: Learner) -> bool:
    return learner.waits


class Learner:
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
        agent: Agent | OwnRole | None = None,
        judge: Judge | OwnRole | None = None,
        reflector: Reflector | OwnRole | None = None,
        curator: Curator | None = None,
        selector: HybridSelector | None = None,
        policy: ReflectionPolicy | None = None,
        options: LearnerOptions | None = None,
    ) -> None:
        """`policy` says which outcomes are worth a call, if the reflector is on a model."""
        check_type("playbook", playbook, BulletPlaybook, "a BulletPlaybook, such as open_playbook(path)")
        for name, value, kind in (
            ("curator", curator, Curator),
            ("selector", selector, HybridSelector),
            ("policy", policy, ReflectionPolicy),
            ("options", options, LearnerOptions),
        ):
            if value is not None:
                check_type(name, value, kind, f"a {kind.__name__}", ConfigurationError)
        self.playbook = playbook
        self.options = options or LearnerOptions()
        self.agent: Agent = SimpleFraudAgent() if agent is None else agent
        self.judge: Judge = SimpleJudge() if judge is None else judge
        own = Reflector(seed=self.options.seed) if reflector is None else reflector
        check_has("agent", self.agent, "an object that plays the agent", "assess", "analyze")
        check_has("judge", self.judge, "an object that plays the judge", "rule", "judge")
        check_has("reflector", own, "a Reflector", "reflect")
        self.reflector = own if hasattr(own, "proposals") else Reflector(model=own, seed=self.options.seed)
        self.curator = Curator() if curator is None else curator
        self.selector = HybridSelector(seed=self.options.seed) if selector is None else selector
        self._decider = Decider(self.selector, self.options)
        self._decision_recorder = DecisionRecorder(playbook, self.options.node)
        self._capacity = ReviewCapacity(playbook.ledger, self.options.node)
        self._cases = RememberedCases(playbook, self.reflector.memory, self.options.node)
        self._odds = FittedOdds(playbook, self.options)
        self._planner = planner_for(self.reflector, self.options, policy)
        self._reviewer = Reviewer(playbook, self._planner, self._cases, self._odds, self.curator, self.options)
        self._recorder = OutcomeRecorder(playbook, self.judge, self.options, announce=self._reviewer.announce)
        self._backlog = OutcomeBacklog(playbook, self._recorder, self._reviewer, self.options.node)
        self._mapping = RememberedMapping(playbook.snapshot().mapping, strict=self.options.strict)
        self._may_wait = False
        """Whether a decision of this learner was made on a transaction whose outcome came before it."""
        self._familiar = FamiliarFacts(playbook, self.options)

    def __repr__(self) -> str:
        roles = f"agent={quoted(name_of(self.agent), 40)}, reflector={quoted(self.reflector.model, 40)}"
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
        decision = (await self._decide(self._checked([given], snapshot), snapshot)).decisions[0]
        if decision.unfamiliar:
            point_out(*unfamiliar_remarks([decision.facts], [decision.verdict]))
        return decision

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
        decisions = (await self._decide(self._checked(given, snapshot), snapshot)).decisions
        point_out(*remarks_on(decisions))
        return decisions

    async def decide_for(self, requests: Sequence[DecisionRequest], *, since: int) -> RecordedDecisions:
        """The decisions on transactions that come with the key of a request, recorded with these keys, all or none.

        Raises AlreadyAnswered, with nothing recorded, if one of the requests was answered, or its transaction decided,
        since an event.
        """
        snapshot = self._newest()
        checked = [self._check([one.to_decide], snapshot) for one in requests]
        given = [one for found in checked for one in found.transactions]
        return replace(await self._decide(given, snapshot, requests, since=since), checked=checked)

    def check(self, transactions: TransactionsInput) -> CheckedInput:
        """What is unusual about transactions, and the transactions as they would be decided. Nothing is decided.

        That is facts and entities that the playbook does not know, with the nearest that it does; facts that it relies
        on and that are missing; and times that cannot be. `refuse` of the answer raises for what a strict learner does
        not take.

        >>> from acefraud import BulletPlaybook
        >>> [(one.name, one.nearest) for one in Learner(BulletPlaybook()).check([{"amout": 900}]).unfamiliar_facts]
        [('amout', 'amount')]
        """
        snapshot = self.playbook.snapshot()
        return self._familiar.checked(as_transactions(transactions, self._mapping_of(snapshot)), snapshot)

    def fact_changes(self) -> FactChanges:
        """How the facts of the latest day of decisions differ from those of the cases that were learnt from."""
        self.playbook.refresh()
        return fact_changes(self.playbook, self.options.node)

    def _checked(self, given: Sequence[Transaction], snapshot: Snapshot) -> Sequence[Transaction]:
        """Transactions as they are decided, with a warning for all that is unusual about them."""
        checked = self._check(given, snapshot)
        if checked.remarks:
            point_out(*checked.remarks)
        return checked.transactions

    def _check(self, given: Sequence[Transaction], snapshot: Snapshot) -> CheckedInput:
        checked = self._familiar.checked(given, snapshot)
        if self.options.strict:
            checked.refuse()
        return checked

    async def _decide(
        self,
        transactions: Sequence[Transaction],
        snapshot: Snapshot,
        requests: Sequence[DecisionRequest] = (),
        *,
        since: int | None = None,
    ) -> RecordedDecisions:
        given = ToDecide.of(self._in_context(transactions, snapshot), snapshot, self.playbook.ledger)
        reviews = self._capacity.left(snapshot, self.playbook.clock)
        decisions = await self._decider.decide(given.transactions, snapshot, self.agent, reviews=reviews)
        records = (
            decisions.records
            if isinstance(decisions, EmbeddedDecisions)
            else [DecisionRecord.whole(decision) for decision in decisions]
        )
        kept = [new.kept(record.id) for new, record in zip(requests, records, strict=True)] if requests else []
        known, at, repeated = self._decision_recorder.record(records, given, kept, since=since)
        self._may_wait |= repeated
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
        given = self._with_all_facts(self._checked(as_transactions(transactions, mapping), snapshot), snapshot)
        reviews = self._capacity.left(snapshot, self.playbook.clock)
        decisions = await self._decider.decide(given, snapshot, self.agent, reviews=reviews)
        point_out(*remarks_on(decisions))
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
        known, _, repeated = self._decision_recorder.record([DecisionRecord.whole(decision)], all_facts, who=who)
        self._may_wait |= repeated
        return decision, bool(known)

    def _with_all_facts(self, transactions: Iterable[Transaction], snapshot: Snapshot) -> list[Transaction]:
        """The transactions with every fact that they would be decided on, those of the history included."""
        given, memory = self._in_context(transactions, snapshot), memory_for(snapshot.mapping)
        return given if memory is None else memory.enriched(given, self.playbook.ledger)

    def reviews_left(self) -> ReviewsLeft | None:
        """How many cases were sent to people today, and what a review has to save now; None unless there is a limit.

        >>> from acefraud import BulletPlaybook
        >>> playbook = BulletPlaybook()
        >>> playbook.set_threshold(review="false_decline=15,missed_fraud=200,review=5,per_day=50")
        >>> left = Learner(playbook).reviews_left()
        >>> left.used, left.per_day, left.cut
        (0, 50, 0.0)
        """
        return self._capacity.left(self._newest(), self.playbook.clock)

    def _mapping_of(self, snapshot: Snapshot) -> RememberedMapping:
        """The mapping to read records with: the latest training may have brought another."""
        if self._mapping.written != snapshot.mapping:
            self._mapping = RememberedMapping(snapshot.mapping, strict=self.options.strict)
        return self._mapping

    def _in_context(self, transactions: Iterable[Transaction], snapshot: Snapshot) -> list[Transaction]:
        """The transactions with the facts of their time, and with those that only rules ask for."""
        context = RuleContext.of(snapshot, time_facts_of(snapshot.mapping))
        return context.added_to(list(transactions), self.playbook.clock)

    def score_all(self, transactions: TransactionsInput, *, every_bullet: bool = False) -> Scores:
        """The probabilities of `decide_all` with the embedded engine, as columns. Nothing is recorded.

        With `every_bullet` all bullets that fire count, not only those that the selector picks. If a history is kept,
        rows take their turn in the order of time, where `decide_all` takes them as they come, and none has a label yet;
        `acefraud.backtest` scores labelled rows, each with the labels that had arrived by then.

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
        """Transactions in columns, with the facts of the history if one is kept."""
        rows, memory = self._columns_in_context(transactions, snapshot), memory_for(snapshot.mapping)
        if memory is None:
            return rows
        order = rows.times.argsort(kind="stable")
        return Transactions.of(memory.enriched(rows.take(order), self.playbook.ledger)).take(order.argsort())

    def _columns_in_context(self, transactions: Iterable[Transaction], snapshot: Snapshot) -> Transactions:
        context = RuleContext.of(snapshot, time_facts_of(snapshot.mapping))
        if context.needs_rows:
            return Transactions.of(context.added_to(list(transactions), self.playbook.clock))
        return with_time_facts(Transactions.of(transactions), context.time_facts)

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

    def ruling(self, decision: Decision) -> DecidingRule:
        """Which rule gave a decision its verdict: the threshold, a band, costs, the day's limit, a policy or a model.

        >>> from acefraud import BulletPlaybook
        >>> playbook = BulletPlaybook()
        >>> playbook.set_threshold(review="false_decline=15,missed_fraud=200")
        >>> learner = Learner(playbook)
        >>> learner.ruling(learner.decide_sync({"amount": 12})).words
        'expected costs: APPROVE 53.79, DECLINE 10.97'
        """
        return ruling_of(decision, self.playbook.snapshot_at(decision.revision))

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
        `transaction` to learn from one that was never decided. An outcome that comes before its decision is kept
        (`Heard.is_waiting`), and judged by the next `hear` or `take_in` after that. A `judgement` by somebody who does
        not know the truth counts as a use of bullets, but nothing is measured by it or learnt from it.

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
        return (await self._hear([heard], self._with_sound_times([about]), judgement))[0]

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
        given = self._read_outcomes(outcomes, transactions)
        received = receive(self.playbook, *given, node=self.options.node, who=who)
        warn_of([one.remark for one in received])
        return received

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
        taken = await self._backlog.take_in(limit)
        return replace(taken, announced=self._reviewer.take_announced())

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
            if outcome.source is OutcomeSource.SILENCE:
                raise InputError("source: silence is no report; `set_feed` says when it counts")
        return [outcome for outcome, _ in given], self._with_sound_times(about)

    def _with_sound_times(self, about: Sequence[Transaction | None]) -> list[Transaction | None]:
        """Transactions that come with their outcome, their times and entities as if they had been decided."""
        if not any(about):
            return list(about)
        found = self._familiar.checked([one for one in about if one is not None], self.playbook.snapshot())
        taken = iter(found.transactions)
        return [None if one is None else next(taken) for one in about]

    async def _hear(
        self,
        outcomes: Sequence[Outcome],
        transactions: Sequence[Transaction | None],
        judgement: Judgement | None = None,
    ) -> list[Heard]:
        if self._may_wait:  # outcomes that came before their decisions are judged first
            self._may_wait = (await self.take_in()).left
        credited = await self._recorder.record(outcomes, transactions, judgement)
        reviewed = await self._reviewer.learn_if_due(credited)
        about = [one.judged.transaction for one in credited]
        remarks = outcome_remarks(outcomes, about, self.playbook.ledger, self.playbook.clock())
        warn_of(remarks)
        heard = [
            Heard(
                one.judged.judgement,
                already_known=one.already_known,
                is_waiting=one.judged.transaction is None and one.judged.judgement == NOT_DECIDED,
                remark=remark,
            )
            for one, remark in zip(credited, remarks, strict=True)
        ]
        if reviewed is not None:
            last = max(place for place, one in enumerate(credited) if one.event is not None)
            first_added = reviewed.added[0] if reviewed.added else None
            heard[last] = replace(heard[last], new_bullet=first_added, review=reviewed)
        announced = self._reviewer.take_announced()
        if self.playbook.feed(self.options.node).silence_days is not None:
            silent = await self.hear_silence()
            announced += (*silent.announced, *map(what_happened, silent.reviews))
        if announced:
            heard[-1] = replace(heard[-1], announced=announced)
        return heard

    async def hear_silence(self, now: datetime | None = None) -> Silent:
        """Let decisions count as legitimate that nobody has reported for as long as the feed says, and learn from them.

        `now` is the time of the playbook's clock if it is not given. Does nothing unless `BulletPlaybook.set_feed` or a
        mapping has said how many days of silence mean that a transaction was legitimate.

        >>> from datetime import UTC, datetime, timedelta
        >>> from acefraud import BulletPlaybook, Transaction
        >>> january = datetime(2026, 1, 1, tzinfo=UTC)
        >>> learner = Learner(BulletPlaybook(clock=lambda: january))
        >>> _ = learner.playbook.set_feed("fraud_only", silence_days=60)
        >>> _ = learner.decide_sync(Transaction(id="t1", facts={"amount": 12}))
        >>> learner.hear_silence_sync(january + timedelta(days=59)).decisions
        0
        >>> learner.hear_silence_sync(january + timedelta(days=61)).decisions, len(learner.remembered())
        (1, 1)
        """
        at, count, reviews = now or self.playbook.clock(), 0, list[Reviewed]()
        while matured := retry_on_conflict(partial(mature, self.playbook, self.options.node, at)):
            count += matured.silent
            reviewed = await self._reviewer.learn_from_silence(matured)
            reviews += [reviewed] if reviewed else []
        return Silent(count, tuple(reviews), self._reviewer.take_announced())

    async def judge_pending(self, decision: Decision) -> Judgement:
        """Ask the judge about a decision whose truth is unknown, and take in its opinion if it has one."""
        shown = getattr(self.judge, "presentable", SimpleJudge().presentable)
        text = shown(decision.transaction.text, decision.facts)
        judgement = await ruled(self.judge, text, str(decision.verdict), None)
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
        fit = partial(refit, self.playbook, self.reflector.engine, self._cases.since_change(), self.options)
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

    def nothing_learnt(self) -> str:
        """Why a training found no bullet, and what decides in their place."""
        why, score = self.too_little() or "nothing was found that holds beyond chance", self.additive_score()
        if score.terms:
            return f"{why}; general knowledge decides"
        return f"{why}: every row gets the base rate, {100 * sigmoid(score.calibration.level):.3g} %"

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
        cases, selector = self.remembered(), self.selector
        return preview(self.playbook, payloads, rule, cases=cases, selector=selector, options=self.options)

    # --- whole histories ---

    def backtest_scores(
        self, cases: Sequence[Case], waiting: Sequence[Transaction] = (), *, every_bullet: bool = False
    ) -> BacktestScores:
        """What the playbook would have decided on labelled history. `acefraud.backtest` makes figures of it."""
        given = Cases.of(cases)
        given = given.with_facts(self._columns_in_context(given.transactions, self._newest()).facts)
        selector = None if every_bullet else self.selector
        return backtest_scores(self.playbook, given, Transactions.of(waiting), selector, self.options)

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
        model = getattr(self.agent, "without_tier", self.agent)
        decisions = await self._decider.decide([case.transaction for case in cases], snapshot, model)
        pairs = [(one.odds, case.is_fraud) for one, case in zip(decisions, cases, strict=True) if one.odds is not None]
        self._odds.fit(name_of(model), pairs, base_rate)

    @overload
    def score_sync(self, transactions: TransactionInput) -> Decision: ...  # type: ignore[overload-overlap]

    @overload
    def score_sync(self, transactions: TransactionsInput) -> DecisionSequence: ...

    def score_sync(self, transactions: TransactionInput | TransactionsInput) -> Decision | DecisionSequence:
        """`score` for callers that do not await."""
        scoring: Coroutine[Any, Any, Decision | DecisionSequence] = self.score(transactions)
        return run_sync(scoring, waits=self.waits)

    decide_sync = blocking_twin(decide, _waits)
    decide_all_sync = blocking_twin(decide_all, _waits)
    decide_for_sync = blocking_twin(decide_for, _waits)
    context_sync = blocking_twin(context)
    record_trace_sync = blocking_twin(record_trace)
    decide_on_sync = blocking_twin(decide_on, _waits)
    replay_sync = blocking_twin(replay, _waits)
    explain_sync = blocking_twin(explain, _waits)
    hear_sync = blocking_twin(hear)
    hear_all_sync = blocking_twin(hear_all)
    take_in_sync = blocking_twin(take_in)
    hear_silence_sync = blocking_twin(hear_silence)
    judge_pending_sync = blocking_twin(judge_pending)
    finish_lessons_sync = blocking_twin(finish_lessons)
    train_sync = blocking_twin(train)
    scale_odds_sync = blocking_twin(scale_odds)


def remarks_on(decisions: DecisionSequence) -> list[InputRemark]:
    """What is unusual about decisions. Those of the embedded engine stay in columns."""
    if isinstance(decisions, EmbeddedDecisions):
        return unfamiliar_remarks([one.facts for one in decisions.known], decisions.verdicts)
    return unfamiliar_remarks([one.facts for one in decisions], [one.verdict for one in decisions])


def _check_same(outcome: Outcome, transaction: Transaction | None) -> None:
    if transaction is not None and transaction.id != outcome.transaction_id:
        raise InputError(f"the outcome is of '{outcome.transaction_id}', the transaction is '{transaction.id}'")
