"""Flags: phrases that say that something holds, with the negations and doubts that people put around them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from acefraud.core.lexicon import LEXICON

from .figures import MARKERS
from .flag_words import FlagWords
from .flag_words_conduct import CONDUCT_FLAGS
from .flag_words_identity import IDENTITY_FLAGS
from .page import Page
from .phrases import Phrase, phrase, words
from .rules import expand

# Between a negation and what it denies stand a few words at most, and none that opens a new thought.
_WORD = (
    r"(?:(?!but\b|however\b|only\b|then\b|yet\b|because\b|and\b|so\b|with\b|via\b|although\b|answer\b|from\b"
    r"|after\b|despite\b)[a-z'/-]+)"
)
_NO = (
    r"(?:no|not|never|without|neither|nor|non|isn't|wasn't|aren't|weren't|didn't|doesn't|hasn't|haven't|zero"
    r"|cannot|can't|free of|absence of|lack of|lacks|ruled out|rules out|nothing to do with)"
)
_BEFORE = re.compile(rf"(?<![\w]){_NO}[ :-](?:{_WORD} ){{0,4}}$")
_NO_SIGN = re.compile(r"no|ne|n't|without|zero|can|free|abs|lack|rule")  # a part of every word of denial
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
_DOUBT_BEFORE = words(
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
    """One flag, compiled."""

    name: str
    phrase: Phrase
    unless: Phrase | None


def _compile(said: FlagWords) -> Flag:
    known = LEXICON[said.name]
    said_false = re.escape(known.false).replace("\\ ", " ")
    said_true = re.escape(re.sub(r"^(?:an?|in a) ", "", known.true)).replace("\\ ", " ")
    # the lexicon's negative phrase is its positive one with "no" before it in most cases: negation sees to those
    fails = [*said.fails] if known.false.startswith(("no ", "not ")) else [said_false, *said.fails]
    parts = (
        rf"(?P<fails>{'|'.join(map(expand, fails))})|" if fails else "",
        rf"(?P<holds>{'|'.join(map(expand, (*said.holds, said_true)))})",
        rf"|(?P<house>{'|'.join(known.also)})" if known.also else "",
    )
    pattern = "".join(parts)
    stop = words(said.unless) if said.unless else None
    return Flag(said.name, phrase(pattern, not_after=r"[\w-]", not_before=r"\w"), stop)


_COMPILED: tuple[Flag, ...] = tuple(_compile(said) for said in (*IDENTITY_FLAGS, *CONDUCT_FLAGS))


def stance(page: Page, start: int, end: int) -> bool | None:
    """Whether the words around a phrase affirm it (True), deny it (False) or leave it in doubt (None)."""
    clause_start, clause_end = page.clause(start)
    before = page.plain[max(clause_start, start - 80) : start]
    after = page.plain[end : min(clause_end + 1, end + 40)]
    if (page.may_hold(_DOUBT_BEFORE) and _DOUBT_BEFORE.regex.search(before)) or _DOUBT_AFTER.match(after):
        return None
    if _NOT_AFTER.match(after):
        return False
    if not _NO_SIGN.search(before):
        return True
    if _BEFORE.search(before):
        return False
    if _BEFORE_IN_LIST.search(before) and not _YES_AFTER.match(after):
        return not (_OR_LAST.search(before) or _OR_AHEAD.match(page.plain, end, clause_end))
    return True


def _is_near(page: Page, place: int) -> bool:
    """Whether a distance is too short to say anything of another place."""
    inside = page.figures_in(place, place + 1)
    return page.figures[inside[0]].low < _NEAR_KM


def _readings(flag: Flag, page: Page) -> Iterator[tuple[bool | None, int, int]]:
    unless = flag.unless.regex if flag.unless and page.may_hold(flag.unless) else None
    for match in page.matches(flag.phrase):
        start, end = match.span()
        if unless and unless.search(page.plain, *page.segment(start)):
            continue
        if page.plain[start] == _DISTANCE and _is_near(page, start):
            continue
        affirmed = stance(page, start, end)
        if affirmed is None:
            yield None, start, end
            continue
        said = match.lastgroup != "fails"
        if match.lastgroup == "house" and _INNER_NOT.search(match[0]):
            said = not said
        yield said == affirmed, start, end


def read_flags(page: Page) -> None:
    """Every flag of the lexicon that has words of its own. A doubtful mention is noted as unread."""
    given = [(claim.fact, claim.start, claim.end) for claim in page.claims if isinstance(claim.value, bool)]
    for flag in _COMPILED:
        if not page.may_begin(flag.phrase):
            continue
        for said, start, end in _readings(flag, page):
            # "vpn=0" has been read as a key and its value, which the bare word must not contradict
            if any(fact == flag.name and first < end and start < last for fact, first, last in given):
                continue
            if said is None:
                page.doubts.append((start, end))
            else:
                page.claim_flag(flag.name, said, start, end)
