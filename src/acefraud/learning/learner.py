"""The loop on one playbook. Deciding never changes it; learning never decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from acefraud.core.bullet import Source, Status
from acefraud.core.condition import Condition
from acefraud.core.decision import Decision, ReasonKind
from acefraud.core.english import say_facts
from acefraud.core.events import DecisionMade, Happening, OddsScaled, OutcomeHeard, Trained
from acefraud.core.evidence import Evidence
from acefraud.core.ledger import RowsChange
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource, Ruling
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import Agent, Assessment, FetchesAhead, Judge, Presents
from acefraud.core.scoring import Calibration
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.curation.curator import Curator, NewBullet
from acefraud.embedded.agent import SimpleFraudAgent, weigh
from acefraud.embedded.embedder import DEFAULT_EMBEDDER
from acefraud.embedded.facts import KnownFacts, facts_of
from acefraud.embedded.judge import SimpleJudge
from acefraud.embedded.reflector import KnownAlready, Reflector, as_reply, by_time
from acefraud.errors import ModelError, StoreConflict
from acefraud.learning.credits import Hearing, all_credits, heard_before, labels_in
from acefraud.learning.deciding import all_at_once, decided, in_turns
from acefraud.learning.odds import fit_scale, heard_odds, settled
from acefraud.learning.options import LearnerOptions
from acefraud.learning.proposing import ModelLessons
from acefraud.learning.reflecting import example_of
from acefraud.learning.remembering import EntityMemory, directions_of, forgetting, memory_for
from acefraud.learning.standing_in import Fallback, Tiered
from acefraud.learning.thresholds import ThresholdRule, cases_for
from acefraud.learning.upkeep import Upkeep
from acefraud.selection.hybrid import HybridSelector, Selection
from acefraud.storage.playbook import BulletPlaybook

ODDS_KEPT = 500
"""The latest outcomes of decisions by a model whose verdict tokens had odds, on which their meaning is fitted anew."""
ATTEMPTS = 5
"""How often a lesson is put on top of what other writers have written meanwhile, before it is given up."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What hearing one outcome did."""

    judgement: Judgement
    new_bullet: str | None = None
    already_known: bool = False


@dataclass(frozen=True, slots=True)
class Course:
    """A labelled history on its way into the playbook."""

    ordered: list[Case]
    trained: Trained
    remembered: RowsChange | None
    threshold: ThresholdRule | None
    tried_on: list[Case]


