"""What is said of a category, of a flag, and of facts that are unknown.

The value of a category beside its name or alone, and comparisons with values that are bands: "country is one of US,
GB", "phone orders", "an accident on a Friday", "at least 2 past claims", "the
vehicle is over 7 years old". Flags: "not through a VPN", "the customer is not present"; unknown facts: "no country
given".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition, PairTest
from acefraud.rules.reader.facts import HOURS, Fact, Measure, as_words, codes_for, is_vague, values_within
from acefraud.rules.reader.quantities import among, bounds, counts
from acefraud.rules.reader.sentence import Sentence, Tests
from acefraud.rules.reader.tokens import DETERMINERS, PEOPLE, Kind, PhraseList, PhraseTable, Words, phrases, words
from acefraud.rules.reader.vocabulary import FlagPhrase, ValuePhrase

_AMONG = PhraseList(PhraseList.of_lists({"not_among": True}) | {"": False} | PhraseList.of_lists({"among": False}))
"""What stands before the values of a category, and whether it denies them."""
_PAIRS = PhraseList.of_lists({"same_value": Op.IS, "other_value": Op.IS_NOT})
"""Comparisons of two categories."""
_HEADS = words("heads")
_GENERIC_LAST = {"type", "area", "status", "group", "class", "kind"}
"""Last words of a name that need not be said: "the agent is internal"."""
_PERSONS = PEOPLE | {"party"}
_EVENT_LINKS = words("event_links")
_WEEKEND = ("Saturday", "Sunday")
_VEHICLES = words("same_vehicle")


# --- a category that is named ---


def category_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of a category that is named here."""
    for fact, after in sentence.facts(at, "category"):
        for values, end in sentence.values(fact, after + 1) if sentence.is_word(after, "but") else ():
            if sentence.is_word(at, "any"):  # "any currency but yen"
                yield among(fact.name, values, negated=True), end
        for place in sentence.after_be(after):
            yield from _has_value(sentence, fact, place)
            yield from _equals_other(sentence, fact, place)
    for fact, after in sentence.facts(at + 1, "category") if sentence.is_word(at, "outside") else ():
        for values, end in sentence.values(fact, after):  # "outside country 96"
            yield among(fact.name, values, negated=True), end


def _has_value(sentence: Sentence, fact: Fact, at: int) -> Tests:
    if fact.name == "weekday" and sentence.tokens[at - 1].shown.lower() == "weekdays":
        return  # "on weekdays except Fridays": working days
    for negated, after in sentence.meanings(at, _AMONG):
        for values, end in sentence.values(fact, after):
            yield among(fact.name, values, negated=negated), end


def _equals_other(sentence: Sentence, fact: Fact, at: int) -> Tests:
    """ "(the billing country) differs from the shipping country" """
    for op, after in sentence.meanings(at, _PAIRS):
        for other, end in sentence.facts(after, "category"):
            if other.name != fact.name:
                yield Condition.of(PairTest(fact.name, op, other.name)), end


# --- a value without its category ---


def value_tests(sentence: Sentence, at: int) -> Tests:
    """ "Chrome or Opera", "phone orders": values that belong to one category only, or stand beside words of its name"""
    yield from _within_name(sentence, at)
    yield from _families(sentence, at)
    outside = sentence.is_word(at, "outside")
    other_than = max(sentence.after_one_of(at, phrases("anything_but")), default=at)
    negated = sentence.is_word(at, "not", "non") or outside or other_than > at
    first = sentence.skipped(max(at + 1, other_than), words("coming_from")) if negated else at
    starts = (first, sentence.skipped(first), *((at + 1,) if negated else ()))
    for start in dict.fromkeys(starts):  # "all" may be a part of "All Perils", and "in" of "not in euros"
        for meanings, end in sentence.matches(start, sentence.vocabulary.values, exact=True):
            alone = len({meaning.fact for meaning in meanings}) == 1
            for meaning in meanings:
                fact = sentence.vocabulary.facts[meaning.fact]
                if outside and not codes_for(fact.values):
                    continue
                after = _beside(sentence, fact, end)
                if (
                    after is None
                    and alone
                    and (_is_clear(sentence, meaning, start, end) or _opens_list(sentence, meaning, end))
                ):
                    after = end
                if after is not None:
                    yield from _alternatives(sentence, fact, meaning.value, after, negated)
                if not negated:
                    yield from _is_not_at(sentence, fact, meaning.value, end)


