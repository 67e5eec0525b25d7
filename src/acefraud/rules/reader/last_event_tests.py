"""What is said of the last transaction of an entity: how long ago and how far away it was."""

from __future__ import annotations

from collections.abc import Iterator

from acefraud.rules.reader.bounds import Bound, Bounds, Tests, bounds
from acefraud.rules.reader.history_figures import BELONGS
from acefraud.rules.reader.measures import Measure
from acefraud.rules.reader.names import Fact
from acefraud.rules.reader.nouns import Nouns
from acefraud.rules.reader.phrases import DETERMINERS, Tokens, after_any, after_be, is_one_of, is_word, phrase, skipped
from acefraud.rules.reader.quantities import KILOMETRES
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import phrases, words

_TRANSACTIONS = words("transactions")
_AFTER_EVENT = words("after_event")
_AGAIN = words("again")
_QUIET = words("quiet")
_MOVED = words("moved")
_LAST_PLACE = phrases("last_place")
_DURATION = Fact("", "number", Measure.HOURS)


class LastEventTests:
    """Reads tests of the time, the distance and the speed since the last transaction of an entity."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary, nouns: Nouns) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        self._nouns = nouns

    def tests(self, at: int) -> Tests:
        """Every test of what has passed since the last transaction that begins here."""
        for entity, after in self._nouns.owner(at):
            yield from self._was_ago(entity, after)
            yield from self._is_back(entity, after)
        yield from self._silent(at)
        yield from self._last_of_entity(at)
        yield from self._duration_first(at)
        yield from self._time_since(at)
        for entity, after in self._nouns.owner(at):
            yield from self._from_last_place(entity, after)
            yield from self._moved(entity, after)
        yield from self._distance_first(at)

    # --- time ---

    def _was_ago(self, entity: str, at: int) -> Tests:
        """ "(the card's) last transaction was less than an hour ago" """
        last = self._last_transaction(at)
        if last is None:
            last = self._last_transaction(skipped(self._tokens, at, ("has",)))
        if last is not None:
            yield from self._ago(entity, last, ("ago", "earlier", "before", "old", "back"))
        place = skipped(self._tokens, at, ("that", "which", "who", "is", "has", "be"))
        for used in after_any(self._tokens, place, ("last used", "last seen", "last active", "used")):
            yield from self._ago(entity, used, ("ago", "earlier", "back"))

    def _last_of_entity(self, at: int) -> Tests:
        """ "the last transaction of the card was less than an hour ago" """
        last = self._last_transaction(at)
        if last is not None and is_word(self._tokens, last, "of", "on", "by", "with", "from"):
            for entity, after in self._nouns.entity(last + 1):
                yield from self._ago(entity, after, ("ago", "back", "earlier"))
        if last is not None and (only := self._nouns.only_before(at)) is not None:
            yield from self._ago(only, last, ("ago", "back", "earlier"))

    def _ago(self, entity: str, at: int, ago: tuple[str, ...]) -> Tests:
        """ "is less than an hour ago", of the last transaction of an entity"""
        for place in after_be(self._tokens, at):
            for bound, end in bounds(self._tokens, place, _DURATION):
                if is_word(self._tokens, end, *ago):
                    yield from self._since_last(entity, bound, end + 1)

    def _is_back(self, entity: str, at: int) -> Tests:
        """ "(the card is) back within an hour of its last transaction" """
        for bound, start in self._durations_after(skipped(self._tokens, at, _AGAIN)):
            if (end := self._last_transaction(start)) is not None:
                yield from self._since_last(entity, bound, end)
        again = skipped(self._tokens, at, _AGAIN)
        if is_word(self._tokens, again - 1, "again", "back"):
            for bound, end in bounds(self._tokens, again, _DURATION):
                if is_word(self._tokens, again, "within"):
                    yield from self._since_last(entity, bound, end)

    def _silent(self, at: int) -> Tests:
        """ "merchant quiet for more than 60 days" """
        tokens = self._tokens
        for entity, after in self._nouns.entity(at):
            place = skipped(tokens, after, ("who", "that", "which", "is", "has", "be"))
            unused = next(after_any(tokens, place, ("not be used", "not used", "not be active", "not active")), None)
            if unused is not None and is_word(tokens, unused, "for", "in"):
                for bound, end in bounds(tokens, unused + 1, _DURATION) if is_word(tokens, unused, "for") else ():
                    yield from self._since_last(entity, bound, end)
            if is_one_of(tokens, place, _QUIET):
                for bound, end in bounds(tokens, place + 1 + is_word(tokens, place + 1, "for"), _DURATION):
                    yield from self._since_last(entity, bound, end)

    def _duration_first(self, at: int) -> Tests:
        """ "within an hour of the card's last transaction", "less than a day after its last transaction" """
        for bound, start in self._durations_after(at):
            if is_word(self._tokens, start, "its", "their") and (end := self._last_transaction(start)) is not None:
                yield from self._since_last(self._nouns.only_before(at), bound, end)
            for entity, then in self._nouns.owner(skipped(self._tokens, start)):
                if (end := self._last_transaction(then)) is not None:
                    yield from self._since_last(entity, bound, end)
            last = self._last_transaction(start)  # "since the last transaction of the card"
            if last is not None and is_word(self._tokens, last, "of", "on", "by", "with", "from"):
                for entity, end in self._nouns.entity(last + 1):
                    yield from self._since_last(entity, bound, end)

    def _time_since(self, at: int) -> Tests:
        """ "hours since the card's last transaction are below 2" """
        tokens = self._tokens
        for start in after_any(tokens, skipped(tokens, at), ("hour since", "time since")):
            for entity, then in self._nouns.owner(skipped(tokens, start)):
                fact = self._vocabulary.facts.get(f"{entity}_hours_since_last")
                end = self._last_transaction(then)
                if fact is not None and end is not None:
                    yield from self._bounded(fact, end)

    def _durations_after(self, at: int) -> Bounds:
        """A duration with the place after "of", "since" and the like, which must follow."""
        for bound, end in bounds(self._tokens, at, _DURATION):
            if is_one_of(self._tokens, end, _AFTER_EVENT):
                yield bound, end + 1

    def _since_last(self, entity: str | None, bound: Bound, end: int) -> Tests:
        if (name := f"{entity}_hours_since_last") in self._vocabulary.facts:
            yield bound(name), end

    def _last_transaction(self, at: int) -> int | None:
        """The place after "its last transaction"."""
        place = skipped(self._tokens, at)
        if not is_word(self._tokens, place, "last", "previous", "latest", "preceding", "prior"):
            return None
        named = is_one_of(self._tokens, place + 1, _TRANSACTIONS)
        return place + 2 if named or is_word(self._tokens, place + 1, "one", "use", "activity") else None

    # --- places ---

    def _from_last_place(self, entity: str, at: int) -> Tests:
        """ "(the card's) last place is more than 500 km away" """
        if (fact := self._from_last(entity, "km")) is None:
            return
        for place in after_any(self._tokens, skipped(self._tokens, at), _LAST_PLACE):
            for test, end in self._bounded(fact, place):
                yield test, end + is_word(self._tokens, end, "away", "off", "apart")

    def _moved(self, entity: str, at: int) -> Tests:
        """ "(the card) travelled at over 900 km/h", "(the card) is more than 500 km from its last place" """
        tokens = self._tokens
        place = skipped(tokens, at, _MOVED)
        if (speed := self._from_last(entity, "kmh")) is not None:
            for bound, end in bounds(tokens, place, speed):
                if any(token.text in ("km/h", "kph", "kmh") for token in tokens[place:end]):
                    yield bound(speed.name), self._after_last(end)
        if (distance := self._from_last(entity, "km")) is not None:
            for bound, end in bounds(tokens, place, distance):
                if tokens[end - 1].text in KILOMETRES:
                    final = self._after_last(end + is_word(tokens, end, "away", "off"))
                    if final > end:
                        yield bound(distance.name), final

    def _distance_first(self, at: int) -> Tests:
        """ "the distance from the card's last place is above 500 km", "the speed of the card is ..." """
        tokens = self._tokens
        for word, unit in (("distance", "km"), ("speed", "kmh")):
            start = phrase(tokens, skipped(tokens, at), word)
            for entity, after in self._owners_of(start) if start is not None else ():
                if (fact := self._from_last(entity, unit)) is not None:
                    yield from self._bounded(fact, self._after_place(after))
        anywhere = Fact("", "number", Measure.KM)
        for bound, end in bounds(tokens, at, anywhere):  # "more than 500 km from the card's last place"
            if tokens[end - 1].text not in KILOMETRES:
                continue
            away = end + is_word(tokens, end, "away", "off")
            for entity, after in self._owners_of(away + 1) if is_word(tokens, away, "from") else ():
                final = self._last_transaction(after) or next(after_any(tokens, after, _LAST_PLACE), None)
                if (fact := self._from_last(entity, "km")) is not None and final is not None:
                    yield bound(fact.name), final

    def _owners_of(self, at: int) -> Iterator[tuple[str, int]]:
        return self._nouns.owner(skipped(self._tokens, at, BELONGS | DETERMINERS))

    def _from_last(self, entity: str, unit: str) -> Fact | None:
        return self._vocabulary.facts.get(f"{entity}_{unit}_from_last")

    def _bounded(self, fact: Fact, at: int) -> Tests:
        for place in after_be(self._tokens, at):
            for bound, end in bounds(self._tokens, place, fact):
                yield bound(fact.name), end

    def _after_last(self, at: int) -> int:
        """The place after "since its last transaction" or "from its last place", if that follows."""
        place = skipped(self._tokens, at, ("since", "from", "of", "than"))
        if place == at:
            return at
        if (end := self._last_transaction(place)) is not None:
            return end
        start = skipped(self._tokens, place)
        return self._after_place(start) if is_word(self._tokens, start, "last") else at

    def _after_place(self, at: int) -> int:
        return next(after_any(self._tokens, at, (*_LAST_PLACE, "last transaction")), at)
