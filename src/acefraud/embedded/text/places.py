"""Places: where this happens, where the customer usually is, and whether the place itself carries risk."""

from __future__ import annotations

import re

from .flags import stance
from .page import Page
from .phrases import phrase
from .place_names import COUNTRIES, HIGH_RISK, NOT_PLACES, REGIONS, SANCTIONED, STATES
from .rules import Rule, expand, middle, read_all, rule

_NAME = r"[A-Z][A-Za-zÀ-ÿ'’-]{1,30}(?: [A-Z][A-Za-zÀ-ÿ'’-]{1,30}){0,2}"
_REGION = "|".join(
    [
        *(name.upper() for name in STATES),
        *(name.title() if len(name) > 3 else name.upper() for name in sorted(COUNTRIES)),
    ]
)
_PLACE = re.compile(
    rf"\b(?:(?P<cue>[Ii]n|IP from|IP in|[Ll]ives in|[Bb]ased in|[Rr]esident of|resolves to|geolocates to|visits to"
    rf"|(?:home|area|location|place|city|town) is|home:|usual:|(?:comes?|came|coming) from|(?:pays|shops|spends)"
    rf" (?:around|near)) "
    rf"(?P<town>{_NAME})(?:, ?(?P<region>[A-Z]{{2}}\b|{_NAME}))?"
    # a person or a firm can be "from" too, so a bare "from" wants a region after the town
    rf"|from (?P<origin>{_NAME}), ?(?P<its_region>(?:{_REGION})\b))"
)
_CUE = phrase(
    r"in |ip |lives |based |resident |resolves |geolocates |visits |home ?[i:]|usual:|(?:area|location|place|city"
    r"|town) is "
    r"|(?:comes?|came|coming) from |from |(?:pays|shops|spends) "
)
"""The words that a cue of a place begins with, in lower case."""
_USUAL_CUE = re.compile(
    r"\b(?:previous|prior|earlier|past|last|usual(?:ly)?|normal(?:ly)?|typical(?:ly)?|mostly|always|home|lives|based"
    r"|resident|history|regular"
    r"|recent|resides|visits to)\b"
)
_NOW_CUE = re.compile(
    expand(
        r"\bthis (?:{count}|(?:one|time|payment|purchase|transaction|order|charge)\b)|\b(?:now|currently)\b|{day_word}"
    )
)
_RULES: tuple[Rule, ...] = (
    rule(r"(?:distance(?: from home)?(?: is|:|=){0,2} ?)?{about}{distance}", distance_km=middle("distance")),
    rule(
        r"{number} (?:[a-z]+ )?(?:trips?|visits|flights) to{gap} (?:in|over|during) the (?:last|past) {duration}",
        travel=True,
    ),
    rule(r"{number} (?:[a-z]+ )?(?:trips?|visits|flights) to ", travel=True),
)
_RISKY = tuple(
    (fact, phrase("|".join(names), not_before=r"\w"))
    for fact, names in (("sanctioned", SANCTIONED), ("high_risk_country", HIGH_RISK))
)

Place = tuple[str, str]
"""A town (or "") and a region (or ""), in lower case."""


def _place(town: str, region: str | None) -> Place | None:
    """A name as a place, or None where it is a month, a currency or the like."""
    town = town.lower()
    if town.split()[0] in NOT_PLACES:
        return None
    wider = STATES.get(region.lower(), region.lower()) if region else ""
    return ("", town) if town in REGIONS and not wider else (town, wider)


def _same(here: Place, there: Place) -> bool | None:
    """Whether two places are the same, or None where they cannot be compared."""
    if here[0] and there[0]:
        if here[0] != there[0]:
            return False
        return None if here[1] and there[1] and here[1] != there[1] else True
    if here[1] and there[1]:
        # a state of the union against a country says too little
        if (here[1] in COUNTRIES) != (there[1] in COUNTRIES):
            return None
        return here[1] == there[1]
    return None


def _is_usual(before: str) -> bool:
    """Whether the words before a place speak of a habit or the past, and not of this transaction again since."""
    cues = list(_USUAL_CUE.finditer(before))
    return bool(cues) and _NOW_CUE.search(before, cues[-1].end()) is None


def _compare(page: Page) -> None:
    """Set the place of this transaction against the usual ones."""
    here: set[Place] = set()
    usual: set[Place] = set()
    spans: list[tuple[int, int]] = []
    free = 0
    for first in page.starts(_CUE):
        match = _PLACE.match(page.cased, page.origin(first))
        if match is None or match.start() < free:
            continue
        free = match.end()
        place = _place(match["town"] or match["origin"], match["region"] or match["its_region"])
        if place is None:
            continue
        start, end = page.position(match.start()), page.position(match.end())
        cue = (match["cue"] or "from").lower()
        before = page.plain[max(page.clause(start)[0], start - 120) : start] + cue
        if before.endswith(f"not {cue}"):
            continue
        (usual if _is_usual(before) else here).add(place)
        spans.append((start, end))
    if len(here) != 1 or not usual:
        return
    answers = {_same(next(iter(here)), place) for place in usual}
    if True in answers:
        page.claim("location_change", False, *spans[-1], tier=1)
    elif answers == {False}:
        page.claim("location_change", True, *spans[-1], tier=1)


def read_places(page: Page) -> None:
    """Distance, risky places, and whether the place has changed."""
    read_all(_RULES, page)
    for fact, named in _RISKY:
        for match in page.matches(named):
            start, end = match.span()
            usual = _USUAL_CUE.search(page.plain, page.segment_start(start), start)
            if not usual and stance(page, start, end):
                page.claim_flag(fact, True, start, end)
    _compare(page)
