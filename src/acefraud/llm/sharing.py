"""Equal calls under way at the same time are one call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from acefraud.llm.calling import Call, Caller, Reply
from acefraud.llm.metering import Meter


@dataclass(slots=True)
class _Flight:
    task: asyncio.Task[Reply]
    waiters: int = 0


class Shared:
    """Sends one of several equal calls and hands its reply, or its error, to all who asked."""

    def __init__(self, caller: Caller, meter: Meter | None = None) -> None:
        self._caller = caller
        self._meter = meter
        self._flights: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Flight]] = WeakKeyDictionary()

    async def send(self, call: Call) -> Reply:
        """The reply. Whoever did not send the call himself gets it as one that is already paid for."""
        flights = self._flights.setdefault(asyncio.get_running_loop(), {})
        key = call.key
        flight = flights.get(key)
        first = flight is None
        if flight is None:
            flight = flights[key] = _Flight(asyncio.create_task(self._caller.send(call)))
            flight.task.add_done_callback(lambda _: flights.pop(key, None))
        reply = await self._join(flight)
        if first:
            return reply
        if self._meter is not None:
            self._meter.note_cached(call.role)
        return reply.model_copy(update={"cached": True, "cost": 0.0})

    @staticmethod
    async def _join(flight: _Flight) -> Reply:
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiters -= 1
            if flight.waiters == 0 and not flight.task.done():  # everybody who wanted it has gone
                flight.task.cancel()
                await asyncio.wait([flight.task])

    async def close(self) -> None:
        """Close what it stands before."""
        await self._caller.close()
