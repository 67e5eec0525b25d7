"""Days and months of one of two events: "an accident on a Friday", "claimed in December", "the week of the claim".

Where one fact is named after another, such as `MonthClaimed` after `Month`, the longer name tells which event it is
about, and the shorter one is about the other event that names of facts speak of.
"""

from __future__ import annotations

from functools import cached_property

from acefraud.rules.reader.bounds import Tests
from acefraud.rules.reader.names import Fact
from acefraud.rules.reader.phrases import Tokens, is_one_of, skipped
from acefraud.rules.reader.values import Values, among
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import words

_LINKS = words("event_links")
_WEEKEND = ("Saturday", "Sunday")


class EventTests:
    """Reads tests of the day or the month of an event."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary, values: Values) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        self._values = values

    @cached_property
    def _dated(self) -> dict[str, list[Fact]]:
        """The categories that tell when an event was, by the words for the event."""
        found: dict[str, list[Fact]] = {}
        for fact, event in self._vocabulary.events.items():
            for word in event:
                found.setdefault(word, []).append(self._vocabulary.facts[fact])
        return found

    def tests(self, at: int) -> Tests:
        """Every test of the day or the month of an event that is named here."""
        start = skipped(self._tokens, at)
        if is_one_of(self._tokens, start, self._dated):
            event, after = self._tokens[start].text, skipped(self._tokens, start + 1, _LINKS)
        elif is_one_of(self._tokens, at, ("on", "in")):  # "the accident was in a rural area on a Sunday"
            before = [token.text for token in self._tokens[:at] if token.text in self._dated]
            event, after = (before[0] if len(set(before)) == 1 else ""), skipped(self._tokens, at + 1)
        else:
            return
        for fact in self._dated.get(event, ()) if after > start else ():
            if fact.kind != "category":
                continue
            for values, end in self._values.several(fact, after):
                yield among(fact.name, values), end
            if is_one_of(self._tokens, after, ("weekend",)) and set(_WEEKEND) <= set(fact.values):
                yield among(fact.name, list(_WEEKEND)), after + 1