def _families(sentence: Sentence, at: int) -> Tests:
    """ "Visa or Mastercard", "not a Visa card": values that begin with the same word"""
    first = max(sentence.after_one_of(at, phrases("anything_but")), default=at + sentence.is_word(at, "not", "non"))
    negated = first > at
    for phrase in sentence.vocabulary.families.get(sentence.said(start := sentence.skipped(first), start + 1), ())[:1]:
        fact = sentence.vocabulary.facts[phrase.fact]
        for values, end in sentence.values(fact, start):
            condition = among(fact.name, values, negated=negated)
            yield condition, end
            yield condition, sentence.skipped(end, _HEADS)


def _is_not_at(sentence: Sentence, fact: Fact, value: str, at: int) -> Tests:
    """ "(the policy holder) is not at fault" """
    for after in sentence.after(at, "not at", "is not at", "not with", "is not with"):
        for other, end in sentence.facts(after, "category"):
            if other.name == fact.name:
                yield among(fact.name, [value], negated=True), end


def _is_clear(sentence: Sentence, meaning: ValuePhrase, start: int, end: int) -> bool:
    """Whether these words can only be a value, even if nothing else points to its category."""
    said = sentence.said(start, end)
    if (
        _is_of_another_kind(sentence, meaning, start, end)
        or is_vague(said)
        or said in sentence.vocabulary.flags
        or sentence.is_ordinary(start, end)
    ):
        return False
    shown = sentence.tokens[start].shown
    return len(said) > 1 or len(shown) > 2 or shown == meaning.value


def _opens_list(sentence: Sentence, meaning: ValuePhrase, end: int) -> bool:
    """Whether a clear value of the same fact follows: "collision or all perils"."""
    further = sentence.after_joint(end)
    for others, final in sentence.matches(further, sentence.vocabulary.values, exact=True) if further > end else ():
        other = next((other for other in others if other.fact == meaning.fact), None)
        if other is not None and _is_clear(sentence, other, further, final):
            return True
    return False


def _is_of_another_kind(sentence: Sentence, meaning: ValuePhrase, start: int, end: int) -> bool:
    """Whether the words may be something else: a number, a person, or "single" in "every single claim"."""
    bands = sentence.vocabulary.bands.get(meaning.fact, ())
    is_band = any(band.value == meaning.value for band in bands) and sentence.said(start, end) == as_words(
        meaning.value
    )
    if is_band and "age" in sentence.vocabulary.facts[meaning.fact].words and sentence.is_word(start - 1, ",", "("):
        token = sentence.token(end)  # "at fault, 21 to 25": no other column has that value, nor numbers like these
        return (token is not None and token.kind is not Kind.SIGN) or end < start + 3
    if is_band or sentence.tokens[end - 1].text in _PERSONS:
        return True
    counted = start > 0 and sentence.is_word(start - 1, "a", "every", "each", "any", "one", "not")
    return counted and sentence.said(start, end) == ("single",)


def _within_name(sentence: Sentence, at: int) -> Tests:
    """A value between the words of its fact's name: "accident in a rural area" for the accident area."""
    for fact, name in sentence.vocabulary.long_names.get(sentence.words[at] or "", ()):
        place = sentence.skipped(at, name)
        first = set(sentence.said(at, place))
        if first == name:
            continue
        value = sentence.value(fact, sentence.skipped(place, words("within_name")))
        if value is not None:
            end = sentence.skipped(value[1], name)
            missing = name - first.union(sentence.said(value[1], end))
            if missing <= _GENERIC_LAST:
                yield among(fact.name, [value[0]]), end


