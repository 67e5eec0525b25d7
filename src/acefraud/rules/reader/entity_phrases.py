"""What is said of the last transaction of an entity, and of whether it has met another entity before.

"the card's last transaction was less than an hour ago", "more than 500 km from its last place", "a card that is new to
the merchant", "never seen at this merchant".
"""

from __future__ import annotations

from collections.abc import Iterator

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.facts import KILOMETRES, Fact, Measure
from acefraud.rules.reader.history_phrases import BELONGS
from acefraud.rules.reader.quantities import Bound, Bounds, bounded, bounds
from acefraud.rules.reader.sentence import Sentence, Tests
from acefraud.rules.reader.tokens import DETERMINERS, TRANSACTIONS, phrases, words

_AFTER_EVENT = words("after_event")
_AGAIN, _QUIET, _MOVED = words("again"), words("quiet"), words("moved")
_LAST_PLACE = phrases("last_place")
_DURATION = Fact("", "number", Measure.HOURS)
_DISTANCE = Fact("", "number", Measure.KM)
_OF_ENTITY = ("of", "on", "by", "with", "from")
_AGO = ("ago", "earlier", "back")
_SEEN, _COMES = words("seen"), words("comes_back")
_PAIR_LINKS, _WITH_NEW = words("pair_links"), words("with_new")


