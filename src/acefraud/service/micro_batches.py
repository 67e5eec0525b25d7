"""Requests that wait are answered together: one look-up and one commit for all of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Generic, TypeVar

LINGER: Final = 0.005
"""Seconds that a batch waits at most for those who were answered a moment ago and may ask again. A commit of twice as
many takes hardly longer, so under load all of them are answered sooner."""
T = TypeVar("T")
R = TypeVar("R")


class TooManyWaiting(Exception):
    """So many requests wait that another would have to wait too long."""


class MicroBatches(Generic[T, R]):
    """Calls a function with everything that has come in, one call at a time, in a thread of its own.

    What comes in during a call waits for the next one. So a lone request is answered at once, and under load a batch is
    as large as it has to be.
    """

    def __init__(
        self, answer: Callable[[Sequence[T]], Sequence[R | Exception]], *, most: int, most_waiting: int
    ) -> None:
        """`most` is the size of a batch. An exception among the answers is raised for that request alone."""
        self._answer = answer
        self._most = most
        self._most_waiting = most_waiting
        self._waiting: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._running: asyncio.Task[None] | None = None

    async def submit(self, item: T) -> R:
        """The answer to one request. Raises TooManyWaiting if there are too many before it."""
        if len(self._waiting) >= self._most_waiting:
            raise TooManyWaiting
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._waiting.append((item, future))
        if self._running is None:
            self._running = loop.create_task(self._run())
        return await future

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        active = 0
        while self._waiting:
            await self._gather(active)
            batch = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
            items = [item for item, _ in batch]
            try:
                answers = await loop.run_in_executor(self._thread, self._answer, items)
            except Exception as problem:  # noqa: BLE001  # whoever asked learns of it
                answers = [problem] * len(batch)
            for (_, future), answer in zip(batch, answers, strict=True):
                if future.done():  # the caller has gone
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
            active = len(batch) + max(0, len(self._waiting) - 1)
        self._running = None

    async def _gather(self, active: int) -> None:
        """Wait a moment until as many requests wait as were under way before."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LINGER
        while len(self._waiting) < min(active, self._most) and loop.time() < deadline:
            await asyncio.sleep(LINGER / 8)

    def close(self) -> None:
        """Wait for the batch at hand."""
        self._thread.shutdown()
