"""Flags, and facts that are unknown: "not through a VPN", "the customer is not present", "no country given"."""

from __future__ import annotations

from collections.abc import Iterator

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.sentence import Sentence, Tests
from acefraud.rules.reader.tokens import Kind, phrases, words
from acefraud.rules.reader.vocabulary import FlagPhrase

_WITHOUT = phrases("without")
_LINKS = words("flag_links")
_AFTER_FLAG = words("heads") | {"detected", "involved", "found", "passed", "recently"}
_TRUE_OR_FALSE = {"true": True, "false": False, "yes": True, "no": False, "set": True}
_OTHERWISE = words("otherwise_as_value")
_SWITCHED_ON = words("switched_on")
_GAP = ("is", "not", "has", "be", "get")
_IN_GAP = frozenset(_GAP) | {"just", "recently", "already"}
_LONGEST = 6
"""Words of a flag before or after a gap."""
_UNKNOWN, _KNOWN = phrases("unknown"), phrases("known")
_UNKNOWN_BEFORE = phrases("unknown_before")
_ELSE = {"entity": phrases("new_instead"), "flag": phrases("false_instead")}
"""What such words mean of an entity or a flag instead: that it is new, or that it does not hold."""


def flag_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of a flag that begins here."""
    for name, holds, end in _flags(sentence, at):
        yield Condition.of(Test(name, Op.IS, holds)), end


def _flags(sentence: Sentence, at: int) -> Iterator[tuple[str, bool, int]]:
    """The name of a flag, whether it is said to hold, and the place after that."""
    tokens = sentence.tokens
    for fact, after in sentence.facts(at, "flag"):
        for place in sentence.after_be(after)[1:]:
            if sentence.is_one_of(place, _TRUE_OR_FALSE):
                yield fact.name, _TRUE_OR_FALSE[tokens[place].text], place + 1
        if _is_column(sentence, after - 1):
            yield fact.name, True, after
    if sentence.is_word(at, "not") and _is_column(sentence, at + 1):
        yield from ((fact.name, False, after) for fact, after in sentence.facts(at + 1, "flag"))
    start = max(sentence.after(at, *_WITHOUT), default=at)
    is_said = start == at
    for begin in {start, sentence.skipped(start, _LINKS)}:
        longest = max((end for _, end in sentence.matches(begin, sentence.vocabulary.values, exact=True)), default=0)
        for meanings, end in _flag_phrases(sentence, begin):
            if end < longest:
                continue  # "prepaid card" is one value, not something prepaid
            is_head = sentence.is_mere_word(end, _AFTER_FLAG)
            if is_head and _may_be_value(sentence, begin, end):
                continue  # "travel payments": of that category, or by somebody who travels?
            for flag in meanings:
                yield flag.fact, flag.holds == is_said, end + is_head
                if (switched := _after_switch(sentence, end)) > end + is_head:
                    yield flag.fact, flag.holds == is_said, switched


def _may_be_value(sentence: Sentence, start: int, end: int) -> bool:
    """Whether the words of a flag are, or begin, a value of a category that says something else."""
    said = sentence.said(start, end)
    return said in sentence.vocabulary.values and said[0] in _OTHERWISE


def _after_switch(sentence: Sentence, at: int) -> int:
    """After "on" or "is active", if nothing follows that "on" could belong to."""
    place = at + sentence.is_word(at, "is")
    if not sentence.is_one_of(place, _SWITCHED_ON):
        return at
    following = sentence.token(place + 1)
    ends = following is None or following.kind is Kind.SIGN
    return place + 1 if ends or sentence.is_word(place + 1, "and", "or", "but", "unless") else at


def _is_column(sentence: Sentence, at: int) -> bool:
    """Whether the name of a fact stands here as it is written in the data: card_new_store."""
    token = sentence.token(at)
    return token is not None and (token.kind is Kind.FACT or "_" in token.shown)


def _flag_phrases(sentence: Sentence, at: int) -> Iterator[tuple[list[FlagPhrase], int]]:
    """The words of a flag, perhaps with "is" or "is not" before the last of them: "the customer is not present"."""
    tokens, flags = sentence.tokens, sentence.vocabulary.flags
    yield from sentence.matches(at, flags)
    for gap in range(at + 1, min(at + _LONGEST, len(tokens))):
        if not sentence.is_one_of(gap, _GAP):
            continue
        end = sentence.skipped(gap, _IN_GAP)
        negated = "not" in sentence.said(gap, end)
        spliced = Sentence([*tokens[at:gap], *tokens[end : end + _LONGEST]], sentence.vocabulary)
        for meanings, after in spliced.matches(0, flags):
            if after > gap - at:
                flipped = [FlagPhrase(flag.fact, flag.holds != negated) for flag in meanings]
                yield flipped, end + after - (gap - at)


def presence_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of whether a fact is known that begins here."""
    for name, kind, after in _things(sentence, at):
        for place in sentence.after_be(after):
            for options, op in ((_UNKNOWN, Op.MISSING), (_KNOWN, Op.KNOWN)):
                said = [phrase for phrase in options if phrase not in _ELSE.get(kind, ())]
                yield from ((Condition.of(Test(name, op)), end) for end in sentence.after(place, *said))
    for said_before in _UNKNOWN_BEFORE:
        for then in sentence.after(sentence.skipped(at), said_before):
            for name, kind, end in _things(sentence, then):
                is_none = said_before in ("no", "without", "no known") and _can_be_none(sentence, name, kind)
                if not is_none and said_before not in _ELSE.get(kind, ()):
                    final = end + sentence.is_word(end, "given", "known", "recorded")
                    yield Condition.of(Test(name, Op.MISSING)), final


def _can_be_none(sentence: Sentence, name: str, kind: str) -> bool:
    """Whether "no" before a fact may be one of its values, rather than a missing one."""
    fact = sentence.vocabulary.facts.get(name)
    if fact is None or kind in ("entity", "rare entity"):
        return False
    lower = [value.lower() for value in fact.values]
    return fact.kind in ("flag", "number") or any(value == "none" or value.startswith("no ") for value in lower)


def _things(sentence: Sentence, at: int) -> Iterator[tuple[str, str, int]]:
    """Facts with their kind, and entities by the fact that shows whether they are known."""
    facts = sentence.vocabulary.facts
    for fact, after in sentence.facts(at, "number", "category", "flag"):
        yield fact.name, fact.kind, after
    for entity, after in sentence.entity(at):
        counted = sorted(name for name in facts if name.startswith(f"{entity}_count_"))
        if counted:  # an entity that is not known has no past
            kind = "entity" if facts[counted[0]].always_known else "rare entity"
            yield counted[0], kind, after + sentence.is_word(after, "id", "identifier", "number")
