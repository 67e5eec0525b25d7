"""How much may be under way at once. What is beyond it is told to come back, and not kept waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class TooManyWaiting(Exception):
    """So many requests wait that another would have to wait too long."""


class Admission:
    """Counts what is under way in one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.under_way = 0

    @contextmanager
    def admit(self, count: int = 1) -> Iterator[None]:
        """Count these for the time of a block. Raises TooManyWaiting if that makes too many.

        A batch that is too large by itself is admitted when nothing else is under way.

        >>> admission = Admission(2)
        >>> with admission.admit(), admission.admit(2):
        ...     pass
        Traceback (most recent call last):
        acefraud.service.admission.TooManyWaiting
        """
        if self.under_way and self.under_way + count > self._most:
            raise TooManyWaiting
        self.under_way += count
        try:
            yield
        finally:
            self.under_way -= count
