"""Requests that come twice, at once, or after their decision was archived."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from tests.learning.stores import EACH_STORE, STORES

from acefraud.core.transaction import Transaction
from acefraud.errors import InputError, RequestReused
from acefraud.learning.decision_recorder import DecisionRequest
from acefraud.learning.learner import Learner
from acefraud.llm.synchronous import run_sync
from acefraud.service.decision_requests import Answered, decide_requests, with_reasons
from acefraud.storage.archive import archive_decisions
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.sql_ledger import SqlLedger


@pytest.fixture(params=EACH_STORE)
def learner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Learner]:
    with BulletPlaybook(STORES[request.param](tmp_path)) as playbook:
        playbook.add_bullet("VPN: decline")
        yield Learner(playbook)


def order(name: str = "t1", amount: float = 10, key: str = "", caller: str = "") -> DecisionRequest:
    return DecisionRequest(Transaction(id=name, facts={"amount": amount, "vpn": True}), key, caller)


def answers(results: list[Answered | InputError]) -> list[Answered]:
    assert all(isinstance(result, Answered) for result in results), results
    return [result for result in results if isinstance(result, Answered)]


def test_a_repeat_gets_the_first_answer_from_another_process_too(learner: Learner) -> None:
    (first,) = answers(decide_requests(learner, [order()]))
    learner.playbook.add_bullet("Amount above 5: decline")
    (again,) = answers(decide_requests(Learner(BulletPlaybook(learner.playbook.ledger)), [order()]))

    (told,) = answers(run_sync(with_reasons(learner, [again]), waits=False))

    assert (told.decision, told.at, told.repeated) == (first.decision, first.at, True)


def test_other_content_is_refused_and_the_others_are_answered(learner: Learner) -> None:
    decide_requests(learner, [order(), order("t2", key="k")])
    same_id, same_key, new = decide_requests(learner, [order(amount=11), order("t3", key="k"), order("t4")])

    assert isinstance(same_id, RequestReused)
    assert isinstance(same_key, RequestReused)
    assert isinstance(new, Answered)


def test_one_transaction_under_many_keys_at_once_is_decided_once(learner: Learner) -> None:
    learners = [Learner(BulletPlaybook(learner.playbook.ledger)) for _ in range(8)]
    for turn in range(5):
        name = f"t{turn}"

        def ask(place: int, name: str = name) -> Answered:
            (answer,) = answers(
                decide_requests(learners[place], [order(name, key=f"{name}-k{place}" if place else "")])
            )
            return answer

        with ThreadPoolExecutor(8) as threads:
            made = list(threads.map(ask, range(8)))

        assert len({each.decision.id for each in made}) == 1
        assert len(learner.playbook.ledger.transaction_events([name])[name].records) == 1


def test_a_key_that_was_answered_with_a_known_decision_is_kept(learner: Learner) -> None:
    decide_requests(learner, [order()])
    (again,) = answers(decide_requests(learner, [order(key="k"), order(key="k")])[:1])
    (other,) = decide_requests(learner, [order(amount=11, key="k")])

    assert again.repeated
    assert isinstance(other, RequestReused)


def test_another_key_decides_changed_facts_again(learner: Learner) -> None:
    first, second = answers(decide_requests(learner, [order(key="k1"), order(amount=99, key="k2")]))

    assert first.decision.id != second.decision.id
    assert not second.repeated


def test_keys_of_callers_are_apart(learner: Learner) -> None:
    one, other = answers(
        decide_requests(learner, [order("t1", key="b:c", caller="a"), order("t2", key="c", caller="a:b")])
    )

    assert one.decision.id != other.decision.id


def test_an_archived_transaction_is_decided_anew_whatever_its_content(learner: Learner, tmp_path: Path) -> None:
    ledger = learner.playbook.ledger
    if not isinstance(ledger, SqlLedger):
        pytest.skip("decisions in memory are not archived")
    decided = [order(), order("t2"), order("t3", key="k"), order("t4")]
    decide_requests(learner, decided[:3])
    soon = learner.playbook.clock() + timedelta(days=1)
    archive_decisions(ledger, soon, tmp_path / "old", with_pending=True, who="ana")
    (kept,) = answers(decide_requests(learner, decided[3:]))
    same, other, other_of_key, again = answers(
        decide_requests(learner, [order(), order("t2", 11), order("t3", 11, key="k"), order("t4")])
    )

    assert [each.repeated for each in (same, other, other_of_key, again)] == [False, False, False, True]
    assert again.decision.id == kept.decision.id
    assert [answer.repeated for answer in answers(decide_requests(learner, [order("t2", 11)]))] == [True]
    made = learner.playbook.ledger.transaction_events(["t1", "t2", "t3", "t4"])
    assert [len(each.records) for each in made.values()] == [1, 1, 1, 1]
