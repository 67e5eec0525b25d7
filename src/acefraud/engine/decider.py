"""From transactions to decisions on one revision of the playbook. Nothing is recorded here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from acefraud.core.bullet import Bullet
from acefraud.core.calibration import log_odds
from acefraud.core.decision import Decision, decision_id
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import ReviewRule
from acefraud.core.transaction import Transaction, Verdict
from acefraud.engine.agent_fallback import Fallback, WrappedAgent
from acefraud.engine.embedded_decisions import DecisionList, DecisionSequence, decide_embedded
from acefraud.engine.familiarity import ReliedOn
from acefraud.engine.odds_calibration import calibrated
from acefraud.engine.options import LearnerOptions
from acefraud.engine.review_capacity import ReviewsLeft
from acefraud.engine.rule_context import deciding_policies, policy_reason
from acefraud.errors import ConfigurationError, ModelError
from acefraud.facts.extraction import READER, KnownFacts, facts_of
from acefraud.roles.embedded.agent import weigh
from acefraud.roles.embedded.embedder import DEFAULT_EMBEDDER
from acefraud.roles.protocols import Agent, Assessment, Question, answer_of, name_of, nearest_method
from acefraud.rules.english import say_facts
from acefraud.selection.hybrid import HybridSelector, Selection
from acefraud.settings import EMBEDDED
from acefraud.support.arguments import check_choice
from acefraud.support.validation import construct_unchecked

T = TypeVar("T")
IN_ONE_TURN = 4
"""Decisions that are started before other tasks on the event loop get their turn."""


async def in_turns(things: Iterable[T], waits: bool) -> AsyncIterator[T]:
    """One after another. If the event loop is shared (`waits`), other tasks get their turn now and then."""
    for place, thing in enumerate(things, 1):
        yield thing
        if waits and place % IN_ONE_TURN == 0:
            await asyncio.sleep(0)


async def all_at_once(deciding: Iterable[Coroutine[Any, Any, Decision]]) -> list[Decision]:
    """Every decision, in order. If one fails, the others are cancelled before the error is raised."""
    tasks: list[asyncio.Task[Decision]] = []
    try:
        async for each in in_turns(deciding, waits=True):
            tasks.append(asyncio.create_task(each))
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Decider:
    """Selects bullets for transactions and lets an agent decide with them."""

    def __init__(self, selector: HybridSelector, options: LearnerOptions) -> None:
        self._selector = selector
        self._options = options

    def waits(self, agent: Agent) -> bool:
        """Whether deciding needs an event loop: the embedded engine alone computes in columns and waits for nothing."""
        return self._selector.embedder.fetches_ahead or not getattr(agent, "adds_up", False) or agent.waits

    async def decide(
        self,
        transactions: Sequence[Transaction],
        snapshot: Snapshot,
        agent: Agent,
        *,
        known: Sequence[KnownFacts] | None = None,
        reviews: ReviewsLeft | None = None,
    ) -> DecisionSequence:
        """All decisions; those that wait for a model run concurrently. `known` are the facts, if they were read before.

        Those of the embedded engine are computed in columns (`EmbeddedDecisions`). `reviews` is what is left of the
        day's reviews.
        """
        waits = self.waits(agent)
        relied_on = ReliedOn.of(snapshot, self._options.node)
        if known is None:
            known = [facts_of(transaction) async for transaction in in_turns(transactions, waits)]
            if not waits:  # a model may know what no bullet tests
                known = relied_on.marked(known, self._options)
        if not waits:
            return decide_embedded(transactions, known, snapshot, self._selector, self._options, reviews=reviews)
        selector, failure = await self.selector_for(transactions, known, snapshot)
        node, n_bullets = self._options.node, self._options.n_bullets
        calibration = snapshot.calibration(node)
        threshold = calibration.threshold if calibration else self._options.threshold

        def decision(transaction: Transaction, facts: KnownFacts, view: Assessment, chosen: Selection) -> Decision:
            fallback = ("fallback", str(view.verdict)) if view.fallback else ()
            how = " ".join(part for part in (view.model, view.prompt, *fallback) if part)
            return construct_unchecked(
                Decision,
                id=decision_id(transaction, node, how, chosen.trace),
                transaction=transaction,
                node=node,
                verdict=view.verdict,
                probability=view.probability,
                threshold=threshold,
                base=view.base,
                reasons=view.reasons,
                facts=facts.facts,
                unread=facts.unread,
                reader=READER,
                revision=chosen.trace.revision,
                selection=chosen.trace,
                model=view.model,
                probability_from=view.probability_from,
                odds=view.odds,
                prompt=view.prompt,
                usage=view.usage,
                fallback=view.fallback,
                selection_fallback=failure,
                engine="",
                digest="",
                familiarity=relied_on.share(facts.facts),
            )

        async def decide_one(transaction: Transaction, facts: KnownFacts, policy: Bullet | None) -> Decision:
            (chosen,) = selector.select_many([transaction], [facts.facts], snapshot, node=node, n_bullets=n_bullets)
            if policy is not None and policy.policy is not None:  # no model is asked
                view = weigh(facts.facts, chosen.bullets, calibration)
                reasons = policy_reason(policy), *view.reasons
                return decision(
                    transaction, facts, replace(view, verdict=policy.policy.verdict, reasons=reasons), chosen
                )
            view = await _view(agent, Question(transaction.text, facts.facts, chosen.bullets, calibration))
            scaled = calibrated(view, snapshot.scale(node, view.model), threshold)
            return decision(transaction, facts, _reviewed(scaled, facts, threshold, snapshot.reviews.get(node)), chosen)

        policies = deciding_policies(snapshot, node, [one.facts for one in known])
        deciding = (decide_one(*one) for one in zip(transactions, known, policies, strict=True))
        return DecisionList(await all_at_once(deciding))

    async def selector_for(
        self, transactions: Sequence[Transaction], known: Sequence[KnownFacts], snapshot: Snapshot
    ) -> tuple[HybridSelector, str]:
        """The selector with all vectors fetched. If the model fails: one with an embedded embedder, and why."""
        embedder = self._selector.embedder
        if not embedder.fetches_ahead:
            return self._selector, ""
        pairs = zip(transactions, known, strict=True)
        texts = [self._selector.texts_for(each, facts.facts, snapshot, self._options.node) for each, facts in pairs]
        try:
            await embedder.fetch([text for some in texts for text in some])
        except ModelError as failure:
            if self._options.fallback is Fallback.ERROR:
                raise
            return self._selector.with_embedder(DEFAULT_EMBEDDER), str(failure)
        return self._selector, ""


async def _view(agent: Agent, question: Question) -> Assessment:
    """An agent's view, under its own name. One that gives a verdict only gets the probability of the engine."""
    method = nearest_method(agent, "assess", "analyze")
    shown = question if method == "assess" else question.text or say_facts(question.facts)
    view = await answer_of(agent, method, shown)
    if not isinstance(view, Assessment):
        check_choice(f"{name_of(agent)}.{method}", view, Verdict, ConfigurationError)
        weighed = weigh(question.facts, question.bullets, question.calibration)
        view = replace(weighed, verdict=Verdict(view), reasons=(), base=log_odds(weighed.probability))
    borrowed = view.model == EMBEDDED and not isinstance(agent, WrappedAgent)
    return replace(view, model=name_of(agent)) if borrowed or not view.model else view


def _reviewed(view: Assessment, facts: KnownFacts, threshold: float, review: ReviewRule | None) -> Assessment:
    """A model's view, sent to a person where the rule asks for that. A limit of reviews does not apply to models."""
    if review is None or view.fallback:
        return view
    verdict = review.verdict(view.probability, threshold, facts.facts)
    return replace(view, verdict=verdict) if verdict is Verdict.REVIEW else view
