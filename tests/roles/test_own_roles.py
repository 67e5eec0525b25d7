"""Roles of one's own: the methods that the README shows are enough, and a missing one is named."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from acefraud import (
    BulletPlaybook,
    Case,
    HybridSelector,
    Learner,
    LLMJudge,
    Mode,
    Outcome,
    Reflector,
    SimpleFraudAgent,
    SimpleJudge,
    TrainingPipeline,
    Transaction,
    Verdict,
)
from acefraud.core.outcome import Judgement, Ruling
from acefraud.errors import ConfigurationError
from acefraud.roles.embedded.embedder import CachedEmbedder
from acefraud.roles.judge import ruled
from acefraud.roles.protocols import Assessment, Question

ORDERS = [Transaction(id=f"t{n}", facts={"vpn": n % 3 == 0, "amount": float(n)}) for n in range(120)]
NOTHING: Any = object()
CASES = [Case(transaction=order, is_fraud=bool(order.facts["vpn"])) for order in ORDERS]


class Letters:
    def embed(self, texts: list[str]) -> list[list[float]]:
        return [[float(text.count("a")), float(text.count("e")), 3.0] for text in texts]


class Strict:
    def assess(self, question: Question) -> str:
        return "DECLINE" if float(question.facts.get("amount", 0.0)) > 50 else "APPROVE"


class Reader:
    name = "reader-2"

    async def analyze(self, transaction: str) -> Assessment:
        return Assessment(Verdict.of("VPN" in transaction), 0.7)


class Borrowing:
    """Has the embedded engine decide, and takes the responsibility."""

    async def assess(self, question: Question) -> Assessment:
        return await SimpleFraudAgent().assess(question)


class Agreeing:
    async def judge(self, input_text: str, output: str, ground_truth: str | None = None) -> tuple[bool | None, float]:
        return (None, 0.0) if input_text == "?" else (output == (ground_truth or output), 0.8)


class Suspicious:
    def reflect(self, query: str, predicted: str, correct: str, node: str, agent_reasoning: str = "") -> Any:  # noqa: ARG002
        return {"new_bullet": "A VPN: decline"} if correct == "DECLINE" else None


@pytest.mark.parametrize(("agent", "name"), [(Strict(), "Strict"), (Reader(), "reader-2"), (Borrowing(), "Borrowing")])
def test_an_agent_needs_one_method_and_its_decisions_bear_its_name(agent: Any, name: str) -> None:
    learner = Learner(BulletPlaybook(), agent=agent)
    decision = learner.decide_sync({"amount": 90.0, "vpn": True, "emulator": True})
    assert decision.model == name
    assert decision.verdict is Verdict.DECLINE
    assert name in repr(learner)


def test_an_agent_that_states_no_probability_gets_that_of_the_engine() -> None:
    facts = {"amount": 90.0, "vpn": True}
    own = Learner(BulletPlaybook(), agent=Strict()).decide_sync(facts)
    assert own.probability == Learner(BulletPlaybook()).decide_sync(facts).probability
    assert own.reasons == ()


def test_an_agent_that_has_everything_is_named_too() -> None:
    class Whole(Borrowing):
        model, waits, adds_up = "whole", False, False

        @property
        def without_tier(self) -> Whole:
            return self

    agent = Whole()
    assert Learner(BulletPlaybook(), agent=agent).decide_sync({"amount": 9.0}).model == "whole"


def test_a_verdict_that_is_none_is_refused_with_the_name_of_the_method() -> None:
    class Vague:
        def analyze(self, _: str) -> str:
            return "perhaps"

    with pytest.raises(ConfigurationError, match=r"Vague\.analyze: expected APPROVE, DECLINE or REVIEW, got"):
        Learner(BulletPlaybook(), agent=Vague()).decide_sync({"amount": 5.0})


def test_a_judge_needs_one_method() -> None:
    learner = Learner(BulletPlaybook(), judge=Agreeing())
    decision = learner.decide_sync({"id": "t1", "amount": 5.0})
    assert asyncio.run(learner.judge_pending(decision)).reason == "judged by Agreeing"
    assert learner.hear_sync(Outcome(transaction_id="t1", is_fraud=True)).judgement.ruling is Ruling.INCORRECT
    assert asyncio.run(ruled(Agreeing(), "?", "DECLINE", None)).ruling is Ruling.UNJUDGED


def test_what_a_subclass_overrides_is_what_counts() -> None:
    class Lenient(SimpleJudge):
        async def judge(self, *_: object) -> tuple[bool | None, float]:
            return True, 0.9

    class Trusting(SimpleFraudAgent):
        def analyze(self, _: object) -> Verdict:
            return Verdict.APPROVE

    learner = Learner(BulletPlaybook(), agent=Trusting(), judge=Lenient())
    decision = learner.decide_sync("$9,000 by VPN at 3 AM, account of two minutes, emulator")
    assert (decision.verdict, decision.model) == (Verdict.APPROVE, "Trusting")
    heard = learner.hear_sync(Outcome(transaction_id=decision.transaction_id, is_fraud=True))
    assert heard.judgement.ruling is Ruling.CORRECT


@pytest.mark.parametrize("answer", [True, "right", ("yes", 1.0), (True, 7.0), None])
def test_an_answer_of_another_shape_is_no_judgement(answer: object) -> None:
    class Vague:
        def judge(self, *_: object) -> object:
            return answer

    with pytest.raises(ConfigurationError, match=r"Vague\.judge: expected whether the decision was right"):
        asyncio.run(ruled(Vague(), "$5 coffee", "APPROVE", None))


def test_an_object_that_judges_without_the_truth_needs_one_method() -> None:
    class Opinion:
        async def assess_output(self, input_text: str, _: str) -> Judgement:
            return Judgement(ruling=Ruling.CORRECT, confidence=0.5, reason=input_text)

    judge = LLMJudge(model=Opinion())
    assert (judge.model, judge.presentable("$5 coffee", {})) == ("Opinion", "$5 coffee")
    assert judge.judge_sync("$5 coffee", "APPROVE") == (True, 0.5)


def test_an_embedder_needs_one_method() -> None:
    playbook = BulletPlaybook()
    for words in ("Gift cards are a sign of haste", "Ask why the address changed"):
        playbook.add_bullet(words)
    selector = HybridSelector(embedding_model=Letters())
    bullets, _ = selector.select_bullets("a late order of gift cards", "fraud_detection", playbook)
    assert len(bullets) == 2
    assert (selector.embedder.name, selector.semantic_threshold) == ("Letters", 0.5)
    assert np.linalg.norm(CachedEmbedder(Letters()).embed(["a text"])) == pytest.approx(1.0)


def test_vectors_of_another_shape_are_refused_with_the_name_of_the_method() -> None:
    class Flat:
        def embed(self, texts: list[str]) -> list[float]:
            return [1.0 for _ in texts]

    with pytest.raises(ConfigurationError, match=r"Flat\.embed: expected a row of numbers for each of 2 texts"):
        CachedEmbedder(Flat()).embed(["a", "b"])


@pytest.mark.parametrize("mode", list(Mode))
def test_all_four_run_through_the_modes(mode: Mode) -> None:
    pipeline = TrainingPipeline(agent=Strict(), judge=Agreeing(), proposer=Suspicious(), embedder=Letters())
    run = pipeline.run_sync(mode, CASES[:90], CASES[90:])
    assert run.declined.all()
    assert (run.bullets > 0) is (mode is not Mode.VANILLA)


def test_what_a_reflector_proposes_is_measured() -> None:
    learner = Learner(BulletPlaybook(), reflector=Suspicious())
    assert learner.reflector.model == "Suspicious"
    asyncio.run(learner.train(CASES))
    (bullet,) = learner.playbook.get_bullets_for_node("fraud_detection")
    assert str(bullet.condition) == "vpn is true"
    assert bullet.evidence is not None


def test_a_bullet_in_another_shape_is_refused_with_the_name_of_the_method() -> None:
    class Terse:
        def reflect(self, *_: Any) -> str:
            return "A VPN: decline"

    with pytest.raises(ConfigurationError, match=r"Terse\.reflect: expected a dict with new_bullet"):
        Reflector(model=Terse()).reflect_sync("$5 coffee", "APPROVE", "DECLINE")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Learner(BulletPlaybook(), agent=NOTHING), "agent: .* with a method assess or analyze"),
        (lambda: Learner(BulletPlaybook(), judge=NOTHING), "judge: .* with a method rule or judge"),
        (lambda: Learner(BulletPlaybook(), reflector=NOTHING), "reflector: .* with a method reflect, got"),
        (lambda: HybridSelector(embedding_model=NOTHING), "embedding_model: .* with a method embed"),
        (lambda: Reflector(model=NOTHING), "model: .* with a method propose or reflect"),
    ],
)
def test_what_is_missing_is_named(build: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        build()
