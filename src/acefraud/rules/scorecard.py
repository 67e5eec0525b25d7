"""General fraud knowledge as a fixed scorecard: what a sensible analyst would say before seeing any of your cases.

Vanilla mode decides by it alone, and a playbook that has learnt nothing yet starts from it. ``scorecard.toml`` lists
the points, which are log-odds of fraud set by judgement. They are never fitted to data; a playbook with labelled
history fits one scale for the scorecard as a whole, which may shrink it to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from acefraud.core.calibration import Calibration
from acefraud.core.condition import Condition
from acefraud.core.condition_index import ConditionIndex, rows_in
from acefraud.core.package_data import read_package_toml
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.rules.english import say


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

    condition: Condition
    points: float
    words: str
    """The condition in English."""


@cache
def scorecard() -> tuple[Point, ...]:
    """The lines of the scorecard, parsed once."""
    conditions = [(Condition.parse(text), points) for text, points in _CARD.points.items()]
    return tuple(Point(condition, points, say(condition)) for condition, points in conditions)


@cache
def _conditions() -> ConditionIndex:
    return ConditionIndex([point.condition for point in scorecard()])


def points_for(facts: Mapping[str, FactValue]) -> list[Point]:
    """The lines that apply.

    >>> [point.words for point in points_for({"vpn": True, "account_age_days": 3.0})]
    ['account younger than 30 days', 'account younger than 7 days', 'a VPN or proxy']
    """
    return [scorecard()[place] for place in rows_in(_conditions().match(facts)[1])]


def score_in(table: FactTable) -> npt.NDArray[np.float64]:
    """The sum of points for each row, without the intercept."""
    total = np.zeros(len(table))
    for point in scorecard():
        total += point.points * point.condition.holds_in(table)
    return total
