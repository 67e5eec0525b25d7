"""What is tried again, how often, and after how long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from acefraud.errors import (
    BudgetExceeded,
    ConfigurationError,
    ModelMalformed,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from acefraud.llm.calling import Call, Reply, Role
from acefraud.llm.retrying import Retrying, RetryOptions

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


def sent(errors: Sequence[Exception], options: RetryOptions) -> tuple[Scripted, Slept, Reply | Exception]:
    caller, slept = Scripted(errors), Slept()
    try:
        end: Reply | Exception = asyncio.run(Retrying(caller, options, sleep=slept, random=Random(1)).send(CALL))
    except (ModelTimeout, ModelRateLimited, ModelUnavailable, ModelRefused, ModelMalformed, BudgetExceeded) as error:
        end = error
    return caller, slept, end


def test_an_outage_is_tried_again_until_it_is_over() -> None:
    outages = [ModelTimeout("slow"), ModelRateLimited("many"), ModelUnavailable("down")]
    caller, slept, end = sent(outages, RetryOptions(attempts=4, jitter=0))
    assert end == Reply(text="yes")
    assert caller.sent == 4
    assert slept.waits == [0.5, 1.0, 2.0]


def test_the_last_error_is_raised_after_the_last_attempt() -> None:
    errors = [ModelUnavailable(f"down {n}") for n in range(9)]
    caller, slept, end = sent(errors, RetryOptions(attempts=3, jitter=0))
    assert end is errors[2]
    assert caller.sent == 3
    assert len(slept.waits) == 2


@pytest.mark.parametrize("error", [ModelRefused("no"), ModelMalformed("eh"), BudgetExceeded("spent")])
def test_what_would_fail_again_is_not_tried_again(error: Exception) -> None:
    caller, slept, end = sent([error], RetryOptions())
    assert end is error
    assert caller.sent == 1
    assert slept.waits == []


def test_the_server_is_never_asked_sooner_than_it_said() -> None:
    errors = [ModelRateLimited("many", retry_after=7.0), ModelUnavailable("down", retry_after=0.01)]
    _, slept, _ = sent(errors, RetryOptions(jitter=0, longest_wait=3.0))
    assert slept.waits == [7.0, 1.0]


def test_a_server_that_asks_for_too_much_patience_is_given_up_on() -> None:
    error = ModelRateLimited("many", retry_after=121.0)
    caller, slept, end = sent([error], RetryOptions(longest_patience=120.0))
    assert end is error
    assert caller.sent == 1
    assert slept.waits == []


def test_waits_are_spread_but_keep_within_their_bounds() -> None:
    errors = [ModelTimeout("slow")] * 11
    _, slept, _ = sent(errors, RetryOptions(attempts=12, longest_wait=4.0))
    longest = [min(4.0, 0.5 * 2**n) for n in range(11)]
    assert all(most / 2 <= wait <= most for wait, most in zip(slept.waits, longest, strict=True))
    assert len(set(slept.waits)) == 11


def test_a_thousand_attempts_do_not_overflow() -> None:
    caller, slept, _ = sent([ModelTimeout("slow")] * 1200, RetryOptions(attempts=1201, jitter=0))
    assert caller.sent == 1201
    assert slept.waits[-1] == 30.0


def test_no_attempt_at_all_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="at least once"):
        RetryOptions(attempts=0)