def last_event_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of the time, the distance and the speed since the last transaction of an entity."""
    for entity, bound, end in _times_since_last(sentence, at):
        if (name := f"{entity}_hours_since_last") in sentence.vocabulary.facts:
            yield bound(name), end
    for start in sentence.after(sentence.skipped(at), "hour since", "time since"):
        for entity, then in sentence.owner(sentence.skipped(start)):  # "hours since the card's last use are below 2"
            fact = sentence.vocabulary.facts.get(f"{entity}_hours_since_last")
            if fact is not None and (last := _last_transaction(sentence, then)) is not None:
                yield from _is_bounded(sentence, fact, last)
    for entity, after in sentence.owner(at):
        yield from _moved(sentence, entity, after)
    yield from _distance_first(sentence, at)


# --- the time since the last transaction ---


def _times_since_last(sentence: Sentence, at: int) -> Iterator[tuple[str | None, Bound, int]]:
    """An entity, what is said of the time since its last transaction, and the place after that."""
    for entity, after in sentence.owner(at):
        yield from ((entity, bound, end) for bound, end in _was_ago(sentence, after))
        yield from ((entity, bound, end) for bound, end in _is_back(sentence, after))
    for entity, after in sentence.entity(at):
        yield from ((entity, bound, end) for bound, end in _is_silent(sentence, after))
    for entity, after in _last_of_entity(sentence, at):
        yield from ((entity, bound, end) for bound, end in _ago(sentence, after, _AGO))
    yield from _duration_first(sentence, at)


def _was_ago(sentence: Sentence, at: int) -> Bounds:
    """ "(the card's) last transaction was less than an hour ago" """
    last = _last_transaction(sentence, at) or _last_transaction(sentence, sentence.skipped(at, ("has",)))
    if last is not None:
        yield from _ago(sentence, last, (*_AGO, "before", "old"))
    place = sentence.skipped(at, ("that", "which", "who", "is", "has", "be"))
    for used in sentence.after(place, "last used", "last seen", "last active", "used"):
        yield from _ago(sentence, used, _AGO)


def _ago(sentence: Sentence, at: int, ago: tuple[str, ...]) -> Bounds:
    """ "is less than an hour ago", of the last transaction of an entity"""
    for place in sentence.after_be(at):
        for bound, end in bounds(sentence, place, _DURATION):
            if sentence.is_one_of(end, ago):
                yield bound, end + 1


def _is_back(sentence: Sentence, at: int) -> Bounds:
    """ "(the card is) back within an hour of its last transaction" """
    again = sentence.skipped(at, _AGAIN)
    for bound, start in _durations_after(sentence, again):
        if (end := _last_transaction(sentence, start)) is not None:
            yield bound, end
    if sentence.is_word(again - 1, "again", "back") and sentence.is_word(again, "within"):
        yield from bounds(sentence, again, _DURATION)


def _is_silent(sentence: Sentence, at: int) -> Bounds:
    """ "(merchant) quiet for more than 60 days", "(card) not used for a week" """
    place = sentence.skipped(at, ("who", "that", "which", "is", "has", "be"))
    unused = next(sentence.after(place, "not be used", "not used", "not be active", "not active"), None)
    if unused is not None and sentence.is_word(unused, "for"):
        yield from bounds(sentence, unused + 1, _DURATION)
    if sentence.is_one_of(place, _QUIET):
        yield from bounds(sentence, place + 1 + sentence.is_word(place + 1, "for"), _DURATION)


def _last_of_entity(sentence: Sentence, at: int) -> Iterator[tuple[str, int]]:
    """The entity of "the last transaction (of the card)": the one after it, or the only one that was spoken of."""
    if (last := _last_transaction(sentence, at)) is None:
        return
    if sentence.is_one_of(last, _OF_ENTITY):
        yield from sentence.entity(last + 1)
    if (only := sentence.only_before(at)) is not None:
        yield only, last


def _duration_first(sentence: Sentence, at: int) -> Iterator[tuple[str | None, Bound, int]]:
    """ "within an hour of the card's last transaction", "less than a day after its last transaction" """
    for bound, start in _durations_after(sentence, at):
        last = _last_transaction(sentence, start)
        if last is not None and sentence.is_word(start, "its", "their"):
            yield sentence.only_before(at), bound, last
        for entity, then in sentence.owner(sentence.skipped(start)):
            if (end := _last_transaction(sentence, then)) is not None:
                yield entity, bound, end
        if last is not None and sentence.is_one_of(last, _OF_ENTITY):  # "since the last transaction of the card"
            yield from ((entity, bound, end) for entity, end in sentence.entity(last + 1))


def _durations_after(sentence: Sentence, at: int) -> Bounds:
    """A duration with the place after "of", "since" and the like, which must follow."""
    for bound, end in bounds(sentence, at, _DURATION):
        if sentence.is_one_of(end, _AFTER_EVENT):
            yield bound, end + 1


def _last_transaction(sentence: Sentence, at: int) -> int | None:
    """The place after "its last transaction"."""
    place = sentence.skipped(at)
    if not sentence.is_word(place, "last", "previous", "latest", "preceding", "prior"):
        return None
    named = sentence.is_one_of(place + 1, TRANSACTIONS) or sentence.is_word(place + 1, "one", "use", "activity")
    return place + 2 if named else None


# --- the way from the last place ---


def _moved(sentence: Sentence, entity: str, at: int) -> Tests:
    """ "(the card) travelled at over 900 km/h", "(the card's) last place is more than 500 km away" """
    tokens, place = sentence.tokens, sentence.skipped(at, _MOVED)
    if (distance := _from_last(sentence, entity, "km")) is not None:
        for last_place in sentence.after(sentence.skipped(at), *_LAST_PLACE):
            for condition, end in _is_bounded(sentence, distance, last_place):
                yield condition, end + sentence.is_word(end, "away", "off", "apart")
    if (speed := _from_last(sentence, entity, "kmh")) is not None:
        for condition, end in bounded(sentence, place, speed):
            if any(token.text in ("km/h", "kph", "kmh") for token in tokens[place:end]):
                yield condition, _after_last(sentence, end)
    for condition, end in bounded(sentence, place, distance) if distance is not None else ():
        final = _after_last(sentence, end + sentence.is_word(end, "away", "off"))
        if tokens[end - 1].text in KILOMETRES and final > end:
            yield condition, final


def _distance_first(sentence: Sentence, at: int) -> Tests:
    """ "the distance from the card's last place is above 500 km", "more than 500 km from the card's last place" """
    for word, unit in (("distance", "km"), ("speed", "kmh")):
        for start in sentence.after(sentence.skipped(at), word):
            for entity, after in _owners_of(sentence, start):
                if (fact := _from_last(sentence, entity, unit)) is not None:
                    yield from _is_bounded(sentence, fact, _after_place(sentence, after))
    for bound, end in bounds(sentence, at, _DISTANCE):
        if sentence.tokens[end - 1].text not in KILOMETRES:
            continue
        away = end + sentence.is_word(end, "away", "off")
        for entity, after in _owners_of(sentence, away + 1) if sentence.is_word(away, "from") else ():
            final = _last_transaction(sentence, after) or next(sentence.after(after, *_LAST_PLACE), None)
            if (fact := _from_last(sentence, entity, "km")) is not None and final is not None:
                yield bound(fact.name), final


def _owners_of(sentence: Sentence, at: int) -> Iterator[tuple[str, int]]:
    return sentence.owner(sentence.skipped(at, BELONGS | DETERMINERS))


def _from_last(sentence: Sentence, entity: str, unit: str) -> Fact | None:
    return sentence.vocabulary.facts.get(f"{entity}_{unit}_from_last")


def _is_bounded(sentence: Sentence, fact: Fact, at: int) -> Tests:
    for place in sentence.after_be(at):
        yield from bounded(sentence, place, fact)


def _after_last(sentence: Sentence, at: int) -> int:
    """The place after "since its last transaction" or "from its last place", if that follows."""
    place = sentence.skipped(at, ("since", "from", "of", "than"))
    if place == at:
        return at
    if (end := _last_transaction(sentence, place)) is not None:
        return end
    start = sentence.skipped(place)
    return _after_place(sentence, start) if sentence.is_word(start, "last") else at


def _after_place(sentence: Sentence, at: int) -> int:
    return next(sentence.after(at, *_LAST_PLACE, "last transaction"), at)


# --- whether two entities have met ---


def new_pair_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of whether an entity is new to another one that begins here."""
    for entity, after in sentence.entity(at):
        yield from _is_new_to(sentence, entity, after)
        yield from _was_seen(sentence, entity, after)
        yield from _never_seen(sentence, entity, after)
        place = sentence.skipped(sentence.skipped(after, _WITH_NEW))
        if place > after:  # "(a card) with a new device"
            yield from _new_ones(sentence, entity, place)
    yield from _new_first(sentence, at)
    yield from _comes_with_new(sentence, at)


