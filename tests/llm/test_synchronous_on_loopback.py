"""Twins of methods that have to be awaited, with every role on a model server: in a script, a notebook and a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.llm.on_server import cases, chosen

from acefraud import BulletPlaybook, LLMJudge, Reflector, SimpleFraudAgent, Verdict, build_roles, open_playbook
from acefraud.core.outcome import Ruling
from acefraud.errors import ModelError
from acefraud.llm.client import ModelClient

pytestmark = pytest.mark.enable_socket
TEXT = "Transaction: User 'john' attempts $2500 purchase at 3:15 AM through a VPN, account opened 2 days ago"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")


def in_a_script(call: Callable[[], Any]) -> Any:
    return call()


def in_a_notebook(call: Callable[[], Any]) -> Any:
    async def cell() -> Any:
        return call()

    return asyncio.run(cell())


def in_a_thread(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(call).result()


every_place = pytest.mark.parametrize("place", [in_a_script, in_a_notebook, in_a_thread], ids=lambda one: one.__name__)


@pytest.mark.parametrize("where", ["memory", "file"])
@every_place
def test_the_whole_loop_runs_one_call_after_another(place: Any, where: str, loopback: Any, tmp_path: Path) -> None:
    server = loopback()
    train, test = cases(30, 3)

    def loop() -> None:
        roles = build_roles(chosen(server))
        with BulletPlaybook() if where == "memory" else open_playbook(tmp_path / "book.db") as book:
            learner = roles.learner(book)
            learner.train_sync(train)
            learner.scale_odds_sync(train[:5])
            for case in test:
                decided = learner.decide_sync(case.transaction)
                assert decided.model == "openai:gpt-3.5-turbo"
                assert learner.replay_sync(decided).verdict == learner.explain_sync(decided).verdict == decided.verdict
                learner.hear_sync({"transaction_id": case.transaction.id, "is_fraud": case.is_fraud})
            assert len(learner.score_sync([TEXT, {"amount": 5}])) == 2
            (first, second) = learner.decide_all_sync([TEXT, {"id": "t1", "amount": 5}])
            assert learner.judge_pending_sync(first).ruling in set(Ruling)
            learner.hear_all_sync([{"transaction_id": second.transaction.id, "is_fraud": False}])
            learner.finish_lessons_sync()
        roles.close_sync()

    place(loop)
    assert {call.role for call in server.log} >= {"agent", "judge", "reflector", "embedding"}
    assert server.in_flight == 0


@every_place
def test_roles_by_themselves_answer_without_await(place: Any, loopback: Any) -> None:
    server = loopback()
    on_server = {"model": "openai:gpt-4o-mini", "base_url": server.base_url}

    def roles() -> None:
        client = ModelClient()
        agent = SimpleFraudAgent(**on_server, client=client)
        judge, reflector = LLMJudge(**on_server, client=client), Reflector(**on_server, client=client)
        for _ in range(2):
            assert agent.analyze(TEXT) in set(Verdict)
            assert judge.rule_sync(TEXT, "DECLINE").ruling is not Ruling.UNJUDGED
            assert judge.judge_sync(TEXT, "DECLINE", "DECLINE") == (True, 1.0)
            reflector.reflect_sync(TEXT, "APPROVE", "DECLINE")

    place(roles)
    assert {call.role for call in server.log} == {"agent", "judge", "reflector"}


def test_a_failed_call_is_raised_as_when_awaited(loopback: Any) -> None:
    server = loopback(misbehave={"refusal": 1.0})
    agent = SimpleFraudAgent(model="openai:gpt-4o-mini", base_url=server.base_url)
    with pytest.raises(ModelError):
        in_a_notebook(lambda: agent.analyze(TEXT))


def test_threads_may_call_at_the_same_time(loopback: Any) -> None:
    server = loopback(delay=0.002)
    roles = build_roles(chosen(server))
    learner = roles.learner(BulletPlaybook())
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda n: learner.decide_sync({"id": f"t{n}", "amount": n + 1.0}), range(60)))
    assert [each.transaction.id for each in made] == [f"t{n}" for n in range(60)]
    roles.close_sync()


def test_closing_does_not_wait_for_the_loop_that_it_blocks(loopback: Any) -> None:
    """Connections that were opened by awaiting in a notebook are closed as soon as its loop runs again."""
    server = loopback()
    roles = build_roles(chosen(server))
    learner = roles.learner(BulletPlaybook())

    async def cell() -> None:
        await learner.decide(TEXT)
        assert server.connections
        roles.close_sync()
        while server.connections:
            await asyncio.sleep(0.005)
        assert (await learner.decide({"id": "t2", "amount": 5})).transaction.id == "t2"

    asyncio.run(asyncio.wait_for(cell(), 30))
