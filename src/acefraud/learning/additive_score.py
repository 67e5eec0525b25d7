"""A playbook as one sum over facts: the score of every bullet that fires, without a selection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from acefraud.core.arrays import BoolArray, FloatArray
from acefraud.core.bullet import Bullet
from acefraud.core.calibration import Calibration
from acefraud.core.comparison import sql_float
from acefraud.core.condition import Condition, Part
from acefraud.core.decision import ReasonKind
from acefraud.core.playbook import Snapshot
from acefraud.core.table import FactTable
from acefraud.roles.embedded.agent import weights_of
from acefraud.rules.scorecard import GENERAL, scorecard

_BLOCK = 16_384
"""Rows that are summed at once: their columns then stay in the processor's cache."""

_SUMMED = 50
"""Terms in one sum in SQL. Databases limit how deep an expression may be nested, and each sign nests it."""


@dataclass(frozen=True, slots=True)
class Term:
    """What is added to the log-odds of fraud where a condition holds."""

    condition: Condition
    weight: float
    kind: ReasonKind
    words: str
    bullet: Bullet | None = None
    """None for a line of general knowledge."""


@dataclass(frozen=True)
class AdditiveScore:
    """Log-odds of fraud = level + the weight of every term whose condition holds.

    Nothing is drawn, so the score of a row depends on its facts alone.
    """

    calibration: Calibration
    terms: tuple[Term, ...]

    @classmethod
    def of(cls, snapshot: Snapshot, node: str) -> AdditiveScore:
        """The score that a snapshot of a playbook stands for."""
        calibration = snapshot.calibration(node) or GENERAL
        bullets = [bullet for bullet in snapshot.for_node(node) if bullet.condition is not None]
        weights = weights_of(bullets, calibration.base_rate).tolist()
        return cls(calibration, (*_bullet_terms(bullets, weights), *_knowledge_terms(calibration)))

    @property
    def facts(self) -> frozenset[str]:
        """The names of the facts that it looks at."""
        return frozenset().union(*(term.condition.facts for term in self.terms))

    def sums(self, facts: FactTable) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """The log-odds of each row, and how many bullets count for it. Every row is summed in the same order."""
        margin = np.full(len(facts), self.calibration.level)
        cited = np.zeros(len(facts), dtype=np.int64)
        for start in range(0, len(facts), _BLOCK):
            block = slice(start, start + _BLOCK)
            sums, counts = margin[block], cited[block]
            for term, mask in self.holding(facts.take(block)):
                np.add(sums, term.weight, out=sums, where=mask)
                if term.bullet is not None:
                    counts += mask
        return margin, cited

    def holding(self, facts: FactTable) -> Iterator[tuple[Term, BoolArray]]:
        """Each term, with the rows in which its condition holds."""
        distinct, places = self._parts
        masks = [part.in_table(facts) for part in distinct]
        for term, (first, *others) in zip(self.terms, places, strict=True):
            mask = masks[first]
            for other in others:
                mask = mask & masks[other]
            yield term, mask

    @cached_property
    def _parts(self) -> tuple[list[Part], list[list[int]]]:
        """The distinct parts of all conditions, and for each term the places of its own: bullets share tests."""
        place: dict[Part, int] = {}
        for term in self.terms:
            for part in term.condition.parts:
                place.setdefault(part, len(place))
        return list(place), [[place[part] for part in term.condition.parts] for term in self.terms]

    def to_sql(self) -> str:
        """The log-odds as an SQL expression over columns named like the facts, NULL where a fact is unknown."""
        parts = [f"CASE WHEN {term.condition.to_sql()} THEN {sql_float(term.weight)} ELSE 0 END" for term in self.terms]
        sums = [" +\n    ".join(parts[at : at + _SUMMED]) for at in range(0, len(parts), _SUMMED)]
        return "\n  + ".join([sql_float(self.calibration.level), *(f"({one})" for one in sums)])


def _bullet_terms(bullets: Sequence[Bullet], weights: Sequence[float]) -> Iterator[Term]:
    for bullet, weight in zip(bullets, weights, strict=True):
        if weight and bullet.condition is not None:
            yield Term(bullet.condition, weight, ReasonKind.BULLET, bullet.shown, bullet)


def _knowledge_terms(calibration: Calibration) -> Iterator[Term]:
    scale, fitted = calibration.knowledge_scale, calibration.points
    for point in scorecard() if scale > 0 else ():
        weight = scale * fitted.get(point.line, point.points)
        if weight:
            yield Term(point.condition, weight, ReasonKind.KNOWLEDGE, point.words)
