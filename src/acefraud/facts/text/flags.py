"""Flags: phrases that say that something holds, with the negations and doubts around them.

The phrases of each flag are in ``vocabulary/flags.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from acefraud.core.fact_names import NAMED_FACTS
from acefraud.core.package_data import read_package_toml
from acefraud.errors import ConfigurationError

from .document import Document
from .figures import MARKERS
from .patterns import PatternText, TextPattern, fill, search_pattern, text_pattern

# Between a negation and what it denies are a few words at most, and none that opens a new thought.
_WORD = (
    r"(?:(?!but\b|however\b|only\b|then\b|yet\b|because\b|and\b|so\b|with\b|via\b|although\b|answer\b|from\b"
    r"|after\b|despite\b)[a-z'/-]+)"
)
_NO = (
    r"(?:no|not|never|without|neither|nor|non|isn't|wasn't|aren't|weren't|didn't|doesn't|hasn't|haven't|zero"
    r"|cannot|can't|free of|absence of|lack of|lacks|ruled out|rules out|nothing to do with)"
)
_BEFORE = re.compile(rf"(?<![\w]){_NO}[ :-](?:{_WORD} ){{0,4}}$")
_NO_SIGN = re.compile(r"no|ne|n't|without|zero|can|free|abs|lack|rule")  # a part of every negation
# "no VPN, proxy or emulator": a list that ends in "or" carries the negation over its commas
_BEFORE_IN_LIST = re.compile(
    rf"(?<!\w)(?:no|without|neither)(?: {_WORD}){{1,4}}(?:, (?:{_WORD} ?){{1,3}}){{0,4}},?"
    rf" (?:(?:or|nor) )?(?:{_WORD} )?$"
)
_OR_AHEAD = re.compile(
    r"(?:(?! and | but )[a-z' -]){0,40}(?:, (?!no |not |without |never )[a-z' -]{1,30}){0,3},? (?:or|nor) "
)
_OR_LAST = re.compile(r"\b(?:or|nor) [^,]*$")
_NOT_AFTER = re.compile(
    r"(?: (?!and\b|or\b|but\b|no\b)\w+)?[\"']?(?: ?[:=] ?\"?(?:no|n|false|f|none|off|absent|negative|nil|0)\b"
    r"|(?: is| was| were| are| has| have| had| usage| use| been| check| checks| flag| status)* ?(?:not (?!only)"
    r"|negative\b|absent\b|none\b|ruled out|(?:switched |turned )?off\b|disabled\b|inactive\b"
    r"|(?:isn't|wasn't|aren't|weren't)\b|- ?(?:no|none|negative)\b|unlikely\b))"
)
_YES_AFTER = re.compile(
    r"(?: \w+)?[\"']?(?: ?[:=] ?\"?(?:yes|y|true|t|on|detected|1)\b| (?:is |was |were |has been |use "
    r"|usage )?(?:detected|active|in use|on\b|used|present|found|seen|confirmed))"
)
_DOUBT_BEFORE = search_pattern(
    r"\b(?:whether|unclear|unknown if|not sure|possibl[ey]|maybe|perhaps|might (?:be|have)|may (?:be|have)|could be"
    r"|cannot rule out|can't rule out"
    r"|not ruled out|unconfirmed|check(?:ing)? (?:for|if)|ask(?:ed)? (?:about|if)|denie[sd]|denying|claims?"
    r"|potential(?:ly)?|suspected)\b"
    r"(?: [a-z'-]+){0,5} ?$"
)
_DOUBT_AFTER = re.compile(
    r"(?: \w+)? ?(?:[:=] ?)?(?:(?:is |was )?(?:unknown|unclear|unconfirmed|suspected|possible"
    r"|not ruled out|cannot be ruled out|n/a|not known)\b|\?)"
)
_DISTANCE = MARKERS["distance"]
_NEAR_KM = 100.0
_INNER_NOT = re.compile(r"\bnot\b|n't\b|\bnever\b|\bun(?=changed|verified)")


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


_TABLES = read_package_toml("acefraud.facts.text", "vocabulary/flags.toml", _FlagTables)
FLAGS: tuple[Flag, ...] = tuple(_TABLES.flag(name) for name in _TABLES.flags)


def stance(document: Document, start: int, end: int) -> bool | None:
    """Whether the words around a phrase affirm it (True), deny it (False) or leave it in doubt (None)."""
    clause_start, clause_end = document.clause(start)
    before = document.plain[max(clause_start, start - 80) : start]
    after = document.plain[end : min(clause_end + 1, end + 40)]
    if (document.may_hold(_DOUBT_BEFORE) and _DOUBT_BEFORE.regex.search(before)) or _DOUBT_AFTER.match(after):
        return None
    if _NOT_AFTER.match(after):
        return False
    if not _NO_SIGN.search(before):
        return True
    if _BEFORE.search(before):
        return False
    if _BEFORE_IN_LIST.search(before) and not _YES_AFTER.match(after):
        return not (_OR_LAST.search(before) or _OR_AHEAD.match(document.plain, end, clause_end))
    return True


def _is_near(document: Document, place: int) -> bool:
    """Whether a distance is too short to mean another place."""
    inside = document.figures_in(place, place + 1)
    return document.figures[inside[0]].low < _NEAR_KM


def _readings(flag: Flag, document: Document) -> Iterator[tuple[bool | None, int, int]]:
    unless = flag.unless.regex if flag.unless and document.may_hold(flag.unless) else None
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
        if match.lastgroup == "also" and _INNER_NOT.search(match[0]):
            said = not said
        yield said == affirmed, start, end


def read_flags(document: Document) -> None:
    """Every flag with phrases of its own. A doubtful mention counts as not understood."""
    given = [one for one in document.statements if isinstance(one.value, bool)]
    for flag in FLAGS:
        if not document.may_begin(flag.pattern):
            continue
        for said, start, end in _readings(flag, document):
            # "vpn=0" has been read as a key and its value, which the bare word must not contradict
            if any(one.fact == flag.name and one.start < end and start < one.end for one in given):
                continue
            if said is None:
                document.doubts.append((start, end))
            else:
                document.add_flag(flag.name, said, start, end)
