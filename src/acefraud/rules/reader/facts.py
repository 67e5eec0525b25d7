"""A fact as the reader sees it: what its number counts, the bands that its values may be, and how all is called."""

from __future__ import annotations

import math
import re
from calendar import day_name, month_name
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import product

from acefraud.core.comparison import Test
from acefraud.core.condition import Condition
from acefraud.core.fact_names import FactWords, words_for
from acefraud.rules.reader.tokens import DETERMINERS, Kind, Words, phrases, tokens_of, words
from acefraud.support.package_data import read_package_toml

HISTORY_NAME = re.compile(
    r"(?P<entity>\w+?)_(?:(?P<figure>count|sum|mean|max|known_frauds|known_fraud_share)_\d+[hd]"
    r"|distinct_(?P<other>\w+?)_\d+[hd]"
    r"|new_(?P<new>\w+)"
    r"|(?P<single>hours_since_last|km_from_last|kmh_from_last|amount_to_usual))"
)
"""The name of a fact about the past of an entity."""


Measure = Enum("Measure", "PLAIN MONEY COUNT DAYS HOURS MINUTES YEARS KM KMH SHARE TIMES CLOCK")
"""What a number counts, which says which figures fit it."""


HOURS = {
    "minute": 1 / 60, "min": 1 / 60, "hour": 1.0, "hr": 1.0, "h": 1.0, "day": 24.0, "d": 24.0, "week": 168.0,
    "fortnight": 336.0, "month": 720.0, "year": 8760.0, "second": 1 / 3600, "sec": 1 / 3600,
}  # fmt: skip
"""Units of time in hours. A month counts as 30 days, a year as 365."""
DISTANCES = {"km": "km", "kilometre": "km", "kilometer": "km", "km/h": "km/h", "kph": "km/h", "kmh": "km/h"}
"""Units of distance and speed, with the one that each means."""
KILOMETRES = tuple(word for word, unit in DISTANCES.items() if unit == "km")
TIME_FACTS = frozenset({"night", "weekend", "weekday", "hour"})
_COUNTS = (
    "chargebacks", "failed_attempts", "fraud_reports", "declined_before", "recent_transactions",
    "purchases_at_merchant", "larger_purchases", "account_transactions", "transactions_per_month",
)  # fmt: skip
_HISTORY = {
    "count": Measure.COUNT, "known_frauds": Measure.COUNT, "known_fraud_share": Measure.SHARE,
    "hours_since_last": Measure.HOURS, "km_from_last": Measure.KM, "kmh_from_last": Measure.KMH,
    "amount_to_usual": Measure.TIMES,
}  # fmt: skip
_UNITS = {
    "days": Measure.DAYS, "minutes": Measure.MINUTES, "km": Measure.KM, "km/h": Measure.KMH, "times": Measure.TIMES,
}  # fmt: skip
"""Units of named facts that are measures too."""
_BY_NAME = (
    (r"^hour$", Measure.CLOCK),
    (r"^days_|_days$", Measure.DAYS),
    (r"^hours_|_hours$", Measure.HOURS),
    (r"^minutes_|_minutes$", Measure.MINUTES),
    (r"(?:^|_)age$", Measure.YEARS),
    (r"amount|value|price|nilai|cost|total|balance|income|_sum_|_mean_|_max_", Measure.MONEY),
)
"""Patterns of names in lower case, tried in order."""


