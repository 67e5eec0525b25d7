"""A playbook in a database can be written to a file and read from one, with everything in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import database_for
from tests.storage.replaying import cases_of

from acefraud.core.ledger import Entry, KeptRequest
from acefraud.errors import InputError, StoreError
from acefraud.storage import open_playbook
from acefraud.storage.archive import archive_decisions, place_of_archived
from acefraud.storage.contents import file_statistics, holdings
from acefraud.storage.copies import copy_playbook, read_from_file, write_to_file
from acefraud.storage.postgres import PostgresLedger
from acefraud.storage.schema import TABLES, selection
from acefraud.storage.service_tables import KeyStore
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.storage.sqlite import SqliteLedger

pytestmark = pytest.mark.wide
AT = datetime(2024, 5, 1, tzinfo=UTC)
KEY = {
    "id": "key-1",
    "name": "gateway",
    "hash": "0" * 64,
    "scopes": "decide",
    "created_at": AT.isoformat(),
    "created_by": "ana",
}


def everything(ledger: SqlLedger) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every table, but for the marks and keys of the database itself."""
    with ledger.reading() as driver:
        return {
            table: sorted(driver.fetch(f"{selection(table)} true"))
            for table in TABLES
            if table not in ("meta", "api_keys")
        }


def names_of_keys(ledger: SqlLedger) -> list[str]:
    return [key.name for key in KeyStore(ledger).list()]


def fill(ledger: SqlLedger, sample: Any) -> None:
    """Something of everything, with a gap where a decision was archived."""
    outcome = sample.outcome("t1")
    ledger.append(
        Entry(
            [sample.bullet("b1"), sample.decision("d1"), sample.decision("d2", "t2"), outcome],
            at=AT,
            who="ana",
            cases=[sample.known("t1"), sample.known("t2", is_fraud=True)],
            rows=lambda rows: rows.put_many({"e:card:c1": b"\x00\xff"}),
            requests=[KeptRequest("k1", "t1", "digest", "d1")],
        )
    )
    with ledger.writing() as driver:
        columns, marks = ", ".join(KEY), ", ".join("?" * len(KEY))
        driver.ask(f"INSERT INTO api_keys ({columns}) VALUES ({marks})", list(KEY.values()))


@pytest.fixture
def filled(tmp_path: Path, sample: Any) -> Any:
    with PostgresLedger.open(database_for(tmp_path)) as ledger:
        fill(ledger, sample)
        archive_decisions(ledger, AT + timedelta(days=1), tmp_path / "archive", who="ana")
        yield ledger


def test_a_database_written_to_a_file_and_read_into_another_has_everything(
    filled: PostgresLedger, tmp_path: Path, sample: Any
) -> None:
    file = tmp_path / "copy.db"
    assert write_to_file(filled, file) == file.stat().st_size
    assert sorted(tmp_path.iterdir()) == [tmp_path / "archive", file]
    with SqliteLedger.open(file, read_only=True) as copy:
        assert everything(copy) == everything(filled)
        assert list(copy.read()) == list(filled.read())
        assert cases_of(copy) == cases_of(filled)
    with PostgresLedger.open(database_for(tmp_path, "other")) as other:
        read_from_file(file, other)
        assert everything(other) == everything(filled)
        following = [each.append(Entry([sample.bullet("b2")], at=AT, who="ana"))[0].seq for each in (filled, other)]
        assert following == [6, 6]
        with pytest.raises(StoreError, match="events are only ever appended"), other.writing() as driver:
            driver.ask("DELETE FROM events")


