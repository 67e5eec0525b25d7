"""The facts nearest to words that were not understood: by name, and by what is meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rapidfuzz import fuzz, process

from acefraud.core.fact_names import words_for
from acefraud.rules.reader.tokens import tokens_of
from acefraud.rules.reader.vocabulary import Vocabulary, split_name

MOST = 5
_LEAST_LIKENESS = 72.0


def nearest_facts(words: Sequence[str], vocabulary: Vocabulary, most: int = MOST) -> tuple[str, ...]:
    """The facts nearest to these words by name and by their nouns, the nearest first.

    >>> nearest_facts(["merchant's rating", "failed atempts"], Vocabulary.general())[:2]
    ('failed_attempts', 'merchant_rating')
    """
    called = {noun: name for name in vocabulary.facts for noun in _called(name, vocabulary)}
    likeness: dict[str, float] = {}
    for word in words:
        said = " ".join(token.text for token in tokens_of(word))
        for noun, score, _ in process.extract(
            said, list(called), scorer=fuzz.WRatio, limit=most, score_cutoff=_LEAST_LIKENESS
        ):
            name = called[noun]
            likeness[name] = max(score, likeness.get(name, 0.0))
    ordered = sorted(likeness, key=lambda name: (-likeness[name], name))
    return tuple(ordered[:most])


def _called(name: str, vocabulary: Vocabulary) -> Iterable[str]:
    yield " ".join(split_name(name))
    words = words_for(name)
    if words is not None:
        yield words.noun
    yield from vocabulary.facts[name].values[:20]
