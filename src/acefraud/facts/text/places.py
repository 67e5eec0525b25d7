"""Places: where this happens, where the customer usually is, and whether the place itself carries risk.

The names of countries, states and risky places are in ``vocabulary/places.toml``.
"""

from __future__ import annotations

import re

from pydantic import BaseModel

from .document import Document
from .fact_patterns import read_theme
from .flags import stance
from .patterns import search_pattern, text_pattern
from .vocabulary import PatternText, fill, read_vocabulary


class _PlaceNames(BaseModel, extra="forbid"):
    """The content of ``vocabulary/places.toml``, which explains the keys."""

    sanctioned: tuple[str, ...]
    high_risk: tuple[str, ...]
    countries: frozenset[str]
    ambiguous_states: frozenset[str]
    not_places: frozenset[str]
    states: dict[str, str]
    patterns: dict[str, PatternText]


_NAMES = read_vocabulary("places", _PlaceNames)
_REGIONS = _NAMES.countries | (frozenset(_NAMES.states.values()) - _NAMES.ambiguous_states)

_REGION = "|".join(
    [
        *(name.upper() for name in _NAMES.states),
        *(name.title() if len(name) > 3 else name.upper() for name in sorted(_NAMES.countries)),
    ]
)
_PATTERNS = {key: fill(pattern, {"region": _REGION, **_NAMES.patterns}) for key, pattern in _NAMES.patterns.items()}
_PLACE, _USUAL_CUE = re.compile(_PATTERNS["place"]), re.compile(_PATTERNS["usual"])
_CUE, _NOW_CUE = text_pattern(_PATTERNS["cue"]), search_pattern(_PATTERNS["now"])
_RISKY = tuple(
    (fact, text_pattern("|".join(names), not_before=r"\w"))
    for fact, names in (("sanctioned", _NAMES.sanctioned), ("high_risk_country", _NAMES.high_risk))
)

Place = tuple[str, str]
"""A town (or "") and a region (or ""), in lower case."""


def _place(town: str, region: str | None) -> Place | None:
    """A name as a place, or None if it is a month, a currency or the like."""
    town = town.lower()
    if town.split()[0] in _NAMES.not_places:
        return None
    wider = _NAMES.states.get(region.lower(), region.lower()) if region else ""
    return ("", town) if town in _REGIONS and not wider else (town, wider)


def _same(here: Place, there: Place) -> bool | None:
    """Whether two places are the same, or None if they cannot be compared."""
    if here[0] and there[0]:
        if here[0] != there[0]:
            return False
        return None if here[1] and there[1] and here[1] != there[1] else True
    if here[1] and there[1]:
        # a state and a country cannot be compared
        if (here[1] in _NAMES.countries) != (there[1] in _NAMES.countries):
            return None
        return here[1] == there[1]
    return None


def _is_usual(before: str) -> bool:
    """Whether the words before a place speak of a habit or the past, without a return to this transaction."""
    cues = list(_USUAL_CUE.finditer(before))
    return bool(cues) and _NOW_CUE.regex.search(before, cues[-1].end()) is None


def _compare(document: Document) -> None:
    """Compare the place of this transaction with the usual ones."""
    here: set[Place] = set()
    usual: set[Place] = set()
    spans: list[tuple[int, int]] = []
    free = 0
    for first in document.survey.starts.get(_CUE, ()):
        match = _PLACE.match(document.cased, document.origin(first))
        if match is None or match.start() < free:
            continue
        free = match.end()
        place = _place(match["town"] or match["origin"], match["region"] or match["its_region"])
        if place is None:
            continue
        start, end = document.position(match.start()), document.position(match.end())
        cue = (match["cue"] or "from").lower()
        before = document.plain[max(document.clause(start)[0], start - 120) : start] + cue
        if before.endswith(f"not {cue}"):
            continue
        (usual if _is_usual(before) else here).add(place)
        spans.append((start, end))
    if len(here) != 1 or not usual:
        return
    answers = {_same(next(iter(here)), place) for place in usual}
    if True in answers:
        document.add("location_change", False, *spans[-1], tier=1)
    elif answers == {False}:
        document.add("location_change", True, *spans[-1], tier=1)


def read_places(document: Document) -> None:
    """Distance, risky places, and whether the place has changed."""
    read_theme("places", document)
    for fact, named in _RISKY:
        for match in document.matches(named):
            start, end = match.span()
            usual = _USUAL_CUE.search(document.plain, document.segment_start(start), start)
            if not usual and stance(document, start, end):
                document.add_flag(fact, True, start, end)
    _compare(document)
