"""Keeps a worker's playbook at the newest revision, whoever changed it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from acefraud.storage.playbook import BulletPlaybook

_LOG: Final = logging.getLogger(__name__)
_PATIENCE: Final = 1.0
"""Seconds between two looks if nothing is told."""


class Follower:
    """A thread that reads what others have written as soon as the store tells of it.

    PostgreSQL tells at once (LISTEN and NOTIFY); a file is looked at several times a second. `every_second` is called
    about once a second, and may wait for the store too.
    """

    def __init__(self, playbook: BulletPlaybook, every_second: Callable[[], None] = lambda: None) -> None:
        self._playbook = playbook
        self._every_second = every_second
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="follower", daemon=True)

    def start(self) -> None:
        """Follow until `stop`."""
        self._thread.start()

    def _follow(self) -> None:
        due = 0.0
        while not self._ending.is_set():
            try:
                if self._playbook.ledger.wait_for_events(self._playbook.seq, _PATIENCE):
                    self._playbook.refresh()
                    self._playbook.snapshot()  # built here, so that no request has to wait for it
                if time.monotonic() >= due:
                    due = time.monotonic() + _PATIENCE
                    self._every_second()
            except Exception as problem:  # noqa: BLE001  # the thread goes on; requests tell their callers
                if not self._ending.is_set():
                    _LOG.warning("following the playbook failed", extra={"problem": type(problem).__name__})
                self._ending.wait(_PATIENCE)

    def stop(self) -> None:
        """Stop following, after the change at hand."""
        self._ending.set()

    def join(self) -> None:
        """Wait until it has stopped. That takes until the next look, unless the playbook was closed."""
        self._thread.join(5 * _PATIENCE)
