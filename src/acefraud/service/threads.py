"""Work off the event loop that answers requests: functions, and coroutines of the learner, which wait for the store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Protocol, TypeVar

from acefraud.llm.synchronous import run_sync

T = TypeVar("T")


class Threads:
    """Runs functions in a few threads. More than these wait for their turn, and take up no thread meanwhile.

    A caller who stops waiting does not stop a function that runs: its thread is busy until it returns.
    """

    def __init__(self, name: str, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix=name)

    async def run(self, work: Callable[[], T]) -> T:
        """What a function returns, while the event loop goes on."""
        context = copy_context()  # log lines name the request
        return await asyncio.get_running_loop().run_in_executor(self._pool, context.run, work)

    def close(self) -> None:
        """Wait for the functions that run."""
        self._pool.shutdown()


class OffLoop(Protocol):
    """Runs coroutines somewhere else."""

    async def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What a coroutine returns."""

    async def close(self) -> None:
        """Wait for those that run."""


class InThreads:
    """For the embedded engine, whose coroutines never wait: each runs in a thread."""

    def __init__(self, most: int) -> None:
        self._threads = Threads("decisions", most)

    async def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What a coroutine returns."""
        return await self._threads.run(lambda: run_sync(make(), waits=False))

    async def close(self) -> None:
        """Wait for those that run."""
        self._threads.close()


class OnAnotherLoop:
    """For language models: one more event loop in a thread of its own, which keeps the connections to them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="models", daemon=True)
        self._thread.start()

    async def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What a coroutine returns."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), self._loop))

    async def close(self) -> None:
        """End the loop. Requests that wait for it were answered before."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, 5)
        if not self._thread.is_alive():
            self._loop.close()