def _alternatives(sentence: Sentence, fact: Fact, value: str, at: int, negated: bool) -> Tests:
    """A value, and further ones after "or": all of the same fact."""
    values = [value]
    while True:
        condition = among(fact.name, values, negated=negated)
        head = at
        while sentence.is_mere_word(head, _HEADS):
            head += 1
            yield condition, head
        yield condition, at
        if len(values) == 1 and sentence.is_comma_or(at):
            return
        after = sentence.after_joint(at)
        further = sentence.some_values(fact, after) if after > at else None
        if further is None or not _goes_on(sentence, fact, after, further[1]):
            return
        values = [*values, *further[0]]
        beside = _beside(sentence, fact, further[1])
        at = further[1] if beside is None else beside


def _goes_on(sentence: Sentence, fact: Fact, start: int, end: int) -> bool:
    """Whether a further value is one: it is not vague, or the words after it make clear what it is."""
    is_clear = not is_vague(sentence.said(start, end)) or sentence.is_one_of(end, _HEADS)
    return is_clear or _beside(sentence, fact, end) is not None


def _beside(sentence: Sentence, fact: Fact, at: int) -> int | None:
    """The place after a word of the fact's own name: "rural area", "external agent", "Collision as base policy"."""
    for after in sentence.after(at, "as", "is at", "at", "is", "'s"):  # "the policy holder is at fault"
        for other, end in sentence.facts(after, "category"):
            if other.name == fact.name:
                return end
    if len(fact.words) == 1:
        return at + 1 if sentence.is_one_of(at, fact.words) else None
    end = sentence.skipped(at, fact.words)
    return end if end > at else None


# --- the day or the month of an event ---


def event_tests(sentence: Sentence, at: int) -> Tests:
    """ "an accident on a Friday", "claimed in December": the day or the month of one of two events

    Where one fact is named after another, such as `MonthClaimed` after `Month`, the longer name tells which event it
    is about, and the shorter one is about the other event that names of facts speak of.
    """
    if not (dated := sentence.vocabulary.dated):
        return
    yield from _dated_before(sentence, at)
    start = sentence.skipped(at)
    if sentence.is_one_of(start, dated):
        event, after = sentence.tokens[start].text, sentence.skipped(start + 1, _EVENT_LINKS)
    elif sentence.is_word(at, "on", "in"):  # "the accident was in a rural area on a Sunday"
        before = {word for word in sentence.said(0, at) if word in dated}
        event, after = (before.pop() if len(before) == 1 else ""), sentence.skipped(at + 1)
    else:
        return
    for fact in dated.get(event, ()) if after > start else ():
        if fact.kind != "category":
            continue
        for values, end in sentence.values(fact, after):
            yield among(fact.name, values), end
        if sentence.is_word(after, "weekend") and set(_WEEKEND) <= set(fact.values):
            yield among(fact.name, _WEEKEND), after + 1


def _dated_before(sentence: Sentence, at: int) -> Tests:
    """ "December accidents", "(claimed) after a Saturday or Sunday accident": the day before the event"""
    start = sentence.skipped(at + sentence.is_word(at, "after", "following"))
    for event, facts in sentence.vocabulary.dated.items():
        for fact in facts:
            said = list(sentence.values(fact, start)) if fact.kind == "category" else []
            if sentence.is_word(start, "weekend") and set(_WEEKEND) <= set(fact.values):
                said.append((list(_WEEKEND), start + 1))
            yield from ((among(fact.name, values), end + 1) for values, end in said if sentence.is_word(end, event))


# --- bands ---


def band_tests(sentence: Sentence, at: int) -> Tests:
    """ "at least 2 past claims", "the vehicle is over 7 years old": comparisons with numbers known only as bands"""
    banded = sentence.vocabulary.bands
    for fact, after in sentence.facts(at, "category") if banded else ():
        for place in sentence.after_be(after) if fact.name in banded else ():
            if sentence.is_word(place, "not") and sentence.value(fact, place + 1) is not None:
                continue  # the value itself, negated: a test of the category
            for condition, end in _said_of_bands(sentence, place, fact):
                yield condition, max(sentence.after_one_of(end, phrases("after_band")), default=end)
    for name in banded:
        fact = sentence.vocabulary.facts[name]
        yield from _days_after(sentence, fact, at)
        for condition, after in _said_of_bands(sentence, at, fact, counted=True):  # "at least 2 past claims"
            for named, end in sentence.facts(after, "category"):
                if named.name == name and not sentence.is_plural(end, _HEADS):  # "3 driver rating claims"
                    yield condition, end
        yield from _is_old(sentence, fact, at)
        yield from _is_worth(sentence, fact, at)


