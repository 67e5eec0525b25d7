"""What a pattern needs: how its matches can begin, and words that they cannot do without. Both come from the pattern.

They may let a pattern run in vain, but never keep one from matching: what cannot be determined is left open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from .figures import ALL_MARKERS

SHORTEST_CUE = 2
"""In letters. The markers of figures are cues too, of one character."""
LONGEST_OPENING = 12
_MANY = 1_000
_TOKEN = re.compile(
    r"(?P<item>\((?:\?(?::|P<\w+>|<?[=!]))?|\[\^?.[^\]]*\]|\\.|(?:[^\\\[(){}|?*+.^$](?![?*+{]))+|.)"
    r"(?P<quantity>[?*+]|\{[\d,]+\})?[?+]?",
    re.DOTALL,
)
_CUE = re.compile(rf"\w{{{SHORTEST_CUE},}}|[{ALL_MARKERS}]")
_SIGN = re.compile(r"\W")
_NO_SIGN = re.compile(r"\[(?:a-z|A-Z|0-9|\\[wd]|\w(?!-))+\]|\\[bBwd]|[$^]")
"""Items that match no sign."""
_OPENING, _FULL_OPENING = re.compile(r"\w*\W?"), re.compile(r"\w*\W")


class Item(NamedTuple):
    """A part of a pattern: literal texts, any one of which it may be, or a group of alternatives."""

    texts: tuple[str, ...] | None = ()
    """None if too many texts are possible to list them."""
    ways: list[list[Item]] | None = None
    optional: bool = False
    repeated: bool = False
    signs: int = 0
    """How many characters of a match can be signs, which is to say no part of a word."""


class Need(NamedTuple):
    """Words of which a match holds at least one, with at most so many signs before it."""

    cues: frozenset[str]
    signs: int

    def is_met_by(self, openings: set[str]) -> bool:
        """Whether every one of these ways to begin holds a cue already."""
        return bool(openings) and all(any(cue in opening for cue in self.cues) for opening in openings)


def parse(pattern: str) -> list[list[Item]]:
    """The alternatives of a pattern, each as its items in a row."""
    groups: list[tuple[str, list[list[Item]]]] = [("", [[]])]
    for token in _TOKEN.finditer(pattern):
        text, quantity = token["item"], token["quantity"] or ""
        if text[0] == "(":
            groups.append((text, [[]]))
        elif text == "|":
            groups[-1][1].append([])
        else:
            opened, ways = groups.pop() if text == ")" else ("", None)
            if opened.endswith(("=", "!")):  # a look ahead or behind takes no room
                continue
            texts = () if ways else _literal_texts(text)
            optional = quantity[:1] in ("?", "*") or quantity.startswith(("{0", "{,"))
            signs = max(map(_signs, ways)) if ways else _item_signs(text)
            groups[-1][1][-1].append(
                Item(texts, ways, optional, quantity not in ("", "?"), signs * _most_times(quantity))
            )
    return groups[0][1]


def _literal_texts(item: str) -> tuple[str, ...] | None:
    if item[0] == "[":
        listed = item[1] != "^" and "\\" not in item and "-" not in item[2:-2]
        return tuple(item[1:-1]) if listed else None
    if item[0] == "\\" and item[1].isalnum():
        return ("",) if item[1] in "bB" else None
    if item in (".", "^", "$"):
        return None if item == "." else ("",)
    return (item.removeprefix("\\"),)


def _item_signs(item: str) -> int:
    if item[0] in "[\\.^$":
        return 0 if _NO_SIGN.fullmatch(item) else 1
    return _count_signs(item)


def _count_signs(text: str) -> int:
    return len(_SIGN.findall(text))


def _most_times(quantity: str) -> int:
    if quantity in ("", "?"):
        return 1
    most = quantity.strip("*+{}").rpartition(",")[2]
    return int(most) if most else _MANY


def _signs(way: list[Item]) -> int:
    return sum(item.signs for item in way)


def needs_of(way: list[Item]) -> list[Need]:
    """What a match of one alternative needs, the longest words first: they are the rarest."""
    found: list[Need] = []
    signs = 0
    for item in way:
        if not item.optional:
            found += (Need(need.cues, signs + need.signs) for need in _item_needs(item))
        signs += item.signs
    return sorted(found, key=lambda need: -min(map(len, need.cues)))


def _item_needs(item: Item) -> list[Need]:
    if item.ways is not None:
        inside = [needs_of(way) for way in item.ways]
        if not all(inside):
            return []
        first = [needs[0] for needs in inside]
        found = [Need(frozenset().union(*(need.cues for need in first)), max(need.signs for need in first))]
    elif item.texts and len(item.texts) == 1:
        text = item.texts[0]
        found = [Need(frozenset({cue[0]}), _count_signs(text[: cue.start()])) for cue in _CUE.finditer(text)]
    else:
        texts = item.texts or ()
        found = [Need(frozenset(texts), 0)] if texts and all(map(_CUE.fullmatch, texts)) else []
    return [Need(need.cues, item.signs) for need in found] if item.repeated else found


def phrases(ways: list[list[Item]]) -> Iterator[list[Item]]:
    """The alternatives of a pattern, with those of a group that is an alternative by itself."""
    for way in ways:
        alone = way[0] if len(way) == 1 else Item()
        if alone.ways is None or alone.optional or alone.repeated:
            yield way
        else:
            yield from phrases(alone.ways)


def openings_of(ways: list[list[Item]]) -> set[tuple[str, bool]]:
    """How a match can begin, each with whether what follows is unknown."""
    found: set[tuple[str, bool]] = set()
    for way in ways:
        begun = {""}
        for item in way:
            following = _item_openings(item)
            joined = {(_opening(head + tail), ended) for head in begun for tail, ended in following}
            kept = begun if item.optional else set()
            begun = kept | {text for text, ended in joined if not ended and not _is_complete(text)}
            found |= {(text, True) for text, ended in joined if ended or _is_complete(text)}
            if not begun:
                break
        found |= {(text, False) for text in begun}
    return found


def _item_openings(item: Item) -> Iterable[tuple[str, bool]]:
    if item.ways is None:
        return [("", True)] if item.texts is None else [(text, item.repeated) for text in item.texts]
    return {(text, ended or item.repeated) for text, ended in openings_of(item.ways)}


@cache
def _opening(text: str) -> str:
    """The first word of a text with the character after it, or its first sign."""
    match = _OPENING.match(text)
    return match[0][:LONGEST_OPENING] if match else ""


@cache
def _is_complete(opening: str) -> bool:
    return len(opening) == LONGEST_OPENING or _FULL_OPENING.fullmatch(opening) is not None
