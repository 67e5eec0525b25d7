"""Opening a ledger wherever it is: in a file, or in a database."""

from __future__ import annotations

from pathlib import Path

from acefraud.errors import ConfigurationError
from acefraud.settings import Durability
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.storage.sqlite import SqliteLedger
from acefraud.support.database_address import is_database


def open_ledger(
    place: str | Path, *, create: bool = True, read_only: bool = False, durability: Durability = Durability.POWER
) -> SqlLedger:
    """The ledger in a file, or in the database with an address such as `postgresql://user@host/database`.

    Raises StoreError if it cannot be opened, ConfigurationError if the driver of the database is not installed.
    """
    if not is_database(place):
        return SqliteLedger.open(Path(place), create=create, read_only=read_only, durability=durability)
    try:
        from acefraud.storage.postgres import PostgresLedger  # noqa: PLC0415  # files need no driver
    except ImportError as missing:
        raise ConfigurationError(f"PostgreSQL needs psycopg: pip install 'acefraud[postgres]' ({missing})") from None
    return PostgresLedger.open(str(place), create=create, read_only=read_only, durability=durability)
