"""Comparisons with a category whose values are bands: "at least 2 past claims", "the vehicle is over 7 years old"."""

from __future__ import annotations

from functools import cached_property

from acefraud.rules.reader.bands import bands_of, said_of_bands
from acefraud.rules.reader.bounds import Tests
from acefraud.rules.reader.names import Fact
from acefraud.rules.reader.nouns import Nouns
from acefraud.rules.reader.phrases import Tokens, Words, after_any, after_be, is_one_of, is_word, matches, skipped
from acefraud.rules.reader.quantities import HOURS
from acefraud.rules.reader.values import Values, among
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import phrases, words

_PEOPLE = words("people")
_VEHICLES = words("same_vehicle")
_AFTER_BAND = phrases("after_band")
_EVENT_LINKS = words("event_links")
_BEGAN = words("began")


class BandTests:
    """Reads comparisons with numbers that only bands are known of."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary, nouns: Nouns, values: Values) -> None:
        self._tokens = tokens
        self._values = values
        self._vocabulary = vocabulary
        self._nouns = nouns

    @cached_property
    def _banded(self) -> list[Fact]:
        return [fact for fact in self._vocabulary.facts.values() if fact.kind == "category" and bands_of(fact)]

    def tests(self, at: int) -> Tests:
        """Every comparison with a band that begins here."""
        if not self._banded:
            return
        for fact, after in self._nouns.facts(at, "category"):
            for place in after_be(self._tokens, after) if fact in self._banded else ():
                if is_word(self._tokens, place, "not") and self._values.one(fact, place + 1) is not None:
                    continue  # the value itself, negated: CategoryTests reads it
                for condition, end in said_of_bands(self._tokens, place, fact):
                    yield condition, max(after_any(self._tokens, end, _AFTER_BAND), default=end)
        for fact in self._banded:
            yield from self._days_after(fact, at)
            yield from self._counted(fact, at)
            yield from self._is_old(fact, at)

    def _days_after(self, fact: Fact, at: int) -> Tests:
        """ "an accident 1 to 7 days after the policy started", for a category such as `Days_Policy_Accident`"""
        if fact.words[0] != "day" or len(fact.words) != len(("days", "first", "second")):
            return
        _, first, second = fact.words
        start = skipped(self._tokens, at)
        if not is_word(self._tokens, start, second):
            return
        place = skipped(self._tokens, start + 1, _EVENT_LINKS)
        found = self._values.one(fact, place)
        said = [
            *said_of_bands(self._tokens, place, fact),
            *([(among(fact.name, [found[0]]), found[1])] if found else []),
        ]
        for condition, end in said:
            after = end + is_word(self._tokens, end, "day")
            if is_word(self._tokens, after, "after"):
                event = skipped(self._tokens, after + 1)
                if is_word(self._tokens, event, first):
                    yield condition, skipped(self._tokens, event + 1, _BEGAN)

    def _counted(self, fact: Fact, at: int) -> Tests:
        """ "at least 2 past claims" """
        for condition, after in said_of_bands(self._tokens, at, fact, counted=True):
            for named, end in self._nouns.facts(after, "category"):
                if named == fact:
                    yield condition, end

    def _is_old(self, fact: Fact, at: int) -> Tests:
        """ "a vehicle more than 7 years old", "a new car", for a category such as the age of the vehicle"""
        things = self._aged(fact)
        start = skipped(self._tokens, at)
        new = next((value for value in fact.values if value.lower() == "new"), None)
        if new is not None and is_word(self._tokens, start, "new"):
            for _, end in matches(self._tokens, start + 1, things):
                yield among(fact.name, [new]), end
        for _, after in matches(self._tokens, at, things):
            for place in after_be(self._tokens, after):
                if new is not None and is_word(self._tokens, place, "new") and place > after:
                    yield among(fact.name, [new]), place + 1
                for condition, end in said_of_bands(self._tokens, place, fact):
                    is_age = is_word(self._tokens, end, "old") or any(
                        is_word(self._tokens, one, "older", "newer", "younger") for one in range(place, end)
                    )
                    if is_age and any(is_one_of(self._tokens, one, HOURS) for one in range(place, end)):
                        yield condition, end + is_word(self._tokens, end, "old")

    def _aged(self, fact: Fact) -> dict[Words, str]:
        """What a category is the age of, if it is not a person."""
        if fact.words[:2] != ("age", "of") or any(word in _PEOPLE for word in fact.words):
            return {}
        thing = fact.words[2:]
        others = [(word,) for word in _VEHICLES] if thing[0] in _VEHICLES else []
        return dict.fromkeys([thing, *others], fact.name)
