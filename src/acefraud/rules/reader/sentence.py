"""A sentence: which words, facts, entities and values stand at a place of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, wraps
from typing import Any, TypeVar

from acefraud.core.condition import Condition
from acefraud.rules.reader.facts import COUNTRY_NAMES, Fact
from acefraud.rules.reader.tokens import DETERMINERS, Kind, PhraseList, PhraseTable, Token, Words, grammar_words, words
from acefraud.rules.reader.vocabulary import Vocabulary

T = TypeVar("T")
Tests = Iterator[tuple[Condition, int]]
"""Conditions, each with the place after its words."""
Bound = Callable[[str], Condition]
"""Makes the condition for a fact of that name."""
Bounds = Iterator[tuple[Bound, int]]
"""Each with the place after its words."""
Entities = tuple[Sequence[str], str]
"""Names of entities, and whether "all", "any" or "none" of them are meant."""

_BE = words("be")
_WORDS_AND_SIGNS = (Kind.WORD, Kind.SIGN)
_JOINTS = frozenset("-–—/&")
"""Signs inside a name, as in "Sedan - Liability"."""
_OWNERS = words("owners")
_OPENINGS = ("if", "when", "where", "whenever", "once", "for", "the", "a", "an", "this", "any")
_VERBS = ("is", "has", "do", "bought", "made", "spent")
_OF = ("on", "of", "by", "with", "for", "from", "at")
_SEVERAL = (
    ("both", "and", "all"), ("either", "or", "any"), ("neither", "nor", "none"), ("", "or", "any"), ("", "and", "all"),
)  # fmt: skip
"""What opens and joins a list of entities, and how many of them are meant."""
_SEEN, _CUSTOMERS = words("seen"), words("same_customer")
_COUNTED = words("different") | words("ones") - {"one"}
"""Words before entities that are counted: "5 different cards"."""
_ORDINARY = words("ordinary_words")
_AFTER_NAME = words("after_name")
"""Words that may follow a number that is a name."""


def remembered(read: Callable[[Sentence, int], Iterable[T]]) -> Callable[[Sentence, int], list[T]]:
    """Reads each place of a sentence only once."""

    @wraps(read)
    def once(sentence: Sentence, at: int) -> list[T]:
        known = sentence.memory[read]
        if (found := known.get(at)) is None:
            found = known[at] = list(read(sentence, at))
        return found

    return once


class Sentence:
    """Tokens, and the vocabulary in whose words they are read. A place is the index of a token."""

    def __init__(self, tokens: Sequence[Token], vocabulary: Vocabulary) -> None:
        self.tokens = tokens
        self.vocabulary = vocabulary
        self.words = tuple(token.text if token.kind in _WORDS_AND_SIGNS else None for token in tokens)
        """The words and signs; None for other tokens."""
        self._named = [frozenset[str]()]
        """The entities that are named before each place, as far as that was asked for."""
        self._parts: dict[tuple[int, int | None], Sentence] = {}
        self.memory: dict[object, dict[int, list[Any]]] = defaultdict(dict)
        """What each `remembered` reader found, by place."""

    def part(self, start: int, end: int | None = None) -> Sentence:
        """The sentence from one place to another, as a sentence of its own."""
        if (start, end) not in self._parts:
            self._parts[start, end] = Sentence(self.tokens[start:end], self.vocabulary)
        return self._parts[start, end]

    # --- words ---

    def token(self, at: int) -> Token | None:
        """The token at a place, if the sentence goes that far."""
        return self.tokens[at] if at < len(self.tokens) else None

    def said(self, start: int, end: int) -> Words:
        """The words between two places."""
        return tuple(token.text for token in self.tokens[start:end])

    def shown(self, start: int, end: int) -> Words:
        """The words between two places as they were written."""
        return tuple({token.start: token.shown for token in self.tokens[start:end]}.values())

    def is_word(self, at: int, *some: str) -> bool:
        """Whether the token at a place is one of these words or signs."""
        return 0 <= at < len(self.words) and self.words[at] in some

    def is_one_of(self, at: int, some: Collection[str]) -> bool:
        """Whether the token at a place is one of a list of words or signs."""
        return 0 <= at < len(self.words) and self.words[at] in some

    def is_mere_word(self, at: int, some: Collection[str]) -> bool:
        """Whether a word of a list stands here that is not a value of a category."""
        return self.is_one_of(at, some) and (self.tokens[at].text,) not in self.vocabulary.values

    def is_plural(self, at: int, nouns: Collection[str] | None = None) -> bool:
        """Whether a noun in the plural stands here, and one of these if they are given."""
        token = self.token(at)
        if token is None or token.kind is not Kind.WORD or (nouns is not None and token.text not in nouns):
            return False
        shown = token.shown.lower()
        return shown in ("men", "women", "people") or (shown.endswith("s") and shown != token.text)

    def has_word(self, start: int, end: int, *some: str) -> bool:
        """Whether one of these words stands between two places."""
        words = self.words
        return any(words[index] in some for index in range(start, min(end, len(words))))

    def after(self, at: int, *phrases: str) -> list[int]:
        """The place after each of these phrases that stands here."""
        return self.after_one_of(at, _as_phrases(phrases))

    def after_one_of(self, at: int, phrases: PhraseList[Any]) -> list[int]:
        """The place after each phrase of a list that stands here."""
        index, words = phrases.by_first_word, self.words
        found = index.get(words[at], index[None]) if at < len(words) else index[None]
        return [end for said, _ in found if words[at : (end := at + len(said))] == said] if found else []

    def past(self, at: int, *phrases: str) -> int:
        """The place after the first of these phrases that stands here; the same place if none does."""
        return next(iter(self.after(at, *phrases)), at)

    def meanings(self, at: int, phrases: PhraseList[T]) -> list[tuple[T, int]]:
        """What the phrases that stand here mean, each with the place after it."""
        index, words = phrases.by_first_word, self.words
        found = index.get(words[at], index[None]) if at < len(words) else index[None]
        if not found:
            return []
        return [(meaning, at + len(said)) for said, meaning in found if words[at : at + len(said)] == said]

    def skipped(self, at: int, some: Collection[str] = DETERMINERS) -> int:
        """The place after the words of a list that stand here."""
        if some is DETERMINERS:
            return self._after_determiners[at] if at < len(self.words) else at
        words = self.words
        while at < len(words) and words[at] in some:
            at += 1
        return at

    @cached_property
    def _after_determiners(self) -> list[int]:
        """For each place the next one where no determiner stands."""
        after = [len(self.words)]
        for at in reversed(range(len(self.words))):
            after.append(after[-1] if self.words[at] in DETERMINERS else at)
        return after[:0:-1]

    def after_be(self, at: int) -> list[int]:
        """The places where what is said of a subject may begin: after "is", "that is", "stays" and the like."""
        places = [at]
        while self.is_one_of(places[-1], _BE) or (len(places) == 1 and self.is_word(at, ":")):
            places.append(places[-1] + 1)
        return places

    def matches(self, at: int, table: PhraseTable[T], *, exact: bool = False) -> list[tuple[T, int]]:
        """What the words from here on mean in a table, the longest first. Determiners do not matter, unless `exact`."""
        first = at if exact else self.skipped(at)
        if first >= len(self.tokens) or self.tokens[first].text not in table.first_words:
            return []
        meanings: list[tuple[T, int]] = []
        said: Words = ()
        for index in range(first, len(self.tokens)):
            token = self.tokens[index]
            if token.kind in (Kind.SIGN, Kind.QUOTED):
                if said and token.text in _JOINTS:
                    continue
                break
            if not exact and token.kind is Kind.WORD and token.text in DETERMINERS:
                continue
            said = (*said, token.text)
            if (meaning := table.get(said)) is not None:
                meanings.append((meaning, index + 1))
            if said not in table.openings:
                break
        return meanings[::-1]

    # --- facts ---

    def facts(self, at: int, *kinds: str) -> list[tuple[Fact, int]]:
        """The facts of these kinds that are named here, each with the place after its name."""
        return [(fact, after) for fact, after in self._named_facts(at) if fact.kind in kinds]

    @remembered
    def _named_facts(self, at: int) -> Iterator[tuple[Fact, int]]:
        facts = self.vocabulary.facts
        start = self.skipped(at)
        token = self.token(start)
        is_column = token is not None and (token.kind is Kind.FACT or (token.kind is Kind.WORD and "_" in token.shown))
        if token is None or not is_column:
            for names, after in self.matches(at, self.vocabulary.nouns):
                owner = self.skipped(after + 1)  # "of the transaction" and the like adds nothing
                is_owned = self.is_word(after, "of") and self.is_one_of(owner, _OWNERS)
                yield from ((facts[noun], owner + 1 if is_owned else after) for noun in names)
            return
        name = token.text if token.kind is Kind.FACT else token.shown
        if (name := self.vocabulary.lower_names.get(name.lower(), name)) in facts:
            yield facts[name], start + 1
        elif self.vocabulary.is_open:
            yield from ((Fact(name, kind), start + 1) for kind in ("number", "category", "flag"))

    # --- entities ---

    @remembered
    def entity(self, at: int) -> Iterator[tuple[str, int]]:
        """An entity: "the card", "this user", "one device", or "it" if only one was spoken of before."""
        for name, after in self.matches(at, self.vocabulary.entities):
            if not (self.is_word(after - 1, "phone") and self.is_word(after, "number")):
                yield name, after
        if not self.is_word(at, "it", "they", "them"):
            return
        as_object = at > 0 and not self.is_word(at, "they") and self.is_one_of(at - 1, _OF)
        as_subject = self.is_word(at, "it", "they") and self.is_one_of(at + 1, _VERBS)
        if (as_object or as_subject) and (only := self.only_before(at)) is not None:
            yield only, at + 1

    def owner(self, at: int) -> Iterator[tuple[str, int]]:
        """An entity, perhaps with "'s" after it: "the card's"."""
        for name, after in self.entity(at):
            yield name, after + self.is_word(after, "'s")
        if self.is_word(at, "its", "their") and (only := self.spoken_of(at)) is not None:
            yield only, at + 1
        elif self.is_word(at, "his", "her", "their"):
            customers = [name for name in self._named_before(at) if name in _CUSTOMERS]
            if len(customers) == 1:
                yield customers[0], at + 1

    def only_before(self, at: int) -> str | None:
        """The entity that was named before a place, if there is only one."""
        named = self._named_before(at)
        return next(iter(named)) if len(named) == 1 else None

    def spoken_of(self, at: int) -> str | None:
        """The same, whatever entities were counted: the card of "a card with 3 different users in a day"."""
        counted = {
            name
            for index in range(1, at)
            if self.tokens[index - 1].kind is Kind.NUMBER or self.is_one_of(index - 1, _COUNTED)
            for name, _ in self.entity(index)
        }
        named = self._named_before(at)
        return next(iter(named - counted)) if len(named - counted) == 1 else None

    def _named_before(self, at: int) -> frozenset[str]:
        while len(self._named) <= at:
            self._named.append(self._named[-1] | {name for name, _ in self.entity(len(self._named) - 1)})
        return self._named[at]

    @cached_property
    def names_entity(self) -> bool:
        """Whether an entity is named anywhere."""
        return any(self.entity(index) for index in range(len(self.tokens)))

    def subject(self, at: int) -> str | None:
        """The entity that the sentence is about: it stands first, and no other one is named before this place."""
        start = self.skipped(0, _OPENINGS)
        first = self.entity(start) if start < at else []
        return first[0][0] if first and self.only_before(at) == first[0][0] else None

    def entities(self, at: int) -> Iterator[tuple[Entities, int]]:
        """One entity or several: "both the card and the device", "neither the user nor the card"."""
        first = self.entity(at)
        yield from ((([name], "all"), after) for name, after in first)
        if not first and not self.is_word(at, "both", "either", "neither"):
            return
        is_object = at > 0 and self.is_one_of(at - 1 - self.is_one_of(at - 1, DETERMINERS), _SEEN)
        for opening, joint, how in () if is_object else _SEVERAL:  # "never seen the card and the store has ..."
            if not opening or self.is_word(at, opening):
                names, after = self._joined_entities(at + bool(opening), joint)
                if len(names) > 1:
                    yield (names, how), after

    def _joined_entities(self, at: int, joint: str) -> tuple[list[str], int]:
        """The entities that follow each other after commas or a joint; none if the list breaks off."""
        names: list[str] = []
        while entity := self.entity(at):
            names, after = [*names, entity[0][0]], entity[0][1]
            if not self.is_word(after, joint, ","):
                return names, after
            at = after + 1 + self.is_word(after + 1, joint)
        return [], at

    def name(self, at: int) -> tuple[str, int] | None:
        """The name of an entity that stands here: in quotes, a plain number, or a word with a capital or a digit."""
        token = self.token(at)
        if token is None or token.is_money or token.is_percent:
            return None
        if token.kind is Kind.QUOTED:
            return token.text, at + 1
        if token.kind is Kind.NUMBER:  # "card 5 transactions" goes on
            counts = self.token(at + 1)
            goes_on = counts is not None and counts.kind is Kind.WORD and counts.text not in _AFTER_NAME
            return None if goes_on or not token.shown.removeprefix("-").isdigit() else (token.shown, at + 1)
        is_name = token.kind is Kind.WORD and (token.shown != token.shown.lower() or not token.shown.isalpha())
        known = (token.text,) in self.vocabulary.values or token.text in self.vocabulary.word_list
        return (token.shown, at + 1) if is_name and not known and token.text not in grammar_words() else None

    # --- values ---

    def value(self, fact: Fact, at: int) -> tuple[str, int] | None:
        """The value of a category that stands here, with the place after it."""
        token = self.token(at)
        if token is None:
            return None
        if token.kind is Kind.QUOTED:  # with the letter case of the values at hand
            alike = [kept for kept in fact.values if kept.lower() == token.text.lower()]
            return alike[0] if len(alike) == 1 and token.text not in fact.values else token.text, at + 1
        for start in (at, self.skipped(at)):
            if self.has_word(at, start, "same"):
                continue  # "claimed on the same Monday" says more than the day
            for meanings, end in self.matches(start, self.vocabulary.values, exact=True):
                for meaning in meanings:
                    is_code = meaning.value.isupper()
                    if meaning.fact == fact.name and not (is_code and self.is_ordinary(start, end)):
                        return meaning.value, end
        return None

    def values(self, fact: Fact, at: int) -> Iterator[tuple[list[str], int]]:
        """One value or more: "US", "US or GB", "one of Honda, Toyota or Mazda", "either 8 or 3"."""
        values: list[str] = []
        first = self.skipped(at)
        place = at if self.value(fact, at) is not None or self.has_word(at, first, "same") else first
        opened = self.is_word(place, "(")
        place += opened
        while (some := self.some_values(fact, place)) is not None:
            values, place = [*values, *some[0]], some[1]
            if not opened or self.is_word(place, ")"):
                yield values, place + opened
            after = self.after_joint(place)
            if after == place or (len(values) == 1 and self.is_comma_or(place)):
                return
            place = self.skipped(after)

    def some_values(self, fact: Fact, at: int) -> tuple[list[str], int] | None:
        """The value of a category that stands here, or those that begin with the word that does."""
        if (value := self.value(fact, at)) is not None:
            return [value[0]], value[1]
        start = self.skipped(at)
        alike = self.vocabulary.families.get(self.said(start, start + 1), ())
        values = [phrase.value for phrase in alike if phrase.fact == fact.name]
        return (values, start + 1) if values else None

    def after_joint(self, at: int) -> int:
        """The place after commas, "or" and the like between two values."""
        return self.skipped(at, (",", "or", "nor", "/", "and"))

    def is_comma_or(self, at: int) -> bool:
        """Whether ", or" stands here, which ends a test where no list has begun: "it is a transfer, or online"."""
        return self.is_word(at, ",") and self.is_word(at + 1, "or")

    def is_ordinary(self, start: int, end: int) -> bool:
        """Whether a word is more likely an ordinary one than a code: "in" and "and", but not "IN" and "AND"."""
        token = self.tokens[start]
        is_code = token.text.upper() in COUNTRY_NAMES and token.shown.lower() == token.text
        return end == start + 1 and (token.text in _ORDINARY or is_code) and not token.shown.isupper()

    def is_value(self, at: int) -> bool:
        """Whether the word that stands here is a value of a category by itself."""
        return (self.tokens[at].text,) in self.vocabulary.values and not self.is_ordinary(at, at + 1)


@lru_cache(maxsize=1024)
def _as_phrases(said: Words) -> PhraseList[Any]:
    return PhraseList(dict.fromkeys(said))
