"""Policies: rules that decide by themselves, before anything is scored."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, model_validator

from acefraud.core.timestamps import Timestamp
from acefraud.core.transaction import Verdict
from acefraud.display.redaction import MASKED
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr

if TYPE_CHECKING:
    from acefraud.core.bullet import Bullet

PRIORITIES = {Verdict.APPROVE: 300, Verdict.DECLINE: 200, Verdict.REVIEW: 100}
"""The priority of a policy unless it has its own: what allows comes before what blocks, and that before reviews."""


class Policy(BaseModel, frozen=True, extra="forbid"):
    """What a rule decides wherever its condition holds, before anything is scored.

    >>> from acefraud import BulletPlaybook, Learner
    >>> playbook = BulletPlaybook()
    >>> _ = playbook.add_bullet("An emulator and amount above 500", policy=Policy(verdict=Verdict.DECLINE))
    >>> str(Learner(playbook).decide_sync({"emulator": True, "amount": 900}).verdict)
    'DECLINE'
    >>> Policy(verdict=Verdict.APPROVE).rank > Policy(verdict=Verdict.DECLINE).rank
    True
    >>> Policy(verdict=Verdict.DECLINE, final=True).rank > Policy(verdict=Verdict.APPROVE, priority=900).rank
    True
    """

    verdict: Verdict
    priority: int | None = Field(default=None, ge=0, le=1_000_000)
    """The highest one decides. None means the usual one of its verdict."""
    final: bool = False
    """Whether nothing overrides it. Only a block can be final."""

    @model_validator(mode="after")
    def _check_final(self) -> Policy:
        if self.final and self.verdict is not Verdict.DECLINE:
            raise ValueError("only a policy that declines can be final")
        return self

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Of two policies that apply, the one with the higher rank decides; of equal ones, the older."""
        usual = PRIORITIES[self.verdict]
        return self.final, usual if self.priority is None else self.priority, usual

    @property
    def words(self) -> str:
        """The policy in words, such as "always decline"."""
        verb = {Verdict.APPROVE: "approve", Verdict.DECLINE: "decline", Verdict.REVIEW: "review"}[self.verdict]
        priority = "" if self.priority is None else f", priority {self.priority}"
        return f"always {verb}{priority}{', never overridden' if self.final else ''}"


class Snooze(ShortRepr, BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """A policy does not apply to one customer, card or other entity until a date."""

    key: str = Field(min_length=1)
    """The entity or the fact."""
    value: str = Field(min_length=1)
    until: Timestamp

    def __repr_args__(self) -> ReprArgs:
        return [(name, Plain(MASKED) if name == "value" else value) for name, value in super().__repr_args__()]

    def covers(self, value: str | None, at: datetime) -> bool:
        """Whether it covers this value of its key at this time."""
        return value == self.value and at < self.until


def in_order(policies: Iterable[Bullet]) -> list[Bullet]:
    """Policies in the order in which they are checked."""
    return sorted(policies, key=lambda one: one.policy.rank if one.policy else (False, 0, 0), reverse=True)
