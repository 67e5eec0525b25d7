"""What to tell the author of a rule that cannot be read: what was read of it, what was not, and what can be said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from acefraud.core.condition import Condition
from acefraud.core.context_facts import LookUp
from acefraud.rules.english import say
from acefraud.rules.reader.facts import HOURS
from acefraud.rules.reader.grammar import tests_at
from acefraud.rules.reader.quantities import figures
from acefraud.rules.reader.reading import GRAMMAR_WORDS, ReadRule, conclusions, read_rule
from acefraud.rules.reader.sentence import Sentence
from acefraud.rules.reader.tokens import Kind, grammar_words, tokens_of
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.wording import nearest_facts, respelt, without_noise

MOST_SUGGESTIONS = 3
_MOST_TRIED = 12
"""Other wordings that are tried."""
_LEAST_LIKENESS = 80.0
_WINDOWS = {1.0: "1 hour", 24.0: "24 hours", 168.0: "7 days", 720.0: "30 days"}
Part = tuple[int, int, Condition]
"""Where words that were read begin and end, and what they say."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A rule that can be said, near to what was written."""

    text: str
    """In the words of the engine, which are read as they stand."""
    condition: Condition
    without: tuple[str, ...] = ()
    """The words of the author that it leaves out."""

    def __str__(self) -> str:
        """The rule, and what it leaves out.

        >>> str(Suggestion("amount above 500: decline", Condition.parse("amount > 500"), ("purple",)))
        "amount above 500: decline (without 'purple')"
        """
        left_out = f" (without {_quoted(self.without)})" if self.without else ""
        return f"{self.text}{left_out}"


@dataclass(frozen=True, slots=True)
class Advice:
    """What was read of a rule that is refused, what was not, and what can be said instead."""

    read: tuple[str, ...] = ()
    """The parts that were read, in the words of the engine."""
    unread: tuple[str, ...] = ()
    """The parts that were not, as they were written."""
    why: tuple[str, ...] = ()
    """What is missing: a fact, a list, a window of time."""
    suggestions: tuple[Suggestion, ...] = ()

    @property
    def lines(self) -> list[str]:
        """All of it for people, without the suggestions."""
        said = [f"read:     {part}" for part in self.read] + [f"not read: {_quoted(self.unread)}"] * bool(self.unread)
        return [*said, *self.why]


def advise(text: str, vocabulary: Vocabulary) -> Advice:
    """What to tell the author of a rule that was refused; nothing if it can be read.

    >>> advice = advise("Decline purple orders above $500", Vocabulary.general())
    >>> advice.read, advice.unread, [str(suggestion) for suggestion in advice.suggestions]
    (('amount above 500',), ('purple',), ["decline amount above 500 (without 'purple')"])
    """
    rule = read_rule(text, vocabulary)
    if rule.condition is not None:
        return Advice()
    said = _said(rule)
    if rule.spares is not None:
        ways = [f"always approve {say(rule.spares)}", f"always review {say(rule.spares)}"]
        return Advice(suggestions=tuple(Suggestion(way, rule.spares) for way in ways))
    if rule.readings:
        ways = rule.readings[:MOST_SUGGESTIONS]
        return Advice(suggestions=tuple(Suggestion(said.format(say(way)), way) for way in ways))
    plain, _ = without_noise(text, vocabulary)
    sentence = Sentence(respelt(tokens_of(plain), vocabulary), vocabulary)
    parts = _parts(sentence)
    unread = _unread(sentence, parts)
    shown = tuple(" ".join(sentence.shown(start, end)) for start, end in unread)
    return Advice(
        read=tuple(dict.fromkeys(say(condition) for _, _, condition in parts)),
        unread=shown or rule.not_understood,
        why=tuple(_missing(sentence, unread, rule)),
        suggestions=_suggested(plain, sentence, parts, unread, said),
    )


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _said(rule: ReadRule) -> str:
    """How a rule with the same verdict is said, with a place for its condition."""
    if rule.always is not None:
        return f"always {rule.always.lower()} {{}}"
    return "{}" if rule.argues is None else f"{{}}: {rule.argues.lower()}"


def _parts(sentence: Sentence) -> list[Part]:
    """The parts of a sentence that can be read by themselves: as many of its words as possible in as few parts."""
    best: list[tuple[int, int, list[Part]]] = [(0, 0, [])]
    concluded = {place for found in conclusions(sentence.tokens) for place in range(found.start, found.end)}
    by_end: dict[int, list[Part]] = {}
    for start in range(len(sentence.tokens)):
        for condition, end in tests_at(sentence, start):
            if not concluded.intersection(range(start, end)):
                by_end.setdefault(end, []).append((start, end, condition))
    for end in range(1, len(sentence.tokens) + 1):
        options = [best[-1]]
        for part in by_end.get(end, ()):
            covered, count, before = best[part[0]]
            options.append((covered + end - part[0], count - 1, [*before, part]))
        best.append(max(options, key=lambda option: option[:2]))
    return best[-1][2]


def _unread(sentence: Sentence, parts: Sequence[Part]) -> list[tuple[int, int]]:
    """Where words stand that carry meaning and belong to no part and to no verdict."""
    covered = {place for start, end, _ in parts for place in range(start, end)}
    covered |= {place for found in conclusions(sentence.tokens) for place in range(found.start, found.end)}
    chunks: list[tuple[int, int]] = []
    for place, token in enumerate(sentence.tokens):
        if place in covered or token.kind is Kind.SIGN:
            continue
        if chunks and chunks[-1][1] == place:
            chunks[-1] = chunks[-1][0], place + 1
        else:
            chunks.append((place, place + 1))
    trimmed = (_trimmed(sentence, start, end) for start, end in chunks)
    return [(start, end) for start, end in trimmed if start < end]


