"""Files of earlier schemas: their cases can be learnt from, and their counters are what the events give."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from tests.storage.replaying import cases_of, matches_replay

from acefraud.core.events import BulletCredited, Credit, OutcomeHeard
from acefraud.core.outcome import Judgement, Outcome, Ruling
from acefraud.core.transaction import Case, Transaction
from acefraud.facts import extraction as facts_module
from acefraud.facts.extraction import READER, facts_of
from acefraud.facts.text import TextFacts, read_facts
from acefraud.learning.learner import Learner
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.sqlite import SqliteLedger
from acefraud.support.timestamps import UNKNOWN, micros_of

EARLIER = sorted(dump for dump in (Path(__file__).parent / "released").glob("*.sql") if dump.stem < "0004")
READ_THEN = {"amount": 55.5, "something_read_long_ago": True}
"""What the reader of that time made of a text, which is not what the reader of today makes of it."""
TOLD = "User attempts $5,000 purchase with a VPN from a new device"


def text(name: str) -> Case:
    return Case(transaction=Transaction(id=name, text=f"{TOLD}, order {name}"), is_fraud=True)


@pytest.fixture
def facts_only(sample: Any) -> Case:
    transaction = Transaction(id="facts", time=sample.at, facts={"amount": 300, "usual_amount": 60})
    return Case(transaction=transaction, is_fraud=False)


def credited(helpful: int, fired: int, revised: bool = False) -> OutcomeHeard:
    return OutcomeHeard(
        kind="outcome_revised" if revised else "outcome_heard",
        outcome=Outcome(transaction_id="t9", is_fraud=True),
        judgement=Judgement(ruling=Ruling.CORRECT),
        credits=(Credit(bullet_id="b1", helpful=helpful, selected=1, fired=fired, fired_frauds=fired),),
    )


@pytest.fixture(params=EARLIER, ids=lambda dump: dump.stem)
def path(request: pytest.FixtureRequest, tmp_path: Path, sample: Any, facts_only: Case) -> Path:
    """A file of an earlier schema with cases of every sort, one of them decided twice, and counters with revisions."""

    def decided(number: int, facts: dict[str, Any]) -> dict[str, Any]:
        made = sample.decision(f"d-{number}").decision
        decision = made.model_copy(update={"transaction": text("decided").transaction, "facts": facts})
        content = decision.model_dump(mode="json", exclude={"reader"})
        return {"kind": "decision_made", "decision": content}

    def happened(what: BulletCredited | OutcomeHeard) -> dict[str, Any]:
        return what.model_dump(mode="json", exclude={"remembered"})

    events = [
        ("decided", decided(1, {"amount": 1.0})),
        ("decided", decided(2, READ_THEN)),
        ("t9", happened(credited(helpful=2, fired=1))),
        ("t9", happened(credited(helpful=-9, fired=-1, revised=True))),
        ("b1", happened(BulletCredited(credit=Credit(bullet_id="b1", helpful=1, selected=1)))),
        ("t9", happened(credited(helpful=3, fired=1, revised=True))),
    ]
    file = tmp_path / "playbook.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executescript(request.param.read_text())
        for seq, (subject, body) in enumerate(events, 5):
            row = (seq, body["kind"], subject, None, sample.at.isoformat(), "ana", "", json.dumps(body))
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        for seq, case in enumerate([text("decided"), text("undecided"), facts_only], 2):
            case_row = (case.transaction.id, seq, case.is_fraud, None, case.model_dump_json())
            connection.execute("INSERT INTO cases VALUES (?, ?, ?, ?, ?)", case_row)
    return file


@pytest.fixture
def texts_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the reader is handed, one after the other."""
    seen: list[str] = []

    def counting(told: str) -> TextFacts:
        seen.append(told)
        return read_facts(told)

    monkeypatch.setattr(facts_module, "_read", lru_cache(counting))
    return seen


def test_cases_bring_the_facts_of_their_latest_decision_and_others_wait_to_be_read(
    path: Path, facts_only: Case, sample: Any
) -> None:
    with SqliteLedger.open(path) as ledger:
        first, decided, undecided, given = ledger.remembered(9)
        assert [first.id, first.reader] == ["t1", "0"]
        assert (decided.facts, decided.reader, decided.has_text, decided.time) == (READ_THEN, "0", True, UNKNOWN)
        assert (undecided.facts, undecided.reader, undecided.has_text, undecided.is_fraud) == ({}, "", True, True)
        assert (given.facts, given.reader, given.has_text) == (facts_only.transaction.facts, "", False)
        assert given.time == micros_of(sample.at)
        assert cases_of(ledger) == [sample.case("t1", is_fraud=True), text("decided"), text("undecided"), facts_only]


def test_counters_of_an_earlier_file_are_what_its_events_say_one_by_one(path: Path) -> None:
    with BulletPlaybook(SqliteLedger.open(path)) as playbook:
        (bullet,) = playbook.snapshot().bullets.values()
        # 2, then 9 taken back of 2, then 1 and 3: what is below zero is forgotten.
        assert (bullet.helpful_count, bullet.times_selected) == (4, 4)
        assert (bullet.record.support, bullet.record.frauds) == (1, 1)
        assert matches_replay(playbook)
        playbook.update_stats("b1", is_helpful=True)
        assert matches_replay(playbook)
    with BulletPlaybook(SqliteLedger.open(path)) as again:
        assert again.snapshot().bullets["b1"].helpful_count == 5
        assert matches_replay(again)


def test_what_nobody_read_is_read_once_and_kept(path: Path, facts_only: Case, texts_read: list[str]) -> None:
    with BulletPlaybook(SqliteLedger.open(path)) as playbook:
        remembered = Learner(playbook).remembered()
        assert texts_read == [text("undecided").transaction.text]
        assert remembered.ids.tolist() == ["t1", "decided", "undecided", "facts"]
        assert remembered.facts.row(1) == READ_THEN, "what was decided on stays as it was"
        assert remembered.facts.row(2) == facts_of(text("undecided").transaction).facts
        assert remembered.facts.row(3) == facts_of(facts_only.transaction).facts
        assert remembered.facts.row(3)["amount_to_usual"] == 5.0
        assert [each.reader for each in playbook.ledger.remembered(9)] == ["0", "0", READER, READER]

    texts_read.clear()
    facts_module._read.cache_clear()
    with BulletPlaybook(SqliteLedger.open(path)) as again:
        once_more = Learner(again).remembered()
        assert texts_read == []
        assert [once_more.facts.row(index) for index in range(4)] == [remembered.facts.row(index) for index in range(4)]


def test_reading_again_reaches_what_was_decided_on_too(path: Path, texts_read: list[str]) -> None:
    with BulletPlaybook(SqliteLedger.open(path)) as playbook:
        event = Learner(playbook).reread()
        assert sorted(texts_read) == sorted({text("decided").transaction.text, text("undecided").transaction.text})
        assert (event.reader, event.cases, event.changed) == (READER, 2, 2)
        assert {each.id: each.reader for each in playbook.ledger.remembered(9) if each.has_text} == {
            "decided": READER,
            "undecided": READER,
        }
        assert matches_replay(playbook)
