"""Work off the event loop that answers requests: in threads, in batches, and following the store."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from acefraud.llm.synchronous import run_sync
from acefraud.storage.playbook import BulletPlaybook

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

    async def finish(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What a coroutine of the embedded engine returns, which never waits."""
        return await self.run(lambda: run_sync(make(), waits=False))

    def close(self) -> None:
        """Wait for the functions that run."""
        self._pool.shutdown()


class OnAnotherLoop:
    """For language models: one more event loop in a thread of its own, which keeps the connections to them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="models", daemon=True)
        self._thread.start()

    async def finish(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What a coroutine returns."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), self._loop))

    def close(self) -> None:
        """End the loop. Requests that wait for it were answered before."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()


LINGER: Final = 0.005
"""Seconds that a batch waits at most for those who were answered a moment ago and may ask again. A commit of twice as
many takes hardly longer, so under load all of them are answered sooner."""
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


_LOG: Final = logging.getLogger(__name__)
_PATIENCE: Final = 1.0
"""Seconds between two looks if nothing is told."""


class Follower:
    """A thread that reads what others have written as soon as the store tells of it.

    PostgreSQL tells at once (LISTEN and NOTIFY); a file is looked at several times a second. `every_second` is called
    about once a second, and may wait for the store too.
    """

    def __init__(self, playbook: BulletPlaybook, every_second: Callable[[], None] = lambda: None) -> None:
        self._playbook = playbook
        self._every_second = every_second
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="follower", daemon=True)

    def start(self) -> None:
        """Follow until `stop`."""
        self._thread.start()

    def _follow(self) -> None:
        due = 0.0
        while not self._ending.is_set():
            try:
                if self._playbook.ledger.wait_for_events(self._playbook.seq, _PATIENCE):
                    self._playbook.refresh()
                    self._playbook.snapshot()  # built here, so that no request has to wait for it
                if time.monotonic() >= due:
                    due = time.monotonic() + _PATIENCE
                    self._every_second()
            except Exception as problem:  # noqa: BLE001  # the thread goes on; requests tell their callers
                if not self._ending.is_set():
                    _LOG.warning("following the playbook failed", extra={"problem": type(problem).__name__})
                self._ending.wait(_PATIENCE)

    def stop(self) -> None:
        """Stop following, after the change at hand."""
        self._ending.set()

    def join(self) -> None:
        """Wait until it has stopped. That takes until the next look, unless the playbook was closed."""
        self._thread.join(5 * _PATIENCE)
