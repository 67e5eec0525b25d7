"""The contract of every judge, embedded or on a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from acefraud import BulletPlaybook, Learner, LLMJudge, SimpleJudge, Transaction
from acefraud.core.outcome import Ruling
from acefraud.errors import ConfigurationError
from acefraud.llm.client import ModelClient

if TYPE_CHECKING:
    from tests.llm.loopback import LoopbackServer

pytestmark = pytest.mark.enable_socket
MODEL = "openai:mine"
TEXT = "Paid $2,500 for gift cards over a VPN from a new device"


@pytest.fixture(params=["simple", "embedded", "model"])
def judge(request: pytest.FixtureRequest, server: LoopbackServer, client: ModelClient) -> SimpleJudge:
    judges = {
        "simple": SimpleJudge(),
        "embedded": LLMJudge(),
        "model": LLMJudge(model=MODEL, base_url=server.base_url, client=client),
    }
    return judges[request.param]


@pytest.mark.parametrize(("truth", "correct"), [(" decline ", True), ("APPROVE", False)])
def test_the_truth_decides_without_a_call(
    judge: SimpleJudge, server: LoopbackServer, truth: str, correct: bool
) -> None:
    assert asyncio.run(judge.judge(TEXT, "DECLINE", truth)) == (correct, 1.0)
    assert server.log == []


def test_without_a_truth_it_judges_or_says_that_it_cannot(judge: SimpleJudge, server: LoopbackServer) -> None:
    ruled = asyncio.run(judge.rule(TEXT, "DECLINE"))
    assert asyncio.run(judge.judge(TEXT, "DECLINE")) == (ruled.is_correct, ruled.confidence)
    assert (ruled.ruling is Ruling.UNJUDGED) is (server.log == [])
    assert ruled.is_correct is (None if ruled.ruling is Ruling.UNJUDGED else True)
    assert ruled.reason


def test_what_it_may_see_are_the_words_or_the_facts(judge: SimpleJudge) -> None:
    assert judge.presentable(TEXT, {"amount": 2500.0}) == TEXT
    assert "2,500" in judge.presentable("", {"amount": 2500.0}) or "2500" in judge.presentable("", {"amount": 2500.0})


def test_a_learner_asks_it_about_decisions(judge: SimpleJudge, server: LoopbackServer) -> None:
    async def play() -> tuple[Ruling, int]:
        learner = Learner(BulletPlaybook(), judge=judge)
        decision = await learner.decide(Transaction(id="t", text=TEXT))
        judgement = await learner.judge_pending(decision)
        return judgement.ruling, learner.playbook.outcomes

    ruling, outcomes = asyncio.run(play())
    assert (ruling is Ruling.UNJUDGED) is (server.log == [])
    assert outcomes == len(server.log)


# --- on a model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("misbehaviour", ["http_500", "wrong_shape", "refusal", "empty"])
def test_a_failed_call_leaves_it_unjudged(
    loopback: Callable[..., LoopbackServer], client: ModelClient, misbehaviour: str
) -> None:
    server = loopback(misbehave={misbehaviour: 1.0})
    judge = LLMJudge(MODEL, base_url=server.base_url, client=client)
    ruled = asyncio.run(judge.rule(TEXT, "DECLINE"))
    assert (ruled.ruling, ruled.is_correct, ruled.confidence) == (Ruling.UNJUDGED, None, 0.0)
    assert server.log


def test_sensitive_facts_are_not_presentable() -> None:
    judge = LLMJudge(MODEL, sensitive=["segment"])
    assert "gold-7731" not in judge.presentable("", {"segment": "gold-7731", "amount": 5.0})


def test_a_key_in_the_environment_sends_nothing(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    assert asyncio.run(LLMJudge().judge(TEXT, "DECLINE")) == (None, 0.0)
    assert server.log == []


def test_a_model_is_named_with_its_provider() -> None:
    with pytest.raises(ConfigurationError, match="judge: expected embedded or provider:name"):
        LLMJudge("gpt-4o-mini")