def test_keys_stay_where_they_were_made(filled: PostgresLedger, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    write_to_file(filled, file)
    with SqliteLedger.open(file) as copy:
        assert names_of_keys(copy) == []
        _, foreign = KeyStore(copy).create("foreign", ["admin"], who="eve", now=AT)
    with PostgresLedger.open(database_for(tmp_path, "other")) as other:
        _, own = KeyStore(other).create("own", ["read"], who="ana", now=AT)
        read_from_file(file, other)
        assert names_of_keys(other) == ["own"]
        assert KeyStore(other).find(own) is not None
        assert KeyStore(other).find(foreign) is None
    assert names_of_keys(filled) == ["gateway"]


def test_a_file_can_be_appended_to_after_it_was_written(filled: PostgresLedger, tmp_path: Path, sample: Any) -> None:
    write_to_file(filled, tmp_path / "copy.db")
    with SqliteLedger.open(tmp_path / "copy.db") as copy:
        assert copy.append(Entry([sample.bullet("b2")], at=AT, who="ana"))[0].seq == 6
        with pytest.raises(StoreError, match="only ever appended"), copy.writing() as driver:
            driver.ask("DELETE FROM events")


def test_a_file_of_each_release_can_be_read_into_a_database(tmp_path: Path) -> None:
    for dump in sorted((Path(__file__).parent / "released").glob("*.sql")):
        file = tmp_path / f"{dump.stem}.db"
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(dump.read_text())
        before = file.read_bytes()
        with PostgresLedger.open(database_for(tmp_path, dump.stem)) as ledger:
            read_from_file(file, ledger)
            assert [event.seq for event in ledger.read()] == [1, 2, 3, 4]
            assert set(ledger.decisions(["d1"])) == {"d1"}
        assert file.read_bytes() == before


def test_a_database_that_is_not_empty_is_left_as_it_is(filled: PostgresLedger, tmp_path: Path, sample: Any) -> None:
    with SqliteLedger.open(tmp_path / "book.db") as file:
        fill(file, sample)
    before = everything(filled)
    with pytest.raises(StoreError, match="is not empty and was left as it is"):
        read_from_file(tmp_path / "book.db", filled)
    assert everything(filled) == before


def test_a_file_with_a_text_that_the_database_cannot_hold_is_refused_whole(tmp_path: Path, sample: Any) -> None:
    with SqliteLedger.open(tmp_path / "book.db") as file:
        file.append(Entry([sample.bullet("b1"), sample.bullet("b\0")], at=AT, who="ana"))
    with PostgresLedger.open(database_for(tmp_path)) as ledger:
        with pytest.raises(InputError, match="cannot hold this text"):
            read_from_file(tmp_path / "book.db", ledger)
        assert ledger.last_seq() == 0
        assert ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))[0].seq == 1


def test_a_file_that_is_there_is_replaced_only_if_asked(filled: PostgresLedger, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    file.write_text("notes")
    with pytest.raises(StoreError, match="exists already"):
        write_to_file(filled, file)
    assert file.read_text() == "notes"
    write_to_file(filled, file, force=True)
    copy_playbook(file, tmp_path / "again.db")


def test_a_playbook_in_a_database_can_be_saved(filled: PostgresLedger, tmp_path: Path) -> None:
    assert isinstance(filled.origin, str)
    with open_playbook(filled.origin) as playbook:
        playbook.save(tmp_path / "saved.db")
        with open_playbook(tmp_path / "saved.db") as saved:
            assert saved.snapshot() == playbook.snapshot()


def test_what_a_database_holds_is_counted_as_in_a_file(filled: PostgresLedger, tmp_path: Path) -> None:
    write_to_file(filled, tmp_path / "copy.db")
    here = file_statistics(filled)
    with SqliteLedger.open(tmp_path / "copy.db") as copy:
        there = file_statistics(copy)
        assert holdings(copy) == holdings(filled)
    room: dict[str, Any] = {"file_bytes": 0, "free_bytes": 0, "shrinks": False, "bytes_by_table": {}}
    assert replace(here, **room) == replace(there, **room)
    assert here.file_bytes == sum(here.bytes_by_table.values()) > 0
    assert set(here.bytes_by_table) == {*TABLES, "alembic_version"}


def test_old_decisions_of_a_database_are_archived(filled: PostgresLedger, tmp_path: Path) -> None:
    assert filled.recorded(["d1", "d2"]) == {"d2"}, "the one without an outcome stays"
    (file,) = (tmp_path / "archive").iterdir()
    assert place_of_archived(filled, "d1").endswith(str(file))
    assert not place_of_archived(filled, "d2")
