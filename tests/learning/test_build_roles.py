"""Who plays which role: the embedded engine where nothing was chosen, models with their guards where something was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from acefraud.core.outcome import Outcome, Ruling
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.engine.models import Tiered, WithFallback
from acefraud.engine.options import Fallback
from acefraud.errors import ModelRefused
from acefraud.learning.build_roles import CASES_FOR_ODDS, Roles, build_roles
from acefraud.llm.call import Call, Reply, Role
from acefraud.roles.agent import SimpleFraudAgent
from acefraud.roles.embedded.embedder import DEFAULT_EMBEDDER
from acefraud.roles.judge import LLMJudge, SimpleJudge
from acefraud.roles.model.agent import ModelJudge
from acefraud.roles.model.embedder import ModelEmbedder
from acefraud.roles.model.reflector import ModelReflector
from acefraud.settings import ModelSettings
from acefraud.storage.playbook import BulletPlaybook

T = TypeVar("T")
AGENT, JUDGE, REFLECTOR, EMBEDDING = "openai:agent-1", "openai:judge-1", "openai:reflector-1", "openai:embedding-1"
BULLET = {
    "new_bullet": "vpn and amount above 2000 = 70% fraud",
    "condition": "vpn is true and amount > 2000",
    "argues": "DECLINE",
    "problem_types": [],
    "confidence": 0.9,
}


def run(steps: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(steps)


class Server:
    """Answers every role in its own way, and keeps what it was sent."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.calls: list[Call] = []
        self.failure = failure
        self.closed = False

    async def send(self, call: Call) -> Reply:
        self.calls.append(call)
        if self.failure is not None:
            raise self.failure
        if call.role is Role.EMBEDDING:
            return Reply(vectors=tuple((1.0, float(len(text))) for text in call.texts))
        if call.role is Role.REFLECTOR:
            return Reply(text=json.dumps(BULLET))
        said = {"reasoning": "a VPN", "bullets": [], "probability": 0.9, "verdict": "DECLINE"}
        return Reply(text=json.dumps(said))

    async def close(self) -> None:
        self.closed = True

    def asked(self, role: Role) -> list[Call]:
        return [call for call in self.calls if call.role is role]


def chosen(**more: Any) -> ModelSettings:
    return ModelSettings(**{"cache": None, "attempts": 1, **more})


# --- nothing chosen ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "embedder"),
    [
        (chosen(), DEFAULT_EMBEDDER),
        (chosen(embedding="hashing"), "hashing"),
        (chosen(tier=0.9, style="direct", fallback="review"), DEFAULT_EMBEDDER),
    ],
)
def test_the_embedded_engine_needs_no_client(settings: ModelSettings, embedder: str) -> None:
    roles = build_roles(settings)
    assert roles == Roles(embedder=embedder)
    assert roles.client is None
    learner = roles.learner(BulletPlaybook())
    assert isinstance(learner.agent, SimpleFraudAgent)
    assert type(learner.judge) is SimpleJudge
    assert learner.proposed is None
    assert roles.with_new_counts() is roles
    assert roles.without_tier() is roles
    run(roles.close())


# --- every role lands where it belongs ---------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["agent", "judge", "reflector", "embedding"])
def test_only_the_chosen_role_is_played_by_a_model(role: str) -> None:
    roles = build_roles(chosen(**{role: "openai:some-model"}), caller=Server())
    assert (roles.agent is not None) is (role == "agent")
    assert (roles.judge is not None) is (role == "judge")
    assert (roles.proposer is not None) is (role == "reflector")
    assert isinstance(roles.embedder, ModelEmbedder) is (role == "embedding")
    assert roles.embedder == DEFAULT_EMBEDDER or role == "embedding"
    assert roles.client is not None
    assert roles.tier is None
    learner = roles.learner(BulletPlaybook())
    assert isinstance(learner.agent, WithFallback) is (role == "agent")
    assert isinstance(learner.judge, LLMJudge) is (role == "judge")
    assert (learner.proposed is not None) is (role == "reflector")
    run(roles.close())


def test_all_roles_together() -> None:
    server = Server()
    settings = chosen(agent=AGENT, judge=JUDGE, reflector=REFLECTOR, embedding=EMBEDDING)
    roles = build_roles(settings, caller=server)
    learner = roles.learner(BulletPlaybook())
    assert learner.agent.model == AGENT
    assert isinstance(roles.proposer, ModelReflector)
    assert roles.proposer.model == REFLECTOR
    assert isinstance(learner.judge, LLMJudge)
    assert isinstance(learner.judge._judge, ModelJudge)
    assert isinstance(learner.selector.embedder, ModelEmbedder)
    assert learner.reflector.proposals is not None
    assert learner.reflector.proposals.proposer is roles.proposer
    assert learner.reflector.proposals.engine is learner.reflector.engine
    run(roles.close())
    assert server.closed


def test_an_embedder_of_our_own_stays_beside_models() -> None:
    roles = build_roles(chosen(agent=AGENT, embedding="hashing"), caller=Server())
    assert roles.embedder == "hashing"


# --- guards ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fallback", ["error", "review", "embedded"])
def test_the_fallback_stands_around_the_agent(fallback: str) -> None:
    roles = build_roles(chosen(agent=AGENT, fallback=fallback), caller=Server())
    assert isinstance(roles.agent, WithFallback)
    assert roles.agent.fallback is Fallback(fallback)
    assert roles.tier is None


