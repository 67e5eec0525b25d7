"""How a sentence is cut into tests, and which conditions it may mean.

A sentence may often be cut into tests in several ways. All of them are followed; if they come to different conditions,
the sentence is ambiguous and is not read. "A and B or C" without a comma is such a sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache

from acefraud.core.comparison import ORDERED, Op, Test
from acefraud.core.condition import MOST_LEAVES, AnyOf, Condition
from acefraud.rules.reader.facts import HISTORY_NAME, TIME_FACTS
from acefraud.rules.reader.history_phrases import history_tests, last_event_tests, new_pair_tests
from acefraud.rules.reader.joints import (
    JoinedTest,
    Joint,
    folded,
    forgets_entity,
    joined_test,
    may_be_a_choice,
    ways_to_take,
)
from acefraud.rules.reader.lookup_phrases import lookup_tests
from acefraud.rules.reader.number_phrases import amount_tests, burst_tests, count_tests, number_tests
from acefraud.rules.reader.quantities import among
from acefraud.rules.reader.sentence import Sentence, Tests, remembered
from acefraud.rules.reader.time_phrases import age_tests, people_tests, time_tests
from acefraud.rules.reader.tokens import FILLERS, TRANSACTIONS, Kind, PhraseList, phrases, words
from acefraud.rules.reader.value_phrases import (
    band_tests,
    category_tests,
    event_tests,
    flag_tests,
    presence_tests,
    value_tests,
)

_OF_ENTITIES = (history_tests, last_event_tests, new_pair_tests)
_OF_FACTS = (
    number_tests, count_tests, category_tests, lookup_tests, event_tests, band_tests, flag_tests, value_tests,
    amount_tests, time_tests, age_tests, people_tests, presence_tests, burst_tests,
)  # fmt: skip
"""The kinds of tests, beside those of entities, which come first. Their order counts where a sentence can be read in
more ways than are followed."""
_MOST = 40
"""Ways to cut a sentence up to one place that are followed further."""
_DEEPEST = 6
"""Parentheses and negations inside each other."""
_AND, _OR = phrases("and"), phrases("or")
EXCEPTIONS = phrases("exceptions")
"""What opens an exception."""
_UNLESS = PhraseList(dict.fromkeys(said for said in EXCEPTIONS if said.startswith("unless")))
_EXCEPT = PhraseList(dict.fromkeys(said for said in EXCEPTIONS if not said.startswith("unless")))
LINKS = phrases("links")
"""What links a test to what was said before, as "and" does."""
_LINK_WORDS = frozenset(word for said in LINKS for word in said.split())
_BEGIN_NO_TEST = words("begin_no_test") | frozenset(",;.()?!")
_FILLERS_AFTER = words("fillers_after") | TRANSACTIONS
_CORRELATED = {"either": "or", "neither": "nor", "both": "and"}
STOPS = (",", ";", ".", "-", "–", "—", ":")
"""Signs between two parts of a sentence."""


@remembered
def tests_at(sentence: Sentence, at: int) -> Tests:
    """Every test of single facts that begins here, with the place after it."""
    is_joint = sentence.is_one_of(at, _BEGIN_NO_TEST) and sentence.words[at] not in sentence.vocabulary.word_list
    if is_joint or at >= len(sentence.words):
        return iter(())
    readers = (*_OF_ENTITIES, *_OF_FACTS) if sentence.names_entity else _OF_FACTS
    return iter(dict.fromkeys(test for read in readers for test in read(sentence, at)))


@dataclass(frozen=True, slots=True)
class _Cut:
    """A way to cut the tokens from one place to another into tests."""

    tests: tuple[JoinedTest, ...]
    end: int
    cost: int
    """Words that were passed over because they say nothing."""


class Grammar:
    """Reads conditions from a sentence."""

    def __init__(self, sentence: Sentence, *, as_object: bool = False, opened: bool = False) -> None:
        """`as_object`: a verdict is said of these words directly; `opened`: "if" or "when" stood before them."""
        self._sentence = sentence
        self._as_object = as_object
        self._opened = opened
        self._tests = cache(self._find_tests)
        self.furthest = 0
        """How far the best reading came."""
        self.doubtful: list[Condition] = []
        """What the whole may mean, if it can be taken in several ways."""

    def readings(self) -> list[Condition]:
        """The conditions that the whole may mean, of those readings that pass over the fewest words.

        Of these, the ones with the fewest tests: "Chrome or Opera at night" is one choice of a browser, at night.
        """
        whole: list[tuple[tuple[int, int], Condition]] = []
        unclear: list[tuple[tuple[int, int], tuple[JoinedTest, ...]]] = []
        for cut in self._cuts(0, 0):
            after = self._sentence.tokens[cut.end :]
            if not all(token.kind is Kind.SIGN and token.text in ".!?;,:-–—" for token in after):
                continue
            if sum(len(test.condition.leaves) for test in cut.tests) > MOST_LEAVES:
                continue
            cost = cut.cost, len(cut.tests)
            condition = None if may_be_a_choice(cut.tests, as_object=self._as_object) else folded(cut.tests)
            if condition is None:
                unclear.append((cost, cut.tests))
            elif not is_impossible(condition):
                whole.append((cost, condition))
        if unclear and not whole:
            self.doubtful = ways_to_take(min(unclear, key=lambda costly: costly[0])[1])
        least = min((cost for cost, _ in whole), default=(0, 0))
        return list(dict.fromkeys(condition for cost, condition in whole if cost == least))

    def _cuts(self, start: int, depth: int) -> list[_Cut]:
        """Every way to read tests from here on, up to a place where no further one can be read."""
        done: list[_Cut] = []
        waiting: dict[int, list[_Cut]] = {start: [_Cut((), start, 0)]}
        while waiting:
            place = min(waiting)
            following = list(self._following(place, depth, first=place == start))
            for cut in sorted(waiting.pop(place), key=lambda cut: cut.cost)[:_MOST]:
                for test, end, cost in following:
                    further = _Cut((*cut.tests, test), end, cut.cost + cost)
                    waiting.setdefault(end, []).append(further)
                    done.append(further)
        return done

    def _following(self, at: int, depth: int, *, first: bool) -> Iterator[tuple[JoinedTest, int, int]]:
        """The tests that may follow here with what joins them, the place after each, and the words passed over."""
        for joint, start in self._joints(at, first=first):
            for condition, end, cost in self._tests(start, depth):
                if not forgets_entity(self._sentence, start, end, condition):
                    is_close = not cost and not self._sentence.is_one_of(start, _LINK_WORDS)
                    close = Joint.WITH if joint is Joint.NEXT and not is_close else joint
                    test = joined_test(self._sentence, close, condition, (at, start, end), opened=self._opened)
                    if (options := self._options(start, end, condition, depth)) is not None:
                        test = replace(test, options=options)
                    self.furthest = max(self.furthest, end)
                    yield test, end, cost

    def _options(self, start: int, end: int, condition: Condition, depth: int) -> tuple[Condition, Condition] | None:
        """The two options of one test that are said as tests of their own: "age over 60 or under 21"."""
        sentence = self._sentence
        for first, stop, _ in self._tests(start, depth) if sentence.has_word(start, end, "or") else ():
            if sentence.is_word(stop, "or") and stop < end:
                # Values in a row, as "Chrome or Opera", belong together.
                named = [fact.name for place in range(stop + 1, end) for fact, _ in sentence.facts(place, "category")]
                rest = _without_option(condition, first, named)
                if rest is not None:
                    return first, rest
        return None

    def _joints(self, at: int, *, first: bool) -> Iterator[tuple[Joint, int]]:
        """What may stand before a test here, with the place where the test begins."""
        sentence = self._sentence
        if first:
            yield Joint.FIRST, at
            yield from ((Joint.UNLESS, after) for after in sentence.after_one_of(at, EXCEPTIONS))
            return
        yield Joint.NEXT, at
        comma = sentence.skipped(at, STOPS)
        has_comma = comma > at
        if has_comma:
            yield Joint.COMMA, comma
        for said, joint in (
            (_AND, Joint.COMMA_AND if has_comma else Joint.AND),
            (_OR, Joint.COMMA_OR if has_comma else Joint.OR),
            (_UNLESS, Joint.UNLESS),
            (_EXCEPT, Joint.EXCEPT),
            (LINKS, Joint.COMMA_AND if has_comma else Joint.WITH),
        ):
            yield from ((joint, after) for after in sentence.after_one_of(comma, said))

    def _find_tests(self, at: int, depth: int) -> list[tuple[Condition, int, int]]:
        """The tests that begin here, each with the place after it and the words that were passed over."""
        costs: dict[tuple[Condition, int], int] = {}
        for start, cost in self._starts(at):
            for condition, end in self._cores(start, depth):
                for after, extra in {(end, 0), self._after_fillers(end)}:
                    known = costs.get((condition, after), cost + extra)
                    costs[condition, after] = min(known, cost + extra)
        return [(condition, end, cost) for (condition, end), cost in costs.items()]

    def _starts(self, at: int) -> Iterator[tuple[int, int]]:
        """The places where a test may begin: here, or after words that say nothing."""
        cost = 0
        yield at, cost
        while (step := self._after_filler(at, at, FILLERS)) > at and not self._names_age(at):
            at, cost = step, cost + 1
            yield at, cost

    def _names_age(self, at: int) -> bool:
        """Whether the age of a thing is named here, which is not that of a person: "the vehicle's age"."""
        sentence = self._sentence
        next_word = sentence.skipped(at + 1, ("'s", "that", "which", "is"))
        return sentence.is_word(at, "vehicle", "car") and sentence.is_word(next_word, "age", "aged")

    def _after_filler(self, at: int, comma: int, fillers: Collection[str]) -> int:
        """The place after a word here, or a phrase after a comma, that says nothing. A value always says something."""
        sentence = self._sentence
        says_nothing = sentence.is_one_of(at, fillers) and not sentence.is_value(at)
        return next(iter(sentence.after_one_of(comma, phrases("filler_phrases"))), at + says_nothing)

    def _after_fillers(self, at: int) -> tuple[int, int]:
        """The place after words behind a test that say nothing, and how many of them there are."""
        cost = 0
        while (step := self._after_filler(at, at + self._sentence.is_word(at, ","), _FILLERS_AFTER)) > at:
            at, cost = step, cost + 1
        return at, cost

    def _cores(self, at: int, depth: int) -> Tests:
        """The tests that begin exactly here, also in parentheses and after "not"."""
        sentence = self._sentence
        yield from tests_at(sentence, at)
        if depth >= _DEEPEST:
            return
        if sentence.is_word(at, "("):
            for cut in self._cuts(at + 1, depth + 1):
                if sentence.is_word(cut.end, ")") and (condition := folded(cut.tests)) is not None:
                    yield condition, cut.end + 1
        # Elsewhere "not" belongs to the words of a test, which reads it itself.
        after_but = at > 0 and sentence.is_word(at - 1, "but")  # "but not if" opens an exception
        if not after_but and sentence.is_word(at, "not") and sentence.is_word(at + 1, "(", "when", "if", "where"):
            for condition, end, _ in self._tests(at + 1, depth + 1):
                yield condition.negated(), end
        yield from self._correlated(at, depth)

    def _correlated(self, at: int, depth: int) -> Tests:
        """ "either A or B", "both A and B", "neither A nor B" """
        sentence = self._sentence
        word = sentence.tokens[at].text if sentence.is_one_of(at, _CORRELATED) else ""
        for parts, end in self._parts(at + 1, _CORRELATED[word], depth + 1) if word else ():
            if word == "either":
                yield Condition.any_of(parts), end
            elif word == "neither":
                yield Condition.all_of(part.negated() for part in parts), end
            # "both at night and on weekends" means either of them
            elif not all(part.facts <= TIME_FACTS for part in parts) and not sentence.is_word(end, "or"):
                yield Condition.all_of(parts), end

    def _parts(self, at: int, joint: str, depth: int) -> Iterator[tuple[list[Condition], int]]:
        """Two tests or more between which a joint stands."""
        sentence = self._sentence
        for first, end, _ in self._tests(at, depth):
            comma = end + sentence.is_word(end, ",")
            if not sentence.is_word(comma, joint):
                continue
            after = sentence.skipped(comma + 1, ("if", "when"))
            for second, final, _ in self._tests(after, depth):
                yield [first, second], final
            for more, final in self._parts(after, joint, depth) if depth < _DEEPEST else ():
                yield [first, *more], final


def _without_option(condition: Condition, option: Condition, named: Collection[str]) -> Condition | None:
    """What is left of a choice between comparisons without one of them; None if it is no such choice.

    Of bands, only those are compared whose fact is named again: "more than 4 past claims or 2 to 4 past claims".
    """
    (part, *more), (first, *others) = condition.parts, option.parts
    if more or others or not isinstance(first, Test):
        return None
    if isinstance(part, AnyOf):
        left = [other for other in part.options if other != option]
        is_one = len(left) < len(part.options) and first.op in ORDERED
        return Condition.any_of(left) if is_one else None
    if not isinstance(part, Test) or part.fact not in named or not isinstance(part.value, tuple):
        return None
    left_values = [value for value in part.value if value != first.value]
    return among(part.fact, left_values) if 0 < len(left_values) < len(part.value) else None


def is_impossible(condition: Condition) -> bool:
    """Whether a conjunction asks for what nobody means.

    That is two different values of one category, bounds of one number that exclude each other, as in "after 10 pm and
    before 4 am", or two bounds on the same side, as in "crypto over $500 and gift cards over $300".
    """
    flags = {(part.fact, part.value) for part in condition.parts if isinstance(part, Test) and part.op is Op.IS}
    has_both_ways = any((fact, not value) in flags for fact, value in flags if isinstance(value, bool))
    tests = [part for part in condition.parts if isinstance(part, Test)]
    missing = {part.fact for part in tests if part.op is Op.MISSING}
    if any(part.fact in missing and part.op is not Op.MISSING for part in tests):
        return True  # "a new card that has been seen before"
    nights = any({"hour", "weekday"} <= part.facts for part in condition.parts if isinstance(part, AnyOf))
    if nights and any(isinstance(part, Test) and part.fact == "hour" for part in condition.parts):
        return True  # "Saturday nights after 22:00": until midnight, or until the morning?
    if ("night", True) in flags and ("hour" in condition.facts or ("weekend", True) in flags):
        return True  # "at night after 10 pm", "weekend nights": which hours, and the nights before or after which days?
    checks = (_has_two_values, _has_odd_bounds, _excludes_every_option, _has_past_of_new)
    return has_both_ways or any(is_odd(condition) for is_odd in checks)


def _excludes_every_option(condition: Condition) -> bool:
    """Whether a choice leaves nothing: "Opera, and Chrome or Safari" of one browser."""
    direct = [part for part in condition.parts if not isinstance(part, AnyOf)]
    return bool(direct) and any(
        all(_has_two_values(Condition.of(*direct, *option.parts)) for option in part.options)
        for part in condition.parts
        if isinstance(part, AnyOf)
    )


def _has_past_of_new(condition: Condition) -> bool:
    """Whether something is said of the past of an entity that has none: "a new account that moved 50 million"."""
    tests = [part for part in condition.parts if isinstance(part, Test)]
    new = {part.fact.removesuffix("_hours_since_last") for part in tests if part.op is Op.MISSING}
    past = [named["entity"] for part in tests if part.op in ORDERED and (named := HISTORY_NAME.fullmatch(part.fact))]
    return any(entity in new for entity in past)


def _has_odd_bounds(condition: Condition) -> bool:
    lower: dict[str, float] = {}
    upper: dict[str, float] = {}
    for part in condition.parts:
        if isinstance(part, Test) and part.op in ORDERED and isinstance(part.value, float):
            side = lower if part.op in (Op.ABOVE, Op.AT_LEAST) else upper
            if part.fact in side:
                return True
            side[part.fact] = part.value
    return any(upper.get(fact, value) < value for fact, value in lower.items())


def _has_two_values(condition: Condition) -> bool:
    allowed: dict[str, set[str | float]] = {}
    for part in condition.parts:
        if isinstance(part, Test) and part.op in (Op.IS, Op.IN) and isinstance(part.value, str | tuple | float):
            values: set[str | float] = set(part.value) if isinstance(part.value, tuple) else {part.value}
            allowed[part.fact] = allowed.get(part.fact, values) & values
    return any(not values for values in allowed.values())
