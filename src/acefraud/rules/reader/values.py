"""Which values of a category the words of a sentence name: "US", "one of Honda, Toyota or Mazda"."""

from __future__ import annotations

from collections.abc import Iterator

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.countries import COUNTRY_NAMES
from acefraud.rules.reader.names import Fact
from acefraud.rules.reader.phrases import Tokens, is_word, matches, skipped
from acefraud.rules.reader.tokens import Kind
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import words

_ORDINARY = words("ordinary_words")


class Values:
    """Finds the values of categories at a place of a sentence."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary

    def one(self, fact: Fact, at: int) -> tuple[str, int] | None:
        """The value of a category that stands here, with the place after it."""
        if at >= len(self._tokens):
            return None
        token = self._tokens[at]
        if token.kind is Kind.QUOTED:
            return _as_kept(token.text, fact), at + 1
        for start in (at, skipped(self._tokens, at)):
            for meanings, end in matches(self._tokens, start, self._vocabulary.values, exact=True):
                for meaning in meanings:
                    is_code = meaning.value.isupper()
                    if meaning.fact == fact.name and not (is_code and self.is_ordinary(start, end)):
                        return meaning.value, end
        return None

    def several(self, fact: Fact, at: int) -> Iterator[tuple[list[str], int]]:
        """One value or more: "US", "US or GB", "one of Honda, Toyota or Mazda", "either 8 or 3"."""
        tokens = self._tokens
        values: list[str] = []
        place = at if self.one(fact, at) is not None else skipped(tokens, at)
        opened = is_word(tokens, place, "(")
        place += opened
        while (found := self.one(fact, place)) is not None:
            values, place = [*values, found[0]], found[1]
            if not opened or is_word(tokens, place, ")"):
                yield values, place + opened
            after = self.after_joint(place)
            if after == place or (len(values) == 1 and self.is_comma_or(place)):
                return
            place = skipped(tokens, after)

    def after_joint(self, at: int) -> int:
        """The place after commas, "or" and the like between two values."""
        return skipped(self._tokens, at, (",", "or", "nor", "/", "and"))

    def is_comma_or(self, at: int) -> bool:
        """Whether ", or" stands here, which ends a test where no list has begun: "it is a transfer, or online"."""
        return is_word(self._tokens, at, ",") and is_word(self._tokens, at + 1, "or")

    def is_ordinary(self, start: int, end: int) -> bool:
        """Whether a word is more likely an ordinary one than a code: "in" and "and", but not "IN" and "AND"."""
        token = self._tokens[start]
        is_code = token.text.upper() in COUNTRY_NAMES and token.shown.lower() == token.text
        code = token.text in _ORDINARY or is_code
        return end == start + 1 and code and not token.shown.isupper()


def among(fact: str, values: list[str], *, negated: bool = False) -> Condition:
    """The test that a category has one of these values, or that it has none of them.

    >>> str(among("country", ["US"])), str(among("country", ["US", "GB", "US"], negated=True))
    ('country is "US"', 'country not in ("US", "GB")')
    """
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return Condition.of(Test(fact, Op.IS_NOT if negated else Op.IS, distinct[0]))
    return Condition.of(Test(fact, Op.NOT_IN if negated else Op.IN, tuple(distinct)))


def _as_kept(value: str, fact: Fact) -> str:
    """A quoted value, with the letter case of the values at hand."""
    if value in fact.values:
        return value
    alike = [one for one in fact.values if one.lower() == value.lower()]
    return alike[0] if len(alike) == 1 else value
