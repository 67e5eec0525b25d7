"""Texts are read once, reading them anew is asked for, and hearing costs the same however long the ledger is."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from tests.learning.traffic import traffic
from tests.storage.replaying import matches_replay

from acefraud.core.events import Reread
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Case, Transaction
from acefraud.datasets import load_dataset
from acefraud.datasets.world import WorldOptions
from acefraud.engine.options import LearnerOptions
from acefraud.facts import extraction as facts
from acefraud.facts.extraction import READER
from acefraud.facts.text import TextFacts, read_facts
from acefraud.learning.learner import Learner
from acefraud.storage import open_playbook
from acefraud.storage.driver import Driver
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.sqlite import SqliteLedger

pytestmark = pytest.mark.wide

WORLD = load_dataset("complex_fraud_detection", seed=9, options=WorldOptions(transactions=300))
NEVER = 10**9
QUIET = LearnerOptions(review_least=NEVER, review_at_last=NEVER, watch_every=NEVER)


class Reader:
    """Counts the texts that are read; what it finds in them can be added to."""

    def __init__(self) -> None:
        self.read = 0
        self.more: dict[str, bool] = {}

    def __call__(self, text: str) -> TextFacts:
        self.read += 1
        found = read_facts(text)
        return replace(found, facts={**found.facts, **self.more})


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    reader = Reader()
    monkeypatch.setattr(facts, "_read", lru_cache(reader))
    return reader


async def live(learner: Learner, cases: Any) -> None:
    decided = [case.transaction for case in cases]
    await learner.decide_all(decided)
    await learner.hear_all(
        [Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud) for case in cases], decided
    )


@pytest.fixture(scope="module")
def path_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("read") / "book.db"
    with open_playbook(found) as book:
        learner = Learner(book)
        learner.study(WORLD.train[:120])
        asyncio.run(live(learner, WORLD.test[:60]))
        asyncio.run(learner.decide(WORLD.test[70].transaction))
    return found


@pytest.fixture
def path(path_once: Path, tmp_path: Path) -> Path:
    """A file in which texts were studied, decided and heard of; the outcome of one decision is still to come."""
    return Path(shutil.copy(path_once, tmp_path))


# --- texts are read once ------------------------------------------------------------------------------------------


def test_opening_hearing_and_reviewing_read_no_text(path: Path, reader: Reader) -> None:
    """Before, the first outcome that a process heard made it read every remembered text anew."""
    assert WORLD.test[70].transaction.text
    with open_playbook(path) as book:
        learner = Learner(book)
        outcome = Outcome(transaction_id=WORLD.test[70].transaction.id, is_fraud=WORLD.test[70].is_fraud)
        heard = asyncio.run(learner.hear(outcome))
        assert not heard.already_known
        reviewed = learner.review()
        assert reviewed.cases == len(learner.remembered()) == 181
        assert learner.remembered().from_texts
    assert reader.read == 0


def test_a_text_is_read_when_it_is_decided_and_not_when_its_outcome_comes(reader: Reader) -> None:
    learner, transaction = Learner(BulletPlaybook()), WORLD.test[0].transaction
    asyncio.run(learner.decide(transaction))
    assert reader.read == 1
    facts._read.cache_clear()
    asyncio.run(learner.hear(Outcome(transaction_id=transaction.id, is_fraud=True), transaction))
    learner.remembered()
    assert reader.read == 1


def test_facts_stay_as_they_were_when_a_transaction_was_decided(reader: Reader) -> None:
    learner, transaction = Learner(BulletPlaybook()), WORLD.test[0].transaction
    decision = asyncio.run(learner.decide(transaction))
    reader.more["new_to_this_reader"] = True
    facts._read.cache_clear()
    asyncio.run(learner.hear(Outcome(transaction_id=transaction.id, is_fraud=True), transaction))
    assert learner.remembered().facts.row(0) == decision.facts
    assert decision.reader == READER


# --- another reader -----------------------------------------------------------------------------------------------


def rereads(book: BulletPlaybook) -> list[Reread]:
    return [event.payload for event in book.ledger.read() if isinstance(event.payload, Reread)]


def with_fact(learner: Learner) -> int:
    """Remembered cases in which the newer reader's fact is known."""
    remembered = learner.remembered()
    return sum("new_to_this_reader" in remembered.facts.row(index) for index in range(len(remembered)))


