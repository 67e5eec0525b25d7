"""How tests are joined, and what condition a row of them makes, from the words that stand between and inside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from acefraud.core.comparison import NEGATED, Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.facts import HISTORY_NAME, TIME_FACTS
from acefraud.rules.reader.sentence import Sentence
from acefraud.rules.reader.tokens import FILLERS, PEOPLE, TRANSACTIONS, Kind, words

_ADJECTIVES = ("present", "filed", "known", "used", "seen", "given")
"""After "not" they end what is denied: "the customer is not present and ..."."""
_GROUPS = words("heads") | TRANSACTIONS | PEOPLE | {"man", "woman", "accident", "withdrawal"}
_PREPOSITIONS = frozenset({"to", "by", "at", "with", "in", "from", "on", "via", "using", "for", "during", "through"})
EVERYTHING = ("everything", "anything", "all", "every", "any")
_IFS = ("if", "when", "where", "whenever")


Joint = Enum("Joint", "FIRST NEXT WITH AND OR COMMA COMMA_AND COMMA_OR UNLESS EXCEPT")
"""What stands between two tests."""
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
    denies_presence: bool = False
    """Whether it says "without" or "no": what follows at once belongs to the case, if it is a time or a number."""
    is_outside: bool = False
    """Whether it says "outside": a mere code after "and" may be excluded as well, as in "outside the US and EUR"."""
    is_code: bool = False
    is_group: bool = False
    """Whether it names a group of things, as "payments at night" does: "A and B" may then mean either group."""
    is_correlated: bool = False
    """Whether it is "either A or B" or "neither A nor B": what follows at once may belong to B alone."""
    is_modifier: bool = False
    """Whether it begins with "to", "at", "with" and the like: after "or" it may belong to a noun before."""
    options: tuple[Condition, Condition] | None = None
    """The first of two options and the rest, if it says "over 60 or under 21": "and" may belong to one of them."""
    is_past: bool = False
    """Whether it is about the past of an entity: what follows at once may narrow that past."""
    is_exempt: bool = False
    """Whether "but" stands before it after "all" or "everything": it may be an exception."""
    is_clause: bool = False
    """Whether "if", "when" or "where" stands before it."""
    is_restart: bool = False
    """Whether "if" or "when" stands before it for the first time, as in "at night and when the amount is over 50"."""


def joined_test(
    sentence: Sentence, joint: Joint, condition: Condition, places: tuple[int, int, int], *, opened: bool
) -> JoinedTest:
    """A test with what its words say of how it may be joined.

    The places are where its joint begins, where it begins itself, and where it ends. With `opened`, "if" or "when"
    stands before the sentence.
    """
    place, start, end = places
    negated = sentence.has_word(start, end, "no", "not", "without", "non", "never") and any(
        isinstance(leaf, Test)
        and (leaf.value is False or leaf.op in NEGATED or leaf.value == 0.0 or leaf.fact in TIME_FACTS)
        for leaf in condition.leaves
    )
    begins_anew = sentence.has_word(place, start + 2, *_IFS) and not sentence.has_word(0, place, *_IFS)
    but_exempts = sentence.has_word(place, start, "but") and not sentence.has_word(start - 1, end, "is", "has", "only")
    return JoinedTest(
        joint,
        condition,
        is_negated=negated,
        denies_noun=negated and _denies_noun(sentence, start),
        denies_presence=negated and sentence.is_word(sentence.skipped(start), "without", "no"),
        is_outside=sentence.is_word(sentence.skipped(start), "outside"),
        is_code=end == start + 1 and sentence.shown(start, end)[0].isupper() and bool(_category_of(condition)),
        is_group=_is_group(sentence, start, end, condition),
        is_correlated=sentence.has_word(start, min(end, start + 3), "either", "neither"),
        is_modifier=sentence.is_one_of(start, _PREPOSITIONS),
        is_past=_is_past(condition),
        is_exempt=but_exempts and sentence.has_word(0, place, *EVERYTHING),  # "everything over 500 but groceries"
        is_clause=sentence.has_word(place, start + 1, *_IFS),
        is_restart=begins_anew and not opened,
    )


def forgets_entity(sentence: Sentence, start: int, end: int, condition: Condition) -> bool:
    """Whether an entity is named that a test of the past of another one leaves out: "the user's 3 orders at it"."""
    past = [named for fact in condition.facts if (named := HISTORY_NAME.fullmatch(fact)) is not None]
    if not any(named["figure"] or named["other"] for named in past):
        return False
    about = {name for named in past for name in (named["entity"], named["other"], named["new"])}
    return not {name for index in range(start, end) for name, _ in sentence.entity(index)} <= about


def _denies_noun(sentence: Sentence, start: int) -> bool:
    """Whether "no" or "not" stands before a noun, which may go on after it: "not a transfer to a new payee"."""
    first = sentence.skipped(start, FILLERS - {"with", "by", "from"})
    if sentence.is_word(first, "no", "without", "non"):
        return True
    return sentence.is_word(first, "not") and not sentence.is_one_of(first + 1, _ADJECTIVES)


def _is_group(sentence: Sentence, start: int, end: int, condition: Condition) -> bool:
    """Whether a test names a group: it begins with "payments" or ends with "VIPs"."""
    first = sentence.skipped(start)
    if sentence.is_plural(first, _GROUPS):
        return True
    if sentence.has_word(start, end, "no", "not", "without", "never"):
        return False
    has_number = any(token.kind is Kind.NUMBER for token in sentence.tokens[first:end])
    if has_number or sentence.has_word(first, end, "is", "has", "be"):
        return False
    last = end - 1
    while last > first and sentence.tokens[last].kind is not Kind.WORD:
        last -= 1
    plain = all(isinstance(leaf, Test) and not isinstance(leaf.value, float) for leaf in condition.leaves)
    return plain and sentence.is_plural(last)


def _is_past(condition: Condition) -> bool:
    """Whether a test is about the past of an entity, so that words after it may narrow that past."""
    if any(isinstance(leaf, Test) and leaf.op in (Op.MISSING, Op.KNOWN) for leaf in condition.leaves):
        return False  # "a new card", "a known device"
    return any(
        (named := HISTORY_NAME.fullmatch(leaf.fact)) is not None
        and (not named["new"] or (isinstance(leaf, Test) and leaf.value is False))
        for leaf in condition.leaves
    )


_ANDS = {Joint.AND, Joint.COMMA_AND}


def may_be_a_choice(tests: Sequence[JoinedTest], *, as_object: bool) -> bool:
    """Whether tests that "and" joins may be meant as a choice: "payments over 900 and payments at night are fraud".

    With `as_object`, they are what a verdict is said of directly, without "if": "decline crypto and gift cards".
    """
    for first, second in pairwise(tests):
        if second.joint in _ANDS | {Joint.COMMA} and second.is_group and (first.is_group or as_object):
            return True
        if second.joint in _ANDS and (second.is_restart or (_is_time(first) and _is_time(second))):
            return True
        if (
            _may_belong_to_a_part(first, second)
            or second.is_exempt
            or (first.is_negated and _may_be_negated_too(first, second))
        ):
            return True
        if first.is_past and second.joint in (Joint.NEXT, Joint.WITH) and not second.is_past and not second.is_clause:
            return True  # "5 transactions in the last hour at night": were these at night, or is this one?
    return False


def _may_belong_to_a_part(first: JoinedTest, second: JoinedTest) -> bool:
    """Whether a test may go with a part of the one before it alone.

    "neither A nor on Mondays in the morning", "not in the morning on Fridays", "the method is wallet, card or cash".
    """
    is_list = second.joint in _COMMAS and not second.is_negated
    denies_time = first.is_negated and first.condition.facts <= TIME_FACTS and _is_time(second)
    follows = second.joint in (Joint.NEXT, Joint.WITH) and not second.is_clause
    if first.is_outside and second.is_code and second.joint is not Joint.OR:
        return True
    if is_list and (category := _category_of(first.condition)):
        return category == _category_of(second.condition)
    return follows and (first.is_correlated or denies_time)


def _category_of(condition: Condition) -> str:
    """The category that a test compares with values; empty if it is another test."""
    leaves = [leaf for leaf in condition.leaves if isinstance(leaf, Test) and isinstance(leaf.value, str | tuple)]
    return leaves[0].fact if len(leaves) == len(condition.leaves) == 1 else ""


def ways_to_take(tests: Sequence[JoinedTest]) -> list[Condition]:
    """What tests joined by "and" and "or" may mean, if that is not clear; none if there are exceptions among them.

    >>> a, b, c = map(Condition.parse, ("a > 1", "b > 1", "c > 1"))
    >>> mixed = [JoinedTest(Joint.FIRST, a), JoinedTest(Joint.AND, b), JoinedTest(Joint.OR, c)]
    >>> [str(way) for way in ways_to_take(mixed)]
    ['c > 1 or (a > 1 and b > 1)', 'a > 1 and (b > 1 or c > 1)']
    """
    has_options = any(test.options for test in tests)
    unclear = _EXCEPTIONS if has_options else {*_EXCEPTIONS, Joint.NEXT}
    negated = (test.is_negated and (not has_options or later is Joint.OR) for test, later in _with_next_joint(tests))
    if any(test.joint in unclear or test.is_outside for test in tests) or any(negated):
        return []
    ors: list[list[Condition]] = []
    ands: list[list[Condition]] = []
    for test in _apart(tests):
        is_or = test.joint in (Joint.OR, Joint.COMMA_OR)
        if is_or or not ors:
            ors.append([])
        if not is_or or not ands:
            ands.append([])
        ors[-1].append(test.condition)
        ands[-1].append(test.condition)
    ways = [
        Condition.any_of(map(Condition.all_of, ors)),
        Condition.all_of(map(Condition.any_of, ands)),
    ]
    if len(ors) == 1:  # only "and", which may be meant as a choice
        ways.append(Condition.any_of(test.condition for test in tests))
    return list(dict.fromkeys(ways))


def _with_next_joint(tests: Sequence[JoinedTest]) -> Iterator[tuple[JoinedTest, Joint]]:
    yield from zip(tests, [*(test.joint for test in tests[1:]), Joint.FIRST], strict=True)


def _apart(tests: Sequence[JoinedTest]) -> Iterator[JoinedTest]:
    """The tests, with two in place of each that has options."""
    for test in tests:
        if test.options is None:
            yield test
        else:
            yield JoinedTest(test.joint, test.options[0])
            yield JoinedTest(Joint.OR, test.options[1])


def _is_time(test: JoinedTest) -> bool:
    return test.condition.facts <= TIME_FACTS and not test.is_negated


def _is_number(test: JoinedTest) -> bool:
    return all(isinstance(leaf, Test) and isinstance(leaf.value, float) for leaf in test.condition.leaves)


def _may_be_negated_too(first: JoinedTest, second: JoinedTest) -> bool:
    """Whether a negation may reach the next test: "without a witness and police report", "not on Chrome at night"."""
    if second.joint is Joint.AND:
        (part, *more) = second.condition.parts
        return first.denies_noun and not more and isinstance(part, Test) and part.value is True
    if first.denies_presence and (_is_time(second) or _is_number(second)):
        return False  # "without the customer present at night"
    return second.joint in (Joint.NEXT, Joint.WITH) and first.denies_noun and not second.is_clause


def folded(tests: Sequence[JoinedTest]) -> Condition | None:
    """The condition that joined tests make; None if the joints can be taken in several ways.

    >>> a, b, c = map(Condition.parse, ("a > 1", "b > 1", "c > 1"))
    >>> str(folded([JoinedTest(Joint.FIRST, a), JoinedTest(Joint.OR, b), JoinedTest(Joint.UNLESS, c)]))
    'c <= 1 and (a > 1 or b > 1)'
    >>> folded([JoinedTest(Joint.FIRST, a), JoinedTest(Joint.AND, b), JoinedTest(Joint.OR, c)]) is None
    True
    """
    exception = next((index for index, test in enumerate(tests) if test.joint in _EXCEPTIONS), None)
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
    comma = next((index for index, test in enumerate(tests) if test.joint is Joint.COMMA), None)
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
    groups = [[tests[0]]]
    commas: list[Joint] = []
    for test in tests[1:]:
        opens_clause = test.joint is Joint.WITH and test.is_clause  # "A if B or C": what follows "if" belongs together
        if test.joint in _COMMAS or opens_clause:
            groups.append([test])
            commas.append(Joint.COMMA_AND if opens_clause else test.joint)
        else:
            groups[-1].append(test)
    made = [condition for group in groups if (condition := _homogeneous(group)) is not None]
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
    runs = [[group[0].condition]]
    joints: set[Joint] = set()
    for test in group[1:]:
        if test.joint is Joint.NEXT:
            runs[-1].append(test.condition)
        else:
            runs.append([test.condition])
            joints.add(Joint.OR if test.joint is Joint.OR else Joint.AND)
    parts = [Condition.all_of(run) for run in runs]
    if joints == {Joint.AND, Joint.OR} or (len(group) > 1 and joints != {Joint.OR} and any(t.options for t in group)):
        return None  # "age over 60 or under 21 and no witness"
    if (
        joints == {Joint.OR}
        and any(len(run) > 1 for run in runs)
        and any(test.joint is Joint.OR and test.is_modifier for test in group)
    ):
        return None  # "transfers over 1000 or to a new payee": transfers to a new payee?
    if joints == {Joint.OR} and len(runs[-1]) > 1 and any(len(run) == 1 for run in runs):
        return None  # "Discover or JCB outside the US": Discover in the US as well?
    if joints == {Joint.OR} and any(first.is_negated and not second.is_negated for first, second in pairwise(group)):
        return None  # "no VPN or emulator": neither of them, or no VPN, or an emulator?
    return Condition.any_of(parts) if joints == {Joint.OR} else Condition.all_of(parts)
