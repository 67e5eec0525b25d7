"""When two bullets cannot both be right."""

from __future__ import annotations

from collections.abc import Iterable

from acefraud.core.bullet import Bullet
from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict


def contradicted(existing: Iterable[Bullet], condition: Condition | None, argues: Verdict | None) -> list[Bullet]:
    """The bullets that argue for the other verdict under a condition that this one shares or narrows."""
    if condition is None:
        return []
    return [
        bullet
        for bullet in existing
        if opposed(bullet.argues, argues) and bullet.condition is not None and _overlap(bullet.condition, condition)
    ]


def opposed(one: Verdict | None, other: Verdict | None) -> bool:
    """Whether two verdicts are known and differ."""
    return one is not None and other is not None and one is not other


def _overlap(one: Condition, other: Condition) -> bool:
    """Whether one condition implies the other, so that where the narrower holds the two disagree."""
    return one.implies(other) or other.implies(one)
