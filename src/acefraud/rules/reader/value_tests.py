"""Values that are given without their category: "Chrome or Opera", "phone orders", "accident in a rural area"."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from acefraud.rules.reader.bands import bands_of
from acefraud.rules.reader.bounds import Tests
from acefraud.rules.reader.countries import codes_for
from acefraud.rules.reader.names import Fact, is_vague
from acefraud.rules.reader.nouns import Nouns
from acefraud.rules.reader.phrases import Tokens, Words, after_any, is_one_of, is_word, matches, skipped
from acefraud.rules.reader.values import Values, among
from acefraud.rules.reader.vocabulary import ValuePhrase, Vocabulary
from acefraud.rules.reader.word_lists import words

_HEADS = words("heads")
_COMING_FROM = words("coming_from")
_WITHIN_NAME = words("within_name")
_GENERIC_LAST = {"type", "area", "status", "group", "class", "kind"}
"""Last words of a name that need not be said: "the agent is internal"."""
_PERSONS = words("people") | {"party"}


class ValueTests:
    """Reads tests of values that belong to one category only, or that stand beside words of its name."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary, nouns: Nouns, values: Values) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        self._nouns = nouns
        self._values = values

    @cached_property
    def _split_names(self) -> list[tuple[Fact, frozenset[str]]]:
        """The categories with names of several words, and these words."""
        named = (
            (fact, frozenset(fact.words) - {"of", "the"})
            for fact in self._vocabulary.facts.values()
            if fact.kind == "category"
        )
        return [(fact, name) for fact, name in named if len(name) > 1]

    def tests(self, at: int) -> Tests:
        """Every test of a value that stands here without its category."""
        tokens = self._tokens
        yield from self._within_name(at)
        outside = is_word(tokens, at, "outside")
        negated = is_word(tokens, at, "not", "non") or outside
        first = skipped(tokens, at + 1, _COMING_FROM) if negated else at
        for start, meanings, end in self._valued(first, skipped(tokens, first)):
            alone = len({other.fact for other in meanings}) == 1
            for meaning in meanings:
                fact = self._vocabulary.facts[meaning.fact]
                if outside and not codes_for(fact.values):
                    continue
                after = self._beside(fact, end)
                if after is None and alone and self._is_clear(meaning, start, end):
                    after = end
                if after is not None:
                    yield from self._alternatives(fact, meaning.value, after, negated)
                for then in after_any(tokens, end, ("not at", "is not at", "not with", "is not with")):
                    for other, final in self._nouns.facts(then, "category"):  # "the policy holder is not at fault"
                        if other.name == fact.name and not negated:
                            yield among(fact.name, [meaning.value], negated=True), final

    def _valued(self, first: int, second: int) -> Iterator[tuple[int, list[ValuePhrase], int]]:
        """The values that stand at either place: "all" may be an article or a part of "All Perils"."""
        for start in dict.fromkeys((first, second)):
            for meanings, end in matches(self._tokens, start, self._vocabulary.values, exact=True):
                yield start, meanings, end

    def _is_clear(self, meaning: ValuePhrase, start: int, end: int) -> bool:
        """Whether these words can only be a value, even if nothing else points to its category."""
        said = self._said(start, end)
        if (
            self._is_of_another_kind(meaning, start, end)
            or is_vague(said)
            or said in self._vocabulary.flags
            or self._values.is_ordinary(start, end)
        ):
            return False
        return len(said) > 1 or len(self._tokens[start].shown) > 2 or self._tokens[start].shown == meaning.value

    def _is_of_another_kind(self, meaning: ValuePhrase, start: int, end: int) -> bool:
        """Whether the words may be something else: a number, a person, or "single" in "every single claim"."""
        bands = bands_of(self._vocabulary.facts[meaning.fact])
        if any(band.value == meaning.value for band in bands) or self._tokens[end - 1].text in _PERSONS:
            return True
        counted = start > 0 and is_word(self._tokens, start - 1, "a", "every", "each", "any", "one", "not")
        return counted and self._said(start, end) == ("single",)

    def _within_name(self, at: int) -> Tests:
        """A value between the words of its fact's name: "accident in a rural area" for the accident area."""
        for fact, name in self._split_names:
            place = skipped(self._tokens, at, name)
            first = set(self._said(at, place))
            if not first or first == name:
                continue
            found = self._values.one(fact, skipped(self._tokens, place, _WITHIN_NAME))
            if found is not None:
                end = skipped(self._tokens, found[1], name)
                missing = name - first.union(self._said(found[1], end))
                if missing <= _GENERIC_LAST:
                    yield among(fact.name, [found[0]]), end

    def _alternatives(self, fact: Fact, value: str, at: int, negated: bool) -> Tests:
        """A value, and further ones after "or": all of the same fact."""
        values = [value]
        while True:
            said = among(fact.name, values, negated=negated)
            head = at
            while is_one_of(self._tokens, head, _HEADS) and (self._tokens[head].text,) not in self._vocabulary.values:
                head += 1
                yield said, head
            yield said, at
            if len(values) == 1 and self._values.is_comma_or(at):
                return
            after = self._values.after_joint(at)
            found = self._values.one(fact, after) if after > at else None
            if found is None or not self._goes_on(fact, after, found[1]):
                return
            values = [*values, found[0]]
            beside = self._beside(fact, found[1])
            at = found[1] if beside is None else beside

    def _goes_on(self, fact: Fact, start: int, end: int) -> bool:
        """Whether a further value is one: it is not vague, or the words after it make clear what it is."""
        if not is_vague(self._said(start, end)) or is_one_of(self._tokens, end, _HEADS):
            return True
        return self._beside(fact, end) is not None

    def _beside(self, fact: Fact, at: int) -> int | None:
        """The place after a word of the fact's own name: "rural area", "external agent", "Collision as base policy"."""
        for after in after_any(self._tokens, at, ("as", "is at", "at", "is", "'s")):  # "the policy holder is at fault"
            for other, end in self._nouns.facts(after, "category"):
                if other.name == fact.name:
                    return end
        if len(fact.words) == 1:
            return at + 1 if is_one_of(self._tokens, at, fact.words) else None
        end = skipped(self._tokens, at, fact.words)
        return end if end > at else None

    def _said(self, start: int, end: int) -> Words:
        return tuple(token.text for token in self._tokens[start:end])