def _said_of_bands(sentence: Sentence, at: int, fact: Fact, *, counted: bool = False) -> list[tuple[Condition, int]]:
    """The values of a category with bands that a comparison here means. One that cuts a band in two means none.

    With `counted`, the number stands before what it counts: "no more than 2 (past claims)".
    """
    tests: list[tuple[Condition, int]] = []
    bands = sentence.vocabulary.bands[fact.name]
    units = {band.unit for band in bands}
    measures = [Measure.PLAIN] if len(units) == 1 else []
    if units <= HOURS.keys() and not counted:
        measures.append(Measure.DAYS)
    for measure in measures:
        number = Fact(fact.name, "number", measure)
        counted_here = (*counts(sentence, at), *bounds(sentence, at, number, bare=True)) if counted else ()  # "one car"
        for bound, end in counted_here or bounds(sentence, at, number):
            if sentence.has_word(at, end, *HOURS) == (measure is Measure.DAYS):
                measured = bands if measure is Measure.PLAIN else tuple(band.in_days() for band in bands)
                values = values_within(measured, bound(fact.name))
                tests += [(among(fact.name, values), end)] if values else []
    return tests


def _days_after(sentence: Sentence, fact: Fact, at: int) -> Tests:
    """ "an accident 1 to 7 days after the policy started", for a category such as `Days_Policy_Accident`"""
    if fact.words[0] != "day" or len(fact.words) != len(("days", "first", "second")):
        return
    _, first, second = fact.words
    start = sentence.skipped(at)
    if sentence.is_word(start, first):  # "a policy younger than 30 days when the claim comes in"
        for place in sentence.after_be(start + 1):
            for condition, end in _said_of_bands(sentence, place, fact):
                event = sentence.skipped(end, words("at_the_time"))
                if event > end and sentence.is_word(event, second):
                    last = sentence.skipped(event + 1, words("came_in"))
                    yield from ((condition, final) for final in range(event + 1, last + 1))
    if not sentence.is_word(start, second):
        return
    place = sentence.skipped(start + 1, _EVENT_LINKS)
    said = _said_of_bands(sentence, place, fact)
    if (value := sentence.value(fact, place)) is not None:
        said.append((among(fact.name, [value[0]]), value[1]))
    for condition, end in said:
        for after in sentence.after(end + sentence.is_word(end, "day"), "after", "of", "from", "since"):
            event = sentence.skipped(after, DETERMINERS | words("began"))
            if sentence.is_word(event, first):
                yield condition, sentence.skipped(event + 1, words("began"))


def _is_old(sentence: Sentence, fact: Fact, at: int) -> Tests:
    """ "a vehicle more than 7 years old", "a new car", for a category such as the age of the vehicle"""
    things = _aged(fact.words)
    start = sentence.skipped(at)
    new = next((value for value in fact.values if value.lower() == "new"), None)
    if new is not None and sentence.is_word(start, "new"):
        for _, end in sentence.matches(start + 1, things):
            yield among(fact.name, [new]), end
    before = [word for word in sentence.said(0, at) if word in PEOPLE or word in words("aged_things")]
    is_subject = sentence.is_word(at, "that", "which") and (*before[-1:],) in things  # "a car over 69k that is ..."
    for after in (*(after for _, after in sentence.matches(at, things)), *([at] if is_subject else ())):
        for place in sentence.after_be(after):
            if new is not None and sentence.is_word(place, "new") and place > after:
                yield among(fact.name, [new]), place + 1
            start = place + sentence.is_word(place, "aged")
            for condition, end in _said_of_bands(sentence, start, fact):
                is_old = sentence.is_word(end, "old")
                is_age = (
                    is_old
                    or sentence.is_word(start - 1, "of", "aged")
                    or sentence.has_word(place, end, "older", "newer", "younger")
                )
                if is_age and sentence.has_word(place, end, *HOURS):
                    yield condition, end + is_old


