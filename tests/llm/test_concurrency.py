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
LONGEST_GAP = 1.0
ATTEMPTS = 3


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")


async def longest_gap(work: Awaitable[Any], every: float = 0.005) -> tuple[float, float]:
    """The longest time for which a task beside the work could not run, and how long the work took."""
    gaps = [0.0]

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(every)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    ticking = asyncio.create_task(tick())
    begun = time.perf_counter()
    await work
    took = time.perf_counter() - begun
    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)
    return max(gaps), took


def measured(server: LoopbackServer, work: Callable[[Roles], Awaitable[Any]]) -> tuple[float, float]:
    """The longest gap and the time taken, once connections and packages are there.

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
            return await longest_gap(asyncio.gather(work(roles), release()))
        finally:
            await roles.close()

    return asyncio.run(run())


def check(server: LoopbackServer, work: Callable[[Roles], Awaitable[Any]]) -> float:
    """How long the work took, in which as many calls as allowed were under way and the loop was free.

    Another process may take the processor for a while, which looks like a gap, so one attempt without a gap is enough:
    calls that block the loop block it in each.
    """
    gaps = []
    for _ in range(ATTEMPTS):
        gap, took = measured(server, work)
        assert server.in_flight_peak == AT_ONCE
        gaps.append(gap)
        if gap <= LONGEST_GAP:
            print(f"\n{CALLS} calls, {AT_ONCE} at once: {took:.2f} s, longest gap {gap:.3f} s")
            return took
    raise AssertionError(f"the event loop was not free: the longest gaps were {gaps} s")


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
    took = check(loopback(delay=1.0), work)
    assert took < CALLS / 2  # one after the other would take twice as long; `-s` prints what it really took
