"""API keys: shown once, kept as hashes, found while they are live."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import database_for

from acefraud.core.scope import Scope
from acefraud.errors import InputError, StoreError
from acefraud.storage.open_ledger import open_ledger
from acefraud.storage.schema import insertion, selection
from acefraud.storage.service_tables import LONGEST_NAME, KeyStore
from acefraud.storage.sqlite import SqliteLedger

NOW = datetime(2025, 1, 6, 9, 30, tzinfo=UTC)
LATER = NOW + timedelta(days=1)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger.open(tmp_path / "book.db") as opened:
        yield opened


@pytest.fixture
def keys(ledger: SqliteLedger) -> KeyStore:
    return KeyStore(ledger)


def test_a_key_is_found_by_its_secret(keys: KeyStore) -> None:
    key, secret = keys.create("checkout", ["decide", Scope.OUTCOMES], who="ana", now=NOW)
    assert keys.find(secret) == key
    assert key.scopes == {Scope.DECIDE, Scope.OUTCOMES}
    assert (key.name, key.created_at, key.created_by) == ("checkout", NOW, "ana")
    assert key.revoked_at is None
    assert secret.startswith(f"ace_{key.id}_")


def test_every_secret_is_another(keys: KeyStore) -> None:
    made = [keys.create(f"till {n}", ["read"], who="ana", now=NOW) for n in range(20)]
    assert len({secret for _, secret in made}) == len({key.id for key, _ in made}) == 20
    assert [keys.find(secret) for _, secret in made] == [key for key, _ in made]


@pytest.mark.parametrize(
    "change",
    [
        lambda secret: secret[:-1] + ("a" if secret[-1] != "a" else "b"),
        lambda secret: secret + "a",
        lambda secret: secret[:-1],
        lambda secret: secret.upper(),
        lambda secret: secret + "\n",
        lambda _: "",
        lambda _: "\ud800",
    ],
    ids=["other end", "longer", "shorter", "upper case", "line", "empty", "half a character"],
)
def test_nothing_but_the_secret_finds_it(keys: KeyStore, change: Any) -> None:
    _, secret = keys.create("checkout", ["decide"], who="ana", now=NOW)
    assert keys.find(change(secret)) is None


def test_the_end_of_one_secret_does_not_open_another_key(keys: KeyStore) -> None:
    (first, _), (_, second) = (keys.create(name, ["decide"], who="ana", now=NOW) for name in ("a", "b"))
    _, _, random = second.split("_", 2)
    assert keys.find(f"ace_{first.id}_{random}") is None


def test_the_file_holds_no_part_of_the_secret_but_the_id(ledger: SqliteLedger, keys: KeyStore) -> None:
    key, secret = keys.create("checkout", ["decide"], who="ana", now=NOW)
    with ledger.reading() as driver:
        (row,) = driver.fetch(f"{selection('api_keys')} true")
    random = secret.removeprefix(f"ace_{key.id}_")
    assert not [value for value in row if value is not None and random in value]
    files = [file.read_bytes() for file in ledger.path.parent.iterdir()]
    assert any(row[2].encode() in content for content in files)
    assert not any(random.encode() in content for content in files)
    assert random not in repr(key)


def test_a_revoked_key_is_not_found_and_stays_listed(keys: KeyStore) -> None:
    key, secret = keys.create("checkout", ["decide"], who="ana", now=NOW)
    _, other = keys.create("till", ["decide"], who="ana", now=LATER)
    revoked = keys.revoke(key.id, who="bo", now=LATER)
    assert (revoked.revoked_at, revoked.revoked_by) == (LATER, "bo")
    assert keys.find(secret) is None
    assert keys.find(other) is not None
    assert [(each.name, each.revoked_at) for each in keys.list()] == [("checkout", LATER), ("till", None)]


def test_revoking_twice_keeps_the_first_time(keys: KeyStore) -> None:
    key, _ = keys.create("checkout", ["decide"], who="ana", now=NOW)
    first = keys.revoke("checkout", who="bo", now=LATER)
    assert keys.revoke(key.id, who="cy", now=LATER + timedelta(days=1)) == first
    assert keys.revoke("checkout", who="cy", now=LATER + timedelta(days=1)) == first


def test_a_name_can_be_used_again_once_its_key_is_revoked(keys: KeyStore) -> None:
    old, _ = keys.create("checkout", ["decide"], who="ana", now=NOW)
    with pytest.raises(InputError, match=rf"^field 'name': key {old.id} has the name 'checkout'"):
        keys.create("checkout", ["read"], who="ana", now=NOW)
    keys.revoke(old.id, who="ana", now=NOW)
    new, secret = keys.create("checkout", ["read"], who="ana", now=LATER)
    assert keys.find(secret) == new
    assert keys.revoke("checkout", who="ana", now=LATER).id == new.id


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgresql", marks=pytest.mark.wide)])
def test_the_store_refuses_a_second_live_key_of_a_name(tmp_path: Path, store: str) -> None:
    def row(id: str, revoked_at: str | None = None) -> tuple[str | None, ...]:
        return id, "checkout", id, "read", NOW.isoformat(), "ana", revoked_at, None

    with open_ledger(tmp_path / "book.db" if store == "sqlite" else database_for(tmp_path)) as ledger:
        with ledger.writing() as driver:
            driver.run_many(insertion("api_keys"), [row("a", NOW.isoformat()), row("b", NOW.isoformat()), row("c")])
        with pytest.raises(StoreError), ledger.writing() as driver:
            driver.ask(insertion("api_keys"), row("d"))
        assert [key.id for key in KeyStore(ledger).list()] == ["a", "b", "c"]


def test_an_id_comes_before_a_name(keys: KeyStore) -> None:
    key, _ = keys.create("checkout", ["decide"], who="ana", now=NOW)
    _, secret = keys.create(key.id, ["decide"], who="ana", now=LATER)
    assert keys.revoke(key.id, who="ana", now=LATER).name == "checkout"
    assert keys.find(secret) is not None


def test_a_key_that_is_not_there_cannot_be_revoked(keys: KeyStore) -> None:
    with pytest.raises(InputError, match="there is no key 'nobody'"):
        keys.revoke("nobody", who="ana", now=NOW)


@pytest.mark.parametrize("name", ["the engine", "", "  ", " a", "a\n", "a\x00", "x" * (LONGEST_NAME + 1)])
def test_names_that_no_author_can_have(keys: KeyStore, name: str) -> None:
    with pytest.raises(InputError, match="name"):
        keys.create(name, ["decide"], who="ana", now=NOW)
    assert keys.list() == ()


def test_scopes_that_there_are_not(keys: KeyStore) -> None:
    with pytest.raises(InputError, match="scope: expected decide, outcomes, read, curate or admin, got the str 'all'"):
        keys.create("checkout", ["decide", "all"], who="ana", now=NOW)
    with pytest.raises(InputError, match="expected at least one of"):
        keys.create("checkout", [], who="ana", now=NOW)
    assert keys.list() == ()


def test_admin_allows_everything_and_others_only_themselves(keys: KeyStore) -> None:
    for scope in Scope:
        key, _ = keys.create(scope, [scope], who="ana", now=NOW)
        expected = set(Scope) if scope is Scope.ADMIN else {scope}
        assert {each for each in Scope if key.allows(each)} == expected


def test_a_stored_hash_of_something_else_is_no_key(ledger: SqliteLedger, keys: KeyStore) -> None:
    row = "0" * 12, "n", "0" * 64, "read", NOW.isoformat(), "ana", None, None
    with ledger.writing() as driver:
        driver.ask(insertion("api_keys"), row)
    assert keys.find(f"ace_{'0' * 12}_{'a' * 43}") is None
