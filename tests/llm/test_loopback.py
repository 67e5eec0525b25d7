"""The loopback server, as the real client of the protocol sees it."""

from __future__ import annotations

import asyncio
import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from acefraud.core.condition import Condition

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from tests.llm.loopback import LoopbackServer

openai = pytest.importorskip("openai")
pytestmark = pytest.mark.enable_socket

T = TypeVar("T")
Loopback = Callable[..., "LoopbackServer"]

REASONED = 'Decide. Reply with JSON: {"reasoning": "", "bullets": [], "probability": 0.5, "verdict": "APPROVE"}'
DIRECT = "Reply with one word: APPROVE or DECLINE."
JUDGE = 'Judge. Reply with JSON: {"is_correct": true, "confidence": 0.5, "reasoning": ""}'
REFLECTOR = 'Reflect. Reply with JSON: {"new_bullet": "", "condition": null, "argues": "DECLINE"}'
FOR_FRAUD = "[b-11111111] DECLINE: 90 of 100 past cases were fraud (90%, 83-95%), against 10% of all"
FOR_HONEST = "[b-22222222] APPROVE: 2 of 100 past cases were fraud (2%, 0-5%), against 40% of all"
UNVERIFIED = "[b-33333333] DECLINE, unverified"


def shown(facts: dict[str, Any], *bullets: str, text: str = "") -> str:
    lines = [f"text: {text}"] if text else []
    return "\n".join([*bullets, "<transaction>", *lines, f"facts: {json.dumps(facts)}", "</transaction>"])


RISKY = {"vpn": True, "emulator": True, "new_device": True, "failed_attempts": 4, "amount": 900.0}
CALM = {"vpn": False, "new_device": False, "strong_authentication": True, "amount": 12.0}


def run(server: LoopbackServer, work: Callable[[AsyncOpenAI], Awaitable[T]], timeout: float = 60.0) -> T:
    """What the work gives with a client that tries once."""

    async def inside() -> T:
        unverified = openai.DefaultAsyncHttpxClient(verify=False, timeout=timeout)  # loading certificates is slow
        async with openai.AsyncOpenAI(
            base_url=server.base_url, api_key="secret", max_retries=0, timeout=timeout, http_client=unverified
        ) as client:
            return await work(client)

    return asyncio.run(inside())


async def ask(client: AsyncOpenAI, system: str, user: str, **more: Any) -> Any:
    messages: Any = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return await client.chat.completions.create(model="crude", messages=messages, **more)


def one(server: LoopbackServer, system: str = REASONED, user: str = shown(RISKY), **more: Any) -> Any:
    timeout = more.pop("timeout", 60.0)
    return run(server, lambda client: ask(client, system, user, **more), timeout)


def content(server: LoopbackServer, system: str = REASONED, user: str = shown(RISKY), **more: Any) -> Any:
    return json.loads(one(server, system, user, **more).choices[0].message.content)


def test_a_reasoned_answer_has_the_real_shape_and_counts_its_tokens(loopback: Loopback) -> None:
    server = loopback()
    reply = one(server, user=shown(RISKY))
    said = reply.choices[0].message.content
    assert list(json.loads(said)) == ["reasoning", "bullets", "probability", "verdict"]
    assert json.loads(said)["verdict"] == "DECLINE"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.prompt_tokens == len(REASONED + shown(RISKY)) // 4 + 8
    assert reply.usage.completion_tokens == len(said) // 4
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert one(server, user=shown(RISKY)).choices[0].message.content == said
    assert content(server, user=shown(CALM))["verdict"] == "APPROVE"


def test_the_agent_follows_measured_bullets_and_cites_those_on_its_side(loopback: Loopback) -> None:
    server = loopback()
    facts = {"amount": 40.0}
    plain = content(server, user=shown(facts))
    warned = content(server, user=shown(facts, FOR_FRAUD, FOR_HONEST.replace("2%, 0-5", "39%, 30-45"), UNVERIFIED))
    eased = content(server, user=shown(facts, FOR_HONEST, UNVERIFIED))
    assert eased["probability"] < plain["probability"] < warned["probability"]
    assert (warned["verdict"], warned["bullets"]) == ("DECLINE", ["b-11111111", "b-33333333"])
    assert (eased["verdict"], eased["bullets"]) == ("APPROVE", ["b-22222222"])


