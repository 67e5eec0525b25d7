"""Times of day and days: "between 10 pm and 6 am", "at night", "on Mondays and Tuesdays", "not at the weekend"."""

from __future__ import annotations

from calendar import day_name
from collections.abc import Iterator

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.bounds import Tests
from acefraud.rules.reader.phrases import Tokens, after_any, is_one_of, is_word, phrase, skipped
from acefraud.rules.reader.quantities import Figure, clocks, figures
from acefraud.rules.reader.tokens import Kind
from acefraud.rules.reader.values import among
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import words

_LINKS = words("time_links")
_WEEKDAYS = words("weekdays")
_AFTER_FACT = ("is", "in", "=", "==", "!=", "<>", "not", ":", "one", "known", "unknown", "missing")
"""Words after "weekday" that make it the fact of that name rather than a working day."""
_NIGHT = ("night", "night time", "nighttime", "overnight")
_RANGES = (("between", ("and",)), ("from", ("to", "until", "till")), ("", ("to", "until")))
"""What opens a range of times, and what stands between its ends."""
_BEFORE_CLOCK = (
    ("after", Op.AT_LEAST),
    ("not later than", Op.AT_MOST),
    ("no later than", Op.AT_MOST),
    ("later than", Op.AT_LEAST),
    ("past", Op.AT_LEAST),
    ("since", Op.AT_LEAST),
    ("before", Op.BELOW),
    ("earlier than", Op.BELOW),
    ("prior to", Op.BELOW),
    ("until", Op.BELOW),
    ("by", Op.BELOW),
    ("from", Op.AT_LEAST),
)
_AFTER_CLOCK = (
    ("or later", Op.AT_LEAST),
    ("or after", Op.AT_LEAST),
    ("or earlier", Op.AT_MOST),
    ("or before", Op.AT_MOST),
    ("onward", Op.AT_LEAST),
)


