"""Flags, with the negations and doubts around them; places; and what the merchant sells, the channel and the like.

The words are in ``vocabulary/flags.toml``, ``places.toml`` and ``categories.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from acefraud.core.fact_names import NAMED_FACTS
from acefraud.errors import ConfigurationError

from .document import Document
from .figures import MARKERS, PatternText, fill, read_vocabulary
from .patterns import TextPattern, search_pattern, text_pattern
from .statements import read_theme

_WORD = re.compile(r"\w")
_DISTANCE = MARKERS["distance"]
_NEAR_KM = 100.0


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag and the patterns by which it is read."""

    name: str
    pattern: TextPattern
    unless: TextPattern | None


class _FlagPhrases(BaseModel, extra="forbid"):
    holds: tuple[PatternText, ...]
    fails: tuple[PatternText, ...] = ()
    unless: PatternText = ""


class _FlagTables(BaseModel, extra="forbid"):
    """The content of ``vocabulary/flags.toml``, which explains the keys."""

    parts: dict[str, PatternText]
    stance: dict[str, PatternText]
    flags: dict[str, _FlagPhrases]

    def flag(self, name: str) -> Flag:
        """A flag by its name."""
        said, known = self.flags[name], NAMED_FACTS.get(name)
        if known is None or known.kind != "flag":
            raise ConfigurationError(f"vocabulary/flags.toml: '{name}' is not a flag of core/fact_names.toml")
        said_false = re.escape(known.false).replace("\\ ", " ")
        said_true = re.escape(re.sub(r"^(?:an?|in a) ", "", known.true)).replace("\\ ", " ")
        # "no ..." and "not ..." need no pattern: they negate the phrase for true
        fails = [*said.fails] if known.false.startswith(("no ", "not ")) else [said_false, *said.fails]
        # "fails" is tried first where both could match
        groups = {"fails": fails, "holds": [*said.holds, said_true], "also": known.also}
        pattern = "|".join(f"(?P<{group}>{'|'.join(phrases)})" for group, phrases in groups.items() if phrases)
        unless = search_pattern(fill(said.unless, self.parts)) if said.unless else None
        return Flag(name, text_pattern(fill(pattern, self.parts), not_after=r"[\w-]", not_before=r"\w"), unless)


_TABLES = read_vocabulary("flags", _FlagTables)
_STANCE = {name: re.compile(fill(pattern, _TABLES.parts)) for name, pattern in _TABLES.stance.items()}
_NEGATION = text_pattern(fill(_TABLES.stance["negated"], _TABLES.parts))
_DOUBT_BEFORE = search_pattern(_TABLES.stance["doubt_before"])
FLAGS: tuple[Flag, ...] = tuple(_TABLES.flag(name) for name in _TABLES.flags)


def stance(document: Document, start: int, end: int) -> bool | None:
    """Whether the words around a phrase affirm it (True), deny it (False) or leave it in doubt (None)."""
    clause_start, clause_end = document.clause(start)
    first = max(clause_start, start - 80)
    before = document.plain[first:start]
    after = document.plain[end : min(clause_end + 1, end + 40)]
    doubted_before = document.survey.may_hold(_DOUBT_BEFORE) and _DOUBT_BEFORE.regex.search(before)
    if doubted_before or _STANCE["doubt_after"].match(after):
        return None
    if _STANCE["not_after"].match(after):
        return False
    cut_within_word = _WORD.match(document.plain, first - 1) if first else None  # its rest may look like a negation
    if not cut_within_word and not document.may_begin(_NEGATION, first, start):
        return True
    if _STANCE["no_before"].search(before):
        return False
    if _STANCE["no_before_in_list"].search(before) and not _STANCE["yes_after"].match(after):
        return not (_STANCE["or_last"].search(before) or _STANCE["or_ahead"].match(document.plain, end, clause_end))
    return True


def _readings(flag: Flag, document: Document) -> Iterator[tuple[bool | None, int, int]]:
    unless = flag.unless.regex if flag.unless and document.survey.may_hold(flag.unless) else None
    for match in document.matches(flag.pattern):
        start, end = match.span()
        if unless and unless.search(document.plain, *document.segment(start)):
            continue
        # a short distance does not mean another place
        if document.plain[start] == _DISTANCE and document.figures[document.figures_in(start, end)[0]].low < _NEAR_KM:
            continue
        affirmed = stance(document, start, end)
        inner_not = match.lastgroup == "also" and _STANCE["inner_not"].search(match[0]) is not None
        said = (match.lastgroup != "fails") != inner_not
        yield None if affirmed is None else said == affirmed, start, end


