"""The facts nearest to words that were not understood: by name, and by what is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pydantic import BaseModel
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from acefraud.core.fact_names import words_for
from acefraud.core.package_data import read_package_toml
from acefraud.rules.reader.names import split_name
from acefraud.rules.reader.tokens import Kind, tokens_of
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import grammar_words

MOST = 5
_LEAST_LIKENESS = 72.0
_SHORTEST = 3
"""Letters of a word that may be meant by one with a letter wrong."""


class _Related(BaseModel, extra="forbid"):
    """One table of ``related.toml``."""

    words: tuple[str, ...]
    facts: tuple[str, ...]


_RELATED = read_package_toml("acefraud.rules.reader", "related.toml", dict[str, _Related])


def nearest_facts(words: Sequence[str], vocabulary: Vocabulary, most: int = MOST) -> tuple[str, ...]:
    """The facts nearest to these words, the nearest first: those with a like name, then those of a like meaning.

    >>> nearest_facts(["merchant's ratng", "failed atempts"], Vocabulary.general())[:2]
    ('failed_attempts', 'merchant_rating')
    >>> nearest_facts(["vpm"], Vocabulary.general())[:1]
    ('vpn',)
    >>> "distance_km" in nearest_facts(["abroad"], Vocabulary.general())
    True
    """
    called = {noun: name for name in vocabulary.facts for noun in _called(name, vocabulary)}
    likeness: dict[str, float] = {}
    for said in words:
        if not _has_unknown(said, vocabulary):
            continue
        plain = " ".join(token.text for token in tokens_of(said))
        for noun, score in _alike(plain, list(called), most):
            name = called[noun]
            likeness[name] = max(score, likeness.get(name, 0.0))
    by_name = sorted(likeness, key=lambda name: (-likeness[name], name))
    return tuple(dict.fromkeys([*by_name, *_related(words, vocabulary)]))[:most]


def _alike(said: str, nouns: Sequence[str], most: int) -> Iterator[tuple[str, float]]:
    """The nouns that are written much like the words, and how much. A wrong letter is a third of a short word."""
    for noun, score, _ in process.extract(said, nouns, scorer=fuzz.WRatio, limit=most, score_cutoff=_LEAST_LIKENESS):
        yield noun, score
    for noun, _, _ in process.extract(said, nouns, scorer=OSA.distance, limit=most, score_cutoff=1):
        if len(noun) >= _SHORTEST:
            yield noun, _LEAST_LIKENESS


def _has_unknown(said: str, vocabulary: Vocabulary) -> bool:
    """Whether some of the words mean nothing here. Otherwise they only could not be joined."""
    known = vocabulary.word_list | grammar_words()
    return any(token.kind is Kind.WORD and token.text not in known for token in tokens_of(said))


def _related(words: Sequence[str], vocabulary: Vocabulary) -> Iterator[str]:
    """The facts that tell what the words are about."""
    said = {token.text for one in words if _has_unknown(one, vocabulary) for token in tokens_of(one)}
    for related in _RELATED.values():
        if said.intersection(related.words):
            for pattern in related.facts:
                yield from (name for name in vocabulary.facts if re.fullmatch(pattern, name.lower()))


def _called(name: str, vocabulary: Vocabulary) -> Iterable[str]:
    yield " ".join(split_name(name))
    words = words_for(name)
    if words is not None:
        yield words.noun
    yield from vocabulary.facts[name].values[:20]
