"""What only the file promises: durable settings, several writers at once, and writes that fail whole."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from acefraud.core.playbook import Checkpoint
from acefraud.errors import StoreError
from acefraud.storage.schema import APPLICATION_ID
from acefraud.storage.sqlite import SqliteLedger

AT = datetime(2024, 5, 1, tzinfo=UTC)
HERE = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "playbook.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger.open(path) as opened:
        yield opened


# --- settings ----------------------------------------------------------------------------------------------------


def test_every_connection_is_durable(ledger: SqliteLedger) -> None:
    with ledger._engine.connect() as first, ledger._writer.connect() as second:
        for connection in (first, second):
            pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            values = [connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one() for pragma in pragmas]
            assert values == ["wal", 2, 1, 30_000]


def test_a_write_takes_the_lock_before_it_reads(ledger: SqliteLedger, sample: Any) -> None:
    said = []
    event.listen(ledger._engine, "before_cursor_execute", lambda *call: said.append(call[2]))
    ledger.append([sample.bullet("b1")], at=AT, who="ana")
    assert said[0] == "BEGIN IMMEDIATE"
    assert said[1].startswith("SELECT")


def test_the_file_is_marked_as_ours(ledger: SqliteLedger, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("SELECT value FROM meta WHERE name = 'application'").fetchone() == ("acefraud",)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET who = 'eve'",
        "DELETE FROM events",
        "REPLACE INTO events SELECT seq, kind, subject, key, at, 'eve', why, body FROM events",
        "INSERT INTO events SELECT seq + 5, kind, subject, key, at, who, why, body FROM events",
    ],
)
def test_events_can_only_be_appended(ledger: SqliteLedger, path: Path, sample: Any, change: str) -> None:
    written = ledger.append([sample.bullet("b1")], at=AT, who="ana")
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="only ever appended"),
    ):
        connection.execute(change)
    assert list(ledger.read()) == written


def test_nothing_is_left_beside_a_closed_file(path: Path, sample: Any) -> None:
    with SqliteLedger.open(path) as ledger:
        ledger.append([sample.bullet("b1")], at=AT, who="ana")
    assert os.listdir(path.parent) == [path.name]


def test_a_closed_ledger_says_so(path: Path) -> None:
    ledger = SqliteLedger.open(path)
    ledger.close()
    with pytest.raises(StoreError, match="was closed"):
        ledger.last_seq()


def test_a_checkpoint_of_another_version_is_dropped(ledger: SqliteLedger, path: Path) -> None:
    ledger.save_checkpoint(Checkpoint(seq=3))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('UPDATE checkpoints SET body = \'{"seq": "what"}\'')
    assert ledger.checkpoint() is None


# --- several at once ---------------------------------------------------------------------------------------------

APPENDER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from acefraud.core.events import StatusChanged
from acefraud.storage.sqlite import SqliteLedger

who, count = sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
with SqliteLedger.open(Path(sys.argv[1])) as ledger:
    for n in range(count):
        ledger.append([StatusChanged(bullet_id=f"{who}-{n}", status="active")], at=datetime.now(UTC), who=who)
"""


