"""What is said of the past of a card or another entity: "more than 5 transactions of the card in an hour"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acefraud.core.comparison import ORDERED, Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.bounds import Bound, Tests, bounds, counts, limit
from acefraud.rules.reader.history_figures import BELONGS, FIGURE_WORDS, HistoryFigures
from acefraud.rules.reader.measures import Measure
from acefraud.rules.reader.names import Fact
from acefraud.rules.reader.nouns import Nouns
from acefraud.rules.reader.phrases import (
    Tokens,
    after_any,
    after_be,
    is_one_of,
    is_word,
    matches,
    phrase,
    skipped,
)
from acefraud.rules.reader.quantities import comparators
from acefraud.rules.reader.word_lists import phrases, words

_TRANSACTIONS = words("transactions")
_KNOWN_FRAUDS = phrases("known_fraud_cases")
_HAS = words("has")
_MET = words("met")
_SPENT = words("spent")
_IS_USED, _USED = words("is_used"), words("used")
_DIFFERENT = words("different")
_TURNED_OUT = words("turned_out")
_TIMES = {"once": 1.0, "twice": 2.0, "thrice": 3.0}
_SUM = Fact("", "number", Measure.MONEY)
_COUNT = Fact("", "number", Measure.COUNT)
_SHARE = Fact("", "number", Measure.SHARE)


class HistoryTests:
    """Reads tests of counts, sums and other figures of the past."""

    def __init__(self, tokens: Tokens, nouns: Nouns, figures: HistoryFigures) -> None:
        self._tokens = tokens
        self._nouns = nouns
        self._figures = figures

    def tests(self, at: int) -> Tests:
        """Every test of a history figure that begins here."""
        yield from self._figure_first(at)
        yield from self._entity_first(at)
        yield from self._count_first(at)
        yield from self._share_first(at)

    def _figure_first(self, at: int) -> Tests:
        """ "the card's 30 day maximum is above 500" """
        for fact, after in self._figures.facts(at):
            for place in after_be(self._tokens, after):
                for bound, end in bounds(self._tokens, place, fact):
                    yield bound(fact.name), end
                if is_word(self._tokens, place, "zero", "none", "nil"):
                    yield _is_zero(fact.name), place + 1

    def _entity_first(self, at: int) -> Tests:
        """ "card used more than 5 times in an hour", "user with 3+ payments in the last hour", "device spent ..." """
        tokens = self._tokens
        for (names, how), after in self._nouns.entities(at):
            either = is_word(tokens, after, "either")
            for first, end in self._predicates(names, how, after + either):
                if not either:
                    yield first, end
                join = Condition.any_of if is_word(tokens, end, "or") else Condition.all_of
                if is_word(tokens, end, "or") or (is_word(tokens, end, "and") and not either):
                    for second, final in (*self._predicates(names, how, end + 1), *self._as_before(first, end + 1)):
                        yield join([first, second]), final

    def _as_before(self, first: Condition, at: int) -> Tests:
        """ "(fewer than 100 transactions in 7 days or) fewer than 10 in 24 hours": the same figure of the entity"""
        for fact in first.facts if len(first.facts) == 1 else ():
            entity, figure = self._figures.of_name(fact)
            for bound, then in bounds(self._tokens, at, _COUNT) if figure == "count" else ():
                yield from self._each([entity], "all", figure, bound, then)

    def _predicates(self, names: Sequence[str], how: str, at: int) -> Tests:
        """What is said of the past of one or several entities."""
        tokens = self._tokens
        after = at + is_word(tokens, at, ":", ",")
        place = skipped(tokens, after, _HAS)
        for start in {after, place}:
            for bound, then in counts(tokens, start):
                for figure, end in self._counted(then):
                    yield from self._each(names, how, figure, bound, end)
        if place > after and self._is_known_frauds(place):  # "with known fraud in the last week"
            for figure, end in self._counted(place):
                yield from self._each(names, how, figure, limit(Op.ABOVE, 0.0), end)
        if how == "none":  # "neither the user nor the card had known frauds"
            for figure, end in self._counted(place):
                yield from self._each(names, "all", figure, _is_zero, end)
        yield from self._has_figure(names, how, place)
        yield from self._used(names, how, after)
        yield from self._spent(names, how, place)
        yield from self._met(names, how, after)

    def _is_known_frauds(self, at: int) -> bool:
        return is_word(self._tokens, at, "known", "confirmed") and is_word(self._tokens, at + 1, "fraud")

    def _has_figure(self, names: Sequence[str], how: str, at: int) -> Tests:
        """ "(the card has) a total above 5,000 in a day" """
        for figure, then in matches(self._tokens, at, FIGURE_WORDS):
            fact = self._figures.any_window(names[0], figure)
            if fact is None:
                continue
            for place in after_be(self._tokens, then):
                for bound, end in bounds(self._tokens, place, fact, bare=figure == "known_fraud_share"):
                    yield from self._each(names, how, figure, bound, end)

    def _used(self, names: Sequence[str], how: str, at: int) -> Tests:
        """ "(the card was) used more than 5 times in an hour" """
        place = skipped(self._tokens, at, _IS_USED)
        place += is_one_of(self._tokens, place, _USED)
        never = skipped(self._tokens, at, _IS_USED)
        if is_word(self._tokens, never, "not") and is_one_of(self._tokens, never + 1, _USED | {"be"}):
            unused = skipped(self._tokens, never + 1, _USED | {"be"})
            if not is_word(self._tokens, unused, "for"):  # "not used in the last 7 days"
                yield from self._each(names, how, "count", _is_zero, unused)
        for bound, then in counts(self._tokens, place):
            if is_word(self._tokens, then, "time"):
                yield from self._each(names, how, "count", bound, then + 1)
        for op, then in comparators(self._tokens, place):
            if is_one_of(self._tokens, then, _TIMES) and op in ORDERED:
                bound = limit(op, _TIMES[self._tokens[then].text])
                yield from self._each(names, how, "count", bound, then + 1)

    def _spent(self, names: Sequence[str], how: str, at: int) -> Tests:
        """ "(the card has) spent over 5,000 in total in a day" """
        tokens = self._tokens
        place = skipped(tokens, at, _HAS)
        if not is_one_of(tokens, place, _SPENT):
            return
        for bound, then in bounds(tokens, phrase(tokens, place + 1, "a total of") or place + 1, _SUM):
            in_total = phrase(tokens, then, "in total") or then
            for end in {then, in_total, then + is_word(tokens, then, "altogether", "total")}:
                yield from self._each(names, how, "sum", bound, end)

    def _met(self, names: Sequence[str], how: str, at: int) -> Tests:
        """ "(a card) used at 3 or more stores in a day", "(a device) with more than two users in 30 days" """
        place = skipped(self._tokens, at, _MET | _HAS)
        for start in {place, *range(at, place)}:
            for bound, then in counts(self._tokens, start):
                for other, after in self._others(then):
                    yield from self._each(names, how, f"distinct_{other}", bound, after)

    def _count_first(self, at: int) -> Tests:
        """ "more than 5 transactions of the card in an hour", "3 or more users on the device in 30 days" """
        for bound, after in counts(self._tokens, at):
            for figure, then in self._counted(after):
                yield from self._of_entity(figure, bound, then)
                yield from self._of_subject(figure, bound, at, then)
            for other, then in self._others(after):
                yield from self._of_entity(f"distinct_{other}", bound, then)
                if is_one_of(self._tokens, after, _DIFFERENT):
                    yield from self._of_subject(f"distinct_{other}", bound, at, then)

    def _share_first(self, at: int) -> Tests:
        """ "more than half of the device's transactions in the last 30 days are known fraud" """
        tokens = self._tokens
        for bound, after in bounds(tokens, at, _SHARE):
            for entity, then in self._nouns.owner(after + 1) if is_word(tokens, after, "of") else ():
                if not is_one_of(tokens, then, _TRANSACTIONS) and not is_word(tokens, then, "label", "case"):
                    continue
                for hours, last in self._figures.window(then + 1):
                    end = skipped(tokens, last, _TURNED_OUT)
                    fact = self._figures.fact(entity, "known_fraud_share", hours)
                    if fact is not None and end > last and is_word(tokens, end, "fraud", "fraudulent"):
                        yield bound(fact.name), end + 1

    def _of_entity(self, figure: str, bound: Bound, at: int) -> Tests:
        """The entity of a count and the window, in either order: "of the card in an hour", "in an hour on the card"."""
        tokens, linking = self._tokens, BELONGS | _MET
        place = skipped(tokens, at, linking)
        if place == at:
            return
        for (names, how), after in self._nouns.entities(skipped(tokens, place)):
            yield from self._each(names, how, figure, bound, after)
        for hours, then in self._figures.window(at):
            start = skipped(tokens, then, linking)
            for name, end in self._nouns.entity(skipped(tokens, start)) if start > then else ():
                if (fact := self._figures.fact(name, figure, hours)) is not None:
                    yield bound(fact.name), end

    def _of_subject(self, figure: str, bound: Bound, at: int, then: int) -> Tests:
        """ "(a card with ...,) 3+ different stores in 24 hours": of the only entity that was spoken of"""
        if (subject := self._nouns.only_before(at)) is not None:
            yield from self._each([subject], "all", figure, bound, then)

    def _counted(self, at: int) -> Iterator[tuple[str, int]]:
        """What is counted before a window: transactions or known frauds."""
        place = skipped(self._tokens, at, ("successful", "separate", "other", "earlier", "previous", "prior", "past"))
        if is_one_of(self._tokens, place, _TRANSACTIONS):
            yield "count", place + 1
        for after in after_any(self._tokens, place, _KNOWN_FRAUDS):
            yield "known_frauds", after

    def _others(self, at: int) -> list[tuple[str, int]]:
        """The entities that are counted: "different stores"."""
        others = is_one_of(self._tokens, at, _DIFFERENT) and is_word(
            self._tokens, at - 1, "a", "an", "no", "any", "not"
        )
        if others or is_word(self._tokens, at, "other") or is_word(self._tokens, at - 1, "another"):
            return []  # "used by a different user": different from this one
        return self._nouns.entity(skipped(self._tokens, at, _DIFFERENT))

    def _each(self, names: Sequence[str], how: str, figure: str, bound: Bound, at: int) -> Tests:
        """The same test of one or several entities, with the window that follows."""
        for hours, end in self._figures.window(at):
            facts = [fact for name in names if (fact := self._figures.fact(name, figure, hours)) is not None]
            if len(facts) == len(names):
                tests = [bound(fact.name) for fact in facts]
                if how == "none":
                    tests = [_none_of(one) for one in tests]
                yield Condition.any_of(tests) if how == "any" else Condition.all_of(tests), end


def _is_zero(fact: str) -> Condition:
    return Condition.of(Test(fact, Op.IS, 0.0))


def _none_of(condition: Condition) -> Condition:
    """The opposite of a test of a count. A count that is not above 0 is 0."""
    negated = condition.negated()
    match negated.parts:
        case [Test(fact, Op.AT_MOST, 0.0) | Test(fact, Op.BELOW, 1.0)]:
            return _is_zero(fact)
    return negated
