"""The loop on one playbook. Deciding never changes it; learning never decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acefraud.core.bullet import DEFAULT_NODE, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.decision import Decision, decision_id
from acefraud.core.events import DecisionMade, Happening, OutcomeHeard, Recalibrated, Trained
from acefraud.core.evidence import Evidence
from acefraud.core.ledger import RowsChange
from acefraud.core.outcome import Judgement, Outcome, Ruling
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import Agent, Judge
from acefraud.core.scoring import Calibration
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.curation.curator import Curator
from acefraud.embedded.agent import SimpleFraudAgent
from acefraud.embedded.facts import facts_of
from acefraud.embedded.judge import SimpleJudge
from acefraud.embedded.reflector import KnownAlready, Reflector, as_reply, by_time
from acefraud.embedded.scorecard import GENERAL
from acefraud.errors import StoreConflict
from acefraud.learning.credits import Hearing, all_credits, heard_before
from acefraud.learning.demotion import demotion_of
from acefraud.learning.remembering import EntityMemory, directions_of, forgetting, memory_for
from acefraud.learning.thresholds import ThresholdRule, cases_for, choose, said_of
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook

ATTEMPTS = 5
"""How often a lesson is put on top of what other writers have written meanwhile, before it is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerOptions:
    """When and how much is learnt."""

    node: str = DEFAULT_NODE
    n_bullets: int = 10
    reflect_every: int = 10
    """Reflect on every failure, and on every so-manieth outcome whatever it was."""
    review_every: int = 50
    """After so many outcomes, look at all remembered cases together and fit all weights anew."""
    threshold: float = 0.5
    """Probability of fraud from which a transaction is declined, until training chooses another."""
    recent: int = 2_000
    """The latest outcomes, on which the record of each bullet is watched."""
    most_bullets: int = 150
    """No further bullets are proposed while the node has so many that are not retired."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What hearing one outcome did."""

    judgement: Judgement
    new_bullet: str | None = None
    already_known: bool = False


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
        options: LearnerOptions | None = None,
    ) -> None:
        self.playbook = playbook
        self.agent: Agent = SimpleFraudAgent() if agent is None else agent
        self.judge: Judge = SimpleJudge() if judge is None else judge
        self.reflector = Reflector() if reflector is None else reflector
        self.curator = Curator() if curator is None else curator
        self.selector = HybridSelector() if selector is None else selector
        self.options = options or LearnerOptions()
        self._recalled = False

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
        decisions = [await self.decide_on(transaction, snapshot) for transaction in transactions]
        recorded = [self.playbook.ledger.decision(decision.id) for decision in decisions]
        fresh = {new.id: new for new, old in zip(decisions, recorded, strict=True) if old is None}
        self.playbook.record(
            [DecisionMade(decision=decision) for decision in fresh.values()],
            rows=memory.adding([new.transaction for new in fresh.values()]) if memory and fresh else None,
        )
        return [old or new for new, old in zip(decisions, recorded, strict=True)]

    async def decide_on(self, transaction: Transaction, snapshot: Snapshot) -> Decision:
        """What would be decided on a given revision. Nothing is recorded."""
        node = self.options.node
        known = facts_of(transaction)
        chosen = self.selector.select(transaction, known.facts, snapshot, node=node, n_bullets=self.options.n_bullets)
        calibration = snapshot.calibration(node)
        view = await self.agent.assess(transaction.text, known.facts, chosen.bullets, calibration)
        return Decision(
            id=decision_id(transaction, node, self.agent.model, chosen.trace),
            transaction=transaction,
            node=node,
            verdict=view.verdict,
            probability=view.probability,
            threshold=calibration.threshold if calibration else 0.5,
            base=view.base,
            reasons=view.reasons,
            facts=known.facts,
            unread=known.unread,
            revision=snapshot.revision,
            selection=chosen.trace,
            model=self.agent.model,
        )

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

    async def hear(self, outcome: Outcome, transaction: Transaction | None = None) -> Heard:
        """Take in what turned out to be true, and learn from it.

        Hearing the same outcome again changes nothing; hearing another truth takes back what the first one counted.
        A transaction that was never decided can be learnt from where it is handed over too.
        """
        node = self.options.node
        made = [m for m in self.playbook.ledger.decisions_of(outcome.transaction_id) if m.decision.node == node]
        decision = made[-1].decision if made else None
        memory = self.memory()
        if memory is not None and decision is None and transaction is not None:
            transaction = memory.enriched([transaction], self.playbook.ledger)[0]
        subject = decision.transaction if decision else transaction
        judgement = await self._judge(outcome, decision)
        hearing = Hearing(outcome, decision, subject, judgement)
        news = True

        def happenings(playbook: BulletPlaybook) -> tuple[Sequence[Happening], Sequence[Case]]:
            nonlocal news
            before = [h for h in playbook.ledger.outcomes_of(outcome.transaction_id) if h.node == node]
            if heard_before(hearing, before):
                news = False
                return (), ()
            news = not before or before[-1].outcome.is_fraud != outcome.is_fraud or before[-1].decision_id is None
            heard = OutcomeHeard(
                kind="outcome_revised" if before else "outcome_heard",
                node=node,
                outcome=outcome,
                decision_id=decision.id if decision else None,
                judgement=judgement,
                credits=all_credits(before, hearing, playbook.snapshot()) if news else (),
            )
            case = [Case(transaction=subject, is_fraud=outcome.is_fraud, known_at=outcome.at)] if subject else []
            return [heard], case

        self._recall()
        told = memory.hearing(outcome, None if decision else transaction) if memory else None
        self.playbook.record_if_unchanged(happenings, who=str(outcome.source), rows=told)
        if not news:
            return Heard(judgement, already_known=True)
        if subject is None:
            return Heard(judgement)
        return Heard(judgement, await self._learn(subject, decision, outcome, judgement))

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
        return await self.judge.rule(decision.transaction.text, str(decision.verdict), str(outcome.truth))

    async def _learn(
        self, transaction: Transaction, decision: Decision | None, outcome: Outcome, judgement: Judgement
    ) -> str | None:
        self.reflector.remember([Case(transaction=transaction, is_fraud=outcome.is_fraud)])
        replies = await self._lessons(transaction, decision, outcome, judgement)
        if not replies and self.playbook.outcomes % self.options.review_every:
            return None
        for _ in range(ATTEMPTS):
            try:
                with self.playbook.one_step(why=f"learnt from {outcome.transaction_id}"):
                    added = [new for reply in replies if (new := self._curate(reply, Source.ONLINE)) is not None]
                    self.demote()
                    self.refit()
                return added[0] if added else None
            except StoreConflict:  # another writer was faster; what was learnt is put on top of what that one wrote
                continue
        return None

    async def _lessons(
        self, transaction: Transaction, decision: Decision | None, outcome: Outcome, judgement: Judgement
    ) -> list[dict[str, Any]]:
        snapshot = self.playbook.snapshot()
        known = KnownAlready(tuple(snapshot.for_node(self.options.node)), snapshot.calibration(self.options.node))
        if len(known.bullets) >= self.options.most_bullets:
            return []
        replies = self.reflector.review(known) if self.playbook.outcomes % self.options.review_every == 0 else []
        wrong = judgement.ruling is Ruling.INCORRECT
        if wrong or self.playbook.outcomes % self.options.reflect_every == 0:
            reply = await self.reflector.reflect(
                transaction,
                predicted=str(decision.verdict if decision else outcome.truth),
                correct=str(outcome.truth),
                node=self.options.node,
                agent_reasoning="; ".join(reason.text for reason in decision.reasons[:3]) if decision else "",
                known=known,
            )
            replies.extend([reply] if reply else [])
        return replies

    def _curate(self, reply: dict[str, Any], source: Source) -> str | None:
        return self.curator.merge_bullet(
            content=str(reply["new_bullet"]),
            node=self.options.node,
            playbook=self.playbook,
            source=source,
            condition=Condition.parse(str(reply["condition"])),
            argues=Verdict(str(reply["argues"])),
            evidence=reply["evidence"],
            weight=reply["weight"],
            problem_types=reply["problem_types"],
        )

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
        self._recall()
        memory = memory_for(mapping)
        ordered = by_time(cases if memory is None else memory.studied(cases, waiting))
        tried_on = cases_for(threshold, ordered, self.reflector.options.induction.later_share) if threshold else []
        rising, falling = directions_of(mapping)
        induced = self.reflector.study(ordered, progress, rising=rising, falling=falling) if ordered else None
        lessons = induced.lessons if induced else ()
        frauds = sum(case.is_fraud for case in cases)
        trained = Trained(node=self.options.node, dataset=dataset, rows=len(cases), frauds=frauds, mapping=mapping)
        alone = not self.playbook.get_bullets_for_node(self.options.node)
        remembered = memory.filling(cases, waiting, self.playbook.ledger) if memory else self._end_of_memory()
        with self.playbook.one_step(why=f"learnt from {len(cases):,} labelled cases"):
            self.playbook.record([trained], cases=ordered[-self.reflector.options.memory :], rows=remembered)
            replies = [as_reply(lesson) for lesson in lessons]
            added = [new for reply in replies if (new := self._curate(reply, Source.OFFLINE)) is not None]
            if induced is not None and alone:
                self._frame(induced.calibration, {})
            else:
                self.refit()
            if threshold is not None:
                self._set_threshold(threshold, tried_on)
        return added

    def _end_of_memory(self) -> RowsChange | None:
        """What a training without a history does to one that is kept."""
        return forgetting if self.memory() else None

    def refit(self) -> None:
        """Fit the weights of bullets with a condition, and the frame around them, on what is remembered."""
        self._recall()
        bullets = [b for b in self.playbook.get_bullets_for_node(self.options.node) if b.condition is not None]
        fitted = self.reflector.refit(bullets)
        if fitted is None:
            return
        self._frame(fitted.calibration, fitted.weights)
        for bullet in bullets:  # it would only take a place among the few that are selected
            learnt = bullet.source is not Source.MANUAL and bullet.status is not Status.PINNED
            if learnt and fitted.weights.get(bullet.id) == 0:
                self.playbook.set_status(bullet.id, Status.RETIRED, why="fitted to nothing: others say it already")

    def _frame(self, calibration: Calibration, weights: dict[str, float]) -> None:
        before = self.playbook.snapshot().calibration(self.options.node)
        frame = calibration.model_copy(update={"threshold": before.threshold if before else self.options.threshold})
        self.playbook.record([Recalibrated(node=self.options.node, calibration=frame, weights=weights)])

    def _set_threshold(self, rule: ThresholdRule, cases: Sequence[Case]) -> None:
        """Choose the threshold on labelled cases, as the playbook decides them now."""
        frame = self.playbook.snapshot().calibration(self.options.node) or GENERAL
        bullets = self.playbook.get_bullets_for_node(self.options.node)
        said = said_of(cases, bullets, frame, self.selector, self.options.n_bullets)
        chosen = choose(rule, said, np.array([case.is_fraud for case in cases], dtype=np.bool_))
        frame = frame.model_copy(update={"threshold": chosen})
        self.playbook.record([Recalibrated(node=self.options.node, calibration=frame)])

    def demote(self) -> None:
        """Retire or question bullets whose record on the latest outcomes no longer bears them out."""
        self._recall()
        for bullet in self.playbook.get_bullets_for_node(self.options.node):
            if bullet.condition is None or bullet.status is Status.PINNED:
                continue
            seen = self.reflector.recent(bullet.condition, self.options.recent)
            verdict = demotion_of(bullet, seen.base_rate, seen.learnt, seen.cases)
            if verdict is not None:
                self.playbook.set_status(bullet.id, verdict.status, why=verdict.reason)
