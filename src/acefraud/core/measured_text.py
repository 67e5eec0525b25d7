"""The words of a bullet that bring along what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from acefraud.core.bullet import Bullet
from acefraud.core.condition import Condition
from acefraud.core.evidence import Evidence
from acefraud.core.scoring import Calibration
from acefraud.core.transaction import Verdict


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights that were fitted together, and the frame in which they add up to a probability."""

    calibration: Calibration
    weights: Mapping[Condition, float] = field(default_factory=dict)
    """By condition; 0 for one that the others made superfluous."""


class MeasuredText(str):
    """Plain text to everyone who reads it; a bullet with its condition and evidence to whoever merges or weighs it.

    >>> words = MeasuredText("VPN at night: decline", argues=Verdict.DECLINE, weight=1.2)
    >>> words == "VPN at night: decline", words.weight
    (True, 1.2)
    """

    condition: Condition | None
    argues: Verdict | None
    evidence: Evidence | None
    weight: float | None
    """Log-odds, to be used within `fit` only."""
    problem_types: tuple[str, ...]
    fit: Fit | None

    def __new__(
        cls,
        words: str = "",
        *,
        condition: Condition | None = None,
        argues: Verdict | None = None,
        evidence: Evidence | None = None,
        weight: float | None = None,
        problem_types: Sequence[str] = (),
        fit: Fit | None = None,
    ) -> Self:
        text = super().__new__(cls, words)
        text.condition = condition
        text.argues = argues
        text.evidence = evidence
        text.weight = weight
        text.problem_types = tuple(problem_types)
        text.fit = fit
        return text

    @classmethod
    def of(cls, bullet: Bullet, calibration: Calibration | None) -> Self:
        """The words of a bullet in a playbook with this frame."""
        return cls(
            bullet.content,
            condition=bullet.condition,
            argues=bullet.argues,
            evidence=bullet.evidence,
            weight=bullet.weight,
            problem_types=bullet.problem_types,
            fit=None if calibration is None else Fit(calibration),
        )


def with_measured_text(bullet: Bullet, calibration: Calibration | None) -> Bullet:
    """The same bullet; its words alone now suffice to decide with it as the playbook would."""
    return bullet.model_copy(update={"content": MeasuredText.of(bullet, calibration)})
