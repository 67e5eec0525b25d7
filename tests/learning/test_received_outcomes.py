"""Outcomes are received once: what was reported before is known, and an id belongs to one outcome."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.learning.stores import EACH_STORE, STORES

from acefraud.core.events import Event, OutcomeReceived
from acefraud.core.outcome import Outcome, OutcomeSource
from acefraud.core.transaction import Transaction
from acefraud.errors import InputError, OutcomeConflict
from acefraud.learning.learner import Learner
from acefraud.storage.playbook import BulletPlaybook


@pytest.fixture(params=EACH_STORE)
def learner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Learner]:
    with BulletPlaybook(STORES[request.param](tmp_path)) as playbook:
        yield Learner(playbook)


def outcome(name: str, is_fraud: bool = True, **more: Any) -> Outcome:
    return Outcome(transaction_id=name, is_fraud=is_fraud, **more)


def received(learner: Learner) -> list[Event]:
    return [event for event in learner.playbook.ledger.read() if isinstance(event.payload, OutcomeReceived)]


def receive(learner: Learner, *outcomes: Outcome) -> list[bool]:
    return [each.already_known for each in learner.receive(outcomes, who="the bank")]


def test_what_was_reported_is_kept_with_who_reported_it(learner: Learner) -> None:
    order = Transaction(id="t1", facts={"amount": 12.0})
    learner.receive([outcome("t1", id="o1"), outcome("t2")], [order, None], who="the bank")
    first, second = received(learner)
    assert first.payload == OutcomeReceived(outcome=outcome("t1", id="o1"), transaction=order)
    assert second.payload == OutcomeReceived(outcome=outcome("t2"))
    assert (first.who, first.at) == ("the bank", second.at)


def test_the_same_outcome_again_is_known_and_not_written(learner: Learner) -> None:
    both = outcome("t1", id="o1"), outcome("t1", False)
    assert receive(learner, *both) == [False, False]
    before = learner.playbook.ledger.last_seq()
    assert receive(learner, *both, *both) == [True] * 4
    assert learner.playbook.ledger.last_seq() == before
    learner.take_in_sync()
    assert receive(learner, *both) == [True, True], "once it was judged too"


def test_an_outcome_that_was_heard_directly_is_known(learner: Learner) -> None:
    learner.hear_sync(outcome("t1", id="o1"))
    learner.hear_sync(outcome("t2"))
    assert receive(learner, outcome("t1", id="o1"), outcome("t2")) == [True, True]


def test_the_same_outcome_twice_in_one_call_is_written_once(learner: Learner) -> None:
    assert receive(learner, outcome("t1", id="o1"), outcome("t1", id="o1"), outcome("t2"), outcome("t2")) == [
        False,
        True,
        False,
        True,
    ]
    assert len(received(learner)) == 2


def test_without_an_id_a_truth_may_be_revised_and_revised_back(learner: Learner) -> None:
    truths = [True, True, False, False, True]
    assert receive(learner, *(outcome("t1", truth) for truth in truths)) == [False, True, False, True, False]
    learner.take_in_sync(limit=2)
    assert receive(learner, outcome("t1", True)) == [True], "the latest one still waits"
    learner.take_in_sync()
    assert receive(learner, outcome("t1", True), outcome("t1", False)) == [True, False]


@pytest.mark.parametrize("how", ["received", "judged", "heard", "in one call"])
@pytest.mark.parametrize(
    "other",
    [
        outcome("t2", id="o1"),
        outcome("t1", False, id="o1"),
        outcome("t1", id="o1", source=OutcomeSource.CHARGEBACK),
        outcome("t1", id="o1", at=datetime(2024, 5, 1, tzinfo=UTC)),
    ],
    ids=["transaction", "label", "source", "time"],
)
def test_the_same_id_with_another_content_is_refused_and_nothing_is_written(
    learner: Learner, how: str, other: Outcome
) -> None:
    first = [outcome("t1", id="o1")]
    if how == "heard":
        learner.hear_sync(first[0])
    elif how != "in one call":
        receive(learner, *first)
    if how == "judged":
        learner.take_in_sync()
    before = learner.playbook.ledger.last_seq()
    said = "'o1' is given twice" if how == "in one call" else "'o1' was received before"
    with pytest.raises(OutcomeConflict, match=said):
        receive(learner, outcome("t9"), *(first if how == "in one call" else ()), other)
    assert learner.playbook.ledger.last_seq() == before


def test_an_outcome_with_the_wrong_transaction_is_refused(learner: Learner) -> None:
    with pytest.raises(InputError, match="the outcome is of 't1', the transaction is 't2'"):
        learner.receive([outcome("t1")], [Transaction(id="t2", facts={"amount": 1.0})], who="the bank")
    with pytest.raises(InputError, match="who"):
        learner.receive([outcome("t1")], who=" ")
    assert received(learner) == []


def test_threads_that_receive_the_same_outcomes_write_each_once(learner: Learner) -> None:
    others = [Learner(BulletPlaybook(learner.playbook.ledger)) for _ in range(4)]
    outcomes = [outcome(f"t{n % 20}", id=f"o{n}") for n in range(40)]

    def report(one: Learner) -> int:
        return sum(not known for n in range(40) for known in receive(one, outcomes[n], outcomes[-n]))

    with ThreadPoolExecutor(4) as threads:
        written = sum(threads.map(report, others))
    assert written == len(received(learner)) == 40
