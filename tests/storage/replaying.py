"""What a ledger remembers, and whether a playbook is what its events say."""

from __future__ import annotations

from acefraud.core.ledger import Ledger
from acefraud.core.playbook import PlaybookState
from acefraud.core.transaction import Case
from acefraud.storage.playbook import BulletPlaybook


def matches_replay(playbook: BulletPlaybook) -> bool:
    """Whether replaying the ledger gives the playbook as it is, including all counters."""
    with playbook._lock:
        expected = playbook._state.checkpoint()
    replayed = PlaybookState()
    for event in playbook.ledger.read():
        if event.seq <= expected.header.seq:  # others may have written since
            replayed.apply(event)
    return replayed.checkpoint() == expected


def cases_of(ledger: Ledger, limit: int = 1_000_000) -> list[Case]:
    """The latest remembered cases in full, in order."""
    ids = [row.id for row in ledger.remembered(limit)]
    known = ledger.known_cases(ids)
    return [known[id_].case for id_ in ids]