def _trimmed(sentence: Sentence, start: int, end: int) -> tuple[int, int]:
    """A chunk without the words at its ends that mean nothing by themselves."""
    while start < end and sentence.is_one_of(start, _MEANINGLESS):
        start += 1
    while start < end and sentence.is_one_of(end - 1, _MEANINGLESS):
        end -= 1
    return start, end


_MEANINGLESS = grammar_words() - frozenset(("unless", "except", "not", "no", "never", "without"))


def _missing(sentence: Sentence, unread: Sequence[tuple[int, int]], rule: ReadRule) -> Iterator[str]:
    """Why a part cannot be read, where that can be told."""
    vocabulary = sentence.vocabulary
    tokens = sentence.tokens
    for place in range(len(tokens)):
        if sentence.is_word(place, "list") and place + 1 < len(tokens) and tokens[place + 1].shown not in vocabulary.lists:
            there = f"there is {_quoted(sorted(vocabulary.lists))}" if vocabulary.lists else "there is none yet"
            yield f"There is no list '{tokens[place + 1].shown}'; {there}. `acefraud list add` starts one."
    hours = {hours for windows in vocabulary.windows.values() for hours in windows}
    for start, end in unread:
        for place in range(start, end):
            for figure, _ in figures(sentence, place):
                if hours and figure.unit in HOURS and figure.value * HOURS[figure.unit] not in hours:
                    kept = ", ".join(_WINDOWS.get(each, f"{each:g} hours") for each in sorted(hours))
                    yield f"The past is counted over {kept}; other windows are not kept."
    odd = [word for word in rule.not_understood if not set(_texts(word)) <= vocabulary.word_list | GRAMMAR_WORDS]
    near = nearest_facts(odd, vocabulary, 3) if odd else ()
    if odd and not near:
        yield f"No fact here is about {_quoted(odd)}: a column that tells it would make it one."
    elif near:
        named = "; ".join(f"`{name}`" for name in near)
        yield f"The nearest facts to {_quoted(odd)}: {named}. A column of its own would make it a fact."


def _texts(said: str) -> list[str]:
    return [token.text for token in tokens_of(said) if token.kind is Kind.WORD]


def _suggested(
    text: str, sentence: Sentence, parts: Sequence[Part], unread: Sequence[tuple[int, int]], said: str
) -> tuple[Suggestion, ...]:
    """Rules near to what was written that can be read, the nearest first."""
    found: dict[Condition, Suggestion] = {}
    for other, left_out in _other_wordings(text, sentence, parts, unread):
        rule = read_rule(other, sentence.vocabulary)
        for condition in (rule.condition,) if rule.condition is not None else rule.readings:
            suggestion = Suggestion(said.format(say(condition)), condition, left_out)
            found.setdefault(condition, suggestion)
        if len(found) >= MOST_SUGGESTIONS:
            break
    readable = [each for each in found.values() if read_rule(each.text, sentence.vocabulary).condition == each.condition]
    return tuple(readable[:MOST_SUGGESTIONS])


def _other_wordings(
    text: str, sentence: Sentence, parts: Sequence[Part], unread: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Other wordings of a text, each with the words that it leaves out."""
    tokens = sentence.tokens
    chunks = [(tokens[start].start, tokens[end - 1].end) for start, end in unread]
    yield from ((wording, ()) for wording in _with_nearest(text, sentence, unread))
    shown = tuple(text[start:end] for start, end in chunks)
    if chunks:
        shorter = text
        for start, end in reversed(chunks):
            shorter = shorter[:start] + shorter[end:]
        yield shorter, shown
    if parts:
        for join in (" and ", " or ") if re.search(r"\bor\b", text) else (" and ",):
            yield join.join(f"({say(condition)})" for _, _, condition in parts), shown
        for _, _, condition in parts if len(parts) > 1 else ():
            yield say(condition), (*shown, "the rest")


def _with_nearest(text: str, sentence: Sentence, unread: Sequence[tuple[int, int]]) -> Iterator[str]:
    """The text with a word that is not known replaced by one that is written like it, or a window by the nearest one."""
    vocabulary = sentence.vocabulary
    known = sorted(word for word in vocabulary.word_list | GRAMMAR_WORDS if len(word) > 3)
    hours = sorted({hours for windows in vocabulary.windows.values() for hours in windows})
    for start, end in unread:
        for place in range(start, end):
            token = sentence.tokens[place]
            if token.kind is Kind.WORD and token.text not in vocabulary.word_list and token.text not in GRAMMAR_WORDS:
                for word, _, _ in process.extract(
                    token.text, known, scorer=fuzz.ratio, limit=2, score_cutoff=_LEAST_LIKENESS
                ):
                    yield text[: token.start] + word + text[token.end :]
            for figure, after in figures(sentence, place) if hours else ():
                if figure.unit in HOURS:
                    wanted = figure.value * HOURS[figure.unit]
                    nearest = min(hours, key=lambda kept: abs(kept - wanted))
                    last = sentence.tokens[after - 1]
                    yield text[: token.start] + _WINDOWS.get(nearest, f"{nearest:g} hours") + text[last.end :]
