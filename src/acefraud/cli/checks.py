"""Checks on dates and names that people give for rules and lists."""

from __future__ import annotations

from datetime import UTC, datetime

from acefraud.engine.rule_context import entity_columns
from acefraud.errors import InputError
from acefraud.rules.reader.wording import nearest_facts
from acefraud.storage import BulletPlaybook


def later(until: datetime) -> datetime:
    """A date in UTC up to which something counts. One that is past is an error."""
    end = until.replace(tzinfo=UTC)
    if end <= datetime.now(UTC):
        raise InputError(f"expected a date that is still to come, got {end:%Y-%m-%d %H:%M} UTC", field="until")
    return end


def unseen_key(playbook: BulletPlaybook, key: str) -> str:
    """What to say of an entity or a fact that no remembered case has; empty if one has it, or if there are none."""
    vocabulary, columns = playbook.vocabulary(), entity_columns(playbook.mapping)
    if vocabulary.is_open or key in {*vocabulary.facts, *vocabulary.entities.values(), *columns.values(), *columns}:
        return ""
    known = dict.fromkeys([*vocabulary.entities.values(), *nearest_facts([key], vocabulary)])
    nearest = f"; there is {', '.join(known)}" if known else ""
    return f"no case so far has a '{key}'{nearest}"
