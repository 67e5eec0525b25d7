"""What to tell the author of a rule that cannot be read: what was read of it, what was not, and what can be said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import itemgetter
from typing import NamedTuple

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict
from acefraud.rules.english import say
from acefraud.rules.reader.facts import HISTORY_NAME, HOURS, TIME_FACTS
from acefraud.rules.reader.grammar import is_impossible, tests_at
from acefraud.rules.reader.history_phrases import windows_said
from acefraud.rules.reader.quantities import among, bounds, comparators, figures, near_limits, numbers
from acefraud.rules.reader.reading import GRAMMAR_WORDS, ReadRule, conclusions, is_too_long, read_rule
from acefraud.rules.reader.sentence import Sentence
from acefraud.rules.reader.tokens import (
    CURRENCIES,
    DETERMINERS,
    FILLERS,
    PEOPLE,
    TRANSACTIONS,
    Kind,
    PhraseList,
    currencies_of,
    tokens_of,
    words,
)
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.wording import nearest_facts, respelt, without_noise

MOST_SUGGESTIONS = 3
_LEAST_AMOUNT = 50
"""A smaller number is not shown as an amount, unless it is said to be one."""
_WINDOWS = {1.0: "1 hour", 24.0: "24 hours", 168.0: "7 days", 720.0: "30 days"}
Chunks = Sequence[tuple[int, int]]
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
    if reasons := tuple(_never_read(sentence)):
        return Advice(unread=rule.not_understood, missing=reasons)
    asked = _asked(sentence)
    if rule.readings:
        ways = rule.readings[:MOST_SUGGESTIONS]
        return Advice(suggestions=tuple(Suggestion(asked.said.format(say(way)), way) for way in ways))
    parts = _parts(sentence, asked)
    unread = _unread(sentence, parts, asked)
    shown = tuple(plain[sentence.tokens[start].start : sentence.tokens[end - 1].end] for start, end in unread)
    return Advice(
        read=tuple(dict.fromkeys(say(condition) for _, _, condition in parts)),
        unread=shown or (() if parts else rule.not_understood),
        missing=tuple(_missing(sentence, unread, rule, asked)),
        suggestions=tuple(islice(_suggested(plain, sentence, parts, unread, asked), 1)),
    )


def as_suggestions(wordings: Iterable[str], vocabulary: Vocabulary) -> list[Suggestion]:
    """Those of some wordings that can be read, each said back in the words of the engine."""
    rules = (read_rule(wording, vocabulary) for wording in wordings)
    found = [(rule.condition, rule.orders or rule.argues) for rule in rules if rule.condition is not None]
    return [Suggestion(f"{say(read)}: {verdict.lower()}" if verdict else say(read), read) for read, verdict in found]


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _texts(said: str) -> set[str]:
    return {token.text for token in tokens_of(said) if token.kind is Kind.WORD}


class _Asked(NamedTuple):
    """What a rule asks for, as far as its words leave no doubt, and where they stand."""

    places: frozenset[int]
    verdict: Verdict | None = None
    said: str = "{}"
    """How a rule with that verdict is said, with a place for its condition."""


def _asked(sentence: Sentence) -> _Asked:
    """What all verdicts of a sentence ask for together. A request for a person is never turned into a decline."""
    every = list(conclusions(sentence.tokens))
    firm = [found for found in every if _CORE.intersection(sentence.said(found.start, found.end))] or every
    places = frozenset(place for found in firm for place in range(found.start, found.end))
    ways = {found.orders or found.argues for found in firm}
    if ways == {Verdict.REVIEW, Verdict.DECLINE} and not any(sentence.is_one_of(at, _DECLINING) for at in places):
        ways = {Verdict.REVIEW}  # "is odd, I want it reviewed"
    others = [at for at, token in enumerate(sentence.tokens) if at not in places and token.shown.lower() == token.text]
    named = {*_ASKS, "otherwise", "instead"} - (sentence.vocabulary.word_list - PEOPLE)
    is_unclear = any(sentence.is_one_of(at, named) and not sentence.is_word(at - 1, *_DENIALS) for at in others)
    verdict = next(iter(ways)) if len(ways) == 1 and not any(found.spares for found in every) else None
    if verdict is None or (is_unclear and verdict is not Verdict.REVIEW):
        return _Asked(places)
    always, said = "always " * all(found.always is not None for found in firm), verdict.lower()
    return _Asked(places, verdict, f"{always}{said} {{}}" if any(found.orders for found in firm) else f"{{}}: {said}")


def _parts(sentence: Sentence, asked: _Asked) -> list[Part]:
    """The parts of a sentence that can be read by themselves and that the words around them cannot turn."""
    windows, parts = windows_said(sentence), list[Part]()
    starts = range(len(sentence.tokens))
    every = [(start, end, condition) for start in starts for condition, end in tests_at(sentence, start)]
    for part in sorted(every, key=lambda part: part[0] - part[1]):
        is_free = all(part[1] <= start or end <= part[0] for start, end, _ in parts)
        if is_free and asked.places.isdisjoint(range(*part[:2])) and _is_as_said(sentence, part, windows, asked):
            parts.append(part)
    parts.sort(key=itemgetter(0))
    while cut := [part for part in parts if any(_is_cut(sentence, part, at) for at in _unread(sentence, parts, asked))]:
        parts = [part for part in parts if part not in cut]
    return parts


def _is_as_said(sentence: Sentence, part: Part, windows: set[float], asked: _Asked) -> bool:
    """Whether a part has the window, the value and the age that the words say, and an amount that counts nothing."""
    start, end, condition = part
    is_unseen = any(isinstance(leaf, Test) and leaf.op in (Op.MISSING, Op.KNOWN) for leaf in condition.leaves)
    for kept in sentence.vocabulary.windows.values() if windows and not is_unseen else ():
        if any(fact.name in condition.facts and hours not in windows for hours, fact in kept.items()):
            return False
    subjects = [token.text for token in sentence.tokens[:end] if token.text in _VEHICLES | PEOPLE]
    if any(fact.lower() == "age" for fact in condition.facts) and subjects and subjects[-1] in _VEHICLES:
        return False  # "cars aged 6 years" says nothing about the driver
    if any(sentence.facts(at, "category", "number") for at in range(start, end)):
        return True
    limits = [token for token in sentence.tokens[start:end] if token.kind is Kind.NUMBER]
    is_money = any(token.is_money for token in limits) or sentence.is_one_of(end, CURRENCIES)
    if condition.facts == {"amount"} and not is_money:  # "more than 3 (users)", "4k (in 24 hours)"
        following = sentence.token(end) if end not in asked.places else None
        goes_on = following is not None and following.kind is Kind.WORD and following.text not in _AFTER_AMOUNT
        return not goes_on and all(token.value >= _LEAST_AMOUNT for token in limits)
    for at in range(start, end) if _valued([part]) else ():  # "dinner", "4 hrs", "same"
        token = sentence.tokens[at]
        is_vague = sentence.is_value(at) and (token.text in DETERMINERS or len(token.text) < _SHORTEST)
        is_respelt = token.shown.islower() and token.text not in _texts(token.shown) | {token.shown}
        if token.kind is Kind.WORD and (is_respelt or (is_vague and not token.shown.isupper())):
            return False
    return True


def _valued(parts: Iterable[Part]) -> list[str]:
    """The facts that parts compare with values, one for each time."""
    leaves = (leaf for _, _, condition in parts for leaf in condition.leaves if isinstance(leaf, Test))
    return [leaf.fact for leaf in leaves if isinstance(leaf.value, str | tuple)]


def _is_cut(sentence: Sentence, part: Part, chunk: tuple[int, int]) -> bool:
    """Whether unread words that touch a part may turn it into something else: "the total | is over 3000"."""
    (start, end, condition), (first, last) = part, chunk
    is_before = last <= start
    between = sentence.said(last, start) if is_before else sentence.said(end, first)
    if is_before and sentence.has_word(first, last, *_NEGATIONS) and (_LOOSE | {"or", "nor"}).issuperset(between):
        return True  # "not through a purple one | or a VPN"
    if not _LOOSE.issuperset(between):
        return False
    tests = [leaf for leaf in condition.leaves if isinstance(leaf, Test) and not HISTORY_NAME.fullmatch(leaf.fact)]
    is_number = any(isinstance(leaf.value, float) and leaf.fact not in TIME_FACTS for leaf in tests)
    is_turned = sentence.has_word(first, last, *_TURNING) and sentence.said(first, last) != ("either",)
    is_turned = is_turned and (is_before or is_number or sentence.is_word(first, "else", "other", "than"))
    if is_turned:
        return True
    nearby = range(first, last)
    others = (fact.name for at in nearby for fact, _ in sentence.facts(at, "category"))
    if _valued([part]):
        return is_before and not condition.facts.issuperset(others)
    has_number = any(sentence.tokens[at].kind is Kind.NUMBER or comparators(sentence, at) for at in nearby)
    has_owner = any(sentence.entity(at) or sentence.is_one_of(at, HOURS) for at in nearby)
    is_missing = any(leaf.op is Op.MISSING for leaf in tests)  # "no fault | on our side"
    return is_missing or (is_before and has_number) or (is_number and (has_owner or has_number))


def _unread(sentence: Sentence, parts: Sequence[Part], asked: _Asked) -> list[tuple[int, int]]:
    """Where clauses stand that carry meaning and belong to no part and to no verdict."""
    ends = asked.places.union((len(sentence.tokens),), *(range(start, end) for start, end, _ in parts))
    ends |= {at for at, token in enumerate(sentence.tokens) if token.kind is Kind.SIGN}
    chunks, begin = list[tuple[int, int]](), 0
    for place in range(len(sentence.tokens) + 1):
        is_long = place > begin + 1 and ends.isdisjoint((place + 1, place + 2))
        is_and = is_long and sentence.is_word(place, "and") and not sentence.has_word(begin, place, "between")
        if place in ends or is_and or sentence.is_word(place, "but", "if", "when", "who", "which"):
            chunks.append(_trimmed(sentence, begin, place))
            begin = place + (place in ends)
    return [chunk for chunk in chunks if not FILLERS.issuperset(sentence.said(*chunk))]


def _trimmed(sentence: Sentence, start: int, end: int) -> tuple[int, int]:
    """A chunk without the words at its ends that mean nothing by themselves."""
    while start < end and sentence.is_one_of(start, _NOT_SHOWN) and not sentence.is_word(start + 1, "least", "most"):
        start += 1
    while start < end and sentence.is_one_of(end - 1, _NOT_SHOWN):
        end -= 1
    return start, end


_ENTITY_NOUNS, _DATES, _NOT_SHOWN = words("entity_nouns"), words("dates"), words("not_shown")
_AFTER_AMOUNT = words("or") | words("after_amount")
_CORE = (words("decline") | words("approve") | words("review")) - words("mild_verdicts")
_DECLINING = words("decline") & words("orders")
_ASKS, _TURNING, _VEHICLES = words("asks_for_a_person"), words("turning"), words("same_vehicle")
_LOOSE = (FILLERS | _NOT_SHOWN | DETERMINERS) - {"and", "or", "but", "if", "when", "where", "unless", "who", "which"}
_BOUNDING = {"more", "less", "over", "under", "above", "below", "least", "most"}
_FROM_LAST = {"km/h": "kmh_from_last", "km": "km_from_last"}
_FIGURES = PhraseList.of_lists(
    {f"{name}_said": name for name in ("sum", "mean", "max", "known_frauds", "known_fraud_share")}
)
_SHORTEST = 3
"""Letters of a word in lower case that may be a value; words of a part that is more than a remark."""
_NEGATIONS = ("no", "not", "without", "never", "neither", "nor", "nobody")
_DENIALS = (*_NEGATIONS, "unless", "except", "but", "otherwise", "only")


def _never_read(sentence: Sentence) -> Iterator[str]:
    """Why no part of a sentence is offered: what is left of it would say more than was meant."""
    if len(currencies_of(sentence.tokens)) > 1:
        yield "A rule compares amounts in one currency: say a rule for each, with the currency if a column tells it."
    for at in range(len(sentence.tokens)):
        for after in near_limits(sentence, at):
            said = " ".join(sentence.shown(at, after))
            yield f"'{said}' leaves one limit open: say both, as in 'between 450 and 500'."


def _missing(sentence: Sentence, unread: Chunks, rule: ReadRule, asked: _Asked) -> Iterator[str]:
    """Why a part cannot be read, where that can be told, and what can be said of what it names."""
    vocabulary = sentence.vocabulary
    yield from _missing_lists(sentence)
    yield from dict.fromkeys(reason for start, end in unread for reason in _missing_past(sentence, start, end))
    named = {word for fact in vocabulary.facts.values() for word in fact.words}
    dates = [at for start, end in unread for at in range(start, end) if sentence.is_one_of(at, _DATES - named)]
    dates = [at for at in dates if not sentence.is_word(at, "month") or sentence.is_word(at - 1, "this", "next", "the")]
    if dates and "month" not in named:
        yield "No fact here tells the date or the month; the hour and the weekday can be used where rows have a time."
    known = vocabulary.word_list | GRAMMAR_WORDS | words("lists_by_name")
    odd = [said for said in rule.not_understood if len(tokens_of(said)) < _SHORTEST and not known >= _texts(said)]
    if odd:
        nearest = nearest_facts([word for word in odd if len(word) > _SHORTEST], vocabulary, 3)
        means = f" Nearest in meaning: {', '.join(f'`{name}`' for name in nearest)}." if nearest else ""
        yield f"No fact here is about {_quoted(odd)}; a column that tells it would make it one.{means}"
    examples = dict.fromkeys(each for start, end in unread for each in islice(_examples(sentence, start, end), 1))
    if examples:
        yield f"Of what was not read, this may be meant: {' or '.join(islice(examples, MOST_SUGGESTIONS))}."
    elif not odd:
        yield "Its words are known, but not what they say together: say it in shorter conditions."
    if asked.places and asked.verdict is None:
        yield "What is asked for is not clear: say 'decline', 'approve' or 'review' once, at the beginning or the end."


def _missing_past(sentence: Sentence, start: int, end: int) -> Iterator[str]:
    """What is counted in a part, but not kept: the past of an entity, or a period of it."""
    entities = list(dict.fromkeys(sentence.vocabulary.entities.values()))
    nouns = [at for at in range(start, end) if sentence.is_one_of(at, _ENTITY_NOUNS)]
    strangers = [sentence.tokens[at].shown for at in nouns if not sentence.entity(at) and _is_counted(sentence, at)]
    if strangers:
        past = f"the past of {_quoted(entities)} is" if entities else "nothing is"
        yield f"{_quoted(strangers)} cannot be counted here: {past} kept."
    hours = sorted({hours for windows in sentence.vocabulary.windows.values() for hours in windows})
    said = [figure for at in range(start, end) for figure, _ in figures(sentence, at) if figure.unit in HOURS]
    is_other = any(figure.value * HOURS[figure.unit] not in hours for figure in said)
    is_counted = sentence.has_word(start, end, "time", "total", "spent", *TRANSACTIONS)
    if is_other and is_counted and hours and any(sentence.entity(at) for at in nouns):
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


def _suggested(text: str, sentence: Sentence, parts: list[Part], unread: Chunks, asked: _Asked) -> Iterator[Suggestion]:
    """The rule without what cannot be read, if that is the smaller part of it and turns nothing round."""
    covered = asked.places.union(*(range(start, end) for start, end, _ in parts))
    left_out = float(asked.verdict is Verdict.APPROVE)
    for start, end in unread:  # each number but those of windows may be a condition; a remark is half a one
        is_remark = end - start < _SHORTEST and sentence.vocabulary.word_list.isdisjoint(sentence.said(start, end))
        places = [at for at in range(start, end) if sentence.tokens[at].kind is Kind.NUMBER]
        left_out += sum(not sentence.is_one_of(at + 1, HOURS) for at in places) or (0.5 if is_remark else 1)
    apart = set(range(len(sentence.tokens))) - covered
    is_turned = any(sentence.is_one_of(at, _DENIALS) or sentence.after(at, "of these", "of those") for at in apart)
    if not parts or len(parts) < left_out or is_turned:
        return  # without its exception or negation a rule would be turned round, and "two of these" are not all
    valued, nearby = _valued(parts), [at for chunk in unread for at in range(*chunk)]
    unsaid = {fact.name for at in nearby for fact, _ in sentence.facts(at, "category")}
    if len(set(valued)) < len(valued) or unsaid.intersection(valued):
        return  # two things are said of one category, and not both can be meant
    shorter, conditions = text, [condition for _, _, condition in parts]
    for start, end in reversed(unread):
        shorter = shorter[: sentence.tokens[start].start] + shorter[sentence.tokens[end - 1].end :]
    ways = [read_rule(shorter, sentence.vocabulary).condition]
    ors = [at for at in range(len(sentence.tokens)) if sentence.is_word(at, "or") and at not in nearby]
    said_or = {any(end <= at < start for at in ors) for (_, end, _), (start, _, _) in pairwise(parts)}
    if len(said_or) < 2 and not sentence.has_word(0, len(sentence.tokens), "either"):
        ways.append(Condition.any_of(conditions) if True in said_or else Condition.all_of(conditions))
    tests = {leaf for condition in conditions for leaf in condition.leaves}
    shown = tuple(text[sentence.tokens[start].start : sentence.tokens[end - 1].end] for start, end in unread)
    for way in ways:
        if way is not None and set(way.leaves) == tests and not is_impossible(way):
            suggestion = Suggestion(asked.said.format(say(way)), way, shown)
            yield from [suggestion] if read_rule(suggestion.text, sentence.vocabulary).condition == way else []


def _examples(sentence: Sentence, start: int, end: int) -> Iterator[str]:
    """What can be said of the facts that an unread part names, with its number or value; else only their names."""
    vocabulary, said, nearby = sentence.vocabulary, set(sentence.said(start, end)), range(start, end)
    past, odd = _past_fact(sentence, start, end), TIME_FACTS | ({"amount"} if said & _TURNING else set())
    named = {past: start} if past else {}
    for at in nearby if not past else ():
        word = sentence.tokens[at].text
        names = [fact.name for fact, _ in sentence.facts(at, "number", "flag", "category")]
        names += [name for name, fact in vocabulary.facts.items() if fact.words[:1] == (word,) and said > {*fact.words}]
        is_age = not _is_counted(sentence, at) and word not in _NOT_SHOWN | PEOPLE
        for age in vocabulary.ages if is_age else ():
            names += [age.fact for told in (*age.since, *age.did) if told[:1] == (word,)]
            names += [age.fact for _ in sentence.matches(at, age.age_of, exact=True)]
        for meant, after in sentence.matches(at, vocabulary.values, exact=True):
            is_clear = after > at + 1 and not sentence.is_one_of(after - 1, PEOPLE)  # "policy holder" is no value
            names += [each.fact for each in meant if is_clear]
        named = {name: at for name in names if name not in odd and name.lower() not in HOURS} | named
    counts = [at for at in nearby if sentence.tokens[at].kind is Kind.NUMBER and not sentence.is_one_of(at + 1, HOURS)]
    has_two = len(counts) > 1 and not sentence.has_word(start, end, "between", "to")  # of which is which said?
    for name, place in named.items():
        fact, near = vocabulary.facts[name], sorted(nearby, key=lambda at: abs(at - place))
        limits = [
            bound(name)
            for at in near
            for bound, _ in bounds(sentence, at, fact)
            if fact.kind == "number" and not has_two
        ]
        values = [value[0] for at in near if (value := sentence.value(fact, at))]
        limits += [among(name, [value]) for value in values if said & _BOUNDING <= {*value.split()}]
        limits = [Condition.of(Test(name, Op.MISSING))] if said & words("unknown") else limits
        yield f"`{name}`" if not limits or said & {*_DENIALS} else f"'{say(limits[0])}'"


def _past_fact(sentence: Sentence, start: int, end: int) -> str:
    """The fact about the past of an entity of which an unread part speaks, in the window that is said, if any."""
    entities = [(name, at) for at in range(len(sentence.tokens)) for name, _ in sentence.entity(at)]
    counted = {name for name, at in entities if start <= at < end and _is_counted(sentence, at)}
    entities.sort(key=lambda entity: not start <= entity[1] < end)
    known = set(sentence.vocabulary.entities.values())
    strangers = [at for at in range(start, end) if sentence.is_one_of(at, _ENTITY_NOUNS) and not sentence.entity(at)]
    owners = [name for name, _ in entities if name not in counted] or [*known] * (len(known) == 1 and not strangers)
    if not owners or len(counted) > 1:
        return ""
    units = {figure.unit for at in range(start, end) for figure, _ in figures(sentence, at)}
    is_ago = not units.isdisjoint(HOURS) and sentence.has_word(start, end, "ago", "apart", "since", "used")
    singles = {**_FROM_LAST, **dict.fromkeys(HOURS if is_ago else (), "hours_since_last")}
    names = [f"{owners[0]}_{singles[unit]}" for unit in singles if unit in units and not counted]
    said = [f"distinct_{name}" for name in counted]
    said += [figure for at in range(start, end) for figure, _ in sentence.meanings(at, _FIGURES)]
    said += ["sum"] * any(token.is_money for token in sentence.tokens[start:end])
    said += ["count"] * any(
        sentence.is_one_of(at, TRANSACTIONS) and _is_counted(sentence, at) for at in range(start, end)
    )
    if "known_fraud_share" in said:  # "half" is a share only of frauds
        said.remove("known_fraud_share" if "known_frauds" not in said else "known_frauds")
    hours = windows_said(sentence.part(start, end)) or windows_said(sentence)
    windows = sentence.vocabulary.windows.get(f"{owners[0]}_{(said or [''])[0]}", {})
    names += [fact.name for each, fact in windows.items() if {each} == hours]
    return next((name for name in names if name in sentence.vocabulary.facts), "")


def _is_counted(sentence: Sentence, at: int) -> bool:
    """Whether the entity at a place is one of those that are counted: "3 different users", "more than one card"."""
    while at and sentence.is_word(at - 1, "different", "distinct", "other", "one", "or", "more"):
        at -= 1
    return at > 0 and (bool(numbers(sentence, at - 1)) or sentence.is_word(at - 1, "than"))
