"""The words by which a reader finds facts: their names, what people call them, and the values they take.

A vocabulary is made from a catalog of the facts at hand. Without one, it has the facts that the engine knows by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TypeVar

from pydantic import BaseModel

from acefraud.core.fact_names import NAMED_FACTS, FactCatalog, words_for
from acefraud.rules.reader.facts import (
    HISTORY_NAME,
    Band,
    Fact,
    Measure,
    as_words,
    bands_of,
    measure_of,
    names_of,
    split_name,
    translations,
    ways_to_say,
    without_determiners,
)
from acefraud.rules.reader.tokens import PhraseTable, Words, grammar_words, singular, words, words_of_tests
from acefraud.support.package_data import read_package_toml

T = TypeVar("T")
MOST_VALUES = 3_000
"""Values of one fact that can be said without quotes."""
_EVENTS = (("Claimed", ("claim", "claimed"), ("accident", "incident", "loss")),)
"""The ending of the name of a fact about an event, what that event is called, and what the one before it is called."""
_MOST_WITH_FAMILIES = 50
"""Values of a category that can be said by a word that some of them share. More are names of places and the like."""
SHORTEST_NAME = 5
"""Letters of a value that is recognised with one other letter."""
_NAMES = range(5, 200)
"""How many values a category of names has. Fewer are ordinary words; of more, as of places, too many are alike."""
_GENERIC = words("generic")
_DROPPED_AFTER_FLAG = words("dropped_after_flag")
_SAME_ENTITY = tuple(map(words, ("same_customer", "same_merchant", "same_machine", "same_device", "same_card")))


@dataclass(frozen=True, slots=True)
class FlagPhrase:
    """Words that say that a flag holds, or that it does not."""

    fact: str
    holds: bool


@dataclass(frozen=True, slots=True)
class ValuePhrase:
    """Words that are a value of a category."""

    fact: str
    value: str


@dataclass(frozen=True, slots=True)
class AgeWords:
    """What a number of days or hours is the age of, and what it is the time since."""

    fact: str
    age_of: PhraseTable[str]
    since: PhraseTable[str]
    did: PhraseTable[str]
    idle: PhraseTable[str]


class _Concept(BaseModel, extra="forbid"):
    """One table of ``concepts.toml``, which explains the keys."""

    facts: tuple[str, ...]
    nouns: tuple[str, ...] = ()
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    values: dict[str, tuple[str, ...]] = {}
    age_of: tuple[str, ...] = ()
    since: tuple[str, ...] = ()
    did: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


_CONCEPTS = read_package_toml("acefraud.rules.reader", "concepts.toml", dict[str, _Concept])


@dataclass
class Vocabulary:
    """Facts, and the words that mean them."""

    facts: dict[str, Fact] = field(default_factory=dict)
    nouns: PhraseTable[list[str]] = field(default_factory=PhraseTable)
    flags: PhraseTable[list[FlagPhrase]] = field(default_factory=PhraseTable)
    values: PhraseTable[list[ValuePhrase]] = field(default_factory=PhraseTable)
    families: dict[Words, list[ValuePhrase]] = field(default_factory=dict)
    """Words with which several values begin."""
    ages: list[AgeWords] = field(default_factory=list)
    entities: PhraseTable[str] = field(default_factory=PhraseTable)
    lists: frozenset[str] = frozenset()
    dated: dict[str, list[Fact]] = field(default_factory=dict)
    """The facts that tell the day or the month of an event, by the words for the event, where there are two."""
    is_open: bool = False
    """Whether a name in backticks or with an underscore may be a fact that is not listed."""

    @classmethod
    def of(cls, catalog: FactCatalog, *, lists: Iterable[str] = (), named: Iterable[str] = ()) -> Vocabulary:
        """The vocabulary of the facts at hand, and of others that the engine knows by name and may see later."""
        made = cls(lists=frozenset(lists))
        for name in named:
            words = NAMED_FACTS[name]
            made._add(Fact(name, words.kind, measure_of(name, words), words=split_name(name)))
        for name, profile in catalog.items():
            measure = measure_of(name, words_for(name)) if profile.kind == "number" else Measure.PLAIN
            is_known = profile.coverage == 1
            made._add(Fact(name, profile.kind, measure, profile.values, profile.high, split_name(name), is_known))
        made._add_meanings()
        return made

    @classmethod
    def general(cls, *, lists: Iterable[str] = ()) -> Vocabulary:
        """The vocabulary of the facts that the engine knows by name, for a playbook that has seen no case yet."""
        general, known = _general_vocabulary(), frozenset(lists)
        return replace(general, lists=known) if known else general  # the tables are shared: nobody changes them

    @cached_property
    def word_list(self) -> frozenset[str]:
        """Every word that means something here."""
        phrases = [*self.nouns, *self.flags, *self.values, *self.families, *self.entities]
        phrases += [words for age in self.ages for words in (*age.age_of, *age.since, *age.did, *age.idle)]
        phrases += [split_name(name) for name in self.lists]
        return frozenset(word for words in phrases for word in words)

    @cached_property
    def known_words(self) -> frozenset[str]:
        """Every word that means something here, or that the reader knows anyway."""
        return self.word_list | grammar_words()

    @cached_property
    def only_in_verdicts(self) -> frozenset[str]:
        """Words of verdicts that no test has, as no fact and no value is called so."""
        return grammar_words() - words_of_tests() - self.word_list

    @cached_property
    def by_words(self) -> dict[Words, str]:
        """The names of several words by these words."""
        return {split: name for name in self.facts if len(split := split_name(name)) > 1}

    @cached_property
    def proper_names(self) -> dict[str, list[str]]:
        """The values of one word that are names, by their first letter."""
        names: dict[str, list[str]] = {}
        for said, meanings in self.values.items():
            is_name = any(len(self.facts[meaning.fact].values) in _NAMES for meaning in meanings)
            if is_name and len(said) == 1 and len(said[0]) >= SHORTEST_NAME:
                names.setdefault(said[0][0], []).append(said[0])
        return names

    @cached_property
    def lower_names(self) -> dict[str, str]:
        """The names of the facts by the same in lower case, as words of the formal syntax are compared."""
        names = {name.lower(): name for name in self.facts}
        return {**names, **{singular(lower): name for lower, name in names.items()}}

    @cached_property
    def bands(self) -> dict[str, tuple[Band, ...]]:
        """The bands of each category whose values are bands of numbers."""
        categories = [fact for fact in self.facts.values() if fact.kind == "category"]
        return {fact.name: bands for fact in categories if (bands := bands_of(fact))}

    @cached_property
    def in_years(self) -> list[Fact]:
        """The numbers of years, which are the ages of people."""
        return [fact for fact in self.facts.values() if fact.measure is Measure.YEARS]

    @cached_property
    def openings_of_ages(self) -> frozenset[str]:
        """The words with which an age, or what somebody did, begins."""
        tables = [table for age in self.ages for table in (age.age_of, age.did, age.idle)]
        return frozenset(said[0] for table in tables for said in table if said) | {"older", "younger", "newer"}

    @cached_property
    def long_names(self) -> dict[str, list[tuple[Fact, frozenset[str]]]]:
        """The categories with names of several words, and these words, by each of them."""
        categories = [fact for fact in self.facts.values() if fact.kind == "category"]
        named = ((fact, frozenset(fact.words) - {"of", "the"}) for fact in categories)
        by_word: dict[str, list[tuple[Fact, frozenset[str]]]] = {}
        for fact, name in named:
            for word in name if len(name) > 1 else ():
                by_word.setdefault(word, []).append((fact, name))
        return by_word

    @cached_property
    def windows(self) -> dict[str, dict[float, Fact]]:
        """The facts about the past of entities by entity and figure, and by the hours of their window."""
        windows: dict[str, dict[float, Fact]] = {}
        for name, fact in self.facts.items():
            stem, _, window = name.rpartition("_")
            if re.fullmatch(r"\d+[hd]", window):
                hours = float(window[:-1]) * (24 if window[-1] == "d" else 1)
                windows.setdefault(stem, {})[hours] = fact
        return windows

    def _add(self, fact: Fact) -> None:
        self.facts[fact.name] = fact
        if (match := HISTORY_NAME.fullmatch(fact.name)) is not None:
            self._add_entity(match["entity"])
            for other in (match["other"], match["new"]):
                if other:
                    self._add_entity(other)

    def _add_entity(self, name: str) -> None:
        words = tuple(name.lower().split("_"))
        self.entities[words] = name
        self.entities.setdefault((name.lower(),), name)
        for said in translations(words):
            self.entities.setdefault(said, name)

    def _add_meanings(self) -> None:
        for fact in self.facts.values():
            for said in names_of(fact):
                self._add_noun(said, fact.name)
            if fact.kind == "flag":
                self._add_flag(fact)
            for value in fact.values[:MOST_VALUES]:
                for said in ways_to_say(value, fact):
                    _append(self.values, said, ValuePhrase(fact.name, value))
        self._add_events()
        own = set(self.nouns)
        for concept in _CONCEPTS.values():
            self._add_concept(concept, own)
        self._add_families()
        for alike in _SAME_ENTITY:  # other words for an entity, where only one entity can be meant
            here = [name for words, name in self.entities.items() if " ".join(words) in alike]
            if len(here) == 1:
                named = {word for words in self.values for word in words}
                for other in alike - named:  # "phone" may be a channel
                    self.entities.setdefault(tuple(other.split()), here[0])

    def _add_families(self) -> None:
        """Let a first word that several values share mean all of them: "Visa" for "VISA 13 digit" and the like."""
        found: dict[Words, list[ValuePhrase]] = {}
        for fact in self.facts.values():
            for value in fact.values if len(fact.values) <= _MOST_WITH_FAMILIES and fact.name not in self.bands else ():
                first, *rest = as_words(value) or ("",)
                if rest and first.isalpha() and len(first) > 2 and first not in grammar_words():
                    _append(found, (first,), ValuePhrase(fact.name, value))
        known = self.values.keys() | self.nouns.keys() | self.flags.keys()
        self.families = {
            word: some
            for word, some in found.items()
            if len(some) > 1 and len({phrase.fact for phrase in some}) == 1 and word not in known
        }

    def _add_events(self) -> None:
        """Tell facts such as `Month` and `MonthClaimed` apart by the event that each is about."""
        spoken_of = {word for fact in self.facts.values() for word in fact.words}
        for name in list(self.facts):
            for ending, event, others in _EVENTS:
                longer = self.facts.get(f"{name}{ending}") or self.facts.get(f"{name}_{ending.lower()}")
                if longer is None:
                    continue
                words = self.facts[name].words
                dated = [(word, name) for word in others if word in spoken_of] + [(word, longer.name) for word in event]
                for word, fact in dated:
                    self.dated.setdefault(word, []).append(self.facts[fact])
                    self._add_noun((*words, "of", word), fact)
                    self._add_noun((word, *words), fact)

    def _add_noun(self, words: Words, fact: str) -> None:
        _append(self.nouns, without_determiners(words), fact)

    def _add_concept(self, concept: _Concept, own: set[Words]) -> None:
        """Give a fact the names of a concept, except those that are another fact's own name."""
        for pattern in concept.facts:
            for fact in self.facts:
                if re.fullmatch(pattern, fact.lower()):
                    for noun in map(as_words, concept.nouns):
                        if without_determiners(noun) not in own:
                            self._add_noun(noun, fact)
                    for flags, holds in ((concept.true, True), (concept.false, False)):
                        for flag in flags:
                            _append(self.flags, _plain_words(flag), FlagPhrase(fact, holds))
                    for value in self.facts[fact].values:
                        for name in concept.values.get(value.lower(), ()):
                            _append(self.values, as_words(name), ValuePhrase(fact, value))
                    said = (concept.age_of, concept.since, concept.did, concept.idle)
                    tables = (PhraseTable(dict.fromkeys(map(_plain_words, phrases), fact)) for phrases in said)
                    self.ages.append(AgeWords(fact, *tables))
                    return

    def _add_flag(self, fact: Fact) -> None:
        known = words_for(fact.name)
        if known is not None and known.kind == "flag":
            true, false = list(map(_plain_words, (known.true, *known.said))), _plain_words(known.false)
        else:
            words = split_name(fact.name)
            if not words:  # a name of signs alone cannot be said
                return
            true = [words, *translations(words[1:] if words[0] == "flag" else words)]
            if words[-1] in _DROPPED_AFTER_FLAG and (len(words) > 2 or words[0] not in _GENERIC):
                true.append(words[:-1])
            if words[0] in ("is", "has"):
                true.append(words[1:])
            false = (*words[:-1], "absent") if words[-1] == "present" and len(words) > 1 else ()
        for said in true:
            _append(self.flags, said, FlagPhrase(fact.name, True))
        _append(self.flags, false, FlagPhrase(fact.name, False))


@cache
def _general_vocabulary() -> Vocabulary:
    return replace(Vocabulary.of(FactCatalog({}, 0), named=NAMED_FACTS), is_open=True)


def _plain_words(said: str) -> Words:
    return without_determiners(as_words(said))


def _append(table: dict[Words, list[T]], words: Words, meaning: T) -> None:
    if words and meaning not in (there := table.setdefault(words, [])):
        there.append(meaning)
