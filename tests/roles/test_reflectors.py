"""The contract of every reflector, embedded or on a model."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.storage.replaying import matches_replay

from acefraud import BulletPlaybook, Case, Condition, Evidence, Learner, LearnerOptions, Outcome, Reflector, Transaction
from acefraud.core.bullet import Source
from acefraud.errors import ConfigurationError, InputError, ModelError
from acefraud.llm.client import ModelClient

if TYPE_CHECKING:
    from tests.llm.loopback import LoopbackServer

pytestmark = pytest.mark.enable_socket
MODEL = "openai:mine"
KEYS = {
    "new_bullet", "problem_types", "confidence", "condition", "argues", "evidence", "weight", "node", "learnt_from",
}  # fmt: skip
WHOLE: dict[str, Any] = {
    "new_bullet": "Large amounts over a VPN = 99% fraud",
    "condition": "amount > 2000 and vpn is true",
    "argues": "DECLINE",
    "problem_types": ["device_risk"],
    "confidence": 0.7,
}


def world(count: int, seed: int = 0, prefix: str = "c") -> list[Case]:
    """Large amounts through a VPN are fraud, with a few exceptions."""
    chance, made = random.Random(seed), []
    for n in range(count):
        amount, vpn = float(chance.randint(10, 4000)), chance.random() < 0.5
        fraud = (amount > 2000 and vpn) != (chance.random() < 0.04)
        facts = {"amount": amount, "vpn": vpn}
        made.append(Case(transaction=Transaction(id=f"{prefix}{n}", facts=facts), is_fraud=fraud))
    return made


@pytest.fixture(params=["embedded", "model"])
def reflector(request: pytest.FixtureRequest, server: LoopbackServer, client: ModelClient) -> Reflector:
    if request.param == "embedded":
        return Reflector()
    return on(server, client)


def on(server: LoopbackServer, client: ModelClient) -> Reflector:
    return Reflector(model=MODEL, base_url=server.base_url, client=client)


def reflect(reflector: Reflector, cases: list[Case], **more: Any) -> list[dict[str, Any]]:
    """What it says of cases that were approved, one after the other."""

    async def play() -> list[dict[str, Any]]:
        said = [await reflector.reflect(case.transaction, "APPROVE", case.answer, **more) for case in cases]
        return [each for each in said if each is not None]

    return asyncio.run(play())


def test_a_reply_is_the_same_mapping_and_measured(reflector: Reflector) -> None:
    reflector.remember(world(300))
    replies = reflect(reflector, world(25, seed=1, prefix="d"), node="a node")
    assert replies
    for reply in replies:
        assert set(reply) == KEYS
        assert isinstance(reply["new_bullet"], str)
        assert 0 <= reply["confidence"] <= 1
        assert reply["argues"] in ("APPROVE", "DECLINE")
        assert (reply["node"], reply["learnt_from"] in ("failure", "success")) == ("a node", True)
        evidence = reply["evidence"]
        assert isinstance(evidence, Evidence), "with 300 cases everything can be measured"
        assert evidence.in_words() in reply["new_bullet"]
        assert Condition.parse(reply["condition"]).facts <= {"amount", "vpn"}
    assert len({reply["condition"] for reply in replies}) == len(replies), "nothing is proposed twice"


def test_it_remembers_what_it_reflects_on(reflector: Reflector) -> None:
    reflect(reflector, world(5))
    reflector.remember(world(5, seed=3, prefix="e"))
    assert len(reflector) == len(reflector.memory.cases) == 10


def test_a_text_will_do_and_the_verdicts_are_checked(reflector: Reflector) -> None:
    asyncio.run(reflector.reflect("$2,500 purchase through a VPN", "APPROVE", "DECLINE", "fraud_detection"))
    with pytest.raises(InputError, match="expected APPROVE or DECLINE"):
        asyncio.run(reflector.reflect("$20", "MAYBE", "APPROVE"))


def test_a_learner_trains_with_it(reflector: Reflector) -> None:
    learner = Learner(BulletPlaybook(), reflector=reflector)
    added = asyncio.run(learner.train(world(300)))
    assert added
    for bullet in (learner.playbook.get_bullet(each) for each in added):
        assert bullet is not None
        assert (bullet.source, bullet.verified) == (Source.OFFLINE, True)
    assert learner.playbook.snapshot().calibration("fraud_detection") is not None
    assert (learner.proposed is None) is (reflector.model == "embedded")
    assert matches_replay(learner.playbook)


def test_a_learner_learns_from_outcomes_with_it(reflector: Reflector) -> None:
    learner = Learner(BulletPlaybook(), reflector=reflector, options=LearnerOptions(reflect_every=40))

    async def live() -> list[str]:
        added: list[str] = []
        for case in world(150):
            await learner.decide(case.transaction)
            heard = await learner.hear(Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud))
            added += heard.review.added if heard.review else ()
        return added + await learner.finish_lessons()

    added = asyncio.run(live())
    assert added
    assert {bullet.source for bullet in learner.playbook.snapshot().bullets.values()} == {Source.ONLINE}
    assert learner.review().cases == 150
    assert matches_replay(learner.playbook)


def test_training_on_nothing_is_refused_before_anything_is_asked(reflector: Reflector, server: LoopbackServer) -> None:
    learner = Learner(BulletPlaybook(), reflector=reflector)
    with pytest.raises(InputError, match="there are no cases: expected a history with both labels"):
        asyncio.run(learner.train([]))
    assert asyncio.run(learner.train([], both_labels=False)) == []
    assert server.log == []


# --- on a model --------------------------------------------------------------------------------------------------


def test_the_reasoning_of_the_agent_reaches_the_model(server: LoopbackServer, client: ModelClient) -> None:
    reflect(on(server, client), world(1), agent_reasoning="the voice sounded calm")
    (call,) = server.log
    shown = json.loads(call.body)["messages"][-1]["content"]
    cases = shown.partition("<cases>")[2].partition("</cases>")[0].strip().splitlines()
    assert [json.loads(line)["reasoning"] for line in cases] == ["the voice sounded calm"]


def test_what_it_said_before_is_known_to_it(loopback: Callable[..., LoopbackServer], client: ModelClient) -> None:
    server = loopback(planted=[{**WHOLE, "new_bullet": "Nervous voices", "condition": None}])
    reflect(on(server, client), world(2))
    first, second = (json.loads(call.body)["messages"][-1]["content"] for call in server.log)
    assert "Nervous voices" not in first
    assert "Nervous voices" in second


def test_a_stated_figure_gives_way_to_the_measured_one(
    loopback: Callable[..., LoopbackServer], client: ModelClient
) -> None:
    reflector = on(loopback(planted=[WHOLE]), client)
    reflector.remember(world(300))
    (reply,) = reflect(reflector, world(1, seed=1, prefix="d"))
    assert reply["condition"] == WHOLE["condition"]
    assert reply["evidence"].in_words() in reply["new_bullet"]
    assert "99%" not in reply["new_bullet"]


def test_what_cannot_be_measured_has_no_evidence(loopback: Callable[..., LoopbackServer], client: ModelClient) -> None:
    reflector = on(loopback(planted=[WHOLE]), client)
    (reply,) = reflect(reflector, world(1))
    assert set(reply) == KEYS
    assert (reply["evidence"], reply["weight"]) == (None, None)
    assert reply["new_bullet"] == WHOLE["new_bullet"]


def test_what_the_cases_refute_is_not_proposed(loopback: Callable[..., LoopbackServer], client: ModelClient) -> None:
    refuted = {**WHOLE, "condition": "amount < 1000"}
    reflector = on(loopback(planted=[refuted, {"new_bullet": None}]), client)
    reflector.remember(world(300))
    assert reflect(reflector, world(2, seed=1, prefix="d")) == []


def test_a_failed_call_is_an_error(loopback: Callable[..., LoopbackServer], client: ModelClient) -> None:
    reflector = on(loopback(misbehave={"http_500": 1.0}), client)
    with pytest.raises(ModelError):
        reflect(reflector, world(1))


def test_studying_without_awaiting_is_for_the_embedded_engine(server: LoopbackServer, client: ModelClient) -> None:
    assert Learner(BulletPlaybook()).study(world(300))
    with pytest.raises(ConfigurationError, match=r"await learner\.train"):
        Learner(BulletPlaybook(), reflector=on(server, client)).study(world(300))
    assert server.log == []


def test_a_key_in_the_environment_sends_nothing(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    reflector = Reflector()
    reflector.remember(world(100))
    reflect(reflector, world(25, seed=1, prefix="d"))
    asyncio.run(Learner(BulletPlaybook(), reflector=reflector).train(world(100)))
    assert server.log == []


def test_a_model_is_named_with_its_provider() -> None:
    with pytest.raises(ConfigurationError, match="reflector: expected embedded or provider:name"):
        Reflector(model="gpt-4o-mini")
