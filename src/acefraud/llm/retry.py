"""Retries: a call that failed because of the server is sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from acefraud.errors import ModelRateLimited, ModelTimeout, ModelUnavailable
from acefraud.llm.call import Call, Caller, Reply, Wrapper
from acefraud.support.backoff import wait_after

OUTAGES = (ModelTimeout, ModelRateLimited, ModelUnavailable)
"""Failures of the server rather than of the call: the same call may succeed later."""
LONGEST_RETRY_AFTER = 120.0
"""Give up at once if the server asks for a longer wait than this, in seconds."""


class Retry(Wrapper):
    """Sends a call again after an outage. Waits grow exponentially, and are at least what the server asked for."""

    def __init__(
        self,
        caller: Caller,
        *,
        attempts: int = 4,
        first_wait: float = 0.5,
        longest_wait: float = 30.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Random | None = None,
    ) -> None:
        super().__init__(caller)
        self._attempts = attempts
        self._first_wait = first_wait
        self._longest_wait = longest_wait
        self._sleep = sleep
        self._random = random or Random()

    async def send(self, call: Call) -> Reply:
        """The reply of the first successful attempt. Raises the error of the last one if all fail."""
        attempt = 1
        while True:
            try:
                return await self._caller.send(call)
            except OUTAGES as error:
                retry_after = error.retry_after or 0.0
                if attempt >= self._attempts or retry_after > LONGEST_RETRY_AFTER:
                    raise
                pause = wait_after(attempt, first=self._first_wait, longest=self._longest_wait, random=self._random)
                wait = max(pause, retry_after)
            attempt += 1
            await self._sleep(wait)
