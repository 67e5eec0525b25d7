"""Flags: phrases that say that something holds, with the negations and doubts around them.

The phrases of each flag are in ``vocabulary/flags.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from acefraud.core.fact_names import NAMED_FACTS
from acefraud.errors import ConfigurationError

from .document import Document
from .figures import MARKERS
from .patterns import TextPattern, search_pattern, text_pattern
from .vocabulary import PatternText, fill, read_vocabulary

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


def _is_near(document: Document, place: int) -> bool:
    """Whether a distance is too short to mean another place."""
    inside = document.figures_in(place, place + 1)
    return document.figures[inside[0]].low < _NEAR_KM


def _readings(flag: Flag, document: Document) -> Iterator[tuple[bool | None, int, int]]:
    unless = flag.unless.regex if flag.unless and document.survey.may_hold(flag.unless) else None
    for match in document.matches(flag.pattern):
        start, end = match.span()
        if unless and unless.search(document.plain, *document.segment(start)):
            continue
        if document.plain[start] == _DISTANCE and _is_near(document, start):
            continue
        affirmed = stance(document, start, end)
        if affirmed is None:
            yield None, start, end
            continue
        said = match.lastgroup != "fails"
        if match.lastgroup == "also" and _STANCE["inner_not"].search(match[0]):
            said = not said
        yield said == affirmed, start, end


def read_flags(document: Document) -> None:
    """Every flag with phrases of its own. A doubtful mention counts as not understood."""
    given = [one for one in document.statements if isinstance(one.value, bool)]
    for flag in FLAGS:
        if flag.pattern not in document.survey.starts:
            continue
        for said, start, end in _readings(flag, document):
            # "vpn=0" has been read as a key and its value, which the bare word must not contradict
            if any(one.fact == flag.name and one.start < end and start < one.end for one in given):
                continue
            if said is None:
                document.doubts.append((start, end))
            else:
                document.add_flag(flag.name, said, start, end)
