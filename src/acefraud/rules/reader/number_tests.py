"""What is said of a number, alone or beside another one: "amount over 500 or under 10", "twice the usual amount"."""

from __future__ import annotations

from acefraud.core.comparison import ORDERED, Op, Test
from acefraud.core.condition import Condition, PairTest
from acefraud.rules.reader.bounds import Tests, bounds
from acefraud.rules.reader.history_figures import HistoryFigures
from acefraud.rules.reader.measures import Measure
from acefraud.rules.reader.names import Fact
from acefraud.rules.reader.nouns import Nouns
from acefraud.rules.reader.phrases import Tokens, after_any, after_be, is_one_of, is_word, phrase, skipped
from acefraud.rules.reader.quantities import KILOMETRES, as_share, comparators, figures, multiples, or_more
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import words

_USUAL = words("usual")


class NumberTests:
    """Reads tests of a number that is named."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary, nouns: Nouns, history: HistoryFigures) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        self._nouns = nouns
        self._history = history

    def tests(self, at: int) -> Tests:
        """Every test of a number that is named here, and of several bounds of it."""
        for fact, after in self._nouns.facts(at, "number"):
            for place in after_be(self._tokens, after):
                for first, end in self.said_of(fact, place, bare=True):
                    yield first, end
                    if not is_word(self._tokens, place, "not"):  # "not over 500 or under 10"
                        yield from self.further(fact, first, end)
        if (distance := self._vocabulary.facts.get("distance_km")) is not None:
            for bound, end in bounds(self._tokens, at, distance):  # "more than 300 km away"
                if self._tokens[end - 1].text in KILOMETRES and is_word(self._tokens, end, "away"):
                    yield bound(distance.name), end + 1
        for fact, after in self._history.facts(at):  # "the card's 7 day average is above the store's 7 day average"
            for place in after_be(self._tokens, after):
                for op, then in comparators(self._tokens, place):
                    yield from self._pairs(fact, op, then)

    def further(self, fact: Fact, first: Condition, at: int) -> Tests:
        """Another bound of the same number after "and", "or" or "but"."""
        if not is_word(self._tokens, at, "and", "or", "but"):
            return
        join = Condition.any_of if is_word(self._tokens, at, "or") else Condition.all_of
        if is_word(self._tokens, at, "or"):
            for end in after_any(self._tokens, at + 1, ("missing", "unknown", "not known", "is missing", "is unknown")):
                yield join([first, Condition.of(Test(fact.name, Op.MISSING))]), end
        for place in after_be(self._tokens, at + 1):
            for second, end in bounds(self._tokens, place, fact):
                yield join([first, second(fact.name)]), end
            for op, after in comparators(self._tokens, place):
                for pair, end in self._pairs(fact, op, after):
                    yield join([first, pair]), end

    def said_of(self, fact: Fact, at: int, *, bare: bool = False) -> Tests:
        """What may be said of a number here. A number alone is an equality, if `bare` allows that."""
        plain = bare and fact.measure in (Measure.PLAIN, Measure.COUNT)
        for bound, end in bounds(self._tokens, at, fact, bare=plain):
            yield bound(fact.name), end
        for op, after in comparators(self._tokens, at):
            yield from self._pairs(fact, op, after)
        yield from self._percent_or_more(fact, at)
        yield from self._multiple_or_more(fact, at)
        yield from self._between_multiples(fact, at)
        if (after_differ := phrase(self._tokens, at, "differ from")) is not None:
            yield from self._pairs(fact, Op.IS_NOT, after_differ)

    def multiples_of_usual(self, fact: Fact, at: int) -> Tests:
        """A multiple of another number, which is certain to be meant even if the fact is not named."""
        for op, after in comparators(self._tokens, at):
            if is_word(self._tokens, after - 1, "within"):
                continue
            for times, then in multiples(self._tokens, after) if op in ORDERED else ():
                if then > after:
                    yield from self._against(fact, op, times, then)
        yield from self._multiple_or_more(fact, at)

    def _pairs(self, fact: Fact, op: Op, at: int) -> Tests:
        """A comparison with another fact, or with a multiple of it."""
        if op not in ORDERED and fact.measure is not Measure.PLAIN:
            return
        if is_word(self._tokens, at - 1, "within") or is_word(self._tokens, at, "one", "a", "an", "any", "some", "no"):
            return  # "within 10% of the maximum", "at most one chargeback"
        for times, after in multiples(self._tokens, at):
            yield from self._against(fact, op, times, after)
        if fact.name == "amount" and "usual_amount" not in self._vocabulary.facts and op in ORDERED:
            yield from self._ratio(op, at)

    def _against(self, fact: Fact, op: Op, times: float, at: int) -> Tests:
        """A number compared with a multiple of the fact that is named here."""
        if fact.name == "amount" and op in ORDERED:
            for name, end in self._history.ratio_to_usual(skipped(self._tokens, at)):
                yield Condition.of(Test(name, op, times)), end
        for other, end in self._history.numbers(at):
            yield from self._compared(fact, op, other, times, end)

    def _compared(self, fact: Fact, op: Op, other: Fact, times: float, end: int) -> Tests:
        """Two numbers compared. The ratio of an amount to the usual is often known where the usual itself is not."""
        if other.name == fact.name or not _comparable(fact, other):
            return
        if (fact.name, other.name) == ("amount", "usual_amount") and "amount_to_usual" in self._vocabulary.facts:
            yield Condition.of(Test("amount_to_usual", op, times)), end
        else:
            yield Condition.of(PairTest(fact.name, op, other.name, times)), end

    def _percent_or_more(self, fact: Fact, at: int) -> Tests:
        """ "300% or more of the mean" """
        for figure, after in figures(self._tokens, at):
            more = or_more(self._tokens, after)
            if figure.is_percent and more is not None and is_word(self._tokens, more[1], "of"):
                for other, end in self._history.numbers(more[1] + 1):
                    yield from self._compared(fact, more[0], other, as_share(figure), end)

    def _multiple_or_more(self, fact: Fact, at: int) -> Tests:
        """ "80% of the maximum or more" """
        for times, after in multiples(self._tokens, at):
            for place in range(after + 1, len(self._tokens)) if after > at else ():
                if is_word(self._tokens, place, "maximum", "minimum", "max", "min", "top"):
                    continue  # "5 times the usual maximum"
                if (more := or_more(self._tokens, place)) is not None:
                    comma = place - is_word(self._tokens, place - 1, ",")
                    for found, end in self._against(fact, more[0], times, after):
                        if end == comma:
                            yield found, more[1]

    def _between_multiples(self, fact: Fact, at: int) -> Tests:
        """ "between 0.5 and 1.5 times the usual" """
        for opening, joint in (("between", "and"), ("from", "to")):
            start = phrase(self._tokens, at, opening)
            for low, middle in figures(self._tokens, start) if start is not None else ():
                if is_word(self._tokens, middle, joint) and not low.unit and not low.is_money:
                    least = low.value / 100 if low.is_percent else low.value
                    yield from self._up_to_multiple(fact, least, middle + 1)

    def _up_to_multiple(self, fact: Fact, least: float, at: int) -> Tests:
        """From a multiple of another number up to the one that is named here: "1.5 times the usual" """
        for most, after in multiples(self._tokens, at):
            for upper, end in self._against(fact, Op.AT_MOST, most, after) if after > at else ():
                for lower, same_end in self._against(fact, Op.AT_LEAST, least, after):
                    if same_end == end and lower.facts == upper.facts:
                        yield Condition.all_of([lower, upper]), end

    def _ratio(self, op: Op, at: int) -> Tests:
        """ "3 times the usual", where only the ratio is known"""
        if "amount_to_usual" not in self._vocabulary.facts:
            return
        for times, after in multiples(self._tokens, at):
            place = skipped(self._tokens, after)
            if is_one_of(self._tokens, place, _USUAL):
                end = place + 1 + is_word(self._tokens, place + 1, "amount")
                yield Condition.of(Test("amount_to_usual", op, times)), end


def _comparable(one: Fact, other: Fact) -> bool:
    """Whether two numbers can be compared: they count the same, or it is not known what they count."""
    return one.measure is other.measure or Measure.PLAIN in (one.measure, other.measure)
