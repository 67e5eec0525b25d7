"""What to tell the author of a rule that cannot be read: what was read of it, what was not, and what can be said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rapidfuzz import fuzz, process

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict
from acefraud.rules.english import say
from acefraud.rules.reader.facts import HOURS, TIME_FACTS
from acefraud.rules.reader.grammar import is_impossible, tests_at
from acefraud.rules.reader.quantities import among, bounds, figures
from acefraud.rules.reader.reading import GRAMMAR_WORDS, ReadRule, conclusions, is_too_long, read_rule
from acefraud.rules.reader.sentence import Sentence
from acefraud.rules.reader.tokens import FILLERS, TRANSACTIONS, Kind, tokens_of, words
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.wording import nearest_facts, respelt, without_noise

MOST_SUGGESTIONS = 3
_LEAST_LIKENESS = 80.0
_LEAST_AMOUNT = 50
"""A smaller number is not shown as an amount, unless it is said to be one."""
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
    fires_on: str = ""
    """What it would fire on, if that was measured."""

    def __str__(self) -> str:
        """The rule, what it leaves out, and what it would fire on.

        >>> str(Suggestion("amount above 500: decline", Condition.parse("amount > 500"), ("purple",)))
        "amount above 500: decline (without 'purple')"
        """
        left_out = f" (without {_quoted(self.without)})" if self.without else ""
        fires = f"; {self.fires_on}" if self.fires_on else ""
        return f"{self.text}{left_out}{fires}"


@dataclass(frozen=True, slots=True)
class Advice:
    """What was read of a rule that is refused, what was not, and what can be said instead."""

    read: tuple[str, ...] = ()
    """The parts that were read, in the words of the engine."""
    unread: tuple[str, ...] = ()
    """The parts that were not, as they were written."""
    missing: tuple[str, ...] = ()
    """What would be needed: a fact, a list, a window of time."""
    suggestions: tuple[Suggestion, ...] = ()

    @property
    def lines(self) -> list[str]:
        """All of it for people."""
        said = [f"    read: {part}" for part in self.read]
        said += [f"not read: {_quoted(self.unread)}"] * bool(self.unread)
        instead = [f"  {number}. {suggestion}" for number, suggestion in enumerate(self.suggestions, 1)]
        return [*said, *self.missing, *(["You can say, for instance:", *instead] if instead else [])]


NO_ADVICE = Advice()


def advise(text: str, vocabulary: Vocabulary) -> Advice:
    """What to tell the author of a rule that was refused; nothing if it can be read.

    >>> advice = advise("Decline purple orders above $500", Vocabulary.general())
    >>> advice.read, advice.unread, [str(suggestion) for suggestion in advice.suggestions]
    (('amount above 500',), ('purple',), ["decline amount above 500 (without 'purple')"])
    """
    rule = read_rule(text, vocabulary)
    if rule.condition is not None:
        return NO_ADVICE
    if is_too_long(text):
        return Advice(unread=rule.not_understood, missing=("It is too long for a rule: say each rule by itself.",))
    if rule.spares is not None:
        spared = say(rule.spares)
        instead = (f"always approve {spared}", f"always review {spared}")
        return Advice(suggestions=tuple(Suggestion(way, rule.spares) for way in instead))
    plain, _ = without_noise(text, vocabulary)
    sentence = Sentence(respelt(tokens_of(plain), vocabulary), vocabulary)
    said = _said(sentence)
    if rule.readings:
        ways = rule.readings[:MOST_SUGGESTIONS]
        return Advice(suggestions=tuple(Suggestion(said.format(say(way)), way) for way in ways))
    parts = _parts(sentence)
    unread = _unread(sentence, parts)
    shown = tuple(plain[sentence.tokens[start].start : sentence.tokens[end - 1].end] for start, end in unread)
    return Advice(
        read=tuple(dict.fromkeys(say(condition) for _, _, condition in parts)),
        unread=shown or rule.not_understood,
        missing=tuple(_missing(sentence, unread, rule)),
        suggestions=_suggested(plain, sentence, parts, unread, said),
    )


def as_suggestions(wordings: Iterable[str], vocabulary: Vocabulary) -> list[Suggestion]:
    """Those of some wordings that can be read, each said back in the words of the engine."""
    rules = (read_rule(wording, vocabulary) for wording in wordings)
    found = [(rule.condition, rule.orders or rule.argues) for rule in rules if rule.condition is not None]
    return [Suggestion(f"{say(read)}: {verdict.lower()}" if verdict else say(read), read) for read, verdict in found]


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _said(sentence: Sentence) -> str:
    """How a rule with the same verdict is said, with a place for its condition."""
    found = next(conclusions(sentence.tokens), None)
    if found is None:
        return "{}"
    verdict = (found.argues or Verdict.REVIEW).lower()
    return f"always {verdict} {{}}" if found.always else f"{verdict} {{}}" if found.orders else f"{{}}: {verdict}"


def _parts(sentence: Sentence) -> list[Part]:
    """The parts of a sentence that can be read by themselves: as many of its words as possible in as few parts."""
    best: list[tuple[int, int, list[Part]]] = [(0, 0, [])]
    concluded = {place for found in conclusions(sentence.tokens) for place in range(found.start, found.end)}
    by_end: dict[int, list[Part]] = {}
    for start in range(len(sentence.tokens)):
        for condition, end in tests_at(sentence, start):
            if not concluded.intersection(range(start, end)) and not _may_count(sentence, start, end, condition):
                by_end.setdefault(end, []).append((start, end, condition))
    for end in range(1, len(sentence.tokens) + 1):
        options = [best[-1]]
        for part in by_end.get(end, ()):
            covered, count, before = best[part[0]]
            options.append((covered + end - part[0], count - 1, [*before, part]))
        best.append(max(options, key=lambda option: option[:2]))
    return best[-1][2]


def _may_count(sentence: Sentence, start: int, end: int, condition: Condition) -> bool:
    """Whether a number taken for an amount may count what follows it: "more than 3 (users)", "4k (in 24 hours)"."""
    if condition.facts != {"amount"} or any(sentence.facts(at, "number") for at in range(start, end)):
        return False
    following, compared = sentence.token(end), sentence.tokens[start:end]
    if any(token.kind is Kind.NUMBER and token.value < _LEAST_AMOUNT and not token.is_money for token in compared):
        return True
    return following is not None and following.kind is Kind.WORD and following.text not in _AFTER_AMOUNT


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
    return [(start, end) for start, end in trimmed if not FILLERS.issuperset(sentence.said(start, end))]


def _trimmed(sentence: Sentence, start: int, end: int) -> tuple[int, int]:
    """A chunk without the words at its ends that mean nothing by themselves."""
    while start < end and sentence.is_one_of(start, _NOT_SHOWN):
        start += 1
    while start < end and sentence.is_one_of(end - 1, _NOT_SHOWN):
        end -= 1
    return start, end


_ENTITY_NOUNS, _DATES, _NOT_SHOWN = words("entity_nouns"), words("dates"), words("not_shown")
_AFTER_AMOUNT = words("or") | words("after_amount")
_THE_REST = "the rest"
_KINDS = ("number", "flag", "category")
_EXAMPLES = {"number": "'`{}` above 5'", "flag": "'`{}` is true'", "category": "'`{}` is \"...\"'"}
_COUNTING = ("different", "distinct", "several", "known", "fraud", "another", "other", "seen", "shared")
_DENIALS = ("no", "not", "without", "never", "unless", "except", "neither", "nor", "but", "otherwise", "only", "nobody")


def _missing(sentence: Sentence, unread: Sequence[tuple[int, int]], rule: ReadRule) -> Iterator[str]:
    """Why a part cannot be read, where that can be told."""
    vocabulary = sentence.vocabulary
    yield from _missing_lists(sentence)
    yield from dict.fromkeys(reason for start, end in unread for reason in _missing_past(sentence, start, end))
    said = {token.text for start, end in unread for token in sentence.tokens[start:end]}
    tells_month = any("month" in fact.words for fact in vocabulary.facts.values())
    if said & _DATES and not tells_month:
        yield "No fact here tells the date or the month; the hour and the weekday can be used where rows have a time."
    known = vocabulary.word_list | GRAMMAR_WORDS | words("lists_by_name")
    odd = [word for word in rule.not_understood if not set(_texts(word)) <= known]
    if odd:
        near = ", ".join(f"`{name}`" for name in nearest_facts(odd, vocabulary, 3))
        means = f" Nearest in meaning: {near}." if near else ""
        yield f"No fact here is about {_quoted(odd)}; a column that tells it would make it one.{means}"
    named = dict.fromkeys(
        fact.name for start, end in unread for at in range(start, end) for fact, _ in sentence.facts(at, *_KINDS)
    )
    if not odd:
        examples = [_EXAMPLES[vocabulary.facts[name].kind].format(name) for name in named if name not in TIME_FACTS]
        such_as = f", such as {' or '.join(examples[:2])}" if examples else ""
        yield f"Its words are known, but not what they say together: say it in shorter conditions{such_as}."


def _missing_past(sentence: Sentence, start: int, end: int) -> Iterator[str]:
    """What is counted in a part, but not kept: the past of an entity, or a period of it."""
    kept = sentence.vocabulary.windows
    entities = list(dict.fromkeys(sentence.vocabulary.entities.values()))
    counts = any(token.kind is Kind.NUMBER for token in sentence.tokens[start:end]) or sentence.has_word(
        start, end, *_COUNTING
    )
    strangers = [
        token.shown
        for place, token in enumerate(sentence.tokens[start:end], start)
        if token.text in _ENTITY_NOUNS and not sentence.entity(place)
    ]
    if counts and strangers:
        past = f"the past of {_quoted(entities)} is" if entities else "nothing is"
        yield f"{_quoted(strangers)} cannot be counted here: {past} kept."
    hours = sorted({hours for windows in kept.values() for hours in windows})
    wanted = {
        figure.value * HOURS[figure.unit]
        for place in range(start, end)
        for figure, _ in figures(sentence, place)
        if figure.unit in HOURS
    }
    counted = sentence.has_word(start, end, "time", "total", "spent", *TRANSACTIONS)
    if counted and any(sentence.entity(place) for place in range(start, end)) and wanted - set(hours) and hours:
        periods = ", ".join(_WINDOWS.get(each, f"{each:g} hours") for each in hours)
        yield f"Counts and sums are kept over {periods}; the time since the last transaction can be any."


def _missing_lists(sentence: Sentence) -> Iterator[str]:
    """The lists that are named, but are not there."""
    lists = sentence.vocabulary.lists
    there = f"there is {_quoted(sorted(lists))}" if lists else "there is none yet"
    for place, token in enumerate(sentence.tokens):
        after, before = sentence.token(place + 1), sentence.token(place - 1) if place else None
        beside = [near.shown for near in (before, after) if near is not None and near.text not in GRAMMAR_WORDS]
        named = [token.shown] if token.text in words("lists_by_name") else beside if token.text == "list" else []
        if named and not lists.intersection(named):
            yield f"There is no list '{named[0]}': {there}. `acefraud lists create` makes one."


def _texts(said: str) -> list[str]:
    return [token.text for token in tokens_of(said) if token.kind is Kind.WORD]


def _suggested(
    text: str, sentence: Sentence, parts: Sequence[Part], unread: Sequence[tuple[int, int]], said: str
) -> tuple[Suggestion, ...]:
    """Rules near to what was written that can be read, the nearest first."""
    found: dict[Condition, Suggestion] = {}
    for other, left_out in _other_wordings(text, sentence, parts, unread):
        if found and _THE_REST in left_out:
            break
        rule = read_rule(other, sentence.vocabulary)
        for condition in (rule.condition,) if rule.condition is not None else rule.readings:
            if is_impossible(condition):
                continue
            suggestion = Suggestion(said.format(say(condition)), condition, left_out)
            found.setdefault(condition, suggestion)
        if len(found) >= MOST_SUGGESTIONS:
            break
    vocabulary = sentence.vocabulary
    readable = (each for each in found.values() if read_rule(each.text, vocabulary).condition == each.condition)
    return tuple(islice(readable, MOST_SUGGESTIONS))


def _other_wordings(
    text: str, sentence: Sentence, parts: Sequence[Part], unread: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Other wordings of a text, each with the words that it leaves out."""
    tokens = sentence.tokens
    chunks = [(tokens[start].start, tokens[end - 1].end) for start, end in unread]
    yield from ((wording, ()) for wording in _with_nearest(text, sentence, unread))
    for start, end in unread:
        for said in _about_facts(sentence, start, end):
            yield f"{text[: tokens[start].start]}{said}{text[tokens[end - 1].end :]}", ()
    shown = tuple(text[start:end] for start, end in chunks)
    covered = {place for start, end, _ in parts for place in range(start, end)}
    if any(sentence.is_one_of(place, _DENIALS) for place in range(len(tokens)) if place not in covered):
        return  # without its exception or negation a rule would be turned round
    if chunks:
        shorter = text
        for start, end in reversed(chunks):
            shorter = shorter[:start] + shorter[end:]
        yield shorter, shown
    if len(parts) > 1:
        for join in (" and ", " or ") if re.search(r"\bor\b", text) else (" and ",):
            yield join.join(f"({say(condition)})" for _, _, condition in parts), shown
    for _, _, condition in parts:
        yield say(condition), shown if len(parts) == 1 else (*shown, _THE_REST)


def _about_facts(sentence: Sentence, start: int, end: int) -> Iterator[str]:
    """What can be said of the facts that an unread part names or is near to, with the figures and values it has."""
    facts, part = sentence.vocabulary.facts, " ".join(sentence.shown(start, end))
    named = [fact.name for at in range(start, end) for fact, _ in sentence.facts(at, *_KINDS)]
    near = nearest_facts([part], sentence.vocabulary, 3)
    for name in (name for name in dict.fromkeys((*named, *near)) if name not in TIME_FACTS):
        fact, denied = facts[name], sentence.has_word(start, end, *_DENIALS)
        if fact.kind == "flag" and name in named:
            yield say(Condition.of(Test(name, Op.IS, not denied)))
        for at in range(start, end):
            for bound, _ in bounds(sentence, at, fact) if fact.kind == "number" else ():
                yield say(bound(name))
            if fact.kind == "category" and (value := sentence.value(fact, at)) is not None:
                yield say(among(name, [value[0]], negated=denied))


def _with_nearest(text: str, sentence: Sentence, unread: Sequence[tuple[int, int]]) -> Iterator[str]:
    """The text with a word that is not known replaced by one written like it, or a window by the nearest one."""
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
