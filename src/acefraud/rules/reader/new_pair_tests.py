"""Whether two entities have met before: "a card that is new to the merchant", "never seen at this merchant"."""

from __future__ import annotations

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.bounds import Tests
from acefraud.rules.reader.nouns import Nouns
from acefraud.rules.reader.phrases import Tokens, is_one_of, is_word, skipped
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import words

_SEEN = words("seen")
_PAIR_LINKS = words("pair_links")
_WITH_NEW = words("with_new")
_COMES = words("comes_back")


class NewPairTests:
    """Reads tests of whether an entity is new to another one."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary, nouns: Nouns) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        self._nouns = nouns

    def tests(self, at: int) -> Tests:
        """Every test of whether two entities have met that begins here."""
        for entity, after in self._nouns.entity(at):
            yield from self._is_new_to(entity, after)
            yield from self._was_seen(entity, after)
            yield from self._never_seen(entity, after)
            yield from self._with_new(entity, after)
        yield from self._new_first(at)
        yield from self._comes_with_new(at)

    def _is_new_to(self, one: str, at: int) -> Tests:
        """ "(a card) that is not new to the merchant" """
        start, negated = self._after_not(at)
        is_new = is_word(self._tokens, start, "new", "unknown")
        if is_new and is_word(self._tokens, start + 1, "to", "for", "on", "at", "with"):
            for other, end in self._nouns.entity(start + 2):
                yield from self._is_new(other, one, not negated, end)

    def _was_seen(self, one: str, at: int) -> Tests:
        """ "(a card) seen at the merchant before" """
        place = skipped(self._tokens, at, ("is", "has", "be", "already"))
        already = is_word(self._tokens, place - 1, "already")
        seen = place + is_word(self._tokens, place, "seen", "used", "known", "bought", "shopped", "paid")
        met = seen + is_word(self._tokens, seen, "with", "at", "on", "by", "to", "from")
        by = is_word(self._tokens, met - 1, "by")
        for other, end in self._nouns.entity(met) if met > at else ():
            if (final := self._before(end)) > end or (already and seen > place):
                yield from self._is_new(other if by else one, one if by else other, False, final)

    def _never_seen(self, one: str, at: int) -> Tests:
        """ "(a card) never seen at the merchant before", "(a card) that was not used with this device" """
        start, negated = self._after_not(at)
        start = skipped(self._tokens, start, ("be",))
        never = is_word(self._tokens, start, "never")
        if not never and not (negated and is_one_of(self._tokens, start, _SEEN)):
            return
        seen = skipped(self._tokens, start + never, _SEEN | {"is"})
        link = skipped(self._tokens, seen, _PAIR_LINKS)
        by = is_word(self._tokens, link - 1, "by")
        for other, end in self._nouns.entity(link):
            yield from self._is_new(other if by else one, one if by else other, True, self._before(end))

    def _with_new(self, one: str, at: int) -> Tests:
        """ "(a card) with a new device" """
        place = skipped(self._tokens, skipped(self._tokens, at, _WITH_NEW))
        if place > at:
            yield from self._new_ones(one, place)

    def _new_ones(self, one: str, at: int) -> Tests:
        """ "a new card and a new device", of an entity"""
        place = skipped(self._tokens, at)
        for other, end in self._nouns.entity(place + 1) if is_word(self._tokens, place, "new") else ():
            for first, after in self._is_new(one, other, True, end):
                yield first, after
                if is_word(self._tokens, after, "and"):
                    for more, final in self._new_ones(one, after + 1):
                        yield Condition.all_of([first, more]), final

    def _comes_with_new(self, at: int) -> Tests:
        """ "comes back with a new device", of the only entity that was spoken of"""
        negated = is_word(self._tokens, at, "not")
        place = skipped(self._tokens, at + negated, _COMES)
        subject = self._nouns.subject(at)
        if subject is None or (negated and place > at + 1):
            return
        if is_word(self._tokens, place, "with", "on", "using", "from", "at"):
            for condition, end in self._new_ones(subject, place + 1):
                if len(condition.parts) == 1 or not negated:
                    yield condition.negated() if negated else condition, end
        if not negated and is_word(self._tokens, at, "is"):  # "(the merchant ...) and is new to the card"
            yield from self._is_new_to(subject, at)
        if not negated and is_word(
            self._tokens, at, "is", "has"
        ):  # "(the card ...) and has not been used in this store"
            yield from self._never_seen(subject, at)
            yield from self._was_seen(subject, at)

    def _new_first(self, at: int) -> Tests:
        """ "a new device for the card" """
        start = skipped(self._tokens, at)
        if not is_word(self._tokens, start, "new"):
            return
        for one, after in self._nouns.entity(start + 1):
            link = skipped(self._tokens, after, ("for", "to", "on", "with", "of"))
            for other, end in self._nouns.entity(link) if link > after else ():
                yield from self._is_new(other, one, True, end)

    def _after_not(self, at: int) -> tuple[int, bool]:
        """The place after "is" or "is not", and whether "not" was there."""
        place = skipped(self._tokens, at, ("is", "has", "that", "which", "be"))
        negated = is_word(self._tokens, place, "not")
        return place + negated, negated

    def _is_new(self, entity: str, other: str, holds: bool, end: int) -> Tests:
        """Whether the other is new to an entity. Both have met or not, so the fact of the other side will do too.

        They differ only where the busier one has forgotten the other, so the entity that was spoken of comes first.
        """
        for name in (f"{entity}_new_{other}", f"{other}_new_{entity}"):
            if name in self._vocabulary.facts:
                yield Condition.of(Test(name, Op.IS, holds)), end
                return

    def _before(self, at: int) -> int:
        return at + is_word(self._tokens, at, "before", "previously", "earlier", "yet", "until")
