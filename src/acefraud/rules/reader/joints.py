"""What condition a row of tests makes, from the words that stand between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from acefraud.core.condition import Condition


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
    if joints == {Joint.OR} and any(one.is_negated and not other.is_negated for one, other in pairwise(group)):
        return None  # "no VPN or emulator": neither of them, or no VPN, or an emulator?
    return Condition.any_of(parts) if joints == {Joint.OR} else Condition.all_of(parts)
