"""Run coroutines for callers that do not await."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from acefraud.support.callers import blocking

P = ParamSpec("P")
T = TypeVar("T")
Owner = TypeVar("Owner")


def run_sync(work: Coroutine[Any, Any, T], *, waits: bool = True) -> T:
    """What a coroutine returns, in a script, in a thread and, as in a notebook, inside a running event loop.

    It runs on an event loop of its own, with the caller's context variables. Inside a running one that takes a thread,
    and blocks the running loop meanwhile. A coroutine that never waits (`waits=False`) runs directly, without a loop.

    >>> async def two() -> int:
    ...     return 2
    >>> run_sync(two())
    2
    """
    if not waits:
        return _run_directly(work)
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return _run_on_new_loop(work)
    with blocking(loop):
        return _run_in_thread(work)


def blocking_twin(
    method: Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]], waits: Callable[[Owner], bool] = lambda _: True
) -> Callable[Concatenate[Owner, P], T]:
    """The twin of a method that has to be awaited, for callers that do not: scripts, notebooks and threads.

    `waits` tells of an object whether the method waits for anything.

    >>> class Clerk:
    ...     async def greet(self, name: str) -> str:
    ...         return f"Hello, {name}"
    ...
    ...     greet_sync = blocking_twin(greet)
    >>> Clerk().greet_sync("Ada")
    'Hello, Ada'
    """

    @wraps(method)
    def twin(self: Owner, /, *given: P.args, **named: P.kwargs) -> T:
        work: Coroutine[Any, Any, T] = getattr(self, method.__name__)(*given, **named)
        return run_sync(work, waits=waits(self))

    twin.__name__, twin.__qualname__ = f"{method.__name__}_sync", f"{method.__qualname__}_sync"
    twin.__doc__ = f"`{method.__name__}` for callers that do not await."
    return twin


def _run_directly(work: Coroutine[Any, Any, T]) -> T:
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("the coroutine waited, although it was called with waits=False")


def _run_on_new_loop(work: Coroutine[Any, Any, T]) -> T:
    results: list[T] = []

    # The task returns nothing: the runner puts the handler of SIGINT back, for which Python writes its result out.
    async def run() -> None:
        results.append(await work)

    # Given a factory, the runner leaves the thread's current event loop alone; `asyncio.run` would unset it.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(run())
    return results[0]


def _run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    task: asyncio.Task[Any] | None = None

    async def run() -> T:
        nonlocal task
        task = asyncio.current_task()
        return await work

    with ThreadPoolExecutor(1, thread_name_prefix="run_sync") as thread:
        done = thread.submit(copy_context().run, _run_on_new_loop, run())
        try:
            return done.result()
        except KeyboardInterrupt:  # leaving the block waits for the thread, so its work has to end
            if task is not None:
                with suppress(RuntimeError):  # its loop is closed: it has ended already
                    task.get_loop().call_soon_threadsafe(task.cancel)
            raise
