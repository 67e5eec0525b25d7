"""What only a database promises: one playbook for each schema, many processes, and a server that comes and goes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Semaphore
from typing import Any

import psycopg
import pytest
from tests.postgres import database_for

from acefraud.core.ledger import Entry, KeptRequest
from acefraud.errors import ConfigurationError, InputError, StoreError, StoreSchema, StoreUnavailable
from acefraud.settings import Durability
from acefraud.storage import open_playbook
from acefraud.storage.postgres import PostgresLedger
from acefraud.storage.schema import NEWEST, TABLES
from acefraud.storage.sql_reading import LAST_EVENT

AT = datetime(2024, 5, 1, tzinfo=UTC)
HERE = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

pytestmark = [pytest.mark.wide, pytest.mark.usefixtures("each_playbook_migrated")]


@pytest.fixture
def address(tmp_path: Path) -> str:
    return database_for(tmp_path)


@pytest.fixture
def ledger(address: str) -> Iterator[PostgresLedger]:
    with PostgresLedger.open(address) as opened:
        yield opened


def run(address: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


# --- the schema --------------------------------------------------------------------------------------------------


def test_migrations_build_the_schema_that_the_code_uses(ledger: PostgresLedger) -> None:
    with ledger.reading() as driver:
        tables = {
            name for (name,) in driver.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        }
        assert tables == {*TABLES, "alembic_version"}
        for table, columns in TABLES.items():
            found = driver.fetch(
                "SELECT column_name, column_default FROM information_schema.columns "
                "WHERE table_schema = current_schema() AND table_name = ? ORDER BY ordinal_position",
                (table,),
            )
            assert [name for name, _ in found] == [column.strip('"') for column in columns]
            numbered = [default for name, default in found if name in ("seq", "key", "id")]
            assert not any(numbered), "the ledger gives the numbers"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET who = 'eve'",
        "DELETE FROM events",
        "TRUNCATE events",
        "INSERT INTO events SELECT seq + 5, kind, subject, key, at, who, why, body FROM events",
        "UPDATE decisions SET verdict = 'APPROVE'",
        "INSERT INTO decisions SELECT 1, id, 't', at, who, why, verdict, 0.5, 0, setup, names, body FROM decisions",
    ],
)
def test_events_can_only_be_appended(ledger: PostgresLedger, address: str, sample: Any, change: str) -> None:
    written = ledger.append(Entry([sample.bullet("b1"), sample.decision("d1")], at=AT, who="ana"))
    with pytest.raises(psycopg.errors.RaiseException, match="only ever appended"):
        run(address, change)
    assert list(ledger.read()) == written


def test_each_schema_has_a_playbook_of_its_own(tmp_path: Path, sample: Any) -> None:
    addresses = [database_for(tmp_path, name) for name in ("one", "other")]
    with PostgresLedger.open(addresses[0]) as one, PostgresLedger.open(addresses[1]) as other:
        with one.claim("learning") as mine, other.claim("learning") as theirs:
            assert (mine, theirs) == (True, True)
        with one.writing(), ThreadPoolExecutor(1) as pool:  # each has a write lock of its own
            entry = Entry([sample.bullet("b1")], at=AT, who="ana")
            assert pool.submit(other.append, entry).result(20)[0].seq == 1
        assert not one.wait_for_events(0, 0.1)
        assert one.last_seq() == 0


def test_tables_of_others_are_left_alone(address: str) -> None:
    PostgresLedger.open(address).close()
    run(address, "DELETE FROM meta")
    with pytest.raises(StoreSchema, match="not a playbook; it was left untouched"):
        PostgresLedger.open(address)


def test_a_newer_schema_is_refused_by_name(address: str) -> None:
    PostgresLedger.open(address).close()
    run(address, "UPDATE alembic_version SET version_num = '9999'")
    for read_only in (False, True):
        with pytest.raises(StoreSchema, match=f"has schema 9999, the newest .* is {NEWEST}"):
            PostgresLedger.open(address, read_only=read_only)


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_a_missing_playbook_is_not_made_unasked(address: str, options: Any) -> None:
    with pytest.raises(StoreError, match="there is no schema"):
        PostgresLedger.open(address, **options)
    run(address, f"CREATE SCHEMA {address.rpartition('%3D')[2]}")
    with pytest.raises(StoreError, match="there is no playbook in"):
        PostgresLedger.open(address, **options)


def test_read_only_reads_and_refuses_to_write(address: str, sample: Any) -> None:
    with PostgresLedger.open(address) as ledger:
        written = ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
    with PostgresLedger.open(address, read_only=True) as ledger:
        assert list(ledger.read()) == written
        with pytest.raises(StoreError, match="may only be read"):
            ledger.append(Entry([sample.bullet("b2")], at=AT, who="ana"))


@pytest.mark.parametrize(("durability", "set_to"), [(Durability.POWER, "on"), (Durability.PROCESS, "off")])
def test_commits_wait_for_the_disk_unless_told_otherwise(address: str, durability: Durability, set_to: str) -> None:
    with PostgresLedger.open(address, durability=durability) as ledger, ledger.writing() as driver:
        assert driver.value("SHOW synchronous_commit") == set_to


def test_a_server_that_does_not_wait_for_the_disk_is_told_to(address: str) -> None:
    with PostgresLedger.open(f"{address}%20-csynchronous_commit%3Doff") as ledger, ledger.writing() as driver:
        assert driver.value("SHOW synchronous_commit") == "on"


# --- a server that comes and goes --------------------------------------------------------------------------------


@pytest.fixture
def restarting(address: str) -> Iterator[tuple[PostgresLedger, Any]]:
    """A ledger, and a call that ends all its connections as a server does that stops."""
    name = f"test {address[-20:]}"
    with PostgresLedger.open(f"{address}&application_name={name.replace(' ', '%20')}") as opened:
        end = f"SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name = '{name}'"
        yield opened, lambda: run(address, end)[0][0]


def test_connections_that_broke_are_replaced(restarting: tuple[PostgresLedger, Any], sample: Any) -> None:
    ledger, end = restarting
    for n in range(3):
        assert ledger.append(Entry([sample.bullet(f"b{n}")], at=AT, who="ana"))[0].seq == n + 1
        assert ledger.last_seq() == n + 1
        assert ledger.checkpoint() is None
        assert ledger.wait_for_events(n, 20)
        with ledger.claim("learning") as free:
            assert free
        assert end() >= 4


def test_who_waits_goes_on_with_a_new_connection(
    restarting: tuple[PostgresLedger, Any], address: str, sample: Any
) -> None:
    ledger, end = restarting
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ledger.wait_for_events, 0, 60)
        asked = (
            f"SELECT 1 FROM pg_stat_activity WHERE query = '{LAST_EVENT}' AND application_name LIKE '%{address[-20:]}'"
        )
        while not run(address, asked):
            pass
        end()
        ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
        assert waiting.result(60)


def test_a_process_opens_a_few_connections_however_many_threads_it_has(tmp_path: Path, sample: Any) -> None:
    name = tmp_path.name
    address = f"{database_for(tmp_path)}&application_name={name}"
    held, go_on = Semaphore(0), Event()

    def hold(block: AbstractContextManager[Any]) -> None:
        with block:
            held.release()
            assert go_on.wait(60)

    asked = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'"
    with PostgresLedger.open(address) as ledger, ThreadPoolExecutor(64) as pool, ledger.claim("learning"):
        ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
        waiting: list[Future[Any]] = [pool.submit(ledger.wait_for_events, 1, 60)]
        waiting += [pool.submit(hold, ledger._looking_up()) for _ in range(20)]
        waiting += [pool.submit(hold, ledger.reading()) for _ in range(20)]
        try:
            while held.acquire(timeout=0.5):  # until no other thread gets a connection
                pass
            ((count,),) = run(database_for(tmp_path), asked)
        finally:
            go_on.set()
        ledger.append(Entry([sample.bullet("b2")], at=AT, who="ana"))
        for each in waiting:
            each.result(60)

    assert 10 <= count <= 13


def test_a_claim_ends_with_its_connection(restarting: tuple[PostgresLedger, Any], address: str) -> None:
    ledger, end = restarting
    with PostgresLedger.open(address) as other, ledger.claim("learning"):
        with other.claim("learning") as free:
            assert not free
        end()
        with other.claim("learning") as free:
            assert free, "as if the process of the first had died"


def test_a_write_that_the_server_ends_is_unavailable_and_leaves_nothing(
    restarting: tuple[PostgresLedger, Any], sample: Any
) -> None:
    ledger, end = restarting
    with pytest.raises(StoreUnavailable, match="try again"):
        ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana", rows=lambda _: end()))
    assert ledger.last_seq() == 0
    assert ledger.append(Entry([sample.bullet("b2")], at=AT, who="ana"))[0].seq == 1


def test_a_lock_held_for_too_long_is_unavailable(address: str, sample: Any) -> None:
    with PostgresLedger.open(address, wait=0.1) as ledger, PostgresLedger.open(address) as other:
        with other.writing(), pytest.raises(StoreUnavailable, match="held the write lock for too long"):
            ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
        assert ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))[0].seq == 1


def test_a_server_that_is_not_there_is_unavailable_and_its_password_is_not_shown() -> None:
    with pytest.raises(StoreUnavailable) as caught:
        PostgresLedger.open("postgresql://ana:s3cret@127.0.0.1:1/fraud?connect_timeout=2")
    assert str(caught.value).startswith("playbook postgresql://ana:***@127.0.0.1:1/fraud?connect_timeout=2: ")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["postgresql://ana:s3cret/x@127.0.0.1/fraud", "postgresql://ana:s3cret@[127.0.0.1/f", "postgresql://a/f?s3cret=1"],
)
def test_an_address_that_cannot_be_understood_is_not_quoted(address: str) -> None:
    with pytest.raises(StoreError, match="cannot be understood; expected postgresql://") as caught:
        PostgresLedger.open(address)
    assert "s3cret" not in str(caught.value) or "?" in address
    assert caught.value.__cause__ is None


def test_a_user_that_is_not_let_in(address: str) -> None:
    with pytest.raises(StoreError, match="does not let this user in") as caught:
        PostgresLedger.open(f"{address}&user=nobody_of_that_name&password=s3cret")
    assert not isinstance(caught.value, StoreUnavailable)
    assert "s3cret" not in str(caught.value)


def test_a_database_that_does_not_exist(address: str) -> None:
    with pytest.raises(StoreError, match="there is no such database; create it first") as caught:
        PostgresLedger.open(f"{address}&dbname=none_of_that_name")
    assert not isinstance(caught.value, StoreUnavailable)


def test_an_id_that_is_too_long_for_an_index_is_an_input_error(ledger: PostgresLedger, sample: Any) -> None:
    long = "".join(chr(0x4E00 + n * 7 % 20_000) for n in range(9_000))
    request = KeptRequest(long, "t1", "", "d1")
    with pytest.raises(InputError, match="too long"):
        ledger.append(Entry([sample.decision("d1")], at=AT, who="ana", requests=[request]))
    assert ledger.last_seq() == 0


# --- a playbook --------------------------------------------------------------------------------------------------


def test_a_playbook_is_opened_by_its_address_and_shown_without_its_password(address: str) -> None:
    secret = f"{address}&password=s3cret"
    with open_playbook(secret) as playbook:
        bullet_id = playbook.add_bullet("VPN and a new device: decline", who="ana")
        assert "s3cret" not in repr(playbook) + repr(playbook.ledger)
        with pickle.loads(pickle.dumps(playbook)) as again:
            assert again.get_bullet(bullet_id) == playbook.get_bullet(bullet_id)
        with open_playbook(secret, create=False, read_only=True) as read:
            assert bullet_id in read


def test_a_missing_driver_is_named_with_the_way_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "acefraud.storage.postgres", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'acefraud\[postgres\]'"):
        open_playbook("postgresql://ana@127.0.0.1/fraud")


WRITER = """
import sys
from datetime import UTC, datetime
from acefraud.core.bullet import Bullet
from acefraud.core.events import BulletAdded
from acefraud.core.ledger import Entry
from acefraud.storage.postgres import PostgresLedger

