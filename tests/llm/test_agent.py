"""The agent on a model, over real HTTP: it returns the verdict of the model, or raises an error."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from acefraud.core.bullet import Bullet, Evidence, Record, Status
from acefraud.core.decision import ProbabilityFrom, ReasonKind
from acefraud.core.transaction import Verdict
from acefraud.errors import ModelError, ModelMalformed, ModelRateLimited, ModelRefused, ModelTimeout, ModelUnavailable
from acefraud.llm.call import Call, Reply, TokenLogprobs
from acefraud.llm.client import ClientOptions, ModelClient
from acefraud.llm.provider import ProviderCaller
from acefraud.roles.model.agent import ALTERNATIVES, ModelAgent
from acefraud.roles.model.prompts import Style
from acefraud.roles.protocols import Assessment, Question

if TYPE_CHECKING:
    from tests.llm.conftest import Loopback
    from tests.llm.loopback import LoopbackServer

http = pytest.mark.enable_socket
MODEL = "openai:mine"
TEXT, FACTS = "New device, a VPN, gift cards", {"amount": 2500.0, "vpn": True, "new_device": True}
QUIET = {"amount": 12.0, "strong_authentication": True, "device_age_days": 400.0}
BULLETS = [
    Bullet(id="b-11111111", content="A VPN and a new device", argues=Verdict.DECLINE),
    Bullet(id="b-22222222", content="A device of many months", argues=Verdict.APPROVE),
    Bullet(id="b-33333333", content="Look twice"),
]
ONCE = ClientOptions(attempts=1, timeout=60.0)


def assess(
    server: LoopbackServer, *, style: Style = Style.REASONED, options: ClientOptions = ONCE, **given: Any
) -> Assessment:
    async def play() -> Assessment:
        caller = ProviderCaller(options.timeout)
        async with ModelClient(options, caller=caller) as client:
            agent = ModelAgent(client, MODEL, style=style, base_url=server.base_url)
            asked = {"text": TEXT, "facts": FACTS, "bullets": BULLETS, "calibration": None, **given}
            return await agent.assess(Question(**asked))

    return asyncio.run(play())


def answering(**changed: Any) -> Callable[..., str]:
    whole = {"reasoning": "Because.", "bullets": [], "probability": 0.75, "verdict": "DECLINE", **changed}
    return lambda *_: json.dumps(whole)


@http
def test_a_reasoned_verdict(loopback: Loopback) -> None:
    server = loopback()
    view = assess(server)
    (logged,) = server.log
    assert view.verdict is Verdict.DECLINE
    assert view.probability > 0.5
    assert view.base == pytest.approx(math.log(view.probability / (1 - view.probability)))
    assert view.probability_from is ProbabilityFrom.STATED
    assert (view.model, view.odds, view.fallback) == (MODEL, None, "")
    assert view.prompt.startswith("agent_reasoned.v")
    words, *cited = view.reasons
    assert (words.kind, words.contribution) == (ReasonKind.MODEL, None)
    assert "more like fraud" in words.text
    assert [reason.bullet_id for reason in cited] == ["b-11111111"]
    assert cited[0].text == BULLETS[0].shown
    assert view.usage is not None
    assert (view.usage.input_tokens, view.usage.output_tokens) == (logged.input_tokens, logged.output_tokens)
    assert logged.input_tokens > 100
    body = json.loads(logged.body)
    assert body["temperature"] == 0
    assert body["response_format"] == {"type": "json_object"}
    assert body["model"] == "mine"
    assert assess(server, facts=QUIET, text="Paid in store").verdict is Verdict.APPROVE


@http
@pytest.mark.parametrize(
    "cited", [["b-22222222", "b-22222222"], ["[b-22222222]"], [" b-22222222 "], ["[b-22222222]", "b-22222222"]]
)
def test_a_bullet_is_cited_once_with_brackets_or_without(loopback: Loopback, cited: list[str]) -> None:
    view = assess(loopback(answer=answering(bullets=cited)))
    assert [reason.bullet_id for reason in view.reasons[1:]] == ["b-22222222"]


@http
def test_a_lower_case_verdict_and_a_percentage(loopback: Loopback) -> None:
    view = assess(loopback(answer=answering(verdict="decline", probability="85%")))
    assert (view.verdict, view.probability) == (Verdict.DECLINE, 0.85)
    assert assess(loopback(misbehave={"lower_case": 1.0})).verdict is Verdict.DECLINE


@http
@pytest.mark.parametrize("probability", [0, 1])
def test_a_stated_certainty_stays_finite(loopback: Loopback, probability: int) -> None:
    view = assess(loopback(answer=answering(probability=probability)))
    assert view.probability == probability
    assert math.isfinite(view.base)


@http
def test_a_bullet_that_was_not_shown_is_asked_about_once(loopback: Loopback, tmp_path: Path) -> None:
    server = loopback(misbehave={"unknown_bullets": [1]})
    options = ClientOptions(attempts=1, cache=tmp_path / "replies.db")
    view = assess(server, options=options)
    first, second = server.log
    assert [reason.bullet_id for reason in view.reasons[1:]] == ["b-11111111"]
    assert view.usage is not None
    assert view.usage.input_tokens == first.input_tokens + second.input_tokens
    assert view.usage.output_tokens == first.output_tokens + second.output_tokens
    asked, again = (json.loads(call.body)["messages"][-1]["content"] for call in (first, second))
    repair = again.removeprefix(asked)
    assert "b-00000000" in repair.partition("</reply>")[0]
    assert "b-00000000 were not shown" in repair.partition("</reply>")[2]
    assert all(bullet.id in repair for bullet in BULLETS)
    kept = assess(server, options=options)
    assert len(server.log) == 2
    assert kept.usage is not None
    assert kept.usage.cached
    assert kept.verdict is view.verdict


@http
def test_a_bullet_that_was_not_shown_is_an_error_the_second_time(loopback: Loopback, tmp_path: Path) -> None:
    server = loopback(misbehave={"unknown_bullets": 1.0})
    options = ClientOptions(attempts=1, cache=tmp_path / "replies.db")
    for run in (1, 2):
        with pytest.raises(ModelMalformed, match="b-00000000 were not shown"):
            assess(server, options=options)
        assert len(server.log) == 2 * run


@http
def test_where_no_bullet_was_shown_none_is_cited(loopback: Loopback) -> None:
    view = assess(loopback(misbehave={"unknown_bullets": 1.0}), bullets=[])
    assert [reason.kind for reason in view.reasons] == [ReasonKind.MODEL]


@http
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(("facts", "verdict"), [(FACTS, Verdict.DECLINE), (QUIET, Verdict.APPROVE)])
def test_a_word_and_its_odds(
    loopback: Loopback, split: bool, lower: bool, facts: dict[str, Any], verdict: Verdict
) -> None:
    server = loopback(split_tokens=split, direct_shift=0.0, misbehave={"lower_case": 1.0} if lower else {})
    view = assess(server, style=Style.DIRECT, facts=facts)
    reasoned = assess(loopback(), facts=facts)
    (logged,) = server.log
    assert view.verdict is verdict
    assert view.probability_from is ProbabilityFrom.ODDS
    assert view.odds == view.base
    assert view.odds is not None
    # Without a shift the odds are those of the reasoned answer, but for the stray token that begins with "Dec".
    assert view.odds == pytest.approx(reasoned.base, abs=0.05)
    assert view.probability == pytest.approx(1 / (1 + math.exp(-view.odds)))
    assert view.prompt.startswith("agent_direct.v")
    assert view.usage is not None
    assert (view.usage.input_tokens, view.usage.output_tokens) == (logged.input_tokens, 2 if split else 1)
    for_it = "b-11111111" if verdict is Verdict.DECLINE else "b-22222222"
    assert [reason.bullet_id for reason in view.reasons] == [for_it, "b-33333333"]
    body = json.loads(logged.body)
    assert (body["logprobs"], body["top_logprobs"], body["temperature"]) == (True, ALTERNATIVES, 0)
    assert "response_format" not in body


@http
def test_without_log_probabilities_it_is_asked_to_reason(loopback: Loopback) -> None:
    server = loopback(logprobs=False)

    async def play() -> list[Assessment]:
        async with ModelClient(ONCE) as client:
            agent = ModelAgent(client, MODEL, style=Style.DIRECT, base_url=server.base_url)
            return [await agent.assess(Question(TEXT, facts, BULLETS, None)) for facts in (FACTS, QUIET)]

    first, second = asyncio.run(play())
    assert [view.probability_from for view in (first, second)] == [ProbabilityFrom.STATED] * 2
    assert all(view.prompt.startswith("agent_reasoned.v") for view in (first, second))
    assert first.odds is None
    assert [bool(json.loads(call.body).get("logprobs")) for call in server.log] == [True, False, False]
    assert first.usage is not None
    assert second.usage is not None
    assert first.usage.input_tokens == sum(call.input_tokens for call in server.log[:2])
    assert first.usage.output_tokens == sum(call.output_tokens for call in server.log[:2])
    assert second.usage.input_tokens == server.log[2].input_tokens


@http
def test_a_misbehaving_server_without_log_probabilities(loopback: Loopback) -> None:
    view = assess(loopback(misbehave={"no_logprobs": 1.0}), style=Style.DIRECT)
    assert (view.verdict, view.probability_from) == (Verdict.DECLINE, ProbabilityFrom.STATED)


class Scripted:
    """Says what it is told to, one reply after another."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.sent: list[Call] = []
        self.forgotten: list[Call] = []

    async def send(self, call: Call) -> Reply:
        self.sent.append(call)
        return self.replies.pop(0)

    def forget(self, call: Call) -> None:
        self.forgotten.append(call)

    async def close(self) -> None:
        pass


