"""Coroutines run for callers that do not await: in a script, in a thread and inside a running event loop."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

from acefraud import BulletPlaybook, Learner, Transaction, open_playbook
from acefraud.llm.synchronous import run_sync
from acefraud.roles.embedded.agent import EmbeddedAgent
from acefraud.support.callers import blocked_loops, current_owner

NAME: ContextVar[str] = ContextVar("name", default="nobody")


def in_a_script(call: Callable[[], Any]) -> Any:
    return call()


def in_a_notebook(call: Callable[[], Any]) -> Any:
    """Inside a running event loop, by a function that cannot await."""

    async def cell() -> Any:
        return call()

    return asyncio.run(cell())


def in_a_callback(call: Callable[[], Any]) -> Any:
    """Inside a running event loop, but in no task."""

    async def main() -> Future[Any]:
        called: Future[Any] = Future()
        asyncio.get_running_loop().call_soon(ran, called)
        await asyncio.sleep(0.001)
        return called

    def ran(called: Future[Any]) -> None:
        try:
            called.set_result(call())
        except Exception as error:  # noqa: BLE001 - it is raised below
            called.set_exception(error)

    return asyncio.run(main()).result(0)


def in_a_thread(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(call).result()


def nested(call: Callable[[], Any]) -> Any:
    """Inside a coroutine that is itself run for somebody who does not await."""

    async def work() -> Any:
        return call()

    return in_a_notebook(lambda: run_sync(work()))


PLACES = [in_a_script, in_a_notebook, in_a_callback, in_a_thread, nested]
every_place = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)


async def greet() -> str:
    await asyncio.sleep(0)
    return f"hello {NAME.get()}"


@every_place
def test_the_result_comes_back_and_context_variables_are_those_of_the_caller(place: Any) -> None:
    def call() -> str:
        NAME.set("ana")
        return run_sync(greet())

    assert place(lambda: copy_context().run(call)) == "hello ana"


@every_place
def test_an_error_comes_back_as_it_is(place: Any) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        place(lambda: run_sync(fail()))


@every_place
def test_what_never_waits_runs_in_the_same_thread_without_a_loop_of_its_own(place: Any) -> None:
    async def here() -> int:
        return threading.get_ident()

    assert place(lambda: run_sync(here(), waits=False) == threading.get_ident())


def test_nobody_writes_the_result_out() -> None:
    """As asyncio does when it puts the handler of SIGINT back, which took longer than the work."""

    class Shy:
        def __repr__(self) -> str:
            raise AssertionError

    async def work() -> Shy:
        return Shy()

    assert isinstance(run_sync(work()), Shy)


def test_what_waits_against_its_word_is_refused() -> None:
    with pytest.raises(RuntimeError, match="waits=False"):
        run_sync(greet(), waits=False)


def test_the_current_event_loop_of_a_script_stays() -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        assert run_sync(greet()) == "hello nobody"
        assert asyncio.get_event_loop_policy().get_event_loop() is loop
        assert loop.run_until_complete(greet()) == "hello nobody"
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_work_in_a_thread_is_done_in_the_name_of_the_blocked_caller() -> None:
    async def who() -> Any:
        return current_owner(), blocked_loops()

    async def cell() -> None:
        mine = current_owner()
        assert run_sync(who()) == (mine, [asyncio.get_running_loop()])
        assert current_owner() == mine
        assert blocked_loops() == []

    asyncio.run(cell())
    (owner, loops) = run_sync(who())
    assert owner[0] == threading.get_ident()
    assert loops == []


def test_an_interrupt_cancels_the_work_in_the_thread() -> None:
    ended: list[str] = []

    async def long() -> None:
        threading.Timer(0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def cell() -> None:
        run_sync(long())

    loop = asyncio.new_event_loop()  # `asyncio.run` would turn the interrupt into a cancellation itself
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores interrupts
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        signal.signal(signal.SIGINT, before)
        loop.close()
    assert ended == ["cancelled"]


class Patient:
    """An agent that waits, so that decisions need an event loop, as with a model."""

    model = "patient"
    waits = True
    adds_up = False

    @property
    def without_tier(self) -> Patient:
        return self

    async def assess(self, question: Any) -> Any:
        await asyncio.sleep(0)
        return await EmbeddedAgent().assess(question)


@pytest.mark.parametrize("where", ["memory", "file"])
@pytest.mark.parametrize("agent", [None, Patient()], ids=["embedded", "waiting"])
@every_place
def test_a_unit_of_work_covers_what_a_twin_records(place: Any, agent: Any, where: str, tmp_path: Any) -> None:
    with BulletPlaybook() if where == "memory" else open_playbook(tmp_path / "book.db") as book:
        learner = Learner(book, agent=agent)

        def call() -> None:
            with pytest.raises(ZeroDivisionError), book.unit_of_work(who="label"):  # noqa: PT012
                learner.decide_sync(Transaction(id="t1", text="$5 purchase"))
                learner.hear_sync({"transaction_id": "t1", "is_fraud": True})
                assert book.outcomes == 1
                raise ZeroDivisionError

        place(call)
        assert book.seq == 0
        assert book.outcomes == 0
