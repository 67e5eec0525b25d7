"""What is there for language models: agents that wrap one, the scale of its odds, and decisions that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from acefraud.core.bullet import Bullet
from acefraud.core.calibration import OddsScale, log_odds
from acefraud.core.decision import Decision, ProbabilityFrom, Reason, ReasonKind, decision_id
from acefraud.core.events import DecisionMade, OddsScaled, OutcomeHeard
from acefraud.core.ledger import Ledger
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import ReviewRule
from acefraud.core.transaction import Transaction, Verdict
from acefraud.engine.decider import DecisionList, DecisionSequence, decide_embedded
from acefraud.engine.familiarity import ReliedOn
from acefraud.engine.options import Fallback, LearnerOptions
from acefraud.engine.rule_context import ReviewsLeft, deciding_policies, policy_reason
from acefraud.engine.witness import USUAL, Said, can_matter, fit_witness, said_by
from acefraud.errors import ConfigurationError, ModelError
from acefraud.facts.extraction import READER, KnownFacts, facts_of
from acefraud.roles.embedded.agent import EmbeddedAgent, fires, largest_first, weigh
from acefraud.roles.embedded.embedder import DEFAULT_EMBEDDER
from acefraud.roles.model.agent import reasons_for
from acefraud.roles.protocols import Agent, Assessment, Facts, Question, answer_of, name_of, nearest_method
from acefraud.rules.english import say_facts
from acefraud.selection.hybrid import HybridSelector
from acefraud.settings import EMBEDDED
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arguments import check_choice
from acefraud.support.arrays import BoolArray, FloatArray
from acefraud.support.exact_math import sigmoid, sigmoid_of
from acefraud.support.validation import construct_unchecked


class WrappedAgent:
    """Base of the agents that wrap another one."""

    adds_up = False

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.model = agent.model
        self.waits = agent.waits


class WithFallback(WrappedAgent):
    """Leaves the case to a person or to the embedded engine if the model fails, and records that in the decision."""

    def __init__(self, agent: Agent, fallback: Fallback, *, failure: str = "") -> None:
        super().__init__(agent)
        self.fallback = fallback
        self._failure = failure
        """Why no call is made, if none is."""

    @property
    def without_tier(self) -> WithFallback:
        """The same fallback around the agent without its first tier."""
        return WithFallback(self.agent.without_tier, self.fallback, failure=self._failure)

    async def assess(self, question: Question) -> Assessment:
        """The model's view, or that of the fallback if the call fails."""
        try:
            if self._failure:
                raise ModelError(self._failure)
            return await self.agent.assess(question)
        except ModelError as failure:
            if self.fallback is Fallback.ERROR:
                raise
            return self._without_model(question, str(failure))

    def _without_model(self, question: Question, failure: str) -> Assessment:
        view = weigh(question.facts, question.bullets, question.calibration)
        review = self.fallback is Fallback.REVIEW
        who = "a person should decide; the probability" if review else "the verdict"
        text = f"{self.model} failed ({failure}): {who} is the embedded engine's"
        reason = Reason(kind=ReasonKind.FALLBACK, text=text, contribution=None)
        verdict = Verdict.REVIEW if review else view.verdict
        return replace(view, verdict=verdict, reasons=(reason, *view.reasons), fallback=failure)


def failing_as(decision: Decision) -> WithFallback:
    """An agent that reproduces a decision which was made by a fallback."""
    text = next(reason.text for reason in decision.reasons if reason.kind is ReasonKind.FALLBACK)
    fallback = Fallback.REVIEW if decision.verdict is Verdict.REVIEW else Fallback.EMBEDDED
    made = WithFallback(EmbeddedAgent(), fallback, failure=decision.fallback)
    made.model = text.partition(" failed (")[0]
    return made


class AsksLess(WrappedAgent):
    """Base of the agents that ask the wrapped one about some of the cases only."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self.by_tier = self.by_model = 0
        """How many cases were decided without the model, and how many with it."""


class Tiered(AsksLess):
    """Decides the cases that measured bullets make clear, and leaves the rest to the model.

    A clear case needs a calibration fitted on labelled cases and a measured bullet that argues for the verdict; without
    them everything goes to the model.
    """

    def __init__(self, agent: Agent, certainty: float = 0.95) -> None:
        if not 0.5 <= certainty <= 1:
            raise ConfigurationError(f"tier: expected a certainty from 0.5 to 1, got {certainty}")
        super().__init__(agent)
        self._certainty = certainty

    def with_new_counts(self) -> Tiered:
        """The same tier with new counts."""
        return Tiered(self.agent, self._certainty)

    @property
    def in_full(self) -> Agent:
        """The agent that every case goes to if there is no tier."""
        return self.agent

    @property
    def without_tier(self) -> Agent:
        """The wrapped agent."""
        return self.agent.without_tier

    async def assess(self, question: Question) -> Assessment:
        """The embedded view if it is certain, else the model's."""
        if question.calibration is not None and question.calibration.cases:
            view = weigh(question.facts, question.bullets, question.calibration)
            if self._is_certain(view, question):
                self.by_tier += 1
                return view
        self.by_model += 1
        return await self.agent.assess(question)

    def _is_certain(self, view: Assessment, question: Question) -> bool:
        sure = max(view.probability, 1 - view.probability) >= self._certainty
        declines = view.probability >= 0.5
        if not sure or (view.verdict is Verdict.DECLINE) != declines:
            return False
        measured = [bullet for bullet in question.bullets if bullet.condition is not None and bullet.verified]
        return any(bullet.argues is view.verdict and fires(bullet, question.facts) for bullet in measured)