def test_one_reply_whose_odds_cannot_be_told_does_not_end_the_style() -> None:
    odd = TokenLogprobs(token="▁DECLINE", logprob=-0.1)
    even = TokenLogprobs(token="DECLINE", logprob=-0.1, others={"APPROVE": -2.5})
    reasoned = Reply(text=answering()())
    client = Scripted(Reply(text="DECLINE", logprobs=(odd,)), reasoned, Reply(text="DECLINE", logprobs=(even,)))
    agent = ModelAgent(client, MODEL, style=Style.DIRECT)

    async def play() -> list[Assessment]:
        return [await agent.assess(Question(TEXT, FACTS, BULLETS, None)) for _ in range(2)]

    first, second = asyncio.run(play())
    assert (first.probability_from, second.probability_from) == (ProbabilityFrom.STATED, ProbabilityFrom.ODDS)


@http
def test_a_sentence_is_asked_for_once_more_in_one_word(loopback: Loopback, tmp_path: Path) -> None:
    server = loopback(misbehave={"sentence": [1]}, direct_shift=0.0)
    view = assess(server, style=Style.DIRECT)
    first, second = server.log
    assert view.verdict is Verdict.DECLINE
    assert view.usage is not None
    assert view.usage.output_tokens == first.output_tokens + second.output_tokens
    asked, again = (json.loads(call.body)["messages"] for call in (first, second))
    assert [message["role"] for message in again] == ["system", "user"], "the reply is not sent back"
    assert again[1]["content"] == f"{asked[1]['content']}\n\nAnswer with one word only: APPROVE or DECLINE."


