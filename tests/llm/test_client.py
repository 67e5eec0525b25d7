"""All wrappers together: limits, retries and the cache hold at the same time."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from acefraud.errors import BudgetExceeded, ConfigurationError, ModelMalformed, ModelRefused, ModelUnavailable
from acefraud.llm.call import Call, Message, Reply, Role
from acefraud.llm.client import ClientOptions, ModelClient

if TYPE_CHECKING:
    from tests.llm.conftest import Loopback

MODEL = "openai:mine"
PRICES = {MODEL: (1.0, 1.0)}


def call(text: str, base_url: str = "") -> Call:
    return Call(role=Role.JUDGE, model=MODEL, base_url=base_url, messages=(Message(role="user", content=text),))


class Server:
    """Fails as often as it is told to for each text, then answers."""

    def __init__(self, failures: int = 0, error: Exception | None = None) -> None:
        self.failures = failures
        self.error = error or ModelUnavailable("down", retry_after=3.0)
        self.sent: Counter[str] = Counter()
        self.inside = self.peak = self.closed = 0

    async def send(self, call: Call) -> Reply:
        text = call.messages[0].content
        self.sent[text] += 1
        self.inside += 1
        self.peak = max(self.peak, self.inside)
        await asyncio.sleep(0.001)
        self.inside -= 1
        if self.sent[text] <= self.failures:
            raise self.error
        return Reply(text=f"{text}!", input_tokens=100, output_tokens=10)

    async def close(self) -> None:
        self.closed += 1


class Slept:
    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


def client(server: Server, options: ClientOptions, slept: Slept | None = None) -> ModelClient:
    return ModelClient(options, caller=server, sleep=slept or Slept(), clock=lambda: 0.0, random=Random(1))


def test_each_attempt_is_counted_and_a_cached_reply_is_free(tmp_path: Path) -> None:
    server, slept = Server(failures=2), Slept()

    async def play() -> list[Reply]:
        options = ClientOptions(cache=tmp_path / "replies.db", prices=PRICES, concurrency=4)
        async with client(server, options, slept) as made:
            texts = ["a", "b", "a", "a", "b"]
            replies = await asyncio.gather(*(made.send(call(text)) for text in texts))
            replies.append(await made.send(call("a")))
            total = made.usage.total
            assert (total.calls, total.failed, total.cached) == (6, 4, 4)
            assert total.cost == pytest.approx(2 * 110 / 1e6)
            assert sum(reply.cost or 0.0 for reply in replies) == pytest.approx(total.cost)
            return replies

    replies = asyncio.run(play())
    assert [reply.text for reply in replies] == ["a!", "b!", "a!", "a!", "b!", "a!"]
    assert server.sent == {"a": 3, "b": 3}
    assert slept.waits == [3.0] * 4
    assert server.closed == 1
    again = asyncio.run(_one(client(server, ClientOptions(cache=tmp_path / "replies.db")), call("b")))
    assert again.cached
    assert server.sent["b"] == 3


async def _one(made: ModelClient, wanted: Call) -> Reply:
    async with made:
        return await made.send(wanted)


def test_a_forgotten_reply_is_requested_again(tmp_path: Path) -> None:
    server = Server()

    async def play() -> None:
        async with client(server, ClientOptions(cache=tmp_path / "replies.db")) as made:
            await made.send(call("a"))
            made.forget(call("a"))
            assert not (await made.send(call("a"))).cached
            assert (await made.send(call("a"))).cached
        async with client(server, ClientOptions()) as without:
            without.forget(call("a"))

    asyncio.run(play())
    assert server.sent["a"] == 2


@pytest.mark.parametrize("error", [ModelRefused("no"), ModelMalformed("eh")])
def test_a_refused_or_malformed_call_is_sent_once_and_not_cached(tmp_path: Path, error: Exception) -> None:
    server = Server(failures=1, error=error)

    async def play() -> None:
        async with client(server, ClientOptions(cache=tmp_path / "replies.db")) as made:
            with pytest.raises(type(error)):
                await made.send(call("a"))
            assert (await made.send(call("a"))).text == "a!"

    asyncio.run(play())
    assert server.sent["a"] == 2


def test_concurrency_is_limited() -> None:
    server = Server()

    async def play() -> None:
        async with client(server, ClientOptions(concurrency=5)) as made:
            await asyncio.gather(*(made.send(call(str(n))) for n in range(40)))

    asyncio.run(play())
    assert server.peak == 5


def test_the_limit_of_calls_holds_over_retries_and_concurrency() -> None:
    server = Server(failures=1)

    async def play() -> list[Reply | BaseException]:
        async with client(server, ClientOptions(max_calls=13, failures=100)) as made:
            ended = await asyncio.gather(*(made.send(call(str(n))) for n in range(20)), return_exceptions=True)
            assert made.usage.total.calls == 13
            return ended

    ended = asyncio.run(play())
    assert server.sent.total() == 13
    assert all(isinstance(end, Reply | BudgetExceeded) for end in ended)
    assert any(isinstance(end, BudgetExceeded) for end in ended)


def test_a_server_that_is_down_is_not_called_every_time() -> None:
    server = Server(failures=10**6)

    async def play() -> None:
        async with client(server, ClientOptions(attempts=3, failures=4)) as made:
            for n in range(50):
                with pytest.raises(ModelUnavailable):
                    await made.send(call(str(n)))

    asyncio.run(play())
    assert server.sent.total() == 12


@pytest.mark.parametrize("name", ["concurrency", "attempts", "failures", "timeout"])
def test_an_option_of_zero_that_must_be_positive_is_refused(name: str) -> None:
    options: dict[str, Any] = {name: 0}
    with pytest.raises(ConfigurationError, match=f"^{name}: expected "):
        ClientOptions(**options)


@pytest.mark.parametrize("name", ["first_wait", "longest_wait", "pause", "max_usd", "max_calls"])
def test_a_negative_option_is_refused(name: str) -> None:
    for value in (-1, float("nan")):
        options: dict[str, Any] = {name: value}
        with pytest.raises(ConfigurationError, match=f"^{name}: expected 0 or more"):
            ClientOptions(**options)


@pytest.mark.parametrize("price", [(-1.0, 1.0), (1.0, float("nan")), (float("inf"), 0.0)])
def test_an_impossible_price_is_refused(price: tuple[float, float]) -> None:
    with pytest.raises(ConfigurationError, match="prices: openai:mine: expected US dollars"):
        ClientOptions(prices={MODEL: price})


def test_creating_a_client_imports_nothing_and_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("pydantic_ai", "pydantic_ai.models", "openai", "httpx2", "genai_prices"):
        monkeypatch.setitem(sys.modules, package, None)  # loading it would fail
    asyncio.run(ModelClient(ClientOptions(max_usd=1.0)).close())  # and sockets are blocked in this test


@pytest.mark.enable_socket
def test_over_http_with_a_server_that_fails_now_and_then(loopback: Loopback, tmp_path: Path) -> None:
    trouble = {"rate_limit": 0.2, "http_500": 0.1, "cut": 0.1, "broken_body": 0.1}
    server = loopback(misbehave=trouble)

    async def play() -> list[Reply]:
        options = ClientOptions(attempts=30, first_wait=0.0, failures=100, cache=tmp_path / "replies.db", prices=PRICES)
        async with ModelClient(options) as made:
            calls = [call(f"text: {n}", base_url=server.base_url) for n in range(40)]
            replies = await asyncio.gather(*map(made.send, calls))
            assert made.usage.total.calls > made.usage.total.failed > 0
            assert made.usage.total.calls - made.usage.total.failed == 40
            assert all(reply.cost for reply in replies)
            sent = made.usage.total.calls
            again = await asyncio.gather(*map(made.send, calls))
            assert made.usage.total.calls == sent
            assert [reply.text for reply in again] == [reply.text for reply in replies]
            return again

    assert all(reply.cached for reply in asyncio.run(play()))
