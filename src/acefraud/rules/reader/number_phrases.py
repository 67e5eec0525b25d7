"""What is said of a number: of one that is named, of an amount that is meant, and of a count before what is counted.

"amount over 500 or under 10", "twice the usual amount", "anything under 10", "more than 5 failed attempts".
"""

from __future__ import annotations

from acefraud.core.comparison import ORDERED, Op, Test
from acefraud.core.condition import Condition, PairTest
from acefraud.rules.reader.facts import KILOMETRES, Fact, Measure
from acefraud.rules.reader.history_phrases import history_figures, ratio_to_usual, windows_said
from acefraud.rules.reader.quantities import (
    MINUTES,
    bounded,
    comparators,
    counts,
    figure_pairs,
    figures,
    multiples,
    numbers,
    or_more,
)
from acefraud.rules.reader.sentence import Sentence, Tests
from acefraud.rules.reader.tokens import DETERMINERS, PEOPLE, TRANSACTIONS, Kind, phrases, words

_AMOUNT_SUBJECTS = TRANSACTIONS | words("amount_subjects")
_NO_SUBJECTS = PEOPLE | {"and", "or", "woman", "man", "but", "age", "aged", "old"}
"""Words before a number that rule out an amount: "payments by women over 60"."""
_NOT_AMOUNTS = TRANSACTIONS | {"time", "x", "old", "ago", "of"}
"""Words after a number that make it something else than an amount."""
_COUNTED_NOUNS = TRANSACTIONS | words("heads")
"""Nouns that a number may count over the name of a fact: "3 deductible claims" may be three claims."""
_LIMITS = frozenset({"within", "to", "by", "inside", "than", "in", "not", "under", "below", "exactly", "for"})
"""Words before a multiple that make it something else than the least amount."""
_TOGETHER = phrases("together")
_LEAST_AMOUNT = 50
"""A smaller number without a unit or a noun could be anything."""
_LEAST_SCALE = 1e3
"""A number in thousands is money."""
_MOST_AGE = 120
"""Nobody is older."""
_ENDS_OF_TESTS = (",", ";", "and", ")")
_JOINTS = (*_ENDS_OF_TESTS, "or", "but", "+", "plus")
_BURST_UNITS = MINUTES | {"day": 1440.0}
"""The units of the window of a burst, in minutes."""


