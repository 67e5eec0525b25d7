"""Entities that are looked up: in a list that the team keeps, or by their own name.

"the merchant is not on the watched list", "VIP customers", "merchant CryptoNow", "card numbers starting with 6505".
"""

from __future__ import annotations

from collections.abc import Iterator

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import MOST_LEAVES, Condition
from acefraud.core.context_facts import IN_LIST, NAMED, STARTING, LookUp
from acefraud.rules.reader.facts import split_name
from acefraud.rules.reader.sentence import Sentence, Tests
from acefraud.rules.reader.tokens import Kind, phrases, singular, words

_OF_A_NAME = ("number", "id", "code", "name", "bin")
_NOT = ("not", "non", "no", "without")
_CUSTOMERS = words("same_customer")


def lookup_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of whether an entity, or the value of a fact, is in a list or has a name."""
    named = [(fact.name, after) for fact, after in sentence.facts(at, "category", "number", "flag")]
    named = [key for key in named if sentence.is_word(sentence.after_be(key[1])[-1], "in", "on", "not")]
    for key, after in (*named, *sentence.entity(at)):
        for place in sentence.after_be(after):
            yield from _is_in_list(sentence, key, place)
    for key, after in sentence.entity(at):
        categories = sentence.facts(at, "category")
        if not any(sentence.value(fact, place) for fact, end in categories for place in sentence.after_be(end)):
            yield from named_tests(sentence, key, after)
    yield from _list_first(sentence, at)


def _is_in_list(sentence: Sentence, key: str, at: int) -> Tests:
    """ "(the merchant) is not in list watched", "(the merchant) is on the watched list", "(the customer) is a VIP" """
    negated = sentence.is_one_of(at, _NOT)
    linked = sentence.is_word(at + negated, "in", "on", "from")
    place = sentence.skipped(at + negated + linked)
    if linked and sentence.is_word(place, "list") and (named := _list_name(sentence, place + 1)) is not None:
        yield _sought(key, IN_LIST, named, negated), place + 2
    for name, end in _lists(sentence, place):
        if linked or (sentence.is_word(at - 1, "is") and not sentence.is_word(end - 1, "list")):
            yield _sought(key, IN_LIST, name, negated), end


def _list_first(sentence: Sentence, at: int) -> Tests:
    """ "VIP customers", "merchants that are blocked", "no VIPs": a list whose name says who is in it"""
    negated = sentence.is_one_of(at, _NOT)
    for name, after in _lists(sentence, sentence.skipped(at + negated)):
        for key, end in sentence.entity(after):
            yield _sought(key, IN_LIST, name, negated), end
        customers = {key for said, key in sentence.vocabulary.entities.items() if said[0] in _CUSTOMERS}
        if sentence.is_plural(after - 1) and not name.endswith("s") and len(customers) == 1:
            yield _sought(customers.pop(), IN_LIST, name, negated), after


def _lists(sentence: Sentence, at: int) -> Iterator[tuple[str, int]]:
    """The lists whose names stand here, each with the place after its name and after "list"."""
    for name in sorted(sentence.vocabulary.lists):
        said = [singular(word) for word in split_name(name)]
        for end in sentence.after(at, " ".join(said)):
            yield name, end + sentence.is_word(end, "list")


def _sought(key: str, how: str, what: str, negated: bool = False) -> Condition:
    return Condition.of(Test(LookUp(key, how, what).flag, Op.IS, not negated))


def named_tests(sentence: Sentence, key: str, at: int) -> Tests:
    """ "merchant CryptoNow", "the merchant is neither 12 nor 34", "card numbers starting with 6505 or 6516" """
    place = sentence.skipped(at, _OF_A_NAME)
    for after in sentence.after_be(place) if not sentence.is_word(place, "has") else ():
        starts = next(iter(sentence.after_one_of(after, phrases("starting_with"))), None)
        negated = starts is None and sentence.is_word(after, "not", "neither")
        how, then = (NAMED, after + negated) if starts is None else (STARTING, starts)
        values: list[str] = []
        then = sentence.skipped(then, ("named", "called", "=", ":", "in", "(", "one", "of", "either"))
        while (name := sentence.name(then)) is not None and len(values) < MOST_LEAVES:
            values, end = [*values, name[0]], name[1]
            made = [_sought(key, how, value, negated) for value in values]
            yield Condition.all_of(made) if negated else Condition.any_of(made), end + sentence.is_word(end, ")")
            then = sentence.after_joint(end)
            if then == end or sentence.is_comma_or(end):
                break


def _list_name(sentence: Sentence, at: int) -> str | None:
    """The name of a list that stands here: one that is known, or one in quotes if any may be named."""
    token = sentence.token(at)
    if token is None or token.kind is Kind.SIGN:
        return None
    name = token.text if token.kind in (Kind.QUOTED, Kind.FACT) else token.shown
    is_open = sentence.vocabulary.is_open and token.kind is Kind.QUOTED
    return name if is_open or name in sentence.vocabulary.lists else None