def _is_worth(sentence: Sentence, fact: Fact, at: int) -> Tests:
    """ "a car under 20k": thousands said of a vehicle are its price"""
    start = sentence.skipped(at)
    if "price" not in fact.words:
        return
    before = (meaning for meaning in sentence.vocabulary.values.get(sentence.said(at - 1, at), ()) if at)
    is_vehicle = any({"make", "vehicle"}.intersection(sentence.vocabulary.facts[one.fact].words) for one in before)
    after = start + 1 if sentence.is_one_of(start, _VEHICLES) else sentence.past(at, "worth", "valued at", "priced at")
    for place in sentence.after_be(after) if is_vehicle or after > at else ():  # "sedans under 20000"
        for condition, end in _said_of_bands(sentence, place, fact):
            if any(figure.kind is Kind.NUMBER and figure.value >= 1e3 for figure in sentence.tokens[place:end]):
                yield condition, end


@lru_cache(maxsize=1024)
def _aged(name: Words) -> PhraseTable[bool]:
    """What a category with this name is the age of, if it is not a person."""
    if name[:2] != ("age", "of") or not PEOPLE.isdisjoint(name):
        return PhraseTable()
    others = [(word,) for word in _VEHICLES] if name[2] in _VEHICLES else []
    return PhraseTable(dict.fromkeys([name[2:], *others], True))


_AFTER_FLAG = words("heads") | {"detected", "involved", "found", "passed", "recently"}
_TRUE_OR_FALSE = {"true": True, "false": False, "yes": True, "no": False, "set": True}
_GAP = ("is", "not", "has", "be", "get")
_IN_GAP = frozenset(_GAP) | {"just", "recently", "already", "marked", "listed", "recorded", "as"}
_LONGEST = 6
"""Words of a flag before or after a gap."""
_ELSE = {"entity": phrases("new_instead"), "flag": phrases("false_instead")}
"""What words for unknown mean of an entity or a flag instead: that it is new, or that it does not hold."""
_PRESENCE = {
    kind: PhraseList(
        {said: op for name, op in (("unknown", Op.MISSING), ("known", Op.KNOWN)) for said in phrases(name)
         if said not in _ELSE.get(kind, ())}
    )
    for kind in ("number", "category", "flag", "entity", "rare entity")
}  # fmt: skip
"""What is said of the presence of each kind of thing."""


