"""What is said of a category that is named: "country is one of US, GB", "the merchant is not in list watched"."""

from __future__ import annotations

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition, PairTest
from acefraud.core.context_facts import list_fact
from acefraud.rules.reader.bounds import Tests
from acefraud.rules.reader.names import Fact, split_name
from acefraud.rules.reader.nouns import Nouns
from acefraud.rules.reader.phrases import Tokens, after_any, after_be, is_word, phrase, skipped
from acefraud.rules.reader.tokens import Kind
from acefraud.rules.reader.values import Values, among
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import phrases

_AMONG, _NOT_AMONG = ("", *phrases("among")), phrases("not_among")
_PAIRS = (
    ("the same as", Op.IS),
    ("same as", Op.IS),
    ("not the same as", Op.IS_NOT),
    ("differ from", Op.IS_NOT),
    ("different from", Op.IS_NOT),
    ("not equal to", Op.IS_NOT),
    ("equal to", Op.IS),
    ("match", Op.IS),
    ("not match", Op.IS_NOT),
)
"""Comparisons of two categories."""


class CategoryTests:
    """Reads tests of a category that is named, and of lists of values."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary, nouns: Nouns, values: Values) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        self._nouns = nouns
        self._values = values

    def tests(self, at: int) -> Tests:
        """Every test of a category that is named here, and whether a fact or an entity is in a list."""
        for fact, after in self._nouns.facts(at, "category"):
            for place in after_be(self._tokens, after):
                yield from self._has_value(fact, place)
                yield from self._equals_other(fact, place)
        for fact, after in self._nouns.facts(at, "category", "number", "flag"):
            for place in after_be(self._tokens, after):
                yield from self._is_in_list(fact.name, place)
        for entity, after in self._nouns.entity(at):
            for place in after_be(self._tokens, after):
                yield from self._is_in_list(entity, place)

    def _has_value(self, fact: Fact, at: int) -> Tests:
        if fact.name == "weekday" and self._tokens[at - 1].shown.lower() == "weekdays":
            return  # "on weekdays except Fridays": working days
        for options, negated in ((_NOT_AMONG, True), (_AMONG, False)):
            for after in after_any(self._tokens, at, options):
                for values, end in self._values.several(fact, after):
                    yield among(fact.name, values, negated=negated), end

    def _equals_other(self, fact: Fact, at: int) -> Tests:
        """ "(the billing country) differs from the shipping country" """
        for said, op in _PAIRS:
            after = phrase(self._tokens, at, said)
            for other, end in self._nouns.facts(after, "category") if after is not None else ():
                if other.name != fact.name:
                    yield Condition.of(PairTest(fact.name, op, other.name)), end

    def _is_in_list(self, key: str, at: int) -> Tests:
        """ "(the merchant) is not in list watched", "(the merchant) is on the watched list" """
        tokens = self._tokens
        negated = is_word(tokens, at, "not")
        if not is_word(tokens, at + negated, "in", "on", "from"):
            return
        place = skipped(tokens, at + negated + 1)
        if is_word(tokens, place, "list") and (named := self._list_name(place + 1)) is not None:
            yield Condition.of(Test(list_fact(key, named), Op.IS, not negated)), place + 2
        for name in sorted(self._vocabulary.lists):
            end = phrase(tokens, place, " ".join(split_name(name)))
            if end is not None and is_word(tokens, end, "list"):
                yield Condition.of(Test(list_fact(key, name), Op.IS, not negated)), end + 1

    def _list_name(self, at: int) -> str | None:
        """The name of a list that stands here: one that is known, or one in quotes if any may be named."""
        token = self._tokens[at] if at < len(self._tokens) else None
        if token is None or token.kind is Kind.SIGN:
            return None
        name = token.text if token.kind in (Kind.QUOTED, Kind.FACT) else token.shown
        is_open = self._vocabulary.is_open and token.kind is Kind.QUOTED
        return name if is_open or name in self._vocabulary.lists else None
