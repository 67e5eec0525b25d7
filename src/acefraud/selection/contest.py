"""Stages 4 and 5 over a field of candidates, without looking closely at those that cannot win.

A draw is at most 1 and the bonus for being different is bounded. So a candidate whose record and relevance lie too far
behind is never drawn for, and one whose score lies too far behind is never compared with those picked. What is picked,
and with which score, is what looking at everybody would give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from acefraud.core.roles import Vectors
from acefraud.selection.axis import ROUNDING, Axis, Bins
from acefraud.selection.worth import Column, Rows

FIELD = 1024
"""A field of so many is looked at as a whole."""
DRAWN_FOR = 512
"""Of a larger field so many are drawn for at first..."""
LOOKED_AT = 48
"""...and so many are looked at."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each component counts in the hybrid score."""

    quality: float = 0.3
    semantic: float = 0.4
    thompson: float = 0.3


class Entrants(Protocol):
    """Candidates, in the order in which the first of equals wins."""

    @property
    def success(self) -> Column:
        """Their records."""
        ...

    @property
    def relevance(self) -> Column:
        """Their relevance; where it is by resemblance, known only roughly: up to `ROUNDING`."""
        ...

    def draws(self, places: Rows) -> Column:
        """Their draws."""
        ...

    def vectors(self, places: Rows) -> Vectors:
        """Their vectors."""
        ...

    def exact(self, places: Rows, vectors: Vectors) -> Column:
        """Their relevance, exactly."""
        ...

    def likeness(self, vector: Vectors) -> Vectors:
        """The products of all of them with a vector, roughly: up to `ROUNDING` times its length."""
        ...

    def axis(self) -> tuple[Axis, Bins] | None:
        """A direction that most vectors have in common, and how far they lean to it; None where that is not known."""
        ...


class Pick(NamedTuple):
    """A candidate that was picked, by its place in the field, with every component of its score."""

    place: int
    quality: float
    semantic: float
    thompson: float
    combined: float
    diversity: float


def hybrid(success: Column, relevance: Column, draws: Column, weights: Weights) -> Column:
    """Stage 4: the weighted sum of record, relevance and draw."""
    return weights.quality * success + weights.semantic * relevance + weights.thompson * draws


def picks_of(
    entrants: Entrants, wanted: int, weights: Weights, diversity: float, picked: Sequence[Vectors] = ()
) -> tuple[list[Pick], list[Vectors]]:
    """Stages 4 and 5: each place goes to the best sum of score and difference from those picked.

    ``picked`` are the vectors of those that were picked before; they come back with the new ones behind them.
    """
    return Contest(entrants, min(wanted, len(entrants.success)), weights, diversity, picked).held()


class Contest:
    """A field of which some have been drawn for, and some of these have been looked at."""

    def __init__(
        self, entrants: Entrants, wanted: int, weights: Weights, diversity: float, picked: Sequence[Vectors]
    ) -> None:
        self._entrants = entrants
        self._wanted = wanted
        self._weights = weights
        self._diversity = diversity
        self._before = list(picked)
        self._most = weights.quality * entrants.success + weights.semantic * entrants.relevance + weights.thompson
        """What each scores at most, but for the bonus: a draw is at most 1."""
        self._draws = np.full(len(self._most), np.nan)
        self._base: Known | None = None
        if len(self._most) <= FIELD:
            self._looked_at = np.arange(len(self._most))
            self._draw(self._looked_at)
        else:
            self._looked_at = self._leading(max(LOOKED_AT, wanted))
        self._vectors = entrants.vectors(self._looked_at)

    def held(self) -> tuple[list[Pick], list[Vectors]]:
        """Pick from those looked at, until nobody else could have taken a place."""
        known: list[int] = []
        while True:
            relevance = self._entrants.exact(self._looked_at, self._vectors)
            success, draws = self._entrants.success[self._looked_at], self._draws[self._looked_at]
            combined = hybrid(success, relevance, draws, self._weights)
            won = diverse(combined, self._vectors, self._wanted, self._diversity, self._before)
            places = [int(self._looked_at[place]) for place, _ in won]
            vectors = [*self._before, *(self._vectors[place] for place, _ in won)]
            settled = len(self._looked_at) == len(self._draws) or places == known
            known = places
            if settled or not self._look_at_rivals([combined[i] + bonus for i, bonus in won], vectors):
                break
        picks = [
            Pick(place, float(success[i]), float(relevance[i]), float(draws[i]), float(combined[i]), bonus)
            for place, (i, bonus) in zip(known, won, strict=True)
        ]
        return picks, vectors

    def _leading(self, count: int) -> Rows:
        """Those who lead without a bonus: as many are drawn for as it takes to know the first of them for sure."""
        self._draw(_highest(self._most, max(DRAWN_FOR, count)))
        drawn = np.flatnonzero(~np.isnan(self._draws))
        self._draw(np.flatnonzero(np.isnan(self._draws) & (self._most >= self._most[drawn].max() - 2 * ROUNDING)))
        drawn = np.flatnonzero(~np.isnan(self._draws))
        return drawn[_highest(self._most[drawn], count)]

    def _look_at_rivals(self, totals: Sequence[float], vectors: Sequence[Vectors]) -> bool:
        """Look at all whose score and bonus could exceed what any place was won with; whether there are any."""
        enough = np.array(totals) - (4 + 2 * self._weights.semantic + 2 * self._diversity) * ROUNDING
        bounds = self._known(vectors).bounds(enough, vectors, self._diversity)
        others = self._most >= bounds.roughly()
        others[self._looked_at] = False
        rivals = np.flatnonzero(others)
        needed = bounds.needed(rivals)
        close = self._most[rivals] >= needed
        rivals, needed = rivals[close], needed[close]
        self._draw(rivals[np.isnan(self._draws[rivals])])
        rivals = rivals[self._most[rivals] >= needed]
        if not len(rivals):
            return False
        places = np.concatenate([self._looked_at, rivals])
        order = np.argsort(places)
        self._looked_at = places[order]
        self._vectors = np.concatenate([self._vectors, self._entrants.vectors(rivals)])[order]
        return True

    def _known(self, vectors: Sequence[Vectors]) -> Known:
        """The products of everybody with those picked before, or with the first of all."""
        count = max(1, len(self._before))
        base = np.add.reduce(vectors[:count])
        if self._base is None or not np.array_equal(self._base.base, base):
            axis = self._entrants.axis()
            likeness = None if axis is None else self._entrants.likeness(base)
            self._base = Known(base, count, len(self._before), likeness, axis)
        return self._base

    def _draw(self, places: Rows) -> None:
        if len(places):
            draws = self._entrants.draws(places)
            self._draws[places] = draws
            self._most[places] += self._weights.thompson * (draws - 1)


