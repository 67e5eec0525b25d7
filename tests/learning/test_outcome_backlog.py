"""Outcomes that are received and judged later: nothing twice, nothing lost, and the same is learnt."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.learning.conftest import Toy
from tests.learning.stores import EACH_STORE, STORES, heard_in_turn, learnt
from tests.storage.replaying import matches_replay

from acefraud.core.condition import Condition
from acefraud.core.context_facts import Feed
from acefraud.core.events import OutcomeHeard, OutcomesTakenIn
from acefraud.core.ledger import Entry
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource, Ruling
from acefraud.core.transaction import Transaction, Verdict
from acefraud.engine.options import LearnerOptions
from acefraud.errors import StoreError
from acefraud.learning.learner import Learner
from acefraud.learning.outcomes import TakenIn
from acefraud.storage.playbook import BulletPlaybook

pytestmark = pytest.mark.wide

EAGER = LearnerOptions(review_least=6, watch_every=40)
Opened = Callable[[], BulletPlaybook]


@pytest.fixture(params=EACH_STORE)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """A new playbook at each call."""
    books: list[BulletPlaybook] = []

    def open_one() -> BulletPlaybook:
        books.append(BulletPlaybook(STORES[request.param](tmp_path_factory.mktemp("books"))))
        return books[-1]

    yield open_one
    for book in books:
        book.close()


def add_bullets(book: BulletPlaybook) -> None:
    for content in ("amount > 2000 and VPN: decline", "VPN: decline", "amount < 100: approve"):
        book.add_bullet(content, who="ana")


@pytest.fixture
def playbook(opened: Opened) -> BulletPlaybook:
    book = opened()
    add_bullets(book)
    return book


def outcome(name: str, is_fraud: bool = True, **more: Any) -> Outcome:
    return Outcome(transaction_id=name, is_fraud=is_fraud, **more)


def heard_of(playbook: BulletPlaybook, name: str) -> list[OutcomeHeard]:
    return playbook.ledger.transaction_events([name])[name].outcomes


def taken_in(playbook: BulletPlaybook) -> list[OutcomesTakenIn]:
    return [event.payload for event in playbook.ledger.read() if isinstance(event.payload, OutcomesTakenIn)]


def test_received_outcomes_are_judged_only_when_they_are_taken_in(playbook: BulletPlaybook, toy: Any) -> None:
    learner = Learner(playbook)
    learner.decide_sync(toy.transaction("t1"))
    learner.receive([outcome("t1", id="o1")], who="the bank")
    assert not any(any(counts) for counts in toy.counters(playbook).values())
    assert playbook.outcomes == 0

    assert learner.take_in_sync() == TakenIn(count=1)
    (heard,) = heard_of(playbook, "t1")
    assert heard.judgement.ruling is Ruling.CORRECT
    assert {counts[2] for counts in toy.counters(playbook).values()} == {0, 1}
    assert len(learner.remembered()) == 1

    before = playbook.ledger.last_seq()
    assert learner.take_in_sync() == TakenIn()
    assert playbook.ledger.last_seq() == before, "looking for outcomes writes nothing"


def traffic_of(playbook: BulletPlaybook, toy: Any, count: int) -> None:
    """Outcomes of decided and undecided transactions, repeats, confirmations, revisions and unknown ones, received."""
    chance, learner = random.Random(3), Learner(playbook, options=EAGER)
    cases = toy.cases(count)
    learner.decide_all_sync([case.transaction for case in cases[: count // 2]])
    reports: list[tuple[Outcome, Transaction | None]] = []
    for index, case in enumerate(cases):
        about = case.transaction if index >= count // 2 else None
        name, fraud = case.transaction.id, case.is_fraud
        reports.append((outcome(name, fraud, id=f"o{index}"), about))
        what = chance.random()
        if what < 0.1:
            reports.append((outcome(name, not fraud, id=f"o{index}-revised"), about))
        elif what < 0.2:
            reports.append((outcome(name, fraud, source=OutcomeSource.CHARGEBACK), about))
        elif what < 0.3:
            reports.append((outcome(f"nobody-{index}", fraud), None))
        elif what < 0.35:
            reports.append((outcome(name, fraud, source=OutcomeSource.JUDGE), about))
    learner.receive([each for each, _ in reports], [about for _, about in reports], who="the bank")


@pytest.fixture(scope="module")
def learnt_in_turn() -> dict[str, Any]:
    """What one process learns from the traffic if it hears each outcome when it is received."""
    playbook = BulletPlaybook()
    add_bullets(playbook)
    traffic_of(playbook, Toy(), 200)
    return learnt(heard_in_turn(playbook, EAGER))


@pytest.mark.parametrize("batch", [1, 7, 64, 1_000])
def test_what_is_learnt_does_not_depend_on_how_many_outcomes_are_taken_in_at_once(
    playbook: BulletPlaybook, toy: Any, batch: int, learnt_in_turn: dict[str, Any]
) -> None:
    traffic_of(playbook, toy, 200)
    learner, count = Learner(playbook, options=EAGER), 0
    while taken := learner.take_in_sync(batch).count:
        count += taken
    found = learnt(playbook)
    assert found == learnt_in_turn
    assert matches_replay(playbook)
    assert count == sum(done.count for done in taken_in(playbook))
    assert len(found["reviews"]) > 3
    assert len(found["bullets"]) > 3


def test_outcomes_of_a_batch_see_the_lists_that_those_before_them_feed(opened: Opened) -> None:
    books, stolen = [], Condition.parse("card in list stolen")
    for batch in (1, 100):
        book = opened()
        book.create_list("stolen", feed=Feed(key="card", days=90), who="ana")
        book.add_bullet("A stolen card", condition=stolen, argues=Verdict.DECLINE, who="ana")
        orders = [Transaction(id=f"t{n}", facts={"amount": 5.0, "card": f"c{n % 3}"}) for n in range(9)]
        learner = Learner(book)
        learner.receive([outcome(order.id, order.id in ("t1", "t2")) for order in orders], orders, who="the bank")
        while learner.take_in_sync(batch).count:
            pass
        books.append(learnt(book))
    assert books[0] == books[1]
    (bullet,) = books[0]["bullets"]
    assert bullet["record"]["support"] > 0, "the list counted for later outcomes"


def test_a_review_is_made_up_for_before_anything_else_is_taken_in(
    playbook: BulletPlaybook, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a process that was killed between recording outcomes and learning from them."""
    traffic_of(playbook, toy, 100)
    killed = Learner(playbook, options=EAGER)

    async def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("acefraud.learning.reviewer.Reviewer.ask_and_review", die)
        with pytest.raises(KeyboardInterrupt):
            killed.take_in_sync()
    assert not learnt(playbook)["reviews"]
    learner = Learner(playbook, options=EAGER)
    assert any(not learner.take_in_sync().left for _ in range(100)), "nothing is left in the end"
    assert learnt(playbook) == learnt(heard_in_turn(playbook, EAGER))


