"""The ledger and the playbook, in memory or in a SQLite file. May import rules, facts, core, settings and errors.

To add a store, implement the `Ledger` protocol (`core/ledger.py`), add it to `STORES` in
`tests/storage/test_ledger_contract.py` and make those tests pass. `BulletPlaybook(MyLedger())` uses it.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from acefraud.core.arguments import check_type
from acefraud.settings import Durability
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook

__all__ = ["BulletPlaybook", "MemoryLedger", "open_playbook"]


def open_playbook(
    path: str | Path,
    *,
    create: bool = True,
    read_only: bool = False,
    durability: Durability | str = Durability.POWER,
) -> BulletPlaybook:
    """The playbook in a SQLite file, created if it is missing unless ``create`` is False.

    What was acknowledged survives a power cut; with ``durability="process"`` only a killed process, which makes small
    writes several times as fast. Raises StoreError if the file cannot be opened, StoreSchema if it is not a playbook
    or has a newer schema.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with open_playbook(Path(folder, "team.db")) as playbook:
    ...         bullet_id = playbook.add_bullet("VPN and a new device: decline", who="ana")
    ...     with open_playbook(Path(folder, "team.db"), read_only=True) as playbook:
    ...         print(playbook.get_bullet(bullet_id).content)
    VPN and a new device: decline
    """
    from acefraud.storage.sqlite import SqliteLedger  # noqa: PLC0415  # a playbook in memory needs no database

    check_type("path", path, (str, PathLike), "the path of a playbook file")
    return BulletPlaybook(
        SqliteLedger.open(Path(path), create=create, read_only=read_only, durability=Durability.named(durability))
    )
