"""What changed a playbook, newest first, in words: for `acefraud playbook changes` and `history`, and for services."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from acefraud.core.events import (
    EDIT_KINDS,
    LIST_KINDS,
    BulletAdded,
    BulletEdited,
    Event,
    EventPayload,
    ListChanged,
    ListCreated,
    OddsScaled,
    PolicySnoozed,
    Recalibrated,
    Reread,
    Reviewed,
    RolledBack,
    StatusChanged,
    ThresholdSet,
    Trained,
)
from acefraud.core.ledger import Ledger
from acefraud.display.short_repr import ShortRepr, quoted

CHANGES = EDIT_KINDS | LIST_KINDS


@dataclass(frozen=True, slots=True, repr=False)
class PlaybookChange(ShortRepr):
    """One change of a playbook."""

    seq: int
    """The number of its event, which is the revision after it."""
    at: datetime
    who: str
    why: str
    """The reason of this change, or else of all that was written with it."""
    kind: str
    subject: str
    """The bullet, node or list that changed, or the playbook."""
    what: str
    """What happened to it, in words."""
    content: str = ""
    """What a bullet says from then on, if that is what changed."""

    @property
    def words(self) -> str:
        """The change in one line.

        >>> from acefraud import BulletPlaybook, Status
        >>> playbook = BulletPlaybook()
        >>> bullet_id = playbook.add_bullet("VPN: decline")
        >>> playbook.set_status(bullet_id, Status.RETIRED, who="ana", why="the pattern has faded")
        >>> [change.words for change in playbook_changes(playbook.ledger, limit=2)]
        ['b-cd2445bf now retired: the pattern has faded', 'b-cd2445bf added']
        """
        return f"{self.subject} {self.what}: {self.why}" if self.why else f"{self.subject} {self.what}"

    def as_json(self) -> dict[str, Any]:
        """The change for scripts and services."""
        return {
            "seq": self.seq,
            "at": self.at.isoformat(),
            "who": self.who,
            "why": self.why,
            "kind": self.kind,
            "subject": self.subject,
            "words": self.words,
            "content": self.content,
        }


def playbook_changes(ledger: Ledger, *, before: int | None = None, limit: int) -> list[PlaybookChange]:
    """The latest changes of a playbook, newest first; those before the event `before`, if it is given.

    Changes that were written together have the same time, author and reason.
    """
    found = ledger.find_events(CHANGES, before=before, limit=limit, newest_first=True)
    return [change_of(event) for event in found]


def change_of(event: Event) -> PlaybookChange:
    """An event that is no decision as a change of the playbook, in words."""
    payload = event.payload
    content = ""
    if isinstance(payload, BulletAdded):
        content = payload.bullet.content
    elif isinstance(payload, BulletEdited):
        content = payload.content
    what = what_happened(payload)
    return PlaybookChange(event.seq, event.at, event.who, why_of(event), payload.kind, payload.subject, what, content)


def why_of(event: Event) -> str:
    """Why this was changed, or else why everything that was written with it was."""
    return getattr(event.payload, "reason", "") or event.why


def what_happened(payload: EventPayload) -> str:
    """What an event did to its subject, in words.

    >>> what_happened(ListChanged(name="blocked_cards", removed=("c1", "c2")))
    'list changed: 0 added, 2 removed'
    """
    match payload:
        case BulletAdded():
            what = "added"
        case BulletEdited():
            what = "edited"
        case PolicySnoozed(snooze=snoozed):
            what = f"snoozed for {snoozed.key} {snoozed.value} until {snoozed.until:%Y-%m-%d}"
        case StatusChanged(status=status):
            what = f"now {status}"
        case ListCreated():
            what = "list created, or described anew"
        case ListChanged(added=added, removed=removed):
            what = f"list changed: {len(added):,} added, {len(removed):,} removed"
        case RolledBack(to=revision):
            what = f"rolled back to revision {revision}"
        case _:
            what = _learnt(payload)
    return what


def _learnt(payload: EventPayload) -> str:
    """What an event did to what was learnt at a node, in words."""
    match payload:
        case Recalibrated(calibration=calibration, weights=weights):
            what = f"calibrated on {calibration.cases:,} cases, with {len(weights):,} weights"
        case ThresholdSet(threshold=threshold, review=review):
            declines = "threshold as it was" if threshold is None else f"threshold set to {threshold:g}"
            what = f"{declines}; {review.words if review else 'nothing goes to a person, except by policies'}"
        case OddsScaled(model=model, scale=scale):
            what = f"odds of {quoted(model)} scaled on {scale.cases:,} cases"
        case Trained(rows=0):
            what = "mapping set"
        case Trained(dataset=dataset, rows=rows, frauds=frauds):
            what = f"trained on {quoted(dataset)}: {rows:,} cases, {frauds:,} of them fraud"
        case Reviewed(declined=declined) if declined:
            what = f"reviewed, and nothing was learnt ({declined})"
        case Reviewed(added=added, retired=retired, questioned=questioned, revived=revived):
            counts = (added, "added"), (retired, "retired"), (questioned, "questioned"), (revived, "revived")
            done = ", ".join(f"{len(some):,} {how}" for some, how in counts if some)
            what = f"reviewed: {done}" if done else "reviewed"
        case Reread(cases=cases, changed=changed):
            what = f"texts of {cases:,} cases read again, {changed:,} of them differently"
        case _:
            what = "counted"
    return what
