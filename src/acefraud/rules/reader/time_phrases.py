"""Times of day, days, and ages: "between 10 pm and 6 am", "on Mondays", "account younger than a week"."""

from __future__ import annotations

import re
from calendar import day_name
from collections.abc import Iterator

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition
from acefraud.core.fact_names import NIGHT
from acefraud.rules.reader.facts import HOURS, Fact
from acefraud.rules.reader.quantities import (
    WRITTEN_NUMBERS,
    among,
    bounded,
    clocks,
    figure_pairs,
    figures,
    hour_in,
    limit,
    openings,
    or_more,
    value_for,
)
from acefraud.rules.reader.sentence import Sentence, Tests
from acefraud.rules.reader.tokens import (
    CURRENCIES,
    DETERMINERS,
    PEOPLE,
    TRANSACTIONS,
    Kind,
    PhraseList,
    Words,
    phrases,
    words,
)
from acefraud.rules.reader.vocabulary import AgeWords

_WEEKDAYS = {name.lower(): name for name in day_name if name}
_WEEKDAYS |= {short: _WEEKDAYS[full] for short, full in (said.split() for said in phrases("short_weekdays"))}
_AFTER_FACT = ("is", "in", "=", "==", "!=", "<>", "not", ":", "one", "known", "unknown", "missing")
"""Words after "weekday" that make it the fact of that name rather than a working day."""
_NIGHT = phrases("night")
_PARTS = {
    "morning": (6.0, 12.0), "afternoon": (12.0, 18.0), "evening": (18.0, NIGHT[0]), "daytime": (NIGHT[1], NIGHT[0]),
    "office hour": (9.0, 17.0), "business hour": (9.0, 17.0), "working hour": (9.0, 17.0),
}  # fmt: skip
"""The parts of the day besides the night. The last three are those of working days."""
_PART_NAMES = PhraseList({part: part for part in _PARTS} | dict.fromkeys(_NIGHT, "night"))
_WITHIN = {"morning": (0.0, 12.0), "afternoon": (12.0, 19.0), "evening": (16.0, 24.0), "night": (18.0, 9.0)}
"""Hours that may be meant with such a part."""
_BEFORE_HOURS, _COUNTED = words("before_hours"), TRANSACTIONS | frozenset(HOURS) | CURRENCIES.keys()
_RANGES = PhraseList({"between": ("and",), "from": ("to", "until", "till"), "": ("to", "until")})
"""What opens a range of times, and what stands between its ends."""
_BEFORE_CLOCK = PhraseList.of_lists(
    {"after_clock": Op.AT_LEAST, "not_after_clock": Op.AT_MOST, "before_clock": Op.BELOW}
)
_AFTER_CLOCK = PhraseList.of_lists({"or_after_clock": Op.AT_LEAST, "or_before_clock": Op.AT_MOST})
_TRANSACTIONS = TRANSACTIONS | {"this", "that", "claim"}
_OPENED, _EXISTED = words("opened"), words("existed")
_WHO, _AGED = words("who"), words("aged")
_BEFORE_AGE = PEOPLE | words("kinds_of_people")
_LATEST_MORNING = 8
"""The latest hour at which a night ends, if only a number is said."""


_BEFORE_TIMES = DETERMINERS.union(words("time_links"), {"not", "outside", "on", "either", "between", "late", "early"})
_BEFORE_TIMES |= {word for said in (*_BEFORE_CLOCK, "from", "during", "at") for word in said.split()}
"""Words that may stand before a time."""
_TIMES = frozenset(word for said in (*_WEEKDAYS, *_PART_NAMES, *phrases("working_day")) for word in said.split())
_TIMES = WRITTEN_NUMBERS | {"weekday", "weekend"} | (_TIMES - _BEFORE_TIMES)
"""Words of which one stands in every time that begins with a word."""