def _is_new_to(sentence: Sentence, entity: str, at: int) -> Tests:
    """ "(a card) that is not new to the merchant" """
    start, negated = _after_not(sentence, at)
    is_new = sentence.is_word(start, "new", "unknown")
    if is_new and sentence.is_word(start + 1, "to", "for", "on", "at", "with"):
        for other, end in sentence.entity(start + 2):
            yield from _is_new(sentence, other, entity, not negated, end)


def _was_seen(sentence: Sentence, entity: str, at: int) -> Tests:
    """ "(a card) seen at the merchant before" """
    place = sentence.skipped(at, ("is", "has", "be", "already"))
    already = sentence.is_word(place - 1, "already")
    seen = place + sentence.is_word(place, "seen", "used", "known", "bought", "shopped", "paid")
    met = seen + sentence.is_word(seen, "with", "at", "on", "by", "to", "from")
    for other, end in sentence.entity(met) if met > at else ():
        if (final := _after_before(sentence, end)) > end or (already and seen > place):
            yield from _is_new(sentence, *_user_first(sentence, entity, other, met), False, final)


def _never_seen(sentence: Sentence, entity: str, at: int) -> Tests:
    """ "(a card) never seen at the merchant before", "(a card) that was not used with this device" """
    start, negated = _after_not(sentence, at)
    start = sentence.skipped(start, ("be",))
    never = sentence.is_word(start, "never")
    if not never and not (negated and sentence.is_one_of(start, _SEEN)):
        return
    met = sentence.skipped(sentence.skipped(start + never, _SEEN | {"is"}), _PAIR_LINKS)
    for other, end in sentence.entity(met):
        yield from _is_new(sentence, *_user_first(sentence, entity, other, met), True, _after_before(sentence, end))


def _user_first(sentence: Sentence, entity: str, other: str, at: int) -> tuple[str, str]:
    """Two entities that have met. After "by", the other one is the one that has seen or used the first."""
    return (other, entity) if sentence.is_word(at - 1, "by") else (entity, other)


def _new_ones(sentence: Sentence, entity: str, at: int) -> Tests:
    """ "a new card and a new device", of an entity"""
    place = sentence.skipped(at)
    for other, end in sentence.entity(place + 1) if sentence.is_word(place, "new") else ():
        for first, after in _is_new(sentence, entity, other, True, end):
            yield first, after
            for more, final in _new_ones(sentence, entity, after + 1) if sentence.is_word(after, "and") else ():
                yield Condition.all_of([first, more]), final


def _comes_with_new(sentence: Sentence, at: int) -> Tests:
    """ "comes back with a new device", of the only entity that was spoken of"""
    negated = sentence.is_word(at, "not")
    place = sentence.skipped(at + negated, _COMES)
    subject = sentence.subject(at)
    if subject is None or (negated and place > at + 1):
        return
    if sentence.is_word(place, "with", "on", "using", "from", "at"):
        for condition, end in _new_ones(sentence, subject, place + 1):
            if len(condition.parts) == 1 or not negated:
                yield condition.negated() if negated else condition, end
    if sentence.is_word(at, "is"):  # "(the merchant ...) and is new to the card"
        yield from _is_new_to(sentence, subject, at)
    if sentence.is_word(at, "is", "has"):  # "(the card ...) and has not been used in this store"
        yield from _never_seen(sentence, subject, at)
        yield from _was_seen(sentence, subject, at)


def _new_first(sentence: Sentence, at: int) -> Tests:
    """ "a new device for the card" """
    for start in sentence.after(sentence.skipped(at), "new"):
        for entity, after in sentence.entity(start):
            link = sentence.skipped(after, ("for", "to", "on", "with", "of"))
            for other, end in sentence.entity(link) if link > after else ():
                yield from _is_new(sentence, other, entity, True, end)


def _after_not(sentence: Sentence, at: int) -> tuple[int, bool]:
    """The place after "is" or "is not", and whether "not" was there."""
    place = sentence.skipped(at, ("is", "has", "that", "which", "be"))
    negated = sentence.is_word(place, "not")
    return place + negated, negated


def _is_new(sentence: Sentence, entity: str, other: str, holds: bool, end: int) -> Tests:
    """Whether the other is new to an entity. Both have met or not, so the fact of the other side will do too.

    They differ only where the busier one has forgotten the other, so the entity that was spoken of comes first.
    """
    for name in (f"{entity}_new_{other}", f"{other}_new_{entity}"):
        if name in sentence.vocabulary.facts:
            yield Condition.of(Test(name, Op.IS, holds)), end
            return


def _after_before(sentence: Sentence, at: int) -> int:
    return at + sentence.is_word(at, "before", "previously", "earlier", "yet", "until")
