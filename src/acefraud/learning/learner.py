"""The loop on one playbook. Deciding never changes it; learning never decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from acefraud.core.condition import Condition
from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade, Reread, Reviewed
from acefraud.core.evidence import Evidence
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import Agent, Judge
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.core.transactions import Cases, Transactions
from acefraud.core.trusted import trusted
from acefraud.curation.curator import Curator
from acefraud.embedded.case_memory import LabelledFacts
from acefraud.embedded.judge import SimpleJudge
from acefraud.errors import AcefraudError, ConfigurationError, InputError, StoreConflict, StoreError
from acefraud.learning.batch_scoring import Scores, score
from acefraud.learning.credits import Taken
from acefraud.learning.deciding import Decider
from acefraud.learning.hearing import OutcomeRecorder
from acefraud.learning.odds import FittedOdds
from acefraud.learning.options import LearnerOptions
from acefraud.learning.planning import Depth, Said, planner_for
from acefraud.learning.proposing import Proposed
from acefraud.learning.reflecting import ReflectionPolicy
from acefraud.learning.remembered_cases import RememberedCases
from acefraud.learning.remembering import EntityMemory, memory_for
from acefraud.learning.review import FITTED_ANEW, ReviewPlan, apply, refit
from acefraud.learning.thresholds import ThresholdRule
from acefraud.learning.training import Training
from acefraud.roles.agent import SimpleFraudAgent
from acefraud.roles.reflector import Reflector
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook

ATTEMPTS = 5
"""How often a review is worked out anew because somebody else changed the book meanwhile."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What hearing one outcome did."""

    judgement: Judgement
    new_bullet: str | None = None
    """The first of the bullets that were learnt."""
    already_known: bool = False
    review: Reviewed | None = None
    """What a review that followed did, or why it declined. In a batch it stands with the last outcome."""


