"""Text patterns: regular expressions over a document, and the index that says which of them to try where.

There are hundreds of patterns, and a text matches few of them. A pattern is tried only in a text that holds one of its
cues, words without which it cannot match, and only at words that it can begin with. Both are derived from the pattern
when the first text is read. They may let a pattern run in vain, but never keep one from matching.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from .figures import FIGURE_WORDS, MARKERS, PIECE
from .vocabulary import fill

_ALL_MARKERS = f"{MARKERS['money']}-{MARKERS['identifier']}"
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
    return pattern


# --- what a pattern needs ----------------------------------------------------------------------------------------

_SHORTEST_CUE = 3
"""In letters. The markers of figures are cues too, of one character."""
_LONGEST_OPENING = 12
_TOKEN = re.compile(
    r"(?P<item>\((?:\?(?::|P<\w+>|<?[=!]))?|\[\^?.[^\]]*\]|\\.|(?:[^\\\[(){}|?*+.^$](?![?*+{]))+|.)"
    r"(?P<quantity>[?*+]|\{[\d,]+\})?[?+]?",
    re.DOTALL,
)
_CUE = re.compile(rf"\w{{{_SHORTEST_CUE},}}|[{_ALL_MARKERS}]")
_OPENING, _FULL_OPENING = re.compile(r"\w*\W?"), re.compile(r"\w*\W")


class _Item(NamedTuple):
    """A part of a pattern: literal texts, any one of which it may be, or a group of alternatives."""

    texts: tuple[str, ...] | None = ()
    """None if too many texts are possible to list them."""
    ways: list[list[_Item]] | None = None
    optional: bool = False
    repeated: bool = False


def _parse(pattern: str) -> list[list[_Item]]:
    """The alternatives of a pattern, each as its items in a row."""
    groups: list[tuple[str, list[list[_Item]]]] = [("", [[]])]
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
            groups[-1][1][-1].append(_Item(texts, ways, optional, quantity not in ("", "?")))
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


def _cues(ways: list[list[_Item]]) -> frozenset[str]:
    """Words of which a text must hold at least one for one of the alternatives to match; none if that is unknown."""
    found: set[str] = set()
    for way in ways:
        needed = [cues for item in way if not item.optional for cues in _item_cues(item)]
        if not needed:
            return frozenset()
        found |= max(needed, key=lambda cues: min(map(len, cues)))  # the longest words are the rarest
    return frozenset(found)


def _item_cues(item: _Item) -> Iterable[frozenset[str]]:
    """Sets of words. Where the item matches, the text holds at least one word of each set."""
    if item.ways is not None:
        inside = _cues(item.ways)
        return [inside] if inside else []
    texts = item.texts or ()
    if len(texts) == 1:
        return [frozenset({cue}) for cue in _CUE.findall(texts[0])]
    return [frozenset(texts)] if texts and all(_CUE.fullmatch(text) for text in texts) else []


def _openings(ways: list[list[_Item]]) -> set[tuple[str, bool]]:
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


def _item_openings(item: _Item) -> Iterable[tuple[str, bool]]:
    if item.ways is None:
        return [("", True)] if item.texts is None else [(text, item.repeated) for text in item.texts]
    return {(text, ended or item.repeated) for text, ended in _openings(item.ways)}


@cache
def _opening(text: str) -> str:
    """The first word of a text with the character after it, or its first sign."""
    match = _OPENING.match(text)
    return match[0][:_LONGEST_OPENING] if match else ""


@cache
def _is_complete(opening: str) -> bool:
    return len(opening) == _LONGEST_OPENING or _FULL_OPENING.fullmatch(opening) is not None


# --- which patterns to try where ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Index:
    """Every pattern by how it can begin and by the first characters of its cues."""

    by_opening: dict[str, list[TextPattern]] = field(default_factory=lambda: defaultdict(list))
    by_cue: dict[str, list[tuple[str, TextPattern]]] = field(default_factory=lambda: defaultdict(list))
    without_cue: set[TextPattern] = field(default_factory=set)


@cache
def _index() -> _Index:
    index = _Index()
    for pattern in _PATTERNS:
        ways = _parse(pattern.pattern)
        cues = _cues(ways)
        for cue in cues:
            index.by_cue[cue[:_SHORTEST_CUE]].append((cue, pattern))
        if not cues:
            index.without_cue.add(pattern)
        if pattern.not_after:
            for opening in {text for text, _ in _openings(ways)}:
                index.by_opening[opening].append(pattern)
    return index


@lru_cache(maxsize=20_000)
def _look_up(piece: str) -> tuple[frozenset[TextPattern], frozenset[TextPattern]]:
    """The patterns that may begin at a piece of a text, and those of which it holds a cue."""
    index = _index()
    ends = range(min(len(piece), _LONGEST_OPENING) + 1)
    begun = frozenset(one for end in ends for one in index.by_opening.get(piece[:end], ()))
    cued = frozenset(
        one
        for at in range(len(piece))
        for cue, one in index.by_cue.get(piece[at : at + _SHORTEST_CUE], ())
        if piece.startswith(cue, at)
    )
    return begun, cued


@dataclass(frozen=True, slots=True)
class Survey:
    """Where in a text each pattern may begin, and which patterns have a cue in it at all."""

    starts: dict[TextPattern, list[int]]
    cued: set[TextPattern]


def survey(text: str) -> Survey:
    """Look up each distinct word and sign of a text once."""
    places: dict[str, list[int]] = defaultdict(list)
    at = 0
    for piece in PIECE.findall(text):
        places[piece].append(at)
        at += len(piece)
    found = {piece: _look_up(piece) for piece in places}
    cued = _index().without_cue.union(*(with_cue for _, with_cue in found.values()))
    starts: dict[TextPattern, list[int]] = defaultdict(list)
    for piece, (begun, _) in found.items():
        for pattern in begun & cued:
            starts[pattern] += places[piece]
    return Survey(starts, cued)
