"""A call that was under way when its run was killed is finished by the courier, and its reply is there for the next."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from acefraud import errors
from acefraud.llm.answers import AnswerFile
from acefraud.llm.caching import Cached
from acefraud.llm.calling import Call, Message, Reply, Role
from acefraud.llm.carrying import carry
from acefraud.llm.client import ClientOptions, ModelClient
from acefraud.llm.courier import Courier
from acefraud.llm.failures import failure_from, failure_of
from acefraud.llm.metering import tokens_of, with_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.llm.loopback import LoopbackServer

KINDS = [
    errors.ModelTimeout("no reply"),
    errors.ModelRateLimited("too many", retry_after=1.5),
    errors.ModelUnavailable("gone"),
    errors.ModelRefused("wrong key"),
    with_tokens(errors.ModelMalformed("empty"), 12, 3),
    errors.ConfigurationError("set OPENAI_API_KEY"),
]


def call(text: str, url: str = "") -> Call:
    return Call(
        role=Role.JUDGE,
        model="openai:gpt-4o-mini",
        base_url=url,
        system='{"is_correct": true}',
        messages=(Message(role="user", content=text),),
    )


class Scripted:
    """A caller that says what it is told to, for each text."""

    def __init__(self, said: dict[str, Reply | errors.AcefraudError]) -> None:
        self._said = said

    async def send(self, call: Call) -> Reply:
        said = self._said[call.messages[0].content if call.messages else call.texts[0]]
        if isinstance(said, errors.AcefraudError):
            raise said
        return said

    async def close(self) -> None: ...


@pytest.mark.parametrize("error", KINDS, ids=lambda error: type(error).__name__)
def test_a_failure_passes_from_one_process_to_another(error: errors.AcefraudError) -> None:
    again = failure_from(json.loads(json.dumps(failure_of(error))))
    assert (type(again), str(again)) == (type(error), str(error))
    assert getattr(again, "retry_after", None) == getattr(error, "retry_after", None)
    if isinstance(error, errors.ModelError) and isinstance(again, errors.ModelError):
        assert tokens_of(again) == tokens_of(error)


def test_what_is_carried_is_filed_and_said(tmp_path: Path) -> None:
    good, texts = call("good"), Call(role=Role.EMBEDDING, model="openai:e", texts=("a", "b"), max_tokens=0)
    vectors = Reply(vectors=((1.0,), (2.0,)), input_tokens=2)
    caller = Scripted({"good": Reply(text="yes"), "bad": errors.ModelRefused("no"), "a": vectors})
    asked = [good, call("bad"), texts]
    lines = b"".join(
        json.dumps({"number": number, "call": each.model_dump(mode="json")}).encode() + b"\n"
        for number, each in enumerate(asked)
    )
    replies, answers = io.BytesIO(), AnswerFile(tmp_path / "replies.db")
    asyncio.run(carry(io.BytesIO(lines), replies, caller, answers))
    said = {line["number"]: line for line in map(json.loads, replies.getvalue().splitlines())}
    assert said[0]["reply"]["text"] == "yes"
    assert said[1]["failure"]["kind"] == "ModelRefused"
    assert answers.get([good.key])[good.key].text == "yes"
    one = texts.model_copy(update={"texts": ("b",)})
    assert answers.get([one.key])[one.key].vectors == ((2.0,),)
    assert not answers.under_way([each.key for each in asked])
    answers.close()


def test_a_call_under_way_elsewhere_is_waited_for(tmp_path: Path) -> None:
    answers, asked = AnswerFile(tmp_path / "replies.db"), call("good")
    answers.begin([asked.key], os.getpid(), 60.0)
    cached = Cached(Scripted({}), answers)

    async def both() -> Reply:
        waiting = asyncio.create_task(cached.send(asked))
        await asyncio.sleep(0.12)
        assert not waiting.done()
        answers.put({asked.key: Reply(text="yes")})
        answers.end([asked.key])
        return await waiting

    reply = asyncio.run(both())
    assert (reply.text, reply.cached) == ("yes", True)
    answers.close()


def test_what_a_dead_process_had_under_way_is_not_waited_for(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    answers, asked = AnswerFile(tmp_path / "replies.db"), call("good")
    answers.begin([asked.key], gone.pid, 60.0)
    assert not answers.under_way([asked.key])
    answers.close()


def test_what_has_been_under_way_for_too_long_is_not_waited_for(tmp_path: Path) -> None:
    """Numbers of processes come again: another one may live under that of a courier which was killed."""
    answers, asked = AnswerFile(tmp_path / "replies.db"), call("good")
    answers.begin([asked.key], os.getpid(), -1.0)
    assert not answers.under_way([asked.key])
    answers.close()


@pytest.mark.enable_socket
def test_through_a_process_of_its_own(
    loopback: Callable[..., LoopbackServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    server = loopback(answer=lambda *_: "yes")
    options = ClientOptions(cache=tmp_path / "replies.db", attempts=1)

    async def ask() -> list[Any]:
        async with ModelClient(options) as client:
            calls = [call(str(number), server.base_url) for number in range(5)]
            got = await asyncio.gather(*(client.send(each) for each in calls))
            refused = call("x").model_copy(update={"model": "nobody:knows"})
            with pytest.raises(errors.ConfigurationError, match="no provider is called"):
                await client.send(refused)
            return list(got)

    assert [reply.text for reply in asyncio.run(ask())] == ["yes"] * 5
    assert len(server.log) == 5


KILLED = """
import asyncio, sys
from pathlib import Path
from acefraud.llm.calling import Call
from acefraud.llm.client import ClientOptions, ModelClient

async def main() -> None:
    await ModelClient(ClientOptions(cache=Path(sys.argv[1]))).send(Call.model_validate_json(sys.argv[2]))

asyncio.run(main())
"""


@pytest.mark.long
@pytest.mark.enable_socket
def test_a_killed_run_loses_nothing_that_was_paid_for(
    loopback: Callable[..., LoopbackServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    server = loopback(answer=lambda *_: "yes", delay=0.6)
    asked, cache = call("is it?", server.base_url), tmp_path / "replies.db"
    run = subprocess.Popen([sys.executable, "-c", KILLED, str(cache), asked.model_dump_json()])
    assert server.wait_for_calls(1, timeout=60)
    run.kill()
    run.wait()

    async def again() -> Reply:
        async with ModelClient(ClientOptions(cache=cache)) as client:
            return await client.send(asked)

    reply = asyncio.run(again())
    assert (reply.text, reply.cached, len(server.log)) == ("yes", True, 1)


def test_a_courier_that_dies_is_an_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    courier = Courier(tmp_path / "replies.db")
    with pytest.raises(errors.ModelUnavailable, match="courier process ended"):
        asyncio.run(courier.send(call("x")))
    begun = time.monotonic()
    asyncio.run(courier.close())
    assert time.monotonic() - begun < 5
