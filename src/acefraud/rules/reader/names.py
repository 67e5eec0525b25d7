"""What facts and their values are called: by the words of a column's name, in English, in other languages."""

from __future__ import annotations

import re
from calendar import month_name
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product

from acefraud.core.fact_names import words_for
from acefraud.rules.reader.facts import HISTORY_NAME, Fact, Measure
from acefraud.rules.reader.tokens import DETERMINERS, Kind, Words, tokens_of, words
from acefraud.support.package_data import read_package_toml

_LEAST_SHARE = 0.8
_BY_CODE = read_package_toml("acefraud.rules.reader", "countries.toml", dict[str, tuple[str, ...]])
COUNTRY_NAMES: dict[str, tuple[str, ...]] = {}
"""Each code, of two or three letters, with the names and the other code of its country."""
for _two, (_three, *_names) in _BY_CODE.items():
    COUNTRY_NAMES[_two] = (*_names, _three)
    COUNTRY_NAMES[_three] = (*_names, _two)


@lru_cache(maxsize=256)
def codes_for(values: Sequence[str]) -> bool:
    """Whether the values of a fact are codes of countries.

    >>> codes_for(("US", "GB", "FR")), codes_for(("web", "app"))
    (True, False)
    """
    known = [value for value in values if value.upper() in COUNTRY_NAMES]
    return len(known) > 1 and len(known) >= _LEAST_SHARE * len(values)


