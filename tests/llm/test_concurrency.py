"""Many slow calls at once: as many as allowed are in flight, and the event loop stays free."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.llm import on_server

from acefraud.learning.build_roles import Roles, build_roles
from acefraud.roles.protocols import Question
from acefraud.storage import BulletPlaybook

if TYPE_CHECKING:
    from tests.llm.conftest import Loopback
    from tests.llm.loopback import LoopbackServer

pytestmark = pytest.mark.enable_socket

CALLS = 64
AT_ONCE = 16
LARGEST_SHARE = 0.5
"""Of its processor time that the work may use without giving others a turn."""
ATTEMPTS = 3


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")


async def longest_turn(work: Awaitable[Any], every: float = 0.005) -> tuple[float, float]:
    """The largest share of its processor time that the work used before another task got its turn, and its seconds.

    Seconds would say more of the machine than of the work. A call that blocks without using the processor is found by
    `measured`.
    """
    turns = [0.0]

    async def tick() -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(every)
            now = time.thread_time()
            turns.append(now - last)
            last = now

    ticking = asyncio.create_task(tick())
    begun, used = time.perf_counter(), time.thread_time()
    await work
    took, used = time.perf_counter() - begun, time.thread_time() - used
    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)
    return max(turns) / used, took


def measured(server: LoopbackServer, work: Callable[[Roles], Awaitable[Any]]) -> tuple[float, float]:
    """The longest turn and the time taken, once connections and packages are there.

    The server answers nothing before as many calls as allowed have arrived. The task that tells it to answer runs on
    the event loop of the calls: it gets its turn only if the calls under way leave the loop free.
    """

    async def release() -> None:
        async with asyncio.timeout(60):
            while server.in_flight < AT_ONCE:
                await asyncio.sleep(0.005)
        server.release()

    async def run() -> tuple[float, float]:
        roles = build_roles(on_server.chosen(server, concurrency=AT_ONCE))
        assert roles.agent is not None
        try:
            await roles.agent.assess(Question("a first call, which loads the packages", {}, (), None))
            server.in_flight_peak = 0
            server.hold()
            return await longest_turn(asyncio.gather(work(roles), release()))
        finally:
            await roles.close()

    return asyncio.run(run())


def check(server: LoopbackServer, work: Callable[[Roles], Awaitable[Any]]) -> float:
    """How long the work took, in which as many calls as allowed were under way and the loop was free.

    On a busy machine processor time varies too, so one good attempt is enough: work that keeps the loop keeps it in
    each.
    """
    shares = []
    for _ in range(ATTEMPTS):
        share, took = measured(server, work)
        assert server.in_flight_peak == AT_ONCE
        shares.append(share)
        if share <= LARGEST_SHARE:
            print(f"\n{CALLS} calls, {AT_ONCE} at once: {took:.2f} s, longest turn {share:.0%}")
            return took
    raise AssertionError(f"the event loop was not free: the longest turns were {shares} of the work")


async def assess_all(roles: Roles) -> None:
    agent = roles.agent
    assert agent is not None
    views = await asyncio.gather(
        *(agent.assess(Question(f"Payment {n}", {"amount": n}, (), None)) for n in range(CALLS))
    )
    assert len(views) == CALLS


async def decide_all(roles: Roles) -> None:
    cases = on_server.cases(1, CALLS)[1]
    decisions = await roles.learner(BulletPlaybook()).decide_all([case.transaction for case in cases])
    assert len(decisions) == CALLS


WORKS = [assess_all, decide_all]


@pytest.mark.parametrize("work", WORKS)
def test_as_many_calls_as_allowed_are_under_way_and_the_loop_is_free(
    work: Callable[[Roles], Awaitable[None]], loopback: Loopback
) -> None:
    assert check(loopback(delay=0.1), work) >= 0.1 * CALLS / AT_ONCE


@pytest.mark.long
@pytest.mark.parametrize("work", WORKS)
def test_sixty_four_calls_of_a_second(work: Callable[[Roles], Awaitable[None]], loopback: Loopback) -> None:
    assert check(loopback(delay=1.0), work) >= CALLS / AT_ONCE  # `-s` prints what it really took
