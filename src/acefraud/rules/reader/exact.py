"""Conditions in the formal syntax and in the engine's own English, which have one meaning only."""

from __future__ import annotations

from dataclasses import replace

from acefraud.core.condition import Condition, Leaf, PairTest, Test
from acefraud.core.context_facts import list_of
from acefraud.core.fact_names import words_for
from acefraud.rules.parse_english import read_condition
from acefraud.rules.reader.vocabulary import Vocabulary


def read_exactly(written: str, vocabulary: Vocabulary) -> Condition | None:
    """The condition that a text states in so many words, if it is about facts at hand.

    >>> str(read_exactly("AMOUNT > 500 and vpn is true", Vocabulary.general()))
    'amount > 500 and vpn is true'
    """
    condition = read_condition(written) or _formal(written, vocabulary)
    return condition if condition is not None and _fits(condition, vocabulary) else None


def _fits(condition: Condition, vocabulary: Vocabulary) -> bool:
    """Whether a condition is about facts at hand, and compares each with a value of its own type."""
    if not vocabulary.is_open and unknown_facts(condition, vocabulary):
        return False
    return all(_has_type(leaf, vocabulary) for leaf in condition.leaves)


def _has_type(leaf: Leaf, vocabulary: Vocabulary) -> bool:
    fact = vocabulary.facts.get(leaf.fact)
    if fact is None or not isinstance(leaf, Test) or leaf.value is None:
        return True
    kind = "flag" if isinstance(leaf.value, bool) else "number" if isinstance(leaf.value, float) else "category"
    return kind == fact.kind


def _formal(written: str, vocabulary: Vocabulary) -> Condition | None:
    """The formal syntax; names may differ in letter case from those of facts."""
    try:
        condition = Condition.parse(written)
    except ValueError:
        return None
    lower = vocabulary.lower_names
    renamed = {name: lower.get(name.lower(), name) for name in condition.facts if name not in vocabulary.facts}
    condition = condition.mapped(
        lambda leaf: (
            replace(leaf, fact=renamed.get(leaf.fact, leaf.fact), other=renamed.get(leaf.other, leaf.other))
            if isinstance(leaf, PairTest)
            else replace(leaf, fact=renamed.get(leaf.fact, leaf.fact))
        )
    )
    if vocabulary.is_open and not all(
        _looks_like_a_name(name, written) for name in unknown_facts(condition, vocabulary)
    ):
        return None
    return condition


def unknown_facts(condition: Condition, vocabulary: Vocabulary) -> list[str]:
    """The facts of a condition that are not at hand."""
    missing = []
    for name in sorted(condition.facts):
        listed = list_of(name)
        if listed is not None:
            known = listed[1] in vocabulary.lists and (
                listed[0] in vocabulary.facts or (listed[0],) in vocabulary.entities
            )
        else:
            known = name in vocabulary.facts
        if not known:
            missing.append(name)
    return missing


def _looks_like_a_name(name: str, written: str) -> bool:
    """Whether a word is certainly the name of a fact: it has an underscore or a digit, or stands in backticks."""
    return (
        words_for(name) is not None
        or list_of(name) is not None
        or f"`{name}`" in written
        or not name.isalpha()
        or name != name.lower()
    )
