"""Every call is counted, and no budget is exceeded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.errors import (
    BudgetExceeded,
    ConfigurationError,
    ModelError,
    ModelMalformed,
    ModelTimeout,
    ModelUnavailable,
)
from acefraud.llm.call import Call, Caller, Message, Reply, Role
from acefraud.llm.usage_meter import UsageMeter, highest_cost, price_of

MODEL = "openai:mine"
PRICES = {MODEL: (1.0, 2.0)}


def call(text: str = "is it?", *, role: Role = Role.JUDGE, max_tokens: int = 100, model: str = MODEL) -> Call:
    if role is Role.EMBEDDING:
        return Call(role=role, model=model, texts=(text,))
    return Call(role=role, model=model, messages=(Message(role="user", content=text),), max_tokens=max_tokens)


class Server:
    """Plays what it is given, one after another, and again from the start."""

    def __init__(self, *plays: Reply | BaseException) -> None:
        self.plays: Sequence[Reply | BaseException] = plays
        self.sent = 0

    async def send(self, _: Call) -> Reply:
        play = self.plays[self.sent % len(self.plays)]
        self.sent += 1
        await asyncio.sleep(0)
        if isinstance(play, BaseException):
            raise play
        return play

    async def close(self) -> None:
        pass


def metered_by(meter: UsageMeter, caller: Caller) -> Callable[[Call], Coroutine[Any, Any, Reply]]:
    """Sends calls to a server, counted by a meter."""
    return lambda call: meter.metered(call, caller.send)


def reply(read: int, written: int) -> Reply:
    return Reply(text="yes", input_tokens=read, output_tokens=written)


def test_a_reply_is_counted_under_its_role_with_its_cost() -> None:
    meter = UsageMeter(PRICES)
    metered = metered_by(meter, Server(reply(1000, 500)))
    assert asyncio.run(metered(call())).cost == pytest.approx(0.002)
    asyncio.run(metered(call(role=Role.AGENT)))
    meter.note_cached(Role.AGENT)
    booked = json.loads(json.dumps(meter.as_json()))
    assert booked["roles"]["judge"] == {
        "calls": 1,
        "failed": 0,
        "cached": 0,
        "input_tokens": 1000,
        "output_tokens": 500,
        "cost": pytest.approx(0.002),
        "unpriced": 0,
    }
    assert (booked["roles"]["agent"]["cached"], booked["total"]["cached"]) == (1, 1)
    assert (booked["total"]["calls"], booked["total"]["cost"]) == (2, pytest.approx(0.004))
    assert "reflector" not in booked["roles"]


def test_without_a_price_the_call_is_made_and_counted_as_unpriced() -> None:
    meter = UsageMeter()
    assert asyncio.run(metered_by(meter, Server(reply(10, 5)))(call())).cost is None
    assert (meter.total.calls, meter.total.unpriced, meter.total.input_tokens) == (1, 1, 10)


def test_a_failed_attempt_is_a_call_and_costs_what_its_reply_took() -> None:
    meter = UsageMeter(PRICES)
    useless = ModelMalformed("the reply is empty", tokens=(1000, 500))
    metered = metered_by(meter, Server(useless, ModelUnavailable("down")))
    for _ in range(2):
        with pytest.raises(ModelError):
            asyncio.run(metered(call()))
    total = meter.total
    assert (total.calls, total.failed, total.unpriced) == (2, 2, 0)
    assert (total.input_tokens, total.output_tokens) == (1000, 500)
    assert total.cost == pytest.approx(0.002)


def test_the_limit_of_calls_counts_failures_and_calls_in_flight() -> None:
    server = Server(ModelUnavailable("down"), reply(1, 1))
    metered = metered_by(UsageMeter(max_calls=3), server)

    async def play() -> list[Reply | BaseException]:
        return await asyncio.gather(*(metered(call()) for _ in range(6)), return_exceptions=True)

    ended = asyncio.run(play())
    assert server.sent == 3
    assert sum(isinstance(end, BudgetExceeded) for end in ended) == 3
    with pytest.raises(BudgetExceeded, match="limit of 3 calls is reached: 3 were made"):
        asyncio.run(metered(call()))
    assert server.sent == 3


def test_the_limit_in_dollars_is_kept_before_anything_is_sent() -> None:
    most = highest_cost(call(), PRICES)
    assert most is not None
    assert most == pytest.approx((len("is it?") + 16 + 2 * 100) / 1e6)
    server = Server(reply(10, 100))
    metered = metered_by(UsageMeter(PRICES, max_usd=most * 0.999), server)
    with pytest.raises(BudgetExceeded, match=r"limit of \$0.000221778.*\$0 is spent.*openai:mine up to \$0.000222"):
        asyncio.run(metered(call()))
    assert server.sent == 0
    exact = metered_by(UsageMeter(PRICES, max_usd=most), server)
    assert asyncio.run(exact(call())).cost == pytest.approx(0.00021)


def test_unused_reservations_are_released() -> None:
    most = highest_cost(call(), PRICES)
    assert most is not None
    server = Server(reply(1, 1))
    metered = metered_by(UsageMeter(PRICES, max_usd=most * 1.5), server)
    for _ in range(20):  # one at a time there is room for many, since each takes far less than it might
        asyncio.run(metered(call()))
    assert server.sent == 20


@pytest.mark.parametrize("end", [ModelTimeout("slow"), asyncio.CancelledError(), Reply(text="uncounted")])
def test_a_call_of_unknown_cost_counts_against_the_budget_at_its_highest_cost(end: Reply | BaseException) -> None:
    most = highest_cost(call(), PRICES)
    assert most is not None
    server, meter = Server(end), UsageMeter(PRICES, max_usd=most * 2)
    metered = metered_by(meter, server)

    async def play() -> None:
        for _ in range(4):
            await asyncio.gather(metered(call()), return_exceptions=True)

    asyncio.run(play())
    assert server.sent == 2
    assert (meter.total.calls, meter.total.unpriced, meter.total.cost) == (2, 2, 0.0)


def test_a_configuration_error_does_not_count_as_a_call() -> None:
    meter = UsageMeter(PRICES, max_calls=1)
    metered = metered_by(meter, Server(ConfigurationError("no key")))
    for _ in range(3):
        with pytest.raises(ConfigurationError):
            asyncio.run(metered(call()))
    assert meter.total.calls == 0


def test_a_limit_in_dollars_needs_a_price() -> None:
    server = Server(reply(1, 1))
    metered = metered_by(UsageMeter(max_usd=1.0), server)
    with pytest.raises(ConfigurationError) as caught:
        asyncio.run(metered(call()))
    assert '[prices."openai:mine"] input = ' in str(caught.value)
    assert "--max-calls" in str(caught.value)
    assert server.sent == 0


@given(
    texts=st.lists(st.tuples(st.text(max_size=40), st.integers(1, 400), st.floats(0, 1)), min_size=1, max_size=40),
    share=st.floats(0, 1.2),
    calls=st.none() | st.integers(0, 30),
    at_once=st.integers(1, 12),
)
def test_no_budget_is_ever_exceeded(
    texts: list[tuple[str, int, float]], share: float, calls: int | None, at_once: int
) -> None:
    wanted = [(call(text, max_tokens=most), part) for text, most, part in texts]
    everything = sum(highest_cost(each, PRICES) or 0.0 for each, _ in wanted)
    meter = UsageMeter(PRICES, max_usd=everything * share, max_calls=calls)
    parts = {id(each): part for each, part in wanted}
    charged: list[float] = []
    refused = 0

    class Charging:
        async def send(self, call: Call) -> Reply:
            part = parts[id(call)]
            read, written = int(call.most_input_tokens * part), int(call.max_tokens * part)
            charged.append(price_of(MODEL, read, written, PRICES) or 0.0)
            await asyncio.sleep(0)
            if part > 0.8:
                raise ModelMalformed("eh", tokens=(read, written))
            return Reply(text="yes", input_tokens=read, output_tokens=written)

        async def close(self) -> None:
            pass

    async def play() -> None:
        nonlocal refused
        metered, turns = metered_by(meter, Charging()), asyncio.Semaphore(at_once)

        async def one(each: Call) -> None:
            nonlocal refused
            async with turns:
                try:
                    await metered(each)
                except BudgetExceeded:
                    refused += 1
                except ModelMalformed:
                    pass

        await asyncio.gather(*(one(each) for each, _ in wanted))

    asyncio.run(play())
    assert sum(charged) <= everything * share + 1e-9
    assert calls is None or len(charged) <= calls
    assert len(charged) + refused == len(wanted)
    assert meter.total.calls == len(charged)
    if share >= 1 and calls is None:
        assert refused == 0


def test_list_prices_are_known_and_own_prices_take_precedence() -> None:
    assert price_of("openai:gpt-4o-mini", 1_000_000, 0, {}) == pytest.approx(0.15)
    assert price_of("openai-chat:gpt-4o-mini", 0, 1_000_000, {}) == pytest.approx(0.60)
    assert price_of("openai:gpt-4o-mini", 1_000_000, 0, {"openai:gpt-4o-mini": (3.0, 0.0)}) == 3.0
    assert price_of("openai:gpt-4o-mini-of-our-own", 1, 1, {}) is None
    assert price_of("nobody:nothing", 1, 1, {}) is None


def test_an_embedding_pays_for_what_it_reads_only() -> None:
    embedding = call("four", role=Role.EMBEDDING)
    assert highest_cost(embedding, PRICES) == pytest.approx((4 + 16) / 1e6)


def test_a_call_waits_for_budget_that_calls_in_flight_reserve() -> None:
    """Two calls that might each cost the whole budget, and in truth cost little: the second is sent after the first."""

    class Slow:
        under_way = peak = 0

        async def send(self, call: Call) -> Reply:  # noqa: ARG002
            self.under_way += 1
            self.peak = max(self.peak, self.under_way)
            await asyncio.sleep(0.03)
            self.under_way -= 1
            return Reply(text="yes", input_tokens=1, output_tokens=1)

        async def close(self) -> None: ...

    async def both() -> list[Reply]:
        return list(await asyncio.gather(metered(one), metered(one)))

    one = Call(role=Role.AGENT, model="openai:mine", system="x" * 1000, max_tokens=100)
    prices = {"openai:mine": (1.0, 1.0)}
    most = highest_cost(one, prices)
    assert most is not None
    slow = Slow()
    metered = metered_by(UsageMeter(prices, max_usd=1.5 * most), slow)
    assert len(asyncio.run(both())) == 2
    assert slow.peak == 1