def test_nothing_is_taken_in_while_somebody_else_learns_what_is_due(playbook: BulletPlaybook, toy: Any) -> None:
    traffic_of(playbook, toy, 100)
    learner = Learner(playbook, options=EAGER)
    with playbook.ledger.claim(f"learning {EAGER.node}"):
        first = learner.take_in_sync()
        assert first.left
        assert learner.take_in_sync() == TakenIn(left=True)
    assert any(not learner.take_in_sync().left for _ in range(100)), "nothing is left in the end"
    assert learnt(playbook) == learnt(heard_in_turn(playbook, EAGER))


def test_only_one_process_at_a_time_takes_in_outcomes(playbook: BulletPlaybook) -> None:
    learner = Learner(playbook)
    learner.receive([outcome("t1")], who="the bank")
    with playbook.ledger.claim(f"received outcomes {learner.options.node}"):
        assert learner.take_in_sync() == TakenIn(left=True)
    assert learner.take_in_sync() == TakenIn(count=1)


class Overtaken:
    """A judge during whose work another learner takes in the same outcomes, as if the claim had been lost."""

    def __init__(self, other: Learner) -> None:
        self.other = other
        self.asked = 0

    async def rule(self, input_text: str, output: str, ground_truth: str | None = None) -> Judgement:
        self.asked += 1
        if self.asked == 1:
            assert (await self.other.take_in(2)).count == 2
        return await self.other.judge.rule(input_text, output, ground_truth)

    def presentable(self, text: str, facts: Any) -> str:  # noqa: ARG002
        return text


