"""API keys on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.postgres import database_for

from acefraud.core.scope import Scope
from acefraud.storage import open_playbook
from acefraud.storage.service_tables import KeyStore
from acefraud.storage.sqlite import SqliteLedger


@pytest.fixture
def started(shell: Any) -> Any:
    """A shell with an empty playbook."""
    open_playbook(shell.book).close()
    return shell


def found(shell: Any, secret: str) -> Any:
    with SqliteLedger.open(shell.book, read_only=True) as ledger:
        return KeyStore(ledger).find(secret)


def test_a_key_is_created_listed_and_revoked(started: Any) -> None:
    ran = started.on_book("keys", "create", "checkout", "--scope", "outcomes", "--scope", "decide", "--who", "ana")
    secret = ran.out.strip()
    assert secret not in ran.err
    key = found(started, secret)
    assert (key.name, key.scopes, key.created_by) == ("checkout", {Scope.DECIDE, Scope.OUTCOMES}, "ana")
    listed = started.on_book("keys", "list")
    assert f"{key.id}  checkout  decide, outcomes  created" in listed.out
    assert "1 key in use" in listed.out
    assert secret not in listed.out + listed.err
    assert "revoked" in started.on_book("keys", "revoke", "checkout", "--who", "bo").out
    assert found(started, secret) is None
    listed = started.on_book("keys", "list")
    assert "by bo" in listed.out
    assert "0 keys in use" in listed.out


def test_keys_as_json(started: Any) -> None:
    made = started.on_book("keys", "create", "checkout", "--scope", "admin", "--json").json
    secret = made.pop("secret")
    assert found(started, secret).id == made["id"]
    assert started.on_book("keys", "list", "--json").json == [made]
    assert made["scopes"] == ["admin"]
    revoked = started.on_book("keys", "revoke", made["id"], "--json").json
    assert revoked["revoked_at"]
    assert started.on_book("keys", "list", "--json").json == [revoked]


def test_what_cannot_be_done_is_an_error_of_one_line(started: Any) -> None:
    started.on_book("keys", "create", "checkout", "--scope", "read")
    assert "has the name 'checkout'" in started.on_book("keys", "create", "checkout", "--scope", "read", code=2).err
    assert "own name" in started.on_book("keys", "create", "the engine", "--scope", "read", code=2).err
    assert "--scope" in started.on_book("keys", "create", "till", code=2).err
    assert "all" in started.on_book("keys", "create", "till", "--scope", "all", code=2).err
    assert "there is no key 'till'" in started.on_book("keys", "revoke", "till", code=2).err
    assert len(started.on_book("keys", "list", "--json").json) == 1


@pytest.mark.wide
def test_the_first_key_of_a_database_creates_its_tables(shell: Any, tmp_path: Path) -> None:
    where = ("--database", database_for(tmp_path))
    missing = shell("keys", "list", *where, code=2).err
    assert "there is no schema" in missing
    assert "`acefraud train`, `acefraud serve` and other commands that write start a playbook there" in missing
    made = shell("keys", "create", "till", "--scope", "read", *where, "--json").json
    assert [key["id"] for key in shell("keys", "list", *where, "--json").json] == [made["id"]]


def test_a_mistyped_playbook_gets_no_key(shell: Any) -> None:
    assert "there is no playbook" in shell.on_book("keys", "create", "till", "--scope", "read", code=2).err
    assert not shell.book.exists()