_LEAST_MONTHS = 6
_LEAST_STEM = 3
_ALSO: dict[Words, Words] = {
    ("american", "express"): ("amex",),
    ("mastercard",): ("master", "card"),
    ("ie",): ("internet", "explorer"),
    ("direct",): ("directly",),
    ("female",): ("woman",),
    ("male",): ("man",),
}
"""Other names of values."""
_ABBREVIATIONS = {
    "lat": "latitude",
    "lng": "longitude",
    "lon": "longitude",
    "long": "longitude",
    "amt": "amount",
    "cat": "category",
}
_FOREIGN = read_package_toml("acefraud.rules.reader", "column_words.toml", dict[str, str])
"""Words in the names of columns, in other languages."""
_EVENT = ("transaction", "activity", "payment", "purchase", "use")
_BETWEEN_TWO = 3
"""Words of a name such as "days policy claim": the days between two events."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_TOO_VAGUE = words("too_vague")
_DROPPED_AFTER_NAME = words("dropped_after_name")


def without_determiners(words: Words) -> Words:
    """The words without articles and the like, which do not matter for what is meant."""
    return tuple(word for word in words if word not in DETERMINERS)


def names_of(fact: Fact) -> Iterator[Words]:
    """What a fact is called: the words of its name, and its noun in English."""
    words = split_name(fact.name)
    if not words:  # a name of signs alone cannot be said
        return
    yield words
    if len(words) > 1 and fact.name.isalnum():
        yield (tokens_of(fact.name)[0].text,)  # "BasePolicy" in one word
    if (history := HISTORY_NAME.fullmatch(fact.name)) is not None:
        entity = tuple(history["entity"].split("_"))
        for unit, kind in product(("hour", "time"), _EVENT) if history["single"] == "hours_since_last" else ():
            yield (unit, "since", "last", kind, "of", *entity)
            yield (unit, "since", *entity, "'s", "last", kind)
    else:
        yield tuple(word for word in words if word != "the")
        if words[-1] in _DROPPED_AFTER_NAME and len(words) > 2:
            yield words[:-1]
        if len(words) == 1 and words[0] in _ABBREVIATIONS:
            yield (_ABBREVIATIONS[words[0]],)
        yield from _turned(words)
        if words[0] == "day" and len(words) == _BETWEEN_TWO:
            yield ("day", "between", words[1], "and", words[2])
            yield ("number", "of", "day", "between", words[1], "and", words[2])
        if fact.measure is Measure.TIMES:
            yield (*words, "ratio")
            yield ("ratio", "of", *words)
        yield from translations(words)
        if fact.kind == "category" and "change" in words:
            before = words[: words.index("change")]
            yield from ((*before, *more, "changed") for more in ((), ("is",), ("has",), ("has", "be")))
            yield from (("changed", *before), ("change", "of", *before), (*before, "change"))
    known = words_for(fact.name)
    if known is not None:
        yield as_words(known.noun)


def _turned(words: Words) -> Iterator[Words]:
    """A name such as "number of cars" or "age of vehicle" in other words."""
    if words[:2] == ("number", "of") and len(words) > 2:
        yield words[2:]
    if words[:3] == ("past", "number", "of"):
        yield ("past", *words[3:])
        yield ("number", "of", "past", *words[3:])
        yield ("number", "of", *words[3:])
        yield from (("earlier", *words[3:]), ("previous", *words[3:]), ("prior", *words[3:]))
    if words[:2] == ("age", "of"):
        yield (*words[2:], "age")
        if words[2:] == ("vehicle",):
            yield ("car", "age")


def translations(words: Words) -> Iterator[Words]:
    """The words of a name in another language, in English: "tipe kartu" is a card type, or the type of the card."""
    plain = " ".join(words).replace("rata rata", "average").split()
    translated = tuple(_FOREIGN.get(word, word) for word in plain)
    if translated != words:
        yield translated
        yield translated[::-1]
        yield (translated[0], *translated[:0:-1])
        if len(translated) > 1:
            yield (translated[0], "of", *translated[1:])
        if len(translated) > 1 and translated[0] == "name":
            yield translated[1:]


def ways_to_say(value: str, fact: Fact) -> Iterator[Words]:
    """What a value of a category is called: "f" is female or a woman, "US" the United States."""
    words = as_words(value)
    yield words
    if words in (("f",), ("m",)) and {other.lower() for other in fact.values} <= {"f", "m", "u", "x"}:
        yield from (("female",), ("woman",)) if words == ("f",) else (("male",), ("man",))
    if len(words) == 1 and words[0].isalpha() and len(words[0]) > _LEAST_STEM:
        yield (f"{words[0]}ed",)  # "widowed"
    if words in _ALSO:
        yield _ALSO[words]
    if _are_months(fact.values) and (full := _MONTHS.get(value.lower()[:3])) is not None:
        yield (full,)
    if words[:1] == ("no",) and words[1:] == ("change",) and "change" in fact.words:
        before = fact.words[: fact.words.index("change")]
        yield from (("no", *before, "change"), ("no", "change", "of", *before))
        yield from ((*before, *more, "changed") for more in (("has", "not"), ("is", "not"), ("has", "not", "be")))
        yield (*before, "has", "no", "change")
    if codes_for(fact.values):
        for name in COUNTRY_NAMES.get(value.upper(), ()):
            yield as_words(name)


_MONTHS = {name.lower()[:3]: name.lower() for name in month_name if name}


def _are_months(values: tuple[str, ...]) -> bool:
    """Whether the values of a fact are the short names of months, perhaps with a few others."""
    return sum(value.lower() in _MONTHS for value in values) >= _LEAST_MONTHS


@lru_cache(maxsize=8192)
def as_words(text: str) -> Words:
    return tuple(token.text for token in tokens_of(text) if token.kind is not Kind.SIGN)


@lru_cache(maxsize=8192)
def split_name(name: str) -> Words:
    """The words of a column name, in the singular.

    >>> split_name("PastNumberOfClaims"), split_name("days_since_signup_time"), split_name("V14")
    (('past', 'number', 'of', 'claim'), ('day', 'since', 'signup', 'time'), ('v', '14'))
    """
    spaced = " ".join(_PARTS.findall(name)) or name
    return tuple(token.text for token in tokens_of(spaced))


def is_vague(words: Words) -> bool:
    """Whether a value could be an ordinary word or a number, so that it means a fact only beside its name."""
    return len(words) == 1 and (words[0] in _TOO_VAGUE or len(words[0]) < 2 or words[0].replace(".", "").isdigit())