def number_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of a number that is named here, and of several bounds of it."""
    for fact, after in sentence.facts(at, "number"):
        if sentence.is_word(after - 1, "total") and windows_said(sentence, at) and fact.name == "amount":
            continue  # "3 payments in an hour and total over 2000" is no amount of one of them
        for place in sentence.after_be(after):
            for first, end in _said_of(sentence, fact, place, bare=True):
                yield first, end
                if not sentence.is_word(place, "not"):  # "not over 500 or under 10"
                    yield from _further(sentence, fact, first, end)
    if (distance := sentence.vocabulary.facts.get("distance_km")) is not None:
        for condition, end in bounded(sentence, at, distance):  # "more than 300 km away"
            if sentence.tokens[end - 1].text in KILOMETRES and sentence.is_word(end, "away"):
                yield condition, end + 1
    for fact, after in history_figures(sentence, at):  # "the card's 7 day average is above the store's 7 day average"
        for place in sentence.after_be(after):
            yield from _pairs(sentence, fact, place)


def _further(sentence: Sentence, fact: Fact, first: Condition, at: int) -> Tests:
    """Another bound of the same number after "and", "or" or "but"."""
    if not sentence.is_word(at, "and", "or", "but"):
        return
    join = Condition.any_of if sentence.is_word(at, "or") else Condition.all_of
    if sentence.is_word(at, "or"):
        for end in sentence.after_one_of(sentence.after_be(at + 1)[-1], phrases("unknown")):
            yield join([first, Condition.of(Test(fact.name, Op.MISSING))]), end
    for place in sentence.after_be(at + 1):
        for second, end in (*bounded(sentence, place, fact), *_pairs(sentence, fact, place)):
            yield join([first, second]), end


def _said_of(sentence: Sentence, fact: Fact, at: int, *, bare: bool = False) -> Tests:
    """What may be said of a number here. A number alone is an equality, if `bare` allows that."""
    yield from bounded(sentence, at, fact, bare=bare and fact.measure in (Measure.PLAIN, Measure.COUNT, Measure.YEARS))
    yield from _pairs(sentence, fact, at)
    yield from _percent_or_more(sentence, fact, at)
    yield from _multiple_or_more(sentence, fact, at)
    yield from _times_as_much(sentence, fact, at)
    yield from _about(sentence, fact, at)
    yield from _between_multiples(sentence, fact, at)
    for after in sentence.after(at, "differ from"):
        yield from _paired(sentence, fact, Op.IS_NOT, after)


def _pairs(sentence: Sentence, fact: Fact, at: int) -> Tests:
    """A comparison with another fact, or with a multiple of it."""
    for op, after in comparators(sentence, at):
        yield from _paired(sentence, fact, op, after)


def _paired(sentence: Sentence, fact: Fact, op: Op, at: int) -> Tests:
    """The fact, or the multiple of one, with which a number is compared here."""
    if op not in ORDERED and fact.measure is not Measure.PLAIN:
        return
    if sentence.is_word(at - 1, "within") or sentence.is_word(at, "one", "a", "an", "any", "some", "no"):
        return  # "within 10% of the maximum", "at most one chargeback"
    facts = sentence.vocabulary.facts
    only_ratio = fact.name == "amount" and op in ORDERED and "usual_amount" not in facts and "amount_to_usual" in facts
    for times, after in multiples(sentence, at):
        yield from _against(sentence, fact, op, times, after)
        usual = sentence.skipped(after)
        if only_ratio and sentence.is_one_of(usual, words("usual")):
            yield Condition.of(Test("amount_to_usual", op, times)), usual + 1 + sentence.is_word(usual + 1, "amount")


def _against(sentence: Sentence, fact: Fact, op: Op, times: float, at: int) -> Tests:
    """A number compared with a multiple of what is named here: the usual amount of an entity, or another number."""
    if fact.name == "amount" and op in ORDERED:
        for place in {at, sentence.skipped(at)}:
            yield from ((Condition.of(Test(name, op, times)), end) for name, end in ratio_to_usual(sentence, place))
    yield from _against_number(sentence, fact, op, times, at)


def _against_number(sentence: Sentence, fact: Fact, op: Op, times: float, at: int) -> Tests:
    """Two numbers compared. The ratio of an amount to the usual is often known where the usual itself is not."""
    has_ratio = fact.name == "amount" and "amount_to_usual" in sentence.vocabulary.facts
    for other, end in (*sentence.facts(at, "number"), *history_figures(sentence, at)):
        if other.name == "usual_amount" and has_ratio:
            yield Condition.of(Test("amount_to_usual", op, times)), end
        elif other.name != fact.name and _are_comparable(fact, other):
            yield Condition.of(PairTest(fact.name, op, other.name, times)), end


def _are_comparable(one: Fact, other: Fact) -> bool:
    """Whether two numbers can be compared: they count the same, or it is not known what they count."""
    return one.measure is other.measure or Measure.PLAIN in (one.measure, other.measure)


def _percent_or_more(sentence: Sentence, fact: Fact, at: int) -> Tests:
    """ "300% or more of the mean" """
    for figure, after in figures(sentence, at):
        more = or_more(sentence, after)
        if figure.is_percent and more is not None and sentence.is_word(more[1], "of"):
            yield from _against_number(sentence, fact, more[0], figure.share, more[1] + 1)


def _multiple_or_more(sentence: Sentence, fact: Fact, at: int) -> Tests:
    """ "80% of the maximum or more" """
    for times, after in multiples(sentence, at):
        for index in range(after + 1, len(sentence.tokens)) if after > at else ():
            if sentence.is_word(index, "maximum", "minimum", "max", "min", "top"):
                continue  # "5 times the usual maximum"
            if (more := or_more(sentence, index)) is not None:
                comma = index - sentence.is_word(index - 1, ",")
                for condition, end in _against(sentence, fact, more[0], times, after):
                    if end == comma:
                        yield condition, more[1]


def _times_as_much(sentence: Sentence, fact: Fact, at: int) -> Tests:
    """ "10x what the card usually spends", which is at least as much; only of an amount and the past of an entity"""
    for times, after in (
        multiples(sentence, at) if fact.name == "amount" and not sentence.is_one_of(at - 1, _LIMITS) else ()
    ):
        for condition, end in _against(sentence, fact, Op.AT_LEAST, times, after) if times > 1 else ():
            if any(name.endswith("_amount_to_usual") for name in condition.facts):
                yield condition, end


def _about(sentence: Sentence, fact: Fact, at: int) -> Tests:
    """ "about what the card normally spends, say within 20% either way" """
    for start in sentence.after_one_of(at, phrases("about")):
        for after in {end for _, end in _against(sentence, fact, Op.AT_MOST, 1.0, start)}:
            place, opened = sentence.skipped(after, words("give_or_take")), sentence.is_word(after, "(")
            for figure, end in figures(sentence, place) if place > after else ():
                final = max(sentence.after_one_of(end, phrases("either_way")), default=end)
                if figure.is_percent and (not opened or sentence.is_word(final, ")")):
                    ends = ((Op.AT_LEAST, round(1 - figure.share, 12)), (Op.AT_MOST, round(1 + figure.share, 12)))
                    made = [
                        [test for test, last in _against(sentence, fact, *limit, start) if last == after]
                        for limit in ends
                    ]
                    yield from ((Condition.all_of(pair), final + opened) for pair in zip(*made, strict=True))


def _between_multiples(sentence: Sentence, fact: Fact, at: int) -> Tests:
    """ "between 0.5 and 1.5 times the usual" """
    for opening, joint in (("between", "and"), ("from", "to")):
        for start in sentence.after(at, opening):
            for low, middle in figures(sentence, start):
                if sentence.is_word(middle, joint) and not low.unit and not low.is_money:
                    least = low.value / 100 if low.is_percent else low.value
                    yield from _up_to_multiple(sentence, fact, least, middle + 1)


def _up_to_multiple(sentence: Sentence, fact: Fact, least: float, at: int) -> Tests:
    """From a multiple of another number up to the one that is named here: "1.5 times the usual" """
    for most, after in multiples(sentence, at):
        for upper, end in _against(sentence, fact, Op.AT_MOST, most, after) if after > at else ():
            for lower, same_end in _against(sentence, fact, Op.AT_LEAST, least, after):
                if same_end == end and lower.facts == upper.facts:
                    yield Condition.all_of([lower, upper]), end


# --- an amount that is not named ---


def amount_tests(sentence: Sentence, at: int) -> Tests:
    """ "over $500", "transactions above 5,000", "anything under 10": an amount that is meant without being named"""
    amount = sentence.vocabulary.facts.get("amount")
    if amount is None or amount.kind != "number":
        return
    yield from _multiples_of_usual(sentence, amount, at)
    for _, after in sentence.entity(
        at
    ):  # "the card's payment is over 8 times its usual", "a card spending twice its usual"
        first = sentence.skipped(after, ("'s", "that", "who", "which", "is"))
        if (
            sentence.is_one_of(first, words("spends"))
            and sentence.tokens[first].text == sentence.tokens[first].shown.lower()
        ):
            for place in sentence.after_be(first + 1):
                yield from _multiples_of_usual(sentence, amount, place)
    start = sentence.skipped(at)
    if is_it := sentence.is_word(start, "they", "it"):
        start = sentence.after_be(start + 1)[-1]
    start += sentence.is_word(start, "another") and sentence.is_word(start + 2, "or")  # "tries another 1,000 or more"
    has_subject = sentence.is_mere_word(start, _AMOUNT_SUBJECTS)
    first = start + has_subject
    last = sentence.skipped(first, words("costs")) if has_subject else first
    if sentence.is_word(at, "for", "of", "worth", "at", "costing"):
        first = last = at + 1
    is_named = has_subject or sentence.is_word(at, "for", "worth", "costing")
    for index in range(first, last + 1):  # "at" may belong to "at most"
        for condition, end in bounded(sentence, index, amount):
            is_amount = is_named or _is_money(sentence, index, end) or _spoke_of_transactions(sentence, at)
            counts = sentence.is_one_of(end, _NOT_AMOUNTS) or any(sentence.facts(end, "number"))  # "a dozen attempts"
            has_clock = any(token.kind is Kind.CLOCK for token in sentence.tokens[index : end + 1])
            if sentence.after_one_of(end, phrases("of_the_day")):  # "payments between 2 and 5 in the morning"
                has_clock = has_clock or any(last == end for _, _, last in figure_pairs(sentence, end - 3, "and", "to"))
            of_several = sentence.is_plural(start, TRANSACTIONS)  # "payments over 500 in total"
            is_sum = of_several and sentence.has_word(first, index, "totalling")
            is_sum = is_sum or ((of_several or not has_subject) and any(sentence.after_one_of(end, _TOGETHER)))
            if is_amount and not counts and not has_clock and not is_sum:
                yield condition, end
                yield from _further(sentence, amount, condition, end)
        for condition, end in _said_of(sentence, amount, index) if has_subject or is_it else ():
            # "(payments) of more than twice the usual": the amount compared with another number
            if any(isinstance(leaf, PairTest) or leaf.fact != "amount" for leaf in condition.leaves):
                yield condition, end


def _multiples_of_usual(sentence: Sentence, amount: Fact, at: int) -> Tests:
    """A multiple of another number, which is certain to be meant even if the amount is not named."""
    for op, after in comparators(sentence, at):
        if op in ORDERED and not sentence.is_word(after - 1, "within"):
            for times, then in multiples(sentence, after):
                if then > after:
                    yield from _against(sentence, amount, op, times, then)
    yield from _multiple_or_more(sentence, amount, at)
    yield from _times_as_much(sentence, amount, at)


def _is_money(sentence: Sentence, start: int, end: int) -> bool:
    """Whether a figure itself says that it is an amount: it is money, or it is in thousands."""
    figures = (figure for at in range(start, end) for figure, _ in numbers(sentence, at))
    return any(figure.is_money or figure.scale >= _LEAST_SCALE for figure in figures) or sentence.has_word(
        start, end, *words("plain_currencies")
    )


def _spoke_of_transactions(sentence: Sentence, at: int) -> bool:
    """Whether a payment was the subject before, as in "payments in RU above 60,000" or "if they stay under 500".

    A number that is too large to be an age or a count is taken for an amount, unless the words before it say otherwise.
    """
    before = sentence.said(0, at)
    compared = [token.value for token in sentence.tokens[at : at + 4] if token.kind is Kind.NUMBER]
    last = before[-1] if before else ""
    may_be_age = sentence.vocabulary.in_years or last in _NO_SUBJECTS
    is_large = bool(compared) and compared[0] >= _LEAST_AMOUNT and (compared[0] > _MOST_AGE or not may_be_age)
    if is_large and not (last in _JOINTS and _counted_before(sentence, at)):
        return True
    if last in _NO_SUBJECTS:
        return False
    return any(word in TRANSACTIONS or word in ("anything", "everything") for word in before)


def _counted_before(sentence: Sentence, at: int) -> bool:
    """Whether the test before has a number too, so that this one may be about the same fact."""
    start = at - 1
    while start > 0 and sentence.tokens[start - 1].text not in _ENDS_OF_TESTS:
        start -= 1
    return any(token.kind is Kind.NUMBER and token.value >= _LEAST_AMOUNT for token in sentence.tokens[start:at])


# --- counts before what is counted ---


def count_tests(sentence: Sentence, at: int) -> Tests:
    """ "more than 5 failed attempts", "no chargebacks", "at least two declined payments before" """
    for bound, after in counts(sentence, at):
        if sentence.is_word(after, "the"):
            continue
        for fact, end in sentence.facts(sentence.skipped(after, ("of", "different")), "number"):
            is_none = sentence.is_word(after - 1, "no", "any", "without", "some")
            fits = fact.measure is Measure.COUNT or (fact.measure is Measure.PLAIN and not is_none)
            if fits and fact.name != "hour" and not sentence.is_plural(end, _COUNTED_NOUNS):
                yield bound(fact.name), end
    for figure, after in figures(sentence, at) if not sentence.is_one_of(at - 1, _LIMITS | {"from", "of"}) else ():
        for fact, end in sentence.facts(after, "number"):  # "a 700 deductible"
            is_plain = fact.measure is Measure.PLAIN and fact.name != "hour" and after == at + 1
            if (
                is_plain
                and not (figure.is_money or figure.is_percent or figure.at_least)
                and not sentence.is_one_of(after, DETERMINERS)
                and not sentence.is_plural(end, _COUNTED_NOUNS)
            ):
                yield Condition.of(Test(fact.name, Op.IS, figure.value)), end
    for fact, end in sentence.facts(at + 1, "category") if sentence.is_word(at, "no", "without") else ():
        none = next((value for value in fact.values if value.lower() in ("none", "0", "no")), None)
        if none is not None:
            yield Condition.of(Test(fact.name, Op.IS, none)), end


def burst_tests(sentence: Sentence, at: int) -> Tests:
    """ "more than 5 transactions within 10 minutes", where only texts tell of bursts"""
    if not {"recent_transactions", "recent_window_minutes"} <= sentence.vocabulary.facts.keys():
        return
    for bound, after in counts(sentence, next(iter(sentence.after(sentence.skipped(at), "burst of")), at)):
        start = after + sentence.is_word(after, "recent")
        if not sentence.is_one_of(start, TRANSACTIONS):
            continue
        count = bound("recent_transactions")
        # A text that tells of no burst does not say that there were few.
        if all(isinstance(leaf, Test) and leaf.op in (Op.ABOVE, Op.AT_LEAST) for leaf in count.leaves):
            for window, end in _burst_windows(sentence, start + 1):
                yield Condition.all_of([count, window]), end


def _burst_windows(sentence: Sentence, at: int) -> Tests:
    """The window in which a count of transactions fell: "within 10 minutes"."""
    start = sentence.skipped(at, words("burst_window"))
    if start == at:
        return
    start = sentence.past(start, "a window of", "window of")
    limits = ((op, end) for op, end in comparators(sentence, start) if op in (Op.AT_MOST, Op.BELOW))
    limit, place = next(limits, (Op.AT_MOST, start))
    for figure, end in figures(sentence, place):
        if figure.unit in _BURST_UNITS:
            minutes = figure.value * _BURST_UNITS[figure.unit]
            window = Condition.of(Test("recent_window_minutes", limit, minutes))
            yield window, sentence.past(end, "or less")
