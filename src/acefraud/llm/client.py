"""The client for language models: a provider inside the wrappers that `acefraud.llm` lists."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from acefraud.errors import ConfigurationError
from acefraud.llm.call import Call, Caller, Reply
from acefraud.llm.circuit_breaker import CircuitBreaker
from acefraud.llm.concurrency_limit import ConcurrencyLimit
from acefraud.llm.prices import Price
from acefraud.llm.provider import ProviderCaller
from acefraud.llm.reply_cache import ReplyCache, ReplyStore
from acefraud.llm.retry import Retry
from acefraud.llm.usage_meter import MeteredCaller, UsageMeter


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
        given = options or ClientOptions()
        self.usage = UsageMeter(given.prices, max_usd=given.max_usd, max_calls=given.max_calls)
        """The calls so far, with their tokens and cost."""
        chain: Caller = MeteredCaller(caller or ProviderCaller(given.timeout), self.usage)
        chain = Retry(
            chain,
            attempts=given.attempts,
            first_wait=given.first_wait,
            longest_wait=given.longest_wait,
            sleep=sleep,
            random=random,
        )
        chain = CircuitBreaker(chain, failures=given.failures, pause=given.pause, clock=clock)
        chain = ConcurrencyLimit(chain, given.concurrency)
        self._cache = None if given.cache is None else ReplyCache(chain, ReplyStore(given.cache), self.usage)
        self._chain = self._cache or chain

    async def send(self, call: Call) -> Reply:
        """The reply. Raises a ModelError if the call fails, and BudgetExceeded if it may not be sent."""
        return await self._chain.send(call)

    def forget(self, call: Call) -> None:
        """Drop the cached reply to a call, because it turned out to be unusable."""
        if self._cache is not None:
            self._cache.forget(call)

    async def close(self) -> None:
        """Close connections and files. Closing twice is harmless."""
        await self._chain.close()

    async def __aenter__(self) -> ModelClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
