"""Old decisions move to Parquet files. Nothing is lost, whatever happens on the way."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.effort import rounds
from tests.storage.replaying import matches_replay
from tests.storage.test_kill import WRITER, output, start

from acefraud.core.events import DecisionsArchived
from acefraud.core.ledger import Entry, Precondition
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource, Ruling
from acefraud.errors import StoreError
from acefraud.storage import archive, open_playbook
from acefraud.storage.archive import archive_decisions, place_of_archived
from acefraud.storage.contents import file_statistics
from acefraud.storage.copies import copy_playbook
from acefraud.storage.sqlite import SqliteLedger

pytestmark = pytest.mark.wide

EARLIER = datetime(2024, 5, 1, 12, tzinfo=UTC)
LATER = datetime(2024, 7, 1, tzinfo=UTC)
BEFORE = datetime(2024, 6, 1, tzinfo=UTC)
ARCHIVES = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from acefraud.storage import archive
from acefraud.storage.sqlite import SqliteLedger

path, step, call = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
archive.DECISIONS_PER_FILE, archive._ROWS_PER_DELETE = 20, 3
done = getattr(archive, step, None)

def dies(*arguments):
    global call
    call -= 1
    if call < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return done(*arguments)

if done is not None:
    setattr(archive, step, dies)
print("archiving", flush=True)
with SqliteLedger.open(path) as ledger:
    archive.archive_decisions(ledger, datetime(2024, 6, 1, tzinfo=UTC), path.parent / "archive")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "book.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def fill(path: Path, sample: Any, pairs: int = 40) -> dict[int, str]:
    """Decisions and outcomes, most of them early; the ids of decisions by their number."""
    with SqliteLedger.open(path) as ledger:
        for n in range(pairs):
            ledger.append(Entry([sample.decision(f"d{n}", f"t{n}"), sample.outcome(f"t{n}")], EARLIER, "ana"))
        ledger.append(Entry([sample.decision("pending", "t-pending")], EARLIER, "ana"))
        ledger.append(Entry([sample.decision("late", "t-late"), sample.outcome("t-late")], LATER, "ana"))
    return in_file(path)


def in_file(path: Path) -> dict[int, str]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT seq, id FROM decisions"))


def in_archive(path: Path) -> pl.DataFrame:
    """What the files hold that the ledger knows of."""
    with SqliteLedger.open(path) as ledger:
        known = [event.payload.file for event in ledger.read() if isinstance(event.payload, DecisionsArchived)]
    frames = [pl.read_parquet(each) for each in known]
    return pl.concat(frames) if frames else pl.DataFrame({"seq": [], "id": []})


def whole(path: Path) -> dict[int, str]:
    """All decisions, wherever they are."""
    kept = in_archive(path)
    return dict(zip(kept["seq"], kept["id"], strict=True)) | in_file(path)


# --- what moves ----------------------------------------------------------------------------------------------------


def test_old_decisions_with_an_outcome_move(path: Path, folder: Path, sample: Any) -> None:
    before = fill(path, sample)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT * FROM decisions WHERE id = 'd7'").fetchall()
    with SqliteLedger.open(path) as ledger:
        last = ledger.last_seq()
        run = archive_decisions(ledger, BEFORE, folder, who="ana", why="old", clock=lambda: LATER)
        assert (run.archived, run.pending, run.completed, len(run.files)) == (40, 1, 0, 1)
        assert sorted(in_file(path).values()) == ["late", "pending"]
        (event,) = ledger.read(last)
        assert event.payload == DecisionsArchived(before=BEFORE, count=40, file=str(run.files[0]))
        assert (event.seq, event.at, event.who, event.why) == (last + 1, LATER, "ana", "old")
        ledger.append(Entry([sample.decision("next")], LATER, "ana"))
        assert ledger.last_seq() == last + 2
    assert whole(path) == before | {last + 2: "next"}
    kept = pl.read_parquet(run.files[0])
    assert list(kept.columns) == list(archive._COLUMNS)
    seq, one, about, at, who, why, *said = kept.filter(pl.col("id") == "d7").row(0)
    assert (seq, one, about, at, who, why) == (15, "d7", "t7", EARLIER, "ana", "")
    assert said == [*rows[0][6:9], None, None, rows[0][11]]
    assert run.files[0].stat().st_mode == path.stat().st_mode
    assert [each.name for each in folder.iterdir()] == [run.files[0].name]


def test_what_compact_records_have_in_common_is_in_the_archive(path: Path, folder: Path) -> None:
    import asyncio

    from acefraud import Learner, Outcome, Transaction

    with open_playbook(path) as book:
        learner = Learner(book)
        decided = asyncio.run(learner.decide(Transaction(id="t1", facts={"amount": 20, "vpn": True})))
        asyncio.run(learner.hear(Outcome(transaction_id="t1", is_fraud=True)))
        assert isinstance(book.ledger, SqliteLedger)
        (file,) = archive_decisions(book.ledger, datetime.now(UTC) + timedelta(hours=1), folder).files
        again = asyncio.run(learner.decide(Transaction(id="t1", facts={"amount": 20, "vpn": True})))
    kept = pl.read_parquet(file).row(0, named=True)
    assert kept["id"] == decided.id
    assert '"amount"' in kept["names"]
    assert '"engine"' in kept["setup"]
    assert again.facts == decided.facts
    with open_playbook(path) as book:  # what they have in common is still there for later ones
        assert book.ledger.decisions([again.id])[again.id].facts == decided.facts


def test_pending_decisions_move_if_told(path: Path, folder: Path, sample: Any) -> None:
    fill(path, sample, pairs=2)
    with SqliteLedger.open(path) as ledger:
        opinion = sample.outcome("t-pending").model_copy(
            update={
                "outcome": Outcome(transaction_id="t-pending", is_fraud=True, source=OutcomeSource.JUDGE),
                "judgement": Judgement(ruling=Ruling.UNJUDGED),
            }
        )
        ledger.append(Entry([opinion], LATER, "judge"))
        run = archive_decisions(ledger, BEFORE, folder)
        assert (run.archived, run.pending) == (2, 1)  # an opinion is not the outcome
        run = archive_decisions(ledger, BEFORE, folder, with_pending=True)
        assert (run.archived, run.pending) == (1, 0)
        assert list(in_file(path).values()) == ["late"]
        assert archive_decisions(ledger, BEFORE, folder, with_pending=True).files == ()


def test_bullets_and_counters_stay_as_they_are(path: Path, folder: Path, sample: Any) -> None:
    with open_playbook(path) as book:
        bullet = book.add_bullet("VPN and a new device: decline")
        book.record([sample.decision("d1")])
        book.record([sample.outcome("t1")])
        book.update_stats(bullet, is_helpful=True)
        before, revision = book.snapshot(), book.snapshot().revision
        assert isinstance(book.ledger, SqliteLedger)
        seen = book.seq
        archive_decisions(book.ledger, datetime.now(UTC) + timedelta(hours=1), folder)
        book.refresh()
        assert book.snapshot().bullets == before.bullets
        assert book.snapshot().revision == revision
        assert book.snapshot_at(seen).bullets == before.bullets
        assert matches_replay(book)
        # Archiving is no edit: whoever learnt meanwhile can write.
        book.record([sample.outcome("t2")], preconditions=[Precondition.no_edits_since(seen)])


def test_many_decisions_go_to_several_files(
    path: Path, folder: Path, sample: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fill(path, sample)
    monkeypatch.setattr(archive, "DECISIONS_PER_FILE", 15)
    monkeypatch.setattr(archive, "_ROWS_PER_QUERY", 4)
    with SqliteLedger.open(path) as ledger:
        assert len(archive_decisions(ledger, BEFORE, folder).files) == 3
    assert whole(path) == before
    assert in_archive(path)["id"].n_unique() == 40


# --- room ----------------------------------------------------------------------------------------------------------


def test_a_new_file_gives_room_back_while_it_is_in_use(path: Path, folder: Path, sample: Any) -> None:
    with SqliteLedger.open(path) as ledger:
        made = [sample.decision(f"d{n}", "t1") for n in range(2_000)]
        ledger.append(Entry([*made, sample.outcome("t1")], EARLIER, "ana"))
        full = file_statistics(ledger)
        with SqliteLedger.open(path) as other, other.reading() as reader:
            assert reader.value("SELECT count(*) FROM decisions") == 2_000
            run = archive_decisions(ledger, BEFORE, folder)
        left = file_statistics(ledger)
    assert run.shrinks
    assert run.bytes_given_back > 0.8 * full.file_bytes
    assert left.file_bytes <= full.file_bytes - run.bytes_given_back
    assert left.free_bytes == 0


def test_a_file_of_an_earlier_version_shrinks_as_a_copy(path: Path, folder: Path, sample: Any, tmp_path: Path) -> None:
    with SqliteLedger.open(path) as ledger:
        made = [sample.decision(f"d{n}", "t1") for n in range(1_000)]
        ledger.append(Entry([*made, sample.outcome("t1")], EARLIER, "ana"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")
    with SqliteLedger.open(path) as ledger:
        run = archive_decisions(ledger, BEFORE, folder)
        assert (run.archived, run.shrinks, run.bytes_given_back) == (1_000, False, 0)
        assert file_statistics(ledger).free_bytes > 0
    size = copy_playbook(path, tmp_path / "copy.db")
    assert size < 0.3 * path.stat().st_size
    with SqliteLedger.open(tmp_path / "copy.db") as copied:
        assert file_statistics(copied).shrinks


# --- interruptions -------------------------------------------------------------------------------------------------


def archiving(path: Path, step: str = "", call: int = 0) -> subprocess.Popen[str]:
    """A process that archives, and dies at a step that is taken for so many times before."""
    return subprocess.Popen(
        [sys.executable, "-c", ARCHIVES, str(path), step, str(call)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize(
    ("step", "call"), [("_name", 0), ("_record", 1), ("_delete", 1), ("_delete_some", 3), ("_give_room_back", 0)]
)
def test_a_kill_loses_nothing_and_the_next_run_completes_it(
    path: Path, folder: Path, sample: Any, step: str, call: int
) -> None:
    before = fill(path, sample)
    with archiving(path, step, call) as child:
        child.wait(timeout=60)
    assert child.returncode == -signal.SIGKILL
    assert whole(path) == before
    with SqliteLedger.open(path) as ledger:
        archive_decisions(ledger, BEFORE, folder)
    assert sorted(in_file(path).values()) == ["late", "pending"]
    assert whole(path) == before
    assert in_archive(path)["id"].n_unique() == len(in_archive(path)), "each decision is in one file that is known"


def test_a_run_cut_short_whose_file_is_gone_archives_again(path: Path, folder: Path, sample: Any) -> None:
    before = fill(path, sample)
    with archiving(path, "_delete_some", 0) as child:
        child.wait(timeout=60)
    (written,) = folder.glob("*.parquet")
    written.unlink()
    with SqliteLedger.open(path) as ledger:
        assert archive_decisions(ledger, BEFORE, folder).archived == 40
        (*_, kept) = (event.payload for event in ledger.read() if isinstance(event.payload, DecisionsArchived))
    assert set(pl.read_parquet(kept.file)["id"]) == set(before.values()) - {"late", "pending"}


def test_others_write_while_decisions_are_archived(
    path: Path, folder: Path, sample: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_ROWS_PER_DELETE", 2)
    with start(WRITER, path) as child:
        try:
            for _ in range(41):
                output(child).readline()
            with SqliteLedger.open(path) as ledger:
                run = archive_decisions(ledger, datetime.now(UTC), folder)
                acknowledged = int([output(child).readline() for _ in range(run.archived // 2)][-1])
        finally:
            child.send_signal(signal.SIGKILL)
            acknowledged = max(acknowledged, *(int(line) for line in output(child) if line.endswith("\n")), 0)
    assert run.archived >= 39
    with SqliteLedger.open(path) as ledger:
        numbers = [event.seq for event in ledger.read(decisions=False)]
        last = ledger.last_seq()
    assert last >= acknowledged
    assert sorted([*numbers, *whole(path)]) == list(range(1, last + 1))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def kill_archivers(path: Path, sample: Any, times: int, seed: int) -> None:
    """Kill processes that archive, at random moments, with new decisions in between."""
    chance = random.Random(seed)
    everything = fill(path, sample)
    for turn in range(times):
        with archiving(path) as child:
            output(child).readline()
            time.sleep(chance.uniform(0, 0.25))
            child.send_signal(signal.SIGKILL)
        assert whole(path) == everything
        with SqliteLedger.open(path) as ledger:
            for n in range(20):
                one = f"x{turn}-{n}"
                first, _ = ledger.append(Entry([sample.decision(one, one), sample.outcome(one)], EARLIER, "ana"))
                everything[first.seq] = one
    with archiving(path) as child:
        child.wait(timeout=60)
    assert sorted(in_file(path).values()) == ["late", "pending"]
    assert whole(path) == everything
    assert in_archive(path)["id"].n_unique() == len(in_archive(path))


@pytest.mark.long
def test_many_kills_lose_nothing(path: Path, sample: Any) -> None:
    kill_archivers(path, sample, times=rounds(40), seed=3)


FULL = """
import resource, sys
from datetime import UTC, datetime
from pathlib import Path
from acefraud.errors import StoreError
from acefraud.storage.archive import archive_decisions
from acefraud.storage.sqlite import SqliteLedger

