"""Which facts and entities the words of a sentence name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acefraud.rules.reader.names import Fact
from acefraud.rules.reader.phrases import Tokens, is_one_of, is_word, matches, skipped
from acefraud.rules.reader.tokens import Kind
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import words

Entities = tuple[Sequence[str], str]
"""Names of entities, and whether "all", "any" or "none" of them are meant."""

_OWNERS = words("owners")
_OPENINGS = ("if", "when", "where", "whenever", "once", "for", "the", "a", "an", "this", "any")
_OF = ("on", "of", "by", "with", "for", "from", "at")
_SEVERAL = (
    ("both", "and", "all"),
    ("either", "or", "any"),
    ("neither", "nor", "none"),
    ("", "or", "any"),
    ("", "and", "all"),
)
"""What opens and joins a list of entities, and how many of them are meant."""


class Nouns:
    """Finds the facts and entities that are named at a place of a sentence."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        self._facts_at: dict[tuple[int, tuple[str, ...]], list[tuple[Fact, int]]] = {}
        self._entities_at: dict[int, list[tuple[str, int]]] = {}

    def facts(self, at: int, *kinds: str) -> list[tuple[Fact, int]]:
        """The facts of these kinds that are named here, each with the place after its name."""
        key = at, kinds
        if key not in self._facts_at:
            self._facts_at[key] = list(self._named_facts(at, kinds))
        return self._facts_at[key]

    def entity(self, at: int) -> list[tuple[str, int]]:
        """An entity: "the card", "this user", "one device"."""
        if at not in self._entities_at:
            self._entities_at[at] = [*matches(self._tokens, at, self._vocabulary.entities), *self._pronoun(at)]
        return self._entities_at[at]

    def _pronoun(self, at: int) -> Iterator[tuple[str, int]]:
        """ "(at least one known fraud on) it", "it (was used ...)": the only entity that was spoken of before"""
        as_object = at > 0 and is_word(self._tokens, at, "it", "them") and is_one_of(self._tokens, at - 1, _OF)
        as_subject = is_word(self._tokens, at, "it", "they") and is_word(self._tokens, at + 1, "is", "has")
        if not as_object and not as_subject:
            return
        if (only := self.only_before(at)) is not None:
            yield only, at + 1

    def owner(self, at: int) -> Iterator[tuple[str, int]]:
        """An entity, perhaps with "'s" after it: "the card's"."""
        for name, after in self.entity(at):
            yield name, after + is_word(self._tokens, after, "'s")
        if is_word(self._tokens, at, "its", "their") and (only := self.only_before(at)) is not None:
            yield only, at + 1

    def only_before(self, at: int) -> str | None:
        """The entity that was named before a place, if there is only one."""
        named = {name for place in range(at) for name, _ in self.entity(place)}
        return named.pop() if len(named) == 1 else None

    def subject(self, at: int) -> str | None:
        """The entity that the sentence is about: it stands first, and no other one is named before this place."""
        start = skipped(self._tokens, 0, _OPENINGS)
        first = self.entity(start) if start < at else []
        return first[0][0] if first and self.only_before(at) == first[0][0] else None

    def entities(self, at: int) -> Iterator[tuple[Entities, int]]:
        """One entity or several: "both the card and the device", "neither the user nor the card"."""
        for name, after in self.entity(at):
            yield ([name], "all"), after
        for opening, joint, how in _SEVERAL:
            if not opening or is_word(self._tokens, at, opening):
                names, after = self._joined_entities(at + bool(opening), joint)
                if len(names) > 1:
                    yield (names, how), after

    def _joined_entities(self, at: int, joint: str) -> tuple[list[str], int]:
        """The entities that follow each other after commas or a joint; none if the list breaks off."""
        names: list[str] = []
        while found := self.entity(at):
            names, after = [*names, found[0][0]], found[0][1]
            if not is_word(self._tokens, after, joint, ","):
                return names, after
            at = after + 1 + is_word(self._tokens, after + 1, joint)
        return [], at

    def _named_facts(self, at: int, kinds: tuple[str, ...]) -> Iterator[tuple[Fact, int]]:
        if at >= len(self._tokens):
            return
        start = skipped(self._tokens, at)
        name = self._column_name(start)
        if name is None:
            for names, after in matches(self._tokens, at, self._vocabulary.nouns):
                for one in names:
                    if (fact := self._vocabulary.facts[one]).kind in kinds:
                        yield fact, self._after_owner(after)
        elif (name := self._vocabulary.lower_names.get(name.lower(), name)) in self._vocabulary.facts:
            if (fact := self._vocabulary.facts[name]).kind in kinds:
                yield fact, start + 1
        elif self._vocabulary.is_open:
            yield from ((Fact(name, kind), start + 1) for kind in kinds)

    def _column_name(self, at: int) -> str | None:
        """The name of a fact in backticks or with an underscore, if one stands here."""
        token = self._tokens[at] if at < len(self._tokens) else None
        if token is None:
            return None
        if token.kind is Kind.FACT:
            return token.text
        return token.shown if token.kind is Kind.WORD and "_" in token.shown else None

    def _after_owner(self, at: int) -> int:
        """After "of the transaction" and the like, which adds nothing."""
        if is_word(self._tokens, at, "of"):
            place = skipped(self._tokens, at + 1)
            if is_one_of(self._tokens, place, _OWNERS):
                return place + 1
        return at
