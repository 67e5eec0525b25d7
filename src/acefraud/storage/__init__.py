"""The ledger and the playbook: in memory, in a SQLite file or in PostgreSQL.

May import rules, facts, core, settings and errors.

To add a store, implement the `Ledger` protocol (`core/ledger.py`), add it to `STORES` in
`tests/storage/test_ledger_contract.py` and make those tests pass. `BulletPlaybook(MyLedger())` uses it.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from acefraud.settings import Durability
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arguments import check_type

__all__ = ["BulletPlaybook", "MemoryLedger", "open_playbook"]


def open_playbook(
    path: str | Path, *, create: bool = True, read_only: bool = False, durability: Durability | str = Durability.POWER
) -> BulletPlaybook:
    """The playbook in a SQLite file or a PostgreSQL database, created if it is missing unless ``create`` is False.

    ``path`` is the path of a file, or an address such as ``postgresql://user:password@host:5432/database``. Each schema
    of a database holds one playbook; ``?options=-csearch_path%3Dteam`` at the end of the address chooses the schema.

    What was acknowledged survives a power cut; with ``durability="process"`` only a killed process, which makes small
    writes several times as fast. Raises StoreError if the playbook cannot be opened, StoreUnavailable if the server
    cannot be reached, StoreSchema if there is something else or a newer schema.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with open_playbook(Path(folder, "team.db")) as playbook:
    ...         bullet_id = playbook.add_bullet("VPN and a new device: decline", who="ana")
    ...     with open_playbook(Path(folder, "team.db"), read_only=True) as playbook:
    ...         print(playbook.get_bullet(bullet_id).content)
    VPN and a new device: decline
    """
    from acefraud.storage.open_ledger import open_ledger  # noqa: PLC0415  # a playbook in memory needs no database

    check_type("path", path, (str, PathLike), "the path of a playbook file, or the address of a database")
    return BulletPlaybook(
        open_ledger(path, create=create, read_only=read_only, durability=Durability.named(durability))
    )
