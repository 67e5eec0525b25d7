"""The whole way of a call, put together in one place."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import TracebackType

from acefraud.llm.breaking import Breaker, BreakerOptions
from acefraud.llm.caching import AnswerFile, Cached
from acefraud.llm.calling import Call, Caller, Reply
from acefraud.llm.courier import Courier
from acefraud.llm.limiting import Limited
from acefraud.llm.metering import Budget, Meter, Metered
from acefraud.llm.pricing import Price
from acefraud.llm.provider import ProviderCaller, ProviderOptions
from acefraud.llm.retrying import Retrying, RetryOptions
from acefraud.llm.sharing import Shared


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """How models are called. Times are in seconds."""

    concurrency: int = 8
    timeout: float = 60.0
    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 30.0
    failures: int = 5
    """After so many failed calls in a row a model is left alone for a while."""
    pause: float = 30.0
    max_usd: float | None = None
    max_calls: int | None = None
    cache: Path | None = None
    """Where replies are kept; None to keep none."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """Prices by model, which outweigh those that are known."""


class ModelClient:
    """Calls models: equal calls once, known replies from disk, the rest within all limits.

    Making one reads no key and opens no connection; only `send` does.
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
        self._usage = Meter(Budget(usd=given.max_usd, calls=given.max_calls), given.prices)
        waits = RetryOptions(attempts=given.attempts, first_wait=given.first_wait, longest_wait=given.longest_wait)
        chain: Caller = caller or _carrier(given)
        chain = Metered(chain, self._usage)
        chain = Retrying(chain, waits, sleep=sleep, random=random)
        chain = Breaker(chain, BreakerOptions(failures=given.failures, pause=given.pause), clock=clock)
        chain = Limited(chain, given.concurrency)
        self._cached = None if given.cache is None else Cached(chain, AnswerFile(given.cache), self._usage)
        self._chain = Shared(self._cached or chain, self._usage)

    @property
    def usage(self) -> Meter:
        """What was called so far, and what it cost."""
        return self._usage

    async def send(self, call: Call) -> Reply:
        """The reply. Raises a ModelError where there is none, and BudgetExceeded where none may be asked for."""
        return await self._chain.send(call)

    def forget(self, call: Call) -> None:
        """Keep no longer what came back from a call, because it turned out to be of no use."""
        if self._cached is not None:
            self._cached.forget(call)

    async def close(self) -> None:
        """Let go of connections and files. Closing twice is harmless."""
        await self._chain.close()

    async def __aenter__(self) -> ModelClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _carrier(given: ClientOptions) -> Caller:
    """Where replies are kept, a process of its own carries the calls, so that none that was paid for is lost."""
    options = ProviderOptions(timeout=given.timeout)
    return ProviderCaller(options) if given.cache is None else Courier(given.cache, options)