class Witness(AsksLess):
    """Adds the model's opinion to the embedded engine's log-odds; asks for it only where it can change the verdict."""

    def __init__(self, agent: Agent, *, always: bool = False) -> None:
        """With `always`, the model is asked about every case."""
        super().__init__(agent)
        self._always = always

    def with_new_counts(self) -> Witness:
        """The same witness with new counts."""
        return Witness(self.agent, always=self._always)

    @property
    def in_full(self) -> Witness:
        """The witness that is asked about every case."""
        return Witness(self.agent, always=True)

    @property
    def without_tier(self) -> Witness:
        """The same; a witness has no first tier."""
        return self.in_full

    async def assess(self, question: Question) -> Assessment:
        """Both views as one, with the usual weights, for the threshold alone."""
        threshold = question.calibration.threshold if question.calibration else 0.5
        return await self.with_weights(question, USUAL, lambda odds: Verdict.of(sigmoid(odds) >= threshold))

    async def with_weights(
        self, question: Question, scale: OddsScale, verdict_at: Callable[[float], Verdict]
    ) -> Assessment:
        """Both views as one; or the engine's, if no opinion of the model gives another verdict at these log-odds."""
        own = weigh(question.facts, question.bullets, question.calibration)
        engine = own.base + sum(reason.contribution or 0.0 for reason in own.reasons)
        if not self._always and not can_matter(engine, scale, verdict_at):
            self.by_tier += 1
            return own
        self.by_model += 1
        view = await _view(self.agent, question)
        if view.fallback:
            return view
        said = said_by(view.base if view.odds is None else view.odds)
        thinks = f"the model thinks {100 * sigmoid(said):.0f} %"
        opinion = Reason(kind=ReasonKind.MODEL, text=thinks, contribution=scale.slope * said)
        words = [reason for reason in view.reasons if reason.kind is ReasonKind.MODEL]
        reasons = [
            reason.model_copy(update={"contribution": scale.engine * (reason.contribution or 0.0)})
            for reason in own.reasons
        ]
        odds = scale.engine * engine + scale.level + scale.slope * said
        return replace(
            view,
            verdict=verdict_at(odds),
            probability=sigmoid(odds),
            base=scale.engine * own.base + scale.level,
            reasons=(*largest_first([*reasons, opinion]), *words),
            probability_from=ProbabilityFrom.COMBINED,
            odds=said,
            engine_odds=engine,
        )


ODDS_KEPT = 500
"""The latest outcomes that a model's odds are calibrated on."""
LEAST_OF_EACH = 8
"""The least number of frauds, and of honest cases, to fit level and slope."""
SLOPE_PRIOR = 1.0
"""The strength of the prior on the slope: models are overconfident, so it is kept near 0.5 while cases are few."""
USUAL_SLOPE = 0.5


def fit_scale(odds: Sequence[float], labels: Sequence[bool], base_rate: float | None = None) -> OddsScale | None:
    """Level and slope by logistic regression (Platt scaling); None if there are too few cases of a kind.

    With a `base_rate`, the level is corrected to that share of fraud, whatever the share among these cases.

    >>> fit_scale([-6.0, -5.0, -3.0, -2.5] * 8, [False, False, True, True] * 8).probability(-3.0) > 0.7
    True
    """
    x, y = np.asarray(odds, dtype=np.float64), np.asarray(labels, dtype=np.bool_)
    if min(int(y.sum()), int((~y).sum())) < LEAST_OF_EACH:
        return None
    centre = float(np.median(x))
    level, slope = log_odds(float(y.mean())), USUAL_SLOPE
    for _ in range(100):
        step = _newton(x - centre, y, level, slope)
        level, slope = level - step[0], max(0.0, slope - step[1])
        if max(abs(step)) < 1e-9:
            break
    share = float(y.mean())
    if slope == 0.0:  # uninformative or reversed odds: only the level is left
        level = log_odds(share)
    shift = log_odds(min(max(base_rate, 1e-6), 1 - 1e-6)) - log_odds(share) if base_rate is not None else 0.0
    return OddsScale(level=round(level + shift - slope * centre, 6), slope=round(slope, 6), cases=len(x))


