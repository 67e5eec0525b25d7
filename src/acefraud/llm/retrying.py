"""Trying again what may succeed the next time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from acefraud.errors import ConfigurationError, ModelRateLimited, ModelTimeout, ModelUnavailable
from acefraud.llm.calling import Call, Caller, Reply

OUTAGES = (ModelTimeout, ModelRateLimited, ModelUnavailable)
"""What says something about the server rather than about the call: the same call may succeed later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions:
    """How often to try, and how long to wait in between. Times are in seconds."""

    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 30.0
    jitter: float = 0.5
    """The share of each wait that is left to chance, so that many callers do not come back at the same moment."""
    longest_patience: float = 120.0
    """A server that asks for a longer wait than this is given up on."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ConfigurationError(f"attempts is {self.attempts}; a call is tried at least once")
        if self.first_wait < 0 or self.longest_wait < 0 or not 0 <= self.jitter <= 1:
            raise ConfigurationError("waits are not negative, and jitter lies between 0 and 1")


class Retrying:
    """Sends a call again after an outage, ever later, and never sooner than the server asked."""

    def __init__(
        self,
        caller: Caller,
        options: RetryOptions | None = None,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Random | None = None,
    ) -> None:
        self._caller = caller
        self._options = options or RetryOptions()
        self._sleep = sleep
        self._random = random or Random()

    async def send(self, call: Call) -> Reply:
        """The reply of the first attempt that brings one; the error of the last where none does."""
        attempt = 1
        while True:
            try:
                return await self._caller.send(call)
            except OUTAGES as error:
                asked = getattr(error, "retry_after", None) or 0.0
                if attempt >= self._options.attempts or asked > self._options.longest_patience:
                    raise
                wait = max(self._wait_after(attempt), asked)
            attempt += 1
            await self._sleep(wait)

    def _wait_after(self, attempt: int) -> float:
        # The exponent is held back because a float has an end, however many attempts are asked for.
        longest = min(self._options.longest_wait, self._options.first_wait * 2.0 ** min(attempt - 1, 60))
        return longest * (1 - self._options.jitter * self._random.random())

    async def close(self) -> None:
        """Close what it stands before."""
        await self._caller.close()