@pytest.mark.parametrize("known", [False, True])
def test_two_that_take_in_the_same_outcomes_count_them_once(
    playbook: BulletPlaybook, toy: Any, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """The claim only saves work. That nothing is judged twice is ensured by a precondition."""
    monkeypatch.setattr(playbook.ledger, "claim", lambda *_: nullcontext(True))
    other = Learner(BulletPlaybook(playbook.ledger))
    learner = Learner(playbook, judge=Overtaken(other))
    learner.decide_all_sync([toy.transaction(f"t{n}") for n in range(5)])
    learner.receive([outcome(f"t{n}", id=f"o{n}") for n in range(5)], who="the bank")
    if known:  # then there is nothing to write but how far it has come
        other.hear_all_sync([outcome(f"t{n}", id=f"o{n}") for n in range(5)])
    assert learner.take_in_sync().count == 3
    assert [len(heard_of(playbook, f"t{n}")) for n in range(5)] == [1] * 5
    assert sum(done.count for done in taken_in(playbook)) == 5
    assert matches_replay(playbook)


def test_an_outcome_that_was_heard_directly_meanwhile_is_passed_over(playbook: BulletPlaybook, toy: Any) -> None:
    learner = Learner(playbook)
    learner.decide_sync(toy.transaction("t1"))
    learner.receive([outcome("t1", id="o1")], who="the bank")
    assert not learner.hear_sync(outcome("t1", id="o1")).already_known
    counters = toy.counters(playbook)
    assert learner.take_in_sync() == TakenIn(count=1, already_known=1)
    assert toy.counters(playbook) == counters
    assert learner.take_in_sync() == TakenIn()


def test_outcomes_of_other_nodes_are_left_to_their_learners(playbook: BulletPlaybook) -> None:
    here, there = Learner(playbook), Learner(playbook, options=LearnerOptions(node="payouts"))
    for n in range(6):
        (here if n % 3 else there).receive([outcome(f"t{n}")], who="the bank")
    assert [here.take_in_sync(limit=2).count for _ in range(3)] == [2, 2, 0]
    assert [there.take_in_sync(limit=5).count for _ in range(2)] == [2, 0]
    assert [heard_of(playbook, f"t{n}")[0].node for n in range(6)] == [
        "payouts",
        here.options.node,
        here.options.node,
    ] * 2


class Unsure:
    """A judge whose calls fail."""

    async def rule(self, input_text: str, output: str, ground_truth: str | None = None) -> Judgement:  # noqa: ARG002
        return Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="the call failed")

    def presentable(self, text: str, facts: Any) -> str:  # noqa: ARG002
        return text


def test_if_the_judge_fails_the_outcome_is_unjudged_and_taken_in(playbook: BulletPlaybook, toy: Any) -> None:
    learner = Learner(playbook, judge=Unsure())
    learner.decide_sync(toy.transaction("t1"))
    learner.receive([outcome("t1")], who="the bank")
    assert learner.take_in_sync().count == 1
    assert heard_of(playbook, "t1")[0].judgement.ruling is Ruling.UNJUDGED
    assert {counts[:3] for counts in toy.counters(playbook).values()} == {(0, 0, 0)}


