"""Edits of a playbook as values: the events to write, and which bullets they depend on."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from acefraud.core.bullet import Bullet, Claim, NewBullet, Source, Status, bullet_id
from acefraud.core.condition import Condition
from acefraud.core.contradiction import contradicted_in
from acefraud.core.events import BulletAdded, BulletCredited, BulletEdited, Credit, Event, EventPayload, StatusChanged
from acefraud.core.transaction import Verdict
from acefraud.errors import InputError, StoreConflict
from acefraud.rules.bullet_text import read_bullet

if TYPE_CHECKING:
    from acefraud.storage.playbook import BulletPlaybook

ATTEMPTS: Final = 20
"""How often an edit is tried before StoreConflict is raised."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.1
_JITTER: Final = random.Random()
"""A generator of its own, so that retries leave the global one alone."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """Events to write, the bullets they depend on, and the result for the caller once they are written."""

    result: T
    payloads: tuple[EventPayload, ...] = ()
    depends_on: Collection[str] | None = None
    """Ids of bullets that nobody else may have added, edited or moved meanwhile; None means every bullet."""


def plan_addition(playbook: BulletPlaybook, new: NewBullet, node: str, *, who: str) -> Change[str]:
    """Add a bullet under a free id. The result is the id."""
    condition, argues, claim = _read(new)
    bullet = Bullet(
        id=next(one for attempt in count() if (one := bullet_id(node, new.content, attempt)) not in playbook),
        content=new.content,
        node=node,
        source=Source(new.source),
        status=new.status,
        status_by=who,
        argues=argues,
        condition=condition,
        evidence=new.evidence,
        claim=claim,
        weight=new.weight,
        contradicts=contradicted_in(playbook.snapshot().table, node, condition, argues),
        problem_types=tuple(new.problem_types),
        added_at=playbook.clock(),
    )
    return Change(bullet.id, (BulletAdded(bullet=bullet, reason=new.why),), [bullet.id])


def plan_edit(playbook: BulletPlaybook, bullet_id: str, new: NewBullet) -> Change[None]:
    """Rewrite a bullet."""
    node = bullet_in(playbook, bullet_id).node
    condition, argues, claim = _read(new)
    against = contradicted_in(playbook.snapshot().table, node, condition, argues)
    edit = BulletEdited(
        bullet_id=bullet_id,
        content=new.content,
        condition=condition,
        argues=argues,
        evidence=new.evidence,
        claim=claim,
        contradicts=tuple(other for other in against if other != bullet_id),
        problem_types=tuple(new.problem_types),
        reason=new.why,
    )
    return Change(None, (edit,), [bullet_id])


def plan_status_change(playbook: BulletPlaybook, bullet_id: str, status: Status, why: str) -> Change[None]:
    """Change the status of a bullet; nothing if it has that status already."""
    moved = bullet_in(playbook, bullet_id).status is not status
    payloads = (StatusChanged(bullet_id=bullet_id, status=status, reason=why),) if moved else ()
    return Change(None, payloads, [bullet_id])


def plan_use(playbook: BulletPlaybook, bullet_id: str, *, is_helpful: bool) -> Change[None]:
    """Count one use of a bullet. Counters only add up, so this depends on no bullet."""
    bullet_in(playbook, bullet_id)
    credit = Credit(bullet_id=bullet_id, helpful=int(is_helpful), harmful=int(not is_helpful), selected=1)
    return Change(None, (BulletCredited(credit=credit),), ())


def bullet_in(playbook: BulletPlaybook, bullet_id: str) -> Bullet:
    """The bullet with that id. Raises InputError if there is none."""
    bullet = playbook.get_bullet(bullet_id)
    if bullet is None:
        raise InputError(f"there is no bullet '{bullet_id}' in this playbook")
    return bullet


def conflict_with(event: Event) -> StoreConflict:
    """The error for a write that another writer's event got ahead of."""
    what = f"{event.payload.kind} of {event.payload.subject}"
    message = f"{event.who} wrote event {event.seq} meanwhile ({what}) at {event.at:%Y-%m-%d %H:%M:%S %Z}".rstrip()
    return StoreConflict(message, who=event.who, at=event.at)


def retry_on_conflict(attempt: Callable[[], T], attempts: int = ATTEMPTS) -> T:
    """What an attempt returns. After a StoreConflict it is tried again, up to `attempts` times in all."""
    for tries in count(1):
        try:
            return attempt()
        except StoreConflict as conflict:
            if tries == attempts:
                given_up = f"given up after {attempts} attempts: {conflict}"
                raise StoreConflict(given_up, who=conflict.who, at=conflict.at) from conflict
        time.sleep(_JITTER.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tries)))
    raise AssertionError("the loop returns or raises")


def _read(new: NewBullet) -> tuple[Condition | None, Verdict | None, Claim | None]:
    """The condition, verdict and claim of a new bullet; its content is parsed only if something is missing.

    A figure in the content is a claim, unless it is the measured one.
    """
    measured = new.evidence is not None and new.evidence.in_words() in new.content
    if new.condition is not None and new.argues is not None and measured:
        return new.condition, new.argues, None
    reading = read_bullet(new.content)
    return new.condition or reading.condition, new.argues or reading.argues, None if measured else reading.claim
