"""How many cases a day has sent to people, for playbooks that limit them."""

from __future__ import annotations

from datetime import datetime, time
from threading import Lock

from acefraud.core.ledger import Ledger


class ReviewCount:
    """Counts the reviews of a day, in UTC and by the clock. What was counted once is not counted again."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._day: datetime | None = None
        self._count = self._seq = 0
        self._lock = Lock()

    def today(self, now: datetime) -> int:
        """How many cases were sent to people since midnight, by any process."""
        midnight = datetime.combine(now.date(), time(), now.tzinfo)
        with self._lock:
            if midnight != self._day:
                self._day, self._count, self._seq = midnight, 0, 0
            more, self._seq = self._ledger.reviews_since(midnight, self._seq)
            self._count += more
            return self._count
