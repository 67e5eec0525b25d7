"""An amount that is meant without being named: "over $500", "transactions above 5,000", "anything under 10"."""

from __future__ import annotations

from acefraud.core.condition import PairTest
from acefraud.rules.reader.bounds import Tests, bounds
from acefraud.rules.reader.names import Fact
from acefraud.rules.reader.number_tests import NumberTests
from acefraud.rules.reader.phrases import Tokens, after_be, is_one_of, is_word, skipped
from acefraud.rules.reader.tokens import Kind
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import words

_TRANSACTIONS = words("transactions")
_SUBJECTS = _TRANSACTIONS | words("amount_subjects")
_COSTS = words("costs")
_CURRENCIES = words("plain_currencies")
_NO_SUBJECTS = words("people") | {"and", "or", "woman", "man", "but"}
"""Words before a number that rule out an amount: "payments by women over 60"."""
_NOT_AMOUNTS = _TRANSACTIONS | {"time", "x", "old", "ago", "of"}
"""Words after a number that make it something else than an amount."""
_LEAST_AMOUNT = 50
"""A smaller number without a unit or a noun could be anything."""


class AmountTests:
    """Reads tests of the amount where only a number is given."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary, numbers: NumberTests) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        self._numbers = numbers

    def tests(self, at: int) -> Tests:
        """Every test of an amount that is not named here."""
        amount = self._vocabulary.facts.get("amount")
        if amount is None or amount.kind != "number":
            return
        tokens = self._tokens
        yield from self._numbers.multiples_of_usual(amount, at)
        start = skipped(tokens, at)
        pronoun = is_word(tokens, start, "they", "it")
        if pronoun:
            start = after_be(tokens, start + 1)[-1]
        has_subject = is_one_of(tokens, start, _SUBJECTS) and (tokens[start].text,) not in self._vocabulary.values
        first = start + has_subject
        last = skipped(tokens, first, _COSTS) if has_subject else first
        if is_word(tokens, at, "for", "of", "worth", "at", "costing"):
            first = last = at + 1
        spoken_of = has_subject or is_word(tokens, at, "for", "worth", "costing")
        for place in range(first, last + 1):  # "at" may belong to "at most"
            yield from self._bounded(amount, place, at, spoken_of=spoken_of)
            if has_subject:
                yield from self._beside_others(amount, place)

    def _bounded(self, amount: Fact, start: int, at: int, *, spoken_of: bool) -> Tests:
        for bound, end in bounds(self._tokens, start, amount):
            is_amount = spoken_of or self._is_amount(start, end) or self._spoke_of_transactions(at)
            if is_amount and not is_one_of(self._tokens, end, _NOT_AMOUNTS):
                condition = bound("amount")
                yield condition, end
                yield from self._numbers.further(amount, condition, end)

    def _beside_others(self, amount: Fact, at: int) -> Tests:
        """ "(payments) of more than twice the usual": the amount compared with another number"""
        for condition, end in self._numbers.said_of(amount, at):
            if any(isinstance(leaf, PairTest) or leaf.fact != "amount" for leaf in condition.leaves):
                yield condition, end

    def _is_amount(self, start: int, end: int) -> bool:
        """Whether the figure itself says that it is an amount: it is money, or it is in thousands."""
        figure = self._tokens[start:end]
        if any(token.is_money or token.text in _CURRENCIES for token in figure):
            return True
        return any(
            token.text in ("thousand", "million", "grand")
            or (token.kind is Kind.NUMBER and token.shown.lower().endswith("k"))
            for token in figure
        )

    def _spoke_of_transactions(self, at: int) -> bool:
        """Whether a payment was the subject before, as in "payments in RU above 60,000" or "if they stay under 500"."""
        before = [token.text for token in self._tokens[:at]]
        if before and before[-1] in (",", ";", "and", ")") and self._is_large(at) and not self._counted_before(at):
            return True
        if before and before[-1] in _NO_SUBJECTS:
            return False
        return any(word in _TRANSACTIONS or word in ("anything", "everything") for word in before)

    def _counted_before(self, at: int) -> bool:
        """Whether the test before has a number too, so that this one may be about the same fact."""
        place = at - 1
        while place > 0 and self._tokens[place - 1].text not in (",", ";", "and", ")"):
            place -= 1
        return any(token.kind is Kind.NUMBER for token in self._tokens[place:at])

    def _is_large(self, at: int) -> bool:
        """Whether the number that is compared here is too large for anything but an amount, if no unit follows."""
        numbers = [token.value for token in self._tokens[at : at + 4] if token.kind is Kind.NUMBER]
        return bool(numbers) and numbers[0] >= _LEAST_AMOUNT
