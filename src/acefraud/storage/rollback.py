"""Bringing a playbook back to an earlier revision, by new events: nothing is deleted, and it can be undone.

What goes back: the words, condition, verdict, evidence, claim, policy and problem types of bullets, their status and
weight; the calibration of each node with its threshold and recent level, the review rules, the scales of models' odds
and the mapping. Bullets that were added since are retired.

What stays: the counters and records of bullets, which outcomes make; the remembered cases; and what is operational:
lists and snoozes. A bullet that has neither a weight nor evidence is weighed by its record, so outcomes heard since
still count for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from acefraud.core.bullet import Bullet, Record, Status
from acefraud.core.events import BulletCredited, BulletEdited, Credit, EventPayload, RolledBack, StatusChanged
from acefraud.core.playbook import Snapshot
from acefraud.errors import InputError
from acefraud.storage.changes import Change
from acefraud.storage.playbook import BulletPlaybook

_SAID = ("content", "condition", "argues", "evidence", "claim", "policy", "contradicts", "problem_types")
"""What an edit changes of a bullet."""


def rollback(playbook: BulletPlaybook, revision: int, *, who: str, why: str = "") -> RolledBack:
    """Bring a playbook back to an earlier revision, in one unit of work. Returns what changed.

    Raises InputError if there is no such revision, and StoreConflict if others change the playbook faster every time.

    >>> playbook = BulletPlaybook()
    >>> bullet_id = playbook.add_bullet("VPN: decline")
    >>> then = playbook.snapshot().revision
    >>> playbook.edit_bullet(bullet_id, "VPN at night: decline")
    >>> other = playbook.add_bullet("An emulator: decline")
    >>> done = rollback(playbook, then, who="ana", why="too many false alarms")
    >>> done.edited == (bullet_id,), done.retired == (other,)
    (True, True)
    >>> playbook.get_bullet(bullet_id).content
    'VPN: decline'
    """

    def work() -> RolledBack:
        change = plan_rollback(playbook, revision, why)
        if change.payloads:
            playbook.record(change.payloads, who=who)
        return change.result

    return playbook.run_unit_of_work(work, who=who, why=why)


def plan_rollback(playbook: BulletPlaybook, revision: int, why: str = "") -> Change[RolledBack]:
    """The events that bring a playbook back, none if it is as it was; and what they change."""
    playbook.refresh()
    if not 0 <= revision <= playbook.seq:
        latest = playbook.snapshot().revision
        raise InputError(f"expected a revision from 0 to {latest}, the current one, got {revision}", field="revision")
    now, then = playbook.snapshot(), playbook.snapshot_at(revision)
    reason = f"rolled back to revision {revision}: {why}" if why else f"rolled back to revision {revision}"
    retired = [one.id for one in now.table.bullets if one.id not in then.bullets and one.status is not Status.RETIRED]
    kept = [(now.bullets[one.id], one) for one in then.table.bullets]
    edited = [before for after, before in kept if _must_be_edited(after, before)]
    moved = [before for after, before in kept if after.status is not before.status]
    events: list[EventPayload] = [_edit(one, reason) for one in edited]
    events += [StatusChanged(bullet_id=one.id, status=one.status, reason=reason) for one in moved]
    events += [StatusChanged(bullet_id=one, status=Status.RETIRED, reason=reason) for one in retired]
    halfway = playbook.snapshot_with(events)
    events += _kept_records(now, then, halfway)
    weights = {one.id: one.weight for one in then.table.bullets if halfway.bullets[one.id].weight != one.weight}
    done = RolledBack(
        to=revision,
        retired=tuple(retired),
        edited=tuple(one.id for one in edited),
        moved=tuple(one.id for one in moved),
        weights=weights,
        calibrations=dict(then.calibrations),
        reviews=dict(then.reviews),
        scales=dict(then.scales),
        mapping=then.mapping,
        also=tuple(_other_changes(now, then)),
    )
    return Change(done, () if done.changes_nothing else (*events, done))


def _must_be_edited(now: Bullet, then: Bullet) -> bool:
    return any(getattr(now, name) != getattr(then, name) for name in _SAID)


def _edit(then: Bullet, reason: str) -> BulletEdited:
    """The edit that gives a bullet its former words back. It drops the weight."""
    return BulletEdited(bullet_id=then.id, **{name: getattr(then, name) for name in _SAID}, reason=reason)


def _kept_records(now: Snapshot, then: Snapshot, halfway: Snapshot) -> Iterator[BulletCredited]:
    """What gives bullets the records back that edits and revivals have cleared.

    A bullet that tests something else than it did gets the record of its former condition.
    """
    for before in then.table.bullets:
        changed = now.bullets[before.id].condition != before.condition
        wanted = before.record if changed else now.bullets[before.id].record
        if halfway.bullets[before.id].record != wanted:
            yield BulletCredited(credit=_difference(before.id, wanted, halfway.bullets[before.id].record))


def _difference(bullet_id: str, wanted: Record, is_now: Record) -> Credit:
    fired, frauds = wanted.support - is_now.support, wanted.frauds - is_now.frauds
    return Credit(bullet_id, fired=fired, fired_frauds=frauds)


def _other_changes(now: Snapshot, then: Snapshot) -> Iterator[str]:
    """What changes beside bullets."""
    for what, one, other in (
        ("calibration", now.calibrations, then.calibrations),
        ("review rule", now.reviews, then.reviews),
        ("scale of odds", now.scales, then.scales),
        ("mapping", now.mapping, then.mapping),
    ):
        if one != other:
            yield what
