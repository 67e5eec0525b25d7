"""Playbooks written to files, and opened again where they are unpickled."""

from __future__ import annotations

from pathlib import Path

from acefraud.core.ledger import Ledger
from acefraud.errors import StoreError
from acefraud.settings import Durability
from acefraud.storage.backup import copy_playbook
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.open_ledger import open_ledger
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.storage.sqlite import SqliteLedger
from acefraud.storage.transfer import draft_beside, write_to_file


def save_playbook(ledger: Ledger, path: Path) -> None:
    """Write a whole ledger to a new file, which has its name only once it is complete."""
    if path.exists():
        raise StoreError(f"{path} exists already; give another path")
    if isinstance(ledger, SqlLedger):
        write_to_file(ledger, path)
        return
    if not isinstance(ledger, MemoryLedger):
        raise StoreError(f"a {type(ledger).__name__} cannot be written to a file")
    with draft_beside(path) as draft:
        target = SqliteLedger.open(draft, durability=Durability.PROCESS)
        try:
            ledger.copy_to(target)
        finally:
            target.close()
        copy_playbook(draft, path)


def reopen_playbook(place: str | Path) -> BulletPlaybook:
    """The playbook in a file or database that exists."""
    return BulletPlaybook(open_ledger(place, create=False))
