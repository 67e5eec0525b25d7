"""Run coroutines for callers that do not await."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(work: Coroutine[Any, Any, T], *, waits: bool = True) -> T:
    """What a coroutine returns. Inside a running event loop it runs in a thread, and blocks the loop meanwhile.

    A coroutine that never waits (`waits=False`) runs directly, without an event loop.

    >>> async def two() -> int:
    ...     return 2
    >>> run_sync(two())
    2
    """
    if not waits:
        return _run_directly(work)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _run_directly(work: Coroutine[Any, Any, T]) -> T:
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("the coroutine waited, although it was called with waits=False")
