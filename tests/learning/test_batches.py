"""Outcomes in one batch or one by one count the same; a call that raises has recorded nothing."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.learning.traffic import traffic
from tests.storage.replaying import cases_of, matches_replay

from acefraud.core.events import Event, OutcomeHeard
from acefraud.core.ledger import Entry
from acefraud.core.outcome import Outcome, OutcomeSource
from acefraud.core.transaction import Transaction
from acefraud.datasets import SchemaMapping
from acefraud.engine.options import LearnerOptions
from acefraud.errors import InputError, StoreError
from acefraud.facts.history import HistoryPlan
from acefraud.learning.hearing import Heard
from acefraud.learning.learner import Learner
from acefraud.storage import open_playbook
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.timestamps import NaiveTimeWarning

NEVER = 10**9
QUIET = LearnerOptions(review_least=NEVER, review_at_last=NEVER, watch_every=NEVER)
Opened = Callable[[], AbstractContextManager[BulletPlaybook]]


@pytest.fixture(params=["memory", "file"])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """A new playbook at each call."""
    if request.param == "memory":
        return lambda: nullcontext(BulletPlaybook())
    return lambda: open_playbook(tmp_path_factory.mktemp("books") / "book.db")


# --- one batch, or one by one -------------------------------------------------------------------------------------

DECIDED, HANDED_OVER, UNKNOWN = range(4), range(4, 7), range(7, 9)
"""Transactions that were decided before, that come with their outcome, and that nobody knows."""


def transaction(place: int) -> Transaction:
    return Transaction(id=f"t{place}", facts={"amount": 400.0 * place, "vpn": place % 2 == 0})


said = st.builds(
    Outcome,
    transaction_id=st.integers(0, 8).map(lambda place: f"t{place}"),
    is_fraud=st.booleans(),
    source=st.sampled_from([OutcomeSource.LABEL, OutcomeSource.CHARGEBACK, OutcomeSource.JUDGE]),
    id=st.sampled_from(["", "", "first", "second"]),
).map(lambda one: one.model_copy(update={"id": f"{one.transaction_id}-{one.id}"}) if one.id else one)


async def together(learner: Learner, outcomes: Sequence[Outcome], about: Sequence[Transaction | None]) -> list[Heard]:
    return await learner.hear_all(outcomes, about)


async def in_turn(learner: Learner, outcomes: Sequence[Outcome], about: Sequence[Transaction | None]) -> list[Heard]:
    return [await learner.hear(outcome, each) for outcome, each in zip(outcomes, about, strict=True)]


async def lived(learner: Learner, first: Sequence[Outcome], second: Sequence[Outcome], hear: Any) -> list[Heard]:
    """Some are decided, outcomes come in, the others are decided, and outcomes come in again."""
    await learner.decide_all([transaction(at) for at in DECIDED])
    handed_over = {f"t{at}": transaction(at) for at in HANDED_OVER}
    heard = await hear(learner, first, [handed_over.get(each.transaction_id) for each in first])
    await learner.decide_all(list(handed_over.values()))
    return [*heard, *await hear(learner, second, [None] * len(second))]


@settings(max_examples=settings().max_examples // 4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.lists(said, max_size=14), second=st.lists(said, max_size=8))
def test_one_batch_counts_as_one_by_one(opened: Opened, first: list[Outcome], second: list[Outcome]) -> None:
    """Duplicates, revisions, confirmations, opinions of a judge and outcomes before their decision included."""
    found = []
    for hear in (together, in_turn):
        with opened() as playbook:
            for content in ("amount > 1000 and VPN: decline", "VPN: decline", "amount < 900: approve"):
                playbook.add_bullet(content)
            learner = Learner(playbook, options=QUIET)
            heard = asyncio.run(lived(learner, first, second, hear))
            kept, remembered = playbook.ledger.remembered(100), learner.remembered()
            found.append(
                {
                    "heard": heard,
                    "events": [
                        event.payload for event in playbook.ledger.read() if isinstance(event.payload, OutcomeHeard)
                    ],
                    "bullets": [b.model_dump(exclude={"added_at"}) for b in playbook.snapshot().bullets.values()],
                    "state": playbook.learning(),
                    "kept": [(row.id, row.is_fraud, row.reader, dict(row.facts)) for row in kept],
                    "remembered": (remembered.ids.tolist(), remembered.labels.tolist()),
                }
            )
            assert matches_replay(playbook)
    assert found[0] == found[1]


HISTORY = SchemaMapping(
    amount="amount",
    ignore=("card_id",),
    history=HistoryPlan(entities=("card_id",), windows=("24h",), label_patience="20d"),
).describe()


def test_in_a_batch_each_outcome_counts_for_the_history_of_those_after_it(opened: Opened) -> None:
    start = datetime.fromisoformat("2024-03-01T00:00:00+00:00")
    payments = [
        Transaction(id=f"p{n}", time=start + timedelta(hours=n), facts={"amount": 5.0}, entities={"card_id": "c"})
        for n in range(6)
    ]
    outcomes = [
        Outcome(transaction_id=payment.id, is_fraud=n % 2 == 0, at=payment.time) for n, payment in enumerate(payments)
    ]
    found = []
    for hear in (together, in_turn):
        with opened() as playbook:
            learner = Learner(playbook, options=QUIET)
            learner.study((), mapping=HISTORY, both_labels=False)
            asyncio.run(hear(learner, outcomes, payments))
            found.append([dict(row.facts) for row in playbook.ledger.remembered(100)])
    assert found[0] == found[1]
    assert [facts["card_known_frauds_24h"] for facts in found[0]] == [0.0, 1.0, 1.0, 2.0, 2.0, 3.0]


# --- a call that raises -------------------------------------------------------------------------------------------


class Fragile(MemoryLedger):
    """A ledger whose disk is full after so many more appends."""

    left = NEVER

    def append(self, entry: Entry) -> list[Event]:
        if self.left <= 0:
            raise StoreError("the disk is full")
        self.left -= 1
        return super().append(entry)


def unchanged(learner: Learner, call: Any, error: type[Exception], match: str) -> None:
    """A call raises, and everything is as before."""
    ledger = learner.playbook.ledger
    before = ledger.last_seq(), learner.playbook.snapshot(), learner.playbook.learning(), cases_of(ledger)
    with pytest.raises(error, match=match):
        asyncio.run(call)
    assert (ledger.last_seq(), learner.playbook.snapshot(), learner.playbook.learning(), cases_of(ledger)) == before
    assert matches_replay(learner.playbook)


def test_an_outcome_of_another_transaction_is_refused(toy: Any, opened: Opened) -> None:
    with opened() as playbook:
        learner = Learner(playbook)
        asyncio.run(learner.decide(toy.transaction("t1")))
        words = "the outcome is of 't1', the transaction is 't2'"
        wrong = Outcome(transaction_id="t1", is_fraud=True)
        unchanged(learner, learner.hear(wrong, toy.transaction("t2")), InputError, words)
        fine = Outcome(transaction_id="t3", is_fraud=True)
        batch = [toy.transaction("t3"), toy.transaction("t2")]
        unchanged(learner, learner.hear_all([fine, wrong], batch), InputError, words)


def test_outcomes_and_transactions_of_different_number_are_refused(toy: Any, opened: Opened) -> None:
    with opened() as playbook:
        learner = Learner(playbook)
        outcomes = [Outcome(transaction_id=f"t{n}", is_fraud=True) for n in range(3)]
        for given in ([toy.transaction("t0")], [], [toy.transaction(f"t{n}") for n in range(4)]):
            words = f"3 outcomes and {len(given)} transactions"
            unchanged(learner, learner.hear_all(outcomes, given), InputError, words)


def test_a_store_that_fails_leaves_nothing_of_a_batch(toy: Any) -> None:
    ledger = Fragile()
    learner = Learner(BulletPlaybook(ledger))
    cases = toy.cases(30)
    asyncio.run(learner.decide_all([case.transaction for case in cases]))
    ledger.left = 0
    outcomes = [Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud) for case in cases]
    unchanged(learner, learner.hear(outcomes[0]), StoreError, "the disk is full")
    unchanged(learner, learner.hear_all(outcomes), StoreError, "the disk is full")
    unchanged(learner, learner.decide(toy.transaction("new")), StoreError, "the disk is full")
    assert len(learner.remembered()) == 0
    ledger.left = NEVER
    assert not any(heard.already_known for heard in asyncio.run(learner.hear_all(outcomes)))
    assert len(learner.remembered()) == 30


# --- a review that fails ------------------------------------------------------------------------------------------


def test_what_goes_wrong_in_a_review_is_told_and_the_outcomes_are_kept(toy: Any, monkeypatch: Any) -> None:
    learner = Learner(BulletPlaybook())
    stream = traffic(400, 81, share=0.1)

    def failing(*_: object, **__: object) -> None:
        raise InputError("no idea what to make of it")

    monkeypatch.setattr("acefraud.learning.reviewer.review", failing)
    (*others, last) = asyncio.run(learner.hear_all(stream.outcomes, stream.rows))
    assert last.review is not None
    assert last.review.declined == "no idea what to make of it"
    assert not any(other.review for other in others)
    assert len(cases_of(learner.playbook.ledger)) == learner.playbook.outcomes == 400
    told = [event.payload for event in learner.playbook.ledger.read() if event.payload.kind == "reviewed"]
    assert told == [last.review]
    monkeypatch.undo()
    assert asyncio.run(learner.hear_all(traffic(1, 82).outcomes, traffic(1, 82).rows))[0].review is None
    again = traffic(400, 84, share=0.1)
    (*_, later) = asyncio.run(learner.hear_all(again.outcomes, again.rows))
    assert later.review is not None, "it is tried again when the next one is due, not at every outcome"
    assert later.review.added


def test_a_review_that_cannot_be_written_is_told_and_changes_nothing(toy: Any) -> None:
    ledger = Fragile()
    learner = Learner(BulletPlaybook(ledger))
    stream = traffic(400, 83, share=0.1)
    ledger.left = 1  # the outcomes still fit
    (*_, last) = asyncio.run(learner.hear_all(stream.outcomes, stream.rows))
    assert last.review is not None
    assert last.review.declined == "the disk is full"
    assert len(learner.playbook) == 0
    assert (ledger.last_seq(), learner.playbook.outcomes) == (400, 400)
    assert matches_replay(learner.playbook)


# --- times without a zone -----------------------------------------------------------------------------------------


@pytest.fixture
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NaiveTimeWarning)
        yield


def test_a_time_without_a_zone_is_utc_and_said_to_be() -> None:
    with pytest.warns(NaiveTimeWarning, match="read as UTC"):
        one = Transaction(id="t", time=datetime(2024, 3, 1, 9, 30), facts={"amount": 5.0})
    assert one.time == datetime.fromisoformat("2024-03-01T09:30:00+00:00")


@pytest.mark.usefixtures("_no_warnings")
def test_times_with_and_without_a_zone_go_together(toy: Any, tmp_path: Path) -> None:
    """Before, they could not be compared: of 200 outcomes 56 were recorded by calls that raised a TypeError."""
    with open_playbook(tmp_path / "book.db") as playbook:
        learner = Learner(playbook)
        heard = []
        for n, case in enumerate(toy.cases(200, delay=1)):
            time = case.transaction.time.replace(tzinfo=None) if n % 2 else case.transaction.time
            told = Transaction(id=case.transaction.id, time=time, facts=case.transaction.facts)
            assert asyncio.run(learner.decide(told)).transaction.time == case.transaction.time
            at = case.known_at.replace(tzinfo=None) if n % 3 else case.known_at
            heard.append(
                asyncio.run(learner.hear(Outcome(transaction_id=told.id, is_fraud=case.is_fraud, at=at), told))
            )
        assert sum(not each.already_known for each in heard) == 200
        assert len(learner.remembered()) == playbook.outcomes == 200
        assert learner.remembered().timed
        assert any(each.review and each.review.added for each in heard)
        assert not any(each.review.declined for each in heard if each.review)