def _newton(x: FloatArray, y: BoolArray, level: float, slope: float) -> FloatArray:
    """One Newton step, shortened so that neither level nor slope moves by more than 1."""
    p = sigmoid_of(level + slope * x)
    error, curvature = p - y, p * (1 - p)
    down, down_slope = float(error.sum()), float((error * x).sum()) + SLOPE_PRIOR * (slope - USUAL_SLOPE)
    bend, cross = float(curvature.sum()) + 1e-9, float((curvature * x).sum())
    bend_slope = float((curvature * x * x).sum()) + SLOPE_PRIOR
    determinant = bend * bend_slope - cross * cross
    step = np.array([bend_slope * down - cross * down_slope, bend * down_slope - cross * down]) / determinant
    return step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-12))


def calibrated(view: Assessment, scale: OddsScale | None, threshold: float) -> Assessment:
    """The view with a calibrated probability, and the verdict and reasons that follow from it."""
    if view.odds is None or view.engine_odds is not None or scale is None:
        return view
    probability = scale.probability(view.odds)
    verdict = Verdict.of(probability >= threshold)
    return replace(
        view,
        verdict=verdict,
        reasons=reasons_for(verdict, view.shown),
        probability=probability,
        base=scale.level + scale.slope * view.odds,
        probability_from=ProbabilityFrom.CALIBRATED,
    )


def scale_name(model: str, *, combined: bool) -> str:
    """What the scale of a model's odds is kept under. Added to the engine's they mean something else than alone."""
    return f"{model} and {EMBEDDED}" if combined else model


def _scaled_as(decision: Decision) -> str:
    return scale_name(decision.model, combined=decision.engine_odds is not None)


def heard_odds(ledger: Ledger, node: str, name: str) -> list[Said]:
    """What was said of decisions with an outcome, and the truth, in the order of the outcomes."""
    made: dict[str, Decision] = {}
    truth: dict[str, bool] = {}
    for event in ledger.read():
        match event.payload:
            case DecisionMade(decision=decided) if decided.odds is not None:
                if (_scaled_as(decided), decided.node) == (name, node):
                    made[decided.id] = decided
            case OutcomeHeard(decision_id=str() as heard, outcome=told) if heard in made and not told.is_opinion:
                truth[heard] = told.is_fraud
    return [said for heard, is_fraud in truth.items() if (said := _said(made[heard], is_fraud))]


def _said(decision: Decision, is_fraud: bool) -> Said | None:
    return None if decision.odds is None else Said(decision.odds, decision.engine_odds, is_fraud)


class FittedOdds:
    """Keeps the calibration of each model's odds up to date with its outcomes."""

    def __init__(self, playbook: BulletPlaybook, options: LearnerOptions) -> None:
        self._playbook = playbook
        self._options = options
        self._heard: dict[str, list[Said]] = {}
        self._hearing = RLock()

    def hear(self, outcomes: Sequence[tuple[Decision | None, bool]]) -> None:
        """Take in decisions and whether they were fraud, and refit from time to time."""
        new: dict[str, list[Said]] = {}
        for decision, is_fraud in outcomes:
            if decision is not None and (said := _said(decision, is_fraud)):
                new.setdefault(_scaled_as(decision), []).append(said)
        with self._hearing:
            for name, latest in new.items():
                if name in self._heard:
                    self._heard[name].extend(latest)
                else:  # the ledger already contains these outcomes
                    self._heard[name] = heard_odds(self._playbook.ledger, self._options.node, name)
                count, every = len(self._heard[name]), self._options.reflect_every
                if count // every > (count - len(latest)) // every:
                    self._record(name, self._heard[name][-ODDS_KEPT:])

    def fit(self, decided: Iterable[tuple[Decision, bool]], base_rate: float | None = None) -> None:
        """Calibrate a model on its decisions on labelled cases and record the result, if there are enough of them."""
        found: dict[str, list[Said]] = {}
        for decision, is_fraud in decided:
            if said := _said(decision, is_fraud):
                found.setdefault(_scaled_as(decision), []).append(said)
        for name, all_said in found.items():
            self._record(name, all_said, base_rate)

    def _record(self, name: str, all_said: Sequence[Said], base_rate: float | None = None) -> None:
        if all_said[0].engine is None:
            scale = fit_scale([said.odds for said in all_said], [said.is_fraud for said in all_said], base_rate)
        else:
            scale = fit_witness(all_said, base_rate)
        if scale is not None:
            self._playbook.record([OddsScaled(node=self._options.node, model=name, scale=scale)])


