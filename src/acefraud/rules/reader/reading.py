"""From the words of a rule to its condition and what it asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict
from acefraud.rules.reader.atoms import Atoms
from acefraud.rules.reader.connectives import EXCEPTIONS, FILLERS, LINKS, STOPS, Sentence
from acefraud.rules.reader.exact import read_exactly, unknown_facts
from acefraud.rules.reader.names import split_name
from acefraud.rules.reader.phrases import Tokens, after_any, is_one_of, is_word, skipped
from acefraud.rules.reader.quantities import NUMBER_WORDS
from acefraud.rules.reader.rewordings import reworded
from acefraud.rules.reader.spelling import respelt
from acefraud.rules.reader.suggestions import nearest_facts
from acefraud.rules.reader.tokens import Kind, Token, tokens_of
from acefraud.rules.reader.verdict_words import Conclusion, conclusions, outside
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import grammar_words, phrases

_ENUMERATED = re.compile(
    r"(?:^|(?<=[,;:.\n] )|(?<=\n)|(?<=\band )|(?<=\bor )|(?<=\bif )|(?<=\bwhen )|(?<=\beither ))\(?[a-h1-9]\)\s"
)
"""The letter or number of an item: "(a) ..., or (b) ..."."""
_GLOSS = re.compile(r"\s*\(`?(\w+(?:[_ ]\w+)+|[A-Za-z]+[a-z][A-Z]\w*)`?\)")
_WITHOUT_EXCEPTION = re.compile(
    r",?\s*\b(?:without (?:any )?exceptions?|no exceptions|in (?:every|any) case|in all cases"
    r"|under (?:all|any) circumstances)\b,?",
    re.IGNORECASE,
)
GRAMMAR_WORDS = grammar_words() | NUMBER_WORDS
"""Words that the reader knows whatever the facts are. They are never reported as not understood."""
_NEGATIVE = ("no", "neither", "none", "nothing", "nobody")
"""Subjects and objects that turn a verdict round."""
_ASKS = ("should", "do", "has", "can", "could", "would", "may", "shall", "will")
"""Words that open a question, if a question mark ends it."""
_LINKING = ("if", "when", "where", "whenever", "once", "provided", "as")
_OF_A_SETTING = ("for", "in", "is", "on", "at", "during", "between", "after", "before", "from")
"""Words that open what a rule is about, before its verdict: "if ..., decline", "on Sundays, decline"."""
_EVERYTHING = ("everything", "anything", "all", "any", "every")
_NOT_HONOURED: dict[str, list[str]] = {}
"""Words that change what a rule means in ways that it cannot have, by the first of them."""
for _said in phrases("not_honoured"):
    _NOT_HONOURED.setdefault(_said.split()[0], []).append(_said)
_LONGEST = 300
"""Words in a rule. A longer text is a note."""
_MOST_SIGNS = 3_000
"""Letters and other signs in a rule, likewise."""


@dataclass(frozen=True, slots=True)
class RuleReading:
    """What was understood of the words of a rule."""

    condition: Condition | None = None
    argues: Verdict | None = None
    always: Verdict | None = None
    """The verdict that the words order without exception."""
    asks_for_review: bool = False
    """Whether the words send cases to a person, without ordering it."""
    not_understood: tuple[str, ...] = ()
    """The words that could not be placed."""
    did_you_mean: tuple[str, ...] = ()
    """The facts nearest to these words."""
    readings: tuple[Condition, ...] = ()
    """The different conditions that the words may mean, if there are several."""

    @property
    def problem(self) -> str:
        """Why no condition was read, in words; empty if one was."""
        if self.condition is not None:
            return ""
        if self.readings:
            ways = "; or ".join(f"'{one}'" for one in self.readings[:3])
            return f"it can be read in several ways: {ways}. Parentheses, 'or' or the formal syntax make it clear."
        words = ", ".join(f"'{word}'" for word in self.not_understood)
        meant = f"; did you mean {' or '.join(self.did_you_mean)}?" if self.did_you_mean else "."
        return f"not understood: {words}{meant}"


def read_rule(text: str, vocabulary: Vocabulary) -> RuleReading:
    """What the words of a rule say.

    >>> reading = read_rule("Decline gift cards above $500 unless the customer is a VIP", Vocabulary.general())
    >>> str(reading.condition), str(reading.argues)
    ('amount > 500 and gift_cards is true and vip is false', 'DECLINE')
    >>> read_rule("Decline purple orders above $500", Vocabulary.general()).not_understood
    ('purple',)
    """
    if len(text) > _MOST_SIGNS:
        return RuleReading(not_understood=(f"{text[:40]}...",))
    text, always = _without_noise(text, vocabulary)
    text, glosses = _without_glosses(text, vocabulary)
    tokens = respelt(tokens_of(text), vocabulary)
    if len(tokens) > _LONGEST:
        return RuleReading(not_understood=(f"{text[:40]}...",))
    found: dict[Condition, RuleReading] = {}
    doubtful: list[Condition] = []
    said = RuleReading()
    hopeless = _is_question(tokens) or bool(_odd_words(tokens, vocabulary))  # no such sentence is read, so do not try
    if not hopeless:  # "fraud share above 5%" has a word of a verdict in it, but no verdict
        readings, _ = _readings(text, tokens, vocabulary, [])
        if len(readings) == 1 and glosses <= readings[0].facts:
            return RuleReading(readings[0])
    for conclusion in conclusions(tokens):
        if always and conclusion.always is None:
            conclusion = replace(conclusion, always=conclusion.argues or Verdict.REVIEW)  # noqa: PLW2901
        said = replace(said, argues=said.argues or conclusion.argues, always=said.always or conclusion.always)
        for condition in () if hopeless else _joined(text, tokens, conclusion, vocabulary, doubtful):
            if glosses <= condition.facts:
                asks = conclusion.argues is None and conclusion.always is None
                read = RuleReading(condition, conclusion.argues, conclusion.always, asks_for_review=asks)
                found.setdefault(condition, read)
    furthest = 0
    if not found and not hopeless:
        readings, furthest = _readings(text, tokens, vocabulary, doubtful)
        found = {condition: RuleReading(condition) for condition in readings if glosses <= condition.facts}
    if len(found) == 1:
        return next(iter(found.values()))
    if found or len(doubtful) > 1:
        return replace(said, readings=tuple(found or dict.fromkeys(doubtful)))
    odd = _not_understood(text, tokens, vocabulary, furthest)
    return replace(said, not_understood=odd, did_you_mean=nearest_facts(odd, vocabulary))


def _is_question(tokens: Tokens) -> bool:
    """Whether a sentence asks for an answer: "should we block transfers above 5,000?" """
    if not tokens or tokens[-1].text != "?" or any(token.text == "please" for token in tokens):
        return False
    first = tokens[0].text
    return first in _ASKS or (first in ("when", "why", "how") and is_word(tokens, 1, "do", "should", "can", "would"))


def _without_noise(text: str, vocabulary: Vocabulary) -> tuple[str, bool]:
    """The text without greetings, numbers of items and "without exception", and whether that was there."""
    plain = reworded(_ENUMERATED.sub("", text), frozenset(vocabulary.entities))
    strict = _WITHOUT_EXCEPTION.sub(" ", plain)
    return strict, strict != plain


def _without_glosses(text: str, vocabulary: Vocabulary) -> tuple[str, set[str]]:
    """The text without names of facts in parentheses, as in "earlier declines (declined_before)", and these names."""
    known = {split_name(name): name for name in vocabulary.facts if len(split_name(name)) > 1}
    names: set[str] = set()

    def dropped(match: re.Match[str]) -> str:
        name = known.get(split_name(match[1]))
        names.update([name] if name else [])
        return " " if name else match[0]

    return _GLOSS.sub(dropped, text), names


def _joined(
    text: str, tokens: Tokens, conclusion: Conclusion, vocabulary: Vocabulary, doubtful: list[Condition]
) -> list[Condition]:
    """The conditions before and after a conclusion, taken together."""
    left, right = outside(tokens, conclusion)
    befores: list[Condition | None] = [None]
    left = _without_last_filler(left)
    if _has_words(left):
        predicate = conclusion.is_predicate(tokens)
        if predicate and is_one_of(left, skipped(left, 0, STOPS), _NEGATIVE):
            return []  # "no VPN user is safe"
        excepted, first = _after_exception(left)
        unclear = doubtful if not excepted and not _has_words(right) else []
        found = _readings(text, first, vocabulary, unclear, as_object=predicate)[0]
        befores = [one.negated() if excepted else one for one in found]
    if not befores or not _has_words(right):
        return [one for one in befores if one is not None]
    negated, rest = _after_link(right)
    linked = negated or len(rest) < len(right)
    if negated and _is_open_exception(right, rest):
        return []
    if not linked and is_one_of(right, 0, _NEGATIVE):
        return []  # "let through no VPN user"
    if not linked and befores != [None] and not _goes_on(left, right):
        return []  # "payments over 900 are fraud. Payments at night"
    made = []
    has_object = conclusion.has_object(tokens) and not linked
    opened = is_one_of(right, 0, _LINKING)
    unclear = doubtful if not negated and befores == [None] else []
    for condition in _readings(text, rest, vocabulary, unclear, as_object=has_object, opened=opened)[0]:
        second = condition.negated() if negated else condition
        made += [second if before is None else Condition.all_of([before, second]) for before in befores]
    return made


def _is_open_exception(right: Tokens, rest: Tokens) -> bool:
    """Whether it is open what an exception covers.

    "decline, unless A, B": where does it end? "decline except VIP and verified": both of them, or whoever is either?
    """
    unclear = {",", ";", "if", "when", "where"} | (set() if is_word(right, 0, "unless") else {"and"})
    return any(is_one_of(rest, place, unclear) for place in range(len(rest)))


def _goes_on(left: Tokens, right: Tokens) -> bool:
    """Whether what follows a conclusion narrows what stands before it: "if A, decline everything B"."""
    opening = is_one_of(left, 0, (*_LINKING, *_OF_A_SETTING)) or next(after_any(left, 0, EXCEPTIONS), None) is not None
    return opening or is_one_of(right, 0, _EVERYTHING)


def _without_last_filler(tokens: Tokens) -> Tokens:
    """The tokens without the subject of a conclusion: "..., the claim" before "ought to be denied"."""
    end = len(tokens)
    while end and tokens[end - 1].kind is Kind.WORD and tokens[end - 1].text in FILLERS:
        end -= 1
    return tokens[:end] if end and tokens[end - 1].kind is Kind.SIGN else tokens


def _after_exception(tokens: Tokens) -> tuple[bool, Tokens]:
    """What follows "unless" or "except for" at the beginning, if all before the conclusion is one exception.

    "Unless A, B" before a conclusion is cut by `Sentence`, which knows where the exception ends.
    """
    after = next(after_any(tokens, 0, EXCEPTIONS), None)
    if after is None or any(token.kind is Kind.SIGN for token in tokens[after:]):
        return False, tokens
    return True, tokens[after:]


def _after_link(tokens: Tokens) -> tuple[bool, Tokens]:
    """What follows "if", "when" or "unless" after a conclusion, and whether it is an exception."""
    after = next(after_any(tokens, 0, EXCEPTIONS), None)
    if after is not None:
        return True, tokens[after:]
    return False, tokens[next(after_any(tokens, 0, (*LINKS, "and")), 0) :]


def _has_words(tokens: Tokens) -> bool:
    """Whether there is more than words that say nothing, such as "A claim" before "is suspicious if"."""
    return any(token.kind is not Kind.SIGN and token.text not in FILLERS for token in tokens)


def _readings(
    text: str,
    tokens: Tokens,
    vocabulary: Vocabulary,
    doubtful: list[Condition],
    *,
    as_object: bool = False,
    opened: bool = False,
) -> tuple[list[Condition], int]:
    """The conditions that some of the tokens mean, and how far the best reading came.

    What they may mean, if they can be taken in several ways, is added to `doubtful`.
    """
    end = len(tokens)
    while end and tokens[end - 1].kind is Kind.SIGN and tokens[end - 1].text != ")":
        end -= 1
    start = min(skipped(tokens, 0, STOPS), end)
    some = tokens[start:end]
    if not some:
        return [], 0
    written = text[some[0].start : some[-1].end]
    if (exact := read_exactly(written, vocabulary)) is not None:
        return [exact], len(tokens)
    sentence = Sentence(some, Atoms(some, vocabulary), as_object=as_object, opened=opened)
    found = sentence.readings()
    doubtful.extend(sentence.doubtful)
    return found, start + sentence.furthest


def _not_understood(text: str, tokens: Tokens, vocabulary: Vocabulary, furthest: int) -> tuple[str, ...]:
    """The words that mean nothing here. If each means something, the part of the sentence that could not be joined."""
    try:
        named = unknown_facts(Condition.parse(text), vocabulary)
    except ValueError:
        named = []
    if named and not vocabulary.is_open:
        return tuple(named)
    odd = _odd_words(tokens, vocabulary)
    if not odd and furthest < len(tokens):
        odd = [text[tokens[furthest].start :].strip()]
    return tuple(dict.fromkeys(odd)) or (text.strip(),)


def _odd_words(tokens: Tokens, vocabulary: Vocabulary) -> list[str]:
    """The words that mean nothing here, and the names in backticks that no fact and no list has."""
    known_names = vocabulary.facts.keys() | vocabulary.lists
    for place, token in enumerate(tokens):
        for end in after_any(tokens, place, _NOT_HONOURED.get(token.text, ())):
            return [" ".join(token.shown for token in tokens[place:end])]
    return [
        token.shown
        for token in tokens
        if (token.kind is Kind.WORD and not _is_known(token, vocabulary))
        or (token.kind is Kind.FACT and token.text not in known_names and not vocabulary.is_open)
    ]


def _is_known(token: Token, vocabulary: Vocabulary) -> bool:
    if token.text in vocabulary.word_list or token.text in GRAMMAR_WORDS or token.shown in vocabulary.lists:
        return True
    if token.text.lower() in vocabulary.lower_names:  # the name of a fact, in formal syntax
        return True
    return vocabulary.is_open and not token.shown.isalpha()
