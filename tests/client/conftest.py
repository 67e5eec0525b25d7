"""A service on loopback, and both clients behind one face."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from tests.client.loopback_service import KEY, LoopbackService

from acefraud import AsyncClient, Client


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)


class Awaited:
    """An AsyncClient whose methods are awaited on the spot."""

    def __init__(self, client: AsyncClient, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*positional: Any, **named: Any) -> Any:
            found = method(*positional, **named)
            return self._runner.run(found if inspect.iscoroutine(found) else collected(found))

        return call


async def collected(items: Any) -> Iterator[Any]:
    return iter([item async for item in items])


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def service() -> Iterator[LoopbackService]:
    with LoopbackService() as running:
        yield running


@pytest.fixture(params=["blocks", "awaited"])
def connect(request: pytest.FixtureRequest, service: LoopbackService, time: Time) -> Iterator[Callable[..., Any]]:
    """Makes clients of either kind; they behave the same."""
    with asyncio.Runner() as runner:
        made: list[Any] = []

        def connected(**options: Any) -> Any:
            given = {"url": service.url, "api_key": KEY, "random": Random(3), "clock": time.clock, **options}
            if request.param == "blocks":
                made.append(Client(**given, sleep=time.sleep))
            else:
                made.append(Awaited(AsyncClient(**given, sleep=time.sleep_async), runner))
            return made[-1]

        yield connected
        for client in made:
            client.close()


@pytest.fixture
def client(connect: Callable[..., Any]) -> Any:
    return connect()
