"""What only the file promises: durable settings, several writers at once, and writes that fail whole."""

from __future__ import annotations

import os
import random
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
from tests.storage.replaying import cases_of, matches_replay

from acefraud.core.bullet import Bullet, Status
from acefraud.core.calibration import Calibration
from acefraud.core.decision import DecisionRecord
from acefraud.core.events import BulletAdded, Event, Recalibrated
from acefraud.core.ledger import Entry
from acefraud.core.playbook import Checkpoint, CheckpointHeader, PlaybookState
from acefraud.errors import ConfigurationError, StoreError
from acefraud.storage import open_playbook, playbook_reading
from acefraud.storage.playbook import BulletPlaybook
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
    with ledger.reading() as reader, ledger.writing() as writer:
        for driver in (reader, writer):
            pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            assert [driver.value(f"PRAGMA {pragma}") for pragma in pragmas] == ["wal", 2, 1, 30_000]


def test_commits_need_not_wait_for_the_disk(path: Path) -> None:
    with open_playbook(path, durability="process") as book:
        assert isinstance(book.ledger, SqliteLedger)
        with book.ledger.reading() as reader, book.ledger.writing() as writer:
            for driver in (reader, writer):
                pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
                assert [driver.value(f"PRAGMA {pragma}") for pragma in pragmas] == ["wal", 1, 1, 30_000]


def test_a_durability_that_there_is_not(path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"durability: expected power or process; got 'none'"):
        open_playbook(path, durability="none")
    assert not path.exists()


def test_a_write_takes_the_lock_before_it_numbers_its_events(ledger: SqliteLedger, sample: Any) -> None:
    said: list[str] = []
    ledger._writer = ledger._connect()
    ledger._writer.set_trace_callback(said.append)
    ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
    statements = [statement for statement in said if not statement.startswith("PRAGMA")]
    assert statements[0] == "BEGIN IMMEDIATE"
    assert statements[1].startswith("INSERT INTO events")
    assert "SELECT coalesce(max(last), 0)" in statements[1]


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
    written = ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="only ever appended"),
    ):
        connection.execute(change)
    assert list(ledger.read()) == written


def test_nothing_is_left_beside_a_closed_file(path: Path, sample: Any) -> None:
    with SqliteLedger.open(path) as ledger:
        ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
    assert os.listdir(path.parent) == [path.name]


def test_a_closed_ledger_says_so(path: Path) -> None:
    ledger = SqliteLedger.open(path)
    ledger.close()
    with pytest.raises(StoreError, match="was closed"):
        ledger.last_seq()


def test_a_checkpoint_of_another_version_is_dropped(ledger: SqliteLedger, path: Path) -> None:
    ledger.save_checkpoint(Checkpoint(CheckpointHeader(seq=3)))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('UPDATE checkpoints SET body = \'{"seq": "what"}\'')
    assert ledger.checkpoint() is None


# --- checkpoints -------------------------------------------------------------------------------------------------


