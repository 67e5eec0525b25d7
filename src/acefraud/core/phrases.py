"""The phrases by which a test is recognised in English: those that `say` uses, and other ways people say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from acefraud.core.comparison import PRESENCE, Op, Test
from acefraud.core.english import COMPARISONS, in_singular
from acefraud.core.lexicon import HISTORY, LEXICON, FactWords, history_name

_NUMBER = (
    r"[$€£]?(?P<v>-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?)(?P<k>k\b)?(?:\s?(?:usd|dollars|eur|euros)\b)?"
)
_SHARE = r"(?P<share>-?\d+(?:\.\d+)?)%"
_QUOTED = r"\"(?:[^\"\\]|\\.)*\""
_LIST = rf"(?P<w>{_QUOTED}(?:, {_QUOTED})*)"
_NAME = r"(?:`(?P<ticked>[^`]+)`|(?P<name>[A-Za-z]\w*_\w*|_\w+))"
_UNIT = r"\s?(?P<unit>minute|hour|day|week|month|year)s?(?: old)?\b"
_HISTORY = {
    "{e}": r"(?P<entity>[\w ]+?)",
    "{o}": r"(?P<other>[\w ]+?)",
    "{os}": r"(?P<others>[\w ]+?s)",
    "{w}": r"the last (?P<window>(?:\d+ )?(?:hour|day)s?)",
}
_DAYS = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.0, "year": 365.0}


@dataclass(frozen=True, slots=True)
class Phrase:
    """One way to say a test. What is not fixed here stands in the named groups of the match."""

    pattern: re.Pattern[str]
    op: Op
    fact: str = ""
    value: bool | float | None = None

    def test(self, match: re.Match[str]) -> Test:
        """The test that a match of the pattern states."""
        groups = match.groupdict()
        fact = history_name(self.fact, groups) if self.fact else groups["ticked"] or groups["name"]
        if self.op in PRESENCE:
            return Test(fact, self.op)
        if self.value is not None:
            return Test(fact, self.op, self.value)
        if groups.get("w") is not None:
            words = tuple(re.sub(r"\\(.)", r"\1", word[1:-1]) for word in re.findall(_QUOTED, groups["w"]))
            return Test(fact, self.op, words if self.op in (Op.IN, Op.NOT_IN) else words[0])
        if groups.get("share") is not None:
            return Test(fact, self.op, float(Decimal(groups["share"]) / 100))
        figure = float(groups["v"].replace(",", "")) * (1000 if groups["k"] else 1)
        return Test(fact, self.op, figure * _DAYS[groups["unit"].lower()] if groups.get("unit") else figure)


def _phrase(pattern: str, op: Op, fact: str = "", value: bool | float | None = None) -> Phrase:
    return Phrase(re.compile(pattern, re.IGNORECASE), op, fact, value)


@cache
def exact_phrases() -> tuple[Phrase, ...]:
    """The phrases of `acefraud.core.english.say`."""
    found: list[Phrase] = []
    for words in (*LEXICON.values(), *HISTORY):
        found.extend(_said_of(_pattern(words.noun), words.name, _SHARE if words.share else _NUMBER))
        found.extend(_number_said(words) if words.kind == "number" else _flag_said(words))
    found.extend(_said_of(_NAME, "", _NUMBER))
    found.extend(_phrase(rf"{_NAME} {word} {_NUMBER}", op) for op, word in COMPARISONS.items())
    return tuple(found)


def _pattern(words: str) -> str:
    """The words as a pattern, in which entities and windows stand open."""
    pattern = re.escape(words)
    for part, group in _HISTORY.items():
        pattern = pattern.replace(re.escape(part), group)
    return pattern


def _said_of(noun: str, fact: str, number: str) -> Iterator[Phrase]:
    """What can be said of any fact: that it is missing, a word, one of several words, a flag or a figure."""
    yield _phrase(rf"{noun} is missing", Op.MISSING, fact)
    yield _phrase(rf"{noun} is known", Op.KNOWN, fact)
    yield _phrase(rf"{noun} is one of {_LIST}", Op.IN, fact)
    yield _phrase(rf"{noun} is none of {_LIST}", Op.NOT_IN, fact)
    for op in (Op.IS, Op.IS_NOT):
        yield _phrase(rf"{noun} {op} (?P<w>{_QUOTED})", op, fact)
        yield _phrase(rf"{noun} {op} {number}", op, fact)
    yield _phrase(rf"{noun} is true", Op.IS, fact, True)
    yield _phrase(rf"{noun} is false", Op.IS, fact, False)


def _number_said(words: FactWords) -> Iterator[Phrase]:
    templates = {Op.ABOVE: words.above, Op.BELOW: words.below, Op.AT_LEAST: words.at_least, Op.AT_MOST: words.at_most}
    unit = f" {words.unit}" if words.unit else ""
    for op, template in templates.items():
        said = template or f"{words.noun} {COMPARISONS[op]} {{v}}{unit}"
        before, after = said.split("{v}")
        number = _SHARE if words.share else _NUMBER
        yield _phrase(_pattern(before) + number + _pattern(after), op, words.name)
        if not words.share:
            yield _phrase(_pattern(in_singular(said, "1")), op, words.name, 1.0)


def _flag_said(words: FactWords) -> Iterator[Phrase]:
    if words.true:
        for said, value in ((words.true, True), (words.false, False)):
            yield _phrase(rf"{_pattern(said)}(?= and |$)", Op.IS, words.name, value)


_COMPARE = {
    Op.ABOVE: r"(?:above|over|more than|greater than|exceed(?:s|ing)|higher than|>(?!=))",
    Op.BELOW: r"(?:below|under|less than|fewer than|lower than|<(?!=))",
    Op.AT_LEAST: r"(?:at least|>=|≥)",
    Op.AT_MOST: r"(?:at most|up to|<=|≤)",
}


@cache
def loose_phrases() -> tuple[Phrase, ...]:
    """Other ways to say a test of the lexicon; the more specific before the more general."""
    found: list[Phrase] = []
    for op, comparison in _COMPARE.items():
        found.extend(_loose_comparisons(op, comparison))
    for words in LEXICON.values():
        spoken = [re.escape(words.true), *words.also] if words.kind == "flag" else []
        for pattern in spoken:
            negated = rf"\b(?:no|without|not using) (?:a |an )?(?:{pattern})(?!\w)"
            found.append(_phrase(negated, Op.IS, words.name, False))
        found.extend(_phrase(rf"(?<!\w)(?:{pattern})(?!\w)", Op.IS, words.name, True) for pattern in spoken)
        if words.false:
            found.append(_phrase(rf"(?<!\w){re.escape(words.false)}(?!\w)", Op.IS, words.name, False))
    found.append(_phrase(r"\b(?:(?:late )?at night|night-?time)\b", Op.IS, "night", True))
    return tuple(sorted(found, key=lambda phrase: len(phrase.pattern.pattern), reverse=True))


def _loose_comparisons(op: Op, comparison: str) -> Iterator[Phrase]:
    account = r"\b(?:accounts?|users?|customers?)(?: age)?(?: is| are| that is| that are)? "
    aged = {Op.ABOVE: rf"(?:older than|{comparison})", Op.BELOW: rf"(?:younger than|newer than|{comparison})"}
    yield _phrase(rf"{account}{aged.get(op, comparison)}\s*{_NUMBER}{_UNIT}", op, "account_age_days")
    amount = r"\b(?:amounts?|transactions?|purchases?|payments?)(?: of| is| are)?"
    usual = r"\s?(?:times|x) (?:the )?(?:usual|average|normal|typical)(?: amount)?\b"
    yield _phrase(rf"{amount} {comparison}\s*{_NUMBER}{usual}", op, "amount_to_usual")
    yield _phrase(rf"{amount} {comparison}\s*{_NUMBER}(?!\s?(?:times|x|%|[\w,.]*\d))", op, "amount")
    yield _phrase(rf"\b(?:merchant(?:'s)? )?rating (?:is )?{comparison}\s*{_NUMBER}(?:/5)?", op, "merchant_rating")
    yield _phrase(rf"{comparison}\s*{_NUMBER} (?:recent )?fraud reports", op, "fraud_reports")
    yield _phrase(rf"{comparison}\s*{_NUMBER} failed (?:login )?attempts", op, "failed_attempts")
    for words in LEXICON.values():
        if words.kind == "number" and words.name not in ("amount", "merchant_rating"):
            yield _phrase(rf"\b{re.escape(words.noun)} (?:is )?{comparison}\s*{_NUMBER}", op, words.name)
