"""A playbook from a database to a file and back. This is also how a team moves to a database.

API keys are not copied: they belong to the place, and only there can they be revoked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sqlalchemy import Connection, Table, func, insert, select

from acefraud.errors import StoreError
from acefraud.settings import Durability
from acefraud.storage.backup import check_target, copy_playbook
from acefraud.storage.file_errors import translated
from acefraud.storage.schema import api_keys, cases, decisions, events, history, meta, metadata, requests
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.storage.sqlite import SqliteLedger

_ROWS_AT_ONCE: Final = 1_000
_CONTENT: Final = (events, decisions, cases, history, requests)
"""Tables that are empty in a new playbook."""
_OF_THE_PLACE: Final = (meta, api_keys)
"""What the database is, who works on what at the moment, and who may call the service that uses it."""


def write_to_file(ledger: SqlLedger, target: Path, *, force: bool = False) -> int:
    """Copy a playbook as it is at one moment to a file, which is a playbook itself. Returns its size in bytes.

    The file has its name only once it is complete and on the disk. With `force` it replaces what is there.
    """
    if isinstance(ledger, SqliteLedger):
        return copy_playbook(ledger.path, target, force=force)
    check_target(target, force=force)
    with draft_beside(target) as draft:
        opened = SqliteLedger.open(draft, durability=Durability.PROCESS)
        with opened as copy, ledger.reading() as source, copy.writing() as written:
            _copy_tables(source, written)
        return copy_playbook(draft, target, force=force)


def read_from_file(source: Path, ledger: SqlLedger) -> None:
    """Copy everything in a playbook file into a ledger, which must be empty. Either all of it is there, or nothing.

    API keys that the ledger has stay as they are. The file may have an earlier schema. Raises StoreError if it is
    damaged, or if the ledger is not empty.
    """
    with TemporaryDirectory(prefix="acefraud-") as folder:
        draft = Path(folder) / "playbook.db"
        copy_playbook(source, draft)  # which checks it; the copy is brought to the newest schema
        opened = SqliteLedger.open(draft, durability=Durability.PROCESS)
        with opened as copy, copy.reading() as read, ledger.writing() as written:
            if any(written.execute(select(func.count()).select_from(table)).scalar_one() for table in _CONTENT):
                raise StoreError(
                    f"playbook {ledger.place} is not empty and was left as it is; give a new database, or another "
                    "schema with ?options=-csearch_path%3DNAME"
                )
            _copy_tables(read, written)


@contextmanager
def draft_beside(target: Path) -> Iterator[Path]:
    """A place for a draft of a file, in a folder that is deleted afterwards."""
    if not target.parent.is_dir():
        raise StoreError(f"there is no folder {target.parent} to write {target.name} to")
    with translated(target), TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        yield Path(folder) / target.name


def _copy_tables(source: Connection, target: Connection) -> None:
    with _without_triggers(target):
        for table in metadata.sorted_tables:
            if table not in _OF_THE_PLACE:
                _copy(table, source, target)


def _copy(table: Table, source: Connection, target: Connection) -> None:
    by_key = select(table).order_by(*table.primary_key.columns)
    with source.execution_options(stream_results=True, yield_per=_ROWS_AT_ONCE).execute(by_key) as found:
        for some in found.mappings().partitions():
            target.execute(insert(table), [dict(row) for row in some])


@contextmanager
def _without_triggers(connection: Connection) -> Iterator[None]:
    """Let rows in with the numbers they have. Archived decisions have left gaps."""
    if connection.dialect.name != "sqlite":
        for table in (events, decisions):
            connection.exec_driver_sql(f"ALTER TABLE {table.name} DISABLE TRIGGER USER")
        yield
        for table in (events, decisions):
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ENABLE TRIGGER USER")
        return
    triggers = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
    for trigger in triggers:
        connection.exec_driver_sql(f"DROP TRIGGER {trigger.name}")
    yield
    for trigger in triggers:
        connection.exec_driver_sql(trigger.sql)