with PostgresLedger.open(sys.argv[1]) as ledger:
    for n in range(20):
        added = [BulletAdded(bullet=Bullet(id=f"{sys.argv[2]}-{n}-{m}", content="x")) for m in range(3)]
        print(*[event.seq for event in ledger.append(Entry(added, at=datetime.now(UTC), who=sys.argv[2]))])
"""


def test_processes_that_create_and_append_together_lose_nothing(address: str) -> None:
    command = [sys.executable, "-c", WRITER, address]
    started = [
        subprocess.Popen([*command, f"w{n}"], env=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    said = [process.communicate(timeout=120) for process in started]
    assert [error for _, error in said] == [""] * 4
    numbers = [[int(each) for each in line.split()] for out, _ in said for line in out.splitlines()]
    assert all(number == list(range(number[0], number[0] + 3)) for number in numbers), (
        "what is appended together stays together"
    )
    assert sorted(each for line in numbers for each in line) == list(range(1, 241))
    with PostgresLedger.open(address, create=False) as ledger:
        assert [event.seq for event in ledger.read()] == list(range(1, 241))


def test_who_has_seen_an_event_has_seen_all_before_it(address: str, sample: Any) -> None:
    def write(name: str) -> None:
        with PostgresLedger.open(address) as own:
            for n in range(40):
                own.append(Entry([sample.bullet(f"{name}-{n}")], at=AT, who=name))

    with PostgresLedger.open(address) as reader, ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, name) for name in "abcd"]
        seen = 0
        while seen < 160:
            found = [event.seq for event in reader.read(seen)]
            assert found == list(range(seen + 1, seen + 1 + len(found)))
            seen += len(found)
        for each in writing:
            each.result()
