"""What condition a row of tests makes, from the words that stand between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from acefraud.core.condition import Condition, Test


class Joint(Enum):
    """What stands between two tests."""

    FIRST = "first"
    NEXT = "next"
    WITH = "with"
    AND = "and"
    OR = "or"
    COMMA = "comma"
    COMMA_AND = "comma and"
    COMMA_OR = "comma or"
    UNLESS = "unless"
    EXCEPT = "except"


_EXCEPTIONS = {Joint.UNLESS, Joint.EXCEPT}
_COMMAS = {Joint.COMMA, Joint.COMMA_AND, Joint.COMMA_OR}
_COMMAS_AND_UNLESS = _COMMAS | _EXCEPTIONS


@dataclass(frozen=True, slots=True)
class JoinedTest:
    """A test, and what stands before it."""

    joint: Joint
    condition: Condition
    is_negated: bool = False
    """Whether it says "no" or "not": then an "or" after it may belong to what is negated."""
    denies_noun: bool = False
    """Whether that stands before a noun: then a noun after "and" may be denied as well."""
    is_group: bool = False
    """Whether it names a group of things, as "payments at night" does: "A and B" may then mean either group."""
    is_modifier: bool = False
    """Whether it begins with "to", "at", "with" and the like: after "or" it may belong to a noun before."""
    is_past: bool = False
    """Whether it is about the past of an entity: what follows at once may narrow that past."""
    is_exempt: bool = False
    """Whether "but" stands before it after "all" or "everything": it may be an exception."""
    is_clause: bool = False
    """Whether "if", "when" or "where" stands before it."""
    is_restart: bool = False
    """Whether "if" or "when" stands before it for the first time, as in "at night and when the amount is over 50"."""


TIME_FACTS = frozenset({"night", "weekend", "weekday", "hour"})
_ANDS = {Joint.AND, Joint.COMMA_AND}


def may_be_a_choice(tests: Sequence[JoinedTest], *, as_object: bool) -> bool:
    """Whether tests that "and" joins may be meant as a choice: "payments over 900 and payments at night are fraud".

    With `as_object`, they are what a verdict is said of directly, without "if": "decline crypto and gift cards".
    """
    for one, other in pairwise(tests):
        if other.joint in _ANDS | {Joint.COMMA} and other.is_group and (one.is_group or as_object):
            return True
        if other.joint in _ANDS and (other.is_restart or (_is_time(one) and _is_time(other))):
            return True
        if other.is_exempt or (one.is_negated and _may_be_negated_too(one, other)):
            return True
        if one.is_past and other.joint in (Joint.NEXT, Joint.WITH) and not other.is_past and not other.is_clause:
            return True  # "5 transactions in the last hour at night": were these at night, or is this one?
    return False


def ways_to_take(tests: Sequence[JoinedTest]) -> list[Condition]:
    """What tests joined by "and" and "or" may mean, if that is not clear; none if there are exceptions among them.

    >>> a, b, c = map(Condition.parse, ("a > 1", "b > 1", "c > 1"))
    >>> mixed = [JoinedTest(Joint.FIRST, a), JoinedTest(Joint.AND, b), JoinedTest(Joint.OR, c)]
    >>> [str(one) for one in ways_to_take(mixed)]
    ['c > 1 or (a > 1 and b > 1)', 'a > 1 and (b > 1 or c > 1)']
    """
    if any(test.joint in (*_EXCEPTIONS, Joint.NEXT) or test.is_negated for test in tests):
        return []
    ors: list[list[Condition]] = []
    ands: list[list[Condition]] = []
    for test in tests:
        is_or = test.joint in (Joint.OR, Joint.COMMA_OR)
        if is_or or not ors:
            ors.append([])
        if not is_or or not ands:
            ands.append([])
        ors[-1].append(test.condition)
        ands[-1].append(test.condition)
    found = [
        Condition.any_of(map(Condition.all_of, ors)),
        Condition.all_of(map(Condition.any_of, ands)),
    ]
    if len(ors) == 1:  # only "and", which may be meant as a choice
        found.append(Condition.any_of(test.condition for test in tests))
    return list(dict.fromkeys(found))


def _is_time(test: JoinedTest) -> bool:
    return test.condition.facts <= TIME_FACTS and not test.is_negated


def _may_be_negated_too(one: JoinedTest, other: JoinedTest) -> bool:
    """Whether a negation may reach the next test: "without a witness and police report", "not on Chrome at night"."""
    if other.joint is Joint.AND:
        (first, *more) = other.condition.parts
        return one.denies_noun and not more and isinstance(first, Test) and first.value is True
    return other.joint in (Joint.NEXT, Joint.WITH) and one.denies_noun and not other.is_clause


def folded(tests: Sequence[JoinedTest]) -> Condition | None:
    """The condition that joined tests make; None if the joints can be taken in several ways.

    >>> a, b, c = map(Condition.parse, ("a > 1", "b > 1", "c > 1"))
    >>> str(folded([JoinedTest(Joint.FIRST, a), JoinedTest(Joint.OR, b), JoinedTest(Joint.UNLESS, c)]))
    'c <= 1 and (a > 1 or b > 1)'
    >>> folded([JoinedTest(Joint.FIRST, a), JoinedTest(Joint.AND, b), JoinedTest(Joint.OR, c)]) is None
    True
    """
    exception = next((place for place, test in enumerate(tests) if test.joint in _EXCEPTIONS), None)
    if exception is None:
        return _grouped(tests)
    if exception == 0:
        return _exception_first(tests)
    usual, except_for = tests[:exception], tests[exception:]
    unclear = {Joint.WITH} | ({Joint.AND} if except_for[0].joint is Joint.EXCEPT else set())
    if any(test.joint in _COMMAS_AND_UNLESS or test.joint in unclear for test in except_for[1:]):
        return None  # "except A and B": both of them, or whoever is either?
    return _without(_grouped(usual), _grouped(except_for))


def _exception_first(tests: Sequence[JoinedTest]) -> Condition | None:
    """ "except for A, B" """
    comma = next((place for place, test in enumerate(tests) if test.joint is Joint.COMMA), None)
    if comma is None or any(test.joint in _COMMAS_AND_UNLESS for test in tests[1:comma]):
        return None
    usual = folded([JoinedTest(Joint.FIRST, tests[comma].condition), *tests[comma + 1 :]])
    return _without(usual, _grouped(tests[:comma]))


def _without(usual: Condition | None, except_for: Condition | None) -> Condition | None:
    if usual is None or except_for is None:
        return None
    return Condition.all_of([usual, except_for.negated()])


def _grouped(tests: Sequence[JoinedTest]) -> Condition | None:
    """Groups between commas, joined."""
    groups: list[list[JoinedTest]] = []
    commas: list[Joint] = []
    for place, test in enumerate(tests):
        if place and test.joint in _COMMAS:
            groups.append([test])
            commas.append(test.joint)
        elif place and test.joint is Joint.WITH and test.is_clause:  # "A if B or C": what follows "if" belongs together
            groups.append([test])
            commas.append(Joint.COMMA_AND)
        elif place:
            groups[-1].append(test)
        else:
            groups.append([test])
    made = [one for group in groups if (one := _homogeneous(group)) is not None]
    if len(made) < len(groups):
        return None
    if len(made) == 1:
        return made[0]
    ends_with_or = any(test.joint is Joint.OR for test in groups[-1][1:])
    single = all(len(group) == 1 for group in groups)
    if Joint.COMMA_OR in commas and Joint.COMMA in commas[commas.index(Joint.COMMA_OR) :]:
        return None  # "A, or B, over 500"
    if Joint.COMMA_OR in commas:
        alike = Joint.COMMA_AND not in commas and (Joint.COMMA not in commas or single)
        return Condition.any_of(made) if alike else None
    if ends_with_or and commas[-1] is Joint.COMMA:
        return None  # "A, B or C": a list of three, or A together with a choice?
    return Condition.all_of(made)


def _homogeneous(group: Sequence[JoinedTest]) -> Condition | None:
    """Tests joined by "and" alone or by "or" alone. Those without a word between them belong together first."""
    runs: list[list[Condition]] = []
    joints: set[Joint] = set()
    for place, test in enumerate(group):
        if place and test.joint is Joint.NEXT:
            runs[-1].append(test.condition)
        else:
            runs.append([test.condition])
            if place:
                joints.add(Joint.OR if test.joint is Joint.OR else Joint.AND)
    parts = [Condition.all_of(run) for run in runs]
    if joints == {Joint.AND, Joint.OR}:
        return None
    if (
        joints == {Joint.OR}
        and any(len(run) > 1 for run in runs)
        and any(test.joint is Joint.OR and test.is_modifier for test in group)
    ):
        return None  # "transfers over 1000 or to a new payee": transfers to a new payee?
    if joints == {Joint.OR} and any(one.is_negated and not other.is_negated for one, other in pairwise(group)):
        return None  # "no VPN or emulator": neither of them, or no VPN, or an emulator?
    return Condition.any_of(parts) if joints == {Joint.OR} else Condition.all_of(parts)