class Learner:
    """Decides transactions with a playbook, and turns outcomes into a better one."""

    def __init__(
        self,
        playbook: BulletPlaybook,
        *,
        agent: Agent | None = None,
        judge: Judge | None = None,
        reflector: Reflector | None = None,
        curator: Curator | None = None,
        selector: HybridSelector | None = None,
        lessons: ModelLessons | None = None,
        options: LearnerOptions | None = None,
    ) -> None:
        self.playbook = playbook
        self.agent: Agent = SimpleFraudAgent() if agent is None else agent
        self.judge: Judge = SimpleJudge() if judge is None else judge
        self.reflector = Reflector() if reflector is None else reflector
        self.curator = Curator() if curator is None else curator
        self.selector = HybridSelector() if selector is None else selector
        self.lessons = lessons
        self.options = options or LearnerOptions()
        self.upkeep = Upkeep(playbook, self.reflector, self.selector, lessons, self.options)
        self._recalled = False
        self._odds: dict[str, list[tuple[float, bool]]] = {}

    # --- deciding ---

    async def decide(self, transaction: Transaction) -> Decision:
        """Decide one transaction and record the decision."""
        return (await self.decide_all([transaction]))[0]

    async def decide_all(self, transactions: Sequence[Transaction]) -> list[Decision]:
        """Decide several on one revision of the playbook and record them together, or none.

        Where a history is kept, each gets the facts that its past gives, and counts for those after it.
        """
        memory = self.memory()
        if memory is not None:
            transactions = memory.enriched(transactions, self.playbook.ledger)
        snapshot = self.playbook.snapshot()
        decisions = await self._decide_on(transactions, snapshot)
        recorded = [self.playbook.ledger.decision(decision.id) for decision in decisions]
        fresh = {new.id: new for new, old in zip(decisions, recorded, strict=True) if old is None}
        self.playbook.record(
            [DecisionMade(decision=decision) for decision in fresh.values()],
            rows=memory.adding([new.transaction for new in fresh.values()]) if memory and fresh else None,
        )
        return [old or new for new, old in zip(decisions, recorded, strict=True)]

    async def decide_on(self, transaction: Transaction, snapshot: Snapshot) -> Decision:
        """What would be decided on a given revision. Nothing is recorded."""
        return (await self._decide_on([transaction], snapshot))[0]

    async def _decide_on(
        self, transactions: Sequence[Transaction], snapshot: Snapshot, agent: Agent | None = None
    ) -> list[Decision]:
        """All of them at once: those that wait for a model do not hold up the others."""
        embedded = isinstance(agent or self.agent, SimpleFraudAgent)
        waits = not embedded or self.selector.fetches_ahead
        known = [facts_of(transaction) async for transaction in in_turns(transactions, waits)]
        selector, failure = await self._selector_for(transactions, known, snapshot)
        node = self.options.node
        calibration = snapshot.calibration(node)
        threshold = calibration.threshold if calibration else 0.5

        def made(transaction: Transaction, facts: KnownFacts, view: Assessment, chosen: Selection) -> Decision:
            decision = decided(transaction, facts, view, chosen.trace, node=node, threshold=threshold)
            return decision.model_copy(update={"selection_fallback": failure}) if failure else decision

        async def decide(transaction: Transaction, facts: KnownFacts) -> Decision:
            chosen = selector.select(transaction, facts.facts, snapshot, node=node, n_bullets=self.options.n_bullets)
            view = await (agent or self.agent).assess(transaction.text, facts.facts, chosen.bullets, calibration)
            return made(transaction, facts, settled(view, snapshot.scale(node, view.model), threshold), chosen)

        each = list(zip(transactions, known, strict=True))
        if waits:
            return await all_at_once(decide(*one) for one in each)
        chosen = selector.select_many(
            transactions, [one.facts for one in known], snapshot, node=node, n_bullets=self.options.n_bullets
        )
        return [  # the embedded engine never waits, and needs no event loop
            made(transaction, facts, weigh(facts.facts, picked.bullets, calibration, proven=picked.proven), picked)
            for (transaction, facts), picked in zip(each, chosen, strict=True)
        ]

    async def _selector_for(
        self, transactions: Sequence[Transaction], known: Sequence[KnownFacts], snapshot: Snapshot
    ) -> tuple[HybridSelector, str]:
        """The selector with all vectors at hand; with an embedded embedder, and why, where the model's failed."""
        embedder = self.selector.embedder
        if not self.selector.fetches_ahead or not isinstance(embedder, FetchesAhead):
            return self.selector, ""
        pairs = zip(transactions, known, strict=True)
        texts = [self.selector.texts_for(each, facts.facts, snapshot, self.options.node) for each, facts in pairs]
        try:
            await embedder.fetch([text for some in texts for text in some])
        except ModelError as failure:
            if self.options.fallback is Fallback.ERROR:
                raise
            return self.selector.with_embedder(DEFAULT_EMBEDDER), str(failure)
        return self.selector, ""

    async def replay(self, decision: Decision) -> Decision:
        """Decide again on the revision a decision was made with, from the ledger alone."""
        return await self.decide_on(decision.transaction, self.playbook.snapshot_at(decision.revision))

    def memory(self) -> EntityMemory | None:
        """What remembers entities, where the latest training asks for it."""
        if memory_for(self.playbook.snapshot().mapping) is None:
            return None
        self.playbook.refresh()
        return memory_for(self.playbook.snapshot().mapping)

    # --- hearing ---

    async def hear(
        self, outcome: Outcome, transaction: Transaction | None = None, judgement: Judgement | None = None
    ) -> Heard:
        """Take in what turned out to be true, and learn from it.

        Hearing the same outcome again changes nothing; hearing another truth takes back what the first one counted.
        A transaction that was never decided can be learnt from where it is handed over too. What a judge without the
        truth made of a decision (`judgement`) counts as a use of bullets; nothing is measured by it or learnt from it.
        """
        node = self.options.node
        made = [m for m in self.playbook.ledger.decisions_of(outcome.transaction_id) if m.decision.node == node]
        decision = made[-1].decision if made else None
        memory = self.memory()
        if memory is not None and decision is None and transaction is not None:
            transaction = memory.enriched([transaction], self.playbook.ledger)[0]
        subject = decision.transaction if decision else transaction
        judgement = judgement or await self._judge(outcome, decision)
        opinion = outcome.source is OutcomeSource.JUDGE
        hearing = Hearing(outcome, decision, subject, judgement)
        news = True

        def happenings(playbook: BulletPlaybook) -> tuple[Sequence[Happening], Sequence[Case]]:
            nonlocal news
            before = [h for h in playbook.ledger.outcomes_of(outcome.transaction_id) if h.node == node]
            if heard_before(hearing, before):
                news = False
                return (), ()
            known = before if opinion else labels_in(before)
            news = not known or known[-1].outcome.is_fraud != outcome.is_fraud or known[-1].decision_id is None
            heard = OutcomeHeard(
                kind="outcome_revised" if before else "outcome_heard",
                node=node,
                outcome=outcome,
                decision_id=decision.id if decision else None,
                judgement=judgement,
                credits=all_credits(before, hearing, playbook.snapshot()) if news else (),
            )
            if subject is None or opinion:
                return [heard], []
            return [heard], [Case(transaction=subject, is_fraud=outcome.is_fraud, known_at=outcome.at)]

        self._recall()
        told = memory.hearing(outcome, None if decision else transaction) if memory and not opinion else None
        self.playbook.record_if_unchanged(happenings, who=str(outcome.source), rows=told)
        if not news:
            return Heard(judgement, already_known=True)
        if subject is None or opinion:
            return Heard(judgement)
        return Heard(judgement, await self._learn(subject, decision, outcome, judgement))

    async def finish_lessons(self) -> list[str]:
        """Reflect on the failures that still wait for others of their kind; returns the ids of the bullets added."""
        if self.lessons is None:
            return []
        known = self.playbook.get_bullets_for_node(self.options.node)
        replies = [ruling.as_reply() for ruling in await self.lessons.lessons(known, all_waiting=True)]
        with self.playbook.one_step(why="learnt from the failures of a run"):
            added = self._curate(replies, Source.ONLINE)
            self.upkeep.refit()
        return added

    async def judge_pending(self, decision: Decision) -> Judgement:
        """Ask the judge about a decision whose truth is not known, and take in what it says where it says anything."""
        text = decision.transaction.text or say_facts(decision.facts)
        if isinstance(self.judge, Presents):
            text = self.judge.presentable(decision.transaction.text, decision.facts)
        judgement = await self.judge.rule(text, str(decision.verdict), None)
        if judgement.is_correct is None or decision.verdict is Verdict.REVIEW:
            return judgement
        fraud = (decision.verdict is Verdict.DECLINE) == judgement.is_correct
        outcome = Outcome(transaction_id=decision.transaction.id, is_fraud=fraud, source=OutcomeSource.JUDGE)
        await self.hear(outcome, judgement=judgement)
        return judgement

    def _recall(self) -> None:
        """Remember the cases of the ledger, once, and only where something is to be learnt or measured."""
        if not self._recalled:
            self.reflector.remember(self.playbook.ledger.cases(self.reflector.options.memory))
            self._recalled = True

    def measure(self, condition: Condition) -> Evidence | None:
        """What the remembered cases say of a condition; None where there are none."""
        self._recall()
        return self.reflector.measure(condition)

    async def _judge(self, outcome: Outcome, decision: Decision | None) -> Judgement:
        if decision is None:
            return Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="no decision was made on it")
        if decision.verdict is Verdict.REVIEW:
            return Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="it was left to a person to decide")
        return await self.judge.rule(decision.transaction.text, str(decision.verdict), str(outcome.truth))

    async def _learn(
        self, transaction: Transaction, decision: Decision | None, outcome: Outcome, judgement: Judgement
    ) -> str | None:
        self.reflector.remember([Case(transaction=transaction, is_fraud=outcome.is_fraud)])
        if decision is not None and decision.odds is not None:
            self._hear_odds(decision.model, decision.odds, outcome.is_fraud)
        if self.lessons is None:
            replies = await self._lessons(transaction, decision, outcome, judgement)
        else:
            replies = await self._lessons_of_model(self.lessons, transaction, decision, outcome)
        if not replies and self.playbook.outcomes % self.options.review_every:
            return None
        for _ in range(ATTEMPTS):
            try:
                with self.playbook.one_step(why=f"learnt from {outcome.transaction_id}"):
                    added = self._curate(replies, Source.ONLINE)
                    self.upkeep.recheck()
                    self.upkeep.demote()
                    self.upkeep.refit()
                return added[0] if added else None
            except StoreConflict:  # another writer was faster; what was learnt is put on top of what that one wrote
                continue
        return None

    async def _lessons(
        self, transaction: Transaction, decision: Decision | None, outcome: Outcome, judgement: Judgement
    ) -> list[dict[str, Any]]:
        snapshot = self.playbook.snapshot()
        if snapshot.count(self.options.node) >= self.options.most_bullets:
            return []
        known = KnownAlready(tuple(snapshot.for_node(self.options.node)), snapshot.calibration(self.options.node))
        replies = self.reflector.review(known) if self.playbook.outcomes % self.options.review_every == 0 else []
        wrong = judgement.ruling is Ruling.INCORRECT
        if wrong or self.playbook.outcomes % self.options.reflect_every == 0:
            reply = await self.reflector.reflect(
                transaction,
                predicted=str(_verdict_of(decision) or outcome.truth),
                correct=str(outcome.truth),
                node=self.options.node,
                agent_reasoning="; ".join(reason.text for reason in decision.reasons[:3]) if decision else "",
                known=known,
            )
            replies.extend([reply] if reply else [])
        return replies

    async def _lessons_of_model(
        self, lessons: ModelLessons, transaction: Transaction, decision: Decision | None, outcome: Outcome
    ) -> list[dict[str, Any]]:
        case = Case(transaction=transaction, is_fraud=outcome.is_fraud)
        if decision is not None and _verdict_of(decision) is not None:
            said = next((reason.text for reason in decision.reasons if reason.kind is ReasonKind.MODEL), "")
            example = example_of(case, decision.verdict, said)
            lessons.note(example, transaction.id, decision.probability, decision.threshold)
        if self.playbook.snapshot().count(self.options.node) >= self.options.most_bullets:
            return []
        bullets = self.playbook.get_bullets_for_node(self.options.node)
        due = self.playbook.outcomes % self.options.review_every == 0
        return [ruling.as_reply() for ruling in await lessons.lessons(bullets, all_waiting=due)]

    def _curate(self, replies: Sequence[dict[str, Any]], source: Source) -> list[str]:
        """Let the playbook say what was learnt; returns the ids of the bullets that are new or came back."""
        new = [_new_bullet(reply, source) for reply in replies]
        return [one for one in self.curator.merge_bullets(new, self.options.node, self.playbook) if one is not None]

    # --- fitting and keeping in order ---

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
        the transactions that are still ``waiting`` for their label. Without a rule the threshold stays as it is.
        """
        course = self._course(cases, dataset, mapping, waiting, threshold)
        rising, falling = directions_of(mapping)
        ordered = course.ordered
        induced = self.reflector.study(ordered, progress, rising=rising, falling=falling) if ordered else None
        alone = not self.playbook.snapshot().count(self.options.node)
        replies = [as_reply(lesson) for lesson in induced.lessons] if induced else []
        return self._finish(course, replies, induced.calibration if induced is not None and alone else None)

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
        if self.lessons is None:
            return self.study(
                cases, dataset=dataset, mapping=mapping, waiting=waiting, threshold=threshold, progress=progress
            )
        course = self._course(cases, dataset, mapping, waiting, threshold)
        known = self.playbook.get_bullets_for_node(self.options.node)
        frame = self.playbook.snapshot().calibration(self.options.node)
        wanted = self.options.n_bullets
        rulings = await self.lessons.study(
            course.ordered, known, frame, selector=self.selector, wanted=wanted, progress=progress
        )
        return self._finish(course, [ruling.as_reply() for ruling in rulings], None)

    def _course(
        self,
        cases: Sequence[Case],
        dataset: str,
        mapping: str,
        waiting: Sequence[Transaction],
        threshold: ThresholdRule | None,
    ) -> Course:
        """A labelled history, made ready to be learnt from."""
        self._recall()
        memory = memory_for(mapping)
        ordered = by_time(cases if memory is None else memory.studied(cases, waiting))
        share = self.reflector.options.induction.later_share
        frauds = sum(case.is_fraud for case in cases)
        return Course(
            ordered=ordered,
            trained=Trained(node=self.options.node, dataset=dataset, rows=len(cases), frauds=frauds, mapping=mapping),
            remembered=memory.filling(cases, waiting, self.playbook.ledger) if memory else self._end_of_memory(),
            threshold=threshold,
            tried_on=cases_for(threshold, ordered, share) if threshold else [],
        )

    def _finish(self, course: Course, replies: Sequence[dict[str, Any]], frame: Calibration | None) -> list[str]:
        """Write all that was learnt in one step, with the frame it was learnt in or one fitted anew."""
        with self.playbook.one_step(why=f"learnt from {course.trained.rows:,} labelled cases"):
            latest = course.ordered[-self.reflector.options.memory :]
            self.playbook.record([course.trained], cases=latest, rows=course.remembered)
            self.upkeep.recheck()
            added = self._curate(replies, Source.OFFLINE)
            if frame is None:
                self.upkeep.refit()
            else:
                self.upkeep.frame(frame, {})
            if course.threshold is not None:
                self.upkeep.set_threshold(course.threshold, course.tried_on)
        return added

    async def scale_odds(self, cases: Sequence[Case], base_rate: float | None = None) -> None:
        """Fit what the odds of the model's verdict tokens mean, on labelled cases decided as they would be now.

        Where the cases were drawn by their label, `base_rate` says how common fraud really is.
        """
        snapshot = self.playbook.snapshot()
        model = self.agent.agent if isinstance(self.agent, Tiered) else self.agent  # it is asked about clear cases too
        decisions = await self._decide_on([case.transaction for case in cases], snapshot, model)
        pairs = [(one.odds, case.is_fraud) for one, case in zip(decisions, cases, strict=True) if one.odds is not None]
        self._scale(model.model, pairs, base_rate)

    def _hear_odds(self, model: str, odds: float, is_fraud: bool) -> None:
        """Every so many outcomes of decisions by one model, fit anew what the odds of its verdict tokens mean."""
        if model in self._odds:
            self._odds[model].append((odds, is_fraud))
        else:  # the ledger knows this one already
            self._odds[model] = heard_odds(self.playbook.ledger, self.options.node, model)
        if len(self._odds[model]) % self.options.review_every == 0:
            self._scale(model, self._odds[model][-ODDS_KEPT:])

    def _scale(self, model: str, pairs: Sequence[tuple[float, bool]], base_rate: float | None = None) -> None:
        scale = fit_scale([odds for odds, _ in pairs], [truth for _, truth in pairs], base_rate)
        if scale is not None:
            self.playbook.record([OddsScaled(node=self.options.node, model=model, scale=scale)])

    def _end_of_memory(self) -> RowsChange | None:
        """What a training without a history does to one that is kept."""
        return forgetting if self.memory() else None

    def refit(self) -> None:
        """Fit the weights of bullets with a condition, and the frame around them, on what is remembered."""
        self._recall()
        self.upkeep.refit()

    def demote(self) -> None:
        """Retire or question bullets whose record on the latest outcomes no longer bears them out."""
        self._recall()
        self.upkeep.demote()


def _new_bullet(reply: dict[str, Any], source: Source) -> NewBullet:
    """What a reply of the reflector asks for."""
    condition, argues = reply["condition"], reply["argues"]
    return NewBullet(
        content=str(reply["new_bullet"]),
        source=source,
        condition=None if condition is None else Condition.parse(str(condition)),
        argues=None if argues is None else Verdict(str(argues)),
        evidence=reply["evidence"],
        weight=reply["weight"],
        problem_types=reply["problem_types"],
        status=reply.get("status", Status.ACTIVE),
        why=reply.get("why", ""),
    )


def _verdict_of(decision: Decision | None) -> Verdict | None:
    """What was decided; None where nobody did, or it was left to a person."""
    return None if decision is None or decision.verdict is Verdict.REVIEW else decision.verdict
