"""Ages of things and people: "account younger than a week", "within a day of signing up", "customers under 25"."""

from __future__ import annotations

from acefraud.core.comparison import Op
from acefraud.rules.reader.bounds import Tests, bounds, limit, value_for
from acefraud.rules.reader.measures import Measure
from acefraud.rules.reader.names import Fact
from acefraud.rules.reader.phrases import (
    DETERMINERS,
    Tokens,
    Words,
    after_any,
    is_one_of,
    is_word,
    matches,
    phrase,
    skipped,
)
from acefraud.rules.reader.quantities import HOURS, figures, or_more
from acefraud.rules.reader.tokens import Kind
from acefraud.rules.reader.vocabulary import AgeWords, Vocabulary
from acefraud.rules.reader.word_lists import words

_TRANSACTIONS = words("transactions") | {"this", "that", "claim"}
_OPENED, _EXISTED = words("opened"), words("existed")
_WHO = words("who")
_PEOPLE, _AGED = words("people"), words("aged")
_BEFORE_AGE = _PEOPLE | {"woman", "man"}
_AFTER_EVENT = words("after_event")
_WITHIN_LAST = ("within the last", "in the last", "in the past", "within the past", "during the last", "over the last")
_UNITS = frozenset(HOURS) - {"second", "sec"}
"""Units of an age."""


