"""Forgets requests that nobody will repeat any more, so that they do not pile up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, Connection, delete, select

from acefraud.storage.playbook import system_clock
from acefraud.storage.schema import decisions, requests
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.support.arguments import check_whole
from acefraud.support.timestamps import micros_of

BETWEEN_STEPS: Final = timedelta(seconds=1)
BETWEEN_PASSES: Final = timedelta(days=1)


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
        with self._ledger.reading() as connection:
            keys = connection.execute(
                select(requests.c.key)
                .where(requests.c.key > self._reached)
                .order_by(requests.c.key)
                .limit(self._at_once)
            ).scalars()
            looked_at = list(keys)
            expired = self._expired(connection, looked_at[-1], now) if looked_at else []
        if expired:
            with self._ledger.writing() as connection:
                connection.execute(delete(requests).where(requests.c.key.in_(expired)))
        goes_on = len(looked_at) == self._at_once
        self._reached = looked_at[-1] if goes_on else ""
        self._due = now + (BETWEEN_STEPS if goes_on else BETWEEN_PASSES)
        return len(expired)

    def _expired(self, connection: Connection, end: str, now: datetime) -> list[str]:
        """The expired requests among those up to a key."""
        recent = connection.execute(
            select(decisions.c.seq)
            .where(decisions.c.at >= micros_of(now - self._kept_for))
            .order_by(decisions.c.at, decisions.c.seq)
            .limit(1)
        ).scalar_one_or_none()
        if recent is None:  # nothing says how old the requests are, and none are added
            return []
        # A request has the number of the last event before its decision.
        old = requests.c.seq + 1 < recent
        within = (requests.c.key > self._reached, requests.c.key <= end)
        return list(connection.execute(select(requests.c.key).where(*within, old, _dispensable())).scalars())


def _dispensable() -> ColumnElement[bool]:
    """An earlier request on the same transaction answers repeats."""
    first = requests.alias("first")
    earlier = select(1).where(first.c.transaction_id == requests.c.transaction_id, first.c.seq < requests.c.seq)
    return earlier.correlate(requests).exists()