def time_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of a time of day or of a day that begins here."""
    facts = sentence.vocabulary.facts
    first = sentence.token(end := sentence.skipped(at, _BEFORE_TIMES))
    is_number = first is not None and first.kind in (Kind.NUMBER, Kind.CLOCK)
    if not is_number and _TIMES.isdisjoint(sentence.words[at : end + 1]):
        return
    start = sentence.skipped(at, words("time_links"))
    for place in {at, start}:
        if "weekday" in facts:
            yield from _weekdays(sentence, place)
        if "hour" in facts:
            yield from _clock_ranges(sentence, place)
            yield from _before_or_after(sentence, place)
            yield from _or_later(sentence, place)
            yield from _at_hour(sentence, place - sentence.is_word(place - 1, "at") if place else place)
            yield from _parts_of_day(sentence, place)
        if "weekend" in facts:
            yield from _weekend(sentence, place)
        if "night" in facts and not _is_of_days(sentence, at, place):
            ends = sentence.after_one_of(place, _NIGHT)
            yield from ((_is("night", True), end) for end in ends if not any(_own_hours(sentence, "night", end)))


def _is(flag: str, holds: bool) -> Condition:
    return Condition.of(Test(flag, Op.IS, holds))


def _weekdays(sentence: Sentence, at: int) -> Tests:
    """ "on Mondays and Tuesdays": any of these days; "Saturday night", "at night on Saturdays": the night after"""
    for days, end in _days(sentence, at):
        after = sentence.skipped(end, ("at", "during", "late", "the"))
        nights = list(sentence.after_one_of(after, _NIGHT))
        if not nights:
            yield among("weekday", days), end
        for final in nights if "hour" in sentence.vocabulary.facts else ():
            own = list(_own_hours(sentence, "night", final))
            yield from ((_nights_after(days, start, stop), last) for start, stop, last in own if start > stop)
            if not own:
                yield _nights_after(days, *NIGHT), final
    for after in sentence.after_one_of(at, _NIGHT):
        for days, end in _days(sentence, sentence.skipped(after, ("on", "of", "from"))):
            if "hour" in sentence.vocabulary.facts:
                yield _nights_after(days, *NIGHT), end


def _days(sentence: Sentence, at: int) -> Iterator[tuple[list[str], int]]:
    """Days of the week, each list with the place after it."""
    tokens, days = sentence.tokens, list[str]()
    place = sentence.skipped(at, ("on", "a", "any", "the", "either", "every"))
    first = place + sentence.is_word(place, "from", "between")
    is_range = sentence.is_word(first + 1, "to", "through", "until", "till", "–", "-")
    if is_range and sentence.is_one_of(first, _WEEKDAYS):
        last = sentence.skipped(first + 2)
        if sentence.is_one_of(last, _WEEKDAYS):
            yield _days_between(tokens[first].text, tokens[last].text), last + 1
        return
    while sentence.is_one_of(place, _WEEKDAYS):
        days = [*days, _WEEKDAYS[tokens[place].text]]
        yield days, place + 1
        if len(days) == 1 and sentence.is_comma_or(place + 1):
            return  # "Monday, or Tuesday night"
        place = sentence.skipped(place + 1, (",", "or", "and", "on", "/", "&"))


def _is_of_days(sentence: Sentence, at: int, place: int) -> bool:
    """Whether "night" is said of days of the week: it may stand after them or before them."""
    after = next(iter(sentence.after_one_of(place, _NIGHT)), place)
    follows = any(_days(sentence, sentence.skipped(after, ("on", "of", "from")))) if after > place else False
    return follows or (at > 0 and sentence.is_one_of(at - 1, _WEEKDAYS))


def _nights_after(days: list[str], start: float, stop: float) -> Condition:
    """The nights that begin in the evening of these days: that of Saturday ends on Sunday morning."""
    late, early = Condition.of(Test("hour", Op.AT_LEAST, start)), Condition.of(Test("hour", Op.BELOW, stop))
    next_days = [day_name[(list(day_name).index(day) + 1) % 7] for day in days]
    parts = ((days, late), (next_days, early)) if stop else ((days, late),)
    return Condition.any_of(Condition.all_of([among("weekday", some), part]) for some, part in parts)


def _weekend(sentence: Sentence, at: int) -> Tests:
    """ "weekend", "business day", "not on a weekend" """
    yield from ((_is("weekend", True), end) for end in sentence.after(at, "weekend"))
    yield from ((_is("weekend", False), end) for end in sentence.after_one_of(at, phrases("working_day")))
    place = sentence.skipped(at, ("on", "a", "any", "during", "the"))
    if sentence.is_word(place, "weekday") and not sentence.is_one_of(place + 1, _AFTER_FACT):
        yield _is("weekend", False), place + 1
    if sentence.is_word(at, "not"):
        place = sentence.skipped(at + 1, ("on", "at", "the", "a"))
        for name in ("weekend", "night"):
            if sentence.is_word(place, name) and name in sentence.vocabulary.facts:
                yield _is(name, False), place + 1


def _parts_of_day(sentence: Sentence, at: int) -> Tests:
    """ "in the evening", "outside office hours", and with their own hours "at night (22-05)" """
    place, negated = _after_not(sentence, at)
    place = sentence.skipped(place, words("time_links")) if negated else place
    start = sentence.skipped(place, ("early", "late"))
    for part, after in sentence.meanings(start, _PART_NAMES):
        made = [(_hours_between(first, last), end) for first, last, end in _own_hours(sentence, part, after)]
        if not made and part in _PARTS and start == place and not sentence.is_word(at - 1, "early", "late"):
            made = [(_usual_hours(part), after)]
        yield from ((inside.negated() if negated else inside, end) for inside, end in made)


def _usual_hours(part: str) -> Condition:
    hours = _hours_between(*_PARTS[part])
    return Condition.all_of([_is("weekend", False), hours]) if part.endswith("hour") else hours


def _own_hours(sentence: Sentence, part: str, at: int) -> Iterator[tuple[float, float, int]]:
    """The hours that are given for a part of the day after its name: "(10pm to 6am)", ", say after 9"."""
    start = sentence.skipped(at, _BEFORE_HOURS)
    glue = sentence.said(at, start)
    for joints, after in sentence.meanings(start, _RANGES):
        for first, middle in clocks(sentence, after, bare=True):
            for last, end in clocks(sentence, middle + 1, bare=True) if sentence.is_one_of(middle, joints) else ():
                is_bare = _is_bare(sentence, after, middle), _is_bare(sentence, middle + 1, end)
                pair = _within_part(part, first, last, is_bare)
                final = _after_hours(sentence, end, glue, is_plain=all(is_bare))
                if pair is not None and final is not None:
                    yield *pair, final
    said = {"evening": ("after", "from"), "morning": ("before", "until")}.get(part, ())
    for after in sentence.after(start, *said):
        for hour, end in clocks(sentence, after, bare=True):
            meant = hour_in(part, hour) if _is_bare(sentence, after, end) else hour
            final = _after_hours(sentence, end, glue, is_plain=False)
            if meant and final is not None:
                yield (meant, 0.0, final) if part == "evening" else (0.0, meant, final)


def _within_part(part: str, first: float, last: float, is_bare: tuple[bool, bool]) -> tuple[float, float] | None:
    """Two hours as they are meant in a part of the day; None if they cannot be."""
    if part not in _WITHIN:  # "business hours 9 to 5"
        return (first, last + 12 if all(is_bare) and last < first else last) if first != last else None
    low, high = _WITHIN[part]
    meant = [hour_in(part, hour) if bare else hour for hour, bare in zip((first, last), is_bare, strict=True)]
    if part == "night" and is_bare[1] and last <= _LATEST_MORNING:
        meant[1] = last  # a night ends in the morning: "(midnight to 6)"
    fits = [hour is not None and (low <= hour <= high if low < high else hour >= low or hour <= high) for hour in meant]
    start, stop = meant
    if start is None or stop is None or start == stop or not all(fits):
        return None
    return (start, stop % 24) if start < stop or low > high else None


def _after_hours(sentence: Sentence, at: int, glue: Words, *, is_plain: bool) -> int | None:
    """The place after hours that end here; None if the numbers may be something else."""
    at += is_plain and sentence.is_word(at, "hour") and sentence.tokens[at].shown == "h"
    if "(" in glue:
        return at + 1 if sentence.is_word(at, ")") else None
    may_be_amounts = is_plain and (glue == (",",) or sentence.is_one_of(at, _COUNTED))
    return None if may_be_amounts else at


def _clock_ranges(sentence: Sentence, at: int) -> Tests:
    """ "between 10 pm and 6 am", "not from 9 to 5 pm" """
    place, negated = _after_not(sentence, at)
    for joints, after in sentence.meanings(place, _RANGES):
        for first, last, end in _clock_pairs(sentence, after, joints):
            if first != last:
                inside = _hours_between(first, last)
                yield inside.negated() if negated else inside, end


def _before_or_after(sentence: Sentence, at: int) -> Tests:
    """ "after 10 pm", "not before 6 am", "from 8 pm on" """
    place, negated = _after_not(sentence, at)
    if negated and sentence.is_word(place, "later"):
        place, negated = place - 1, False  # "not later than" has a meaning of its own
    for op, hour, end in _clock_limits(sentence, place):
        if hour:  # before or after midnight: which day is meant?
            test = Test("hour", op, hour)
            yield Condition.of(test.negated() if negated else test), end


def _clock_limits(sentence: Sentence, at: int) -> Iterator[tuple[Op, float, int]]:
    """A comparison with a time of day in hours."""
    for op, after in sentence.meanings(at, _BEFORE_CLOCK):
        yield from ((op, hour, end) for hour, end in clocks(sentence, after) if not sentence.is_word(end, "or"))
    for after in sentence.after(at, "from"):
        for hour, end in clocks(sentence, after):
            if sentence.is_word(end, "on", "onward"):
                yield Op.AT_LEAST, hour, end + 1


def _or_later(sentence: Sentence, at: int) -> Tests:
    """ "9 pm or later", "6 am or earlier" """
    for hour, after in clocks(sentence, at):
        for op, end in sentence.meanings(after, _AFTER_CLOCK) if hour else ():
            yield Condition.of(Test("hour", op, hour)), end


def _at_hour(sentence: Sentence, at: int) -> Tests:
    """ "at 3 in the morning", "at 3 am": the hour that begins then"""
    for hour, after in clocks(sentence, at + 1) if sentence.is_word(at, "at") else ():
        is_whole = (
            hour == int(hour)
            and not sentence.is_one_of(at + 1, WRITTEN_NUMBERS)
            and ":" not in sentence.shown(at + 1, at + 2)[0]
        )
        if is_whole and not sentence.is_word(after, "or", "to", "and", "until", "-"):
            yield _hours_between(hour, (hour + 1) % 24), after


def _after_not(sentence: Sentence, at: int) -> tuple[int, bool]:
    """The place after "not" or "outside", and whether that was there."""
    place = sentence.skipped(at)
    negated = sentence.is_word(place, "not", "outside")
    return place + negated, negated


def _clock_pairs(sentence: Sentence, at: int, joints: tuple[str, ...]) -> Iterator[tuple[float, float, int]]:
    """Two times of day with the place after them. A bare number takes "am" or "pm" from the other one."""
    for first, middle in clocks(sentence, at, bare=True):
        for last, end in clocks(sentence, middle + 1, bare=True) if sentence.is_one_of(middle, joints) else ():
            is_bare = _is_bare(sentence, at, middle)
            if is_bare and _is_bare(sentence, middle + 1, end):
                if (after := _after_plain_hours(sentence, at, end)) is not None:
                    is_working = last < first <= 12 and _follows_day(sentence, at)  # "on weekdays between 9 and 5"
                    yield first % 24, (last + 12 if is_working else last) % 24, after
                continue
            token = sentence.tokens[end - 1]
            if is_bare and token.text == "night":  # "10 to 2 at night"
                first = hour_in("night", first) or 0.0  # noqa: PLW2901
            # "from 8 to 10 pm" begins at 8 pm, "from 11 to 5 pm" at 11 am
            if is_bare and first > last and token.text.rstrip(".").endswith(("am", "a.m", "morning")):
                continue  # "from 10 to 4 am"
            is_afternoon = token.text.rstrip(".").endswith(("pm", "p.m", "evening", "afternoon"))
            is_late = is_bare and is_afternoon and first < 12 and first % 12 < last % 12
            yield (first % 12 + 12 if is_late else first) % 24, last % 24, end
    if sentence.has_word(max(0, at - 4), at, "hour"):  # "hour between 1 and 5"
        for low, high, end in figure_pairs(sentence, at, *joints):
            if not low.unit and not high.unit and low.value in range(25) and high.value in range(25):
                yield low.value % 24, high.value % 24, end


def _after_plain_hours(sentence: Sentence, at: int, end: int) -> int | None:
    """The place after two plain numbers that can only be hours: "22-05", "mon-fri 9 to 18", "0-6h"; None otherwise."""
    first, last = sentence.tokens[at], sentence.tokens[end - 1]
    is_h = sentence.is_word(end, "hour") and sentence.tokens[end].shown == "h"
    if is_h:
        is_age = sentence.is_one_of(end + 1, words("after_age")) or (
            at and sentence.is_one_of(at - 1, words("window_start"))
        )
        return None if is_age or sentence.is_word(at - 1, "last", "past") else end + 1
    if sentence.is_one_of(end, _COUNTED):
        return None
    has_zero = any(re.fullmatch(r"0\d", token.shown) for token in (first, last))
    is_night = first.value >= _WITHIN["night"][0] and last.value < _WITHIN["night"][1]
    is_day = first.value < last.value > 12 or (7 <= first.value <= 11 and 3 <= last.value <= 8 and not has_zero)
    return end if has_zero or is_night or (is_day and _follows_day(sentence, at)) else None


def _follows_day(sentence: Sentence, at: int) -> bool:
    day = at - 1 - sentence.is_word(at - 1, "between", "from")
    return day >= 0 and (sentence.is_one_of(day, _WEEKDAYS) or sentence.is_word(day, "weekday", "weekend"))


def _is_bare(sentence: Sentence, start: int, end: int) -> bool:
    return sentence.tokens[start].kind is Kind.NUMBER and end == start + 1


def _days_between(first: str, last: str) -> list[str]:
    """The days of the week from one to another: "Friday to Monday" has four."""
    days = list(day_name)
    start, end = days.index(_WEEKDAYS[first]), days.index(_WEEKDAYS[last])
    return [days[(start + step) % 7] for step in range((end - start) % 7 + 1)]


def _hours_between(first: float, last: float) -> Condition:
    """From one time of day up to another, which may be on the next day."""
    start, end = Condition.of(Test("hour", Op.AT_LEAST, first)), Condition.of(Test("hour", Op.BELOW, last))
    if last == 0:
        return start
    if first == 0:
        return end
    return Condition.all_of([start, end]) if first < last else Condition.any_of([start, end])


# --- ages ---


def age_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of the age of a thing, or of the time since something was done, that begins here."""
    places = (at, sentence.skipped(at), sentence.skipped(at, _WHO))
    first_words = {word for place in places for word in sentence.said(place, place + 1)}
    opens = any(map(sentence.vocabulary.openings_of_ages.__contains__, first_words)) or openings(sentence, at)
    if not opens and not sentence.after_one_of(at, phrases("right_after")):
        return
    for age in sentence.vocabulary.ages:
        fact = sentence.vocabulary.facts[age.fact]
        yield from _is_old(sentence, age, fact, at)
        yield from _did(sentence, age, fact, at)
        yield from _since(sentence, age, fact, at)
        for said in age.idle:  # "no transaction for over six weeks"
            for after in sentence.after(sentence.skipped(at), " ".join(said)):
                yield from _durations(sentence, fact, after)
        if at and sentence.is_word(at, "older", "younger", "newer") and sentence.said(at - 1, at) in age.age_of:
            yield from _durations(sentence, fact, at)  # "(business accounts) older than two years"


