"""A text that is being read: its figures replaced by markers, its clauses, and what it has been found to state."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from acefraud.core.transaction import FactValue

from .figures import mark_figures
from .patterns import TextPattern, survey

# Typographic variants become plain characters, one for one, so that positions do not change.
_SPACES = "\u00a0\u202f\u2009\t" + "".join(map(chr, range(0xE000, 0xE100)))
_QUOTES_AND_DASHES = "\u2018\u2019\u201c\u201d\u2010\u2011\u2012\u2013\u2014\u2212"
_PLAIN_FORMS = str.maketrans(_QUOTES_AND_DASHES + _SPACES, "''\"\"------" + " " * len(_SPACES))
# Both begin with a set of characters, which lets the search skip all others.
_CLAUSE_END = re.compile(
    r"[.!?;\n|, ](?:(?<=[.!?])(?=[\s\"')]|$)|(?<=[;\n|])"
    r"|(?:(?<=,) |(?<= ))(?:but|whereas|however|although|though|while)\b|(?<= )(?:--?|/) )"
)
_SEGMENT_END = re.compile(r"[,() ](?:(?<! )|(?:then|and then|before|after) )")


class Statement(NamedTuple):
    """One statement of one fact: its position in the document, and how explicit it is (0 is the most explicit)."""

    fact: str
    value: FactValue
    start: int
    end: int
    tier: int = 0
    currency: str = ""


class Document:
    """A text that is being read. Positions are those of ``plain``; `origin` converts them to positions in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.cased = text.translate(_PLAIN_FORMS)
        lowered = self.cased.lower()
        if len(lowered) != len(text):  # a few letters grow when lowered, which would shift every position after them
            lowered = "".join(low if len(low := c.lower()) == 1 else c for c in self.cased)
        pieces, self.figures, self.places = mark_figures(lowered)
        self.plain = "".join(pieces)
        self.taken = [False] * len(self.figures)
        self.statements: list[Statement] = []
        self.doubts: list[tuple[int, int]] = []
        self.survey = survey(pieces)
        self._starts = [figure.start for figure in self.figures]
        self._ends = [match.start() for match in _CLAUSE_END.finditer(self.plain)]

    def matches(self, pattern: TextPattern) -> list[re.Match[str]]:
        """The matches of a pattern, from left to right and without overlap."""
        found: list[re.Match[str]] = []
        free = 0
        for start in self.survey.starts.get(pattern, ()):
            if start >= free and (match := pattern.regex.match(self.plain, start)):
                free = match.end()
                found.append(match)
        return found

    def may_begin(self, pattern: TextPattern, start: int, end: int) -> bool:
        """Whether there is a place between two positions where a pattern may begin."""
        starts = self.survey.starts.get(pattern, ())
        return bisect_left(starts, start) < bisect_left(starts, end)

    def origin(self, position: int) -> int:
        """The position in the text of a position in the document."""
        before = bisect_left(self.places, position) - 1
        if before < 0:
            return position
        return position - self.places[before] - 1 + self.figures[before].end

    def figures_in(self, start: int, end: int) -> range:
        """The indices of the figures between two positions."""
        return range(bisect_left(self.places, start), bisect_left(self.places, end))

    def clause(self, position: int) -> tuple[int, int]:
        """The bounds of the clause that a position is in."""
        after = bisect_right(self._ends, position - 1)
        start = self._ends[after - 1] + 1 if after else 0
        return start, self._ends[after] if after < len(self._ends) else len(self.plain)

    def segment_start(self, position: int) -> int:
        """Where the segment of a position begins, at most 200 characters before it."""
        start = max(self.clause(position)[0], position - 200)
        for match in _SEGMENT_END.finditer(self.plain, start, position):
            start = match.end()
        return start

    def segment(self, position: int) -> tuple[int, int]:
        """The bounds of the part between commas that a position is in, at most 200 characters to either side."""
        start, end = self.segment_start(position), min(self.clause(position)[1], position + 200)
        after = _SEGMENT_END.search(self.plain, position + 1, end)
        return start, after.start() if after else end

    def add(self, fact: str, value: FactValue, start: int, end: int, *, tier: int = 0, currency: str = "") -> None:
        """Add a statement, and mark its figures as understood."""
        self.statements.append(Statement(fact, value, start, end, tier, currency))
        self.take(self.figures_in(start, end))

    def take(self, inside: range) -> None:
        """Mark figures as understood, by their indices."""
        for index in inside:
            self.taken[index] = True

    def add_flag(self, fact: str, value: bool, start: int, end: int) -> None:
        """Add a statement of a flag. Its figures, if any, belong to other facts and stay free."""
        self.statements.append(Statement(fact, value, start, end))

    def position(self, origin: int) -> int:
        """The position in the document of a position in the text."""
        before = bisect_right(self._starts, origin) - 1
        if before < 0:
            return origin
        figure = self.figures[before]
        return self.places[before] + (1 + origin - figure.end if origin >= figure.end else 0)
