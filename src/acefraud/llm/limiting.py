"""How many calls may be under way at once."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from acefraud.errors import ConfigurationError
from acefraud.llm.calling import Call, Caller, Reply


class Limited:
    """Lets so many calls through at a time; the others wait their turn."""

    def __init__(self, caller: Caller, concurrency: int = 8) -> None:
        if concurrency < 1:
            raise ConfigurationError(f"concurrency is {concurrency}; at least one call must be allowed at a time")
        self._caller = caller
        self._concurrency = concurrency
        # A semaphore belongs to the loop it was first waited on.
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def send(self, call: Call) -> Reply:
        """The reply, once it is this call's turn."""
        loop = asyncio.get_running_loop()
        turns = self._turns.get(loop)
        if turns is None:
            turns = self._turns[loop] = asyncio.Semaphore(self._concurrency)
        async with turns:
            return await self._caller.send(call)

    async def close(self) -> None:
        """Close what it stands before."""
        await self._caller.close()
