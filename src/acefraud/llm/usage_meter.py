"""The usage meter: counts calls, tokens and cost by role, and keeps the budget."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from threading import Lock
from typing import Any

from acefraud.errors import BudgetExceeded, ConfigurationError, ModelError, ModelTimeout
from acefraud.llm.call import Call, Caller, Reply, Role, Wrapper
from acefraud.llm.prices import Price, highest_cost, price_of

_ROUNDING = 1e-12
"""Tolerance in US dollars for the rounding of sums."""
_POLL_SECONDS = 0.01


class _MustWait(Exception):
    """The budget suffices for a call, but only once calls in flight turn out cheaper than they might be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Calls and what they used. Every attempt counts as a call.

    >>> (Usage(calls=2, cost=0.5) + Usage(calls=1, failed=1)).as_json()["calls"]
    3
    """

    calls: int = 0
    failed: int = 0
    cached: int = 0
    """Replies that an earlier call paid for; they are not among the calls."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    """Calls of unknown cost: no price is known, or the server did not report tokens."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})

    def as_json(self) -> dict[str, Any]:
        """The counts as a JSON object."""
        return asdict(self)


class UsageMeter:
    """Counts every call by role, and reserves what calls in flight might cost. Threads may share one."""

    def __init__(
        self,
        prices: Mapping[str, Price] | None = None,
        *,
        max_usd: float | None = None,
        max_calls: int | None = None,
    ) -> None:
        self._prices = dict(prices or {})
        self._max_usd = max_usd
        self._max_calls = max_calls
        self._by_role: dict[Role, Usage] = {}
        self._lock = Lock()
        self._in_flight = 0
        self._reserved = 0.0
        self._unaccounted = 0.0
        """The most that calls of unknown cost may have cost; it counts against the budget only."""

    @property
    def by_role(self) -> Mapping[Role, Usage]:
        """The usage of each role that was called."""
        return dict(self._by_role)

    @property
    def total(self) -> Usage:
        """The usage of all roles together."""
        return sum(self._by_role.values(), Usage())

    def as_json(self) -> dict[str, Any]:
        """The total, and the usage of each role, as a JSON object."""
        roles = {role.value: self._by_role[role].as_json() for role in Role if role in self._by_role}
        return {"total": self.total.as_json(), "roles": roles}

    async def reserve(self, call: Call) -> float:
        """The US dollars that are reserved for the call. Raises BudgetExceeded if it might exceed a limit.

        Calls in flight usually cost much less than they might, so if they hold the rest of the budget, wait for them.
        """
        highest = None if self._max_usd is None else highest_cost(call, self._prices)
        while True:
            try:
                with self._lock:
                    self._check_calls()
                    if self._max_usd is not None:
                        self._check_dollars(call, highest, self._max_usd)
                    self._in_flight += 1
                    self._reserved += highest or 0.0
                return highest or 0.0
            except _MustWait:
                await asyncio.sleep(_POLL_SECONDS)

    def _check_calls(self) -> None:
        made = self.total.calls
        if self._max_calls is not None and made + self._in_flight >= self._max_calls:
            raise BudgetExceeded(
                f"the limit of {self._max_calls} calls is reached: {made} were made, {self._in_flight} are in flight"
            )

    def _check_dollars(self, call: Call, highest: float | None, usd: float) -> None:
        if highest is None:
            raise ConfigurationError(
                f"no price is known for {call.model}, so a limit in US dollars cannot be kept; give its price in "
                f'acefraud.toml ([prices."{call.model}"] input = 0.15, output = 0.60, in US dollars for a million '
                "tokens), or limit the number of calls with --max-calls instead"
            )
        spent = self.total.cost + self._unaccounted
        if spent + self._reserved + highest <= usd + _ROUNDING:
            return
        if self._reserved and spent + highest <= usd + _ROUNDING:
            raise _MustWait
        raise BudgetExceeded(
            f"the limit of ${usd:.6g} might be exceeded: ${spent:.6g} is spent, calls in flight may cost "
            f"${self._reserved:.6g}, and this one to {call.model} up to ${highest:.6g}"
        )

    def release(self, reserved: float) -> None:
        """Return the reservation of a call that was not sent."""
        with self._lock:
            self._in_flight -= 1
            self._reserved = max(0.0, self._reserved - reserved) if self._in_flight else 0.0

    def record(self, call: Call, reserved: float, tokens: tuple[int, int] | None, *, failed: bool) -> float | None:
        """Count a call that was sent, with its tokens if they are known, and return its cost if that is known."""
        input_tokens, output_tokens = tokens or (0, 0)
        cost = None if tokens is None else 0.0
        if tokens and any(tokens):  # a failure without a reply is free, even if the model has no price
            cost = price_of(call.model, input_tokens, output_tokens, self._prices)
        self._count(
            call.role,
            Usage(
                calls=1,
                failed=int(failed),
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                cost=cost or 0.0,
                unpriced=int(cost is None),
            ),
            unaccounted=reserved if cost is None else 0.0,
        )
        self.release(reserved)
        return cost

    def note_cached(self, role: Role) -> None:
        """Count a reply that an earlier call paid for."""
        self._count(role, Usage(cached=1))

    def _count(self, role: Role, usage: Usage, unaccounted: float = 0.0) -> None:
        with self._lock:
            self._by_role[role] = self._by_role.get(role, Usage()) + usage
            self._unaccounted += unaccounted


class MeteredCaller(Wrapper):
    """Counts each attempt, and sends none that might exceed the budget."""

    def __init__(self, caller: Caller, meter: UsageMeter) -> None:
        super().__init__(caller)
        self._meter = meter

    async def send(self, call: Call) -> Reply:
        """The reply with its cost."""
        reserved = await self._meter.reserve(call)
        try:
            reply = await self._caller.send(call)
        except (ModelTimeout, asyncio.CancelledError):
            # The provider may charge for a call that nobody waited for.
            self._meter.record(call, reserved, None, failed=True)
            raise
        except ModelError as error:
            self._meter.record(call, reserved, error.tokens, failed=True)
            raise
        except BaseException:
            self._meter.release(reserved)
            raise
        reported = reply.input_tokens + reply.output_tokens > 0  # some servers do not report tokens
        tokens = (reply.input_tokens, reply.output_tokens) if reported else None
        return reply.model_copy(update={"cost": self._meter.record(call, reserved, tokens, failed=False)})
