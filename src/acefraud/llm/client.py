"""The client for language models: all limits around the calls that a provider sends.

A call passes through these steps, in this order:

1. the reply cache returns a known reply from disk; equal calls in flight wait for one reply
2. the limit of calls at a time: wait for a free slot
3. the circuit breaker: fail at once while the model is down
4. retries: send again after a timeout, a rate limit or an outage, with a growing wait
5. the usage meter refuses what might exceed the budget, and counts every attempt
6. the provider sends one request
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from weakref import WeakKeyDictionary

from acefraud.errors import (
    ConfigurationError,
    ModelMalformed,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from acefraud.llm.call import Call, Caller, Reply
from acefraud.llm.provider import ProviderCaller
from acefraud.llm.reply_cache import ReplyCache
from acefraud.llm.usage_meter import Price, UsageMeter
from acefraud.support.backoff import wait_after

OUTAGES = (ModelTimeout, ModelRateLimited, ModelUnavailable)
"""Failures of the server rather than of the call: the same call may succeed later."""
LONGEST_RETRY_AFTER = 120.0
"""Give up at once if the server asks for a longer wait than this, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """How models are called. Times are in seconds.

    >>> ClientOptions(attempts=0)
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: attempts: expected at least 1, got 0
    """

    concurrency: int = 8
    timeout: float = 60.0
    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 30.0
    failures: int = 5
    """Consecutive failed calls after which a model is not called for `pause` seconds."""
    pause: float = 30.0
    max_usd: float | None = None
    max_calls: int | None = None
    cache: Path | None = None
    """The file that replies are cached in; None for no cache."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """Prices by model; they take precedence over the list prices."""

    def __post_init__(self) -> None:
        for name in ("concurrency", "attempts", "failures"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name}: expected at least 1, got {getattr(self, name)}")
        for name in ("first_wait", "longest_wait", "pause", "max_usd", "max_calls"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ConfigurationError(f"{name}: expected 0 or more, got {value}")
        if not self.timeout > 0:
            raise ConfigurationError(f"timeout: expected a number of seconds above 0, got {self.timeout}")
        for model, price in self.prices.items():
            if not all(0 <= dollars < float("inf") for dollars in price):
                raise ConfigurationError(f"prices: {model}: expected US dollars of 0 or more, got {price}")


@dataclass(slots=True)
class _Circuit:
    """The state of one model on one server."""

    failures: int = 0
    open_until: float | None = None
    """When the model may be tried again; None while it works."""
    probing: bool = False

    def close(self) -> None:
        """Note that the server answered."""
        self.failures, self.open_until = 0, None


class ModelClient:
    """Calls models within all limits, and serves known replies from disk.

    Creating a client reads no key and opens no connection; `send` does.
    """

    def __init__(
        self,
        options: ClientOptions | None = None,
        *,
        caller: Caller | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        random: Random | None = None,
    ) -> None:
        self._options = given = options or ClientOptions()
        self._caller: Caller = caller or ProviderCaller(given.timeout)
        self._sleep, self._clock, self._random = sleep, clock, random or Random()
        self.usage = UsageMeter(given.prices, max_usd=given.max_usd, max_calls=given.max_calls)
        """The calls so far, with their tokens and cost."""
        self._cache = None if given.cache is None else ReplyCache(given.cache)
        self._circuits: dict[tuple[str, str], _Circuit] = {}
        # A semaphore belongs to the event loop that first waited on it.
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def send(self, call: Call) -> Reply:
        """The reply. Raises a ModelError if the call fails, and BudgetExceeded if it may not be sent."""
        if self._cache is None:
            return await self._in_turn(call)
        reply = await self._cache.answer(call, self._in_turn)
        if reply.cached:
            self.usage.note_cached(call.role)
        return reply

    async def _in_turn(self, call: Call) -> Reply:
        """The reply, once a slot is free; ModelUnavailable without sending if the model has failed too often.

        After a pause a single call tests whether the model is back.
        """
        async with self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._options.concurrency)):
            circuit = self._circuits.setdefault((call.model, call.base_url), _Circuit())
            probe = self._admit(call, circuit)
            try:
                reply = await self._retried(call)
            except OUTAGES:
                circuit.failures += 1
                # Calls that were in flight when the circuit opened do not prolong the pause.
                if probe or (circuit.open_until is None and circuit.failures >= self._options.failures):
                    circuit.open_until = self._clock() + self._options.pause
                raise
            except (ModelRefused, ModelMalformed):
                circuit.close()  # the server is up: it answered, even if with an error
                raise
            finally:
                if probe:
                    circuit.probing = False
            circuit.close()
            return reply

    def _admit(self, call: Call, circuit: _Circuit) -> bool:
        """Whether this call is the probe."""
        if circuit.open_until is None:
            return False
        left = circuit.open_until - self._clock()
        if left > 0 or circuit.probing:
            when = f"next try in {math.ceil(left)} s" if left > 0 else "a trial call is in flight"
            raise ModelUnavailable(
                f"{call.model} was not called: the last {circuit.failures} calls failed; {when}",
                retry_after=max(left, 0.0),
            )
        circuit.probing = True
        return True

    async def _retried(self, call: Call) -> Reply:
        """The reply of the first successful attempt. Raises the error of the last one if all fail.

        Waits grow exponentially, and are at least what the server asked for.
        """
        options, attempt = self._options, 1
        while True:
            try:
                return await self.usage.metered(call, self._caller.send)
            except OUTAGES as error:
                retry_after = error.retry_after or 0.0
                if attempt >= options.attempts or retry_after > LONGEST_RETRY_AFTER:
                    raise
                pause = wait_after(attempt, first=options.first_wait, longest=options.longest_wait, random=self._random)
            attempt += 1
            await self._sleep(max(pause, retry_after))

    def forget(self, call: Call) -> None:
        """Drop the cached reply to a call, because it turned out to be unusable."""
        if self._cache is not None:
            self._cache.forget(call)

    async def close(self) -> None:
        """Close connections and files. Closing twice is harmless."""
        await self._caller.close()
        if self._cache is not None:
            self._cache.close()

    async def __aenter__(self) -> ModelClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