with SqliteLedger.open(Path(sys.argv[1])) as ledger:
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))
    try:
        archive_decisions(ledger, datetime(2024, 6, 1, tzinfo=UTC), Path(sys.argv[1]).parent / "archive")
    except StoreError as problem:
        print(problem, flush=True)
"""


def test_a_full_disk_deletes_nothing(path: Path, folder: Path, sample: Any) -> None:
    """A limit on the size of files makes every longer write fail, as a full disk does."""
    before = fill(path, sample, pairs=2)
    with start(FULL, path) as child:
        said = output(child).read()
    assert "cannot be written, nothing was deleted" in said
    assert list(folder.iterdir()) == []
    assert in_file(path) == before


def test_a_folder_that_cannot_be_written_deletes_nothing(path: Path, folder: Path, sample: Any) -> None:
    before = fill(path, sample, pairs=2)
    folder.write_text("a file")
    with SqliteLedger.open(path) as ledger, pytest.raises(StoreError, match="archive"):
        archive_decisions(ledger, BEFORE, folder)
    assert in_file(path) == before


def test_a_file_that_does_not_read_back_deletes_nothing(
    path: Path, folder: Path, sample: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fill(path, sample, pairs=2)
    monkeypatch.setattr(pl, "read_parquet", lambda _: pl.DataFrame())
    with SqliteLedger.open(path) as ledger, pytest.raises(StoreError, match="does not read back"):
        archive_decisions(ledger, BEFORE, folder)
    assert in_file(path) == before
    assert list(folder.iterdir()) == []


# --- finding them again --------------------------------------------------------------------------------------------


def test_an_archived_decision_is_found_by_its_id_or_transaction(path: Path, folder: Path, sample: Any) -> None:
    fill(path, sample, pairs=2)
    with SqliteLedger.open(path) as ledger:
        assert place_of_archived(ledger, "d1") == ""
        (file,) = archive_decisions(ledger, BEFORE, folder, clock=lambda: LATER).files
        for wanted in ("d1", "t1"):
            assert place_of_archived(ledger, wanted) == f"it was archived on 2024-07-01 to {file}"
        assert place_of_archived(ledger, "d9") == ""
        file.rename(file.with_suffix(".moved"))
        assert place_of_archived(ledger, "d1") == f"it may be in an archive that cannot be read any more: {file}"
        file.write_text("something else")
        assert "cannot be read any more" in place_of_archived(ledger, "d1")
