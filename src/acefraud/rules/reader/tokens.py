"""The words, numbers and signs of a sentence, and the lists of the words that the reader knows (``words.toml``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, TypeVar

from acefraud.support.package_data import read_package_toml

T = TypeVar("T")
Words = tuple[str, ...]
_LONGEST = 12
"""Words of one entry of a table."""
_TABLES = read_package_toml("acefraud.rules.reader", "words.toml", dict[str, dict[str, tuple[str, ...]]])
_FORMS = read_package_toml("acefraud.rules.reader", "forms.toml", dict[str, dict[str, str]])
_LISTS = {name: said for table in _TABLES.values() for name, said in table.items()}


CURRENCIES = _FORMS["currencies"]
"""The signs and names of currencies, with their codes."""


class PhraseTable(dict[Words, T]):
    """Meanings by the words that are said for them. It is looked up only once it is complete."""

    @cached_property
    def openings(self) -> frozenset[Words]:
        """The words with which longer entries begin."""
        return frozenset(said[:end] for said in self for end in range(1, min(len(said), _LONGEST)))

    @cached_property
    def first_words(self) -> frozenset[str]:
        """The words with which entries begin."""
        return frozenset(said[0] for said in self if said)


class PhraseList(dict[str, T]):
    """Phrases in the order in which they are tried, with what they mean. They are looked up only once complete."""

    @classmethod
    def of_lists(cls, meanings: Mapping[str, T]) -> PhraseList[T]:
        """The phrases of several lists, with what those of each list mean.

        >>> PhraseList.of_lists({"last_place": "place", "known": "known"})["last position"]
        'place'
        """
        return cls({said: meaning for name, meaning in meanings.items() for said in _LISTS[name]})

    @cached_property
    def by_first_word(self) -> dict[str | None, list[tuple[Words, T]]]:
        """The words of each phrase and its meaning by the first of them. An empty phrase stands everywhere."""
        split = [(tuple(said.split()), meaning) for said, meaning in self.items()]
        firsts = {None, *(said[0] for said, _ in split if said)}
        return {first: [each for each in split if not each[0] or each[0][0] == first] for first in firsts}


@cache
def words(name: str) -> frozenset[str]:
    """The words of a list, to ask whether a word is one of them.

    >>> sorted(words("plain_currencies"))
    ['buck', 'dollar', 'eur', 'euro', 'pound', 'usd']
    """
    return frozenset(_LISTS[name])


@cache
def phrases(name: str) -> PhraseList[Any]:
    """The phrases of a list in the order of the file, which is the order in which they are tried.

    >>> list(phrases("last_place"))
    ['last place', 'last location', 'last position']
    """
    return PhraseList.of_lists({name: None})


@cache
def grammar_words() -> frozenset[str]:
    """Every single word that the reader knows whatever the facts are.

    >>> "exceed" in grammar_words(), "nervous" in grammar_words()
    (True, False)
    """
    return _words_of("grammar", "verdicts", "tests").union(CURRENCIES)


@cache
def words_of_tests() -> frozenset[str]:
    """Those of them that may stand in a test, or between two tests."""
    return _words_of("grammar", "tests").union(CURRENCIES)


def _words_of(*tables: str) -> frozenset[str]:
    return frozenset(word for name in tables for said in _TABLES[name].values() for word in " ".join(said).split())


DETERMINERS = words("determiners")
TRANSACTIONS, PEOPLE = words("transactions"), words("people")
FILLERS = words("fillers") | TRANSACTIONS
"""Words that may be passed over before a test: they say nothing that a test could miss."""

_CONTRACTIONS, _IRREGULAR, _SUFFIXES = _FORMS["contractions"], _FORMS["irregular"], _FORMS["units_after_numbers"]
"""Words in other forms, each with what it is compared as."""
_CURRENCY = r"(?:R\$|US\$|[$€£¥₹]|(?:usd|eur|gbp|brl|idr|rp)(?=[\s\d]))"
_NUMBER = r"(?:\d{1,3}(?:\.\d{3}){2,}(?!\d)|\d{1,3}(?:,\d{3})+|\d{1,3}(?:[ ]\d{3})+(?![\d,.]*\w)|\d+)(?:\.\d+)?|\.\d+"
_TOKEN = re.compile(
    rf"""
      (?P<ticked>`[^`]+`)
    | (?P<quoted>"(?:[^"\\]|\\.)*"|“[^”]*”|(?<!\w)'[^']+'(?!\w))
    | (?P<clock>\b\d{{1,2}}[:h]\d{{2}}(?:\s?[ap]\.?m\b\.?)?|\b\d{{1,2}}\s?[ap]\.?m\b\.?)
    | (?P<date>\b\d{{1,2}}/\d{{2,4}}\b|\b\d{{4}}-\d{{2}}(?:-\d{{2}})?\b)
    | (?P<money>{_CURRENCY})\s?(?=[\d.])
    | (?P<number>(?!\d(?-i:DS2?|FA)\b)(?:(?<!\w)-)?(?:{_NUMBER})(?:e[-+]?\d+)?)
      (?P<suffix>\s?%|\s?percent\b|(?:k|m|x|h|hrs?|d|mins?|st|nd|rd|th)\b)?
      (?P<plus>\+)?
      (?:\s?(?P<sign_after>[$€£¥₹])(?!\s?\d))?
    | (?P<sign>->|=>|→|⇒|>=|=<|<=|≥|≤|!=|<>|==>?|&&|\|\||[-–—]>|[><=()&+*,;:.?!/|]|[-–—](?=\s|$)|(?<=\d)[-–—](?=\d))
    | (?P<odd>[~^±≈\\])
    | (?P<word>km/h|[^\W\d]\w*(?:['’]\w+)*|\w+)
    """,
    re.VERBOSE | re.IGNORECASE,
)


_OF_NUMBERS = ("number", "suffix", "plus", "sign_after")
_THOUSANDS_OR_DECIMALS = re.compile(r"-?[1-9]\d{0,2}\.\d{3}")
"""An amount such as "2.000", which is two thousand in one half of the world and two in the other."""


Kind = Enum("Kind", ["WORD", "NUMBER", "CLOCK", "SIGN", "QUOTED", "FACT"])
"""What a token is."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word in lower case, a sign, a number, a time of day, a quoted value, or a fact by its name in backticks."""

    kind: Kind
    text: str
    """For comparison: lower case, singular."""
    start: int
    end: int
    shown: str
    """As it was written."""
    value: float = 0.0
    """Of a number; of a time of day in hours."""
    currency: str = ""
    """The one whose sign stands before a number."""
    is_percent: bool = False
    at_least: bool = False
    """Whether a plus follows the number, as in "5+"."""

    @property
    def is_money(self) -> bool:
        """Whether a currency stands before a number."""
        return bool(self.currency)


Tokens = Sequence[Token]


def tokens_of(text: str) -> list[Token]:
    """The tokens of a sentence.

    >>> [token.text for token in tokens_of("Orders over $1,500 aren't OK")]
    ['order', 'over', '1500', 'is', 'not', 'ok']
    >>> [(token.value, token.is_percent) for token in tokens_of("20% 2k")]
    [(20.0, True), (2000.0, False)]
    """
    tokens: list[Token] = []
    currency = ""
    for match in _TOKEN.finditer(text.replace("’", "'").replace("‘", "'")):
        kind = match.lastgroup
        if kind != "money":
            tokens += _number(match, currency) if kind in _OF_NUMBERS else _other(match, kind)
        currency = CURRENCIES[match["money"].lower()] if kind == "money" else ""
    return tokens


_TOO_LARGE = 1e30
"""Figures from here on are no numbers of a rule: years of them would not be finite."""


def _number(match: re.Match[str], currency: str) -> list[Token]:
    start, end = match.span()
    if _THOUSANDS_OR_DECIMALS.fullmatch(match["number"]):  # not a number, so that it is asked about
        return [Token(Kind.WORD, match[0], start, end, match[0])]
    written = re.sub("[, ]", "", match["number"])
    if written.count(".") > 1:  # "1.000.000"
        written = written.replace(".", "")
    suffix = (match["suffix"] or "").strip().lower()
    value = float(written) * {"k": 1e3, "m": 1e6}.get(suffix, 1.0)
    if not value < _TOO_LARGE:
        return [Token(Kind.WORD, match[0], start, end, match[0])]
    text = str(int(value)) if value.is_integer() and abs(value) < 1e15 else str(value)
    currency = CURRENCIES[match["sign_after"]] if match["sign_after"] else currency
    is_percent, at_least = suffix in ("%", "percent"), bool(match["plus"])
    figure = Token(Kind.NUMBER, text, start, end, match[0], value, currency, is_percent, at_least)
    return [figure, Token(Kind.WORD, _SUFFIXES[suffix], end, end, suffix)] if suffix in _SUFFIXES else [figure]


def _other(match: re.Match[str], kind: str | None) -> list[Token]:
    """The tokens of what is no number. Only a word may be several, as "can't" is."""
    start, end = match.span()
    shown = match[0]
    if kind in ("word", "date", "odd"):
        return [Token(Kind.WORD, singular(word), start, end, shown) for word in _words(shown.lower())]
    if kind == "ticked":
        return [Token(Kind.FACT, shown[1:-1], start, end, shown)]
    if kind == "quoted":
        return [Token(Kind.QUOTED, re.sub(r"\\(.)", r"\1", shown[1:-1]), start, end, shown)]
    if kind == "clock":
        return [Token(Kind.CLOCK, shown.lower(), start, end, shown, _hours(shown.lower()))]
    if shown in "-–—" and match.string[end : end + 1].isdigit():  # "30-40"
        return [Token(Kind.WORD, "to", start, end, shown)]
    text = {"&&": "&", "||": "or", "|": "or", "==>": "=>"}.get(shown, shown)
    return [Token(Kind.SIGN, text, start, end, shown)]


def _words(word: str) -> list[str]:
    """A contraction as the words it stands for; a possessive as the word and "'s"."""
    if word in _CONTRACTIONS:
        return _CONTRACTIONS[word].split()
    if word.endswith("n't"):
        return [word[:-3], "not"]
    if word.endswith("'s"):
        return [word[:-2], "'s"]
    if word.endswith("s'"):
        return [word[:-1], "'s"]
    return [word.rstrip("'")]


def singular(word: str) -> str:
    """A word in the singular, for comparison only.

    >>> singular("purchases"), singular("countries"), singular("business"), singular("boxes")
    ('purchase', 'country', 'business', 'box')
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@cache
def _ends_of_numbers() -> frozenset[str]:
    return words("ones") | words("tens") | {"hundred", "thousand", "million", "k", "grand"}


def currencies_of(tokens: Tokens) -> tuple[str, ...]:
    """The currencies of the amounts in a sentence.

    >>> currencies_of(tokens_of("over $500 or four hundred euros, in GBP"))
    ('USD', 'EUR')
    """
    found = [token.currency for token in tokens if token.currency]
    for token, following in pairwise(tokens):
        is_number = token.kind is Kind.NUMBER or token.text in _ends_of_numbers()
        found += [CURRENCIES[following.text]] if is_number and following.text in CURRENCIES else []
    return tuple(dict.fromkeys(found))


def _hours(text: str) -> float:
    match = re.match(r"(\d{1,2})(?:[:h](\d{2}))?\s?([ap])?", text)
    assert match is not None
    hour = int(match[1]) + int(match[2] or 0) / 60
    if match[3]:
        hour = hour % 12 + (12 if match[3] == "p" else 0)
    return hour
