"""Counts before what is counted: "more than 5 failed attempts", "no chargebacks", "5 payments within 10 minutes"."""

from __future__ import annotations

from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.bounds import Bound, Tests, counts
from acefraud.rules.reader.measures import Measure
from acefraud.rules.reader.nouns import Nouns
from acefraud.rules.reader.phrases import Tokens, after_any, is_one_of, is_word, phrase, skipped
from acefraud.rules.reader.quantities import comparators, figures
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import words

_TRANSACTIONS = words("transactions")
_BURST_WINDOW = words("burst_window")
_MINUTES = {"minute": 1.0, "min": 1.0, "hour": 60.0, "h": 60.0, "hr": 60.0, "day": 1440.0}
"""The units of the window of a burst."""


class CountTests:
    """Reads tests of a count that stands before its noun."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary, nouns: Nouns) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        self._nouns = nouns

    def tests(self, at: int) -> Tests:
        """ "more than 5 failed attempts", "no chargebacks", "at least two declined payments before" """
        for bound, after in counts(self._tokens, at):
            if is_word(self._tokens, after, "the"):
                continue
            for fact, end in self._nouns.facts(skipped(self._tokens, after, ("of", "different")), "number"):
                is_none = is_word(self._tokens, after - 1, "no", "any", "without", "some")
                fits = fact.measure is Measure.COUNT or (fact.measure is Measure.PLAIN and not is_none)
                if fits and fact.name != "hour":
                    yield bound(fact.name), end
        if is_word(self._tokens, at, "no", "without"):
            for fact, end in self._nouns.facts(at + 1, "category"):
                none = next((value for value in fact.values if value.lower() in ("none", "0", "no")), None)
                if none is not None:
                    yield Condition.of(Test(fact.name, Op.IS, none)), end

    def burst_tests(self, at: int) -> Tests:
        """ "more than 5 transactions within 10 minutes", where only texts tell of bursts"""
        if not {"recent_transactions", "recent_window_minutes"} <= self._vocabulary.facts.keys():
            return
        first = phrase(self._tokens, skipped(self._tokens, at), "burst of")
        for bound, after in counts(self._tokens, at if first is None else first):
            start = after + is_word(self._tokens, after, "recent")
            if is_one_of(self._tokens, start, _TRANSACTIONS) and _is_from_below(bound):
                yield from self._within(bound, start + 1)

    def _within(self, bound: Bound, at: int) -> Tests:
        """A count of transactions with the window in which they fell."""
        tokens = self._tokens
        place = skipped(tokens, at, _BURST_WINDOW)
        if place == at:
            return
        place = next(after_any(tokens, place, ("a window of", "window of")), place)
        limits = ((op, end) for op, end in comparators(tokens, place) if op in (Op.AT_MOST, Op.BELOW))
        limit, start = next(limits, (Op.AT_MOST, place))
        for figure, end in figures(tokens, start):
            if figure.unit in _MINUTES:
                window = Test("recent_window_minutes", limit, figure.value * _MINUTES[figure.unit])
                final = phrase(tokens, end, "or less") or end
                yield Condition.all_of([bound("recent_transactions"), Condition.of(window)]), final


def _is_from_below(bound: Bound) -> bool:
    """Whether a bound asks for many. A text that tells of no burst does not say that there were few."""
    leaves = bound("count").leaves
    return all(isinstance(leaf, Test) and leaf.op in (Op.ABOVE, Op.AT_LEAST) for leaf in leaves)
