"""What changed a playbook, newest first, in words: for `acefraud playbook changes` and `history`, and for services."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from acefraud.core import events
from acefraud.core.ledger import Ledger
from acefraud.core.outcome import OutcomeFeed
from acefraud.display.short_repr import ShortRepr, quoted

CHANGES = events.EDIT_KINDS | events.LIST_KINDS | events.FEED_KINDS


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


def change_of(event: events.Event) -> PlaybookChange:
    """An event that is no decision as a change of the playbook, in words."""
    payload = event.payload
    content = ""
    if isinstance(payload, events.BulletAdded):
        content = payload.bullet.content
    elif isinstance(payload, events.BulletEdited):
        content = payload.content
    what = what_happened(payload)
    return PlaybookChange(event.seq, event.at, event.who, why_of(event), payload.kind, payload.subject, what, content)


def why_of(event: events.Event) -> str:
    """Why this was changed, or else why everything that was written with it was."""
    return getattr(event.payload, "reason", "") or event.why


def what_happened(payload: events.EventPayload) -> str:
    """What an event did to its subject, in words.

    >>> what_happened(events.ListChanged(name="blocked_cards", removed=("c1", "c2")))
    'list changed: 0 added, 2 removed'
    """
    match payload:
        case events.BulletAdded():
            what = "added"
        case events.BulletEdited():
            what = "edited"
        case events.PolicySnoozed(snooze=snoozed):
            what = f"snoozed for {snoozed.key} {snoozed.value} until {snoozed.until:%Y-%m-%d}"
        case events.StatusChanged(status=status):
            what = f"now {status}"
        case events.ListCreated():
            what = "list created, or described anew"
        case events.ListChanged(added=added, removed=removed):
            what = f"list changed: {len(added):,} added, {len(removed):,} removed"
        case events.RolledBack(to=revision):
            what = f"rolled back to revision {revision}"
        case events.LevelMoved() | events.LevelHeld() | events.FeedSet() | events.SilenceMatured():
            what = _heard(payload)
        case events.PatternsChanged():
            what = f"fraud looks different: {payload.in_words}; earlier cases no longer teach"
        case _:
            what = _learnt(payload)
    return what


def _heard(payload: events.LevelMoved | events.LevelHeld | events.FeedSet | events.SilenceMatured) -> str:
    """What outcomes, or their absence, did to a node, in words."""
    match payload:
        case events.LevelMoved(recent=recent, declines=declines):
            moved = "level of fraud back to what was calibrated"
            if recent is not None:
                moved = f"level of fraud moved to {recent.shift:+.1f}: {recent.in_words}"
            effect = f"; declines {declines[0]:.1%} to {declines[1]:.1%} of the latest decisions" if declines else ""
            return f"{moved}{effect}"
        case events.LevelHeld(held=held):
            return "no step of the level is held any more" if held is None else f"level held: {held.in_words}"
        case events.FeedSet():
            seen = f"{payload.frauds:,} frauds among {payload.reports:,} outcomes"
            if payload.covered is not None:
                seen += f", on {payload.covered:.0%} of earlier decisions"
            return f"outcomes: {payload.applied_to(OutcomeFeed()).words}" + (f" ({seen})" if payload.reports else "")
        case events.SilenceMatured(silent=silent, frauds=frauds, until=until):
            return f"{silent:,} decisions made until {until:%Y-%m-%d} count as legitimate, {frauds:,} as fraud"


def _learnt(payload: events.EventPayload) -> str:
    """What an event did to what was learnt at a node, in words."""
    match payload:
        case events.Recalibrated(calibration=calibration, weights=weights):
            what = f"calibrated on {calibration.cases:,} cases, with {len(weights):,} weights"
        case events.ThresholdSet(threshold=threshold, review=review):
            declines = "threshold as it was" if threshold is None else f"threshold set to {threshold:g}"
            what = f"{declines}; {review.words if review else 'nothing goes to a person, except by policies'}"
        case events.OddsScaled(model=model, scale=scale):
            what = f"odds of {quoted(model)} scaled on {scale.cases:,} cases"
        case events.Trained(rows=0):
            what = "mapping set"
        case events.Trained(dataset=dataset, rows=rows, frauds=frauds):
            what = f"trained on {quoted(dataset)}: {rows:,} cases, {frauds:,} of them fraud"
        case events.Reviewed(declined=declined) if declined:
            what = f"reviewed, and nothing was learnt ({declined})"
        case events.Reviewed(added=added, retired=retired, questioned=questioned, revived=revived):
            counts = (added, "added"), (retired, "retired"), (questioned, "questioned"), (revived, "revived")
            done = ", ".join(f"{len(some):,} {how}" for some, how in counts if some)
            what = f"reviewed: {done}" if done else "reviewed"
        case events.Reread(cases=cases, changed=changed):
            what = f"texts of {cases:,} cases read again, {changed:,} of them differently"
        case _:
            what = "counted"
    return what
