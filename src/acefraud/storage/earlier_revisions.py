"""The playbook as it was, replayed from the ledger."""

from __future__ import annotations

from bisect import bisect_right
from threading import Lock
from typing import Final

from acefraud.core.ledger import Ledger
from acefraud.core.playbook import PlaybookState, Snapshot

_MOST_KEPT: Final = 64


class EarlierRevisions:
    """Snapshots of earlier revisions.

    States along the way are kept at equal distances, so that only the first look at the past goes all the way. If they
    become too many, every second one is dropped.
    """

    def __init__(self, ledger: Ledger, *, distance: int = 1_000) -> None:
        """`distance` is the number of events, other than decisions, between two states that are kept."""
        self._ledger = ledger
        self._distance = distance
        self._kept = [PlaybookState()]
        self._last = PlaybookState()
        self._lock = Lock()

    def at(self, revision: int) -> Snapshot:
        """The playbook at a revision."""
        with self._lock:
            state = self._nearest(revision)
            for event in self._ledger.read(state.seq, revision, decisions=False):
                state.apply(event)
                if state.applied >= self._distance and state.seq > self._kept[-1].seq:
                    self._keep(state)
                    state = state.branch()
            self._last = state
            return state.snapshot()

    def _nearest(self, revision: int) -> PlaybookState:
        """The latest state that is at hand and not after a revision."""
        kept = self._kept[bisect_right(self._kept, revision, key=lambda state: state.seq) - 1]
        return self._last if kept.seq <= self._last.seq <= revision else kept.branch()

    def _keep(self, state: PlaybookState) -> None:
        self._kept.append(state)
        if len(self._kept) > _MOST_KEPT:
            self._kept = self._kept[::2]
            self._distance *= 2