def _durations(sentence: Sentence, fact: Fact, at: int) -> Tests:
    """What is said of an age here, if it is said with a unit of time."""
    for condition, end in bounded(sentence, at, fact):
        if _has_unit(sentence, at, end):
            yield condition, end


def _has_unit(sentence: Sentence, start: int, end: int) -> bool:
    return any(figure.unit in HOURS for index in range(start, end) for figure, _ in figures(sentence, index))


def _is_old(sentence: Sentence, age: AgeWords, fact: Fact, at: int) -> Tests:
    """ "account younger than a week", "the card was added less than a day ago", "account 60 days old or older" """
    for _, after in sentence.matches(at, age.age_of):
        for start in range(after, sentence.skipped(after, _OPENED) + 1):
            existed = any(word in _EXISTED for word in sentence.said(after, start))
            for condition, end in _durations(sentence, fact, start):
                final = _after_age(sentence, end)
                compares = {"older", "younger", "newer"}.intersection(sentence.said(start, end))
                following = sentence.token(end)  # "account > 10 days, ..."
                stands_alone = start == after and (following is None or following.kind is Kind.SIGN)
                if final > end or compares or existed or stands_alone:
                    yield condition, final
            for figure, end in figures(sentence, start):
                more = or_more(sentence, end + 1) if sentence.is_word(end, "old") else None
                if sentence.is_word(end, "old") and sentence.has_word(max(0, at - 2), at, "once"):
                    more = Op.AT_LEAST, end + 1  # "once the account is two months old"
                if more is not None and figure.unit in HOURS and (value := value_for(figure, fact)) is not None:
                    yield limit(more[0], value)(fact.name), more[1]
            if start > after:
                yield from _within_last(sentence, fact, start)


