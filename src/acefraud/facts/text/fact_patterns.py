"""Fact patterns: a text pattern with ``{money}`` and the like in it, and how its figures become facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from acefraud.core.transaction import FactValue

from .document import Document
from .figures import Figure
from .patterns import TextPattern, search_pattern, text_pattern


class Found(NamedTuple):
    """One match of a pattern and the figures within it, in order."""

    match: re.Match[str]
    within: list[Figure]

    def figures(self, *kinds: str) -> list[Figure]:
        """The figures of these kinds within the match, in order."""
        return [figure for figure in self.within if figure.kind in kinds]


Getter = Callable[[Found], FactValue | None]


@dataclass(frozen=True, slots=True)
class FactPattern:
    """One way to state facts. A pattern without facts takes figures that would mislead later patterns."""

    pattern: TextPattern
    facts: tuple[tuple[str, FactValue | Getter], ...]
    unless: TextPattern | None
    """Words in the same segment, up to the end of the match, that make it speak of something else."""
    tier: int

    def read(self, document: Document) -> None:
        """Add the statements that this pattern finds in a document."""
        matches = document.matches(self.pattern)
        if not matches:
            return
        unless = self.unless.regex if self.unless and document.may_hold(self.unless) else None
        for match in matches:
            start, end = match.span()
            within = document.free_figures(start, end)
            if within is None:
                continue
            if unless and unless.search(document.plain, document.segment_start(start), end):
                continue
            found = Found(match, within)
            currency = min((figure.currency for figure in found.figures("money", "money_range")), default="")
            for fact, value in self.facts:
                said = value(found) if callable(value) else value
                if said is not None:
                    document.add(fact, said, start, end, tier=self.tier, currency=currency)
            if not self.facts:
                document.take(start, end)


def states(pattern: str, *, unless: str = "", tier: int = 0, **facts: FactValue | Getter) -> FactPattern:
    """A fact pattern: ``states("rated {rating}", merchant_rating=middle("rating"))``."""
    stop = search_pattern(unless) if unless else None
    return FactPattern(text_pattern(pattern), tuple(facts.items()), stop, tier)


def middle(*kinds: str) -> Getter:
    """Gets the first figure of these kinds in the match; of a range, its middle."""

    def get(found: Found) -> FactValue | None:
        figures = found.figures(*kinds)
        return round(figures[0].middle, 6) if figures else None

    return get


def count_or_zero(found: Found) -> FactValue | None:
    """The count in the match, or zero where the match says "no" or "never" instead."""
    figures = found.figures("count", "count_range")
    return figures[0].middle if figures else 0.0


days = middle("duration", "day_word")
count = middle("count", "count_range")


def read_all(patterns: Iterable[FactPattern], document: Document) -> None:
    """Apply patterns in their order: an earlier one takes the figures that it understands."""
    for one in patterns:
        if document.may_begin(one.pattern):
            one.read(document)