class TimeTests:
    """Reads tests of the hour, the day of the week, the night and the weekend."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary

    def tests(self, at: int) -> Tests:
        """Every test of a time of day or of a day that begins here."""
        facts = self._vocabulary.facts
        start = skipped(self._tokens, at, _LINKS)
        for place in {at, start}:
            if "weekday" in facts:
                yield from self._weekdays(place)
            if "hour" in facts:
                yield from self._clock_ranges(place)
                yield from self._before_or_after(place)
                yield from self._or_later(place)
        if "night" in facts:
            for said in _NIGHT:
                for place in {at, start}:
                    if (end := phrase(self._tokens, place, said)) is not None:
                        yield Condition.of(Test("night", Op.IS, True)), end
        if "weekend" in facts:
            yield from self._weekend(start)

    def _weekdays(self, at: int) -> Tests:
        """ "on Mondays and Tuesdays": any of these days"""
        tokens, days = self._tokens, []
        place = skipped(tokens, at, ("on", "a", "any", "the", "either", "every"))
        opening = place + is_word(tokens, place, "from", "between")
        if is_one_of(tokens, opening, _WEEKDAYS) and is_word(
            tokens, opening + 1, "to", "through", "until", "till", "–"
        ):
            last = skipped(tokens, opening + 2)
            if is_one_of(tokens, last, _WEEKDAYS):
                yield among("weekday", _days_between(tokens[opening].text, tokens[last].text)), last + 1
            return
        while is_one_of(tokens, place, _WEEKDAYS):
            days.append(tokens[place].text.capitalize())
            yield among("weekday", days), place + 1
            if len(days) == 1 and is_word(tokens, place + 1, ",") and is_word(tokens, place + 2, "or"):
                return  # "Monday, or Tuesday night"
            place = skipped(tokens, place + 1, (",", "or", "and", "on"))

    def _weekend(self, at: int) -> Tests:
        """ "weekend", "business day", "not on a weekend" """
        tokens = self._tokens
        for said, holds in (("weekend", True), ("working day", False), ("business day", False)):
            if (end := phrase(tokens, at, said)) is not None:
                yield Condition.of(Test("weekend", Op.IS, holds)), end
        place = skipped(tokens, at, ("on", "a", "any", "during", "the"))
        if is_word(tokens, place, "weekday") and not is_word(tokens, place + 1, *_AFTER_FACT):
            yield Condition.of(Test("weekend", Op.IS, False)), place + 1
        if is_word(tokens, at, "not"):
            place = skipped(tokens, at + 1, ("on", "at", "the", "a"))
            for name in ("weekend", "night"):
                if is_word(tokens, place, name) and name in self._vocabulary.facts:
                    yield Condition.of(Test(name, Op.IS, False)), place + 1

    def _clock_ranges(self, at: int) -> Tests:
        """ "between 10 pm and 6 am", "not from 9 to 5 pm" """
        place, negated = self._after_not(at)
        for opening, joints in _RANGES:
            for after in after_any(self._tokens, place, (opening,)):
                for first, last, end in self._clock_pairs(after, joints):
                    if first != last:
                        inside = _hours_between(first, last)
                        yield inside.negated() if negated else inside, end

    def _before_or_after(self, at: int) -> Tests:
        """ "after 10 pm", "not before 6 am", "from 8 pm on" """
        tokens = self._tokens
        place, negated = self._after_not(at)
        if negated and is_word(tokens, place, "later"):
            place, negated = place - 1, False  # "not later than" has a meaning of its own
        for said, op in _BEFORE_CLOCK:
            after = phrase(tokens, place, said)
            for hour, end in clocks(tokens, after) if after is not None else ():
                is_open = said == "from"
                if is_word(tokens, end, "or") or (is_open and not is_word(tokens, end, "on", "onward")):
                    continue
                if hour:  # before or after midnight: which day is meant?
                    test = Test("hour", op, hour)
                    yield Condition.of(test.negated() if negated else test), end + is_open

    def _or_later(self, at: int) -> Tests:
        """ "9 pm or later", "6 am or earlier" """
        for hour, after in clocks(self._tokens, at):
            for said, op in _AFTER_CLOCK if hour else ():
                if (end := phrase(self._tokens, after, said)) is not None:
                    yield Condition.of(Test("hour", op, hour)), end

    def _after_not(self, at: int) -> tuple[int, bool]:
        """The place after "not" or "outside", and whether that was there."""
        place = skipped(self._tokens, at)
        negated = is_word(self._tokens, place, "not", "outside")
        return place + negated, negated

    def _clock_pairs(self, at: int, joints: tuple[str, ...]) -> Iterator[tuple[float, float, int]]:
        """Two times of day with the place after them. A bare number takes "am" or "pm" from the other one."""
        tokens = self._tokens
        for first, middle in clocks(tokens, at, bare=True):
            for last, end in clocks(tokens, middle + 1, bare=True) if is_word(tokens, middle, *joints) else ():
                is_bare = self._is_bare(at, middle)
                if is_bare and self._is_bare(middle + 1, end):
                    continue
                # "from 8 to 10 pm" begins at 8 pm, "from 11 to 5 pm" at 11 am
                is_late = is_bare and self._is_afternoon(end - 1) and first < 12 and first % 12 < last % 12
                yield (first % 12 + 12 if is_late else first) % 24, last % 24, end
        if any(is_word(tokens, place, "hour") for place in range(max(0, at - 4), at)):
            yield from self._bare_pairs(at, joints)

    def _bare_pairs(self, at: int, joints: tuple[str, ...]) -> Iterator[tuple[float, float, int]]:
        """Two numbers that are hours because "hour" stands before them: "hour between 1 and 5"."""
        for low, middle in figures(self._tokens, at):
            for high, end in figures(self._tokens, middle + 1) if is_word(self._tokens, middle, *joints) else ():
                if _is_hour(low) and _is_hour(high):
                    yield low.value % 24, high.value % 24, end

    def _is_bare(self, start: int, end: int) -> bool:
        return self._tokens[start].kind is Kind.NUMBER and end == start + 1

    def _is_afternoon(self, at: int) -> bool:
        token = self._tokens[at]
        return token.kind is Kind.CLOCK and token.text.rstrip(".").endswith(("pm", "p.m"))


def _days_between(first: str, last: str) -> list[str]:
    """The days of the week from one to another: "Friday to Monday" has four."""
    days = [name.lower() for name in day_name]
    start, count = days.index(first), (days.index(last) - days.index(first)) % 7
    return [days[(start + step) % 7].capitalize() for step in range(count + 1)]


def _is_hour(figure: Figure) -> bool:
    return not figure.unit and figure.value in range(25)


def _hours_between(first: float, last: float) -> Condition:
    """From one time of day up to another, which may be on the next day."""
    start, end = Condition.of(Test("hour", Op.AT_LEAST, first)), Condition.of(Test("hour", Op.BELOW, last))
    if last == 0:
        return start
    if first == 0:
        return end
    return Condition.all_of([start, end]) if first < last else Condition.any_of([start, end])
