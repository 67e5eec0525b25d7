"""Phrases: all patterns that are looked for in a text, and the one survey of its words that tells which to try where.

A text is cut into pieces, each a word with the character after it or a lone sign. Every place at which a phrase can
match is the beginning of a piece, and what a piece means for all the phrases is worked out once per distinct piece.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache

from .cues import AFTER_PIECE, LONGEST_OPENING, SHORTEST_CUE, cues_of, openings_of
from .figures import PIECE


@dataclass(frozen=True, slots=True, eq=False)
class Phrase:
    """A compiled pattern that is known to the survey."""

    regex: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Survey:
    """Where in a text each phrase may begin, and which phrases have their cues in it at all."""

    starts: dict[Phrase, list[int]]
    cued: set[Phrase]


@dataclass(frozen=True, slots=True)
class _Known:
    """Every phrase by its openings and by the first characters of its cues."""

    by_opening: dict[str, list[Phrase]] = field(default_factory=lambda: defaultdict(list))
    by_cue: dict[str, list[tuple[str, Phrase]]] = field(default_factory=lambda: defaultdict(list))
    without_cue: set[Phrase] = field(default_factory=set)


_KNOWN = _Known()


def phrase(pattern: str, *, not_after: str = r"\w", not_before: str = "") -> Phrase:
    """A phrase that begins at a piece: not after a character of a word."""
    ahead = f"(?!{not_before})" if not_before else ""
    made = words(pattern, re.compile(rf"(?<!{not_after})(?:{pattern}){ahead}"))
    for opening in openings_of(pattern):
        _KNOWN.by_opening[opening].append(made)
    return made


def words(pattern: str, regex: re.Pattern[str] | None = None) -> Phrase:
    """A phrase that is searched for in a part of a text, which is worth doing only if the text has a cue of it."""
    made = Phrase(regex or re.compile(pattern))
    cues = cues_of(pattern)
    for cue in cues:
        _KNOWN.by_cue[cue[:SHORTEST_CUE]].append((cue, made))
    if not cues:
        _KNOWN.without_cue.add(made)
    _begun.cache_clear()
    _cued.cache_clear()
    return made


@lru_cache(maxsize=20_000)
def _begun(opening: str) -> frozenset[Phrase]:
    """The phrases that may begin with a piece and the beginning of the next."""
    ends = range(min(len(opening), LONGEST_OPENING) + 1)
    return frozenset(one for end in ends for one in _KNOWN.by_opening.get(opening[:end], ()))


@lru_cache(maxsize=20_000)
def _cued(piece: str) -> frozenset[Phrase]:
    """The phrases of which a piece holds a cue."""
    return frozenset(
        one
        for at in range(len(piece))
        for cue, one in _KNOWN.by_cue.get(piece[at : at + SHORTEST_CUE], ())
        if piece.startswith(cue, at)
    )


def survey(text: str) -> Survey:
    """Look at each distinct piece of a text once."""
    pieces = PIECE.findall(text)
    cued = _KNOWN.without_cue.union(*map(_cued, set(pieces)))
    places: dict[str, list[int]] = defaultdict(list)
    at = 0
    for piece in pieces:
        after = at + len(piece)
        places[text[at : after + AFTER_PIECE]].append(at)
        at = after
    starts: dict[Phrase, list[int]] = defaultdict(list)
    for opening, found in places.items():
        begun = _begun(opening)
        if begun:
            for one in begun & cued:
                starts[one] += found
    return Survey(starts, cued)