def test_a_checkpoint_in_several_pages_as_earlier_versions_wrote_it_is_used(ledger: SqliteLedger, path: Path) -> None:
    playbook = BulletPlaybook(ledger)
    for index in range(7):
        playbook.add_bullet(f"Heuristic {index}: decline")
    saved = playbook._state.checkpoint()
    ledger.save_checkpoint(saved)
    lines = saved.bullets.split(b"\n")
    pages = [(number, b"", b"\n".join(lines[3 * number : 3 * number + 3])) for number in (2, 0, 1)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM checkpoint_pages")
        connection.executemany("INSERT INTO checkpoint_pages VALUES (?, ?, ?)", pages)
    assert ledger.checkpoint() == saved
    assert PlaybookState(ledger.checkpoint()).seq == 7
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM checkpoint_pages WHERE number = 1")
    assert PlaybookState(ledger.checkpoint()).seq == 0, "one that has lost a page is not taken"
    ledger.save_checkpoint(saved)
    assert ledger.checkpoint() == saved


def folded(ledger: SqliteLedger, until: int | None = None) -> PlaybookState:
    state = PlaybookState()
    for each in ledger.read(until=until):
        state.apply(each)
    return state


def check_kept(path: Path) -> int:
    """The checkpoint in the file is what the events up to it give; where it stands."""
    with SqliteLedger.open(path, read_only=True) as ledger:
        kept = ledger.checkpoint()
        assert kept is not None
        assert kept == folded(ledger, until=kept.header.seq).checkpoint()
    return kept.header.seq


def do_something(playbook: BulletPlaybook, dice: random.Random) -> None:
    ids = list(playbook.snapshot().bullets)
    match dice.randrange(5) if ids else 0:
        case 0:
            playbook.add_bullet(f"call {dice.randrange(100)}: decline", dice.choice(["one", "two", "three"]))
        case 1:
            playbook.edit_bullet(dice.choice(ids), f"call {dice.randrange(100)}: approve")
        case 2:
            playbook.set_status(dice.choice(ids), dice.choice(list(Status)))
        case _:
            playbook.update_stats(dice.choice(ids), is_helpful=dice.random() < 0.5)


CLAIMING = """
import sys, time
from pathlib import Path
from acefraud.storage.sqlite import SqliteLedger

with SqliteLedger.open(Path(sys.argv[1])) as ledger, ledger.claim("learning") as mine:
    print(mine, flush=True)
    time.sleep(60)
"""


def test_a_claim_counts_for_others_and_ends_with_the_process_that_has_it(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "b.db")
    with SqliteLedger.open(tmp_path / "b.db") as one, SqliteLedger.open(link) as other:
        with one.claim("learning"), other.claim("learning") as second:
            assert not second
        with subprocess.Popen(
            [sys.executable, "-c", CLAIMING, str(tmp_path / "b.db")],
            stdout=subprocess.PIPE,
            text=True,
            env=HERE,
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "True\n"
            with one.claim("learning") as while_it_runs:
                assert not while_it_runs
            child.kill()
        with one.claim("learning") as once_it_is_dead:
            assert once_it_is_dead


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_two_playbooks_on_one_file_that_save_in_turn_keep_what_the_events_give(
    path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playbook_reading, "CHECKPOINT_EVERY", 3)
    dice = random.Random(seed)
    with BulletPlaybook(SqliteLedger.open(path)) as first, BulletPlaybook(SqliteLedger.open(path)) as second:
        for _ in range(25):
            mine = dice.choice([first, second])
            mine.refresh()
            do_something(mine, dice)
            assert matches_replay(mine)
            if first.ledger.checkpoint() is not None:
                check_kept(path)
        for each in (first, second):
            each.refresh()
            assert matches_replay(each)
        snapshot = first.snapshot()
        assert second.snapshot() == snapshot
    assert check_kept(path) > 15
    with BulletPlaybook(SqliteLedger.open(path)) as again:
        assert again.snapshot() == snapshot
        assert matches_replay(again)


def test_a_checkpoint_of_many_bullets_is_kept_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playbook_reading, "CHECKPOINT_EVERY", 5)
    with BulletPlaybook(SqliteLedger.open(path)) as first, BulletPlaybook(SqliteLedger.open(path)) as second:
        many = [BulletAdded(bullet=Bullet(id=f"b{index}", content="x")) for index in range(2_047)]
        first.record(many)
        assert check_kept(path) == 2_047
        for place in range(5):
            first.update_stats(f"b{place}", is_helpful=True)
        for place in range(5):
            first.add_bullet(f"call {place}: decline")
        assert check_kept(path) == 2_057
        second.refresh()  # takes in all of it, and has not saved before
        for place in range(5):
            second.update_stats(f"b{place}", is_helpful=True)
        check_kept(path)
        for place in range(10):
            first.update_stats(f"b{place}", is_helpful=True)
        check_kept(path)
        assert matches_replay(first)
    with BulletPlaybook(SqliteLedger.open(path)) as again:
        assert len(again) == 2_052
        assert matches_replay(again)


DAMAGES = [
    "UPDATE checkpoint_pages SET bullets = X'7B'",
    "UPDATE checkpoint_pages SET bullets = X''",
    "UPDATE checkpoint_pages SET \"table\" = X'00'",
    "UPDATE checkpoint_pages SET \"table\" = X''",
    "UPDATE checkpoints SET body = '{'",
    "UPDATE checkpoints SET body = replace(body, '\"fold\":', '\"fold\":7')",
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_passed_over_and_then_replaced(
    path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playbook_reading, "CHECKPOINT_EVERY", 2)
    with BulletPlaybook(SqliteLedger.open(path)) as playbook:
        for index in range(4):
            playbook.add_bullet(f"call {index}: decline")
        snapshot = playbook.snapshot()
    assert check_kept(path) == 4
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(damage).rowcount == 1
    with SqliteLedger.open(path, read_only=True) as ledger:  # a reader can do nothing about it, and need not
        assert BulletPlaybook(ledger).snapshot() == snapshot
    with BulletPlaybook(SqliteLedger.open(path)) as again:
        assert again.snapshot() == snapshot
        assert matches_replay(again)
    assert check_kept(path) == 4


def test_opening_goes_on_from_the_checkpoint(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playbook_reading, "CHECKPOINT_EVERY", 10)
    with BulletPlaybook(SqliteLedger.open(path)) as playbook:
        for index in range(13):
            playbook.add_bullet(f"call {index}: decline")
    asked: list[int] = []

    class Noting(SqliteLedger):
        def read(self, after: int = 0, until: int | None = None, *, decisions: bool = True) -> Iterator[Event]:
            asked.append(after)
            return super().read(after, until, decisions=decisions)

    with BulletPlaybook(Noting.open(path)) as again:
        assert len(again) == 13
    assert asked == [10]


# --- several at once ---------------------------------------------------------------------------------------------

APPENDER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from acefraud.core.events import StatusChanged
from acefraud.core.ledger import Entry
from acefraud.storage.sqlite import SqliteLedger

who, count = sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
with SqliteLedger.open(Path(sys.argv[1])) as ledger:
    for n in range(count):
        entry = Entry([StatusChanged(bullet_id=f"{who}-{n}", status="active")], at=datetime.now(UTC), who=who)
        ledger.append(entry)
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
        assert [event.payload.subject for event in written if event.who == who] == [f"{who}-{n}" for n in range(200)]


def test_threads_share_one_ledger(path: Path, sample: Any) -> None:
    def run(who: str) -> None:
        with SqliteLedger.open(path) as own:
            own.append(Entry([sample.bullet(who)], at=AT, who=who))
        for n in range(20):
            shared.append(Entry([sample.bullet(f"{who}-{n}")], at=AT, who=who))
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
            ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
        assert str(path) in str(caught.value)
        assert ledger.last_seq() == 0  # readers are not held up
        other.rollback()
        assert ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))[0].seq == 1


