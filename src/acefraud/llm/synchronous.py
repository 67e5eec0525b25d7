"""Coroutines for callers that do not await."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def finished(work: Coroutine[Any, Any, T], *, waits: bool = True) -> T:
    """What a coroutine returns. Inside a running event loop it runs in a thread of its own, and holds the loop up.

    One that never `waits` is run where it is, and needs no event loop.

    >>> async def two() -> int:
    ...     return 2
    >>> finished(two())
    2
    """
    if not waits:
        return _at_once(work)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(asyncio.run, work).result()


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("a coroutine that was said never to wait has waited")
