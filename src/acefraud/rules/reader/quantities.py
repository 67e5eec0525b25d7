"""Numbers, durations, times of day and comparisons in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acefraud.core.comparison import Op
from acefraud.rules.reader.phrases import Tokens, Words, is_one_of, is_word, phrase
from acefraud.rules.reader.tokens import Kind
from acefraud.rules.reader.word_lists import phrases, words

_ONES, _TENS = phrases("ones"), phrases("tens")
_NUMERALS = {word: float(number) for number, word in enumerate(_ONES)}
_NUMERALS |= {word: 10.0 * number for number, word in enumerate(_TENS, 2)}
_UP_TO_NINE = frozenset(_ONES[1:10])
_SCALES = {
    "hundred": 100.0, "thousand": 1e3, "grand": 1e3, "k": 1e3, "million": 1e6, "mio": 1e6, "mn": 1e6, "mln": 1e6,
    "billion": 1e9, "bn": 1e9, "dozen": 12.0,
}  # fmt: skip
_FRACTIONS = {
    "half": 0.5, "a half": 0.5, "quarter": 0.25, "a quarter": 0.25, "one quarter": 0.25, "three quarter": 0.75,
    "a third": 1 / 3, "one third": 1 / 3, "two third": 2 / 3, "a tenth": 0.1, "one tenth": 0.1, "a fifth": 0.2,
    "one fifth": 0.2,
}  # fmt: skip
MULTIPLES = {"twice": 2.0, "double": 2.0, "triple": 3.0, "thrice": 3.0, "treble": 3.0, "quadruple": 4.0}
HOURS = {
    "minute": 1 / 60, "min": 1 / 60, "hour": 1.0, "hr": 1.0, "h": 1.0, "day": 24.0, "d": 24.0, "week": 168.0,
    "fortnight": 336.0, "month": 720.0, "year": 8760.0, "second": 1 / 3600, "sec": 1 / 3600,
}  # fmt: skip
"""Units of time in hours. A month counts as 30 days, a year as 365."""
MINUTES = {"minute": 1.0, "min": 1.0, "hour": 60.0, "hr": 60.0, "h": 60.0}
DISTANCES = {"km": "km", "kilometre": "km", "kilometer": "km", "km/h": "km/h", "kph": "km/h", "kmh": "km/h"}
"""Units of distance and speed, with the one that each means."""
KILOMETRES = tuple(word for word, unit in DISTANCES.items() if unit == "km")
NUMBER_WORDS = frozenset(
    word for said in (*_SCALES, *_FRACTIONS, *MULTIPLES, *HOURS, *DISTANCES) for word in said.split()
)
"""The words of the tables above."""
_CURRENCIES = words("currencies")
_MORE, _LESS = words("or_more"), words("or_less")
_COMPARATORS = {
    Op.ABOVE: phrases("above"),
    Op.AT_LEAST: phrases("at_least"),
    Op.BELOW: phrases("below"),
    Op.AT_MOST: phrases("at_most"),
    Op.IS: phrases("equal"),
    Op.IS_NOT: phrases("not_equal"),
}
_BY_FIRST_WORD: dict[str, list[tuple[Words, Op]]] = {}
for _said, _op in sorted(
    ((tuple(one.split()), op) for op, some in _COMPARATORS.items() for one in some), key=lambda one: -len(one[0])
):
    _BY_FIRST_WORD.setdefault(_said[0], []).append((_said, _op))
_AFTER_NUMBER = (
    ("at least", Op.AT_LEAST),
    ("minimum", Op.AT_LEAST),
    ("at most", Op.AT_MOST),
    ("maximum", Op.AT_MOST),
    ("max", Op.AT_MOST),
    ("top", Op.AT_MOST),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with what was said of it: money, per cent, a duration, or a multiple."""

    value: float
    is_money: bool = False
    is_percent: bool = False
    unit: str = ""
    """A unit of time in the singular, "km" or "km/h"."""
    at_least: bool = False
    scale: float = 1.0
    """What the number was multiplied with: a thousand, a million."""


