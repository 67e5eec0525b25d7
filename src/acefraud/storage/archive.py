"""Old decisions, moved from a playbook to Parquet files.

They are written, read back and synced first. Then the ledger records where they are, and only then are they deleted.
So a crash at any moment loses nothing, and the next run completes what was begun.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import polars as pl
from sqlalchemy import ColumnElement, Connection, func, select

from acefraud.core.events import THE_ENGINE, DecisionsArchived
from acefraud.core.ledger import Entry
from acefraud.errors import StoreError
from acefraud.storage.backup import sync
from acefraud.storage.file_errors import translated
from acefraud.storage.playbook import system_clock
from acefraud.storage.schema import common, decisions, events, requests
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.storage.sql_reading import has_outcome
from acefraud.storage.sqlite import SqliteLedger
from acefraud.support.timestamps import micros_of

DECISIONS_PER_FILE = 100_000
"""So many are held in memory at once."""
_ROWS_PER_QUERY: Final = 10_000
_ROWS_PER_DELETE = 500
_PAGES_PER_STEP: Final = 1_024
_DELETED_BY: Final = ["seq", "id", "transaction_id"]
_COLUMNS: Final = {
    "seq": pl.Int64,
    "id": pl.String,
    "transaction_id": pl.String,
    "at": pl.Int64,
    "who": pl.String,
    "why": pl.String,
    "verdict": pl.String,
    "probability": pl.Float64,
    "revision": pl.Int64,
    "setup": pl.String,
    "names": pl.String,
    "body": pl.String,
}


@dataclass(frozen=True, slots=True)
class ArchiveRun:
    """What moving decisions out came to."""

    archived: int
    files: tuple[Path, ...]
    pending: int
    """Decisions from before the time that stay, because no outcome of their transaction has arrived."""
    completed: int
    """Decisions of an earlier run, cut short, that were in their archive already and are deleted now."""
    bytes_given_back: int
    shrinks: bool
    """Whether the file can give room back. One made by an earlier version cannot; a copy of it can. A server keeps it
    for what comes next."""


def archive_decisions(
    ledger: SqlLedger,
    before: datetime,
    folder: Path,
    *,
    with_pending: bool = False,
    who: str = THE_ENGINE,
    why: str = "",
    clock: Callable[[], datetime] = system_clock,
) -> ArchiveRun:
    """Move the decisions made before a time to Parquet files in a folder, while others go on writing.

    Decisions on transactions without an outcome stay unless `with_pending` is given: a late outcome needs them.
    """
    last = ledger.last_seq()
    due = [decisions.c.seq <= last, decisions.c.at < micros_of(before)]
    wanted = due if with_pending else [*due, has_outcome()]
    completed = _complete_the_last_run(ledger)
    files: list[Path] = []
    archived = 0
    while len(part := _read(ledger, wanted)):
        at = clock()
        name = f"decisions-{part['seq'][0]}-{part['seq'][-1]}-{at:%Y%m%dT%H%M%SZ}-{os.getpid()}"
        file = _write(part, folder, name, like=ledger.path if isinstance(ledger, SqliteLedger) else None)
        _record(ledger, Entry([DecisionsArchived(before=before, count=len(part), file=str(file))], at, who, why))
        _delete(ledger, part)
        files.append(file)
        archived += len(part)
    with ledger.reading() as connection:
        pending = connection.execute(select(func.count()).select_from(decisions).where(*due)).scalar_one()
        shrinks = isinstance(ledger, SqliteLedger) and _pragma(connection, "auto_vacuum") == 2  # INCREMENTAL
    given_back = _give_room_back(ledger) if isinstance(ledger, SqliteLedger) and shrinks else 0
    return ArchiveRun(archived, tuple(files), pending, completed, given_back, shrinks)


def place_of_archived(ledger: SqlLedger, wanted: str) -> str:
    """Where a decision, or those on a transaction, were archived, in words; "" if no archive is known to have them."""
    lost = []
    for at, archive in reversed(_archives(ledger)):
        try:
            found = pl.scan_parquet(archive.file).filter(
                (pl.col("id") == wanted) | (pl.col("transaction_id") == wanted)
            )
            if found.select(pl.len()).collect().item():
                return f"it was archived on {at:%Y-%m-%d} to {archive.file}"
        except (OSError, pl.exceptions.PolarsError):
            lost.append(archive.file)
    return f"it may be in an archive that cannot be read any more: {', '.join(lost)}" if lost else ""


def _read(ledger: SqlLedger, wanted: Sequence[ColumnElement[bool]]) -> pl.DataFrame:
    """The next decisions to archive, in order. Reading in parts keeps no lock open for long."""
    setup, names = common.alias(), common.alias()
    query = (
        select(decisions, setup.c.body.label("setup_body"), names.c.body.label("names_body"))
        .outerjoin(setup, setup.c.key == decisions.c.setup)
        .outerjoin(names, names.c.key == decisions.c.names)
        .where(*wanted)
        .order_by(decisions.c.seq)
    )
    rows: list[tuple[Any, ...]] = []
    after = 0
    while len(rows) < DECISIONS_PER_FILE:
        limit = min(_ROWS_PER_QUERY, DECISIONS_PER_FILE - len(rows))
        with ledger.reading() as connection:
            found = connection.execute(query.where(decisions.c.seq > after).limit(limit)).all()
        for row in found:
            said = row.verdict, row.probability, row.revision, row.setup_body, row.names_body, row.body
            rows.append((row.seq, row.id, row.transaction_id, row.at, row.who or THE_ENGINE, row.why or "", *said))
        if len(found) < limit:
            break
        after = found[-1].seq
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row").with_columns(pl.col("at").cast(pl.Datetime("us", "UTC")))


def _write(part: pl.DataFrame, folder: Path, name: str, *, like: Path | None) -> Path:
    """Write decisions to a file that has its name only once it is complete and on the disk.

    Its permissions are those of another file. If there is none, only its owner may read it.
    """
    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True)
        target = folder.absolute() / f"{name}.parquet"
        handle, unnamed = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)
        os.close(handle)
        try:
            part.write_parquet(unnamed, compression="zstd")
            if like is not None:
                shutil.copymode(like, unnamed)
            sync(Path(unnamed))
            if not pl.read_parquet(unnamed).equals(part):
                raise StoreError(f"{target} does not read back as it was written; nothing was deleted, check the disk")
            _name(Path(unnamed), target)
        except pl.exceptions.PolarsError as error:
            raise StoreError(f"{target} cannot be written, nothing was deleted: {error}") from error
        finally:
            Path(unnamed).unlink(missing_ok=True)
    return target


def _name(unnamed: Path, target: Path) -> None:
    unnamed.replace(target)
    sync(target.parent)


def _record(ledger: SqlLedger, entry: Entry) -> None:
    """From here on the ledger has a higher number than all that is deleted, so that numbers never go back."""
    ledger.append(entry)


def _complete_the_last_run(ledger: SqlLedger) -> int:
    """Delete what the last run archived and had no time to delete; nothing if its file cannot be read any more."""
    archives = _archives(ledger)
    if not archives:
        return 0
    try:
        archived = pl.read_parquet(archives[-1][1].file, columns=_DELETED_BY)
    except (OSError, pl.exceptions.PolarsError):
        return 0
    return _delete(ledger, archived)


def _archives(ledger: SqlLedger) -> list[tuple[datetime, DecisionsArchived]]:
    """When and where decisions were archived, oldest first."""
    query = select(events.c.at, events.c.body).where(events.c.kind == "decisions_archived").order_by(events.c.seq)
    with ledger.reading() as connection:
        rows = connection.execute(query).all()
    return [
        (datetime.fromisoformat(row.at).astimezone(UTC), DecisionsArchived.model_validate_json(row.body))
        for row in rows
    ]


def _delete(ledger: SqlLedger, archived: pl.DataFrame) -> int:
    """Delete decisions a few at a time, with the requests that they answered: a repeat is a new request from then on.

    What decisions have in common with others stays: writers rely on finding it.
    """
    deleted = 0
    for some in archived.select(_DELETED_BY).iter_slices(_ROWS_PER_DELETE):
        with _taking_turns():
            deleted += _delete_some(ledger, some.rows())
    return deleted


def _delete_some(ledger: SqlLedger, rows: Sequence[tuple[int, str, str]]) -> int:
    answered = f"DELETE FROM {requests.name} WHERE transaction_id = ? AND decision_id = ?"
    made = f"DELETE FROM {decisions.name} WHERE seq = ? AND id = ?"
    with ledger.writing() as connection:
        about = [(transaction_id, decision_id) for _, decision_id, transaction_id in rows]
        connection.exec_driver_sql(ledger.dialect.sql(answered), about)
        numbered = [(seq, decision_id) for seq, decision_id, _ in rows]
        return connection.exec_driver_sql(ledger.dialect.sql(made), numbered).rowcount


def _give_room_back(ledger: SqliteLedger) -> int:
    """Give free pages back to the disk, a few at a time. Returns how many bytes."""
    given_back = 0
    while True:
        with _taking_turns(), ledger.writing() as connection:
            free = _pragma(connection, "freelist_count")
            if free:
                driver = connection.connection.driver_connection
                assert driver is not None
                for _ in range(min(free, _PAGES_PER_STEP)):  # the driver takes one step of the pragma, whatever it says
                    driver.execute("PRAGMA incremental_vacuum(1)")
            left = _pragma(connection, "freelist_count")
            given_back += (free - left) * _pragma(connection, "page_size")
        if left in (0, free):
            return given_back


@contextmanager
def _taking_turns() -> Iterator[None]:
    """Pause for as long as the write lock was held, so that others get it half of the time."""
    began = time.monotonic()
    yield
    time.sleep(time.monotonic() - began)


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
