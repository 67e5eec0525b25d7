"""Categories whose values are bands of numbers: "2 to 4", "more than 7 years", "under 6 months"."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache

from acefraud.core.condition import Condition, Test
from acefraud.rules.reader.bounds import bounds, counts
from acefraud.rules.reader.measures import Measure
from acefraud.rules.reader.names import Fact
from acefraud.rules.reader.phrases import Tokens, is_one_of
from acefraud.rules.reader.quantities import HOURS
from acefraud.rules.reader.values import among

_UNIT = r"(?:\s*(?P<unit>days?|weeks?|months?|years?|[a-z]+))?"
_NUMBER = r"\d+(?:\.\d+)?"
_BANDS = (
    (re.compile(rf"(?P<low>{_NUMBER})\s*(?:to|-|–)\s*(?P<high>{_NUMBER}){_UNIT}"), "between"),
    (re.compile(rf"(?:more than|over|above|>)\s*(?P<low>{_NUMBER}){_UNIT}"), "above"),
    (re.compile(rf"(?:less than|under|below|<)\s*(?P<high>{_NUMBER}){_UNIT}"), "below"),
    (re.compile(rf"(?P<low>{_NUMBER})\s*(?:\+|or more|and more|and over){_UNIT}"), "at least"),
    (re.compile(rf"(?P<low>{_NUMBER}){_UNIT}"), "exactly"),
)
_ZERO = frozenset({"none", "0", "no", "zero", "new"})
_LEAST = 3
"""Values of a category that has bands."""
_TINY = 1e-6
_HUGE = 1e15


@dataclass(frozen=True, slots=True)
class Band:
    """One value of such a category: the numbers from `low` to `high`."""

    value: str
    low: float
    high: float
    unit: str = ""
    is_open: bool = False
    """Whether the ends themselves are outside."""

    def in_days(self) -> Band:
        """The band in days, if it is one of time."""
        days = HOURS[self.unit] / 24
        return replace(self, low=self.low * days, high=self.high * days, unit="")

    def points(self, limits: list[float]) -> list[float]:
        """Numbers of the band by which a condition with these limits can be told to hold in all of it."""
        tiny = _TINY if self.is_open else 0.0
        low, high = self.low + tiny, self.high - tiny
        near = [limit + step for limit in limits for step in (-_TINY, 0.0, _TINY)]
        return [low, min(high, _HUGE), *(point for point in near if low <= point <= high)]


def said_of_bands(tokens: Tokens, at: int, fact: Fact, *, counted: bool = False) -> list[tuple[Condition, int]]:
    """The values of a category with bands that a comparison here means. One that cuts a band in two means none.

    With `counted`, the number stands before what it counts: "no more than 2 (past claims)".
    """
    found: list[tuple[Condition, int]] = []
    bands = bands_of(fact)
    units = {band.unit for band in bands}
    kinds = []
    if len(units) == 1:
        kinds.append((Measure.PLAIN, bands))
    if bands and units <= HOURS.keys() and not counted:
        kinds.append((Measure.DAYS, tuple(band.in_days() for band in bands)))
    for measure, some in kinds:
        number = Fact(fact.name, "number", measure)
        for bound, end in counts(tokens, at) if counted else bounds(tokens, at, number):
            has_unit = any(is_one_of(tokens, place, HOURS) for place in range(at, end))
            if has_unit == (measure is Measure.DAYS):
                values = _values_within(some, bound(fact.name))
                found += [(among(fact.name, values), end)] if values else []
    return found


@lru_cache(maxsize=256)
def bands_of(fact: Fact) -> tuple[Band, ...]:
    """The bands of a category; none if its values are not bands."""
    unit = "day" if "day" in fact.words else ""
    made = [_band(value, unit) for value in fact.values]
    odd = [value for value, band in zip(fact.values, made, strict=True) if band is None]
    if len(fact.values) < _LEAST or any(not value.lower().startswith("no ") for value in odd):
        return ()
    found = [band for band in made if band is not None]
    if all(band.low == band.high for band in found):
        return ()
    units = {band.unit for band in found} - {""}
    if len(units) == 1:  # "2 years", "more than 7"
        found = [replace(band, unit=next(iter(units))) for band in found]
    return tuple(found)


def _band(value: str, unit: str) -> Band | None:
    lower = value.strip().lower()
    if lower in _ZERO:
        return Band(value, 0.0, 0.0, unit)
    for pattern, kind in _BANDS:
        if (match := pattern.fullmatch(lower)) is not None:
            named = (match["unit"] or unit).removesuffix("s")
            low = float(match["low"]) if "low" in pattern.groupindex else 0.0
            if kind in ("above", "at least"):
                return Band(value, low, math.inf, named, is_open=kind == "above")
            high = float(match["high"]) if "high" in pattern.groupindex else low
            return Band(value, low, high, named, is_open=kind == "below")
    return None


def _values_within(bands: tuple[Band, ...], condition: Condition) -> list[str]:
    """The values whose whole band fulfils a condition; none if it cuts one in two, or if all or none do."""
    (fact,) = condition.facts
    limits = [leaf.value for leaf in condition.leaves if isinstance(leaf, Test) and isinstance(leaf.value, float)]
    inside = []
    for band in bands:
        truths = {condition.holds({fact: point}) for point in band.points(limits)}
        if len(truths) > 1:
            return []
        if truths == {True}:
            inside.append(band.value)
    return inside if len(inside) < len(bands) else []
