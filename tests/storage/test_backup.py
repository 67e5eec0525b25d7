"""Copies of a playbook: complete, consistent, never half there."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.effort import rounds
from tests.storage.test_kill import WRITER, check, output, start

from acefraud.core.ledger import Entry, RowStore
from acefraud.errors import StoreError, StoreSchema
from acefraud.storage import open_playbook
from acefraud.storage.copies import copy_playbook
from acefraud.storage.service_tables import KeyStore, hash_of
from acefraud.storage.sqlite import SqliteLedger

pytestmark = pytest.mark.wide

AT = datetime(2024, 5, 1, tzinfo=UTC)
COPIES = """
import sys
from pathlib import Path
from acefraud.storage.copies import copy_playbook
print("copying", flush=True)
copy_playbook(Path(sys.argv[1]), Path(sys.argv[1] + ".copy"), force=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "book.db"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copy.db"


@pytest.fixture
def filled(path: Path, sample: Any) -> Path:
    """A playbook with something in every table, still in its log."""
    with open_playbook(path) as book:
        book.add_bullet("VPN and a new device: decline")
        book.ledger.append(
            Entry([sample.decision("d1"), sample.outcome("t1")], AT, "ana", cases=[sample.known("t1")], rows=put_a_row)
        )
    return path


def put_a_row(rows: RowStore) -> None:
    rows.put_many({"card": b"history"})


def content(path: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in tables}


def names(folder: Path) -> set[str]:
    """The files in a folder; what SQLite keeps beside the source after reading it does not count."""
    return {each.name for each in folder.iterdir() if not each.name.startswith("book.db-")}


def test_a_copy_holds_everything(filled: Path, copy: Path) -> None:
    size = copy_playbook(filled, copy)
    assert size == copy.stat().st_size
    assert names(copy.parent) == {"book.db", "copy.db"}
    assert content(copy) == content(filled)
    with open_playbook(copy) as book:  # triggers and numbering too
        book.add_bullet("A third thing")
        assert book.seq == 4
    with closing(sqlite3.connect(copy)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute("DELETE FROM events")


def test_a_copy_of_a_file_in_use_has_what_is_still_in_its_log(path: Path, copy: Path, sample: Any) -> None:
    with SqliteLedger.open(path) as ledger:
        ledger.append(Entry([sample.bullet("b1")], AT, "ana"))
        copy_playbook(path, copy)
        ledger.append(Entry([sample.bullet("b2")], AT, "ana"))
    with SqliteLedger.open(copy) as copied:
        assert [event.payload.subject for event in copied.read()] == ["b1"]


def test_a_copy_made_while_another_process_writes_is_one_moment(path: Path, copy: Path) -> None:
    with start(WRITER, path) as child:
        try:
            acknowledged = [output(child).readline() for _ in range(40)][-1]
            copy_playbook(path, copy)
            later = [output(child).readline() for _ in range(20)][-1]
        finally:
            child.send_signal(signal.SIGKILL)
    check(copy, int(acknowledged))
    check(path, int(later))


def test_nothing_is_overwritten_unless_told(filled: Path, copy: Path) -> None:
    copy.write_text("mine")
    with pytest.raises(StoreError, match=r"copy.db exists already; give another path"):
        copy_playbook(filled, copy)
    assert copy.read_text() == "mine"
    copy_playbook(filled, copy, force=True)
    assert content(copy) == content(filled)


def test_a_log_that_was_left_behind_is_not_taken_for_that_of_the_copy(filled: Path, copy: Path, sample: Any) -> None:
    with SqliteLedger.open(copy) as other:
        other.append(Entry([sample.bullet("b8"), sample.bullet("b9")], AT, "eve"))
        log = copy.with_name("copy.db-wal").read_bytes()
    copy.unlink()
    copy.with_name("copy.db-wal").write_bytes(log)
    with pytest.raises(StoreError, match=r"copy.db-wal exists already"):
        copy_playbook(filled, copy)
    copy_playbook(filled, copy, force=True)
    assert content(copy) == content(filled)


def test_a_playbook_in_use_is_not_replaced(filled: Path, copy: Path) -> None:
    with open_playbook(copy) as used:
        used.add_bullet("An emulator: decline")
        with pytest.raises(StoreError, match=r"copy.db is in use"):
            copy_playbook(filled, copy, force=True)
        used.add_bullet("A second one")
        assert len(used) == 2
    copy_playbook(filled, copy, force=True)
    assert content(copy) == content(filled)
    assert names(copy.parent) == {"book.db", "copy.db"}


def test_a_playbook_is_not_copied_onto_itself(filled: Path, copy: Path) -> None:
    copy.symlink_to(filled)
    for target in (filled, copy):
        with pytest.raises(StoreError, match="is the playbook that is to be copied"):
            copy_playbook(filled, target, force=True)


@pytest.mark.parametrize("found", [b"id,amount\n1,20\n" * 500, b"x", b""])
def test_something_else_is_not_copied(path: Path, copy: Path, found: bytes) -> None:
    path.write_bytes(found)
    with pytest.raises(StoreSchema, match=r"book.db is not an acefraud playbook"):
        copy_playbook(path, copy)
    assert path.read_bytes() == found
    assert names(copy.parent) == {"book.db"}


def test_a_playbook_that_is_not_there(path: Path, copy: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no playbook at"):
        copy_playbook(path, copy)


def test_a_folder_that_is_not_there(filled: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"check that its directory exists"):
        copy_playbook(filled, tmp_path / "nowhere" / "copy.db")


def test_a_damaged_playbook_is_not_copied(filled: Path, copy: Path) -> None:
    whole = filled.read_bytes()
    page = 4096
    with closing(sqlite3.connect(filled)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'decisions_by_id'").fetchone()
    filled.write_bytes(whole[: page * (root - 1)] + bytes(page) + whole[page * root :])
    with pytest.raises(StoreError, match=r"damaged"):
        copy_playbook(filled, copy)
    assert names(copy.parent) == {"book.db"}
    copy.write_bytes(whole)  # from a good copy it is put in place again
    copy_playbook(copy, filled, force=True)
    assert content(filled) == content(copy)


@pytest.mark.parametrize("schema", ["0005", "0006"])
def test_a_copy_has_the_keys_of_the_file_that_it_replaces_and_no_others(tmp_path: Path, schema: str) -> None:
    book, backup = tmp_path / "book.db", tmp_path / "monday.db"
    with closing(sqlite3.connect(backup)) as connection:
        connection.executescript((Path(__file__).parent / "released" / f"{schema}.sql").read_text())
    with SqliteLedger.open(book) as ledger:
        keys = KeyStore(ledger)
        _, revoked = keys.create("till", ["decide"], who="ana", now=AT)
        _, live = keys.create("checkout", ["decide"], who="ana", now=AT)
        keys.revoke("till", who="ana", now=AT)
        listed = keys.list()
    copy_playbook(backup, book, force=True)
    with SqliteLedger.open(book) as ledger:
        assert [event.seq for event in ledger.read()] == [1, 2, 3, 4]
        assert KeyStore(ledger).list() == listed
        assert KeyStore(ledger).find(live) is not None
        assert KeyStore(ledger).find(revoked) is None


def test_a_copy_beside_the_playbook_has_no_key_and_no_trace_of_one(filled: Path, copy: Path) -> None:
    with SqliteLedger.open(filled) as ledger:
        _, secret = KeyStore(ledger).create("till", ["decide"], who="ana", now=AT)
    copy_playbook(filled, copy)
    assert hash_of(secret).encode() not in copy.read_bytes()
    with SqliteLedger.open(copy) as ledger:
        assert KeyStore(ledger).list() == ()


def kill_copies(path: Path, times: int, seed: int) -> None:
    """Kill processes that make a copy, at random moments: the copy there is complete, whichever it is."""
    chance, copy = random.Random(seed), path.with_name(path.name + ".copy")
    with start(WRITER, path) as writer:
        try:
            last = [output(writer).readline() for _ in range(100)][-1]
        finally:
            writer.send_signal(signal.SIGKILL)
    copy_playbook(path, copy)
    for _ in range(times):
        with start(COPIES, path) as child:
            output(child).readline()
            time.sleep(chance.uniform(0, 0.05))
            child.send_signal(signal.SIGKILL)
        check(copy, int(last))


def test_a_kill_leaves_the_copy_that_was_there(path: Path) -> None:
    kill_copies(path, times=2, seed=1)


@pytest.mark.long
def test_many_kills_leave_the_copy_that_was_there(path: Path) -> None:
    kill_copies(path, times=rounds(30), seed=2)
