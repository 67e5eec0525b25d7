"""Reading a condition from English: the exact words of `acefraud.rules.english.say`, and other ways to say the same.

A condition is returned only if every word that carries meaning was understood. If a part were ignored, the condition
would cover more than its author meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property, lru_cache

from acefraud.core.comparison import PRESENCE, Op, Test
from acefraud.core.condition import MAX_TESTS, Condition
from acefraud.core.fact_names import COMPARISONS, HISTORY_FACTS, NAMED_FACTS, FactWords, history_name
from acefraud.rules.english import in_singular

_FILLER = re.compile(
    r"\b(?:the|a|an|and|is|are|was|has|have|with|from|of|in|on|at|to|for|by|when|where|if|it|its|this|that|then|"
    r"uses?|using|used|plus|transactions?|payments?|purchases?|users?|customers?|cards?|merchants?|accounts?|"
    r"devices?|countr(?:y|ies)|detected|any|both|shows?|there|made|comes?|via|through|behind)\b"
    r"|[^\w`\"]+",
    re.IGNORECASE,
)
_EXAMPLES = re.compile(r"\((?:[A-Z][\w ]+(?:, )?)+\)")
"""Names in parentheses are examples of the words before them: "high-risk countries (Nigeria, Romania)"."""


def read_condition(words: str) -> Condition | None:
    """The condition that these words state, or None if any part that carries meaning was not understood.

    >>> str(read_condition("the amount exceeds $2,000 and the account is younger than 30 days"))
    'account_age_days < 30 and amount > 2000'
    """
    try:
        tests = _exact_tests(words) or _loose_tests(words)
    except ValueError:  # a figure that no float can hold, as in "above 1e999"
        return None
    return Condition(tuple(tests)) if tests and len(set(tests)) <= MAX_TESTS else None


def _exact_tests(words: str) -> list[Test]:
    """Tests in the exact words of `say`, joined by "and". Empty if there is anything else."""
    tests: list[Test] = []
    position = 0
    while True:
        start = words[position : position + _START].lower()
        matches = ((phrase, phrase.regex.match(words, position)) for phrase in _phrases_beginning(start))
        found = [
            (match.end(), phrase, match) for phrase, match in matches if match and _at_end_of_test(words, match.end())
        ]
        if not found:
            return []
        position, phrase, match = max(found, key=lambda one: one[0])
        tests.append(phrase.test(match))
        if position == len(words):
            return tests
        position += len(" and ")


def _at_end_of_test(words: str, position: int) -> bool:
    return position == len(words) or words.startswith(" and ", position)


def _loose_tests(words: str) -> list[Test]:
    """Tests recognised anywhere in the words. Empty if words that carry meaning are left over."""
    rest = words
    tests: list[Test] = []
    for phrase in _loose_phrases():
        while (match := phrase.regex.search(rest)) is not None:
            tests.append(phrase.test(match))
            rest = f"{rest[: match.start()]} ; {rest[match.end() :]}"
    return [] if _FILLER.sub("", _EXAMPLES.sub("", rest)).strip() else tests


# --- phrases ----------------------------------------------------------------------------------------------------

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


_START = 8
"""How many characters of the words decide which exact phrases are tried."""
_FIXED_TEXT = re.compile(r"(?:(?:[\w ',/%]|\\\W)(?![?*+{]))*")
"""The beginning of a pattern that stands for itself: plain and escaped characters that nothing repeats."""


@dataclass(frozen=True)
class _Phrase:
    """One way to say a test. What is left open is read from the named groups of the match."""

    pattern: str
    op: Op
    fact: str = ""
    value: bool | float | None = None

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern, compiled when it is first tried."""
        return re.compile(self.pattern, re.IGNORECASE)

    @cached_property
    def opening(self) -> str:
        """The fixed text that the pattern begins with, in lower case."""
        fixed = _FIXED_TEXT.match(self.pattern)
        return fixed[0].replace("\\", "").lower() if fixed else ""

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


@cache
def _exact_phrases() -> tuple[_Phrase, ...]:
    """The phrases that `acefraud.rules.english.say` uses."""
    found: list[_Phrase] = []
    for words in (*NAMED_FACTS.values(), *HISTORY_FACTS):
        found.extend(_generic_phrases(_pattern(words.noun), words.name, _SHARE if words.share else _NUMBER))
        found.extend(_number_phrases(words) if words.kind == "number" else _flag_phrases(words))
    found.extend(_generic_phrases(_NAME, "", _NUMBER))
    found.extend(_Phrase(rf"{_NAME} {word} {_NUMBER}", op) for op, word in COMPARISONS.items())
    return tuple(found)


@lru_cache(maxsize=1024)
def _phrases_beginning(start: str) -> list[_Phrase]:
    """The exact phrases that can begin with these characters. Letters beyond ASCII may match in unexpected ways."""
    return [
        phrase
        for phrase in _exact_phrases()
        if not start.isascii() or phrase.opening[:_START] == start or start.startswith(phrase.opening)
    ]