def test_processes_that_create_and_append_together_lose_nothing(path: Path) -> None:
    command = [sys.executable, "-c", APPENDER, str(path)]
    children = [
        subprocess.Popen([*command, who, "200"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=HERE)
        for who in ("ana", "ben")
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        child.communicate(timeout=120)
        assert child.returncode == 0

    with SqliteLedger.open(path, create=False) as ledger:
        written = list(ledger.read())
    assert [event.seq for event in written] == list(range(1, 401))
    for who in ("ana", "ben"):
        assert [event.what.subject for event in written if event.who == who] == [f"{who}-{n}" for n in range(200)]


def test_threads_share_one_ledger(path: Path, sample: Any) -> None:
    def run(who: str) -> None:
        with SqliteLedger.open(path) as own:
            own.append([sample.bullet(who)], at=AT, who=who)
        for n in range(20):
            shared.append([sample.bullet(f"{who}-{n}")], at=AT, who=who)
            assert len(shared.history(f"{who}-{n}")) == 1

    with SqliteLedger.open(path) as shared:
        threads = [threading.Thread(target=run, args=(f"w{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [event.seq for event in shared.read()] == list(range(1, 8 * 21 + 1))


def test_a_lock_held_for_too_long_is_an_error(path: Path, sample: Any) -> None:
    with SqliteLedger.open(path, wait=0.05) as ledger, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked by another process") as caught:
            ledger.append([sample.bullet("b1")], at=AT, who="ana")
        assert str(path) in str(caught.value)
        assert ledger.last_seq() == 0  # readers are not held up
        other.rollback()
        assert ledger.append([sample.bullet("b1")], at=AT, who="ana")[0].seq == 1


# --- writes that fail --------------------------------------------------------------------------------------------


def test_read_only_reads_and_refuses_to_write(path: Path, sample: Any) -> None:
    with SqliteLedger.open(path) as ledger:
        written = ledger.append([sample.bullet("b1")], at=AT, who="ana")
    before = path.read_bytes()
    with SqliteLedger.open(path, read_only=True) as ledger:
        assert list(ledger.read()) == written
        with pytest.raises(StoreError, match="may only be read") as caught:
            ledger.append([sample.bullet("b2")], at=AT, who="ana")
        assert str(path) in str(caught.value)
        ledger.save_checkpoint(Checkpoint(seq=1))
        assert ledger.checkpoint() is None
    assert path.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_a_file_without_permission_to_write(path: Path, sample: Any) -> None:
    SqliteLedger.open(path).close()
    path.chmod(0o444)
    with pytest.raises(StoreError, match="may only be read"), SqliteLedger.open(path) as ledger:
        ledger.append([sample.bullet("b1")], at=AT, who="ana")


def test_a_full_disk_leaves_nothing_half_written(ledger: SqliteLedger, sample: Any) -> None:
    def fill(connection: Any, *_: object) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    written = ledger.append([sample.bullet("b0")], at=AT, who="ana", cases=[sample.case("t0")])
    event.listen(ledger._engine, "checkout", fill)
    many = [sample.bullet(f"b{n}", content="x" * 2_000) for n in range(1, 50)]
    with pytest.raises(StoreError, match="disk is full") as caught:
        ledger.append(many, at=AT, who="ana", cases=[sample.case("t1")])
    assert str(ledger.path) in str(caught.value)
    event.remove(ledger._engine, "checkout", fill)

    assert list(ledger.read()) == written
    assert ledger.cases() == [sample.case("t0")]
    ledger._engine.dispose()  # the limit belongs to the connection: a new one has space again
    assert ledger.append(many, at=AT, who="ana")[-1].seq == 50


def test_what_could_not_be_read_back_is_not_taken(ledger: SqliteLedger, sample: Any) -> None:
    decision = sample.decision("d1")
    endless = decision.model_copy(update={"decision": decision.decision.model_copy(update={"base": float("inf")})})
    with pytest.raises(StoreError, match=r"decision_made of t1 cannot be kept.*decision\.base"):
        ledger.append([sample.bullet("b1"), endless], at=AT, who="ana")
    assert ledger.last_seq() == 0


def test_an_event_that_was_tampered_with_is_named(ledger: SqliteLedger, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO events VALUES (1, 'decision_made', 't1', 'd1', '2024-05-01', 'eve', '', '{}')")
    with pytest.raises(StoreError, match="event 1 cannot be read"):
        list(ledger.read())


def test_a_damaged_file_is_an_error_of_the_store(path: Path, sample: Any) -> None:
    with SqliteLedger.open(path) as ledger:
        ledger.append([sample.bullet(f"b{n}") for n in range(200)], at=AT, who="ana")
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    with pytest.raises(StoreError, match="damaged"), SqliteLedger.open(path) as ledger:
        list(ledger.read())
