"""Whether two machines hold and decide the same."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from acefraud import __version__
from acefraud.engine.decider import ENGINE

DIGESTS = ("ledger", "playbook", "decisions")


@pytest.fixture
def decided(trained: Any) -> Any:
    """A playbook with a decision on each row of its history, attested in `here.json`."""
    trained.on_book("decide", "history.csv")
    trained.on_book("attest", "--to", "here.json")
    return trained


@pytest.fixture
def copy(decided: Any) -> Path:
    """The same playbook as another file."""
    return Path(shutil.copy(decided.book, decided.folder / "copy.db"))


def change(file: Path, statement: str, *values: Any) -> None:
    """Change what can never be changed through acefraud."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        assert connection.execute(statement, values).rowcount == 1


def test_the_digests_are_printed_and_written(decided: Any) -> None:
    before = decided.book.read_bytes()
    printed = decided.on_book("attest", "--json").json
    assert json.loads((decided.folder / "here.json").read_text()) == printed
    again = printed["decisions"]
    assert (again["wanted"], again["recorded"], again["made_again"], again["same"]) == (1_000, 80, 80, 80)
    assert (again["first_different"], again["not_repeatable"]) == (None, {})
    assert (printed["format"], printed["acefraud"], printed["engine"]) == (
        "acefraud attestation 1",
        __version__,
        ENGINE,
    )
    assert len(printed["events"]) == 8 * printed["last_event"]
    shown = decided.on_book("attest").out
    for digest in (printed["ledger"], printed["playbook"], again["digest"]):
        assert len(digest) == 64
        assert digest in shown
    assert "80 of 80 made again" in shown
    assert decided.book.read_bytes() == before, "reading writes nothing"


def test_a_sample_or_all_decisions_are_made_again(decided: Any) -> None:
    some, every = (decided.on_book("attest", "--decisions", wanted, "--json").json for wanted in ("7", "all"))
    assert (some["decisions"]["wanted"], some["decisions"]["made_again"]) == (7, 7)
    assert (every["decisions"]["wanted"], every["decisions"]["made_again"]) == (None, 80)
    assert some["decisions"]["digest"] != every["decisions"]["digest"]
    assert decided.on_book("attest", "--decisions", "0", "--json").json["decisions"]["made_again"] == 0
    error = decided.on_book("attest", "--decisions", "most", code=2).err
    assert error == "acefraud: --decisions: expected a number or 'all', got 'most'\n"


def test_a_copy_is_the_same(decided: Any, copy: Path) -> None:
    checked = decided("attest", "--playbook", copy, "--check", "here.json", "--json").json
    assert {name: checked[name] for name in DIGESTS} == dict.fromkeys(DIGESTS, "same")
    assert (checked["first_differing_event"], checked["event"]) == (None, None)


def test_one_changed_byte_names_the_event(decided: Any, copy: Path) -> None:
    change(copy, "UPDATE decisions SET body = replace(body, '\"values\":[', '\"values\":[ ') WHERE seq = 40")
    ran = decided("attest", "--playbook", copy, "--check", "here.json", code=1)
    assert "ledger     different" in ran.out
    assert "playbook   same" in ran.out
    assert "The first of 1 events that differ is 40: decision_made, written 20" in ran.out
    change(copy, "UPDATE events SET body = replace(body, '\"rows\":80', '\"rows\":81') WHERE kind = 'trained'")
    checked = decided("attest", "--playbook", copy, "--check", "here.json", "--json", code=1).json
    assert checked["differing_events"] == 2
    assert (checked["first_differing_event"], checked["event"]["kind"]) == (1, "trained")


def test_a_piece_that_decisions_share_is_covered(decided: Any, copy: Path) -> None:
    change(copy, "UPDATE common SET body = body || ' ' WHERE key = (SELECT setup FROM decisions LIMIT 1)")
    checked = decided("attest", "--playbook", copy, "--check", "here.json", "--json", code=1).json
    assert (checked["ledger"], checked["differing_events"]) == ("different", 80)


def test_an_event_that_is_missing_is_named(decided: Any, copy: Path) -> None:
    change(copy, "DELETE FROM decisions WHERE seq = 30")
    ran = decided("attest", "--playbook", copy, "--check", "here.json", code=1)
    assert "The first of 1 events that differ is 30: there is none here" in ran.out


