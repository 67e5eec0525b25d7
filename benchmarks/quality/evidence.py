"""Whether the figures printed in bullets hold on rows that nobody had seen at the time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from acefraud import Bullet, FactTable
from benchmarks.arrays import Mask


@dataclass(frozen=True, slots=True)
class EvidenceHeld:
    """Of the bullets that hold on some test row, how many have their share of fraud inside their interval."""

    inside: int
    of: int

    @property
    def share(self) -> float | None:
        """None if no bullet holds on any row."""
        return self.inside / self.of if self.of else None

    def as_json(self) -> dict[str, float | None]:
        """The counts and the share, rounded to six digits."""
        return {"inside": self.inside, "of": self.of, "share": None if self.share is None else round(self.share, 6)}


def evidence_held(bullets: Iterable[Bullet], facts: FactTable, labels: Mask) -> EvidenceHeld:
    """Compare the interval of each bullet with measured evidence to its share of fraud on these rows."""
    inside, of = 0, 0
    for bullet in bullets:
        if bullet.condition is None or bullet.evidence is None:
            continue
        found = labels[bullet.condition.holds_in(facts)]
        if len(found):
            low, high = bullet.evidence.interval
            inside, of = inside + bool(low <= np.mean(found) <= high), of + 1
    return EvidenceHeld(inside, of)


def together(runs: Iterable[EvidenceHeld | None]) -> EvidenceHeld | None:
    """The counts of several runs together; None if there are none."""
    known = [run for run in runs if run is not None]
    return EvidenceHeld(sum(run.inside for run in known), sum(run.of for run in known)) if known else None
