"""The recorded decisions that rest on a bullet, newest first.

A record names the bullets that it rests on, but a ledger has no index of them: decisions are looked through from the
newest on, up to a stated number, and a page says how far that was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acefraud.core.events import DecisionMade, Event
from acefraud.core.ledger import DecisionFilter, Ledger
from acefraud.display.short_repr import ShortRepr

SCAN_LIMIT = 10_000
"""How many decisions are looked at for one page."""
_CHUNK = 1_000


@dataclass(frozen=True, slots=True, repr=False)
class CitingPage(ShortRepr):
    """Some decisions that rest on a bullet, newest first, and where to go on."""

    events: tuple[Event, ...]
    next_before: int | None
    """Pass it as `before` to go on; None if there are no earlier decisions to look at."""
    looked_at: int
    """How many decisions were looked at."""


def decisions_citing(
    ledger: Ledger,
    wanted: DecisionFilter,
    bullet_id: str,
    *,
    before: int | None = None,
    limit: int,
    scan_limit: int = SCAN_LIMIT,
) -> CitingPage:
    """Up to `limit` of the wanted decisions that rest on a bullet, before an event if one is given.

    At most `scan_limit` decisions are looked at, so a page may have fewer, even none, and still have a next one.
    Decisions from before the bullet was added are not looked at.

    >>> from acefraud import BulletPlaybook, Learner, Transaction
    >>> playbook = BulletPlaybook()
    >>> vpn = playbook.add_bullet("VPN: decline")
    >>> orders = [Transaction(id=f"t{number}", facts={"vpn": number % 2 == 0}) for number in range(6)]
    >>> _ = Learner(playbook).decide_all_sync(orders)
    >>> page = decisions_citing(playbook.ledger, DecisionFilter(), vpn, limit=2)
    >>> [event.payload.subject for event in page.events], page.looked_at
    (['t4', 't2'], 4)
    """
    found: list[Event] = []
    looked_at, last = 0, before
    for event in _newest_first(ledger, wanted, bullet_id, before, scan_limit):
        looked_at, last = looked_at + 1, event.seq
        if isinstance(event.payload, DecisionMade) and event.payload.record.cites(bullet_id):
            found.append(event)
            if len(found) == limit:
                break
    seen_all = len(found) < limit and looked_at < scan_limit
    return CitingPage(tuple(found), None if seen_all else last, looked_at)


def last_firings(ledger: Ledger, bullet_id: str, limit: int, *, scan_limit: int = SCAN_LIMIT) -> CitingPage:
    """The latest decisions that rest on a bullet, and how many decisions were looked at to find them."""
    return decisions_citing(ledger, DecisionFilter(), bullet_id, limit=limit, scan_limit=scan_limit)


def _newest_first(
    ledger: Ledger, wanted: DecisionFilter, bullet_id: str, before: int | None, most: int
) -> Iterator[Event]:
    """The wanted decisions since a bullet was added, read in chunks; none if it never was."""
    added = ledger.find_events({"bullet_added"}, subject=bullet_id, limit=1)
    while added and most > 0:
        chunk = ledger.find_decisions(wanted, after=added[0].seq, before=before, limit=min(_CHUNK, most))
        yield from chunk
        if len(chunk) < _CHUNK:
            return
        most, before = most - len(chunk), chunk[-1].seq
