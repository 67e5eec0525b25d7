"""Flags, and facts that are unknown: "not through a VPN", "the customer is not present", "no country given"."""

from __future__ import annotations

from collections.abc import Iterator

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.bounds import Tests
from acefraud.rules.reader.nouns import Nouns
from acefraud.rules.reader.phrases import Tokens, after_any, after_be, is_one_of, is_word, matches, phrase, skipped
from acefraud.rules.reader.tokens import Kind
from acefraud.rules.reader.vocabulary import FlagPhrase, Vocabulary
from acefraud.rules.reader.word_lists import phrases, words

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


class FlagTests:
    """Reads tests of flags, and of whether a fact is known."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary, nouns: Nouns) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        self._nouns = nouns

    def tests(self, at: int) -> Tests:
        """Every test of a flag that begins here."""
        tokens = self._tokens
        for fact, after in self._nouns.facts(at, "flag"):
            for place in after_be(tokens, after)[1:]:
                if is_one_of(tokens, place, _TRUE_OR_FALSE):
                    yield Condition.of(Test(fact.name, Op.IS, _TRUE_OR_FALSE[tokens[place].text])), place + 1
            if self._is_column(after - 1):
                yield Condition.of(Test(fact.name, Op.IS, True)), after
        if is_word(tokens, at, "not"):
            for fact, after in self._nouns.facts(at + 1, "flag") if self._is_column(at + 1) else ():
                yield Condition.of(Test(fact.name, Op.IS, False)), after
        start = max(after_any(tokens, at, _WITHOUT), default=at)
        holds = start == at
        for begin in {start, skipped(tokens, start, _LINKS)}:
            longest = max((end for _, end in matches(tokens, begin, self._vocabulary.values, exact=True)), default=0)
            for meanings, end in self._flag_phrases(begin):
                if end < longest:
                    continue  # "prepaid card" is one value, not something prepaid
                is_head = is_one_of(tokens, end, _AFTER_FLAG) and (tokens[end].text,) not in self._vocabulary.values
                final = end + is_head
                if is_head and self._may_be_value(begin, end):
                    continue  # "travel payments": of that category, or by somebody who travels?
                for one in meanings:
                    yield Condition.of(Test(one.fact, Op.IS, one.holds == holds)), final
                    if (switched := self._after_switch(end)) > final:
                        yield Condition.of(Test(one.fact, Op.IS, one.holds == holds)), switched

    def _may_be_value(self, start: int, end: int) -> bool:
        """Whether the words of a flag are, or begin, a value of a category that says something else."""
        said = tuple(token.text for token in self._tokens[start:end])
        return said in self._vocabulary.values and said[0] in _OTHERWISE

    def _after_switch(self, at: int) -> int:
        """After "on" or "is active", if nothing follows that "on" could belong to."""
        place = at + is_word(self._tokens, at, "is")
        if not is_one_of(self._tokens, place, _SWITCHED_ON):
            return at
        after = place + 1
        ends = after == len(self._tokens) or self._tokens[after].kind is Kind.SIGN
        return after if ends or is_word(self._tokens, after, "and", "or", "but", "unless") else at

    def _is_column(self, at: int) -> bool:
        """Whether the name of a fact stands here as it is written in the data: card_new_store."""
        token = self._tokens[at] if at < len(self._tokens) else None
        return token is not None and (token.kind is Kind.FACT or "_" in token.shown)

    def _flag_phrases(self, at: int) -> Iterator[tuple[list[FlagPhrase], int]]:
        """The words of a flag, perhaps with "is" or "is not" before the last of them: "the customer is not present"."""
        yield from matches(self._tokens, at, self._vocabulary.flags)
        for gap in range(at + 1, min(at + _LONGEST, len(self._tokens))):
            if not is_word(self._tokens, gap, *_GAP):
                continue
            end = skipped(self._tokens, gap, _IN_GAP)
            negated = any(token.text == "not" for token in self._tokens[gap:end])
            spliced = [*self._tokens[at:gap], *self._tokens[end : end + _LONGEST]]
            for meanings, after in matches(spliced, 0, self._vocabulary.flags):
                if after > gap - at:
                    flipped = [FlagPhrase(one.fact, one.holds != negated) for one in meanings]
                    yield flipped, end + after - (gap - at)

    def presence_tests(self, at: int) -> Tests:
        """Every test of whether a fact is known that begins here."""
        tokens = self._tokens
        for name, kind, after in self._things(at):
            for place in after_be(tokens, after):
                for options, op in ((_UNKNOWN, Op.MISSING), (_KNOWN, Op.KNOWN)):
                    for said in options:
                        end = phrase(tokens, place, said)
                        if end is not None and said not in _ELSE.get(kind, ()):
                            yield Condition.of(Test(name, op)), end
        start = skipped(tokens, at)
        for said in _UNKNOWN_BEFORE:
            then = phrase(tokens, start, said)
            for name, kind, end in self._things(then) if then is not None else ():
                if said in _ELSE.get(kind, ()):
                    continue
                if said not in ("no", "without", "no known") or not self._can_be_none(name, kind):
                    yield Condition.of(Test(name, Op.MISSING)), end + is_word(tokens, end, "given", "known", "recorded")

    def _can_be_none(self, name: str, kind: str) -> bool:
        """Whether "no" before a fact may be one of its values, rather than a missing one."""
        fact = self._vocabulary.facts.get(name)
        if fact is None or kind in ("entity", "rare entity"):
            return False
        return fact.kind in ("flag", "number") or any(
            value.lower() == "none" or value.lower().startswith("no ") for value in fact.values
        )

    def _things(self, at: int) -> Iterator[tuple[str, str, int]]:
        """Facts with their kind, and entities by the fact that shows whether they are known."""
        for fact, after in self._nouns.facts(at, "number", "category", "flag"):
            yield fact.name, fact.kind, after
        for entity, after in self._nouns.entity(at):
            counted = sorted(name for name in self._vocabulary.facts if name.startswith(f"{entity}_count_"))
            if counted:  # an entity that is not known has no past
                kind = "entity" if self._vocabulary.facts[counted[0]].always_known else "rare entity"
                yield counted[0], kind, after + is_word(self._tokens, after, "id", "identifier", "number")
