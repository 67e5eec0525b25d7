"""Text patterns: regular expressions over a document, and the index that says which of them to try where.

There are hundreds of patterns, and a text matches few of them. A pattern is tried only at words that it can begin with,
and only if its cues, words without which it cannot match, follow soon enough. Both are derived from the pattern when
the first text is read. They may let a pattern run in vain, but never keep one from matching: what cannot be determined
is left open.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, reduce
from operator import or_
from typing import NamedTuple

from .figures import ALL_MARKERS, FIGURE_WORDS, MARKERS, fill

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
            signs = max(sum(item.signs for item in way) for way in ways) if ways else _item_signs(text)
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
    made = TextPattern(expand(pattern), not_after, not_before)
    _PATTERNS.append(made)
    for index in (_index, _look_up, _owners):
        index.cache_clear()
    return made


def search_pattern(pattern: str) -> TextPattern:
    """A pattern to search for in a part of a text. Placeholders are filled in."""
    return text_pattern(pattern, not_after="")


# --- which patterns to try where ---------------------------------------------------------------------------------

_SLOTS = 2
"""How many needs of an alternative are looked at."""
_NEAR = 8
"""A cue with fewer signs before it is looked for in this many pieces, counted from where a match may begin."""


class _Index:
    """Every alternative of every pattern, by how it can begin and by the first characters of its cues.

    Each alternative is a bit of an integer. An integer of needs has a part for each of the two needs of an alternative.
    """

    def __init__(self, patterns: Iterable[TextPattern]) -> None:
        alternatives: dict[tuple[TextPattern, tuple[Need, ...]], set[str]] = defaultdict(set)
        for pattern in patterns:
            for way in phrases(parse(pattern.pattern)):
                openings = {text for text, _ in openings_of([way])} if pattern.not_after else set()
                needs = [need for need in needs_of(way) if not need.is_met_by(openings)]
                alternatives[pattern, tuple(needs[:_SLOTS])] |= openings
        self.size = len(alternatives)
        self.owners = [pattern for pattern, _ in alternatives]
        self.bits: dict[TextPattern, int] = defaultdict(int)
        self.by_opening: dict[str, int] = defaultdict(int)
        self.near_cues: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.far_cues: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.met = 0
        """The needs that alternatives with fewer of them do not have."""
        for index, ((pattern, each), openings) in enumerate(alternatives.items()):
            self.bits[pattern] |= 1 << index
            for opening in openings:
                self.by_opening[opening] |= 1 << index
            for slot in range(_SLOTS):
                bit = 1 << index + slot * self.size
                if slot < len(each):
                    near = pattern.not_after and each[slot].signs < _NEAR
                    cues = self.near_cues if near else self.far_cues
                    for cue in each[slot].cues:
                        cues[cue[:SHORTEST_CUE]][cue] |= bit
                else:
                    self.met |= bit

    def all_met(self, needs: int) -> int:
        """The alternatives whose needs are all among these."""
        return needs & needs >> self.size


@cache
def _index() -> _Index:
    return _Index(_PATTERNS)


@lru_cache(maxsize=20_000)
def _look_up(piece: str) -> tuple[int, int, int]:
    """The needs of the alternatives that may begin at a piece of a text, and those met by its near and far cues."""
    index = _index()
    begun = near = far = 0
    for end in range(min(len(piece), LONGEST_OPENING) + 1):
        begun |= index.by_opening.get(piece[:end], 0)
    for at in range(len(piece)):
        start = piece[at : at + SHORTEST_CUE]
        near |= _held(index.near_cues.get(start, {}), piece, at)
        far |= _held(index.far_cues.get(start, {}), piece, at)
    return begun | begun << index.size, near, far


def _held(cues: dict[str, int], piece: str, at: int) -> int:
    held = 0
    for cue, bits in cues.items():
        if piece.startswith(cue, at):
            held |= bits
    return held


@lru_cache(maxsize=20_000)
def _owners(alternatives: int) -> tuple[TextPattern, ...]:
    """The patterns that these alternatives belong to."""
    owners, found = _index().owners, dict[TextPattern, None]()
    while alternatives:
        last = alternatives.bit_length() - 1
        found[owners[last]] = None
        alternatives ^= 1 << last
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Survey:
    """Where in a text each pattern may begin, in order, and which alternatives have their cues somewhere in it."""

    starts: dict[TextPattern, list[int]]
    held: int

    def may_hold(self, pattern: TextPattern) -> bool:
        """Whether the text has the cues of a pattern. If not, searching for it is pointless."""
        return self.held & _index().bits[pattern] != 0


def survey(pieces: list[str]) -> Survey:
    """Look up every piece of a text, and keep the places where all that a pattern needs is at hand."""
    index = _index()
    found = [_look_up(piece) for piece in pieces]
    far = reduce(or_, [cues for _, _, cues in found], index.met)
    near = [cues for _, cues, _ in found]
    for width in (1, 2, 4):  # up to the _NEAR pieces from each on
        near = list(map(or_, near, near[width:] + [0] * width))
    starts: dict[TextPattern, list[int]] = defaultdict(list)
    at = 0
    for piece, (begun, _, _), cues in zip(pieces, found, near, strict=True):
        if begun and (alternatives := index.all_met(begun & (cues | far))):
            for pattern in _owners(alternatives):
                starts[pattern].append(at)
        at += len(piece)
    return Survey(starts, index.all_met(far))
