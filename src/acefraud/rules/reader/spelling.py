"""Names of columns that are misspelt, or that a rule misspells: "supplements" for `NumberOfSuppliments`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from acefraud.rules.reader.tokens import Kind, Token
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import grammar_words

_SHORTEST = 8
"""Letters of a word that is recognised with one other letter."""


def respelt(tokens: Sequence[Token], vocabulary: Vocabulary) -> list[Token]:
    """The tokens, with a long unknown word replaced by the only word of a fact's name that differs in one letter."""
    known = vocabulary.word_list | grammar_words()
    return [
        replace(token, text=meant)
        if token.kind is Kind.WORD and token.text not in known and (meant := _nearest(token.text, vocabulary))
        else token
        for token in tokens
    ]


def _nearest(word: str, vocabulary: Vocabulary) -> str:
    if len(word) < _SHORTEST:
        return ""
    near = {one for fact in vocabulary.facts.values() for one in fact.words if _differs_in_one_letter(word, one)}
    return near.pop() if len(near) == 1 else ""


def _differs_in_one_letter(one: str, other: str) -> bool:
    """Whether two words of the same length differ in one letter inside.

    >>> _differs_in_one_letter("supplement", "suppliment"), _differs_in_one_letter("merchant", "merchand")
    (True, False)
    """
    if len(one) != len(other) or one[0] != other[0] or one[-1] != other[-1]:
        return False
    return sum(a != b for a, b in zip(one, other, strict=True)) == 1
