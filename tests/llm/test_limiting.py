"""No more calls at once than allowed, and equal calls only once."""

from __future__ import annotations

import asyncio
import time

import pytest

from acefraud.errors import ConfigurationError, ModelTimeout, ModelUnavailable
from acefraud.llm.calling import Call, Message, Reply, Role
from acefraud.llm.limiting import Limited
from acefraud.llm.metering import Meter
from acefraud.llm.sharing import Shared


def call(text: str, role: Role = Role.JUDGE) -> Call:
    return Call(role=role, model="openai:one", messages=(Message(role="user", content=text),))


class Slow:
    """Takes its time, and counts who is there at once."""

    def __init__(self, seconds: float = 0.05, error: Exception | None = None) -> None:
        self.seconds = seconds
        self.error = error
        self.sent = self.inside = self.peak = self.cancelled = 0

    async def send(self, call: Call) -> Reply:
        self.sent += 1
        self.inside += 1
        self.peak = max(self.peak, self.inside)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.inside -= 1
        if self.error is not None:
            raise self.error
        return Reply(text=call.messages[0].content, cost=0.25)

    async def close(self) -> None:
        pass


def test_so_many_at_once_and_no_more() -> None:
    slow = Slow(0.05)
    limited = Limited(slow, 16)

    async def play() -> float:
        start = time.perf_counter()
        await asyncio.gather(*(limited.send(call(str(n))) for n in range(64)))
        return time.perf_counter() - start

    took = asyncio.run(play())
    assert slow.peak == 16
    assert slow.sent == 64
    assert 0.2 <= took < 1.0  # four rounds, against 64 one after another


def test_a_call_that_fails_gives_its_place_back_also_on_the_next_loop() -> None:
    slow = Slow(0.001, ModelTimeout("slow"))
    limited = Limited(slow, 1)

    async def play() -> None:
        ended = await asyncio.gather(*(limited.send(call(str(n))) for n in range(4)), return_exceptions=True)
        assert all(isinstance(end, ModelTimeout) for end in ended)

    asyncio.run(play())
    asyncio.run(play())
    assert slow.sent == 8
    assert slow.peak == 1


def test_none_at_once_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="at least one"):
        Limited(Slow(), 0)


def test_equal_calls_at_the_same_time_are_sent_once() -> None:
    slow, meter = Slow(0.01), Meter()
    shared = Shared(slow, meter)

    async def play() -> list[Reply]:
        same = [shared.send(call("same", role)) for role in (Role.AGENT, Role.JUDGE, Role.JUDGE)]
        return await asyncio.gather(*same, shared.send(call("other")))

    replies = asyncio.run(play())
    assert slow.sent == 2
    assert [reply.text for reply in replies] == ["same", "same", "same", "other"]
    assert [reply.cached for reply in replies] == [False, True, True, False]
    assert [reply.cost for reply in replies] == [0.25, 0.0, 0.0, 0.25]
    assert meter.by_role[Role.JUDGE].cached == 2


def test_one_after_the_other_both_are_sent() -> None:
    slow = Slow(0)
    shared = Shared(slow)

    async def play() -> None:
        await shared.send(call("same"))
        await shared.send(call("same"))

    asyncio.run(play())
    assert slow.sent == 2


def test_an_error_is_shared_and_not_kept() -> None:
    slow = Slow(0.001, ModelUnavailable("down"))
    shared = Shared(slow)

    async def play() -> None:
        ended = await asyncio.gather(*(shared.send(call("same")) for _ in range(3)), return_exceptions=True)
        assert all(isinstance(end, ModelUnavailable) for end in ended)
        slow.error = None
        assert (await shared.send(call("same"))).text == "same"

    asyncio.run(play())
    assert slow.sent == 2


def test_who_gives_up_does_not_take_the_reply_from_the_others() -> None:
    slow = Slow(0.01)
    shared = Shared(slow)

    async def play() -> Reply:
        first, second = (asyncio.create_task(shared.send(call("same"))) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await asyncio.wait([first])
        assert first.cancelled()
        return await second

    assert asyncio.run(play()).text == "same"
    assert (slow.sent, slow.cancelled) == (1, 0)


def test_when_everybody_gives_up_the_call_is_given_up_too() -> None:
    slow = Slow(5)
    shared = Shared(slow)

    async def play() -> None:
        waiters = [asyncio.create_task(shared.send(call("same"))) for _ in range(2)]
        await asyncio.sleep(0.001)
        for waiter in waiters:
            waiter.cancel()
        await asyncio.wait(waiters)
        assert slow.inside == 0

    asyncio.run(play())
    assert slow.cancelled == 1