# --- writes that fail --------------------------------------------------------------------------------------------


def test_read_only_reads_and_refuses_to_write(path: Path, sample: Any) -> None:
    with SqliteLedger.open(path) as ledger:
        written = ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
    before = path.read_bytes()
    with SqliteLedger.open(path, read_only=True) as ledger:
        assert list(ledger.read()) == written
        with pytest.raises(StoreError, match="may only be read") as caught:
            ledger.append(Entry([sample.bullet("b2")], at=AT, who="ana"))
        assert str(path) in str(caught.value)
        ledger.save_checkpoint(Checkpoint(CheckpointHeader(seq=1)))
        assert ledger.checkpoint() is None
    assert path.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_a_file_without_permission_to_write(path: Path, sample: Any) -> None:
    SqliteLedger.open(path).close()
    path.chmod(0o444)
    with pytest.raises(StoreError, match="may only be read"), SqliteLedger.open(path) as ledger:
        ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))


def test_a_full_disk_leaves_nothing_half_written(ledger: SqliteLedger, sample: Any) -> None:
    written = ledger.append(Entry([sample.bullet("b0")], at=AT, who="ana", cases=[sample.known("t0")]))
    with ledger.writing() as driver:
        driver.ask(f"PRAGMA max_page_count = {driver.value('PRAGMA page_count') + 2}")
    many = [sample.bullet(f"b{n}", content="x" * 2_000) for n in range(1, 50)]
    with pytest.raises(StoreError, match="disk is full") as caught:
        ledger.append(Entry(many, at=AT, who="ana", cases=[sample.known("t1")]))
    assert str(ledger.path) in str(caught.value)

    assert list(ledger.read()) == written
    assert cases_of(ledger) == [sample.case("t0")]
    ledger._close_connections()  # the limit belongs to the connection: a new one has space again
    assert ledger.append(Entry(many, at=AT, who="ana"))[-1].seq == 50


def test_a_payload_that_cannot_be_read_back_is_refused(ledger: SqliteLedger, sample: Any) -> None:
    decision = sample.decision("d1")
    endless = decision.decision.model_copy(update={"base": float("inf")})
    with pytest.raises(StoreError, match=r"decision d1 on t1 cannot be kept.*base"):
        DecisionRecord.whole(endless)
    calibration = Calibration(intercept=0.0).model_copy(update={"intercept": float("inf")})
    with pytest.raises(StoreError, match=r"recalibrated of n cannot be kept.*calibration\.intercept"):
        ledger.append(Entry([sample.bullet("b1"), Recalibrated(node="n", calibration=calibration)], at=AT, who="ana"))
    assert ledger.last_seq() == 0


def test_an_event_that_was_tampered_with_is_named(ledger: SqliteLedger, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO events VALUES (1, 'status_changed', 'b1', '', '2024-05-01', 'eve', '', '{}')")
    with pytest.raises(StoreError, match="event 1 cannot be read"):
        list(ledger.read())


def test_a_damaged_file_is_an_error_of_the_store(path: Path, sample: Any) -> None:
    with SqliteLedger.open(path) as ledger:
        ledger.append(Entry([sample.bullet(f"b{n}") for n in range(200)], at=AT, who="ana"))
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    with pytest.raises(StoreError, match="damaged"), SqliteLedger.open(path) as ledger:
        list(ledger.read())
