"""What a ledger in a database keeps for the service: API keys, and requests for as long as they may be repeated.

Of a secret only its hash is kept.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from acefraud.core.events import THE_ENGINE
from acefraud.core.scope import Scope, allows
from acefraud.errors import InputError
from acefraud.storage.driver import Driver
from acefraud.storage.schema import insertion, selection
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.support.arguments import check_choice, check_text, check_whole
from acefraud.support.timestamps import micros_of, system_clock

LONGEST_NAME: Final = 100
BETWEEN_STEPS: Final = timedelta(seconds=1)
BETWEEN_PASSES: Final = timedelta(days=1)
_EXPIRED: Final = (
    "SELECT key FROM requests WHERE key > ? AND key <= ? AND seq + 1 < ? AND EXISTS (SELECT 1 FROM requests AS first "
    "WHERE first.transaction_id = requests.transaction_id AND first.seq < requests.seq)"
)
"""Requests between two keys before the number of a decision, if an earlier one on the same transaction answers repeats.

A request has the number of the last event before its decision.
"""
_SECRET_BYTES: Final = 32
_SECRET: Final = re.compile(r"ace_(?P<id>[0-9a-f]{12})_[\w-]{43}", re.ASCII)


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

    def __init__(self, ledger: SqlLedger) -> None:
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
        named = " ".join(scope for scope in Scope if scope in key.scopes)
        row = key.id, name, hash_of(secret), named, now.isoformat(), who, None, None
        with self._ledger.writing() as driver:
            other = driver.value("SELECT id FROM api_keys WHERE name = ? AND revoked_at IS NULL", (name,))
            if other is not None:
                raise InputError(f"key {other} has the name '{name}'; revoke that one or choose another", field="name")
            driver.ask(insertion("api_keys"), row)
        return key, secret

    def list(self) -> tuple[ApiKey, ...]:
        """All keys, revoked ones included, oldest first."""
        with self._ledger.reading() as driver:
            return tuple(map(_key_of, driver.fetch(f"{selection('api_keys')} true ORDER BY created_at, id")))

    def revoke(self, id_or_name: str, *, who: str, now: datetime) -> ApiKey:
        """Revoke a key and return it. One that was revoked before stays as it is."""
        with self._ledger.writing() as driver:
            found = driver.fetch(f"{selection('api_keys')} id = ? OR name = ?", (id_or_name, id_or_name))
            if not found:
                raise InputError(f"there is no key '{id_or_name}'").helped_by("list the keys")
            # An id names one key for good; of keys with the same name at most one is live.
            key = max(
                map(_key_of, found), key=lambda key: (key.id == id_or_name, key.revoked_at is None, key.created_at)
            )
            if key.revoked_at is not None:
                return key
            change = "UPDATE api_keys SET revoked_at = ?, revoked_by = ? WHERE id = ?"
            driver.ask(change, (now.isoformat(), who, key.id))
            return replace(key, revoked_at=now, revoked_by=who)

    def find(self, secret: str) -> ApiKey | None:
        """The live key with this secret; None if there is none."""
        form = _SECRET.fullmatch(secret)
        if form is None:
            return None
        with self._ledger.reading() as driver:
            rows = driver.fetch(f"{selection('api_keys')} id = ? AND revoked_at IS NULL", (form["id"],))
        return next((_key_of(row) for row in rows if hmac.compare_digest(row[2], hash_of(secret))), None)


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


def _key_of(row: Sequence[Any]) -> ApiKey:
    id, name, _, scopes, created_at, created_by, revoked_at, revoked_by = row
    return ApiKey(
        id=id,
        name=name,
        scopes=frozenset(map(Scope, scopes.split())),
        created_at=datetime.fromisoformat(created_at),
        created_by=created_by,
        revoked_at=None if revoked_at is None else datetime.fromisoformat(revoked_at),
        revoked_by=revoked_by,
    )


class RequestPruner:
    """Deletes expired requests, a few at a time, in passes over all of them.

    Each request is kept for some days. After that the first on a transaction stays, so that a repeat gets its answer,
    until its decision is archived. Others go: keys with which a transaction was decided again.
    """

    def __init__(
        self, ledger: SqlLedger, days: int, *, at_once: int = 1_000, clock: Callable[[], datetime] = system_clock
    ) -> None:
        """`at_once` is how many requests a step looks at."""
        check_whole("days", days, least=1)
        self._ledger = ledger
        self._kept_for = timedelta(days=days)
        self._at_once = at_once
        self._clock = clock
        self._reached = ""
        """The last key that this pass has looked at."""
        self._due: datetime | None = None

    def step(self) -> int:
        """Look at the next requests, if it is time to, and delete the expired ones. Returns how many those were."""
        now = self._clock()
        if self._due is not None and now < self._due:
            return 0
        with self._ledger.reading() as driver:
            some = "SELECT key FROM requests WHERE key > ? ORDER BY key LIMIT ?"
            looked_at = [key for (key,) in driver.fetch(some, (self._reached, self._at_once))]
            expired = self._expired(driver, looked_at[-1], now) if looked_at else []
        if expired:
            with self._ledger.writing() as driver:
                driver.ask_about("DELETE FROM requests WHERE {about}", "key", expired)
        goes_on = len(looked_at) == self._at_once
        self._reached = looked_at[-1] if goes_on else ""
        self._due = now + (BETWEEN_STEPS if goes_on else BETWEEN_PASSES)
        return len(expired)

    def _expired(self, driver: Driver, end: str, now: datetime) -> list[str]:
        """The expired requests among those up to a key."""
        since = micros_of(now - self._kept_for)
        recent = driver.value("SELECT seq FROM decisions WHERE at >= ? ORDER BY at, seq LIMIT 1", (since,))
        if recent is None:  # nothing says how old the requests are, and none are added
            return []
        return [key for (key,) in driver.fetch(_EXPIRED, (self._reached, end, recent))]
