"""The contract of every agent, embedded or on a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from acefraud import BulletPlaybook, Learner, SimpleFraudAgent, Transaction, Verdict
from acefraud.core.bullet import Bullet
from acefraud.engine.agent_fallback import Fallback, Tiered, WithFallback
from acefraud.errors import ConfigurationError, ModelError
from acefraud.llm.call import Role
from acefraud.llm.client import ModelClient
from acefraud.roles.embedded.agent import EmbeddedAgent
from acefraud.roles.model.agent import ModelAgent
from acefraud.roles.protocols import Agent, Question

if TYPE_CHECKING:
    from tests.llm.loopback import LoopbackServer

pytestmark = pytest.mark.enable_socket
MODEL = "openai:mine"
RISKY = "Account opened 2 hours ago attempts $900 purchase of gift cards at 3 AM through a VPN on an emulator"
CALM = "Paid $12 in store, account of 5 years, biometric check passed"
FACTS = {"amount": 900.0, "vpn": True, "emulator": True, "new_device": True}
BULLETS = (Bullet(id="b-1", content="A VPN and an emulator: decline", argues=Verdict.DECLINE),)
SENTENCE = "An emulator and a VPN = 97% fraud"

Make = Callable[..., SimpleFraudAgent]


@pytest.fixture(params=["embedded", "model"])
def make(request: pytest.FixtureRequest, server: LoopbackServer, client: ModelClient) -> Make:
    if request.param == "embedded":
        return SimpleFraudAgent
    return lambda *bullets: SimpleFraudAgent(*bullets, model=MODEL, base_url=server.base_url, client=client)


@pytest.fixture(params=["embedded", "model", "public", "fallback", "tier"])
def agent(request: pytest.FixtureRequest, server: LoopbackServer, client: ModelClient) -> Agent:
    on_model = ModelAgent(client, MODEL, base_url=server.base_url)
    agents: dict[str, Agent] = {
        "embedded": EmbeddedAgent(),
        "model": on_model,
        "public": SimpleFraudAgent(),
        "fallback": WithFallback(on_model, Fallback.REVIEW),
        "tier": Tiered(WithFallback(on_model, Fallback.ERROR)),
    }
    return agents[request.param]


def test_it_is_called_without_awaiting(make: Make) -> None:
    agent = make()
    assert agent.analyze(RISKY) is Verdict.DECLINE
    assert agent.analyze(CALM) is Verdict.APPROVE
    assert agent.analyze(Transaction(id="t", facts=FACTS)) is Verdict.DECLINE


def test_it_is_called_without_awaiting_inside_a_coroutine_too(make: Make) -> None:
    async def decide() -> Verdict:
        return make([SENTENCE]).analyze(RISKY)

    assert asyncio.run(decide()) is Verdict.DECLINE


def test_the_view_says_who_decided_and_why(make: Make) -> None:
    agent = make([SENTENCE])
    view = agent.explain(RISKY)
    assert view.model == agent.model
    assert view.verdict is agent.analyze(RISKY)
    assert 0.5 < view.probability <= 1
    assert view.reasons
    assert "given-1" in {reason.bullet_id for reason in view.reasons}


def test_a_learner_decides_with_it(make: Make) -> None:
    agent = make()
    learner = Learner(BulletPlaybook(), agent=agent)
    some = [Transaction(id=f"t{n}", text=text) for n, text in enumerate([RISKY, CALM])]
    decisions = asyncio.run(learner.decide_all(some))
    assert [decision.verdict for decision in decisions] == [Verdict.DECLINE, Verdict.APPROVE]
    assert {decision.model for decision in decisions} == {agent.model}


def test_every_agent_keeps_to_the_protocol(agent: Agent) -> None:
    view = asyncio.run(agent.assess(Question(RISKY, FACTS, BULLETS, None)))
    proven = asyncio.run(agent.assess(Question(RISKY, FACTS, BULLETS, None, proven=0)))
    assert view.verdict is proven.verdict is Verdict.DECLINE
    assert view.model == agent.model
    assert agent.waits is (agent.model != "embedded")
    assert agent.without_tier.model == agent.model
    assert agent.without_tier.waits is agent.waits


# --- on a model --------------------------------------------------------------------------------------------------


def on(server: LoopbackServer, client: ModelClient) -> SimpleFraudAgent:
    return SimpleFraudAgent(["A VPN: decline"], model=MODEL, base_url=server.base_url, client=client)


def test_a_failed_call_is_an_error_and_no_verdict(loopback: Callable[..., LoopbackServer], client: ModelClient) -> None:
    agent = on(loopback(misbehave={"http_500": 1.0}), client)
    for ask in (agent.analyze, agent.explain):
        with pytest.raises(ModelError):
            ask(RISKY)

    async def inside() -> None:
        agent.analyze(RISKY)

    with pytest.raises(ModelError):
        asyncio.run(inside())


def test_the_bullets_are_in_the_prompt_and_sensitive_facts_are_not(server: LoopbackServer, client: ModelClient) -> None:
    agent = SimpleFraudAgent(
        ["Nervous voices: decline"], model=MODEL, base_url=server.base_url, client=client, sensitive=["segment"]
    )
    agent.analyze(Transaction(id="t", facts={**FACTS, "segment": "gold-7731"}))
    (call,) = server.log
    sent = json.loads(call.body)["messages"]
    assert "Nervous voices: decline" in str(sent)
    assert "gold-7731" not in str(sent)


def test_agents_on_one_client_share_its_count(server: LoopbackServer, client: ModelClient) -> None:
    for agent in (on(server, client), on(server, client)):
        agent.analyze(RISKY)
    assert client.usage.by_role[Role.AGENT].calls == len(server.log) == 2


def test_a_key_in_the_environment_sends_nothing(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    agent = SimpleFraudAgent([SENTENCE])
    assert agent.model == "embedded"
    assert agent.analyze(RISKY) is Verdict.DECLINE
    assert server.log == []


def test_a_model_is_named_with_its_provider() -> None:
    with pytest.raises(ConfigurationError, match="agent: expected embedded or provider:name"):
        SimpleFraudAgent(model="gpt-4o-mini")
