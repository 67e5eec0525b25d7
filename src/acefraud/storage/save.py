"""Playbooks written to files, and opened again where they are unpickled."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from acefraud.core.ledger import Ledger
from acefraud.errors import StoreError
from acefraud.settings import Durability
from acefraud.storage.backup import copy_playbook
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.sqlite import SqliteLedger


def save_playbook(ledger: Ledger, path: Path) -> None:
    """Write a whole ledger to a new file, which has its name only once it is complete."""
    if path.exists():
        raise StoreError(f"{path} exists already; give another path")
    if isinstance(ledger, SqliteLedger):
        copy_playbook(ledger.path, path)
        return
    if not isinstance(ledger, MemoryLedger):
        raise StoreError(f"a {type(ledger).__name__} cannot be written to a file")
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent} to write {path.name} to")
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        draft = Path(folder) / path.name
        target = SqliteLedger.open(draft, durability=Durability.PROCESS)
        try:
            ledger.copy_to(target)
        finally:
            target.close()
        copy_playbook(draft, path)


def reopen_playbook(path: Path) -> BulletPlaybook:
    """The playbook in a file that exists."""
    return BulletPlaybook(SqliteLedger.open(path, create=False))