@pytest.mark.parametrize(("split", "first"), [(False, ("DECLINE", "APPROVE")), (True, ("DE", "APP"))])
def test_one_word_comes_with_the_chances_of_both_verdicts(
    loopback: Loopback, split: bool, first: tuple[str, str]
) -> None:
    server = loopback(split_tokens=split)
    user = shown(RISKY, FOR_FRAUD)
    choice = one(server, DIRECT, user, logprobs=True, top_logprobs=5, max_tokens=5).choices[0]
    assert choice.message.content == "DECLINE"
    tokens = choice.logprobs.content
    assert "".join(token.token for token in tokens) == "DECLINE"
    others = {other.token: other.logprob for other in tokens[0].top_logprobs}
    assert len(others) == 5
    shifted = others[first[0]] - others[first[1]]
    plain = content(server, user=user)["probability"]
    assert shifted == pytest.approx(math.log(plain / (1 - plain)) - 2.0, abs=0.06)
    assert sum(map(math.exp, others.values())) <= 1.0


def test_a_long_answer_is_cut_at_the_tokens_allowed(loopback: Loopback) -> None:
    server = loopback(split_tokens=True)
    for reply in (one(server, max_tokens=5), one(server, max_completion_tokens=5)):
        assert reply.choices[0].finish_reason == "length"
        assert reply.usage.completion_tokens == 5
        assert len(reply.choices[0].message.content) == 20
    assert one(server, DIRECT, shown(CALM), max_tokens=1).choices[0].message.content == "APP"


def test_the_judge_goes_by_the_agents_view(loopback: Loopback) -> None:
    server = loopback()
    for output, right in (("DECLINE", True), ("APPROVE", False)):
        said = content(server, JUDGE, shown(RISKY) + f"\n<output>{output}</output>")
        assert (said["is_correct"], said["confidence"]) == (right, 0.8)
    assert [call.role for call in server.log] == ["judge", "judge"]


def cases(*rows: tuple[dict[str, Any], str]) -> str:
    lines = [json.dumps({"facts": facts, "decided": "APPROVE", "truth": truth}) for facts, truth in rows]
    known = "- amount_to_usual (number): 0 to 40, half of them below 1.1"
    return "\n".join(["Facts that a condition may test:", known, "<cases>", *lines, "</cases>"])


def test_the_reflector_finds_what_the_cases_share_and_makes_up_a_figure(loopback: Loopback) -> None:
    server = loopback()
    frauds = [
        ({"amount_to_usual": 4.27, "vpn": True, "amount": 80}, "DECLINE"),
        ({"amount_to_usual": 9.0, "vpn": True, "amount": 70}, "DECLINE"),
        ({"amount_to_usual": 0.5, "vpn": False, "amount": 75}, "APPROVE"),
    ]
    said = content(server, REFLECTOR, cases(*frauds))
    assert said["new_bullet"] == "Amount above 4.2 times the usual and a VPN = 95% fraud"
    assert (said["argues"], said["confidence"]) == ("DECLINE", 0.9)
    condition = Condition.parse(said["condition"])
    assert condition == Condition.parse("amount_to_usual > 4.2 and vpn is true")
    assert [condition.holds(facts) for facts, _ in frauds] == [True, True, False]
    honest = [({"account_age_days": age, "vpn": False, "my fact": True}, "APPROVE") for age in (400.0, 815.0)]
    said = content(server, REFLECTOR, cases(*honest))
    assert said["new_bullet"] == "Account age days at least 400 and no VPN = 95% legitimate"
    assert all(Condition.parse(said["condition"]).holds(facts) for facts, _ in honest)
    said = content(server, REFLECTOR, cases(({"my fact": True}, "DECLINE")))
    assert said["condition"] == str(Condition.parse("`my fact` is true"))
    assert content(server, REFLECTOR, cases(({}, "DECLINE")))["condition"] is None