@dataclass(frozen=True, slots=True)
class Known:
    """The products of everybody with the base: those picked before, or the first of all where there are none."""

    base: Vectors
    """The sum of the vectors it consists of."""
    count: int
    before: int
    likeness: Vectors | None
    """None where nothing is known."""
    axis: tuple[Axis, Bins] | None

    def bounds(self, enough: Column, vectors: Sequence[Vectors], diversity: float) -> Bounds:
        """Bounds for places that were won with these totals; the first of all is won without a bonus."""
        first = 0 if self.before else 1
        plain = float(enough[:first].min(initial=math.inf))
        levels = enough[first:]
        counts = np.arange(self.before + first, self.before + len(enough))
        sums = np.cumsum(vectors, axis=0, dtype=np.float64)[self.before + first - 1 : -1]
        if self.axis is None or self.likeness is None:
            opposite = -np.sqrt(np.vecdot(sums, sums))[:, None]
            by_bin = levels[:, None] - (1 - opposite / counts[:, None]) * diversity
            return Bounds(by_bin, np.zeros(len(counts)), plain, None, None)
        others = self.axis[0].least(sums - self.base)
        others[counts == self.count] = 0.0
        by_bin = levels[:, None] - (1 - others / counts[:, None]) * diversity
        return Bounds(by_bin, diversity / counts, plain, self.likeness, self.axis[1])


@dataclass(frozen=True, slots=True)
class Bounds:
    """What somebody would have to score without a bonus to win one of several places with it.

    The bonus goes by the average product with those picked before. With the base the product is known for everybody;
    with the others it is bounded by how far everybody leans to the axis.
    """

    by_bin: Column
    """A row for each place, a column for each bin: what would be needed if the product with the base were 0..."""
    slopes: Column
    """...and how much more for each unit of that product."""
    plain: float
    """What the place without a bonus takes."""
    likeness: Vectors | None
    bins: Bins | None

    def roughly(self) -> Column | float:
        """For everybody, or less: in one go, as if the base counted at each place as little as at any."""
        if self.likeness is None or self.bins is None or not len(self.slopes):
            return min(self.plain, float(self.by_bin.min(initial=math.inf)))
        lowest = self.by_bin.min(axis=0).astype(np.float32)[self.bins]
        slight, steep = np.float32(self.slopes.min()), np.float32(self.slopes.max())
        lowest += np.minimum(self.likeness * slight, self.likeness * steep)
        rough: Column = np.minimum(lowest, self.plain).astype(np.float64) - ROUNDING
        return rough

    def needed(self, who: Rows) -> Column:
        """For some of the field, at the place that takes least."""
        if self.likeness is None or self.bins is None or not len(self.slopes):
            return np.full(len(who), self.roughly())
        needed = self.by_bin[:, self.bins[who]] + self.slopes[:, None] * self.likeness[who]
        least: Column = np.minimum(needed.min(axis=0), self.plain)
        return least


def diverse(
    combined: Column, vectors: Vectors, wanted: int, weight: float, picked: Sequence[Vectors] = ()
) -> list[tuple[int, float]]:
    """Stage 5 among those looked at. Returns the picks in order, each with the bonus it had."""
    picks: list[tuple[int, float]] = []
    left = combined.copy()
    likeness = np.zeros(len(combined))
    for vector in picked:
        likeness += np.vecdot(vectors, vector)
    count = len(picked)
    bonus = np.zeros(len(combined))
    for _ in range(min(wanted, len(combined))):
        if count:
            bonus = (1 - likeness / count) * weight
        best = int((left + bonus).argmax())
        picks.append((best, float(bonus[best])))
        left[best] = -math.inf
        likeness += np.vecdot(vectors, vectors[best])
        count += 1
    return picks


def _highest(scores: Column, count: int) -> Rows:
    """The places of the highest scores, in ascending order."""
    if len(scores) <= count:
        return np.arange(len(scores))
    return np.sort(np.argpartition(scores, len(scores) - count)[len(scores) - count :])