class Learner:
    """Decides transactions with a playbook, and turns outcomes into a better one.

    It works on column tables; one transaction is a table of one row. What it remembers, and when it reviews, follows
    from the ledger alone, so that several learners on one file learn from all outcomes.
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
        """`policy` says what is worth a call, where the reflector is on a model."""
        self.playbook = playbook
        self.options = options or LearnerOptions()
        self.agent: Agent = SimpleFraudAgent() if agent is None else agent
        self.judge: Judge = SimpleJudge() if judge is None else judge
        self.reflector = Reflector(seed=self.options.seed) if reflector is None else reflector
        self.curator = Curator() if curator is None else curator
        self.selector = HybridSelector(seed=self.options.seed) if selector is None else selector
        self._decider = Decider(self.selector, self.options)
        self._recorder = OutcomeRecorder(playbook, self.judge, self.options)
        self._cases = RememberedCases(playbook, self.reflector.memory, self.options.node)
        self._odds = FittedOdds(playbook, self.options)
        self._planner = planner_for(self.reflector, self.options, policy)

    # --- deciding ---

    async def decide(self, transaction: Transaction) -> Decision:
        """Decide one transaction and record the decision."""
        return (await self.decide_all([transaction]))[0]

    async def decide_all(self, transactions: Iterable[Transaction]) -> list[Decision]:
        """Decide several on the newest revision of the playbook and record them together, or none.

        Where a history is kept, each gets the facts that its past gives, and counts for those after it.
        """
        given, snapshot = list(transactions), self._newest()
        memory = memory_for(snapshot.mapping)
        if memory is not None:
            given = memory.enriched(given, self.playbook.ledger)
        decisions = await self._decider.decide(given, snapshot, self.agent)
        recorded = self.playbook.ledger.recorded([decision.id for decision in decisions])
        fresh = {one.id: one for one in decisions if one.id not in recorded}
        self.playbook.record(
            [trusted(DecisionMade, kind="decision_made", decision=decision) for decision in fresh.values()],
            rows=memory.adding([one.transaction for one in fresh.values()]) if memory and fresh else None,
        )
        return [recorded.get(one.id, one) for one in decisions]

    def score_all(self, transactions: Iterable[Transaction], *, every_bullet: bool = False) -> Scores:
        """The probabilities that `decide_all` would come to with the embedded engine, as columns; nothing is recorded.

        With `every_bullet` all bullets that fire speak, not only those that the selector picks.
        """
        rows, snapshot = Transactions.of(transactions), self._newest()
        memory = memory_for(snapshot.mapping)
        if memory is not None:
            rows = Transactions.of(memory.enriched(rows, self.playbook.ledger))
        selector = None if every_bullet else self.selector
        return score(rows, snapshot, selector, self.options)

    async def decide_on(self, transaction: Transaction, snapshot: Snapshot) -> Decision:
        """What would be decided on a given revision. Nothing is recorded."""
        return (await self._decider.decide([transaction], snapshot, self.agent))[0]

    async def replay(self, decision: Decision) -> Decision:
        """Decide again on the revision a decision was made with, from the ledger alone."""
        return await self.decide_on(decision.transaction, self.playbook.snapshot_at(decision.revision))

    def memory(self) -> EntityMemory | None:
        """What remembers entities, where the latest training asks for it."""
        return memory_for(self._newest().mapping)

    def _newest(self) -> Snapshot:
        """The playbook with all that anybody has written."""
        self.playbook.refresh()
        return self.playbook.snapshot()

    # --- hearing ---

    async def hear(
        self, outcome: Outcome, transaction: Transaction | None = None, judgement: Judgement | None = None
    ) -> Heard:
        """Take in what turned out to be true, and learn from it.

        Hearing the same outcome again changes nothing; hearing another truth takes back what the first one counted.
        A transaction that was never decided can be learnt from where it is handed over too. What a judge without the
        truth made of a decision (`judgement`) counts as a use of bullets; nothing is measured by it or learnt from it.
        """
        judgements = None if judgement is None else [judgement]
        return (await self._hear_all([outcome], [transaction], judgements))[0]

    async def hear_all(
        self, outcomes: Iterable[Outcome], transactions: Iterable[Transaction | None] | None = None
    ) -> list[Heard]:
        """Take in many outcomes in turn, recorded together or not at all, and then learn from them.

        `transactions` are those that the outcomes are about, in the same order; None where one was decided before.
        """
        given = list(outcomes)
        about = [None] * len(given) if transactions is None else list(transactions)
        if len(about) != len(given):
            raise InputError(f"{len(given):,} outcomes and {len(about):,} transactions: expected one for each, or none")
        return await self._hear_all(given, about, None)

    async def _hear_all(
        self,
        outcomes: Sequence[Outcome],
        transactions: Sequence[Transaction | None],
        judgements: Sequence[Judgement] | None,
    ) -> list[Heard]:
        for outcome, transaction in zip(outcomes, transactions, strict=True):
            if transaction is not None and transaction.id != outcome.transaction_id:
                raise InputError(f"the outcome is of '{outcome.transaction_id}', the transaction is '{transaction.id}'")
        taken = await self._recorder.record(outcomes, transactions, judgements)
        new = [one for one in taken if one.is_news and one.teaches]
        reviewed = await self._learn_if_due(new) if new else None
        heard = [Heard(one.hearing.judgement, already_known=not one.is_news) for one in taken]
        if reviewed is not None:
            last = max(place for place, one in enumerate(taken) if one.is_news)
            first_added = reviewed.added[0] if reviewed.added else None
            heard[last] = replace(heard[last], new_bullet=first_added, review=reviewed)
        return heard

    async def finish_lessons(self) -> list[str]:
        """Reflect on the failures that still wait for others of their kind; returns the ids of the bullets added."""
        if not self._planner.waits:
            return []
        reviewed = await self._ask_and_review(Depth.WHOLE)
        return list(reviewed.added) if reviewed else []

    async def judge_pending(self, decision: Decision) -> Judgement:
        """Ask the judge about a decision whose truth is not known, and take in what it says where it says anything."""
        text = self.judge.presentable(decision.transaction.text, decision.facts)
        judgement = await self.judge.rule(text, str(decision.verdict), None)
        if judgement.is_correct is None or decision.verdict is Verdict.REVIEW:
            return judgement
        fraud = (decision.verdict is Verdict.DECLINE) == judgement.is_correct
        outcome = Outcome(transaction_id=decision.transaction.id, is_fraud=fraud, source=OutcomeSource.JUDGE)
        await self.hear(outcome, judgement=judgement)
        return judgement

    # --- learning ---

    async def _learn_if_due(self, new: Sequence[Taken]) -> Reviewed | None:
        """Learn from outcomes, where it is time to. They are recorded by now, so what goes wrong is not raised."""
        try:
            return await self._learn(new)
        except AcefraudError as problem:
            declined = Reviewed(node=self.options.node, whole=True, cases=0, frauds=0, declined=str(problem))
            with suppress(StoreError):  # where even that cannot be written, the caller is told all the same
                self.playbook.record([declined])
            return declined

    async def _learn(self, new: Sequence[Taken]) -> Reviewed | None:
        self._odds.hear([(one.hearing.decision, one.hearing.outcome.is_fraud) for one in new])
        self._planner.note([one.hearing for one in new])
        depth = self._planner.due(self.playbook.learning(self.options.node))
        return None if depth is None else await self._ask_and_review(depth)

    async def _ask_and_review(self, depth: Depth) -> Reviewed | None:
        """Ask whoever reflects what there is to say, and write what of it holds up."""
        self.remembered()
        said = await self._planner.ask(self.playbook.snapshot(), depth)
        return self._review(depth, said, forced=self._planner.waits)  # what a model was asked for is not dropped

    def review(self) -> Reviewed:
        """Review the playbook now: watch, retire, revive, induce, fit, calibrate. Returns what was done.

        Where a model reflects, it is not asked: that is what `finish_lessons` does.
        """
        done = self._review(Depth.WHOLE, forced=True)
        assert done is not None, "what is asked for is always due"
        return done

    def _review(self, depth: Depth, said: Said = (), *, forced: bool = False) -> Reviewed | None:
        """One review, or one look at recent records, worked out anew where somebody changed the book meanwhile."""
        conflict = ""
        for _ in range(ATTEMPTS):
            self.playbook.refresh()
            state = self.playbook.learning(self.options.node)
            due = depth if forced else self._planner.due(state)
            if due is None:  # another learner on this playbook was faster
                return None
            seen, snapshot, cases = self.playbook.seq, self.playbook.snapshot(), self.remembered()
            plan = self._planner.review(cases, snapshot, said, depth=due, turn=state.reviews)
            try:
                return self._write(plan, since=seen)
            except StoreConflict as faster:
                conflict = str(faster)
        lost = f"{len(said)} lessons " if said else ""
        return self._declined(f"{lost}given up after {ATTEMPTS} attempts: {conflict}", whole=False)

    def _write(self, plan: ReviewPlan, since: int) -> Reviewed:
        why = f"learnt from the latest {plan.cases:,} outcomes"
        with self.playbook.one_step(why=why, since=since):
            reviewed = apply(plan, self.playbook, self.curator, self.options)
            self.playbook.record([reviewed])
        return reviewed

    def _declined(self, reason: str, *, whole: bool = True) -> Reviewed:
        """A review that came to nothing, in the ledger with its reason."""
        cases = self.remembered()
        reviewed = Reviewed(node=self.options.node, whole=whole, cases=len(cases), frauds=cases.frauds, declined=reason)
        self.playbook.record([reviewed])
        return reviewed

    @property
    def proposed(self) -> Proposed | None:
        """What a model that reflects was asked so far, and what became of it; None where none reflects."""
        return self._planner.proposed

    def remembered(self) -> LabelledFacts:
        """The labelled cases that learning looks back on, up to the latest that anybody heard."""
        return self._cases.catch_up()

    def reread(self, *, everything: bool = False) -> Reread:
        """Read the texts of remembered cases with the reader of this version, and review the playbook on them.

        Cases that this version has read already are passed over, unless `everything` is wanted.
        """
        done = self._cases.reread(everything=everything)
        if done.changed:
            self.review()
        return done

    def measure(self, condition: Condition) -> Evidence | None:
        """What the remembered cases say of a condition; None where there are none."""
        return self.remembered().measure(condition)

    def refit(self) -> None:
        """Fit the weights of bullets with a condition, and the calibration, on what is remembered."""
        fit = partial(refit, self.playbook, self.reflector.engine, self.remembered(), self.options)
        self.playbook.run_step(fit, why=FITTED_ANEW)

    # --- whole histories ---

    def study(
        self,
        cases: Sequence[Case],
        *,
        dataset: str = "",
        mapping: str = "",
        waiting: Sequence[Transaction] = (),
        threshold: ThresholdRule | None = None,
        progress: Callable[[float], None] = lambda _: None,
    ) -> list[str]:
        """Learn from a whole labelled history at once; returns the ids of the bullets added.

        Where the mapping asks for a history, the cases get the facts that it gives and stay remembered, together with
        the transactions that are still ``waiting`` for their label. Without a rule the threshold stays as it is. A
        reflector on a model has to be awaited: `train` does that.
        """
        if self._planner.waits:
            raise ConfigurationError(
                f"the reflector is {self.reflector.model}, which has to be waited for: use `await learner.train(...)`"
            )
        return self._study(self._training(cases, dataset, mapping, waiting, threshold), (), progress)

    def _study(self, training: Training, said: Said, progress: Callable[[float], None]) -> list[str]:
        attempts = 0
        while True:
            self.playbook.refresh()
            seen = self.playbook.seq
            plan = self._planner.study(training, self.playbook.snapshot(), said, progress)
            try:
                with self.playbook.one_step(why=f"learnt from {training.trained.rows:,} labelled cases", since=seen):
                    training.remember(self.playbook)
                    added = apply(plan, self.playbook, self.curator, self.options).added
                    training.set_threshold(self.playbook, self.selector, self.options)
                return list(added)
            except StoreConflict:  # somebody changed the book meanwhile: it is worked out on what is there now
                attempts += 1
                if attempts == ATTEMPTS:
                    raise

    async def train(
        self,
        cases: Sequence[Case],
        *,
        dataset: str = "",
        mapping: str = "",
        waiting: Sequence[Transaction] = (),
        threshold: ThresholdRule | None = None,
        progress: Callable[[float], None] = lambda _: None,
    ) -> list[str]:
        """Learn from a labelled history with whoever plays the reflector; returns the ids of the bullets added."""
        training = self._training(cases, dataset, mapping, waiting, threshold)
        if self._planner.waits:  # what a model says is measured on all that is remembered
            self.remembered()
        said = await self._planner.ask_about(training, self.playbook.snapshot(), self.selector, progress)
        return self._study(training, said, progress)

    def _training(
        self,
        cases: Sequence[Case],
        dataset: str,
        mapping: str,
        waiting: Sequence[Transaction],
        threshold: ThresholdRule | None,
    ) -> Training:
        return Training.of(
            Cases.of(cases),
            Transactions.of(waiting),
            mapping,
            threshold,
            dataset=dataset,
            playbook=self.playbook,
            reflector=self.reflector,
            node=self.options.node,
        )

    # --- the odds of a model's words ---

    async def scale_odds(self, cases: Sequence[Case], base_rate: float | None = None) -> None:
        """Fit what the odds of the model's verdict tokens mean, on labelled cases decided as they would be now.

        Where the cases were drawn by their label, `base_rate` says how common fraud really is.
        """
        snapshot = self.playbook.snapshot()
        model = self.agent.without_tier
        decisions = await self._decider.decide([case.transaction for case in cases], snapshot, model)
        pairs = [(one.odds, case.is_fraud) for one, case in zip(decisions, cases, strict=True) if one.odds is not None]
        self._odds.fit(model.model, pairs, base_rate)