def _did(sentence: Sentence, age: AgeWords, fact: Fact, at: int) -> Tests:
    """ "signed up less than a day ago" """
    for said in age.did:
        start = _after_verb(sentence, at, said)
        if start is None:
            continue
        for index in range(start, sentence.skipped(start, ("only", "just", "for", "with", "us")) + 1):
            lasting = sentence.has_word(start, index, "for")
            for condition, end in _durations(sentence, fact, index):
                final = _after_age(sentence, end)
                if final > end or lasting:
                    yield condition, final
        yield from _within_last(sentence, fact, start)


def _within_last(sentence: Sentence, fact: Fact, at: int) -> Tests:
    """ "(the account was opened) within the last two days" """
    for after in sentence.after_one_of(at, phrases("within_last")):
        for figure, end in figures(sentence, after):
            if figure.unit in HOURS and (value := value_for(figure, fact)) is not None:
                yield limit(Op.AT_MOST, value)(fact.name), end


def _since(sentence: Sentence, age: AgeWords, fact: Fact, at: int) -> Tests:
    """ "within a day of signing up" """
    for condition, end in _durations(sentence, fact, at) if age.since else ():
        if sentence.is_one_of(end, words("after_event")):
            person = sentence.skipped(end + 1, PEOPLE | DETERMINERS | {"they", "he", "she"})
            for start, said in ((end + 1, age.since), (person, age.did)):
                for _, final in sentence.matches(start, said):
                    yield condition, final
        for joint, until in (("between", "and"), ("from", "to")):  # "less than a minute between signup and purchase"
            for _, middle in sentence.matches(end + 1, age.since) if sentence.is_word(end, joint) else ():
                event = sentence.skipped(middle + 1)
                if sentence.is_word(middle, until) and sentence.is_one_of(event, _TRANSACTIONS | words("buying")):
                    yield condition, event + 1
    for event in sentence.after_one_of(at, phrases("right_after")):  # "right after signup (under 5 min)"
        for _, after in sentence.matches(event, age.since):
            for condition, end in _durations(sentence, fact, after + 1) if sentence.is_word(after, "(") else ():
                if sentence.is_word(end, ")"):
                    yield condition, end + 1


