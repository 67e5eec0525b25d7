"""What was called and what it cost, and the limit that no call may pass."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from threading import Lock
from typing import Any, TypeVar

from acefraud.errors import BudgetExceeded, ConfigurationError, ModelError, ModelTimeout
from acefraud.llm.calling import Call, Caller, Reply, Role
from acefraud.llm.pricing import Price, most_it_can_cost, price_of

_ROUNDING = 1e-12
"""Sums of prices are not exact; this much of a dollar is no excess."""

_LOOK_AGAIN_SECONDS = 0.01


class _HeldByOthers(Exception):
    """There is money enough for a call, but for what those under way might still cost."""


_Error = TypeVar("_Error", bound=ModelError)


def with_tokens(error: _Error, input_tokens: int, output_tokens: int) -> _Error:
    """The error, saying what the useless reply behind it was charged as.

    >>> tokens_of(with_tokens(ModelError("the reply is empty"), 120, 3))
    (120, 3)
    """
    vars(error)["tokens"] = (input_tokens, output_tokens)
    return error


def tokens_of(error: ModelError) -> tuple[int, int]:
    """Input and output tokens of the reply behind an error; none where there was no reply."""
    tokens: tuple[int, int] = vars(error).get("tokens", (0, 0))
    return tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that may be spent; None stands for no limit."""

    usd: float | None = None
    calls: int | None = None

    def __post_init__(self) -> None:
        if (self.usd is not None and not self.usd >= 0) or (self.calls is not None and self.calls < 0):
            raise ConfigurationError("a budget is not negative: give US dollars or a number of calls from 0 up")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Calls and what they took. Each attempt is a call of its own.

    >>> (Usage(calls=2, cost=0.5) + Usage(calls=1, failed=1)).as_json()["calls"]
    3
    """

    calls: int = 0
    failed: int = 0
    cached: int = 0
    """Replies that an earlier call had paid for; these are not among the calls."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    """Calls whose cost is not known, for want of a price or of a count of tokens."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})

    def as_json(self) -> dict[str, Any]:
        """As a mapping that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A call that may be sent: what is kept back for it until its cost is known."""

    call: Call
    most: float | None


class Meter:
    """Books every call by its role, and keeps back what those under way might still cost."""

    def __init__(self, budget: Budget | None = None, prices: Mapping[str, Price] | None = None) -> None:
        self._budget = budget or Budget()
        self._prices = dict(prices or {})
        self._by_role: dict[Role, Usage] = {}
        self._lock = Lock()  # one meter may serve the loops of several threads
        self._under_way = 0
        self._kept_back = 0.0
        self._unanswered = 0.0
        """What calls may have cost that nobody gave an account of; it counts against the budget only."""

    @property
    def by_role(self) -> Mapping[Role, Usage]:
        """The usage of each role that was called."""
        return dict(self._by_role)

    @property
    def total(self) -> Usage:
        """The usage of all roles together."""
        return sum(self._by_role.values(), Usage())

    def as_json(self) -> dict[str, Any]:
        """The total, and each role under its name."""
        roles = {role.value: self._by_role[role].as_json() for role in Role if role in self._by_role}
        return {"total": self.total.as_json(), "roles": roles}

    def reserve(self, call: Call) -> Reservation:
        """Leave to send the call. Raises BudgetExceeded where it would pass a limit even if nothing were under way."""
        most = most_it_can_cost(call, self._prices) if self._budget.usd is not None else None
        with self._lock:
            self._check_calls()
            if self._budget.usd is not None:
                self._check_dollars(call, most, self._budget.usd)
            self._under_way += 1
            self._kept_back += most or 0.0
        return Reservation(call, most)

    def _check_calls(self) -> None:
        made = self.total.calls
        if self._budget.calls is not None and made + self._under_way >= self._budget.calls:
            raise BudgetExceeded(
                f"the limit of {self._budget.calls} calls is reached: {made} were made, {self._under_way} are under way"
            )

    def _check_dollars(self, call: Call, most: float | None, usd: float) -> None:
        if most is None:
            raise ConfigurationError(
                f"no price is known for {call.model}, so a limit in US dollars cannot be kept; give its price in "
                f'acefraud.toml ([prices."{call.model}"] input = 0.15, output = 0.60, in US dollars for a million '
                "tokens), or limit the number of calls with --max-calls instead"
            )
        spent = self.total.cost + self._unanswered
        if self._kept_back and spent + most <= usd + _ROUNDING < spent + self._kept_back + most:
            raise _HeldByOthers
        if spent + self._kept_back + most > usd + _ROUNDING:
            raise BudgetExceeded(
                f"the limit of ${usd:.6g} might be passed: ${spent:.6g} is spent, calls under way may cost "
                f"${self._kept_back:.6g}, and this one to {call.model} up to ${most:.6g}"
            )

    def release(self, reservation: Reservation) -> None:
        """Give back what was kept for a call that was not sent."""
        with self._lock:
            self._under_way -= 1
            self._kept_back = max(0.0, self._kept_back - (reservation.most or 0.0)) if self._under_way else 0.0

    def book(self, reservation: Reservation, tokens: tuple[int, int] | None, *, failed: bool) -> float | None:
        """Enter a call that was sent, with its tokens where they are known, and return its cost where that is."""
        call = reservation.call
        read, written = tokens or (0, 0)
        cost = self._cost(call.model, tokens)
        used = Usage(
            calls=1,
            failed=int(failed),
            input_tokens=read,
            output_tokens=written,
            cost=cost or 0.0,
            unpriced=int(cost is None),
        )
        with self._lock:
            self._by_role[call.role] = self._by_role.get(call.role, Usage()) + used
            self._unanswered += (reservation.most or 0.0) if cost is None else 0.0
        self.release(reservation)
        return cost

    def _cost(self, model: str, tokens: tuple[int, int] | None) -> float | None:
        if tokens is None:
            return None
        # An attempt that brought nothing is free, whether or not the model has a price.
        return price_of(model, *tokens, self._prices) if any(tokens) else 0.0

    def note_cached(self, role: Role) -> None:
        """Enter a reply that an earlier call had paid for."""
        with self._lock:
            self._by_role[role] = self._by_role.get(role, Usage()) + Usage(cached=1)


class Metered:
    """Books each attempt and sends none that might pass the budget."""

    def __init__(self, caller: Caller, meter: Meter) -> None:
        self._caller = caller
        self._meter = meter

    async def send(self, call: Call) -> Reply:
        """The reply with its cost."""
        reservation = await self._reserved(call)
        try:
            reply = await self._caller.send(call)
        except (ModelTimeout, asyncio.CancelledError):
            # It was sent, and may be charged for although nobody waited for the end.
            self._meter.book(reservation, None, failed=True)
            raise
        except ModelError as error:
            self._meter.book(reservation, tokens_of(error), failed=True)
            raise
        except BaseException:
            self._meter.release(reservation)
            raise
        counted = reply.input_tokens + reply.output_tokens > 0  # some servers do not say
        tokens = (reply.input_tokens, reply.output_tokens) if counted else None
        return reply.model_copy(update={"cost": self._meter.book(reservation, tokens, failed=False)})

    async def _reserved(self, call: Call) -> Reservation:
        """Leave to send. What calls under way may cost is usually much more than they do, so they are waited for."""
        while True:
            try:
                return self._meter.reserve(call)
            except _HeldByOthers:
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def close(self) -> None:
        """Close what it stands before."""
        await self._caller.close()