def _pattern(words: str) -> str:
    """The words as a regular expression that leaves entities and windows open."""
    pattern = re.escape(words)
    for part, group in _HISTORY.items():
        pattern = pattern.replace(re.escape(part), group)
    return pattern


def _generic_phrases(noun: str, fact: str, number: str) -> Iterator[_Phrase]:
    """What can be said of any fact: that it is missing or known, and that it equals a category, a flag or a figure."""
    yield _Phrase(rf"{noun} is missing", Op.MISSING, fact)
    yield _Phrase(rf"{noun} is known", Op.KNOWN, fact)
    yield _Phrase(rf"{noun} is one of {_LIST}", Op.IN, fact)
    yield _Phrase(rf"{noun} is none of {_LIST}", Op.NOT_IN, fact)
    for op in (Op.IS, Op.IS_NOT):
        yield _Phrase(rf"{noun} {op} (?P<w>{_QUOTED})", op, fact)
        yield _Phrase(rf"{noun} {op} {number}", op, fact)
    yield _Phrase(rf"{noun} is true", Op.IS, fact, True)
    yield _Phrase(rf"{noun} is false", Op.IS, fact, False)


def _number_phrases(words: FactWords) -> Iterator[_Phrase]:
    for op, said in words.comparisons.items():
        before, after = said.split("{v}")
        number = _SHARE if words.share else _NUMBER
        yield _Phrase(_pattern(before) + number + _pattern(after), op, words.name)
        if not words.share:
            yield _Phrase(_pattern(in_singular(said, "1")), op, words.name, 1.0)


def _flag_phrases(words: FactWords) -> Iterator[_Phrase]:
    if words.true:
        for said, value in ((words.true, True), (words.false, False)):
            yield _Phrase(rf"{_pattern(said)}(?= and |$)", Op.IS, words.name, value)


_COMPARE = {
    Op.ABOVE: r"(?:above|over|more than|greater than|exceed(?:s|ing)|higher than|>(?!=))",
    Op.BELOW: r"(?:below|under|less than|fewer than|lower than|<(?!=))",
    Op.AT_LEAST: r"(?:at least|>=|≥)",
    Op.AT_MOST: r"(?:at most|up to|<=|≤)",
}


@cache
def _loose_phrases() -> tuple[_Phrase, ...]:
    """Other ways to say a test of a known fact, longest pattern first because it is the most specific."""
    found: list[_Phrase] = []
    for op, comparison in _COMPARE.items():
        found.extend(_loose_comparisons(op, comparison))
    for words in NAMED_FACTS.values():
        spoken = [re.escape(words.true), *words.also] if words.kind == "flag" else []
        for pattern in spoken:
            negated = rf"\b(?:no|without|not using) (?:a |an )?(?:{pattern})(?!\w)"
            found.append(_Phrase(negated, Op.IS, words.name, False))
        found.extend(_Phrase(rf"(?<!\w)(?:{pattern})(?!\w)", Op.IS, words.name, True) for pattern in spoken)
        if words.false:
            found.append(_Phrase(rf"(?<!\w){re.escape(words.false)}(?!\w)", Op.IS, words.name, False))
    found.append(_Phrase(r"\b(?:(?:late )?at night|night-?time)\b", Op.IS, "night", True))
    return tuple(sorted(found, key=lambda phrase: len(phrase.pattern), reverse=True))


def _loose_comparisons(op: Op, comparison: str) -> Iterator[_Phrase]:
    account = r"\b(?:accounts?|users?|customers?)(?: age)?(?: is| are| that is| that are)? "
    aged = {Op.ABOVE: rf"(?:older than|{comparison})", Op.BELOW: rf"(?:younger than|newer than|{comparison})"}
    yield _Phrase(rf"{account}{aged.get(op, comparison)}\s*{_NUMBER}{_UNIT}", op, "account_age_days")
    amount = r"\b(?:amounts?|transactions?|purchases?|payments?)(?: of| is| are)?"
    usual = r"\s?(?:times|x) (?:the )?(?:usual|average|normal|typical)(?: amount)?\b"
    yield _Phrase(rf"{amount} {comparison}\s*{_NUMBER}{usual}", op, "amount_to_usual")
    yield _Phrase(rf"{amount} {comparison}\s*{_NUMBER}(?!\s?(?:times|x|%|[\w,.]*\d))", op, "amount")
    yield _Phrase(rf"\b(?:merchant(?:'s)? )?rating (?:is )?{comparison}\s*{_NUMBER}(?:/5)?", op, "merchant_rating")
    yield _Phrase(rf"{comparison}\s*{_NUMBER} (?:recent )?fraud reports", op, "fraud_reports")
    yield _Phrase(rf"{comparison}\s*{_NUMBER} failed (?:login )?attempts", op, "failed_attempts")
    for words in NAMED_FACTS.values():
        if words.kind == "number" and words.name not in ("amount", "merchant_rating"):
            yield _Phrase(rf"\b{re.escape(words.noun)} (?:is )?{comparison}\s*{_NUMBER}", op, words.name)
