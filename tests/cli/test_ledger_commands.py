"""What is recorded, shown as it is kept, and how much room it takes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from tests.storage.replaying import matches_replay

from acefraud.core.decision import Decision, DecisionRecord, Reason, ReasonKind
from acefraud.core.events import DecisionMade
from acefraud.core.transaction import Transaction, Verdict
from acefraud.storage import archive, contents, open_playbook
from acefraud.storage.schema import NEWEST

PAYMENT = '{"id": "t1", "amount": 2500, "vpn": true, "account_age_days": 2}'


@pytest.fixture
def decided(trained: Any) -> Any:
    """A playbook with two compact decisions."""
    trained.on_book("decide", PAYMENT)
    trained.on_book("decide", '{"id": "t2", "amount": 20, "vpn": false, "account_age_days": 700}')
    return trained


@pytest.fixture
def sample_decision() -> DecisionMade:
    about = Transaction(id="t9", facts={"amount": 20}, text="$20 to a new payee", entities={"card": "c1"})
    decision = Decision(
        id="d9",
        transaction=about,
        verdict=Verdict.APPROVE,
        probability=0.25,
        threshold=0.5,
        base=-1.5,
        revision=0,
        reasons=(Reason(kind=ReasonKind.KNOWLEDGE, text="vpn is true", contribution=0.8),),
        unread=("to a new payee",),
    )
    return DecisionMade(DecisionRecord.whole(decision))


def test_a_record_is_shown_with_names_beside_values(decided: Any) -> None:
    (made,) = decided.on_book("decide", PAYMENT, "--json").lines
    (kept,) = decided.on_book("ledger", "show", "--decision", made["decision_id"], "--json").lines
    assert kept["compact"]
    assert kept["bytes"] < 1_000
    assert kept["facts"]["amount"] == 2500
    assert (kept["transaction_id"], kept["verdict"], kept["who"]) == ("t1", made["verdict"], "the engine")
    assert len(kept["body"]["values"]) == len(kept["names"]["given"]) + len(kept["names"]["more"])
    shown = decided.on_book("ledger", "show", "--transaction", "t1").out
    for piece in (
        "compact, ",
        "amount=2500",
        kept["body"]["digest"],
        f"engine {kept['setup']['engine']}",
        made["decision_id"],
    ):
        assert piece in shown
    for bullet_id, amount in kept["body"]["picks"]:
        assert f"{bullet_id}  {amount:+.4f}" in shown


def test_the_latest_decisions_come_oldest_first(decided: Any) -> None:
    kept = decided.on_book("ledger", "show", "--json").lines
    assert [each["transaction_id"] for each in kept] == ["t1", "t2"]
    (last,) = decided.on_book("ledger", "show", "--last", "1", "--json").lines
    assert last == kept[1]


def test_the_cases_that_wait_for_a_person(decided: Any) -> None:
    decided.on_book("threshold", "set", "--review-between", "0.001", "0.999", "--why", "a busy day")
    for one in ("t3", "t4"):
        decided.on_book("decide", PAYMENT.replace("t1", one))
    decided.write("outcomes.csv", "transaction_id,label\nt3,fraud\n")
    decided.on_book("learn", "outcomes.csv")
    waiting = decided.on_book("ledger", "show", "--verdict", "REVIEW", "--open", "--json").lines
    assert [each["transaction_id"] for each in waiting] == ["t4"]


def test_a_decision_that_is_kept_whole(trained: Any, sample_decision: Any) -> None:
    with trained.open() as book:
        book.record([sample_decision], who="ana", why="by hand")
    shown = trained.on_book("ledger", "show", "--transaction", "t9").out
    for piece in ("whole, ", "by ana", "by hand", "entity", "card=c1", "not read", "$20", "vpn is true"):
        assert piece in shown
    (kept,) = trained.on_book("ledger", "show", "--decision", "d9", "--json").lines
    assert (kept["compact"], kept["setup"], kept["body"]["id"]) == (False, None, "d9")


def test_a_decision_that_is_not_there(decided: Any) -> None:
    ran = decided.on_book("ledger", "show", "--decision", "d-0", code=2)
    assert ran.err == "acefraud: there is no recorded decision 'd-0' in this playbook\n"
    ran = decided.on_book("ledger", "show", "--decision", "d-0", "--last", "3", code=2)
    assert ran.err == "acefraud: expected one of --decision, --transaction and --last\n"


def test_statistics_of_a_file(decided: Any) -> None:
    found = decided.on_book("ledger", "stats", "--json").json
    assert (found["compact_decisions"], found["whole_decisions"]) == (2, 0)
    assert found["events"]["trained"] == 1
    assert "decision_made" not in found["events"]
    assert (found["cases"], found["entity_rows"], found["schema"]) == (80, 0, NEWEST)
    assert found["oldest"] < found["newest"]
    assert sum(found["bytes_by_table"].values()) + found["free_bytes"] <= found["file_bytes"]
    shown = decided.on_book("ledger", "stats").out
    for piece in ("compact", "bullet_added", "remembered cases", "  cases", "schema"):
        assert piece in shown


def test_statistics_without_the_sizes_of_tables(decided: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    room = contents._room_of_file
    monkeypatch.setattr(contents, "_room_of_file", lambda driver: {**room(driver), "bytes_by_table": {}})
    assert "  free" in decided.on_book("ledger", "stats").out


def test_an_empty_playbook(shell: Any) -> None:
    open_playbook(shell.book).close()
    found = shell.on_book("ledger", "stats", "--json").json
    assert (found["events"], found["oldest"], found["newest"]) == ({}, None, None)
    assert shell.on_book("ledger", "show").out == ""


def test_a_playbook_that_is_not_there(shell: Any) -> None:
    assert "there is no playbook at" in shell.on_book("ledger", "stats", code=2).err


# --- archive -------------------------------------------------------------------------------------------------------


@pytest.fixture
def heard(decided: Any) -> Any:
    """A playbook with two decisions, one of them with its outcome."""
    decided.on_book("learn", decided.rows("outcomes.jsonl", [{"transaction_id": "t1", "label": "fraud"}]))
    return decided


def test_old_decisions_are_archived_and_explain_says_where(heard: Any) -> None:
    (kept,) = heard.on_book("ledger", "show", "--transaction", "t1", "--json").lines
    done = heard.on_book("ledger", "archive", "--before", "2099-01-01", "--to", "old", "--who", "ana", "--json").json
    assert (done["archived"], done["pending"], done["completed"]) == (1, 1, 0)
    (file,) = done["files"]
    for command in (["explain", kept["id"]], ["explain", "t1"], ["ledger", "show", "--transaction", "t1"]):
        said = heard.on_book(*command, code=2).err
        assert said.startswith("acefraud: there is no ")
        assert said.endswith(f" to {file}\n")
    assert "replayed_the_same" in heard.on_book("explain", "t2", "--replay", "--json").out
    assert heard.on_book("ledger", "stats", "--json").json["events"]["decisions_archived"] == 1
    again = heard.on_book("ledger", "archive", "--before", "2099-01-01", "--to", "old", "--with-pending")
    assert "1 decisions archived\n" in again.out
    assert "stay" not in again.out


def test_what_was_archived_is_told(heard: Any) -> None:
    said = heard.on_book("ledger", "archive", "--before", "2000-01-01", "--to", "old").out
    assert said.splitlines() == ["0 decisions archived", "0 bytes given back to the disk"]
    assert not (heard.folder / "old").exists()
    said = heard.on_book("ledger", "archive", "--before", "2099-01-01T12:00:00", "--to", "old").out
    assert "1 older decisions stay: their outcome has not arrived" in said


def test_a_file_of_an_earlier_version_and_a_run_cut_short(heard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(heard.book, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")
    with monkeypatch.context() as patch:
        patch.delattr(archive, "_delete_some")
        with pytest.raises(NameError):
            heard.on_book("ledger", "archive", "--before", "2099-01-01", "--to", "old")
    said = heard.on_book("ledger", "archive", "--before", "2099-01-01", "--to", "old").out
    assert said.startswith("1 decisions that an earlier run had archived were deleted\n0 decisions archived\n")
    assert "`acefraud backup` makes a smaller copy" in said


def test_a_revised_outcome_of_an_archived_decision_still_counts(heard: Any) -> None:
    heard.on_book("ledger", "archive", "--before", "2099-01-01", "--to", "old")
    revised = heard.rows("outcomes.jsonl", [{"transaction_id": "t1", "label": "legit"}])
    ran = heard.on_book("learn", revised, "--json").json
    assert (ran["heard"], ran["unjudged"], ran["bad_rows"]) == (1, 1, 0)
    with heard.open() as book:
        first, second = book.ledger.transaction_events(["t1"])["t1"].outcomes
        assert (second.kind, second.remembered, second.decision_id) == ("outcome_revised", True, None)
        assert second.judgement.reason == "the decision on it was archived"
        for credit in first.credits:  # the verdict counts no longer, and the case counts as honest
            bullet = book.get_bullet(credit.bullet_id)
            assert (bullet.helpful_count, bullet.harmful_count, bullet.times_selected) == (0, 0, 0)
            assert (bullet.record.support, bullet.record.frauds) == (credit.fired, 0)
        assert matches_replay(book)


def test_a_date_that_is_none(heard: Any) -> None:
    assert "--before" in heard.on_book("ledger", "archive", "--before", "soon", "--to", "old", code=2).err
