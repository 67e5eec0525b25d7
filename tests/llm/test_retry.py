"""Which failures are retried, how often, and after what wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from acefraud.errors import (
    BudgetExceeded,
    ModelMalformed,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from acefraud.llm.call import Call, Reply, Role
from acefraud.llm.client import LONGEST_RETRY_AFTER, ClientOptions, ModelClient

CALL = Call(role=Role.JUDGE, model="openai:gpt-4o-mini")


class Scripted:
    """Raises what it is given, one after another, then answers."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        self.errors = list(errors)
        self.sent = 0

    async def send(self, _: Call) -> Reply:
        self.sent += 1
        if self.errors:
            raise self.errors.pop(0)
        return Reply(text="yes")

    async def close(self) -> None:
        pass


class Slept:
    """Remembers how long it was to sleep, and does not."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


class NoJitter(Random):
    def random(self) -> float:
        return 0.0


def sent(
    errors: Sequence[Exception], random: Random | None = None, **options: Any
) -> tuple[Scripted, Slept, Reply | Exception]:
    caller, slept = Scripted(errors), Slept()
    client = ModelClient(ClientOptions(**options), caller=caller, sleep=slept, random=random or NoJitter())
    try:
        end: Reply | Exception = asyncio.run(client.send(CALL))
    except (ModelTimeout, ModelRateLimited, ModelUnavailable, ModelRefused, ModelMalformed, BudgetExceeded) as error:
        end = error
    return caller, slept, end


def test_an_outage_is_retried_until_it_is_over() -> None:
    outages = [ModelTimeout("slow"), ModelRateLimited("many"), ModelUnavailable("down")]
    caller, slept, end = sent(outages, attempts=4)
    assert end == Reply(text="yes")
    assert caller.sent == 4
    assert slept.waits == [0.5, 1.0, 2.0]


def test_the_last_error_is_raised_after_the_last_attempt() -> None:
    errors = [ModelUnavailable(f"down {n}") for n in range(9)]
    caller, slept, end = sent(errors, attempts=3)
    assert end is errors[2]
    assert caller.sent == 3
    assert len(slept.waits) == 2


@pytest.mark.parametrize("error", [ModelRefused("no"), ModelMalformed("eh"), BudgetExceeded("spent")])
def test_errors_of_the_call_are_not_retried(error: Exception) -> None:
    caller, slept, end = sent([error])
    assert end is error
    assert caller.sent == 1
    assert slept.waits == []


def test_retries_respect_retry_after() -> None:
    errors = [ModelRateLimited("many", retry_after=7.0), ModelUnavailable("down", retry_after=0.01)]
    _, slept, _ = sent(errors, longest_wait=3.0)
    assert slept.waits == [7.0, 1.0]


def test_a_very_long_retry_after_ends_the_retries() -> None:
    error = ModelRateLimited("many", retry_after=LONGEST_RETRY_AFTER + 1)
    caller, slept, end = sent([error])
    assert end is error
    assert caller.sent == 1
    assert slept.waits == []


def test_waits_are_jittered_within_bounds() -> None:
    errors = [ModelTimeout("slow")] * 11
    _, slept, _ = sent(errors, Random(1), attempts=12, longest_wait=4.0)
    longest = [min(4.0, 0.5 * 2**n) for n in range(11)]
    assert all(most / 2 <= wait <= most for wait, most in zip(slept.waits, longest, strict=True))
    assert len(set(slept.waits)) == 11


def test_a_thousand_attempts_do_not_overflow() -> None:
    caller, slept, _ = sent([ModelTimeout("slow")] * 1200, attempts=1201)
    assert caller.sent == 1201
    assert slept.waits[-1] == 30.0
