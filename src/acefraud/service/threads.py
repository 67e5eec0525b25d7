"""Threads for one kind of work, so that others never wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

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