@http
def test_two_sentences_are_an_error_and_are_not_kept(loopback: Loopback, tmp_path: Path) -> None:
    server = loopback(misbehave={"sentence": 1.0})
    options = ClientOptions(attempts=1, cache=tmp_path / "replies.db")
    for run in (1, 2):
        with pytest.raises(ModelMalformed, match="expected APPROVE or DECLINE, got 'I would decline"):
            assess(server, style=Style.DIRECT, options=options)
        assert len(server.log) == 2 * run


@pytest.mark.parametrize("said", ["APPROVE or DECLINE", "Decline? No, approve.", "REVIEW", "DECLINE is wrong here"])
def test_both_words_or_more_are_no_verdict(said: str) -> None:
    client = Scripted(Reply(text=said), Reply(text=said))
    agent = ModelAgent(client, MODEL, style=Style.DIRECT)
    with pytest.raises(ModelMalformed):
        asyncio.run(agent.assess(Question(TEXT, FACTS, BULLETS, None)))
    assert client.forgotten == client.sent


ANY_STYLE: dict[str, type[ModelError]] = {
    "rate_limit": ModelRateLimited,
    "http_500": ModelUnavailable,
    "hang": ModelTimeout,
    "cut": ModelUnavailable,
    "broken_body": ModelUnavailable,
    "empty": ModelMalformed,
    "refusal": ModelRefused,
    "sentence": ModelMalformed,
}
ONLY_REASONED = {"invalid_json": ModelMalformed, "wrong_shape": ModelMalformed}
TROUBLE = [(Style.REASONED, *each) for each in (ANY_STYLE | ONLY_REASONED).items()]
TROUBLE += [(Style.DIRECT, *each) for each in ANY_STYLE.items()]


@http
@pytest.mark.parametrize(("style", "misbehaviour", "kind"), TROUBLE)
def test_trouble_is_never_a_verdict(
    loopback: Loopback, style: Style, misbehaviour: str, kind: type[ModelError]
) -> None:
    server = loopback(misbehave={misbehaviour: 1.0}, retry_after="0.01")
    waiting = 0.2 if misbehaviour == "hang" else 60.0
    with pytest.raises(ModelError) as raised:
        assess(server, style=style, options=ClientOptions(attempts=2, first_wait=0.0, timeout=waiting))
    assert type(raised.value) is kind
    again = kind in (ModelRateLimited, ModelUnavailable, ModelTimeout)
    repaired = misbehaviour in ("sentence", "invalid_json", "wrong_shape")
    assert len(server.log) == (2 if again or repaired else 1)


@http
@pytest.mark.parametrize("style", Style)
def test_what_was_neither_measured_nor_approved_is_not_shown(loopback: Loopback, style: Style) -> None:
    measured = Evidence(learnt=Record(support=20, frauds=15), base_rate=0.2)
    waits = Bullet(id="b-44444444", content="Gut feeling = 99% fraud", status=Status.CANDIDATE, argues=Verdict.DECLINE)
    questioned = waits.model_copy(update={"id": "b-55555555", "evidence": measured})
    approved = waits.model_copy(update={"id": "b-66666666", "status": Status.ACTIVE})
    server = loopback()
    view = assess(server, style=style, bullets=[waits, questioned, approved])
    (call,) = server.log
    assert b"b-44444444" not in call.body
    assert b"b-55555555" in call.body
    assert b"b-66666666" in call.body
    assert b"99%" not in call.body
    assert "b-44444444" not in {reason.bullet_id for reason in view.reasons}
