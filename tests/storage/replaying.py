"""Whether a playbook is what its events say."""

from __future__ import annotations

from acefraud.core.playbook import PlaybookState
from acefraud.storage.playbook import BulletPlaybook


def matches_replay(playbook: BulletPlaybook) -> bool:
    """Whether replaying the ledger gives the playbook as it is, including all counters."""
    with playbook._lock:
        expected = playbook._state.checkpoint()
    replayed = PlaybookState()
    for event in playbook.ledger.read():
        if event.seq <= expected.seq:  # others may have written since
            replayed.apply(event)
    return replayed.checkpoint() == expected
