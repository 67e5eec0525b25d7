"""Cues: what a text must hold for a pattern to match it, found from the pattern itself.

Looking up a few plain words is far cheaper than running a pattern over a text, and most texts hold no trace of most
patterns. A cue is a necessary condition only: it may let a pattern run in vain, it never keeps one from matching.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .figures import MARKERS

SHORTEST_CUE = 3
"""The markers of figures are cues too, of one character."""
LONGEST_OPENING = 12
AFTER_PIECE = 2
"""How many characters of the next word count towards an opening."""
_MARKERS = frozenset(MARKERS.values())
_OPTIONAL = re.compile(r"[?*]|\{0?,")
_QUANTIFIER = re.compile(r"(?:[?*+]|\{[\d,]+\})[?+]?")
_GROUP = re.compile(r"\((?:\?(?::|P<\w+>))?")
_BEGINNING = re.compile(rf"\w*(?:\W.{{0,{AFTER_PIECE}}})?", re.DOTALL)
_FULL = re.compile(rf"\w*\W.{{{AFTER_PIECE}}}", re.DOTALL)
_LOOKAROUND = ("(?=", "(?!", "(?<")

Clause = tuple[str, ...]
"""Words (or parts of words) of which at least one must be in the text."""
Opening = tuple[str, bool]
"""How a match can begin, and whether no more than that can be told."""


def _close(pattern: str, start: int) -> int:
    """Where the bracket that opens at a position is closed."""
    depth, at = 0, start
    while at < len(pattern):
        match pattern[at]:
            case "\\":
                at += 1
            case "[":
                at = pattern.index("]", at + 2)
            case "(":
                depth += 1
            case ")":
                depth -= 1
                if depth == 0:
                    return at
        at += 1
    raise ValueError(f"unbalanced pattern: {pattern}")


def _items(pattern: str) -> Iterator[tuple[str, str]]:
    """The items of a pattern in a row, each with its quantifier; a bare "|" stands after each alternative."""
    at = 0
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "\\":
            end = at + 2
        elif pattern[at] == "[":
            end = pattern.index("]", at + 2) + 1
        elif pattern[at] == "(":
            end = _close(pattern, at) + 1
        quantifier = _QUANTIFIER.match(pattern, end)
        yield pattern[at:end], quantifier[0] if quantifier else ""
        at = quantifier.end() if quantifier else end
    yield "|", ""


def _inside(group: str) -> str:
    opening = _GROUP.match(group)
    return group[opening.end() if opening else 1 : -1]


def _clause_of(item: str) -> Clause:
    """What a class of markers or a group demands, if every one of its alternatives demands something."""
    if item[0] == "[":
        return tuple(item[1:-1]) if set(item[1:-1]) <= _MARKERS else ()
    return () if item.startswith(_LOOKAROUND) else cues_of(_inside(item))


def _ways(pattern: str) -> list[list[Clause]]:
    """The alternatives of a pattern, each with the clauses that must all be met."""
    ways: list[list[Clause]] = [[]]
    run = ""
    for item, quantifier in _items(pattern):
        needed = not _OPTIONAL.match(quantifier)
        if needed and len(item) == 1 and item not in "|.^$" and item not in _MARKERS:
            run += item
            continue
        words = [word for word in re.findall(r"\w+", run) if len(word) >= SHORTEST_CUE]
        ways[-1] += [(word,) for word in words]
        run = ""
        if item == "|":
            ways.append([])
        elif needed and item in _MARKERS:
            ways[-1].append((item,))
        elif needed and item[0] in "[(" and (clause := _clause_of(item)):
            ways[-1].append(clause)
    return ways[:-1]


def cues_of(pattern: str) -> Clause:
    """Words of which a text must hold at least one for the pattern to match; none if that cannot be told.

    >>> sorted(cues_of(r"(?:card|wallet) (?:was )?(?:added|removed)"))
    ['added', 'removed']
    """
    ways = _ways(pattern)
    if not all(ways):
        return ()
    # one clause of each alternative is enough, and the one with the longest words is the rarest
    return tuple({word for way in ways for word in max(way, key=lambda clause: min(map(len, clause)))})


def _item_openings(item: str) -> set[Opening]:
    if item[0] == "(":
        return {("", False)} if item.startswith(_LOOKAROUND) else _openings(_inside(item))
    if item[0] == "[":
        told = item[1] != "^" and "\\" not in item and "-" not in item[2:-2]
        return {(character, False) for character in item[1:-1]} if told else {("", True)}
    if item[0] == "\\":
        literal = not item[1].isalnum()
        return {(item[1], False)} if literal else {("", item[1] not in "bBAZ")}
    return {("", item == ".")} if item in ".^$" else {(item, False)}


def _openings(pattern: str) -> set[Opening]:
    found: set[Opening] = set()
    begun: set[Opening] = {("", False)}
    for item, quantifier in _items(pattern):
        if item == "|":
            found |= begun
            begun = {("", False)}
            continue
        if all(ended for _, ended in begun):
            continue
        more = _item_openings(item)
        if quantifier and quantifier[0] != "?":  # what follows a repetition is not looked into
            more = {(text, True) for text, _ in more}
        if _OPTIONAL.match(quantifier):
            more.add(("", False))
        begun = {one for one in begun if one[1]} | {
            _joined(head, tail, ended) for head, stop in begun if not stop for tail, ended in more
        }
    return found


def _joined(head: str, tail: str, ended: bool) -> Opening:
    """Two pieces of an opening in a row. It goes a little beyond the first character that is not of a word."""
    text = _BEGINNING.match(head + tail)
    opening = text[0][:LONGEST_OPENING] if text else ""
    return opening, ended or len(opening) == LONGEST_OPENING or bool(_FULL.fullmatch(opening))


def openings_of(pattern: str) -> frozenset[str]:
    """How a match of the pattern can begin: a word or a sign, or a part of it, and at most a little of what follows.

    >>> sorted(openings_of(r"(?:card|e-?mail) (?:was )?added"))
    ['card ad', 'card wa', 'e-ma', 'email ad', 'email wa']
    """
    return frozenset(text for text, _ in _openings(pattern))