def test_a_longer_ledger_continues_the_other(decided: Any, copy: Path) -> None:
    decided("learn", "history.csv", "--playbook", copy)
    decided("decide", '{"id": "t1", "amount": 2500, "vpn": true}', "--playbook", copy)
    checked = decided("attest", "--playbook", copy, "--check", "here.json", "--json").json
    assert [checked[name] for name in DIGESTS] == ["continued here", "same", "same"]
    decided("attest", "--playbook", copy, "--to", "there.json")
    ran = decided.on_book("attest", "--check", "there.json")
    assert [line.split(maxsplit=1)[1] for line in ran.out.splitlines()[:3]] == [
        "continued there",
        "not compared",
        "not compared",
    ]
    assert "where one ledger ends and the other continues" in ran.out


def test_a_longer_ledger_that_differs_earlier_is_no_continuation(decided: Any, copy: Path) -> None:
    decided("decide", '{"id": "t1", "amount": 2500, "vpn": true}', "--playbook", copy)
    change(copy, "UPDATE decisions SET why = 'a try' WHERE seq = 20")
    checked = decided("attest", "--playbook", copy, "--check", "here.json", "--json", code=1).json
    assert (checked["ledger"], checked["playbook"], checked["first_differing_event"]) == ("different", "same", 20)
    decided("attest", "--playbook", copy, "--to", "there.json")
    checked = decided.on_book("attest", "--check", "there.json", "--json", code=1).json
    assert (checked["ledger"], checked["first_differing_event"]) == ("different", 20)


def test_who_learnt_the_same_at_another_time_has_the_same_playbook(decided: Any) -> None:
    decided("train", "history.csv", "--playbook", "other.db")
    decided("decide", "history.csv", "--playbook", "other.db")
    checked = decided("attest", "--playbook", "other.db", "--check", "here.json", "--json", code=1).json
    assert [checked[name] for name in DIGESTS] == ["different", "same", "same"]
    assert (checked["first_differing_event"], checked["event"]["kind"]) == (1, "trained")
    decided("playbook", "add", "Amount above $2,900: decline", "--playbook", "other.db")
    checked = decided("attest", "--playbook", "other.db", "--check", "here.json", "--json", code=1).json
    assert checked["playbook"] == "different"


def test_a_decision_that_comes_out_differently_is_named(decided: Any, copy: Path) -> None:
    change(copy, "UPDATE decisions SET probability = 0.25 WHERE seq = 50")
    (kept,) = decided("ledger", "show", "--playbook", copy, "--last", "36", "--json").lines[:1]
    assert kept["seq"] == 50
    ran = decided("attest", "--playbook", copy, code=1)
    assert f"1 decisions made again are NOT as recorded, first {kept['id']}" in ran.out
    checked = decided("attest", "--playbook", copy, "--check", "here.json", "--json", code=1).json
    assert checked["decisions"] == "same", "the code and the book are; what is recorded is not"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("id,label\n", "Invalid JSON: expected value at line 1 column 1"),
        ("{}", "format: this field is missing"),
        ('{"format": "acefraud attestation 9"}', 'format: expected "acefraud attestation 1"'),
    ],
)
def test_a_file_that_is_no_attestation(decided: Any, content: str, fault: str) -> None:
    decided.write("broken.json", content)
    error = decided.on_book("attest", "--check", "broken.json", code=2).err
    assert error.startswith(f"acefraud: broken.json: expected what `acefraud attest --to` writes: {fault}")


def test_a_file_that_was_cut(decided: Any) -> None:
    content = json.loads((decided.folder / "here.json").read_text())
    decided.write("cut.json", json.dumps({**content, "events": content["events"][:-8]}))
    error = decided.on_book("attest", "--check", "cut.json", code=2).err
    assert "cut.json" in error
    assert f"expected 8 digits for each of {content['last_event']}" in error
    assert "no-such.json: cannot be read" in decided.on_book("attest", "--check", "no-such.json", code=2).err


def test_what_check_decides_itself_cannot_be_given(decided: Any) -> None:
    for option in (("--decisions", "5"), ("--to", "there.json")):
        assert (
            "leave out --decisions and --to" in decided.on_book("attest", "--check", "here.json", *option, code=2).err
        )


def test_another_version_is_mentioned(decided: Any) -> None:
    content = json.loads((decided.folder / "here.json").read_text())
    decided.write("older.json", json.dumps({**content, "acefraud": "0.0.9"}))
    assert "The other is of acefraud 0.0.9, engine" in decided.on_book("attest", "--check", "older.json").out
