"""Text patterns: regular expressions over a document, and the index that says which of them to try where.

There are hundreds of patterns, and a text matches few of them. A pattern is tried only at words that it can begin with,
and only if its cues, words without which it cannot match, follow soon enough. `pattern_needs` derives both from the
pattern when the first text is read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, reduce
from operator import or_

from .figures import FIGURE_WORDS, MARKERS
from .pattern_needs import LONGEST_OPENING, SHORTEST_CUE, Need, needs_of, openings_of, parse, phrases
from .vocabulary import fill

PLACEHOLDERS = MARKERS | FIGURE_WORDS.placeholders
"""What a pattern can say in place of a figure, and wording around figures that many patterns share."""


def expand(pattern: str) -> str:
    """A pattern with its placeholders filled in."""
    return fill(pattern, PLACEHOLDERS)


@dataclass(eq=False)
class TextPattern:
    """A regular expression that is compiled when it is first tried."""

    pattern: str
    not_after: str = ""
    """What must not be right before a match. A pattern without it is only searched for, at any place."""
    not_before: str = ""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled pattern."""
        behind = f"(?<!{self.not_after})" if self.not_after else ""
        ahead = f"(?!{self.not_before})" if self.not_before else ""
        return re.compile(f"{behind}(?:{self.pattern}){ahead}")


_PATTERNS: list[TextPattern] = []


def text_pattern(pattern: str, *, not_after: str = r"\w", not_before: str = "") -> TextPattern:
    """A pattern whose matches begin at a word or a sign. Placeholders are filled in."""
    return _registered(TextPattern(expand(pattern), not_after, not_before))


def search_pattern(pattern: str) -> TextPattern:
    """A pattern to search for in a part of a text. Placeholders are filled in."""
    return _registered(TextPattern(expand(pattern)))


def _registered(pattern: TextPattern) -> TextPattern:
    _PATTERNS.append(pattern)
    _index.cache_clear()
    _look_up.cache_clear()
    _owners.cache_clear()
    return pattern


# --- which patterns to try where ---------------------------------------------------------------------------------

_SLOTS = 2
"""How many needs of an alternative are looked at."""
_NEAR = 8
"""A cue with fewer signs before it is looked for in this many pieces, counted from where a match may begin."""


class _Index:
    """Every alternative of every pattern, by how it can begin and by the first characters of its cues.

    Each alternative is a bit of an integer. An integer of needs has a part for each of the two needs of an alternative.
    """

    def __init__(self, patterns: Iterable[TextPattern]) -> None:
        alternatives: dict[tuple[TextPattern, tuple[Need, ...]], set[str]] = defaultdict(set)
        for pattern in patterns:
            for way in phrases(parse(pattern.pattern)):
                openings = {text for text, _ in openings_of([way])} if pattern.not_after else set()
                needs = [need for need in needs_of(way) if not need.is_met_by(openings)]
                alternatives[pattern, tuple(needs[:_SLOTS])] |= openings
        self.size = len(alternatives)
        self.owners = [pattern for pattern, _ in alternatives]
        self.bits: dict[TextPattern, int] = defaultdict(int)
        self.by_opening: dict[str, int] = defaultdict(int)
        self.near_cues: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.far_cues: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.met = 0
        """The needs that alternatives with fewer of them do not have."""
        for place, ((pattern, found), openings) in enumerate(alternatives.items()):
            self.bits[pattern] |= 1 << place
            for opening in openings:
                self.by_opening[opening] |= 1 << place
            for slot in range(_SLOTS):
                bit = 1 << place + slot * self.size
                if slot < len(found):
                    near = pattern.not_after and found[slot].signs < _NEAR
                    cues = self.near_cues if near else self.far_cues
                    for cue in found[slot].cues:
                        cues[cue[:SHORTEST_CUE]][cue] |= bit
                else:
                    self.met |= bit

    def all_met(self, needs: int) -> int:
        """The alternatives whose needs are all among these."""
        return needs & needs >> self.size


@cache
def _index() -> _Index:
    return _Index(_PATTERNS)


@lru_cache(maxsize=20_000)
def _look_up(piece: str) -> tuple[int, int, int]:
    """The needs of the alternatives that may begin at a piece of a text, and those met by its near and far cues."""
    index = _index()
    begun = near = far = 0
    for end in range(min(len(piece), LONGEST_OPENING) + 1):
        begun |= index.by_opening.get(piece[:end], 0)
    for at in range(len(piece)):
        start = piece[at : at + SHORTEST_CUE]
        near |= _held(index.near_cues.get(start, {}), piece, at)
        far |= _held(index.far_cues.get(start, {}), piece, at)
    return begun | begun << index.size, near, far


def _held(cues: dict[str, int], piece: str, at: int) -> int:
    held = 0
    for cue, bits in cues.items():
        if piece.startswith(cue, at):
            held |= bits
    return held


@lru_cache(maxsize=20_000)
def _owners(alternatives: int) -> tuple[TextPattern, ...]:
    """The patterns that these alternatives belong to."""
    owners, found = _index().owners, dict[TextPattern, None]()
    while alternatives:
        last = alternatives.bit_length() - 1
        found[owners[last]] = None
        alternatives ^= 1 << last
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Survey:
    """Where in a text each pattern may begin, in order, and which alternatives have their cues somewhere in it."""

    starts: dict[TextPattern, list[int]]
    held: int

    def may_hold(self, pattern: TextPattern) -> bool:
        """Whether the text has the cues of a pattern. If not, searching for it is pointless."""
        return self.held & _index().bits[pattern] != 0


def survey(pieces: list[str]) -> Survey:
    """Look up every piece of a text, and keep the places where all that a pattern needs is at hand."""
    index = _index()
    found = [_look_up(piece) for piece in pieces]
    far = reduce(or_, [cues for _, _, cues in found], index.met)
    near = [cues for _, cues, _ in found]
    for width in (1, 2, 4):  # up to the _NEAR pieces from each on
        near = list(map(or_, near, near[width:] + [0] * width))
    starts: dict[TextPattern, list[int]] = defaultdict(list)
    at = 0
    for piece, (begun, _, _), cues in zip(pieces, found, near, strict=True):
        if begun and (alternatives := index.all_met(begun & (cues | far))):
            for pattern in _owners(alternatives):
                starts[pattern].append(at)
        at += len(piece)
    return Survey(starts, index.all_met(far))