T = TypeVar("T")
IN_ONE_TURN = 4
"""Decisions that are started before other tasks on the event loop get their turn."""


async def in_turns(things: Iterable[T]) -> AsyncIterator[T]:
    """One after another. Other tasks on the event loop get their turn now and then."""
    for index, thing in enumerate(things, 1):
        yield thing
        if index % IN_ONE_TURN == 0:
            await asyncio.sleep(0)


async def all_at_once(deciding: Iterable[Coroutine[Any, Any, Decision]]) -> list[Decision]:
    """Every decision, in order. If one fails, the others are cancelled before the error is raised."""
    tasks: list[asyncio.Task[Decision]] = []
    try:
        async for each in in_turns(deciding):
            tasks.append(asyncio.create_task(each))
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


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


class Decider:
    """Selects bullets for transactions and lets an agent decide with them."""

    def __init__(self, selector: HybridSelector, options: LearnerOptions) -> None:
        self.selector = selector
        self.options = options

    def waits(self, agent: Agent) -> bool:
        """Whether deciding needs an event loop: the embedded engine alone computes in columns and waits for nothing."""
        return self.selector.embedder.fetches_ahead or not getattr(agent, "adds_up", False) or agent.waits

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
        options = self.options
        if not self.waits(agent):
            if known is None:  # nothing is unfamiliar to a model: it may know what no bullet tests
                read = [facts_of(transaction) for transaction in transactions]
                known = ReliedOn.of(snapshot, options.node).marked(read, options)
            return decide_embedded(transactions, known, snapshot, self.selector, options, reviews=reviews)
        if known is None:
            known = [facts_of(transaction) async for transaction in in_turns(transactions)]
        return DecisionList(await self._with_agent(transactions, known, snapshot, agent))

    async def _with_agent(
        self, transactions: Sequence[Transaction], known: Sequence[KnownFacts], snapshot: Snapshot, agent: Agent
    ) -> list[Decision]:
        """Let an agent decide transactions with known facts, all at once. No agent is asked where a policy decides."""
        node, most = self.options.node, self.options.n_bullets
        relied_on, calibration = ReliedOn.of(snapshot, node), snapshot.calibration(node)
        threshold = calibration.threshold if calibration else self.options.threshold
        rule, weighed = snapshot.reviews.get(node), getattr(agent, "with_weights", None)
        selector, failure = await self.selector_for(transactions, known, snapshot)

        def verdict_at(facts: Facts, odds: float) -> Verdict:
            probability = sigmoid(odds)
            return rule.verdict(probability, threshold, facts) if rule else Verdict.of(probability >= threshold)

        async def decide(transaction: Transaction, facts: KnownFacts, policy: Bullet | None) -> Decision:
            picked = selector.select_many([transaction], [facts.facts], snapshot, node=node, n_bullets=most)
            bullets, trace = picked[0].bullets, picked[0].trace
            if policy is not None and policy.policy is not None:
                view = weigh(facts.facts, bullets, calibration)
                view = replace(view, verdict=policy.policy.verdict, reasons=(policy_reason(policy), *view.reasons))
            else:
                question = Question(transaction.text, facts.facts, bullets, calibration)
                if weighed is not None:
                    scale = snapshot.scale(node, scale_name(agent.model, combined=True)) or USUAL
                    view = await weighed(question, scale, partial(verdict_at, facts.facts))
                else:
                    view = await _view(agent, question)
                    view = calibrated(view, snapshot.scale(node, view.model), threshold)
                view = _reviewed(view, facts, threshold, rule)
            fallback = ("fallback", str(view.verdict)) if view.fallback else ()
            how = " ".join(part for part in (view.model, view.prompt, *fallback) if part)
            return construct_unchecked(
                Decision,
                id=decision_id(transaction, node, how, trace),
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
                revision=trace.revision,
                selection=trace,
                model=view.model,
                probability_from=view.probability_from,
                odds=view.odds,
                engine_odds=view.engine_odds,
                prompt=view.prompt,
                usage=view.usage,
                fallback=view.fallback,
                selection_fallback=failure,
                familiarity=relied_on.share(facts.facts),
            )

        policies = deciding_policies(snapshot, node, [each.facts for each in known])
        return await all_at_once(decide(*each) for each in zip(transactions, known, policies, strict=True))

    async def selector_for(
        self, transactions: Sequence[Transaction], known: Sequence[KnownFacts], snapshot: Snapshot
    ) -> tuple[HybridSelector, str]:
        """The selector with all vectors fetched. If the model fails: one with an embedded embedder, and why."""
        embedder = self.selector.embedder
        if not embedder.fetches_ahead:
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
