"""Opening a file: recognising it, leaving foreign files alone, and migrating it to the newest schema."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic import op
from tests.storage.replaying import cases_of, matches_replay

from acefraud.core.bullet import Status
from acefraud.core.ledger import Entry, Precondition
from acefraud.errors import StoreError, StoreSchema
from acefraud.storage import playbook_reading
from acefraud.storage.migrations import known_versions
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.schema import NEWEST, TABLES
from acefraud.storage.sqlite import SqliteLedger

AT = datetime(2024, 5, 1, tzinfo=UTC)
OPENING = "import acefraud.storage; acefraud.storage.open_playbook(sys.argv[1]).close()"
RELEASED = sorted((Path(__file__).parent / "released").glob("*.sql"))

pytestmark = pytest.mark.usefixtures("each_playbook_migrated")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "playbook.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger.open(path) as opened:
        yield opened


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


# --- files that are something else -------------------------------------------------------------------------------


def foreign_text(path: Path) -> None:
    path.write_text("id,amount\n1,20\n" * 500)


def foreign_byte(path: Path) -> None:
    path.write_bytes(b"x")


def foreign_line(path: Path) -> None:
    path.write_bytes(b"id,amount\n")


def foreign_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY)")


def foreign_wal(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE music (title)")


def foreign_id(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA application_id = 7")


def foreign_user_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 3")


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "make",
    [foreign_byte, foreign_line, foreign_text, foreign_tables, foreign_wal, foreign_id, foreign_user_version],
)
def test_a_foreign_file_is_refused_and_left_alone(path: Path, make: Any, read_only: bool) -> None:
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreSchema, match="is not an acefraud playbook") as caught:
        SqliteLedger.open(path, read_only=read_only)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_schema_is_refused_by_name(path: Path, read_only: bool) -> None:
    SqliteLedger.open(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9041'")
    before = path.read_bytes()
    with pytest.raises(StoreSchema) as caught:
        SqliteLedger.open(path, read_only=read_only)
    for word in (str(path), "9041", NEWEST):
        assert word in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_a_missing_file_is_not_made_unasked(path: Path, options: Any) -> None:
    with pytest.raises(StoreError, match="no playbook at") as caught:
        SqliteLedger.open(path, **options)
    assert str(path) in str(caught.value)
    assert not path.exists()


def not_there(directory: Path) -> Path:
    return directory / "nowhere" / "playbook.db"


def below_a_file(directory: Path) -> Path:
    (directory / "notes").touch()
    return directory / "notes" / "playbook.db"


def too_long(directory: Path) -> Path:
    return directory / ("x" * 300)


def a_directory(directory: Path) -> Path:
    return directory


@pytest.mark.parametrize("place", [not_there, below_a_file, too_long, a_directory])
def test_a_path_that_cannot_hold_a_file(tmp_path: Path, place: Any) -> None:
    path = place(tmp_path)
    with pytest.raises(StoreError, match=r"cannot be opened|is not a file") as caught:
        SqliteLedger.open(path)
    assert str(path) in str(caught.value)


def test_a_path_with_signs_that_mean_something_in_addresses(tmp_path: Path, sample: Any) -> None:
    path = tmp_path / "50% off? #1 & käse.db"
    with SqliteLedger.open(path) as ledger:
        ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
    assert os.listdir(tmp_path) == [path.name]


# --- migrations --------------------------------------------------------------------------------------------------


def test_migrations_build_the_schema_that_the_code_uses(ledger: SqliteLedger) -> None:
    with ledger.reading() as driver:
        tables = {name for (name,) in driver.fetch("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert tables == {*TABLES, "alembic_version"}
        for table, columns in TABLES.items():
            found = driver.fetch(f"SELECT name, pk FROM pragma_table_info('{table}') ORDER BY cid")
            assert [name for name, _ in found] == [column.strip('"') for column in columns]
            assert [name for name, is_key in found if is_key] == [columns[0]]


def test_the_newest_schema_is_the_last_migration_and_has_a_dump() -> None:
    assert max(known_versions()) == NEWEST
    assert {dump.stem for dump in RELEASED} == known_versions()


@pytest.mark.parametrize("dump", RELEASED, ids=lambda dump: dump.stem)
def test_a_file_of_each_release_opens_with_its_contents(path: Path, dump: Path, sample: Any) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(dump.read_text())
    with SqliteLedger.open(path) as ledger:
        assert [event.payload.kind for event in ledger.read()] == [
            "bullet_added",
            "status_changed",
            "decision_made",
            "outcome_heard",
        ]
        decision = ledger.decisions(["d1"]).get("d1")
        assert decision is not None
        assert decision.transaction == sample.transaction("t1")
        assert cases_of(ledger) == [sample.case("t1", is_fraud=True)]
        unedited = [Precondition.no_edits_since(4)]
        assert ledger.append(Entry([sample.bullet("b2")], at=AT, who="ana", preconditions=unedited))[0].seq == 5
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(NEWEST,)]


@pytest.mark.parametrize("dump", RELEASED, ids=lambda dump: dump.stem)
def test_the_playbook_of_each_release_is_what_its_events_say(path: Path, dump: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(dump.read_text())
    with BulletPlaybook(SqliteLedger.open(path)) as playbook:
        assert matches_replay(playbook)
        snapshot = playbook.snapshot()
        assert (snapshot.revision, playbook.outcomes) == (2, 1)
        assert [(each.id, each.status, each.content) for each in snapshot.bullets.values()] == [
            ("b1", Status.PINNED, "VPN and a new device: decline")
        ]


def test_a_checkpoint_of_the_newest_schema_is_used(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((RELEASED[-1]).read_text())
    with SqliteLedger.open(path) as ledger:
        kept = ledger.checkpoint()
        assert kept is not None
        assert (kept.header.seq, len(kept.bullets.splitlines())) == (4, 1)
        assert BulletPlaybook(ledger)._state.checkpoint() == kept


OLD_CHECKPOINT = (
    '{"fold":1,"seq":4,"settled":4,"revision":2,"outcomes":1,"bullets":[{"id":"b1","content":"said by nobody",'
    '"node":"fraud_detection","source":"manual","status":"active","helpful_count":7}],"calibrations":{},"mapping":"",'
    '"scales":{}}'
)
"""As schema 0002 wrote it, but for what it says: whoever uses it says something else than the events."""


@pytest.mark.parametrize("before", ["0001", "0002"])
def test_a_checkpoint_from_before_pages_gives_way_to_the_events(
    path: Path, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(next(dump for dump in RELEASED if dump.stem == before).read_text())
        connection.execute("INSERT INTO checkpoints VALUES (1, 4, ?)", [OLD_CHECKPOINT])
        connection.commit()
    with pytest.raises(StoreSchema, match="open it once for writing"):
        SqliteLedger.open(path, read_only=True)
    with BulletPlaybook(SqliteLedger.open(path)) as playbook:
        (bullet,) = playbook.snapshot().bullets.values()
        assert (bullet.content, bullet.status, bullet.helpful_count) == (
            "VPN and a new device: decline",
            Status.PINNED,
            0,
        )
        assert matches_replay(playbook)
    monkeypatch.setattr(playbook_reading, "CHECKPOINT_EVERY", 1)
    with BulletPlaybook(SqliteLedger.open(path)) as playbook:  # saves one of its own in its place
        kept = playbook.ledger.checkpoint()
        assert kept is not None
        assert kept == playbook._state.checkpoint()


@pytest.mark.parametrize("journal", ["", "PRAGMA journal_mode = WAL"])
def test_a_blank_file_is_completed(path: Path, journal: str, sample: Any) -> None:
    path.touch()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(journal)
    with pytest.raises(StoreSchema, match="open it once for writing"):
        SqliteLedger.open(path, read_only=True)
    with SqliteLedger.open(path, create=False) as ledger:
        assert ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))[0].seq == 1


def test_a_creation_cut_short_in_its_first_page_is_completed(tmp_path: Path, path: Path, sample: Any) -> None:
    source = tmp_path / "source.db"
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("VACUUM")  # writes the one page of a blank file
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 1000,)] * 400)  # more than the cache holds
        path.write_bytes(source.read_bytes()[:4096])
        shutil.copy(f"{source}-journal", f"{path}-journal")
        connection.execute("ROLLBACK")

    with SqliteLedger.open(path) as ledger:
        assert ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))[0].seq == 1
    assert tables(path) == {*TABLES, "alembic_version"}


def test_a_migration_that_fails_leaves_the_schema_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(statement: str) -> None:
        raise RuntimeError(statement)

    with monkeypatch.context() as patch:
        patch.setattr(op, "create_index", lambda *_: failing("half way"))
        with pytest.raises(RuntimeError, match="half way"):
            SqliteLedger.open(path)
    assert tables(path) == set()
    SqliteLedger.open(path).close()
    assert tables(path) == {*TABLES, "alembic_version"}


@pytest.mark.parametrize(
    ("code", "spared"),
    [("import acefraud.storage", {"sqlalchemy", "alembic", "polars"}), (OPENING, {"sqlalchemy", "alembic", "polars"})],
    ids=["importing", "opening a current file"],
)
def test_what_is_not_needed_is_not_imported(path: Path, code: str, spared: set[str]) -> None:
    SqliteLedger.open(path).close()
    shown = "print(*{name.split('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", f"import sys; {code}; {shown}", path], capture_output=True, check=True)
    assert not spared.intersection(ran.stdout.decode().split())
