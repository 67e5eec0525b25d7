"""Requests that wait are answered together: one look-up and one commit for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, Generic, TypeVar

LINGER: Final = 0.005
"""Seconds that a batch waits at most for those who were answered a moment ago and may ask again. A commit of twice as
many takes hardly longer, so under load all of them are answered sooner."""
T = TypeVar("T")
R = TypeVar("R")


class MicroBatches(Generic[T, R]):
    """Calls a function with everything that has come in, one call at a time, in a thread of its own.

    What comes in during a call waits for the next one. So a lone request is answered at once, and under load a batch is
    as large as it has to be.
    """

    def __init__(self, answer: Callable[[Sequence[T]], Sequence[R | Exception]], *, most: int) -> None:
        """`most` is the size of a batch. An exception among the answers is raised for that request alone."""
        self._answer = answer
        self._most = most
        self._waiting: dict[asyncio.Future[R], T] = {}
        """In the order in which they came."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._running: asyncio.Task[None] | None = None

    async def submit(self, item: T) -> R:
        """The answer to one request."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._waiting[future] = item
        if self._running is None:
            self._running = loop.create_task(self._run())
        try:
            return await future
        finally:
            self._waiting.pop(future, None)  # if the caller has gone

    async def _run(self) -> None:
        active = 0
        try:
            while self._waiting:
                await self._gather(active)
                batch = {future: self._waiting.pop(future) for future in list(islice(self._waiting, self._most))}
                if batch:
                    await self._answer_all(batch)
                active = len(batch) + max(0, len(self._waiting) - 1)
        finally:
            self._running = None

    async def _answer_all(self, batch: Mapping[asyncio.Future[R], T]) -> None:
        """Answer a batch, whatever happens: nobody must wait for ever, and those who come later are answered too."""
        loop, problem = asyncio.get_running_loop(), Exception("the batch was given up")
        try:
            answers = await loop.run_in_executor(self._thread, self._call, list(batch.values()))
            for future, answer in zip(batch, answers, strict=True):
                if future.done():  # the caller has gone
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        except Exception as raised:  # noqa: BLE001  # whoever asked learns of it
            problem = raised
        finally:
            for future in batch:
                if not future.done():
                    future.set_exception(problem)

    def _call(self, items: Sequence[T]) -> Sequence[R | Exception]:
        try:
            answers = self._answer(items)
        except StopIteration as problem:  # no future takes one
            raise RuntimeError("a batch ended early") from problem
        if len(answers) != len(items):
            raise RuntimeError(f"{len(items)} requests got {len(answers)} answers")
        return answers

    async def _gather(self, active: int) -> None:
        """Wait a moment until as many requests wait as were under way before."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LINGER
        while len(self._waiting) < min(active, self._most) and loop.time() < deadline:
            await asyncio.sleep(LINGER / 8)

    def close(self) -> None:
        """Wait for the batch at hand."""
        self._thread.shutdown()