def measure_of(name: str, known: FactWords | None) -> Measure:
    """What the number of a fact counts, from its name and from what the engine knows of it.

    >>> [measure_of(name, None).name for name in ("card_count_24h", "days_since_signup", "holder_age", "V14")]
    ['COUNT', 'DAYS', 'YEARS', 'PLAIN']
    """
    if (match := HISTORY_NAME.fullmatch(name)) is not None:
        figure = match["figure"] or ("count" if match["other"] else match["single"])
        return _HISTORY.get(figure, Measure.MONEY)
    if known is not None and known.share:
        return Measure.SHARE
    if name in _COUNTS:
        return Measure.COUNT
    if known is not None and known.unit in _UNITS:
        return _UNITS[known.unit]
    lower = name.lower()
    return next((measure for pattern, measure in _BY_NAME if re.search(pattern, lower)), Measure.PLAIN)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as the reader sees it."""

    name: str
    kind: str
    measure: Measure = Measure.PLAIN
    values: tuple[str, ...] = ()
    high: float | None = None
    words: Words = ()
    """The words of its name."""
    always_known: bool = False
    """Whether every case at hand knows it."""


# --- bands, such as "2 to 4", "more than 7 years", "under 6 months" ---

_UNIT = r"(?:\s*(?P<unit>days?|weeks?|months?|years?|[a-z]+))?"
_NUMBER = r"\d+(?:\.\d+)?"
_BANDS = (
    (re.compile(rf"(?P<low>{_NUMBER})\s*(?:to|-|–)\s*(?P<high>{_NUMBER}){_UNIT}"), "between"),
    (re.compile(rf"(?:more than|over|above|>)\s*(?P<low>{_NUMBER}){_UNIT}"), "above"),
    (re.compile(rf"(?:less than|under|below|<)\s*(?P<high>{_NUMBER}){_UNIT}"), "below"),
    (re.compile(rf"(?P<low>{_NUMBER})\s*(?:\+|or more|and more|and over){_UNIT}"), "at least"),
    (re.compile(rf"(?P<low>{_NUMBER}){_UNIT}"), "exactly"),
)
_ZERO = frozenset({"none", "0", "no", "zero", "new"})
_LEAST = 3
"""Values of a category that has bands."""
_TINY = 1e-6
_WIDE = 10
"""How far the ends of a band lie apart that do not count."""
_HUGE = 1e15


@dataclass(frozen=True, slots=True)
class Band:
    """One value of such a category: the numbers from `low` to `high`."""

    value: str
    low: float
    high: float
    unit: str = ""
    is_open: bool = False
    """Whether the ends themselves are outside, or do not count as it is wide: "over 60k" means "60000 to 69000" too."""

    def in_days(self) -> Band:
        """The band in days, if it is one of time."""
        days = HOURS[self.unit] / 24
        return replace(self, low=self.low * days, high=self.high * days, unit="")

    def points(self, limits: list[float]) -> list[float]:
        """Numbers of the band by which a condition with these limits can be told to hold in all of it."""
        tiny = 2 * _TINY if self.is_open else 0.0
        low, high = self.low + tiny, self.high - tiny
        near = [limit + step for limit in limits for step in (-_TINY, 0.0, _TINY)]
        return [low, min(high, _HUGE), *(point for point in near if low <= point <= high)]


def bands_of(fact: Fact) -> tuple[Band, ...]:
    """The bands of a category; none if its values are not bands."""
    unit = "day" if "day" in fact.words else ""
    made = [_band(value, unit) for value in fact.values]
    odd = [value for value, band in zip(fact.values, made, strict=True) if band is None]
    if len(fact.values) < _LEAST or any(not value.lower().startswith("no ") for value in odd):
        return ()
    bands = [band for band in made if band is not None]
    if all(band.low == band.high for band in bands):
        return ()
    units = {band.unit for band in bands} - {""}
    if len(units) == 1:  # "2 years", "more than 7"
        bands = [replace(band, unit=next(iter(units))) for band in bands]
    return tuple(bands)


def _band(value: str, unit: str) -> Band | None:
    lower = value.strip().lower()
    if lower in _ZERO:
        return Band(value, 0.0, 0.0, unit)
    for pattern, kind in _BANDS:
        if (match := pattern.fullmatch(lower)) is not None:
            named = (match["unit"] or unit).removesuffix("s")
            low = float(match["low"]) if "low" in pattern.groupindex else 0.0
            if kind in ("above", "at least"):
                return Band(value, low, math.inf, named, is_open=kind == "above")
            high = float(match["high"]) if "high" in pattern.groupindex else low
            return Band(value, low, high, named, is_open=kind == "below" or high - low >= _WIDE)
    return None


def values_within(bands: tuple[Band, ...], condition: Condition) -> list[str]:
    """The values whose whole band fulfils a condition; none if it cuts one in two, or if all or none do."""
    (fact,) = condition.facts
    limits = [leaf.value for leaf in condition.leaves if isinstance(leaf, Test) and isinstance(leaf.value, float)]
    inside = []
    for band in bands:
        truths = {condition.holds({fact: point}) for point in band.points(limits)}
        if len(truths) > 1:
            return []
        if truths == {True}:
            inside.append(band.value)
    return inside if len(inside) < len(bands) else []


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
    ("american", "express"): ("amex",), ("mastercard",): ("master", "card"), ("ie",): ("internet", "explorer"),
    ("direct",): ("directly",), ("female",): ("woman",), ("male",): ("man",),
}  # fmt: skip
"""Other names of values."""
_ABBREVIATIONS = {
    "lat": "latitude", "lng": "longitude", "lon": "longitude", "long": "longitude", "amt": "amount", "cat": "category",
}  # fmt: skip
_FOREIGN = read_package_toml("acefraud.rules.reader", "column_words.toml", dict[str, str])
"""Words in the names of columns, in other languages."""
_EVENT = ("transaction", "activity", "payment", "purchase", "use")
_NAMED_WITH_NUMBER = 3
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
            yield from (("day", "from", words[1], *start, "to", words[2]) for start in ((), ("start",)))
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
    if words[-1] == "number" and len(words) > 1:
        yield words[:-1]
    if words[:2] == ("age", "of"):
        yield (*words[2:], "age")
        if words[2:] == ("vehicle",):
            yield ("car", "age")


def translations(words: Words) -> Iterator[Words]:
    """The words of a name in another language, in English: "tipe kartu" is a card type, or the type of the card."""
    plain = " ".join(words).replace("rata rata", "average").split()
    translated = tuple(_FOREIGN.get(word, word) for word in plain)
    if words[0] == "id" and len(words) > 1:
        yield from ((*translated[1:], last) for last in ("id", "code"))
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
    if not words:  # "-" cannot be said
        return
    yield words
    if words in (("f",), ("m",)) and {other.lower() for other in fact.values} <= {"f", "m", "u", "x"}:
        yield from (("female",), ("woman",)) if words == ("f",) else (("male",), ("man",))
    if len(words) == 1 and words[0].isalpha() and len(words[0]) > _LEAST_STEM:
        yield (f"{words[0]}ed",)  # "widowed"
    if words in _ALSO:
        yield _ALSO[words]
    for part in value.split(" / ") if " / " in value else ():  # "Diners Club / Carte Blanche"
        yield from (as_words(part), as_words(part)[:1])
    if len(words) == _NAMED_WITH_NUMBER and words[1].isdigit():  # "VISA 13 digit"
        yield from ((words[1], words[2], words[0]), words[:2])
    if words[0].capitalize() in day_name:
        yield from ((said.split()[0],) for said in phrases("short_weekdays") if said.split()[1] == words[0])
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
