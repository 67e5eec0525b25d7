"""The usage meter: counts calls, tokens and cost by role, and keeps the budget.

Prices are your own, or the list prices that come with `genai-prices`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, fields
from threading import Lock
from typing import Any, TypeAlias

from acefraud.errors import BudgetExceeded, ConfigurationError, ModelError, ModelTimeout
from acefraud.llm.call import Call, Reply, Role

_ROUNDING = 1e-12
"""Tolerance in US dollars for the rounding of sums."""
_POLL_SECONDS = 0.01

Price: TypeAlias = tuple[float, float]
"""US dollars for a million input tokens and for a million output tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Calls and what they used. Every attempt counts as a call.

    >>> (Usage(calls=2, cost=0.5) + Usage(calls=1, failed=1)).calls
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


class UsageMeter:
    """Counts every call by role, and reserves what calls in flight might cost. Threads may share one."""

    def __init__(
        self, prices: Mapping[str, Price] | None = None, *, max_usd: float | None = None, max_calls: int | None = None
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
        roles = {role.value: asdict(self._by_role[role]) for role in Role if role in self._by_role}
        return {"total": asdict(self.total), "roles": roles}

    async def metered(self, call: Call, send: Callable[[Call], Awaitable[Reply]]) -> Reply:
        """The reply with its cost. Counts the attempt, and does not send what might exceed the budget."""
        reserved = await self._reserve(call)
        try:
            reply = await send(call)
        except (ModelTimeout, asyncio.CancelledError):
            # The provider may charge for a call that nobody waited for.
            self._record(call, reserved, None, failed=True)
            raise
        except ModelError as error:
            self._record(call, reserved, error.tokens, failed=True)
            raise
        except BaseException:
            with self._lock:
                self._release(reserved)
            raise
        tokens = reply.input_tokens, reply.output_tokens
        cost = self._record(call, reserved, tokens if any(tokens) else None, failed=False)  # some servers report none
        return reply.model_copy(update={"cost": cost})

    async def _reserve(self, call: Call) -> float:
        """The US dollars that are reserved for the call. Raises BudgetExceeded if it might exceed a limit.

        Calls in flight usually cost much less than they might, so if they hold the rest of the budget, wait for them.
        """
        highest = None if self._max_usd is None else highest_cost(call, self._prices)
        while not self._reserved_at_once(call, highest):
            await asyncio.sleep(_POLL_SECONDS)
        return highest or 0.0

    def _reserved_at_once(self, call: Call, highest: float | None) -> bool:
        """Whether there was room for the call; False if there may be once calls in flight have ended."""
        with self._lock:
            made = self.total.calls
            if self._max_calls is not None and made + self._in_flight >= self._max_calls:
                raise BudgetExceeded(
                    f"the limit of {self._max_calls} calls is reached: {made} were made, {self._in_flight} are in "
                    "flight"
                )
            if self._max_usd is not None and not self._affordable(call, highest, self._max_usd):
                return False
            self._in_flight += 1
            self._reserved += highest or 0.0
            return True

    def _affordable(self, call: Call, highest: float | None, usd: float) -> bool:
        if highest is None:
            raise ConfigurationError(
                f"no price is known for {call.model}, so a limit in US dollars cannot be kept; give its price in "
                f'acefraud.toml ([prices."{call.model}"] input = 0.15, output = 0.60, in US dollars for a million '
                "tokens), or limit the number of calls with --max-calls instead"
            )
        spent = self.total.cost + self._unaccounted
        if spent + self._reserved + highest <= usd + _ROUNDING:
            return True
        if self._reserved and spent + highest <= usd + _ROUNDING:
            return False
        raise BudgetExceeded(
            f"the limit of ${usd:.6g} might be exceeded: ${spent:.6g} is spent, calls in flight may cost "
            f"${self._reserved:.6g}, and this one to {call.model} up to ${highest:.6g}"
        )

    def _record(self, call: Call, reserved: float, tokens: tuple[int, int] | None, *, failed: bool) -> float | None:
        """Count a call that was sent, with its tokens if they are known, and return its cost if that is known."""
        read, written = tokens or (0, 0)
        cost = None if tokens is None else 0.0
        if read or written:  # a failure without a reply is free, even if the model has no price
            cost = price_of(call.model, read, written, self._prices)
        used = Usage(
            calls=1, failed=failed, input_tokens=read, output_tokens=written, cost=cost or 0.0, unpriced=cost is None
        )
        with self._lock:
            self._by_role[call.role] = self._by_role.get(call.role, Usage()) + used
            self._unaccounted += reserved if cost is None else 0.0
            self._release(reserved)
        return cost

    def _release(self, reserved: float) -> None:
        self._in_flight -= 1
        self._reserved = max(0.0, self._reserved - reserved) if self._in_flight else 0.0

    def note_cached(self, role: Role) -> None:
        """Count a reply that an earlier call paid for."""
        with self._lock:
            self._by_role[role] = self._by_role.get(role, Usage()) + Usage(cached=1)


def price_of(model: str, input_tokens: int, output_tokens: int, own: Mapping[str, Price]) -> float | None:
    """US dollars for these tokens; None if no price is known.

    >>> price_of("openai:mine", 1_000_000, 500_000, {"openai:mine": (0.2, 0.8)})
    0.6
    """
    if model in own:
        per_input, per_output = own[model]
        return round((input_tokens * per_input + output_tokens * per_output) / 1_000_000, 12)
    return _list_price(model, input_tokens, output_tokens)


def highest_cost(call: Call, own: Mapping[str, Price]) -> float | None:
    """The most that a call can cost, known before it is sent; None if no price is known."""
    output_tokens = 0 if call.role is Role.EMBEDDING else call.max_tokens
    return price_of(call.model, call.most_input_tokens, output_tokens, own)


def _list_price(model: str, input_tokens: int, output_tokens: int) -> float | None:
    try:
        from genai_prices import Usage, calc_price  # noqa: PLC0415 - an optional package, and slow to load
    except ModuleNotFoundError:
        return None
    provider, _, name = model.partition(":")
    tokens = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        # The prices that come with the package: nothing is downloaded.
        priced = calc_price(tokens, name, provider_id=provider.removesuffix("-chat").removesuffix("-responses"))
    except LookupError:
        return None
    return float(priced.total_price)