def numbers(tokens: Tokens, at: int) -> Iterator[tuple[Figure, int]]:
    """A number here: digits, words, with thousands and millions, in money or not."""
    if at >= len(tokens):
        return
    first = tokens[at]
    if first.kind is Kind.NUMBER:
        value, after = _with_half(tokens, first.value, at + 1)
        scale = {"k": 1e3, "m": 1e6}.get(first.shown[-1:].lower(), 1.0)
        while is_one_of(tokens, after, _SCALES):
            value, scale = value * _SCALES[tokens[after].text], scale * _SCALES[tokens[after].text]
            after += 1
        names_currency = is_one_of(tokens, after, _CURRENCIES)
        money = first.is_money or names_currency
        yield Figure(value, money, first.is_percent, at_least=first.at_least, scale=scale), after + names_currency
        return
    if (half_dozen := phrase(tokens, at, "half a dozen")) is not None:
        yield Figure(6.0), half_dozen
        return
    found = _in_words(tokens, at)
    if found is not None:
        value, after = found
        money = is_one_of(tokens, after, _CURRENCIES)
        last = tokens[after - 1].text
        yield (
            Figure(value, money, scale=_SCALES.get(last, 1.0) if last in ("thousand", "million") else 1.0),
            after + money,
        )


def _with_half(tokens: Tokens, value: float, at: int) -> tuple[float, int]:
    """A number, perhaps with "and a half" after it, and the place after that."""
    after = phrase(tokens, at, "and a half")
    return (value, at) if after is None else (value + 0.5, after)


def _in_words(tokens: Tokens, at: int) -> tuple[float, int] | None:
    """A number that is written out, such as "twenty five", "two hundred and fifty", "a dozen"."""
    if is_word(tokens, at, "a", "an", "one") and is_one_of(tokens, at + 1, _SCALES):
        total, at = _SCALES[tokens[at + 1].text], at + 2
    elif is_one_of(tokens, at, _NUMERALS):
        total, at = _NUMERALS[tokens[at].text], at + 1
        if total >= 20 and is_one_of(tokens, at, _UP_TO_NINE):
            total, at = total + _NUMERALS[tokens[at].text], at + 1
        total, at = _with_half(tokens, total, at)
    else:
        return None
    while is_one_of(tokens, at, _SCALES):
        total, at = total * _SCALES[tokens[at].text], at + 1
        after = at + is_word(tokens, at, "and")
        if is_one_of(tokens, after, _NUMERALS) and total >= 100:
            rest = _in_words(tokens, after)
            if rest is not None and rest[0] < total:
                total, at = total + rest[0], rest[1]
    return total, at


def fractions(tokens: Tokens, at: int) -> Iterator[tuple[float, int]]:
    """A fraction in words: "half", "three quarters", "a tenth", "one in twenty"."""
    if (after := phrase(tokens, at, "one in")) is not None:
        for figure, end in numbers(tokens, after):
            if figure.value > 1:
                yield round(1 / figure.value, 12), end
    for said, share in _FRACTIONS.items():
        if (after := phrase(tokens, at, said)) is not None:
            yield share, after


def multiples(tokens: Tokens, at: int) -> Iterator[tuple[float, int]]:
    """A factor before another number: "twice", "half of", "80% of", "3 times"; at first none at all, which is 1."""
    yield 1.0, at
    if is_one_of(tokens, at, MULTIPLES):
        yield MULTIPLES[tokens[at].text], at + 1 + is_word(tokens, at + 1, "of")
    for share, after in fractions(tokens, at):
        yield share, after + is_word(tokens, after, "of")
    for figure, after in figures(tokens, at):
        if figure.is_percent and is_word(tokens, after, "of"):
            yield as_share(figure), after + 1
        elif is_word(tokens, after, "time", "x", "*") and not figure.is_money:
            yield figure.value, after + 1
        for said in ("above", "over", "more than", "higher than") if figure.is_percent else ():
            if (then := phrase(tokens, after, said)) is not None:  # "more than 50% above the usual"
                yield round(1 + as_share(figure), 12), then


def as_share(figure: Figure) -> float:
    """A percentage as a share, without the noise of the division.

    >>> as_share(Figure(7.1, is_percent=True))
    0.071
    """
    return round(figure.value / 100, 12)


