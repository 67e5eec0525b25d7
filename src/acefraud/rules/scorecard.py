"""General fraud knowledge as a fixed scorecard: what a sensible analyst would say before seeing any of your cases.

Vanilla mode decides by it alone, and a playbook that has learnt nothing yet starts from it. ``scorecard.toml`` lists
the points, which are log-odds of fraud set by judgement. They are a starting point: a playbook with labelled history
fits points of its own (`fit_points`), and one scale for the scorecard as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from acefraud.core.bullet_table import ConditionIndex, Words, rows_in, unpacked
from acefraud.core.calibration import Calibration
from acefraud.core.comparison import ORDERED, Op
from acefraud.core.condition import Condition
from acefraud.core.fact_names import words_for
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.rules.english import say
from acefraud.support.arrays import BoolArray
from acefraud.support.exact_math import sigmoid_of
from acefraud.support.package_data import read_package_toml


class _Card(BaseModel, extra="forbid"):
    """The content of ``scorecard.toml``."""

    intercept: float
    points: dict[str, float]


_CARD = read_package_toml("acefraud.rules", "scorecard.toml", _Card)
GENERAL = Calibration(intercept=_CARD.intercept)
"""The calibration of a playbook that has learnt nothing yet."""


@dataclass(frozen=True, slots=True)
class Point:
    """One line of the scorecard."""

    line: str
    """Its name: the condition as ``scorecard.toml`` writes it."""
    condition: Condition
    points: float
    words: str
    """The condition in English."""


@cache
def scorecard() -> tuple[Point, ...]:
    """The lines of the scorecard, parsed once."""
    conditions = [(line, Condition.parse(line), points) for line, points in _CARD.points.items()]
    return tuple(Point(line, condition, points, say(condition)) for line, condition, points in conditions)


@cache
def _conditions() -> ConditionIndex:
    return ConditionIndex([point.condition for point in scorecard()])


def points_for(facts: Mapping[str, FactValue]) -> list[Point]:
    """The lines that apply.

    >>> [point.words for point in points_for({"vpn": True, "account_age_days": 3.0})]
    ['account younger than 30 days', 'account younger than 7 days', 'a VPN or proxy']
    """
    return [scorecard()[at] for at in rows_in(_conditions().match(facts)[1])]


def score_in(table: FactTable, fitted: Mapping[str, float] | None = None) -> npt.NDArray[np.float64]:
    """The sum of points for each row, without the intercept. `fitted` points replace those of their line."""
    total = np.zeros(len(table))
    for point in scorecard():
        total += (fitted or {}).get(point.line, point.points) * point.condition.holds_in(table)
    return total


def line_sets(table: FactTable) -> Words:
    """The lines that apply to each row of a table, as bit sets."""
    return _conditions().proven_in(table)


def lines_in(table: FactTable) -> BoolArray:
    """Where each line applies: a row for each row of the table, a column for each line."""
    return unpacked(line_sets(table), len(scorecard()))


@cache
def directions() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The numbers of which more is more suspicious, and those of which less is, by the signs of their lines.

    >>> rising, falling = directions()
    >>> "fraud_reports" in rising, "merchant_rating" in falling
    (True, True)
    """
    upward = {
        (test.fact, (test.op in (Op.ABOVE, Op.AT_LEAST)) == (point.points > 0))
        for point in scorecard()
        for test in point.condition.tests
        if test.op in ORDERED
    }
    facts = dict.fromkeys(fact for fact, _ in sorted(upward))
    rising = tuple(fact for fact in facts if (fact, True) in upward and (fact, False) not in upward)
    falling = tuple(fact for fact in facts if (fact, False) in upward and (fact, True) not in upward)
    return rising, falling


_PROVEN, _LEAST = 2.0, 0.5
"""Standard errors by which the frauds of a line must differ from what the scorecard expects to be proven, and to be
worth naming."""
_FEWEST = 5
"""Cases to which a line must apply."""
_MOST = 1_000
"""More cases than this are no useful answer."""


def missing_cases(facts: FactTable, labels: BoolArray) -> str:
    """The number that could be proven first, and how many more outcomes that would take; empty if none stands out.

    >>> missing_cases(FactTable([{"merchant_rating": 2.0}] * 8), np.array([True] * 3 + [False] * 5))
    'about 17 more outcomes that state the merchant rating'
    """
    p = sigmoid_of(GENERAL.intercept + score_in(facts))
    nearest: dict[str, int] = {}
    for point in scorecard():
        mask, (test, *_) = point.condition.holds_in(facts), point.condition.tests
        words = words_for(test.fact)
        if words is None or words.kind != "number" or mask.sum() < _FEWEST:
            continue
        errors = abs(float((labels - p)[mask].sum())) / math.sqrt(float((p * (1 - p))[mask].sum()))
        if _LEAST <= errors < _PROVEN:
            more = math.ceil(int(facts.known(test.fact).sum()) * (_PROVEN * _PROVEN / (errors * errors) - 1))
            nearest[words.noun] = min(more, nearest.get(words.noun, _MOST))
    noun = min(nearest, key=lambda one: nearest[one], default="")
    if not noun or nearest[noun] >= _MOST:
        return ""
    outcomes = "outcome that states" if nearest[noun] == 1 else "outcomes that state"
    return f"about {nearest[noun]} more {outcomes} the {noun}"
