"""A limit on the number of calls in flight."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from acefraud.llm.call import Call, Caller, Reply, Wrapper


class ConcurrencyLimit(Wrapper):
    """Lets `concurrency` calls through at a time; the others wait for a free slot."""

    def __init__(self, caller: Caller, concurrency: int) -> None:
        super().__init__(caller)
        self._concurrency = concurrency
        # A semaphore belongs to the event loop that first waited on it.
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def send(self, call: Call) -> Reply:
        """The reply, once a slot is free."""
        loop = asyncio.get_running_loop()
        async with self._slots.setdefault(loop, asyncio.Semaphore(self._concurrency)):
            return await self._caller.send(call)
