"""A model that is down is not called for a while, then probed by one call."""

from __future__ import annotations

import asyncio

import pytest

from acefraud.errors import ModelError, ModelMalformed, ModelRefused, ModelTimeout, ModelUnavailable
from acefraud.llm.call import Call, Reply, Role
from acefraud.llm.client import ClientOptions, ModelClient

CALL = Call(role=Role.JUDGE, model="openai:one")


class Server:
    """Answers, or raises what it is told to for a model; `gate` holds its answers back."""

    def __init__(self) -> None:
        self.trouble: dict[str, Exception] = {}
        self.sent = 0
        self.gate: asyncio.Event | None = None

    async def send(self, call: Call) -> Reply:
        self.sent += 1
        if self.gate is not None:
            await self.gate.wait()
        if call.model in self.trouble:
            raise self.trouble[call.model]
        return Reply(text="yes")

    async def close(self) -> None:
        pass


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def made() -> tuple[ModelClient, Server, Clock]:
    server, clock = Server(), Clock()
    options = ClientOptions(attempts=1, failures=3, pause=30.0)
    return ModelClient(options, caller=server, clock=clock), server, clock


async def fail(breaker: ModelClient, times: int, call: Call = CALL) -> None:
    for _ in range(times):
        with pytest.raises(ModelError):
            await breaker.send(call)


def test_it_opens_after_the_given_failures_and_says_for_how_long() -> None:
    breaker, server, clock = made()
    server.trouble["openai:one"] = ModelTimeout("slow")
    asyncio.run(fail(breaker, 3))
    clock.now += 10.5
    with pytest.raises(ModelUnavailable, match=r"openai:one was not called: the last 3 calls failed; next try in 20 s"):
        asyncio.run(breaker.send(CALL))
    assert server.sent == 3


def test_a_reply_resets_the_count_of_failures() -> None:
    breaker, server, _ = made()

    async def play() -> None:
        for _ in range(3):
            server.trouble["openai:one"] = ModelUnavailable("down")
            await fail(breaker, 2)
            server.trouble.clear()
            await breaker.send(CALL)

    asyncio.run(play())
    assert server.sent == 9


@pytest.mark.parametrize("answer", [ModelRefused("no"), ModelMalformed("eh")])
def test_an_unusable_answer_is_no_outage(answer: ModelError) -> None:
    breaker, server, _ = made()
    server.trouble["openai:one"] = answer
    asyncio.run(fail(breaker, 10))
    assert server.sent == 10


def test_after_the_pause_one_call_probes_and_the_others_fail_at_once() -> None:
    breaker, server, clock = made()
    server.trouble["openai:one"] = ModelUnavailable("down")

    async def play() -> None:
        await fail(breaker, 3)
        clock.now += 30.0
        server.trouble.clear()
        server.gate = asyncio.Event()
        probe = asyncio.create_task(breaker.send(CALL))
        await asyncio.sleep(0)
        with pytest.raises(ModelUnavailable, match="a trial call is in flight"):
            await asyncio.wait_for(breaker.send(CALL), 60)
        server.gate.set()
        assert (await probe).text == "yes"
        await breaker.send(CALL)

    asyncio.run(play())
    assert server.sent == 5


def test_a_failed_probe_restarts_the_pause() -> None:
    breaker, server, clock = made()
    server.trouble["openai:one"] = ModelUnavailable("down")
    asyncio.run(fail(breaker, 3))
    clock.now += 30.0
    asyncio.run(fail(breaker, 1))
    assert server.sent == 4
    clock.now += 29.0
    asyncio.run(fail(breaker, 1))
    assert server.sent == 4
    clock.now += 1.0
    asyncio.run(fail(breaker, 1))
    assert server.sent == 5


def test_a_probe_that_is_cancelled_lets_another_one_try() -> None:
    breaker, server, clock = made()
    server.trouble["openai:one"] = ModelUnavailable("down")

    async def play() -> None:
        await fail(breaker, 3)
        clock.now += 30.0
        server.gate = asyncio.Event()
        probe = asyncio.create_task(breaker.send(CALL))
        await asyncio.sleep(0)
        probe.cancel()
        await asyncio.wait([probe])
        server.gate, server.trouble = None, {}
        await breaker.send(CALL)

    asyncio.run(play())
    assert server.sent == 5


def test_each_model_on_each_server_has_its_own_circuit() -> None:
    breaker, server, _ = made()
    server.trouble["openai:one"] = ModelUnavailable("down")
    asyncio.run(fail(breaker, 5))
    assert server.sent == 3
    asyncio.run(breaker.send(CALL.model_copy(update={"model": "openai:two"})))
    asyncio.run(fail(breaker, 1, CALL.model_copy(update={"base_url": "http://localhost:1/v1"})))
    assert server.sent == 5