def flag_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of a flag that begins here."""
    for name, holds, end in _flags(sentence, at):
        yield Condition.of(Test(name, Op.IS, holds)), end


def _flags(sentence: Sentence, at: int) -> Iterator[tuple[str, bool, int]]:
    """The name of a flag, whether it is said to hold, and the place after that."""
    tokens = sentence.tokens
    for fact, after in sentence.facts(at, "flag"):
        for place in sentence.after_be(after)[1:]:
            if sentence.is_one_of(place, _TRUE_OR_FALSE):
                yield fact.name, _TRUE_OR_FALSE[tokens[place].text], place + 1
        if _is_column(sentence, after - 1):
            yield fact.name, True, after
    if sentence.is_word(at, "not") and _is_column(sentence, at + 1):
        yield from ((fact.name, False, after) for fact, after in sentence.facts(at + 1, "flag"))
    start = max(sentence.after_one_of(at, phrases("without")), default=at)
    for begin in {at, start, sentence.skipped(start, words("flag_links"))}:
        is_said = at in (begin, start)
        longest = max((end for _, end in sentence.matches(begin, sentence.vocabulary.values, exact=True)), default=0)
        for meanings, end in _flag_phrases(sentence, begin):
            if end < longest:
                continue  # "prepaid card" is one value, not something prepaid
            is_head = sentence.is_mere_word(end, _AFTER_FLAG)
            said = sentence.said(begin, end)
            if is_head and said in sentence.vocabulary.values and said[0] in words("otherwise_as_value"):
                continue  # "travel payments": of that category, or by somebody who travels?
            for flag in meanings:
                if not is_said and not flag.holds and sentence.is_word(at, "no"):
                    continue  # "no online payments" forbids them
                yield flag.fact, flag.holds == is_said, end + is_head
                if (switched := _after_switch(sentence, end)) > end + is_head:
                    yield flag.fact, flag.holds == is_said, switched


def _after_switch(sentence: Sentence, at: int) -> int:
    """After "on" or "is active", if nothing follows that "on" could belong to."""
    place = at + sentence.is_word(at, "is")
    if not sentence.is_one_of(place, words("switched_on")):
        return at
    following = sentence.token(place + 1)
    ends = following is None or following.kind is Kind.SIGN
    return place + 1 if ends or sentence.is_word(place + 1, "and", "or", "but", "unless") else at


def _is_column(sentence: Sentence, at: int) -> bool:
    """Whether the name of a fact stands here as it is written in the data: card_new_store."""
    token = sentence.token(at)
    return token is not None and (token.kind is Kind.FACT or "_" in token.shown)


def _flag_phrases(sentence: Sentence, at: int) -> Iterator[tuple[list[FlagPhrase], int]]:
    """The words of a flag, perhaps with "is" or "is not" before the last of them: "the customer is not present"."""
    tokens, flags = sentence.tokens, sentence.vocabulary.flags
    yield from sentence.matches(at, flags)
    first = sentence.skipped(at)
    opens = first < len(tokens) and tokens[first].text in flags.first_words
    for gap in range(at + 1, min(at + _LONGEST, len(tokens), len(tokens) if opens else first + 1)):
        if not sentence.is_one_of(gap, _GAP):
            continue
        end = sentence.skipped(gap, _IN_GAP)
        negated = "not" in sentence.said(gap, end)
        spliced = Sentence([*tokens[at:gap], *tokens[end : end + _LONGEST]], sentence.vocabulary)
        for meanings, after in spliced.matches(0, flags):
            if after > gap - at:
                said = [flag for flag in meanings if flag.holds or not negated]  # "nobody is not present": who knows
                flipped = [FlagPhrase(flag.fact, flag.holds != negated) for flag in said]
                yield flipped, end + after - (gap - at)


def presence_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of whether a fact is known that begins here."""
    for name, kind, after in _things(sentence, at):
        for place in sentence.after_be(after):
            yield from ((Condition.of(Test(name, op)), end) for op, end in sentence.meanings(place, _PRESENCE[kind]))
    start = sentence.skipped(at)
    for then in sentence.after_one_of(start, phrases("unknown_before")):
        said_before = " ".join(sentence.said(start, then))
        for name, kind, end in _things(sentence, then):
            is_none = said_before in ("no", "without", "no known") and _can_be_none(sentence, name, kind)
            if not is_none and said_before not in _ELSE.get(kind, ()):
                final = end + sentence.is_word(end, "given", "known", "recorded")
                yield Condition.of(Test(name, Op.MISSING)), final


def _can_be_none(sentence: Sentence, name: str, kind: str) -> bool:
    """Whether "no" before a fact may be one of its values, rather than a missing one."""
    fact = sentence.vocabulary.facts.get(name)
    if fact is None or kind in ("entity", "rare entity"):
        return False
    lower = [value.lower() for value in fact.values]
    return fact.kind in ("flag", "number") or any(value == "none" or value.startswith("no ") for value in lower)


def _things(sentence: Sentence, at: int) -> Iterator[tuple[str, str, int]]:
    """Facts with their kind, and entities by the fact that shows whether they are known."""
    for fact, after in sentence.facts(at, "number", "category", "flag"):
        yield fact.name, fact.kind, after
    for entity, after in sentence.entity(at):
        counted = sorted(fact.name for fact in sentence.vocabulary.windows.get(f"{entity}_count", {}).values())
        if counted:  # an entity that is not known has no past
            kind = "entity" if sentence.vocabulary.facts[counted[0]].always_known else "rare entity"
            yield counted[0], kind, after + sentence.is_word(after, "id", "identifier", "number")
