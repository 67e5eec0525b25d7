"""How the figures in a match become the value of a fact. ``vocabulary/statements.toml`` refers to these by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from acefraud.core.transaction import FactValue

from .figures import MarkedFigure


class Found(NamedTuple):
    """One match of a pattern and the figures within it, in order."""

    match: re.Match[str]
    within: list[MarkedFigure]

    def figures(self, *kinds: str) -> list[MarkedFigure]:
        """The figures of these kinds within the match, in order."""
        return [figure for figure in self.within if figure.kind in kinds]

    @property
    def counts(self) -> list[MarkedFigure]:
        """The counts within the match."""
        return self.figures("count", "count_range")

    @property
    def sums(self) -> list[MarkedFigure]:
        """The sums within the match."""
        return self.figures("money", "money_range")


Getter = Callable[[Found], FactValue | None]

_LONGEST_BURST_DAYS = 1.0
"""A count over more than a day is a habit, not a burst."""


def middle(*kinds: str) -> Getter:
    """Gets the first figure of these kinds in the match; of a range, its middle."""

    def get(found: Found) -> FactValue | None:
        figures = found.figures(*kinds)
        return round(figures[0].middle, 6) if figures else None

    return get


count, days = middle("count", "count_range"), middle("duration", "day_word")


def count_or_zero(found: Found) -> FactValue | None:
    """The count in the match, or zero if the match says "no" or "never" instead."""
    return found.counts[0].middle if found.counts else 0.0


def per_month(found: Found) -> FactValue | None:
    """The pace per month. A week is 7 of the month's 30 days."""
    pace = found.counts[0].middle
    return round(pace * 30 / 7, 2) if "week" in found.match[0] else pace


def nth_less_one(found: Found) -> FactValue | None:
    """The eighth purchase somewhere has seven before it."""
    return max(0.0, found.figures("ordinal")[0].low - 1)


def burst_days(found: Found) -> float | None:
    """The time that a burst took; None if it was too long for a burst."""
    span = days(found)
    return span if isinstance(span, float) and 0 < span <= _LONGEST_BURST_DAYS else None


def burst(found: Found) -> FactValue | None:
    """How many transactions a burst had."""
    return None if burst_days(found) is None else count(found)


def burst_minutes(found: Found) -> FactValue | None:
    """The minutes that a burst took."""
    span = burst_days(found)
    return None if span is None else round(span * 1_440, 2)


def highest(found: Found) -> float:
    """The highest sum."""
    return max(figure.high for figure in found.sums)


def mean(found: Found) -> FactValue | None:
    """The mean of all sums."""
    return round(sum(figure.middle for figure in found.sums) / len(found.sums), 2)


def half(found: Found) -> FactValue | None:
    """ "All under 200" names the top only; the middle of nothing and the top is the least bold reading of "usual"."""
    return highest(found) / 2


def climbs(found: Found) -> FactValue | None:
    """Four or more earlier sums, each above the one before, are an escalation even when nobody calls it so."""
    sums = [figure.middle for figure in found.figures("money")]
    rises = len(sums) >= 4 and all(low < high for low, high in pairwise(sums))
    return True if rises else None


def multiple(found: Found) -> FactValue | None:
    """How many times the one is the other, if only one figure says so."""
    figures = found.figures("multiple", "count")
    return figures[0].middle if len(figures) == 1 else None


def report_days(found: Found) -> FactValue | None:
    """The days in which fraud was reported, if it was."""
    return days(found) if count_or_zero(found) else None


def five_at_most(found: Found) -> FactValue | None:
    """A bare figure is a rating out of five only if it can be one."""
    figure = found.figures("count")[0]
    return figure.low if figure.low <= 5 else None


def is_from_23_to_6(found: Found) -> FactValue | None:
    """Whether two clock times are the bounds of the night."""
    return [figure.low for figure in found.figures("clock")] == [23.0, 6.0] or None


GETTERS: dict[str, Getter] = {
    "count": count,
    "days": days,
    "sum": middle("money", "count"),
    **{kind: middle(kind) for kind in ("money", "clock", "rating", "distance")},
}
for get in (count_or_zero, per_month, nth_less_one, burst, burst_minutes, highest, mean, half, climbs):
    GETTERS[get.__name__] = get
for get in (multiple, report_days, five_at_most, is_from_23_to_6):
    GETTERS[get.__name__] = get