class AgeTests:
    """Reads tests of how old a thing or a person is."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary

    def tests(self, at: int) -> Tests:
        """Every test of the age of a thing, or of the time since something was done, that begins here."""
        for age in self._vocabulary.ages:
            fact = self._vocabulary.facts[age.fact]
            yield from self._is_old(age, fact, at)
            yield from self._did(age, fact, at)
            yield from self._since(age, fact, at)
            yield from self._idle(age, fact, at)
            yield from self._older(age, fact, at)

    def people_tests(self, at: int) -> Tests:
        """ "customers under 25", "aged between 20 and 30", "the buyer is 40 or older": the age of a person"""
        ages = [fact for fact in self._vocabulary.facts.values() if fact.measure is Measure.YEARS]
        if len(ages) != 1:
            return
        tokens, fact = self._tokens, ages[0]
        start = skipped(tokens, at)
        is_person = is_one_of(tokens, start, _PEOPLE)
        place = skipped(tokens, start + is_person, _AGED)
        named = is_person or (start > 0 and is_one_of(tokens, start - 1, _BEFORE_AGE))
        named = named or any(is_word(tokens, one, "aged", "age") for one in range(max(0, start - 1), place))
        for bound, end in bounds(tokens, place, fact):
            figure = tokens[place:end]
            if any(token.is_money or token.is_percent or token.kind is Kind.CLOCK for token in figure):
                continue
            final = self._after_years(end)
            in_years = any(token.text == "year" for token in figure)
            older = any(token.text in ("older", "younger") for token in figure)
            is_number_of_years = (named or older) and not self._is_duration(place, end)
            if is_number_of_years or (in_years and (named or final > end)):
                yield bound(fact.name), final

    def _is_old(self, age: AgeWords, fact: Fact, at: int) -> Tests:
        """ "account younger than a week", "the card was added less than a day ago" """
        tokens = self._tokens
        for _, after in matches(tokens, at, dict.fromkeys(age.age_of, age.fact)):
            for start in range(after, skipped(tokens, after, _OPENED) + 1):
                for bound, end in bounds(tokens, start, fact):
                    final = self._after_age(end)
                    is_age = (
                        final > end
                        or any(token.text in ("older", "younger", "newer") for token in tokens[start:end])
                        or any(token.text in _EXISTED for token in tokens[after:start])
                    )
                    if is_age and self._is_duration(start, end):
                        yield bound(fact.name), final
                yield from self._days_old(fact, start)
                if start > after:
                    yield from self._within_last(fact, start)

    def _older(self, age: AgeWords, fact: Fact, at: int) -> Tests:
        """ "(business accounts) older than two years" """
        if at and is_word(self._tokens, at, "older", "younger", "newer") and (self._tokens[at - 1].text,) in age.age_of:
            for bound, end in bounds(self._tokens, at, fact):
                if self._is_duration(at, end):
                    yield bound(fact.name), end

    def _days_old(self, fact: Fact, at: int) -> Tests:
        """ "(the account is) 60 days old or older" """
        for figure, end in figures(self._tokens, at):
            more = or_more(self._tokens, end + 1) if is_word(self._tokens, end, "old") else None
            if more is not None and figure.unit in _UNITS and (value := value_for(figure, fact)) is not None:
                yield limit(more[0], value)(fact.name), more[1]

    def _did(self, age: AgeWords, fact: Fact, at: int) -> Tests:
        """ "signed up less than a day ago" """
        for said in age.did:
            start = self._after_verb(at, said)
            if start is None:
                continue
            for place in range(start, skipped(self._tokens, start, ("only", "just", "for", "with", "us")) + 1):
                lasting = any(is_word(self._tokens, one, "for") for one in range(start, place))
                for bound, end in bounds(self._tokens, place, fact):
                    final = self._after_age(end)
                    if self._is_duration(place, end) and (final > end or lasting):
                        yield bound(fact.name), final
            yield from self._within_last(fact, start)

    def _idle(self, age: AgeWords, fact: Fact, at: int) -> Tests:
        """ "no transaction for over six weeks" """
        for said in age.idle:
            after = phrase(self._tokens, skipped(self._tokens, at), " ".join(said))
            for bound, end in bounds(self._tokens, after, fact) if after is not None else ():
                if self._is_duration(after or 0, end):
                    yield bound(fact.name), end

    def _within_last(self, fact: Fact, at: int) -> Tests:
        """ "(the account was opened) within the last two days" """
        for after in after_any(self._tokens, at, _WITHIN_LAST):
            for figure, end in figures(self._tokens, after):
                if figure.unit in _UNITS and (value := value_for(figure, fact)) is not None:
                    yield limit(Op.AT_MOST, value)(fact.name), end

    def _since(self, age: AgeWords, fact: Fact, at: int) -> Tests:
        """ "within a day of signing up" """
        for bound, end in bounds(self._tokens, at, fact) if age.since else ():
            if self._is_duration(at, end) and is_one_of(self._tokens, end, _AFTER_EVENT):
                for _, final in matches(self._tokens, end + 1, dict.fromkeys(age.since, age.fact)):
                    yield bound(fact.name), final
                person = skipped(self._tokens, end + 1, _PEOPLE | DETERMINERS | {"they", "he", "she"})
                for _, final in matches(self._tokens, person, dict.fromkeys(age.did, age.fact)):
                    yield bound(fact.name), final

    def _after_verb(self, at: int, said: Words) -> int | None:
        """The place after what somebody did, if these words stand here: "a customer who opened an account"."""
        place = skipped(self._tokens, at, _WHO)
        if not is_word(self._tokens, place, said[0]):
            return None
        for word in said[1:]:
            place = skipped(self._tokens, place + 1)
            if not is_word(self._tokens, place, word):
                return None
        return place + 1

    def _is_duration(self, start: int, end: int) -> bool:
        return any(figure.unit in _UNITS for place in range(start, end) for figure, _ in figures(self._tokens, place))

    def _after_age(self, at: int) -> int:
        """After "old", "ago", "before the purchase"."""
        tokens = self._tokens
        if is_word(tokens, at, "old", "ago", "earlier"):
            return at + 1
        if is_word(tokens, at, "before", "prior"):
            place = skipped(tokens, at + 1 + is_word(tokens, at + 1, "to"))
            return place + 1 if is_one_of(tokens, place, _TRANSACTIONS) else at + 1
        return at

    def _after_years(self, at: int) -> int:
        """After "years old", "years of age", "old"."""
        final = at
        for said in ("year old", "year of age", "of age", "old"):
            final = phrase(self._tokens, at, said) or final
        return final
