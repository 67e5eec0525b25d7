"""Bullet text that carries what was measured of the bullet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from acefraud.core.bullet import Bullet, NewBullet
from acefraud.core.calibration import Calibration
from acefraud.core.condition import Condition


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights that were fitted together, and the calibration in which they add up to a probability."""

    calibration: Calibration
    weights: Mapping[Condition, float] = field(default_factory=dict)
    """By condition; 0 for a condition that the others make superfluous."""


class MeasuredText(str):
    """Plain text to its readers; a bullet with condition and evidence to the curator and the agent.

    >>> text = MeasuredText(NewBullet("VPN at night: decline", weight=1.2))
    >>> text == "VPN at night: decline", text.bullet.weight
    (True, 1.2)
    """

    bullet: NewBullet
    """Its weight is log-odds, valid only together with `fit`."""
    fit: Fit | None

    def __new__(cls, bullet: NewBullet, fit: Fit | None = None) -> Self:
        text = super().__new__(cls, bullet.content)
        text.bullet, text.fit = bullet, fit
        return text

    def __reduce__(self) -> tuple[type[MeasuredText], tuple[NewBullet, Fit | None]]:
        return type(self), (self.bullet, self.fit)


def with_measured_text(bullet: Bullet, calibration: Calibration | None) -> Bullet:
    """The same bullet, with text that is enough to decide with it as the playbook would."""
    measured = NewBullet(
        bullet.content,
        condition=bullet.condition,
        argues=bullet.argues,
        evidence=bullet.evidence,
        weight=bullet.weight,
        problem_types=bullet.problem_types,
    )
    fit = None if calibration is None else Fit(calibration)
    return bullet.model_copy(update={"content": MeasuredText(measured, fit)})
