"""What only comments on a rule: reasons, what was seen before, and what somebody thinks of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import BaseModel

from acefraud.core.comparison import ORDERED, Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.facts import HISTORY_NAME, TIME_FACTS, Measure
from acefraud.rules.reader.grammar import tests_at
from acefraud.rules.reader.sentence import Sentence
from acefraud.rules.reader.tokens import Kind, tokens_of, words
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.wording import with_parts
from acefraud.support.package_data import read_package_toml


class _Remarks(BaseModel, extra="forbid"):
    """The entries of ``remarks.toml``, which explains them."""

    opening: tuple[str, ...]
    inside: tuple[str, ...]
    indifferent: tuple[str, ...]
    story: tuple[str, ...]
    restricting: frozenset[str]
    narrowing: frozenset[str]
    harmless: tuple[str, ...]
    vague: dict[str, str]


@dataclass(frozen=True)
class Shortened:
    """A rule without what only comments on it."""

    text: str
    remarks: tuple[str, ...] = ()
    facts: frozenset[str] = frozenset()
    """Those that the remarks name: the rule itself must compare them."""
    bounds: frozenset[str] = frozenset()
    """Whether "big" or "small" was left out: the rule itself must have such a bound of the amount."""

    def agrees(self, condition: Condition, vocabulary: Vocabulary, *, approves: bool) -> bool:
        """Whether the condition that was read says all that was left out. What approves passes over the least."""
        if approves and not all(_HARMLESS.match(remark) or _INDIFFERENT.match(remark) for remark in self.remarks):
            return False
        tests = [leaf for leaf in condition.leaves if isinstance(leaf, Test) and leaf.op in ORDERED]
        amounts = [test for test in tests if _is_amount(test.fact, vocabulary)]
        said = {"below" if test.op in (Op.BELOW, Op.AT_MOST) else "above" for test in amounts}
        times = TIME_FACTS if condition.facts & TIME_FACTS else frozenset[str]()
        return self.bounds <= said and self.facts <= condition.facts | times


_REMARKS = read_package_toml("acefraud.rules.reader", "remarks.toml", _Remarks)
_INSIDE = "|".join(_REMARKS.inside)
_BOUNDARY = re.compile(rf"(\s*(?:[.,;:!?]+(?=\s|$)|[()–—]|\s-+\s|[-–—=]+>|→|⇒|=(?=\s))\s*|\s+(?=(?:{_INSIDE})))", re.I)
"""What stands between two clauses."""
_OPENING = re.compile(rf"(?:(?:and|so|well|also|plus) )?(?:{'|'.join(_REMARKS.opening)}|{_INSIDE})", re.I)
_HARMLESS = re.compile("|".join(_REMARKS.harmless), re.I)
_INDIFFERENT = re.compile("|".join(_REMARKS.indifferent), re.I)
_STORY = re.compile("|".join(_REMARKS.story), re.I)
_VAGUE = {bound: re.compile(with_parts(said), re.I) for bound, said in _REMARKS.vague.items()}
_VERDICT_WORDS = words("decline") | words("approve") | words("review")
_MILD = frozenset({"bad", "good", "look", "through", "down", "turn", "turned"})
"""Words of verdicts that remarks have as well."""
_REPEATED = {
    "suspicious": ("decline", "review"),
    "fine": ("approve",),
    **{same: (same,) for same in ("decline", "approve")},
}
"""Opinions as clauses of their own, with the requests beside which they say nothing more."""


_POINTING = re.compile(r"\b(?:on|of|by|to|for|about) (?:that|this|these|those|it|them|us|such)\b", re.I)
"""What points back to the rule, and so does not narrow it: "on that BIN"."""


def without_remarks(text: str, vocabulary: Vocabulary) -> Shortened:
    """The text without the clauses that only comment, and without adjectives that a figure must explain.

    >>> without_remarks("Decline amounts over 500, we got burned on that", Vocabulary.general()).remarks
    ('we got burned on that',)
    """
    kept, passed, facts = "", [], set[str]()
    clauses = _BOUNDARY.split(text)
    for clause, sign in zip(clauses[::2], [*clauses[1::2], ""], strict=True):
        is_first_sentence = not kept and sign.strip() == "."
        named = _named_by_remark(clause, vocabulary, is_first_sentence=is_first_sentence)
        if named is not None:
            passed.append(clause)
            facts |= named
        if named is not None or _is_said_elsewhere(clause, text):
            kept = kept.rstrip(" ,;:–—-") + (sign if sign.strip() else " ") * bool(kept and not kept.endswith("("))
        else:
            kept += clause + sign
    bounds = [bound for bound, pattern in _VAGUE.items() if pattern.search(kept)]
    for bound in bounds:
        kept = _VAGUE[bound].sub("", kept)
    return Shortened(re.sub(r"\(\s*\)?$|\(\s*\)", "", kept).strip(), tuple(passed), frozenset(facts), frozenset(bounds))


def _named_by_remark(clause: str, vocabulary: Vocabulary, *, is_first_sentence: bool) -> set[str] | None:
    """The facts that a remark names and that the rule must compare as well; None if the clause is no remark."""
    tokens = tokens_of(clause)
    said = {token.text for token in tokens}
    if said & (_VERDICT_WORDS - _MILD) or any(token.kind is not Kind.WORD for token in tokens):
        return None
    if _INDIFFERENT.match(clause):
        return set()
    match, story = _OPENING.match(clause), is_first_sentence and _STORY.match(clause)
    rest = {token.text for token in tokens_of(clause[match.end() :])} if match else said
    if not (match or story) or (not story and rest & _REMARKS.restricting) or rest & {"only", "unless", "except"}:
        return None
    if match and not re.match(_INSIDE, clause, re.I):
        plain = _POINTING.sub("", clause[match.end() :])
        if {token.text for token in tokens_of(plain)} & _REMARKS.narrowing:
            return None
    sentence = Sentence(tokens, vocabulary)
    facts = {fact for at in range(len(tokens)) for fact in _facts_at(sentence, at)}
    return facts if story or not facts else None


def _facts_at(sentence: Sentence, at: int) -> set[str]:
    """The facts that are named or tested here, and those with a value that stands here."""
    named = {fact.name for fact, _ in sentence.facts(at, "number", "category", "flag")}
    valued = {each.fact for each in sentence.vocabulary.values.get(sentence.said(at, at + 1), ())}
    tested = {fact for condition, _ in tests_at(sentence, at) for fact in condition.facts}
    return named | tested | (valued if sentence.is_value(at) else set[str]())


def _is_said_elsewhere(clause: str, text: str) -> bool:
    """Whether a clause is a mere verdict that another one in the same text makes superfluous."""
    verdict = re.sub(r"^(?:so|just|then|please|and) ", "", clause.strip().lower())
    requests = "|".join(_REPEATED.get(verdict, ()))
    others = text.lower().replace(verdict, "", 1) if requests else ""
    return bool(requests) and re.search(rf"\b(?:{requests})\b", others) is not None


def _is_amount(name: str, vocabulary: Vocabulary) -> bool:
    fact = vocabulary.facts.get(name)
    return fact is not None and fact.measure is Measure.MONEY and HISTORY_NAME.fullmatch(name) is None