def test_the_tier_stands_around_the_fallback() -> None:
    roles = build_roles(chosen(agent=AGENT, tier=0.9, fallback="review"), caller=Server())
    assert isinstance(roles.agent, Tiered)
    assert roles.agent is roles.tier
    assert isinstance(roles.agent.agent, WithFallback)
    assert roles.agent.agent.fallback is Fallback.REVIEW
    assert roles.agent.model == AGENT


@pytest.mark.parametrize("tier", [0.5, 1.0])
def test_every_tier_that_the_settings_allow_can_be_cast(tier: float) -> None:
    assert build_roles(chosen(agent=AGENT, tier=tier), caller=Server()).tier is not None


def test_without_an_agent_there_is_no_tier_and_nothing_to_scale() -> None:
    roles = build_roles(chosen(judge=JUDGE, tier=0.9, style="direct"), caller=Server())
    assert (roles.agent, roles.tier, roles.scale_odds) == (None, None, 0)


@pytest.mark.parametrize(("style", "scaled"), [("direct", CASES_FOR_ODDS), ("reasoned", 0)])
def test_only_the_odds_of_a_direct_agent_are_scaled(style: str, scaled: int) -> None:
    assert build_roles(chosen(agent=AGENT, style=style), caller=Server()).scale_odds == scaled


def test_another_run_counts_on_its_own() -> None:
    roles = build_roles(chosen(agent=AGENT, tier=0.9, judge=JUDGE), caller=Server())
    assert roles.tier is not None
    roles.tier.by_model = 7
    again = roles.with_new_counts()
    assert again.tier is not None
    assert again.agent is again.tier
    assert again.tier is not roles.tier
    assert (again.tier.by_model, roles.tier.by_model) == (0, 7)
    assert again.tier.agent is roles.tier.agent
    assert replace(again, agent=None, tier=None) == replace(roles, agent=None, tier=None), "the rest is the same"


def test_in_full_goes_around_the_tier_and_keeps_the_fallback() -> None:
    roles = build_roles(chosen(agent=AGENT, tier=0.9, reflector=REFLECTOR), caller=Server())
    assert roles.tier is not None
    full = roles.without_tier()
    assert full.tier is None
    assert full.agent is roles.tier.agent
    assert isinstance(full.agent, WithFallback)
    assert replace(full, agent=None) == replace(roles, agent=None, tier=None)
    assert full.without_tier() is full
    assert full.with_new_counts() is full


# --- a run, end to end -------------------------------------------------------------------------------------------


def decided(server: Server, transaction: Transaction, **more: Any) -> Any:
    roles = build_roles(chosen(agent=AGENT, **more), caller=server)

    async def steps() -> Any:
        learner = roles.learner(BulletPlaybook())
        try:
            decision = await learner.decide(transaction)
            heard = await learner.hear(Outcome(transaction_id=transaction.id, is_fraud=True))
        finally:
            await roles.close()
        return decision, heard.judgement.ruling

    return run(steps())


def test_a_cast_decides(toy: Any) -> None:
    server = Server()
    decision, ruling = decided(server, toy.transaction("t1"))
    assert (decision.verdict, decision.model, decision.fallback) == (Verdict.DECLINE, AGENT, "")
    assert ruling is Ruling.CORRECT
    assert [call.model for call in server.calls] == [AGENT]


def test_a_cast_whose_server_is_down(toy: Any) -> None:
    broken = Server(ModelRefused("the key is not valid"))
    decision, ruling = decided(broken, toy.transaction("t1"), fallback="review")
    assert (decision.verdict, ruling) == (Verdict.REVIEW, Ruling.UNJUDGED)
    assert "the key is not valid" in decision.fallback
    with pytest.raises(ModelRefused):
        decided(Server(ModelRefused("the key is not valid")), toy.transaction("t1"))


def test_sensitive_facts_are_shown_to_nobody(toy: Any) -> None:
    secret = Transaction(id="t1", facts={"amount": 2500.0, "vpn": True, "shoe_size": 43.5})
    server = Server()
    roles = build_roles(chosen(agent=AGENT, reflector=REFLECTOR), sensitive=("shoe_size",), caller=server)
    cases = [
        Case(
            transaction=case.transaction.model_copy(update={"facts": {**case.transaction.facts, "shoe_size": 43.5}}),
            is_fraud=case.is_fraud,
        )
        for case in toy.cases(60)
    ]

    async def steps() -> None:
        learner = roles.learner(BulletPlaybook())
        await learner.train(cases)
        await learner.decide(secret)
        await roles.close()

    run(steps())
    assert server.asked(Role.AGENT)
    assert server.asked(Role.REFLECTOR)
    sent = "\n".join(message.content for call in server.calls for message in call.messages)
    assert "2500" in sent
    assert "43.5" not in sent


def test_the_reflector_of_a_cast_teaches_what_was_measured(toy: Any, tmp_path: Path) -> None:
    server = Server()
    roles = build_roles(chosen(reflector=REFLECTOR, cache=tmp_path / "replies.db"), caller=server)
    playbook = BulletPlaybook()

    async def steps() -> None:
        await roles.learner(playbook).train(toy.cases(300))
        await roles.close()

    run(steps())
    (bullet,) = playbook.snapshot().bullets.values()
    assert bullet.evidence is not None
    assert bullet.evidence.in_words() in bullet.content
    assert "70" not in bullet.shown
    assert 0 < len(server.asked(Role.REFLECTOR)) <= 90
