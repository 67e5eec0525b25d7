"""Finding words and phrases in a sentence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from acefraud.rules.reader.tokens import Kind, Token
from acefraud.rules.reader.word_lists import words

T = TypeVar("T")
Tokens = Sequence[Token]
Words = tuple[str, ...]

DETERMINERS = words("determiners")
_BE = words("be")
_WORDS_AND_SIGNS = (Kind.WORD, Kind.SIGN)
_LONGEST = 12
"""Words of one entry of a vocabulary."""
_JOINTS = frozenset("-–—/&")
"""Signs inside a name, as in "Sedan - Liability"."""


def is_word(tokens: Tokens, at: int, *some: str) -> bool:
    """Whether the token at a place is one of these words or signs."""
    return is_one_of(tokens, at, some)


def is_one_of(tokens: Tokens, at: int, some: Collection[str]) -> bool:
    """Whether the token at a place is one of a list of words or signs."""
    return at < len(tokens) and (token := tokens[at]).text in some and token.kind in _WORDS_AND_SIGNS


def phrase(tokens: Tokens, at: int, said: str) -> int | None:
    """The place after these words, if they stand here."""
    for word in _split(said):
        if not is_word(tokens, at, word):
            return None
        at += 1
    return at


def after_any(tokens: Tokens, at: int, some: Iterable[str]) -> Iterator[int]:
    """The place after each of these phrases that stands here."""
    for said in some:
        if (after := phrase(tokens, at, said)) is not None:
            yield after


def skipped(tokens: Tokens, at: int, some: Collection[str] = DETERMINERS) -> int:
    """The place after the words of a list that stand here."""
    while is_one_of(tokens, at, some):
        at += 1
    return at


def after_be(tokens: Tokens, at: int) -> list[int]:
    """The places where what is said of a subject may begin: after "is", "that is", "stays" and the like."""
    places = [at]
    while is_one_of(tokens, places[-1], _BE) or (len(places) == 1 and is_word(tokens, at, ":")):
        places.append(places[-1] + 1)
    return places


def matches(tokens: Tokens, at: int, table: Mapping[Words, T], *, exact: bool = False) -> Iterator[tuple[T, int]]:
    """What the words from here on mean in a table, the longest first. Determiners do not matter, unless `exact`."""
    found: list[tuple[T, int]] = []
    said: Words = ()
    for place in range(at, len(tokens)):
        token = tokens[place]
        if token.kind in (Kind.SIGN, Kind.QUOTED):
            if said and token.text in _JOINTS:
                continue
            break
        if not exact and token.kind is Kind.WORD and token.text in DETERMINERS:
            continue
        said = (*said, token.text)
        if (meaning := table.get(said)) is not None:
            found.append((meaning, place + 1))
        if len(said) == _LONGEST:
            break
    yield from reversed(found)


@lru_cache(maxsize=4096)
def _split(said: str) -> Words:
    return tuple(said.split())
