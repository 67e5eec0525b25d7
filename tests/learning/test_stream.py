"""A label is never heard before it has arrived, nor before its case was decided."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.decision import Decision
from acefraud.core.outcome import Judgement, Ruling
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.core.transactions import Cases
from acefraud.engine.decider import DecisionList, DecisionSequence
from acefraud.learning.hearing import Heard
from acefraud.learning.learner import Learner
from acefraud.learning.pipeline import label_stream, stream
from acefraud.storage.playbook import BulletPlaybook

START = datetime(2024, 3, 1, tzinfo=UTC)
Happened = tuple[str, str]


class Spy(Learner):
    """Writes down what it is asked, and learns nothing."""

    def __init__(self) -> None:
        super().__init__(BulletPlaybook())
        self.happened: list[Happened] = []

    async def decide_all(self, transactions: Any) -> DecisionSequence:
        transactions = list(transactions)
        self.happened.extend(("decide", transaction.id) for transaction in transactions)
        return DecisionList(
            [
                Decision(
                    id=transaction.id,
                    transaction=transaction,
                    verdict=Verdict.APPROVE,
                    probability=0.1,
                    threshold=0.5,
                    base=0,
                    revision=0,
                )
                for transaction in transactions
            ]
        )

    async def hear_all(
        self,
        outcomes: Any,
        transactions: Any = None,  # noqa: ARG002
    ) -> list[Heard]:
        outcomes = list(outcomes)
        self.happened.extend(("hear", outcome.transaction_id) for outcome in outcomes)
        return [Heard(Judgement(ruling=Ruling.CORRECT)) for _ in outcomes]


def lived(learner: Learner, cases: list[Case], **more: Any) -> list[Decision]:
    return asyncio.run(stream(learner, Cases.of(cases), Cases.of([]), **more))


def case(place: int, hour: int | None, delay: int | None) -> Case:
    time = None if hour is None else START + timedelta(hours=hour)
    known = None if delay is None else (time or START) + timedelta(hours=delay)
    transaction = Transaction(id=f"c{place}", time=time, facts={"amount": place})
    return Case(transaction=transaction, is_fraud=bool(place % 2), known_at=known)


hours = st.none() | st.integers(0, 30)
delays = st.none() | st.integers(-5, 40)


@given(st.lists(st.tuples(hours, delays), max_size=20), st.booleans())
def test_no_label_is_heard_too_early(times: list[tuple[int | None, int | None]], in_order: bool) -> None:
    if in_order:
        times = sorted(times, key=lambda one: -1 if one[0] is None else one[0])
    cases = [case(index, hour, delay) for index, (hour, delay) in enumerate(times)]
    spy = Spy()
    decisions = lived(spy, cases)
    assert [decision.id for decision in decisions] == [each.transaction.id for each in cases]
    by_id = {each.transaction.id: each for each in cases}
    heard = [name for what, name in spy.happened if what == "hear"]
    assert len(heard) == len(set(heard))
    for at, (what, name) in enumerate(spy.happened):
        if what == "decide":
            continue
        assert ("decide", name) in spy.happened[:at]
        label = by_id[name]
        if label.transaction.time is None:
            continue
        # What is decided next tells the time: the label was there by then.
        following = next(by_id[other].transaction.time for kind, other in spy.happened[at:] if kind == "decide")
        assert following is not None
        assert label.transaction.time <= following
        assert label.known_at is None or label.known_at <= following


@given(st.lists(st.tuples(hours, delays), max_size=20), st.booleans())
def test_deciding_several_at_once_changes_nothing(times: list[tuple[int | None, int | None]], late: bool) -> None:
    times = sorted(times, key=lambda one: -1 if one[0] is None else one[0])
    cases = Cases.of([case(index, hour, delay) for index, (hour, delay) in enumerate(times)])
    decide = range(len(cases) // 3 if late else 0, len(cases))

    def steps(batch: int) -> list[tuple[str, int]]:
        found = label_stream(cases, decide=decide, hear=range(decide.start), batch=batch)
        return [(what, at) for what, places in found for at in places.tolist()]

    assert steps(64) == steps(1)


@given(st.lists(st.tuples(hours, delays), max_size=20), st.integers(1, 7))
def test_labels_that_wait_for_the_end_of_a_batch_come_after_it(
    times: list[tuple[int | None, int | None]], batch: int
) -> None:
    times = sorted(times, key=lambda one: -1 if one[0] is None else one[0])
    cases = Cases.of([case(index, hour, delay) for index, (hour, delay) in enumerate(times)])
    decided: list[int] = []
    for what, places in label_stream(cases, decide=range(len(cases)), batch=batch, early=False):
        if what == "decide":
            decided += places.tolist()
        else:
            assert set(places.tolist()) <= set(decided)
        assert len(places) <= batch
    assert decided == [*range(len(cases))]


def test_every_label_that_arrived_is_heard_before_the_next_decision_in_order_of_arrival() -> None:
    cases = [case(0, 0, 5), case(1, 1, 2), case(2, 3, 1), case(3, 4, 90), case(4, 6, 0)]
    spy = Spy()
    lived(spy, cases)
    assert [f"{what} {name}" for what, name in spy.happened] == [
        "decide c0",
        "decide c1",
        "hear c1",
        "decide c2",
        "hear c2",
        "decide c3",
        "hear c0",
        "decide c4",
    ]


def test_without_times_a_label_comes_right_after_its_decision_and_vanilla_hears_none() -> None:
    cases = [case(index, None, None) for index in range(3)]
    spy, vanilla = Spy(), Spy()
    lived(spy, cases)
    assert [what for what, _ in spy.happened] == ["decide", "hear"] * 3
    lived(vanilla, cases, learns=False)
    assert [what for what, _ in vanilla.happened] == ["decide"] * 3


def test_progress_goes_up_to_the_end() -> None:
    told: list[float] = []
    lived(Spy(), [case(index, None, None) for index in range(4)], progress=told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("delay", [None, 0, 7])
def test_flipping_a_label_changes_no_decision_made_before_it_was_heard(toy: Any, delay: int | None) -> None:
    cases = toy.cases(90, delay=delay)

    def decided(cases: list[Case]) -> list[Decision]:
        return lived(Learner(BulletPlaybook()), cases)

    whole = decided(cases)
    assert any(decision.cited for decision in whole), "nothing was learnt, so nothing could leak"
    for at in (89, 40):
        flipped = list(cases)
        flipped[at] = cases[at].model_copy(update={"is_fraud": not cases[at].is_fraud})
        unaffected = at + max(1, delay or 0)
        again = decided(flipped)
        assert again[:unaffected] == whole[:unaffected]
        assert (again != whole) == (unaffected < len(cases))  # from then on it does make a difference
