"""Bullets as columns, for data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acefraud.core.bullet import Bullet
from acefraud.rules.english import say


def bullet_columns(bullets: Sequence[Bullet]) -> dict[str, list[Any]]:
    """The bullets as columns, the heaviest first."""
    ordered = sorted(bullets, key=lambda bullet: (-abs(bullet.weight or 0.0), bullet.id))
    rows = [_row(bullet) for bullet in ordered]
    names = _row(Bullet(id="-", content="-"))  # also where there is none
    return {name: [row[name] for row in rows] for name in names}


def _row(bullet: Bullet) -> dict[str, Any]:
    evidence = bullet.evidence
    low, high = (None, None) if evidence is None else evidence.interval
    return {
        "bullet": bullet.id,
        "english": bullet.shown if bullet.condition is None else say(bullet.condition),
        "weight": bullet.weight,
        "support": None if evidence is None else evidence.shown.support,
        "frauds": None if evidence is None else evidence.shown.frauds,
        "precision": None if evidence is None else evidence.shown.precision,
        "low": low,
        "high": high,
        "base_rate": None if evidence is None else evidence.base_rate,
        "sql": "" if bullet.condition is None else bullet.condition.to_sql(),
        "argues": str(bullet.argues or ""),
        "content": bullet.shown,
        "status": str(bullet.status),
        "source": str(bullet.source),
        "node": bullet.node,
        "helpful": bullet.helpful_count,
        "harmful": bullet.harmful_count,
    }
