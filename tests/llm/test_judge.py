"""The judge on a model: called only without a truth; a failed call leaves the case unjudged."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from acefraud import LLMJudge
from acefraud.core.outcome import Judgement, Ruling
from acefraud.errors import ModelMalformed
from acefraud.llm.client import ClientOptions, ModelClient
from acefraud.roles.model.agent import ModelJudge

if TYPE_CHECKING:
    from tests.llm.conftest import Loopback
    from tests.llm.loopback import LoopbackServer

pytestmark = pytest.mark.enable_socket
TEXT = "Paid $2,500 for gift cards over a VPN from a new device"


def rule(server: LoopbackServer, output: str = "DECLINE", truth: str | None = None, timeout: float = 60.0) -> Judgement:
    async def play() -> Judgement:
        async with ModelClient(ClientOptions(attempts=1, timeout=timeout)) as client:
            judge = LLMJudge(ModelJudge(client, "openai:mine", base_url=server.base_url))
            judgement = await judge.rule(TEXT, output, truth)
            assert (judgement.is_correct, judgement.confidence) == await judge.judge(TEXT, output, truth)
            return judgement

    return asyncio.run(play())


def test_without_truth_the_model_is_asked(loopback: Loopback) -> None:
    server = loopback()
    right, wrong = rule(server, "DECLINE"), rule(server, "APPROVE")
    assert (right.ruling, right.confidence) == (Ruling.CORRECT, 0.8)
    assert (wrong.ruling, wrong.confidence) == (Ruling.INCORRECT, 0.8)
    assert right.reason == "I would have said DECLINE."
    assert {call.role for call in server.log} == {"judge"}
    for call in server.log:
        body = json.loads(call.body)
        assert body["temperature"] == 0
        assert "<output>" in body["messages"][-1]["content"]
        assert TEXT in body["messages"][-1]["content"]


@pytest.mark.parametrize("truth", ["APPROVE", " decline "])
def test_with_the_truth_nothing_is_asked(loopback: Loopback, truth: str) -> None:
    server = loopback(misbehave={"http_500": 1.0})
    judgement = rule(server, "DECLINE", truth)
    assert judgement.is_correct is (truth == " decline ")
    assert judgement.confidence == 1.0
    assert server.log == []


@pytest.mark.parametrize(
    "misbehaviour",
    ["rate_limit", "http_500", "hang", "cut", "broken_body", "empty", "refusal", "invalid_json", "wrong_shape",
     "sentence"],
)  # fmt: skip
def test_a_failed_call_leaves_it_unjudged(loopback: Loopback, misbehaviour: str) -> None:
    server = loopback(misbehave={misbehaviour: 1.0})
    judgement = rule(server, timeout=0.2 if misbehaviour == "hang" else 60.0)
    assert judgement.ruling is Ruling.UNJUDGED
    assert (judgement.is_correct, judgement.confidence) == (None, 0.0)
    assert judgement.reason.startswith("the judge failed: openai:mine")
    assert server.log


def test_by_itself_it_raises(loopback: Loopback) -> None:
    server = loopback(answer=lambda *_: '{"is_correct": "yes", "confidence": 0.9, "reasoning": ""}')

    async def play() -> None:
        async with ModelClient(ClientOptions(attempts=1)) as client:
            await ModelJudge(client, "openai:mine", base_url=server.base_url).assess_output(TEXT, "DECLINE")

    with pytest.raises(ModelMalformed, match="is_correct: Input should be a valid boolean"):
        asyncio.run(play())
    assert len(server.log) == 2
