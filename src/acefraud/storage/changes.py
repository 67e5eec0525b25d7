"""Changes of a playbook as values: what should happen, worked out on one revision, and what that rests on."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Final, Generic, Protocol, TypeVar

from acefraud.core.bullet import Bullet, Claim, Source, Status, bullet_id
from acefraud.core.condition import Condition
from acefraud.core.events import BulletAdded, BulletCredited, BulletEdited, Credit, Happening, StatusChanged
from acefraud.core.evidence import Evidence
from acefraud.core.ledger import Unless
from acefraud.core.reading import Reading, read_bullet
from acefraud.core.transaction import Verdict
from acefraud.errors import InputError, StoreConflict

ATTEMPTS: Final = 20
"""How often a change is worked out anew because somebody else was faster, before that is raised."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.1
_PAUSES: Final = random.Random()
"""Of its own, so that pauses take nothing from anybody's draws."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewBullet:
    """What a bullet should say. What is not given is read from its words, where it can be."""

    content: str
    source: Source | str = Source.MANUAL
    condition: Condition | None = None
    argues: Verdict | None = None
    evidence: Evidence | None = None
    weight: float | None = None
    problem_types: Sequence[str] = ()
    status: Status = Status.ACTIVE
    why: str = ""


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """Happenings, the bullets that they rest on, and what the caller gets when they are written."""

    result: T
    happenings: tuple[Happening, ...] = ()
    rests_on: Collection[str] | None = None
    """The ids that nobody may have added, edited or moved meanwhile; None stands for all bullets."""

    def unless(self, seq: int) -> Unless:
        """The condition on which it may be written, having been worked out on the revision of an event."""
        return Unless.bullets_edited(seq, self.rests_on)


class ReadsBullets(Protocol):
    """The bullets that a change is worked out on."""

    def __contains__(self, bullet_id: str) -> bool:
        """Whether there is a bullet of that id."""
        ...

    def get_bullet(self, bullet_id: str) -> Bullet | None:
        """The bullet of that id."""
        ...

    def contradicted(self, node: str, condition: Condition | None, argues: Verdict | None) -> tuple[str, ...]:
        """The bullets in use that cannot be right beside such a one."""
        ...


def addition(book: ReadsBullets, new: NewBullet, node: str, *, who: str, at: datetime) -> Change[str]:
    """A new bullet under an id that is free; its result is the id."""
    reading = _read(new)
    condition, argues = new.condition or reading.condition, new.argues or reading.argues
    bullet = Bullet(
        id=_free_id(book, node, new.content),
        content=new.content,
        node=node,
        source=Source(new.source),
        status=new.status,
        status_by=who,
        argues=argues,
        condition=condition,
        evidence=new.evidence,
        claim=_claim_beside(reading.claim, new),
        weight=new.weight,
        contradicts=book.contradicted(node, condition, argues),
        problem_types=tuple(new.problem_types),
        added_at=at,
    )
    return Change(bullet.id, (BulletAdded(bullet=bullet, reason=new.why),), [bullet.id])


def edition(book: ReadsBullets, bullet_id: str, new: NewBullet) -> Change[None]:
    """A bullet that says something else, as it is there now."""
    node = bullet_in(book, bullet_id).node
    reading = _read(new)
    condition, argues = new.condition or reading.condition, new.argues or reading.argues
    edit = BulletEdited(
        bullet_id=bullet_id,
        content=new.content,
        condition=condition,
        argues=argues,
        evidence=new.evidence,
        claim=_claim_beside(reading.claim, new),
        contradicts=tuple(other for other in book.contradicted(node, condition, argues) if other != bullet_id),
        problem_types=tuple(new.problem_types),
        reason=new.why,
    )
    return Change(None, (edit,), [bullet_id])


def move(book: ReadsBullets, bullet_id: str, status: Status, why: str) -> Change[None]:
    """A bullet of another status; nothing where it has that already."""
    moved = bullet_in(book, bullet_id).status is not status
    happenings = (StatusChanged(bullet_id=bullet_id, status=status, reason=why),) if moved else ()
    return Change(None, happenings, [bullet_id])


def use(book: ReadsBullets, bullet_id: str, *, is_helpful: bool) -> Change[None]:
    """One use of a bullet. It adds to counters, so it rests on nothing that others could change."""
    bullet_in(book, bullet_id)
    credit = Credit(bullet_id=bullet_id, helpful=int(is_helpful), harmful=int(not is_helpful), selected=1)
    return Change(None, (BulletCredited(credit=credit),), ())


def bullet_in(book: ReadsBullets, bullet_id: str) -> Bullet:
    """The bullet of that id. InputError where there is none."""
    bullet = book.get_bullet(bullet_id)
    if bullet is None:
        raise InputError(f"there is no bullet '{bullet_id}' in this playbook")
    return bullet


def again_where_overtaken(attempt: Callable[[], T]) -> T:
    """What an attempt returns. Where somebody else was faster it is made again, `ATTEMPTS` times at most.

    StoreConflict after that, with what happened last.
    """
    for tries in count(1):
        try:
            return attempt()
        except StoreConflict as faster:
            if tries == ATTEMPTS:
                given_up = f"given up after {ATTEMPTS} attempts: {faster}"
                raise StoreConflict(given_up, who=faster.who, at=faster.at) from faster
        time.sleep(_PAUSES.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tries)))
    raise AssertionError("the loop returns or raises")


def _free_id(book: ReadsBullets, node: str, content: str) -> str:
    return next(one for attempt in count() if (one := bullet_id(node, content, attempt)) not in book)


def _read(new: NewBullet) -> Reading:
    """What the words of a bullet say, where anything is left to be read."""
    if new.condition is not None and new.argues is not None and _says_its_figure(new):
        return Reading(condition=new.condition, argues=new.argues, claim=None)
    return read_bullet(new.content)


def _claim_beside(claim: Claim | None, new: NewBullet) -> Claim | None:
    """A figure in the words is a claim, unless it is the very figure that was measured."""
    return None if _says_its_figure(new) else claim


def _says_its_figure(new: NewBullet) -> bool:
    return new.evidence is not None and new.evidence.in_words() in new.content
