"""No more calls are in flight than allowed."""

from __future__ import annotations

import asyncio
import time

from acefraud.errors import ModelTimeout
from acefraud.llm.call import Call, Message, Reply, Role
from acefraud.llm.client import ClientOptions, ModelClient


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


def test_no_more_calls_in_flight_than_allowed() -> None:
    slow = Slow(0.05)
    limited = ModelClient(ClientOptions(concurrency=16), caller=slow)

    async def play() -> float:
        start = time.perf_counter()
        await asyncio.gather(*(limited.send(call(str(n))) for n in range(64)))
        return time.perf_counter() - start

    took = asyncio.run(play())
    assert slow.peak == 16
    assert slow.sent == 64
    assert 0.2 <= took < 64 * 0.05  # four rounds, and not one after another


def test_a_call_that_fails_gives_its_place_back_also_on_the_next_loop() -> None:
    slow = Slow(0.001, ModelTimeout("slow"))
    limited = ModelClient(ClientOptions(concurrency=1, attempts=1, failures=9), caller=slow)

    async def play() -> None:
        ended = await asyncio.gather(*(limited.send(call(str(n))) for n in range(4)), return_exceptions=True)
        assert all(isinstance(end, ModelTimeout) for end in ended)

    asyncio.run(play())
    asyncio.run(play())
    assert slow.sent == 8
    assert slow.peak == 1