def read_flags(document: Document) -> None:
    """Every flag with phrases of its own. A doubtful mention counts as not understood."""
    given = [statement for statement in document.statements if isinstance(statement.value, bool)]
    for flag in FLAGS:
        if flag.pattern not in document.survey.starts:
            continue
        for said, start, end in _readings(flag, document):
            # "vpn=0" has been read as a key and its value, which the bare word must not contradict
            if any(other.fact == flag.name and other.start < end and start < other.end for other in given):
                continue
            if said is None:
                document.doubts.append((start, end))
            else:
                document.add_flag(flag.name, said, start, end)


# --- places: where this happens, where the customer usually is, and whether the place itself carries risk ---


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

_COUNTRIES = (name.title() if len(name) > 3 else name.upper() for name in sorted(_NAMES.countries))
_REGION = "|".join([*(name.upper() for name in _NAMES.states), *_COUNTRIES])
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
    # a state and a country cannot be compared
    if here[1] and there[1] and (here[1] in _NAMES.countries) == (there[1] in _NAMES.countries):
        return here[1] == there[1]
    return None


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
        # a habit or the past, without a return to this transaction
        cues = list(_USUAL_CUE.finditer(before))
        is_usual = bool(cues) and _NOW_CUE.regex.search(before, cues[-1].end()) is None
        (usual if is_usual else here).add(place)
        spans.append((start, end))
    if len(here) != 1 or not usual:
        return
    answers = {_same(next(iter(here)), at) for at in usual}
    if True in answers or answers == {False}:
        document.add("location_change", True not in answers, *spans[-1], tier=1)


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


# --- what the merchant sells, the channel and the payment method ---

_CATEGORY_TABLES = read_vocabulary("categories", dict[str, dict[str, PatternText]])
_CATEGORIES: dict[str, tuple[TextPattern, list[str]]] = {
    fact: (
        text_pattern(
            "|".join(f"(?P<k{index}>{pattern})" for index, pattern in enumerate(table.values())),
            not_after=r"[\w-]",
            not_before=r"\w",
        ),
        list(table),
    )
    for fact, table in _CATEGORY_TABLES.items()
}
# A habit or an earlier event says nothing about this transaction.
_HABIT = text_pattern(
    r"\b(?:usual(?:ly)?|typical(?:ly)?|normal(?:ly)?|mostly|previous(?:ly)?|prior|earlier|past"
    r"|history|used to|regularly|never|online banking)\b"
)
_OWN_VERB = re.compile(r"\b(?:is|was|pays|paid|payment)\b")
_MERCHANT_CUE = re.compile(
    r"(?:\b(?:from|at|with|via|merchant|mcc|store|shop|category)(?: is|:|=)? ?[\"']?"
    r"|[\"'])[^\"'.,;\n]{0,40}$"
    r"|[,(] ?an? (?:[a-z]+ ){0,2}(?:of )?$"
)
_MERCHANT_KIND = re.compile(
    r" (?:seller|store|shop|retailer|merchant|boutique|vendor|dealer|platform|chain|agency|provider)\b"
)


def _is_habit(document: Document, start: int, end: int) -> bool:
    """Whether the words around a phrase speak of a habit or the past, as far as the next "and" on either side."""
    first, last = document.segment(start)
    following = document.plain.find(" and ", end, last)
    last = following if following >= 0 else last
    before = document.plain.rfind(" and ", first, start)
    # "... and a card is being used" stands on its own, "... groceries and fuel" does not
    if before >= 0 and _OWN_VERB.search(document.plain, before, last):
        first = before
    return document.may_begin(_HABIT, first, last) and _HABIT.regex.search(document.plain, first, last) is not None


def read_categories(document: Document) -> None:
    """What is sold, the channel and the payment method, each from words about this transaction only."""
    for fact, (pattern, values) in _CATEGORIES.items():
        for match in document.matches(pattern):
            start, end = match.span()
            if _is_habit(document, start, end) or not stance(document, start, end):
                continue
            index = int((match.lastgroup or "k0")[1:])
            document.add(fact, values[index], start, end, tier=_tier(document, fact, index, match.span()))


def _tier(document: Document, fact: str, index: int, span: tuple[int, int]) -> int:
    """How explicit a mention is: a merchant's name more than other goods, the narrower word more than the wider."""
    start, end = span
    if fact == "merchant_category":
        before = document.plain[max(0, start - 60) : start]
        return 0 if _MERCHANT_KIND.match(document.plain, end) or _MERCHANT_CUE.search(before) else 1
    if fact == "channel":  # a transfer or a withdrawal may also be called "online"
        return 1 if index == len(_CATEGORY_TABLES[fact]) - 1 else 0
    return 0 if index == 0 else 1
