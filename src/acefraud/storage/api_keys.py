"""API keys of the service, in a ledger that is a database. Of a secret only its hash is kept."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, Protocol

from sqlalchemy import Connection, Row, insert, or_, select, update

from acefraud.core.events import THE_ENGINE
from acefraud.core.scope import Scope, allows
from acefraud.errors import InputError
from acefraud.storage.schema import api_keys
from acefraud.support.arguments import check_choice, check_text

LONGEST_NAME: Final = 100
_SECRET_BYTES: Final = 32
_SECRET: Final = re.compile(r"ace_(?P<id>[0-9a-f]{12})_[\w-]{43}", re.ASCII)


class KeyLedger(Protocol):
    """A database that keeps keys, as SQLAlchemy knows it."""

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection that sees the database as it is at one moment."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """A connection that holds the write lock, and commits at the end."""
        ...


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is kept of an API key. Its name is the author of what its holder does."""

    id: str
    name: str
    scopes: frozenset[Scope]
    created_at: datetime
    created_by: str
    revoked_at: datetime | None = None
    revoked_by: str | None = None

    def allows(self, scope: Scope) -> bool:
        """Whether its holder may do this."""
        return allows(self.scopes, scope)


class KeyStore:
    """Creates, lists, revokes and finds API keys.

    >>> from datetime import UTC
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from acefraud.storage.sqlite import SqliteLedger
    >>> with TemporaryDirectory() as folder, SqliteLedger.open(Path(folder, "book.db")) as ledger:
    ...     keys = KeyStore(ledger)
    ...     key, secret = keys.create("checkout", [Scope.DECIDE], who="ana", now=datetime(2025, 1, 6, tzinfo=UTC))
    ...     keys.find(secret) == key, keys.find("ace_wrong"), key.allows(Scope.READ)
    (True, None, False)
    """

    def __init__(self, ledger: KeyLedger) -> None:
        self._ledger = ledger

    def create(self, name: str, scopes: Collection[Scope | str], *, who: str, now: datetime) -> tuple[ApiKey, str]:
        """A new key and its secret, which cannot be shown again. Raises InputError if a live key has this name."""
        _check_name(name)
        for scope in scopes:
            check_choice("scope", scope, Scope)
        if not scopes:
            raise InputError(f"expected at least one of {', '.join(Scope)}, got none", field="scope")
        key = ApiKey(secrets.token_hex(6), name, frozenset(map(Scope, scopes)), now, who)
        secret = f"ace_{key.id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        with self._ledger.writing() as connection:
            live = select(api_keys.c.id).where(api_keys.c.name == name, api_keys.c.revoked_at.is_(None))
            if (other := connection.execute(live).scalar()) is not None:
                raise InputError(f"key {other} has the name '{name}'; revoke that one or choose another", field="name")
            connection.execute(insert(api_keys).values(**_row_of(key), hash=hash_of(secret)))
        return key, secret

    def list(self) -> tuple[ApiKey, ...]:
        """All keys, revoked ones included, oldest first."""
        query = select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id)
        with self._ledger.reading() as connection:
            return tuple(_key_of(row) for row in connection.execute(query))

    def revoke(self, id_or_name: str, *, who: str, now: datetime) -> ApiKey:
        """Revoke a key and return it. One that was revoked before stays as it is."""
        wanted = or_(api_keys.c.id == id_or_name, api_keys.c.name == id_or_name)
        with self._ledger.writing() as connection:
            found = [_key_of(row) for row in connection.execute(select(api_keys).where(wanted))]
            if not found:
                raise InputError(f"there is no key '{id_or_name}'; `acefraud keys list` shows them")
            # An id names one key for good; of keys with the same name at most one is live.
            key = max(found, key=lambda one: (one.id == id_or_name, one.revoked_at is None, one.created_at))
            if key.revoked_at is None:
                change = update(api_keys).where(api_keys.c.id == key.id)
                connection.execute(change.values(revoked_at=now.isoformat(), revoked_by=who))
            return _key_of(connection.execute(select(api_keys).where(api_keys.c.id == key.id)).one())

    def find(self, secret: str) -> ApiKey | None:
        """The live key with this secret; None if there is none."""
        form = _SECRET.fullmatch(secret)
        if form is None:
            return None
        query = select(api_keys).where(api_keys.c.id == form["id"], api_keys.c.revoked_at.is_(None))
        with self._ledger.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None or not hmac.compare_digest(row.hash, hash_of(secret)):
            return None
        return _key_of(row)


def hash_of(secret: str) -> str:
    """What is kept of a secret."""
    # A slow hash protects words that people choose. A secret has 256 random bits, which nobody can try out.
    return sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _check_name(name: str) -> None:
    check_text("name", name, "a name")
    if name == THE_ENGINE:
        raise InputError(f"'{THE_ENGINE}' is the playbook's own name; choose another", field="name")
    if name != name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        expected = f"expected up to {LONGEST_NAME} printable characters without spaces around them"
        raise InputError(expected, field="name")


def _row_of(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": " ".join(scope for scope in Scope if scope in key.scopes),
        "created_at": key.created_at.isoformat(),
        "created_by": key.created_by,
    }


def _key_of(row: Row[Any]) -> ApiKey:
    return ApiKey(
        id=row.id,
        name=row.name,
        scopes=frozenset(map(Scope, row.scopes.split())),
        created_at=datetime.fromisoformat(row.created_at),
        created_by=row.created_by,
        revoked_at=None if row.revoked_at is None else datetime.fromisoformat(row.revoked_at),
        revoked_by=row.revoked_by,
    )
