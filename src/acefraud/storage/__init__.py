"""The ledger and the playbook, in memory or in one file."""

from __future__ import annotations

from pathlib import Path

from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook

__all__ = ["BulletPlaybook", "MemoryLedger", "open_playbook"]


def open_playbook(path: str | Path, *, create: bool = True, read_only: bool = False) -> BulletPlaybook:
    """The playbook in this file; made where it is missing, unless `create` is False."""
    from acefraud.storage.sqlite import SqliteLedger  # noqa: PLC0415  # a playbook in memory needs no database

    return BulletPlaybook(SqliteLedger.open(Path(path), create=create, read_only=read_only))
