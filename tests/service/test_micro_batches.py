"""Requests that wait are answered together, each with its own answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from acefraud.service.threads import MicroBatches


def run_together(batches: MicroBatches[int, int], numbers: Sequence[int]) -> list[int | BaseException]:
    async def run() -> list[int | BaseException]:
        return list(await asyncio.gather(*(batches.submit(number) for number in numbers), return_exceptions=True))

    try:
        return asyncio.run(run())
    finally:
        batches.close()


def test_each_request_gets_its_own_answer_and_they_share_calls() -> None:
    calls: list[int] = []

    def double(numbers: Sequence[int]) -> list[int | Exception]:
        calls.append(len(numbers))
        return [2 * number for number in numbers]

    answers = run_together(MicroBatches(double, most=16), range(100))

    assert answers == [2 * number for number in range(100)]
    assert sum(calls) == 100
    assert max(calls) <= 16
    assert len(calls) < 20


def test_one_call_at_a_time_in_another_thread() -> None:
    running = threading.Semaphore(1)
    threads = set()

    def answer(numbers: Sequence[int]) -> list[int | Exception]:
        assert running.acquire(blocking=False), "two calls at once"
        threads.add(threading.get_ident())
        running.release()
        return list(numbers)

    run_together(MicroBatches(answer, most=3), range(30))

    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_an_error_among_the_answers_is_that_of_one_request() -> None:
    def answer(numbers: Sequence[int]) -> list[int | Exception]:
        return [ValueError(str(number)) if number % 2 else number for number in numbers]

    answers = run_together(MicroBatches(answer, most=8), range(6))

    assert answers[::2] == [0, 2, 4]
    assert [str(each) for each in answers[1::2]] == ["1", "3", "5"]


def test_a_call_that_fails_is_told_to_all_of_its_requests() -> None:
    def fail(_: Sequence[int]) -> list[int | Exception]:
        raise RuntimeError("the store is gone")

    answers = run_together(MicroBatches(fail, most=8), range(3))

    assert [str(answer) for answer in answers] == ["the store is gone"] * 3


@pytest.mark.parametrize("wrong", ["too few", "too many", "ended early", "not even a list"])
def test_a_call_that_goes_wrong_is_told_to_its_requests_and_later_ones_are_answered(wrong: str) -> None:
    def answer(numbers: Sequence[int]) -> list[int | Exception]:
        if 0 not in numbers:
            return list(numbers)
        match wrong:
            case "too few":
                return [1]
            case "too many":
                return [*numbers, 3]
            case "ended early":
                return [next(iter(()))]
            case _:
                return None  # type: ignore[return-value]

    async def run() -> tuple[list[int | BaseException], int]:
        batches = MicroBatches(answer, most=8)
        async with asyncio.timeout(10):
            failed = await asyncio.gather(*map(batches.submit, range(3)), return_exceptions=True)
            later = await batches.submit(5)
        batches.close()
        return failed, later

    failed, later = asyncio.run(run())
    assert [isinstance(each, Exception) for each in failed] == [True] * 3
    assert later == 5


def test_a_caller_who_has_gone_does_not_disturb_the_others() -> None:
    started, go_on = threading.Event(), threading.Event()

    def answer(numbers: Sequence[int]) -> list[int | Exception]:
        started.set()
        go_on.wait(10)
        return list(numbers)

    async def run() -> int:
        batches = MicroBatches(answer, most=8)
        gone, stays = asyncio.create_task(batches.submit(1)), asyncio.create_task(batches.submit(2))
        await asyncio.to_thread(started.wait, 10)
        gone.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await gone
        found = await stays
        batches.close()
        return found

    assert asyncio.run(run()) == 2


def test_who_goes_while_waiting_is_not_answered() -> None:
    started, go_on = threading.Event(), threading.Event()
    asked: list[int] = []

    def answer(numbers: Sequence[int]) -> list[int | Exception]:
        asked.extend(numbers)
        started.set()
        go_on.wait(10)
        return list(numbers)

    async def run() -> None:
        batches = MicroBatches(answer, most=8)
        first = asyncio.create_task(batches.submit(1))
        await asyncio.to_thread(started.wait, 10)
        gone = asyncio.create_task(batches.submit(2))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        later = asyncio.create_task(batches.submit(3))
        await asyncio.sleep(0)
        go_on.set()
        assert (await first, await later) == (1, 3)
        batches.close()

    asyncio.run(run())
    assert asked == [1, 3]