def test_planted_and_supplied_replies_come_first(loopback: Loopback, loopback_module: ModuleType) -> None:
    server = loopback(planted=[{"new_bullet": "one"}, {"new_bullet": "two"}], misbehave={"http_500": [1]})
    asked = cases(({"vpn": True}, "DECLINE"))
    with pytest.raises(openai.InternalServerError):
        one(server, REFLECTOR, asked)
    said = [content(server, REFLECTOR, asked)["new_bullet"] for _ in range(3)]
    assert said == ["one", "two", "A VPN = 95% fraud"]
    server.script = loopback_module.Script(answer=lambda role, _: f'["{role}"]' if role == "judge" else None)
    assert content(server, JUDGE, shown(CALM)) == ["judge"]
    assert content(server)["verdict"] == "DECLINE"


def test_a_mistake_in_the_supplied_answer_is_raised_at_the_end(loopback_module: ModuleType) -> None:
    def mistaken(role: str, body: dict[str, Any]) -> str:
        raise LookupError(role)

    server = loopback_module.LoopbackServer(script=loopback_module.Script(answer=mistaken))
    with pytest.raises(LookupError, match="agent"), server, pytest.raises(openai.APIConnectionError):
        one(server)


def embedded(server: LoopbackServer, texts: list[str], **more: Any) -> list[list[float]]:
    async def work(client: AsyncOpenAI) -> list[list[float]]:
        reply = await client.embeddings.create(model="vectors", input=texts, **more)
        assert reply.usage.prompt_tokens == sum(max(1, len(text) // 4) for text in texts)
        return [row.embedding for row in reply.data]

    return run(server, work)


def test_embeddings_in_both_encodings(loopback: Loopback) -> None:
    server = loopback()
    texts = ["A VPN and a new device", "a vpn, and a NEW device!", "groceries on Tuesday", ""]
    plain = embedded(server, texts, encoding_format="float")
    packed = embedded(server, texts)
    assert json.loads(server.log[1].body)["encoding_format"] == "base64"
    assert [len(vector) for vector in plain] == [1536] * 4
    for one_way, other in zip(plain, packed, strict=True):
        assert other == pytest.approx(one_way, abs=1e-6)
        assert math.hypot(*one_way) == pytest.approx(1.0)
    assert plain[0] == plain[1] != plain[2]
    assert len(embedded(server, ["x"], dimensions=64)[0]) == 64
    assert {call.role for call in server.log} == {"embedding"}


def test_models_and_unknown_paths(loopback: Loopback) -> None:
    async def work(client: AsyncOpenAI) -> list[str]:
        with pytest.raises(openai.NotFoundError):
            await client.responses.create(model="crude", input="hello")
        with pytest.raises(openai.BadRequestError):
            await ask(client, REASONED, "x", stream=True)
        return [model.id async for model in client.models.list()]

    server = loopback()
    assert run(server, work) == ["loopback"]
    assert [call.status for call in server.log] == [404, 400]


@pytest.mark.parametrize(
    ("name", "error", "status"),
    [
        ("rate_limit", "RateLimitError", 429),
        ("http_500", "InternalServerError", 500),
        ("cut", "APIConnectionError", 200),
    ],
)
def test_failing_answers(loopback: Loopback, name: str, error: str, status: int) -> None:
    server = loopback(misbehave={name: 1.0})
    with pytest.raises(getattr(openai, error)) as caught:
        one(server)
    with pytest.raises(getattr(openai, error)):
        embedded(server, ["x"])
    assert [(call.misbehaviour, call.status) for call in server.log] == [(name, status)] * 2
    if name == "rate_limit":
        assert caught.value.response.headers["retry-after"] == "0.05"


def test_hang_and_trickle_outlast_the_clients_patience(loopback: Loopback) -> None:
    server = loopback(misbehave={"hang": [1], "trickle": [2, 3]}, trickle_seconds=0.9)
    with pytest.raises(openai.APITimeoutError):
        one(server, timeout=0.1)

    async def impatient(client: AsyncOpenAI) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(client, REASONED, shown(RISKY)), 0.7)

    run(server, impatient, timeout=0.6)  # each byte is in time, the whole is not
    started = time.monotonic()
    assert content(server)["verdict"] == "DECLINE"
    assert time.monotonic() - started >= 0.89
    assert [call.misbehaviour for call in server.log] == ["hang", "trickle", "trickle"]
    assert [call.delivered for call in server.log] == [False, False, True]
    assert server.in_flight == 0


SAID = {
    "invalid_json": 'Sure! Here is the answer: {"verdict": ',
    "wrong_shape": '{"answer": 42}',
    "sentence": "I would decline this transaction because it does not look right to me.",
    "empty": "",
    "refusal": None,
}


@pytest.mark.parametrize("name", SAID)
def test_answers_that_are_of_no_use(loopback: Loopback, name: str) -> None:
    server = loopback(misbehave={name: 1})
    for system in (REASONED, JUDGE, REFLECTOR):
        message = one(server, system).choices[0].message
        assert message.content == SAID[name]
        assert bool(message.refusal) == (name == "refusal")


def test_answers_that_are_nearly_right(loopback: Loopback) -> None:
    assert content(loopback(misbehave={"lower_case": 1}))["verdict"] == "decline"
    user = shown(RISKY, FOR_FRAUD)
    assert content(loopback(misbehave={"unknown_bullets": 1}), user=user)["bullets"] == ["b-11111111", "b-00000000"]
    lower = one(loopback(misbehave={"lower_case": 1}), DIRECT, user, logprobs=True, top_logprobs=2).choices[0]
    assert [other.token for other in lower.logprobs.content[0].top_logprobs] == ["decline", "approve"]
    silent = one(loopback(misbehave={"no_logprobs": 1}), DIRECT, user, logprobs=True).choices[0]
    assert (silent.message.content, silent.logprobs) == ("DECLINE", None)
    assert len(embedded(loopback(misbehave={"wrong_dimension": 1}), ["x"])[0]) == 3


def test_a_body_that_is_no_json(loopback: Loopback) -> None:
    async def raw(client: AsyncOpenAI) -> bytes:
        messages: Any = [{"role": "user", "content": "x"}]
        reply = await client.chat.completions.with_raw_response.create(model="crude", messages=messages)
        return bytes(reply.content)

    assert run(loopback(misbehave={"broken_body": 1}), raw).startswith(b"<html>")


def test_what_does_not_fit_is_not_applied(loopback: Loopback, loopback_module: ModuleType) -> None:
    server = loopback(misbehave={"wrong_dimension": 1, "unknown_bullets": 1, "invalid_json": 1, "no_logprobs": 1})
    assert one(server, DIRECT).choices[0].message.content in ("APPROVE", "DECLINE")
    server.script = loopback_module.Script(misbehave={"empty": 1, "lower_case": 1})
    assert len(embedded(server, ["x"])[0]) == 1536
    assert [call.misbehaviour for call in server.log] == ["", ""]
    with pytest.raises(ValueError, match="unknown misbehaviour"):
        loopback_module.Script(misbehave={"sulk": 1})


def test_chance_is_settled_by_seed_content_and_repetition(loopback: Loopback) -> None:
    async def many(client: AsyncOpenAI) -> list[str]:
        texts = [str(n % 40) for n in range(80)]
        replies = await asyncio.gather(*(ask(client, DIRECT, text) for text in texts))
        return [reply.choices[0].message.content for reply in replies]

    def emptied(seed: int) -> list[bool]:
        return [said == "" for said in run(loopback(misbehave={"empty": 0.3}, seed=seed), many)]

    first = emptied(1)
    assert first == emptied(1) != emptied(2)
    assert 12 <= sum(first) <= 36
    assert first[:40] != first[40:]  # asked again, the same content is thrown for anew


def test_the_log_keeps_what_was_on_the_wire_and_adds_up(loopback: Loopback) -> None:
    server = loopback(misbehave={"http_500": [2], "cut": [3]})
    used = [one(server).usage]
    for _ in range(2):
        with pytest.raises(openai.APIError):
            one(server)
    embedded(server, ["some words to embed"])
    call = server.log[0]
    assert json.loads(call.body)["messages"][1]["content"] == shown(RISKY)
    assert call.headers["authorization"] == "Bearer secret"
    assert (call.n, call.path, call.model, call.role) == (1, "/v1/chat/completions", "crude", "agent")
    assert call.ended is not None
    assert call.started <= call.ended
    totals, arrived = server.totals(), server.totals(delivered=True)
    assert (totals.calls, totals.by_model["crude"].calls, arrived.by_model["crude"].calls) == (4, 3, 2)
    assert arrived.by_model["crude"].input_tokens == used[0].prompt_tokens
    assert totals.by_model["crude"].output_tokens == 2 * used[0].completion_tokens  # the one cut off was made, too
    assert totals.input_tokens == 2 * used[0].prompt_tokens + totals.by_model["vectors"].input_tokens


def test_many_slow_calls_at_once(loopback: Loopback) -> None:
    async def many(client: AsyncOpenAI) -> None:
        asked = asyncio.gather(*(ask(client, DIRECT, str(n)) for n in range(64)))
        assert await asyncio.to_thread(server.wait_for_calls, 64)
        server.release()
        await asked

    server = loopback()
    server.hold()
    run(server, many, timeout=60)
    assert server.in_flight_peak == 64
    assert server.in_flight == 0


@pytest.mark.parametrize("name", ["hang", "trickle"])
def test_closing_ends_a_call_under_way(loopback_module: ModuleType, name: str) -> None:
    script = loopback_module.Script(misbehave={name: 1}, trickle_seconds=60)

    async def work(client: AsyncOpenAI) -> None:
        call = asyncio.create_task(ask(client, DIRECT, "x"))
        assert await asyncio.to_thread(server.wait_for_calls, 1)
        await asyncio.to_thread(server.close)
        with pytest.raises(openai.APIConnectionError):
            await call

    started = time.monotonic()
    with loopback_module.LoopbackServer(script=script) as server:
        run(server, work, timeout=30)
    assert time.monotonic() - started < 20
    assert server.log[0].ended is not None


PROGRAM = Path(__file__).with_name("loopback.py")


def program(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", str(PROGRAM), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Elsewhere:
    """A server in another process, as far as `one` needs it."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url


def test_as_a_program_it_prints_its_address_logs_and_stops(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    with program("--misbehave", "http_500=#2", "--misbehave", "hang=#3", "--log", log) as process:
        assert process.stdout is not None
        server: Any = Elsewhere(process.stdout.readline().strip())
        assert content(server)["verdict"] == "DECLINE"
        with pytest.raises(openai.InternalServerError):
            one(server)
        with pytest.raises(openai.APITimeoutError):
            one(server, timeout=0.1)
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["n"], line["status"], line["misbehaviour"]) for line in lines] == [
        (1, 200, ""),
        (2, 500, "http_500"),
        (3, 0, "hang"),
    ]
    assert json.loads(lines[0]["body"])["model"] == "crude"
    assert "secret" not in log.read_text()


def test_as_a_program_it_kills_once_when_the_call_arrives(tmp_path: Path) -> None:
    log, pid_file = tmp_path / "calls.jsonl", tmp_path / "pid"
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    with (
        subprocess.Popen(sleeper) as victim,
        program("--kill-at", "2", "--kill-pid-file", pid_file, "--log", log) as process,
    ):
        pid_file.write_text(str(victim.pid))
        assert process.stdout is not None
        server: Any = Elsewhere(process.stdout.readline().strip())
        one(server)
        assert victim.poll() is None
        one(server)
        assert victim.wait(timeout=60) == -signal.SIGKILL
        pid_file.write_text("1")
        one(server)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("", "")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["n"], line["killed"], line["status"]) for line in lines] == [
        (1, False, 200),
        (2, True, 0),
        (3, False, 200),
    ]
