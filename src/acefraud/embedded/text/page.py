"""A page: one text with its figures replaced by markers, its clauses, and what has been read from it so far."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from acefraud.core.transaction import FactValue

from .figures import MARKERS, Figure, find_figures
from .phrases import Phrase, survey

# Typographic variants become their plain forms, one character for one, so that positions stay true.
_PLAIN_FORMS = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u00a0": " ",
        "\u202f": " ",
        "\u2009": " ",
        "\t": " ",
        "\u2010": "-",
        "\u2011": "-",
        "\u2012": "-",
        "\u2013": "-",
        "\u2014": "-",
        "\u2212": "-",
    }
    | {chr(code): " " for code in range(0xE000, 0xE100)}
)
# Both begin with a set of characters, which lets the search skip all others.
_CLAUSE_END = re.compile(
    r"[.!?;\n|, ](?:(?<=[.!?])(?=[\s\"')]|$)|(?<=[;\n|])"
    r"|(?:(?<=,) |(?<= ))(?:but|whereas|however|although|though|while)\b|(?<= )(?:--?|/) )"
)
_SEGMENT_END = re.compile(r"[,() ](?:(?<! )|(?:then|and then|before|after) )")


class Claim(NamedTuple):
    """One reading of one fact: where it stands on the page and how explicit it is (0 is the most explicit)."""

    fact: str
    value: FactValue
    start: int
    end: int
    tier: int = 0
    currency: str = ""


class Page:
    """One text in the course of being read. Positions are those of ``plain``; ``origin`` leads back to the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.cased = text.translate(_PLAIN_FORMS)
        lowered = self.cased.lower()
        if len(lowered) != len(text):  # a few letters grow when lowered, which would shift every position after them
            lowered = "".join(low if len(low := c.lower()) == 1 else c for c in self.cased)
        self.figures = find_figures(lowered)
        self.places: list[int] = []
        pieces: list[str] = []
        at = length = 0
        for figure in self.figures:
            pieces += (lowered[at : figure.start], MARKERS[figure.kind])
            length += figure.start - at
            self.places.append(length)
            length += 1
            at = figure.end
        pieces.append(lowered[at:])
        self.plain = "".join(pieces)
        self.taken = [False] * len(self.figures)
        self.claims: list[Claim] = []
        self.doubts: list[tuple[int, int]] = []
        self._survey = survey(self.plain)
        self._starts = [figure.start for figure in self.figures]
        self._ends = [match.start() for match in _CLAUSE_END.finditer(self.plain)]

    def matches(self, phrase: Phrase) -> list[re.Match[str]]:
        """Where a phrase stands on the page, from left to right and without overlap."""
        found: list[re.Match[str]] = []
        starts = self._survey.starts.get(phrase)
        if starts is None:
            return found
        free = 0
        starts.sort()
        for start in starts:
            if start >= free and (match := phrase.regex.match(self.plain, start)):
                free = match.end()
                found.append(match)
        return found

    def starts(self, phrase: Phrase) -> list[int]:
        """Where a phrase may begin, in order: every place where it does begin, and some where it does not."""
        return sorted(self._survey.starts.get(phrase, ()))

    def may_begin(self, phrase: Phrase) -> bool:
        """Whether there is a place on the page where a phrase may begin."""
        return phrase in self._survey.starts

    def may_hold(self, phrase: Phrase) -> bool:
        """Whether there is any point in searching the page for a phrase."""
        return phrase in self._survey.cued

    def origin(self, position: int) -> int:
        """The position in the text of a position on the page."""
        before = bisect_left(self.places, position) - 1
        if before < 0:
            return position
        return position - self.places[before] - 1 + self.figures[before].end

    def origins(self, start: int, end: int) -> tuple[int, int]:
        """The positions in the text of the two ends of a piece of the page."""
        first = self.origin(start)
        return first, max(first, self.origin(end))

    def figures_in(self, start: int, end: int) -> range:
        """Which figures stand between two positions."""
        return range(bisect_left(self.places, start), bisect_left(self.places, end))

    def clause(self, position: int) -> tuple[int, int]:
        """The bounds of the clause that a position is in."""
        after = bisect_right(self._ends, position - 1)
        start = self._ends[after - 1] + 1 if after else 0
        return start, self._ends[after] if after < len(self._ends) else len(self.plain)

    def segment_start(self, position: int) -> int:
        """Where the comma-separated piece begins that leads up to a position. Looks back 200 characters at most."""
        start = max(self.clause(position)[0], position - 200)
        last = start
        for match in _SEGMENT_END.finditer(self.plain, start, position):
            last = match.end()
        return last

    def segment(self, position: int) -> tuple[int, int]:
        """The bounds of the comma-separated piece that a position is in, at most 200 characters to either side."""
        start, end = self.segment_start(position), min(self.clause(position)[1], position + 200)
        after = _SEGMENT_END.search(self.plain, position + 1, end)
        return start, after.start() if after else end

    def clause_text(self, position: int) -> str:
        """The clause that a position is in, at most 200 characters to either side."""
        start, end = self.clause(position)
        return self.plain[max(start, position - 200) : min(end, position + 200)]

    def claim(self, fact: str, value: FactValue, start: int, end: int, *, tier: int = 0, currency: str = "") -> None:
        """Note a reading, and mark the figures it rests on as understood."""
        self.claims.append(Claim(fact, value, start, end, tier, currency))
        self.take(start, end)

    def take(self, start: int, end: int) -> None:
        """Mark the figures between two positions as understood."""
        for index in self.figures_in(start, end):
            self.taken[index] = True

    def free_figures(self, start: int, end: int) -> list[Figure] | None:
        """The figures between two positions, or None if one has been understood as something else already."""
        inside = self.figures_in(start, end)
        first, last = inside.start, inside.stop
        return None if True in self.taken[first:last] else self.figures[first:last]

    def claim_flag(self, fact: str, value: bool, start: int, end: int) -> None:
        """Note a flag. Its figures, if any, belong to other facts and stay free."""
        self.claims.append(Claim(fact, value, start, end))

    def position(self, origin: int) -> int:
        """The position on the page of a position in the text."""
        before = bisect_right(self._starts, origin) - 1
        if before < 0:
            return origin
        figure = self.figures[before]
        return self.places[before] + (1 + origin - figure.end if origin >= figure.end else 0)
