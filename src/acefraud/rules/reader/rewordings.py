"""Ways to say something that the reader knows only in another way, from ``rewordings.toml``."""

from __future__ import annotations

import re
from functools import lru_cache

from pydantic import BaseModel, Field

from acefraud.core.package_data import read_package_toml
from acefraud.rules.reader.phrases import Words
from acefraud.rules.reader.word_lists import words

_BEFORE_ENTITY = r"(?:(?:the|this|that|these|a|an|its|their|his|her|our|same|given|current|any) ){0,3}"
_FIGURE = r"(?:[$€£]? ?\d[\d,.]*[km]?(?: ?%| percent| million)?|half|a third|a quarter|two thirds|three quarters|\w+)"
_SOME = (
    r"(?:(?:over|above|more than|at least|no less than|under|below|less than|at most|no more than|up to|exactly)"
    rf" {_FIGURE}|[<>≤≥]=? ?{_FIGURE}|{_FIGURE} or (?:more|less))"
)
_QUOTED = re.compile(r"`[^`]*`|\"(?:[^\"\\]|\\.)*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)")
"""Names and values, which stay as they are."""
_KEPT = "\0"
"""What stands around the number of one of them for the time being."""
_END = r"\s*[.!)]*\s*$"
_VERDICT = rf"\b(?:{'|'.join(sorted(words('verdict_verbs')))})\b"


class _Rewording(BaseModel, extra="forbid"):
    said: str
    instead: str = Field(alias="as")


class _Rewordings(BaseModel, extra="forbid"):
    rewording: tuple[_Rewording, ...]


_ALL = read_package_toml("acefraud.rules.reader", "rewordings.toml", _Rewordings).rewording


def reworded(text: str, entities: frozenset[Words]) -> str:
    """A rule in words that the reader knows, where it has others for the same.

    >>> reworded("Hi team, orders over 500 should be looked at by an analyst. Thanks!", frozenset())
    'orders over 500 should be review'
    >>> reworded("the shop already knows the card", frozenset({("card",), ("shop",)}))
    'the shop has seen the card before'
    """
    kept: list[str] = []

    def keep(quoted: re.Match[str]) -> str:
        kept.append(quoted[0])
        return f"{_KEPT}{len(kept) - 1}{_KEPT}"

    text = _QUOTED.sub(keep, text.replace(_KEPT, " "))
    for pattern, instead in _patterns(entities):
        text = pattern.sub(instead, text)
    return re.sub(rf"{_KEPT}(\d+){_KEPT}", lambda place: kept[int(place[1])], text)


@lru_cache(maxsize=16)
def _patterns(entities: frozenset[Words]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """The rewordings with the names of entities in their places; without entities, those that need none."""
    longest_first = sorted(entities, key=lambda name: (-len(name), name))
    names = "|".join(r"[ _]".join(map(re.escape, name)) for name in longest_first)
    made = []
    for one in _ALL:
        if "{entity" in one.said and not entities:
            continue
        said = one.said
        for place in ("entity", "entity2"):
            said = said.replace(f"{{{place}}}", rf"(?P<{place}>\b{_BEFORE_ENTITY}(?:{names})s?\b)")
        said = said.replace("{some}", _SOME).replace("{end}", _END).replace("{verdict}", _VERDICT)
        made.append((re.compile(said, re.IGNORECASE), one.instead))
    return tuple(made)