def _after_verb(sentence: Sentence, at: int, said: Words) -> int | None:
    """The place after what somebody did, if these words stand here: "a customer who opened an account"."""
    place = sentence.skipped(at, _WHO)
    for index, word in enumerate(said):
        place = sentence.skipped(place) if index else place
        if not sentence.is_word(place, word):
            return None
        place += 1
    return place


def _after_age(sentence: Sentence, at: int) -> int:
    """After "old", "ago", "before the purchase"."""
    if sentence.is_word(at, "old", "ago", "earlier"):
        return at + 1
    if sentence.is_word(at, "before", "prior"):
        place = sentence.skipped(at + 1 + sentence.is_word(at + 1, "to"))
        return place + 1 if sentence.is_one_of(place, _TRANSACTIONS | words("buying")) else at + 1
    return at


def people_tests(sentence: Sentence, at: int) -> Tests:
    """ "customers under 25", "aged between 20 and 30", "the buyer is 40 or older": the age of a person"""
    ages = sentence.vocabulary.in_years
    if len(ages) != 1:
        return
    start = sentence.skipped(at)
    is_person = sentence.is_one_of(start, PEOPLE)
    place = sentence.skipped(start + is_person, _AGED)
    no_amount = "amount" not in sentence.vocabulary.facts  # "married, over 40": nothing else that has no name
    is_range = sentence.is_word(place + 1, "to") and not (
        sentence.tokens[place].is_money if place < len(sentence.tokens) else True
    )
    things = [word for word in sentence.said(0, start) if word in _BEFORE_AGE or word in words("aged_things")]
    if not is_person and things and things[-1] not in _BEFORE_AGE:
        return  # "a car over 69k that is less than 3 years old"
    before = start - 1 - ((no_amount or is_range) and start > 1 and sentence.is_word(start - 1, ","))
    named = is_person or (before >= 0 and sentence.is_one_of(before, _BEFORE_AGE))
    named = named or sentence.has_word(max(0, start - 1), place, "aged", "age")
    for condition, end in bounded(sentence, place, ages[0]):
        tokens, said = sentence.tokens[place:end], sentence.said(place, end)
        if any(token.is_money or token.is_percent or token.kind is Kind.CLOCK for token in tokens):
            continue
        final = max(sentence.after(end, "year old", "year of age", "of age", "old"), default=end)
        follows = no_amount and sentence.is_word(final, ",") and sentence.is_one_of(final + 1, words("kinds_of_people"))
        is_number_of_years = (named or follows or "older" in said or "younger" in said) and not _has_unit(
            sentence, place, end
        )
        if is_number_of_years or ("year" in said and (named or final > end)):
            yield _age_band(sentence, place, end) or condition, final


def _age_band(sentence: Sentence, start: int, end: int) -> Condition | None:
    """The band of an age that these words name as it is written: "21 to 25"."""
    for name in sentence.vocabulary.bands:
        fact = sentence.vocabulary.facts[name]
        value = sentence.value(fact, start) if fact.words[0] == "age" and PEOPLE.intersection(fact.words) else None
        if value is not None and value[1] == end:
            return among(name, [value[0]])
    return None
