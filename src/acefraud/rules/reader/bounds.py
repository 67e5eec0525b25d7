"""What is said of a number: "over $500", "at least two weeks", "between 5 and 9", "5+", "no", "any"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.measures import Measure
from acefraud.rules.reader.names import Fact
from acefraud.rules.reader.phrases import Tokens, after_any, is_one_of, is_word, phrase
from acefraud.rules.reader.quantities import (
    HOURS,
    MINUTES,
    Figure,
    as_share,
    comparators,
    figures,
    fractions,
    or_more,
)
from acefraud.rules.reader.word_lists import words

Bound = Callable[[str], Condition]
"""Makes the condition for a fact of that name."""
Bounds = Iterator[tuple[Bound, int]]
"""Each with the place after its words."""
Tests = Iterator[tuple[Condition, int]]
"""The same for conditions."""
_ONWARD = words("onward")
_RANGES = (("between", "and"), ("from", "to"), ("in the range", "to"), ("anywhere between", "and"), ("", "to"))
"""What opens a range, and what stands between its ends."""


def value_for(figure: Figure, fact: Fact) -> float | None:
    """The figure in the unit of a fact; None if it does not fit.

    >>> value_for(Figure(2.0, unit="week"), Fact("account_age_days", "number", Measure.DAYS))
    14.0
    """
    measure = fact.measure
    if figure.unit in HOURS:
        return _duration(figure.value, figure.unit, measure)
    if figure.is_percent:
        return _percentage(figure, fact)
    if figure.unit:
        fits = measure in ({"km": Measure.KM, "km/h": Measure.KMH}[figure.unit], Measure.PLAIN)
    elif figure.is_money:
        fits = measure in (Measure.MONEY, Measure.PLAIN)
    else:
        fits = measure is not Measure.SHARE or figure.value <= 1
    return figure.value if fits else None


def _duration(value: float, unit: str, measure: Measure) -> float | None:
    if measure is Measure.DAYS:
        return round(value * HOURS[unit] / 24, 10)
    if measure is Measure.HOURS:
        return round(value * HOURS[unit], 10)
    if measure is Measure.MINUTES and unit in MINUTES:
        return value * MINUTES[unit]
    return value if measure is Measure.YEARS and unit == "year" else None


def _percentage(figure: Figure, fact: Fact) -> float | None:
    if fact.measure is Measure.SHARE or (fact.high is not None and fact.high <= 1):
        return as_share(figure)
    return figure.value if any(word in ("percent", "percentage", "pct") for word in fact.words) else None


def bounds(tokens: Tokens, at: int, fact: Fact, *, bare: bool = False) -> Bounds:
    """Everything that may be said of a number here. A number alone is an equality, if `bare` allows that."""
    yield from _ranges(tokens, at, fact)
    for op, after in comparators(tokens, at):
        if tokens[after - 1].text == "from" and not _goes_on(tokens, after):
            continue
        for figure, end in _with_half(tokens, after, fact):
            if (value := value_for(figure, fact)) is None or figure.at_least:
                continue
            if op is Op.IS and (more := or_more(tokens, end)) is not None:
                yield limit(more[0], value), more[1]
            else:
                yield from _closed(tokens, end, op, figure, fact)
        if op is Op.IS:
            yield from _bare(tokens, after, fact)
    yield from _bare(tokens, at, fact, equality=bare)


def _goes_on(tokens: Tokens, at: int) -> bool:
    """Whether "from 8pm" is followed by "on" or "up", so that it is no range."""
    return any(is_one_of(tokens, place, _ONWARD) for place in range(at, min(at + 3, len(tokens))))


def _closed(tokens: Tokens, at: int, op: Op, figure: Figure, fact: Fact) -> Bounds:
    """A bound, perhaps with words after it that repeat its direction, or with the other end of a range."""
    value = value_for(figure, fact)
    assert value is not None
    yield limit(op, value), at
    if op in (Op.ABOVE, Op.AT_LEAST) and is_word(tokens, at, "but", "and"):  # "more than 15 but less than 30 minutes"
        for other, after in comparators(tokens, at + 1):
            for high, end in figures(tokens, after) if other in (Op.BELOW, Op.AT_MOST) else ():
                least, most = value_for(_like(figure, high), fact), value_for(high, fact)
                if least is not None and most is not None and most > least:
                    yield _both(limit(op, least), limit(other, most)), end
    if is_one_of(tokens, at, _ONWARD) and op is Op.AT_LEAST:
        yield limit(op, value), at + 1


def _with_half(tokens: Tokens, at: int, fact: Fact) -> Iterator[tuple[Figure, int]]:
    yield from figures(tokens, at)
    if fact.measure is Measure.SHARE:
        yield from ((Figure(share), after) for share, after in fractions(tokens, at))


def _bare(tokens: Tokens, at: int, fact: Fact, *, equality: bool = True) -> Bounds:
    for figure, end in _with_half(tokens, at, fact):
        if (value := value_for(figure, fact)) is None:
            continue
        if figure.at_least:
            yield limit(Op.AT_LEAST, value), end
        elif (more := or_more(tokens, end)) is not None:
            yield limit(more[0], value), more[1]
        elif equality:
            yield limit(Op.IS, value), end
            yield from _more_values(tokens, end, fact, [value], figure.scale)


def _more_values(tokens: Tokens, at: int, fact: Fact, values: list[float], scale: float) -> Bounds:
    """Further numbers after the first one: "7 or 9", "3, 5 or 8"."""
    while True:
        after = at
        while is_word(tokens, after, ",", "or", "and"):
            after += 1
        found = next(iter(figures(tokens, after)), None) if after > at else None
        if found is None or (value := value_for(found[0], fact)) is None or found[0].at_least:
            return
        if or_more(tokens, found[1]) is not None or found[0].scale > scale:  # "1, 2 or 3 thousand"
            return
        last_was_or = any(is_word(tokens, place, "or", "and") for place in range(at, after))
        values, at = [*values, value], found[1]
        if last_was_or:
            yield _one_of(values), at


def _ranges(tokens: Tokens, at: int, fact: Fact) -> Bounds:
    negated = is_word(tokens, at, "not")
    for opening, joint in _RANGES:
        after = phrase(tokens, at + negated, opening)
        for low, middle in figures(tokens, after) if after is not None else ():
            if not is_word(tokens, middle, joint):
                continue
            for high, end in figures(tokens, middle + 1):
                least, most = value_for(_like(low, high), fact), value_for(high, fact)
                if least is not None and most is not None and least <= most and not (low.at_least or high.at_least):
                    yield _between(least, most, negated), end


def _like(low: Figure, high: Figure) -> Figure:
    """The lower end of "5 to 10 days", with the unit of the upper one if it has none."""
    if high.scale > 1 and low.scale == 1 and low.value < high.value / high.scale:  # "between one and two million"
        return replace(low, value=low.value * high.scale, is_money=low.is_money or high.is_money)
    if low.unit or low.is_percent or not (high.unit or high.is_percent):
        return low
    return Figure(low.value, high.is_money or low.is_money, high.is_percent, high.unit)


def counts(tokens: Tokens, at: int) -> Bounds:
    """What may be said of a count before the noun: a bound, "no", "any", "a known ..."."""
    fact = Fact("", "number", Measure.COUNT)
    if is_word(tokens, at, "no", "zero") and not is_word(tokens, at + 1, "more", "fewer", "less"):
        yield limit(Op.IS, 0.0), at + 1
    if is_word(tokens, at, "another"):
        yield limit(Op.AT_LEAST, 1.0), at + 1
    for after in after_any(
        tokens, at, ("not any", "not a single", "not one", "not a", "without any", "without a", "without")
    ):
        yield limit(Op.IS, 0.0), after
    if is_word(tokens, at, "any", "some"):
        yield limit(Op.ABOVE, 0.0), at + 1
    if is_word(tokens, at, "a", "an"):
        yield limit(Op.AT_LEAST, 1.0), at + 1
    yield from bounds(tokens, at, fact)


def limit(op: Op, value: float) -> Bound:
    """A bound with one limit."""
    return lambda fact: Condition.of(Test(fact, op, value))


def _between(low: float, high: float, negated: bool) -> Bound:
    def made(fact: str) -> Condition:
        inside = Condition.of(Test(fact, Op.AT_LEAST, low), Test(fact, Op.AT_MOST, high))
        return inside.negated() if negated else inside

    return made


def _both(one: Bound, other: Bound) -> Bound:
    return lambda fact: Condition.all_of([one(fact), other(fact)])


def _one_of(values: list[float]) -> Bound:
    return lambda fact: Condition.any_of(Condition.of(Test(fact, Op.IS, value)) for value in values)