def figures(tokens: Tokens, at: int) -> Iterator[tuple[Figure, int]]:
    """A number with its unit, if it has one: "$500", "20%", "two weeks", "900 km/h", "half an hour"."""
    if (after := phrase(tokens, at, "half an hour")) is not None:
        yield Figure(0.5, unit="hour"), after
    if (after := phrase(tokens, at, "half a day")) is not None:
        yield Figure(0.5, unit="day"), after
    if (
        is_word(tokens, at, "a", "an", "one", "the")
        and is_one_of(tokens, at + 1, HOURS)
        and not tokens[at + 1].shown.lower().endswith("s")
    ):
        yield Figure(1.0, unit=tokens[at + 1].text), at + 2
    for figure, after in numbers(tokens, at):
        if is_word(tokens, after, "/") and _is_top_mark(tokens, after + 1):
            yield figure, after + 2
        if not is_one_of(tokens, after, HOURS) and not is_one_of(tokens, after, DISTANCES):
            yield figure, after
        elif not figure.is_money and not figure.is_percent:
            word = tokens[after].text
            unit = DISTANCES.get(word, word)
            if unit == "km" and is_word(tokens, after + 1, "per") and is_word(tokens, after + 2, "hour"):
                yield Figure(figure.value, unit="km/h", at_least=figure.at_least), after + 3
            yield Figure(figure.value, unit=unit, at_least=figure.at_least), after + 1


def _is_top_mark(tokens: Tokens, at: int) -> bool:
    """Whether a number is what ratings go up to, as in "2.5/5"."""
    return at < len(tokens) and tokens[at].kind is Kind.NUMBER and tokens[at].value in (5, 10, 100)


def clocks(tokens: Tokens, at: int, *, bare: bool = False) -> Iterator[tuple[float, int]]:
    """A time of day in hours: "5 am", "22:00", "midnight", "6 in the morning"; a bare number only if asked."""
    if at >= len(tokens):
        return
    token = tokens[at]
    if is_word(tokens, at, "midnight"):
        yield 0.0, at + 1
    elif is_word(tokens, at, "noon", "midday"):
        yield 12.0, at + 1
    elif token.kind is Kind.CLOCK and token.value < 24:
        yield token.value, at + 1
    for figure, after in numbers(tokens, at):
        if not (figure.is_money or figure.is_percent or figure.at_least) and figure.value in range(25):
            yield from _clock_in_words(tokens, figure.value, after, bare=bare)


def _clock_in_words(tokens: Tokens, hour: float, at: int, *, bare: bool) -> Iterator[tuple[float, int]]:
    """The time of day that a whole number means with the words after it: "o'clock", "in the evening"."""
    part = at + is_word(tokens, at, "o'clock", "oclock")
    early = phrase(tokens, part, "in the morning")
    late = phrase(tokens, part, "in the evening") or phrase(tokens, part, "in the afternoon")
    late = late or phrase(tokens, part, "at night")
    if early is not None and hour <= 12:
        yield hour % 12, early
    elif late is not None:
        # "3 at night" is early in the morning
        if 1 <= hour <= 12 and not (hour < 6 and tokens[late - 1].text == "night"):
            yield hour % 12 + 12, late
    elif bare or part > at:
        yield hour, part


def comparators(tokens: Tokens, at: int) -> Iterator[tuple[Op, int]]:
    """A comparison here, the longest first."""
    for said, op in _BY_FIRST_WORD.get(tokens[at].text, ()) if at < len(tokens) else ():
        if all(is_word(tokens, at + place, word) for place, word in enumerate(said)):
            yield op, at + len(said)


def or_more(tokens: Tokens, at: int) -> tuple[Op, int] | None:
    """What follows a number: "or more", "and above", "or less", "at most", "minimum"."""
    for said, op in _AFTER_NUMBER:
        if (after := phrase(tokens, at, said)) is not None and not next(numbers(tokens, after), None):
            return op, after
    if not is_word(tokens, at, "or", "and"):
        return None
    if is_one_of(tokens, at + 1, _MORE):
        return Op.AT_LEAST, at + 2
    return (Op.AT_MOST, at + 2) if is_one_of(tokens, at + 1, _LESS) else None