def test_a_store_that_fails_loses_nothing(playbook: BulletPlaybook, toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = Learner(playbook)
    learner.decide_sync(toy.transaction("t1"))
    learner.receive([outcome("t1")], who="the bank")
    append = playbook.ledger.append

    def fail(entry: Entry) -> Any:
        if any(isinstance(payload, OutcomesTakenIn) for payload in entry.payloads):
            raise StoreError("the disk is full")
        return append(entry)

    with monkeypatch.context() as patch:
        patch.setattr(playbook.ledger, "append", fail)
        with pytest.raises(StoreError):
            learner.take_in_sync()
    assert heard_of(playbook, "t1") == []
    assert learner.take_in_sync().count == 1
    assert len(heard_of(playbook, "t1")) == 1


# --- outcomes before their decision ------------------------------------------------------------------------------


@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize("directly", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_an_outcome_before_its_decision_counts_for_it_as_one_after_it(
    opened: Opened, toy: Any, described: bool, directly: bool, late: bool
) -> None:
    """Received or heard, with or without its transaction, and whether it was judged before the decision or after."""
    found = []
    for early in (True, False):
        book = opened()
        for content in ("amount > 2000 and VPN: decline", "VPN: decline", "amount < 100: approve"):
            book.add_bullet(content)
        learner = Learner(book, options=LearnerOptions(n_bullets=1))
        about = toy.transaction("t1")
        if not early:
            learner.decide_sync(about)
        if directly:
            learner.hear_sync(outcome("t1", id="o1"), about if described else None)
        else:
            learner.receive([outcome("t1", id="o1")], [about if described else None], who="the bank")
        if early:
            if not late:
                learner.take_in_sync()
            learner.decide_sync(about)
        while learner.take_in_sync().count:
            pass
        assert heard_of(book, "t1")[-1].judgement.ruling is Ruling.CORRECT
        assert learner.remembered().ids.tolist() == ["t1"]
        assert matches_replay(book)
        found.append(toy.counters(book))
    assert found[0] == found[1]


def test_the_latest_of_several_truths_before_a_decision_counts(playbook: BulletPlaybook, toy: Any) -> None:
    learner = Learner(playbook)
    learner.receive([outcome("t1", id="o1"), outcome("t1", False, id="o2")], who="the bank")
    learner.take_in_sync()
    learner.decide_sync(toy.transaction("t1"))
    learner.take_in_sync()
    assert [heard.outcome.id for heard in heard_of(playbook, "t1")] == ["o1", "o2", "o2"]
    assert heard_of(playbook, "t1")[-1].judgement.ruling is Ruling.INCORRECT
    assert learner.hear_sync(outcome("t1", id="o1")).already_known, "delivered again after it was revised"
    assert learner.receive([outcome("t1", id="o1")], who="the bank")[0].already_known


def test_deciding_again_does_not_count_an_outcome_again(playbook: BulletPlaybook, toy: Any) -> None:
    learner = Learner(playbook)
    learner.receive([outcome("t1", id="o1")], who="the bank")
    learner.decide_sync(toy.transaction("t1"))
    learner.take_in_sync()
    counters, outcomes = toy.counters(playbook), playbook.outcomes
    playbook.add_bullet("An emulator: decline")  # another revision makes another decision
    learner.decide_sync(toy.transaction("t1"))
    assert learner.take_in_sync() == TakenIn()
    assert playbook.outcomes == outcomes
    assert {each: counts for each, counts in toy.counters(playbook).items() if each in counters} == counters


def test_a_decision_made_after_an_outcome_was_received_is_not_what_it_is_judged_by(
    playbook: BulletPlaybook, toy: Any
) -> None:
    """Whenever a process comes to an outcome, it is judged by what had been decided when it was received."""
    learner = Learner(playbook)
    first = learner.decide_sync(toy.transaction("t1"))
    learner.receive([outcome("t1", id="o1")], who="the bank")
    playbook.add_bullet("An emulator: decline")
    second = learner.decide_sync(toy.transaction("t1"))
    assert first.id != second.id
    learner.take_in_sync()
    assert [heard.decision_id for heard in heard_of(playbook, "t1")] == [first.id]


def test_decisions_without_an_outcome_before_them_add_no_other_event(playbook: BulletPlaybook, toy: Any) -> None:
    learner = Learner(playbook)
    learner.receive([outcome("elsewhere")], who="the bank")
    before = playbook.ledger.last_seq()
    learner.decide_all_sync([toy.transaction(f"t{n}") for n in range(5)])
    assert playbook.ledger.last_seq() == before + 5


def test_an_outcome_and_its_decision_that_come_at_the_same_time_find_each_other(opened: Opened, toy: Any) -> None:
    """Each is written on condition that the other has not come in between."""
    book = opened()
    book.add_bullet("VPN: decline")
    deciding, hearing = Learner(book), Learner(BulletPlaybook(book.ledger))
    outcome_events = book.ledger.outcome_events

    def heard_meanwhile(ids: Any) -> Any:
        found = outcome_events(ids)
        if not heard_of(book, "t1"):
            hearing.hear_sync(outcome("t1", id="o1"))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book.ledger, "outcome_events", heard_meanwhile)
        deciding.decide_sync(toy.transaction("t1"))
    deciding.take_in_sync()
    assert heard_of(book, "t1")[-1].judgement.ruling is Ruling.CORRECT

    known_cases = book.ledger.known_cases

    def decided_meanwhile(ids: Any) -> Any:
        found = known_cases(ids)
        if "t2" in ids:
            deciding.decide_sync(toy.transaction("t2"))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book.ledger, "known_cases", decided_meanwhile)
        heard = asyncio.run(hearing.hear(outcome("t2", id="o2")))
    assert heard.judgement.ruling is Ruling.CORRECT


def test_a_store_with_a_received_outcome_opens_where_it_was(tmp_path: Path, toy: Any) -> None:
    with BulletPlaybook(STORES["sqlite"](tmp_path)) as book:
        learner = Learner(book)
        learner.receive([outcome(f"t{n}") for n in range(3)], who="the bank")
        learner.take_in_sync(limit=2)
        book.ledger.save_checkpoint(book._state.checkpoint())
    with BulletPlaybook(STORES["sqlite"](tmp_path)) as again:
        assert Learner(again).take_in_sync().count == 1
        assert [len(heard_of(again, f"t{n}")) for n in range(3)] == [1, 1, 1]