@pytest.fixture
def newer(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """A reader of a later version, which finds one more fact in every text."""
    reader.more["new_to_this_reader"] = True
    monkeypatch.setattr("acefraud.learning.reviewer.READER", "3")
    return reader


def test_a_newer_reader_changes_nothing_until_that_is_asked_for(path: Path, newer: Reader) -> None:
    with open_playbook(path) as book:
        learner = Learner(book)
        before = learner.remembered().facts.row(0)
        learner.review()
        assert learner.remembered().facts.row(0) == before
        assert with_fact(learner) == newer.read == 0
        assert rereads(book) == []


def test_reading_anew_replaces_facts_and_other_learners_notice(path: Path, newer: Reader) -> None:
    with open_playbook(path) as one, open_playbook(path) as other:
        mine, theirs = Learner(one), Learner(other)
        order = theirs.remembered().ids.tolist()
        assert with_fact(theirs) == 0
        event = mine.reread()
        assert (event.reader, event.cases, event.changed) == ("3", 180, 180)
        assert rereads(one) == [event]
        assert with_fact(mine) == 180
        assert {row.reader for row in one.ledger.remembered(NEVER)} == {"3"}
        reviewed = theirs.review()
        assert reviewed.cases == with_fact(theirs) == 180
        assert theirs.remembered().ids.tolist() == order, "their places stay"
        one.refresh()
        assert matches_replay(one)
        count = newer.read
        again = mine.reread()
        assert (again.cases, again.changed, newer.read) == (0, 0, count), "all were read by this one"
        whole = mine.reread(everything=True)
        assert (whole.cases, whole.changed) == (180, 0)
    with open_playbook(path) as book:
        assert with_fact(Learner(book)) == 180


def test_records_are_not_read_anew(newer: Reader) -> None:
    learner = Learner(BulletPlaybook(), options=QUIET)
    record = Transaction(id="record", facts={"amount": 5.0})
    asyncio.run(live(learner, [Case(transaction=record, is_fraud=True)]))
    event = learner.reread()
    assert (event.cases, event.changed, newer.read) == (0, 0, 0)
    assert learner.remembered().facts.row(0) == {"amount": 5.0}


# --- what hearing costs -------------------------------------------------------------------------------------------


def counted(patch: pytest.MonkeyPatch) -> list[str]:
    """The statements that reach the database from now on."""
    found: list[str] = []
    ask, run_many = Driver.ask, Driver.run_many

    def asked(self: Driver, query: str, values: Sequence[Any] = ()) -> Any:
        found.append(query)
        return ask(self, query, values)

    def ran(self: Driver, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        found.append(statement)
        run_many(self, statement, rows)

    patch.setattr(Driver, "ask", asked)
    patch.setattr(Driver, "run_many", ran)
    return found


def cost_of_one_outcome(path: Path, events: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that hearing of one decided transaction takes, in a file of so many events."""
    stream = traffic(events, 91)
    with open_playbook(path) as book:
        book.add_bullet('channel_used is "web": decline')
        learner = Learner(book, options=QUIET)
        for start in range(0, events, 500):
            some = stream.part(slice(start, start + 500))
            asyncio.run(learner.hear_all(some.outcomes, some.rows))
    new = traffic(2, 92).rows
    with open_playbook(path) as book, monkeypatch.context() as patch:
        learner = Learner(book, options=QUIET)
        asyncio.run(learner.decide_all(new))
        asyncio.run(learner.hear(Outcome(transaction_id=new[0].id, is_fraud=True)))

        def refused(*_: object, **__: object) -> None:
            raise AssertionError("remembered cases were read")

        patch.setattr(SqliteLedger, "remembered", refused)
        patch.setattr(SqliteLedger, "known_cases", refused)
        statements = counted(patch)
        heard = asyncio.run(learner.hear(Outcome(transaction_id=new[1].id, is_fraud=True)))
        assert not heard.already_known
        assert heard.review is None
        found = list(statements)
        assert book.ledger.last_seq() == events + 5
    return found


def test_hearing_costs_the_same_however_long_the_ledger_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = cost_of_one_outcome(tmp_path / "short.db", 200, monkeypatch)
    long = cost_of_one_outcome(tmp_path / "long.db", 5_000, monkeypatch)
    assert short == long
    assert 0 < len(short) <= 20, short
