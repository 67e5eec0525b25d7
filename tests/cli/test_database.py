"""Every command works on a PostgreSQL database, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.postgres import database_for

from acefraud.storage import open_playbook

pytestmark = pytest.mark.wide


@pytest.fixture
def address(tmp_path: Path) -> str:
    return database_for(tmp_path) + "&password=s3cret"


def test_a_walk_on_a_database(shell: Any, tmp_path: Path, address: str) -> None:
    def on_database(*arguments: str | Path, **options: Any) -> Any:
        ran = shell(*arguments, "--database", address, **options)
        assert "s3cret" not in ran.out + ran.err
        return ran

    assert on_database("train", "history.csv", "--json").json["rows"] == 80
    added = on_database("playbook", "add", "Amount above $2,900: decline", "--who", "ana")
    assert "added b-" in added.out
    assert "Amount above $2,900" in on_database("playbook", "list").out
    told = '{"id": "t1", "facts": {"amount": 2950, "vpn": true, "account_age_days": 3}}'
    decided = on_database("decide", told, "--json").json
    assert decided["transaction_id"] == "t1"
    assert decided["decision_id"] in on_database("explain", decided["decision_id"]).out
    assert on_database("explain", decided["decision_id"], "--replay", "--json").json
    shell.rows("outcomes.jsonl", [{"id": "t1", "label": 1}])
    on_database("learn", "outcomes.jsonl")
    counted = on_database("ledger", "stats", "--json").json
    assert (counted["compact_decisions"], counted["events"]["outcome_heard"]) == (1, 1)
    assert decided["decision_id"] in on_database("ledger", "show").out
    assert "decisions" in on_database("playbook", "export", "--to", tmp_path / "book.md").err
    on_database("backup", tmp_path / "copy.db")
    on_database("attest", "--decisions", "all", "--to", tmp_path / "database.json")
    copied = shell("attest", "--playbook", tmp_path / "copy.db", "--check", tmp_path / "database.json", "--json").json
    assert (copied["ledger"], copied["playbook"], copied["decisions"]) == ("same", "same", "same")
    assert shell("ledger", "stats", "--playbook", tmp_path / "copy.db", "--json").json["events"] == counted["events"]
    other = database_for(tmp_path, "other")
    shell("restore", tmp_path / "copy.db", "--database", other)
    assert shell("ledger", "stats", "--database", other, "--json").json["events"] == counted["events"]
    assert "is not empty" in shell("restore", tmp_path / "copy.db", "--database", other, code=2).err
    archived = on_database("ledger", "archive", "--before", "2999-01-01", "--to", tmp_path / "archive")
    assert "1 decisions archived" in archived.out
    assert "it was archived on" in on_database("explain", decided["decision_id"], code=2).err
    with open_playbook(other) as before, open_playbook(address) as after:
        assert before.snapshot().bullets == after.snapshot().bullets


def test_the_environment_names_a_database(shell: Any, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACEFRAUD_DATABASE", address)
    shell("playbook", "add", "VPN: decline")
    with open_playbook(address) as book:
        assert len(book) == 1
    shell.on_book("playbook", "add", "VPN at night: decline")
    with shell.open() as book:
        assert len(book) == 1, "a flag takes precedence"
    monkeypatch.setenv("ACEFRAUD_PLAYBOOK", "book.db")
    assert "ACEFRAUD_PLAYBOOK and ACEFRAUD_DATABASE contradict" in shell("playbook", "list", code=2).err


def test_a_file_and_a_database_contradict_each_other(shell: Any, address: str) -> None:
    error = shell.on_book("playbook", "list", "--database", address, code=2).err
    assert error == "acefraud: --playbook and --database contradict each other; give one of them\n"


def test_an_address_of_something_else_is_refused(shell: Any) -> None:
    error = shell("playbook", "list", "--database", "mysql://ana:s3cret@db/fraud", code=2).err
    assert error == "acefraud: --database: expected an address such as postgresql://user@host:5432/database\n"


def test_a_database_without_a_playbook_is_not_filled_by_reading(shell: Any, address: str) -> None:
    assert "there is no schema" in shell("playbook", "list", "--database", address, code=2).err
