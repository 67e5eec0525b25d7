"""Numbers, durations and times of day in words, and what is said of them: "over $500", "between 5 and 9", "5+"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import MOST_LEAVES, Condition
from acefraud.rules.reader.facts import DISTANCES, HOURS, Fact, Measure
from acefraud.rules.reader.sentence import Bound, Bounds, Sentence, Tests, remembered
from acefraud.rules.reader.tokens import CURRENCIES, Kind, PhraseList, phrases, words

_ONES, _TENS = list(phrases("ones")), phrases("tens")
_NUMERALS = {word: float(number) for number, word in enumerate(_ONES)}
_NUMERALS |= {word: 10.0 * number for number, word in enumerate(_TENS, 2)}
_UP_TO_NINE = frozenset(_ONES[1:10])
_SCALES = {
    "hundred": 100.0, "thousand": 1e3, "grand": 1e3, "k": 1e3, "million": 1e6, "mio": 1e6, "mn": 1e6, "mln": 1e6,
    "billion": 1e9, "bn": 1e9, "dozen": 12.0, "juta": 1e6, "jt": 1e6, "ribu": 1e3, "rb": 1e3,
}  # fmt: skip
_FRACTIONS = PhraseList({
    "half": 0.5, "a half": 0.5, "quarter": 0.25, "a quarter": 0.25, "one quarter": 0.25, "three quarter": 0.75,
    "a third": 1 / 3, "one third": 1 / 3, "two third": 2 / 3, "a tenth": 0.1, "one tenth": 0.1, "a fifth": 0.2,
    "one fifth": 0.2,
})  # fmt: skip
_NAMED_HOURS = {"midnight": 0.0, "noon": 12.0, "midday": 12.0}
MULTIPLES = {"twice": 2.0, "double": 2.0, "triple": 3.0, "thrice": 3.0, "treble": 3.0, "quadruple": 4.0}
MINUTES = {unit: 60 * HOURS[unit] for unit in ("minute", "min", "hour", "hr", "h")}
WRITTEN_NUMBERS = frozenset((*_NUMERALS, *_SCALES, *_NAMED_HOURS, "half"))
"""Words with which a number, or a time of day, may begin after "a" or "one"."""
_FIGURE_OPENINGS = frozenset((*_NUMERALS, "half", "a", "an", "one", "the"))
"""Words with which a number in words may begin."""
NUMBER_WORDS = frozenset(
    word for said in (*_SCALES, *_FRACTIONS, *MULTIPLES, *HOURS, *DISTANCES) for word in said.split()
)
"""The words of the tables above."""
_COMPARATORS = PhraseList.of_lists({
    "above": Op.ABOVE, "at_least": Op.AT_LEAST, "below": Op.BELOW, "at_most": Op.AT_MOST, "equal": Op.IS,
    "not_equal": Op.IS_NOT,
})  # fmt: skip
_COMPARATORS = PhraseList(sorted(_COMPARATORS.items(), key=lambda comparator: -len(comparator[0].split())))
_AFTER_NUMBER = PhraseList.of_lists({"least_after_number": Op.AT_LEAST, "most_after_number": Op.AT_MOST})
_OR_MORE = {Op.AT_LEAST: words("or_more"), Op.AT_MOST: words("or_less")}

_ONWARD = words("onward")
_RANGES = PhraseList({"between": "and", "from": "to", "in the range": "to", "anywhere between": "and", "": "to"})
"""What opens a range, and what stands between its ends."""
COUNT = Fact("", "number", Measure.COUNT)
"""A number of things, whatever counts them."""
_NONE = ("not any", "not a single", "not one", "not a", "without any", "without a", "without")
_COUNTS = PhraseList(dict.fromkeys(("another", "a", "an"), (Op.AT_LEAST, 1.0)))
_COUNTS |= dict.fromkeys(_NONE, (Op.IS, 0.0)) | dict.fromkeys(("any", "some"), (Op.ABOVE, 0.0))
"""What is said of a count without a number."""


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

    @property
    def share(self) -> float:
        """A percentage as a share, without the noise of the division.

        >>> Figure(7.1, is_percent=True).share
        0.071
        """
        return round(self.value / 100, 12)


@remembered
def numbers(sentence: Sentence, at: int) -> Iterator[tuple[Figure, int]]:
    """A number here: digits, words, with thousands and millions, in money or not."""
    first = sentence.token(at)
    if first is None:
        return
    if first.kind is Kind.NUMBER:
        value, after = _with_half(sentence, first.value, at + 1)
        scale = {"k": 1e3, "m": 1e6}.get(first.shown[-1:].lower(), 1.0)
        while sentence.is_one_of(after, _SCALES):
            factor = _SCALES[sentence.tokens[after].text]
            value, scale, after = value * factor, scale * factor, after + 1
        names_currency = sentence.is_one_of(after, CURRENCIES)
        if names_currency and sentence.is_one_of(sentence.after_joint(after + 1), CURRENCIES):
            return  # "over 1500 EUR or USD" tells two currencies
        money = first.is_money or names_currency
        yield Figure(value, money, first.is_percent, at_least=first.at_least, scale=scale), after + names_currency
    elif half_dozen := sentence.after(at, "half a dozen"):
        yield Figure(6.0), half_dozen[0]
    elif written := _in_words(sentence, at):
        value, after = written
        money, last = sentence.is_one_of(after, CURRENCIES), sentence.tokens[after - 1].text
        scale = _SCALES[last] if last in ("thousand", "million") else 1.0
        yield Figure(value, money, scale=scale), after + money


def _with_half(sentence: Sentence, value: float, at: int) -> tuple[float, int]:
    """A number, perhaps with "and a half" after it, and the place after that."""
    after = sentence.past(at, "and a half")
    return (value if after == at else value + 0.5), after


def _in_words(sentence: Sentence, at: int) -> tuple[float, int] | None:
    """A number that is written out, such as "twenty five", "two hundred and fifty", "a dozen"."""
    tokens = sentence.tokens
    if sentence.is_word(at, "a", "an", "one") and sentence.is_one_of(at + 1, _SCALES):
        total, at = _SCALES[tokens[at + 1].text], at + 2
    elif sentence.is_one_of(at, _NUMERALS):
        total, at = _NUMERALS[tokens[at].text], at + 1
        if total >= 20 and sentence.is_one_of(at, _UP_TO_NINE):
            total, at = total + _NUMERALS[tokens[at].text], at + 1
        total, at = _with_half(sentence, total, at)
    else:
        return None
    while sentence.is_one_of(at, _SCALES):
        total, at = total * _SCALES[tokens[at].text], at + 1
        after = at + sentence.is_word(at, "and")
        if sentence.is_one_of(after, _NUMERALS) and total >= 100:
            rest = _in_words(sentence, after)
            if rest is not None and rest[0] < total:
                total, at = total + rest[0], rest[1]
    return total, at


@remembered
def fractions(sentence: Sentence, at: int) -> Iterator[tuple[float, int]]:
    """A fraction in words: "half", "three quarters", "a tenth", "one in twenty"."""
    for after in sentence.after(at, "one in"):
        for figure, end in numbers(sentence, after):
            if figure.value > 1:
                yield round(1 / figure.value, 12), end
    yield from sentence.meanings(at, _FRACTIONS)


@remembered
def multiples(sentence: Sentence, at: int) -> Iterator[tuple[float, int]]:
    """A factor before another number: "twice", "half of", "80% of", "3 times"; at first none at all, which is 1."""
    yield 1.0, at
    if sentence.is_one_of(at, MULTIPLES):
        yield MULTIPLES[sentence.tokens[at].text], at + 1 + sentence.is_word(at + 1, "of")
    for share, after in fractions(sentence, at):
        yield share, after + sentence.is_word(after, "of")
    for figure, after in figures(sentence, at):
        if figure.is_percent and sentence.is_word(after, "of"):
            yield figure.share, after + 1
        elif sentence.is_word(after, "time", "x", "*") and not figure.is_money:
            yield figure.value, after + 1
        if figure.is_percent:  # "more than 50% above the usual"
            for then in sentence.after(after, "above", "over", "more than", "higher than"):
                yield round(1 + figure.share, 12), then


@remembered
def figures(sentence: Sentence, at: int) -> Iterator[tuple[Figure, int]]:
    """A number with its unit, if it has one: "$500", "20%", "two weeks", "900 km/h", "half an hour"."""
    tokens = sentence.tokens
    if at >= len(tokens) or (tokens[at].kind is not Kind.NUMBER and not sentence.is_one_of(at, _FIGURE_OPENINGS)):
        return
    for after in sentence.after(at, "half an hour", "half a day"):
        yield Figure(0.5, unit=tokens[after - 1].text), after
    is_single = sentence.is_word(at, "a", "an", "one", "the") and sentence.is_one_of(at + 1, HOURS)
    is_single = is_single and not sentence.is_word(at + 1, "second")  # "the second payment"
    if is_single and not tokens[at + 1].shown.lower().endswith("s"):
        yield Figure(1.0, unit=tokens[at + 1].text), at + 2
    for figure, after in numbers(sentence, at):
        top = sentence.token(after + 1) if sentence.is_word(after, "/") else None
        if top is not None and top.kind is Kind.NUMBER and top.value in (5, 10, 100):  # "2.5/5"
            yield figure, after + 2
        if not sentence.is_one_of(after, HOURS) and not sentence.is_one_of(after, DISTANCES):
            yield figure, after
        elif not figure.is_money and not figure.is_percent:
            unit = DISTANCES.get(tokens[after].text, tokens[after].text)
            if unit == "km":
                for end in sentence.after(after + 1, "per hour"):
                    yield Figure(figure.value, unit="km/h", at_least=figure.at_least), end
            yield Figure(figure.value, unit=unit, at_least=figure.at_least), after + 1


def clocks(sentence: Sentence, at: int, *, bare: bool = False) -> Iterator[tuple[float, int]]:
    """A time of day in hours: "5 am", "22:00", "midnight", "6 in the morning"; a bare number only if asked."""
    token = sentence.token(at)
    if sentence.is_one_of(at, _NAMED_HOURS):
        yield _NAMED_HOURS[sentence.tokens[at].text], at + 1
    elif token is not None and token.kind is Kind.CLOCK and token.value < 24:
        yield token.value, at + 1
    for figure, after in numbers(sentence, at):
        if not (figure.is_money or figure.is_percent or figure.at_least) and figure.value in range(25):
            yield from _clock_in_words(sentence, figure.value, after, bare=bare)


def _clock_in_words(sentence: Sentence, hour: float, at: int, *, bare: bool) -> Iterator[tuple[float, int]]:
    """The time of day that a whole number means with the words after it: "o'clock", "in the evening"."""
    plain = at + sentence.is_word(at, "o'clock", "oclock")
    for after in sentence.after_one_of(plain, phrases("of_the_day")):
        if (meant := hour_in(sentence.tokens[after - 1].text, hour)) is not None:
            yield meant, after
        return
    if bare or plain > at:
        yield hour, plain


def hour_in(part: str, hour: float) -> float | None:
    """The hour that a number means in a part of the day: 9 in the evening is 21; None if there is none.

    >>> [hour_in("night", 2), hour_in("night", 11), hour_in("evening", 9), hour_in("morning", 15)]
    [2, 23, 21, None]
    """
    if part == "morning":
        return hour % 12 if hour <= 12 else None
    if part == "night":
        return hour + 12 if 6 <= hour < 12 else 0.0 if hour == 12 else hour
    if part in ("evening", "afternoon"):
        return hour % 12 + 12 if hour < 12 or (hour == 12 and part == "afternoon") else hour if hour > 12 else None
    return hour if hour > 12 else None


@remembered
def comparators(sentence: Sentence, at: int) -> list[tuple[Op, int]]:
    """A comparison here, the longest first."""
    return sentence.meanings(at, _COMPARATORS)


def or_more(sentence: Sentence, at: int) -> tuple[Op, int] | None:
    """What follows a number: "or more", "and above", "or less", "at most", "minimum"."""
    for op, after in sentence.meanings(at, _AFTER_NUMBER):
        if not numbers(sentence, after):
            return op, after
    for op, words_after in _OR_MORE.items() if sentence.is_word(at, "or", "and") else ():
        if sentence.is_one_of(at + 1, words_after):
            return op, at + 2
    return None


def near_limits(sentence: Sentence, at: int) -> Iterator[int]:
    """The place after "just under", "a bit over", "just after (10 pm)", which leave the other limit open."""
    if sentence.is_one_of(at, words("near_a_limit")):
        yield from (after for op, after in comparators(sentence, at + 1) if op in (Op.ABOVE, Op.BELOW))
        if sentence.is_word(at + 1, "after", "before") and any(clocks(sentence, at + 2)):
            yield at + 2


# --- what is said of a number ---


def value_for(figure: Figure, fact: Fact) -> float | None:
    """The figure in the unit of a fact; None if it does not fit.

    >>> value_for(Figure(2.0, unit="week"), Fact("account_age_days", "number", Measure.DAYS))
    14.0
    """
    measure = fact.measure
    if figure.unit in HOURS:
        return _duration(figure.value, figure.unit, measure)
    if figure.is_percent:
        if measure is Measure.SHARE or (fact.high is not None and fact.high <= 1):
            return figure.share
        return figure.value if {"percent", "percentage", "pct"}.intersection(fact.words) else None
    if figure.unit:
        fits = measure in ({"km": Measure.KM, "km/h": Measure.KMH}[figure.unit], Measure.PLAIN)
    elif figure.is_money:
        fits = measure in (Measure.MONEY, Measure.PLAIN)
    else:
        fits = measure is not Measure.SHARE or figure.value <= 1
    return figure.value if fits else None


def time_in(measure: Measure, value: float, unit: str) -> float:
    """A period in days or hours, the very number that a fact has after exactly that time."""
    seconds = value * round(3600 * HOURS[unit])
    return seconds / (86_400 if measure is Measure.DAYS else 3600)


def _duration(value: float, unit: str, measure: Measure) -> float | None:
    if measure in (Measure.DAYS, Measure.HOURS):
        return time_in(measure, value, unit)
    if measure is Measure.MINUTES and unit in MINUTES:
        return value * MINUTES[unit]
    return value if measure is Measure.YEARS and unit == "year" else None


def bounds(sentence: Sentence, at: int, fact: Fact, *, bare: bool = False) -> Bounds:
    """Everything that may be said of a number here. A number alone is an equality, if `bare` allows that."""
    if not openings(sentence, at):
        return
    for low, high, end in _ranges(sentence, at):
        least, most = value_for(low, fact), value_for(high, fact)
        if least is not None and most is not None and least <= most:
            inside = _both(limit(Op.AT_LEAST, least), limit(Op.AT_MOST, most))
            yield _negated(inside) if sentence.is_word(at, "not") else inside, end
    for op, after in comparators(sentence, at):
        if sentence.tokens[after - 1].text == "from" and not sentence.has_word(after, after + 3, *_ONWARD):
            continue  # "from 8 pm" is a bound only if "on" or "up" follows
        if op is Op.IS:
            yield from _bare(sentence, after, fact)
            continue
        for figure, end in _figures_or_shares(sentence, after, fact):
            if not figure.at_least and (value := value_for(figure, fact)) is not None:
                yield limit(op, value), end
                yield from _with_upper_end(sentence, end, op, figure, fact)
                if op is Op.AT_LEAST and sentence.is_one_of(end, _ONWARD):
                    yield limit(op, value), end + 1
    yield from _bare(sentence, at, fact, equality=bare)


@remembered
def openings(sentence: Sentence, at: int) -> Iterator[int]:
    """The places after what may open a bound here."""
    for opened in (comparators, figures, fractions):
        yield from (after for _, after in opened(sentence, at))
    yield from (end for _, _, end in _ranges(sentence, at))


def bounded(sentence: Sentence, at: int, fact: Fact, *, bare: bool = False) -> Tests:
    """The tests of a fact that the bounds here make."""
    yield from ((bound(fact.name), end) for bound, end in bounds(sentence, at, fact, bare=bare))


def _with_upper_end(sentence: Sentence, at: int, op: Op, figure: Figure, fact: Fact) -> Bounds:
    """ "(more than 15) but less than 30 minutes" """
    if op in (Op.ABOVE, Op.AT_LEAST) and sentence.is_word(at, "but", "and"):
        for other, after in comparators(sentence, at + 1):
            for high, end in figures(sentence, after) if other in (Op.BELOW, Op.AT_MOST) else ():
                least, most = value_for(_like(figure, high), fact), value_for(high, fact)
                if least is not None and most is not None and most > least:
                    yield _both(limit(op, least), limit(other, most)), end


def _figures_or_shares(sentence: Sentence, at: int, fact: Fact) -> Sequence[tuple[Figure, int]]:
    said = figures(sentence, at)
    if fact.measure is not Measure.SHARE:
        return said
    return [*said, *((Figure(share), after) for share, after in fractions(sentence, at))]


def _bare(sentence: Sentence, at: int, fact: Fact, *, equality: bool = True) -> Bounds:
    for figure, end in _figures_or_shares(sentence, at, fact):
        if (value := value_for(figure, fact)) is None:
            continue
        if figure.at_least:
            yield limit(Op.AT_LEAST, value), end
        elif (more := or_more(sentence, end)) is not None:
            yield limit(more[0], value), more[1]
        elif equality:
            yield limit(Op.IS, value), end
            yield from _more_values(sentence, end, fact, [value], figure.scale)


def _more_values(sentence: Sentence, at: int, fact: Fact, values: list[float], scale: float) -> Bounds:
    """Further numbers after the first one: "7 or 9", "3, 5 or 8"."""
    while True:
        after = sentence.skipped(at, (",", "or", "and"))
        figure, end = next(iter(figures(sentence, after)), (None, at)) if after > at else (None, at)
        if (
            figure is None
            or (value := value_for(figure, fact)) is None
            or figure.at_least
            or len(values) == MOST_LEAVES
        ):
            return
        if or_more(sentence, end) is not None or figure.scale > scale:  # "1, 2 or 3 thousand"
            return
        last_was_or = sentence.has_word(at, after, "or", "and")
        values, at = [*values, value], end
        if last_was_or:
            yield _one_of(values), at


@remembered
def _ranges(sentence: Sentence, at: int) -> Iterator[tuple[Figure, Figure, int]]:
    """The two ends of a range, perhaps after "not"."""
    for joint, start in sentence.meanings(at + sentence.is_word(at, "not"), _RANGES):
        for low, high, end in figure_pairs(sentence, start, joint):
            if not (low.at_least or high.at_least):
                yield _like(low, high), high, end


def figure_pairs(sentence: Sentence, at: int, *joints: str) -> Iterator[tuple[Figure, Figure, int]]:
    """Two numbers with a joint between them: "(between) 5 and 9"."""
    for low, middle in figures(sentence, at):
        for high, end in figures(sentence, middle + 1) if sentence.is_one_of(middle, joints) else ():
            yield low, high, end


def _like(low: Figure, high: Figure) -> Figure:
    """The lower end of "5 to 10 days", with the unit of the upper one if it has none."""
    if high.scale > 1 and low.scale == 1 and low.value < high.value / high.scale:  # "between one and two million"
        return replace(low, value=low.value * high.scale, is_money=low.is_money or high.is_money)
    if low.unit or low.is_percent or not (high.unit or high.is_percent):
        return low
    return Figure(low.value, high.is_money or low.is_money, high.is_percent, high.unit)


@remembered
def counts(sentence: Sentence, at: int) -> Bounds:
    """What may be said of a count before the noun: a bound, "no", "any", "a known ..."."""
    if sentence.is_word(at, "no", "zero") and not sentence.is_word(at + 1, "more", "fewer", "less"):
        yield limit(Op.IS, 0.0), at + 1
    yield from ((limit(*least), after) for least, after in sentence.meanings(at, _COUNTS))
    yield from bounds(sentence, at, COUNT)


def limit(op: Op, value: float) -> Bound:
    """A bound with one limit."""
    return lambda fact: Condition.of(Test(fact, op, value))


def _both(lower: Bound, upper: Bound) -> Bound:
    return lambda fact: Condition.all_of([lower(fact), upper(fact)])


def _negated(bound: Bound) -> Bound:
    return lambda fact: bound(fact).negated()


def _one_of(values: list[float]) -> Bound:
    return lambda fact: Condition.any_of(Condition.of(Test(fact, Op.IS, value)) for value in values)


def among(fact: str, values: Sequence[str], *, negated: bool = False) -> Condition:
    """The test that a category has one of these values, or that it has none of them.

    >>> str(among("country", ["US"])), str(among("country", ["US", "GB", "US"], negated=True))
    ('country is "US"', 'country not in ("US", "GB")')
    """
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return Condition.of(Test(fact, Op.IS_NOT if negated else Op.IS, distinct[0]))
    return Condition.of(Test(fact, Op.NOT_IN if negated else Op.IN, tuple(distinct)))
