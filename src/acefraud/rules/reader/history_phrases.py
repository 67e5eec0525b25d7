"""What is said of the past of a card or another entity: "more than 5 transactions of the card in an hour".

The figures of the past are nouns too, as in "the card's 30 day maximum" or "total amount of the user in 7 days".
"""

from __future__ import annotations

from collections.abc import Iterator

from acefraud.core.comparison import ORDERED, Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.facts import HISTORY_NAME, HOURS, Fact, Measure
from acefraud.rules.reader.quantities import COUNT, Bound, bounded, bounds, comparators, counts, figures, limit
from acefraud.rules.reader.sentence import Entities, Sentence, Tests, remembered
from acefraud.rules.reader.tokens import TRANSACTIONS, Words, phrases, words

_FIGURE_WORDS: dict[Words, str] = {
    tuple(said.split()): figure
    for figure in ("sum", "mean", "max", "count", "known_frauds", "known_fraud_share")
    for said in phrases(f"{figure}_figure")
}
for _kind in TRANSACTIONS - {"operation"}:
    _FIGURE_WORDS |= {(_most, _kind): "max" for _most in ("largest", "biggest", "highest", "maximum", "greatest")}
    _FIGURE_WORDS[_kind, "total"] = _FIGURE_WORDS["total", "of", _kind] = "sum"
    _FIGURE_WORDS["average", _kind] = _FIGURE_WORDS["mean", _kind] = "mean"
"""What each figure is called, by the part of a fact's name that stands for it."""
BELONGS = words("belongs")
_WINDOW_START, _LAST = words("window_start"), words("last")
_USUAL, _USUAL_AMOUNTS = words("usual"), words("usual_amounts")
_KNOWN_FRAUDS = phrases("known_fraud_cases")
_HAS, _MET, _SPENT = words("has"), words("met"), words("spent")
_IS_USED, _USED = words("is_used"), words("used")
_DIFFERENT = words("different")
_TURNED_OUT = words("turned_out")
_TIMES = {"once": 1.0, "twice": 2.0, "thrice": 3.0}
_SUM = Fact("", "number", Measure.MONEY)
_SHARE = Fact("", "number", Measure.SHARE)
_IS_ZERO = limit(Op.IS, 0.0)
Predicate = tuple[str, Bound, int]
"""A figure, what is said of it, and the place where its window begins."""


# --- figures as nouns ---


@remembered
def history_figures(sentence: Sentence, at: int) -> Iterator[tuple[Fact, int]]:
    """The figures of entities that are named here, each with the place after its name."""
    for entity, figure, hours, end in _figures_said(sentence, at):
        kept = sentence.vocabulary.windows.get(f"{entity}_{figure}", {})
        if hours is None and len(kept) == 1:
            yield next(iter(kept.values())), end
        elif hours in kept:
            yield kept[hours], end


def _figures_said(sentence: Sentence, at: int) -> Iterator[tuple[str, str, float | None, int]]:
    """An entity, a figure and a window in hours, in any order. Where only one window is kept, it need not be said."""
    for entity, after in sentence.owner(at):  # "the card's 30 day maximum", "the card's maximum in 30 days"
        for hours, then in _window(sentence, after):
            yield from ((entity, figure, hours, end) for figure, end in sentence.matches(then, _FIGURE_WORDS))
        for figure, then in sentence.matches(after, _FIGURE_WORDS):
            yield from ((entity, figure, hours, end) for hours, end in _window(sentence, then))
            yield entity, figure, None, then
    for figure, after in sentence.matches(at, _FIGURE_WORDS):
        for entity, then in _owner_after(sentence, after):  # "maximum of the card in 30 days"
            yield from ((entity, figure, hours, end) for hours, end in _window(sentence, then))
        for hours, then in _window(sentence, after):  # "maximum in 30 days of the card"
            yield from ((entity, figure, hours, end) for entity, end in _owner_after(sentence, then) if end > then + 1)
    for hours, after in _window(sentence, at):  # "30 day maximum of the card"
        for figure, then in sentence.matches(after, _FIGURE_WORDS):
            if sentence.is_one_of(then, BELONGS):
                yield from ((entity, figure, hours, end) for entity, end in _owner_after(sentence, then))


def _owner_after(sentence: Sentence, at: int) -> Iterator[tuple[str, int]]:
    """The entity after "of", "on" and the like."""
    return sentence.owner(sentence.skipped(at, BELONGS))


@remembered
def _window(sentence: Sentence, at: int) -> Iterator[tuple[float, int]]:
    """A window in hours: "in the last 24 hours", "over 30 days", "in an hour", "per day"."""
    place = sentence.skipped(at + sentence.is_one_of(at, _WINDOW_START))
    place += sentence.is_one_of(place, _LAST)
    if place > at and sentence.is_one_of(place, HOURS):
        yield HOURS[sentence.tokens[place].text], place + 1
    for after in sentence.after(place, "single day"):
        yield 24.0, after
    for figure, after in figures(sentence, place):
        if figure.unit in HOURS and not figure.at_least:
            yield figure.value * HOURS[figure.unit], after + sentence.is_word(after, "window", "period")


def ratio_to_usual(sentence: Sentence, at: int) -> Iterator[tuple[str, int]]:
    """The fact that divides the amount by the usual amount of an entity, where "the card's usual" stands here."""
    for entity, after in sentence.owner(at):
        is_usual = sentence.is_one_of(after, _USUAL) or sentence.is_word(after, "mean", "own")
        if is_usual and (name := f"{entity}_amount_to_usual") in sentence.vocabulary.facts:
            end = after + 1 + sentence.is_word(after + 1, "usual", "average", "mean")
            yield name, end + sentence.is_one_of(end, _USUAL_AMOUNTS)


# --- tests of figures ---


def history_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of a history figure that begins here."""
    for fact, after in history_figures(sentence, at):  # "the card's 30 day maximum is above 500"
        for place in sentence.after_be(after):
            yield from bounded(sentence, place, fact)
            if sentence.is_word(place, "zero", "none", "nil"):
                yield _IS_ZERO(fact.name), place + 1
    yield from _entity_first(sentence, at)
    yield from _count_first(sentence, at)
    yield from _share_first(sentence, at)


def _entity_first(sentence: Sentence, at: int) -> Tests:
    """ "card used more than 5 times in an hour", "user with 3+ payments in the last hour", "device spent ..." """
    for entities, after in sentence.entities(at):
        either = sentence.is_word(after, "either")
        for first, end in _said_of(sentence, entities, after + either):
            if not either:
                yield first, end
            join = Condition.any_of if sentence.is_word(end, "or") else Condition.all_of
            if sentence.is_word(end, "or") or (sentence.is_word(end, "and") and not either):
                seconds = (*_said_of(sentence, entities, end + 1), *_as_before(sentence, first, end + 1))
                yield from ((join([first, second]), final) for second, final in seconds)


def _as_before(sentence: Sentence, first: Condition, at: int) -> Tests:
    """ "(fewer than 100 transactions in 7 days or) fewer than 10 in 24 hours": the same figure of the entity"""
    match = HISTORY_NAME.fullmatch(next(iter(first.facts))) if len(first.facts) == 1 else None
    if match is not None and match["figure"] == "count":
        for bound, then in bounds(sentence, at, COUNT):
            yield from _each(sentence, ([match["entity"]], "all"), "count", bound, then)


def _said_of(sentence: Sentence, entities: Entities, at: int) -> Tests:
    """What is said of the past of one or several entities."""
    names, how = entities
    for figure, bound, end in _predicates(sentence, names[0], at):
        yield from _each(sentence, entities, figure, bound, end)
    if how == "none":  # "neither the user nor the card had known frauds"
        for figure, end in _counted(sentence, _after_has(sentence, at)[1]):
            yield from _each(sentence, (names, "all"), figure, _IS_ZERO, end)


def _after_has(sentence: Sentence, at: int) -> tuple[int, int]:
    """The places before and after "has", "with" and the like, where what is said of an entity may begin."""
    after = at + sentence.is_word(at, ":", ",")
    return after, sentence.skipped(after, _HAS)


def _predicates(sentence: Sentence, entity: str, at: int) -> Iterator[Predicate]:
    """What may be said here of the past of an entity, up to the window."""
    after, place = _after_has(sentence, at)
    for start in {after, place}:
        for bound, then in counts(sentence, start):
            yield from ((figure, bound, end) for figure, end in _counted(sentence, then))
    if place > after and next(sentence.after(place, "known fraud", "confirmed fraud"), None):
        yield from ((figure, limit(Op.ABOVE, 0.0), end) for figure, end in _counted(sentence, place))
    yield from _has_figure(sentence, entity, place)
    yield from _used(sentence, after)
    yield from _spent(sentence, place)
    yield from _met(sentence, after)


def _has_figure(sentence: Sentence, entity: str, at: int) -> Iterator[Predicate]:
    """ "(the card has) a total above 5,000 in a day" """
    for figure, then in sentence.matches(at, _FIGURE_WORDS):
        if kept := sentence.vocabulary.windows.get(f"{entity}_{figure}"):
            fact = next(iter(kept.values()))  # the window does not matter for what may be said
            for place in sentence.after_be(then):
                for bound, end in bounds(sentence, place, fact, bare=figure == "known_fraud_share"):
                    yield figure, bound, end


def _used(sentence: Sentence, at: int) -> Iterator[Predicate]:
    """ "(the card was) used more than 5 times in an hour", "(the card was) not used in the last 7 days" """
    start = sentence.skipped(at, _IS_USED)
    unused = sentence.skipped(start + 1, _USED | {"be"})
    if sentence.is_word(start, "not") and unused > start + 1 and not sentence.is_word(unused, "for"):
        yield "count", _IS_ZERO, unused
    place = start + sentence.is_one_of(start, _USED)
    for bound, then in counts(sentence, place):
        if sentence.is_word(then, "time"):
            yield "count", bound, then + 1
    for op, then in comparators(sentence, place):
        if sentence.is_one_of(then, _TIMES) and op in ORDERED:
            yield "count", limit(op, _TIMES[sentence.tokens[then].text]), then + 1


def _spent(sentence: Sentence, at: int) -> Iterator[Predicate]:
    """ "(the card has) spent over 5,000 in total in a day" """
    if not sentence.is_one_of(at, _SPENT):
        return
    for bound, then in bounds(sentence, next(sentence.after(at + 1, "a total of"), at + 1), _SUM):
        for end in {then, *sentence.after(then, "in total", "altogether", "total")}:
            yield "sum", bound, end


def _met(sentence: Sentence, at: int) -> Iterator[Predicate]:
    """ "(a card) used at 3 or more stores in a day", "(a device) with more than two users in 30 days" """
    place = sentence.skipped(at, _MET | _HAS)
    for start in {place, *range(at, place)}:
        for bound, then in counts(sentence, start):
            yield from ((f"distinct_{other}", bound, after) for other, after in _others(sentence, then))


def _count_first(sentence: Sentence, at: int) -> Tests:
    """ "more than 5 transactions of the card in an hour", "3 or more users on the device in 30 days" """
    for bound, after in counts(sentence, at):
        counted = [(figure, then, True) for figure, then in _counted(sentence, after)]
        differ = sentence.is_one_of(after, _DIFFERENT)
        counted += [(f"distinct_{other}", then, differ) for other, then in _others(sentence, after)]
        for figure, then, may_be_of_subject in counted:
            yield from _of_entity(sentence, figure, bound, then)
            if may_be_of_subject and (subject := sentence.only_before(at)) is not None:
                # "(a card with ...,) 3+ different stores in 24 hours"
                yield from _each(sentence, ([subject], "all"), figure, bound, then)


def _share_first(sentence: Sentence, at: int) -> Tests:
    """ "more than half of the device's transactions in the last 30 days are known fraud" """
    for bound, after in bounds(sentence, at, _SHARE):
        for entity, then in sentence.owner(after + 1) if sentence.is_word(after, "of") else ():
            if not sentence.is_one_of(then, TRANSACTIONS) and not sentence.is_word(then, "label", "case"):
                continue
            for condition, last in _each(sentence, ([entity], "all"), "known_fraud_share", bound, then + 1):
                end = sentence.skipped(last, _TURNED_OUT)
                if end > last and sentence.is_word(end, "fraud", "fraudulent"):
                    yield condition, end + 1


def _of_entity(sentence: Sentence, figure: str, bound: Bound, at: int) -> Tests:
    """The entity of a count and the window, in either order: "of the card in an hour", "in an hour on the card"."""
    linking = BELONGS | _MET
    place = sentence.skipped(at, linking)
    if place == at:
        return
    for entities, after in sentence.entities(sentence.skipped(place)):
        yield from _each(sentence, entities, figure, bound, after)
    for hours, then in _window(sentence, at):
        start = sentence.skipped(then, linking)
        for name, end in sentence.entity(sentence.skipped(start)) if start > then else ():
            if (fact := sentence.vocabulary.windows.get(f"{name}_{figure}", {}).get(hours)) is not None:
                yield bound(fact.name), end


def _counted(sentence: Sentence, at: int) -> Iterator[tuple[str, int]]:
    """What is counted before a window: transactions or known frauds."""
    place = sentence.skipped(at, ("successful", "separate", "other", "earlier", "previous", "prior", "past"))
    if sentence.is_one_of(place, TRANSACTIONS):
        yield "count", place + 1
    yield from (("known_frauds", after) for after in sentence.after(place, *_KNOWN_FRAUDS))


def _others(sentence: Sentence, at: int) -> list[tuple[str, int]]:
    """The entities that are counted: "different stores"."""
    is_another = sentence.is_one_of(at, _DIFFERENT) and sentence.is_word(at - 1, "a", "an", "no", "any", "not")
    if is_another or sentence.is_word(at, "other") or sentence.is_word(at - 1, "another"):
        return []  # "used by a different user": different from this one
    return sentence.entity(sentence.skipped(at, _DIFFERENT))


def _each(sentence: Sentence, entities: Entities, figure: str, bound: Bound, at: int) -> Tests:
    """One test for each of the entities, with the window that follows."""
    names, how = entities
    windows = [sentence.vocabulary.windows.get(f"{name}_{figure}", {}) for name in names]
    for hours, end in _window(sentence, at):
        if all(hours in kept for kept in windows):
            tests = [bound(kept[hours].name) for kept in windows]
            if how == "none":
                tests = [_none_of(test) for test in tests]
            yield Condition.any_of(tests) if how == "any" else Condition.all_of(tests), end


def _none_of(condition: Condition) -> Condition:
    """The opposite of a test of a count. A count that is not above 0 is 0."""
    negated = condition.negated()
    match negated.parts:
        case [Test(fact, Op.AT_MOST, 0.0) | Test(fact, Op.BELOW, 1.0)]:
            return _IS_ZERO(fact)
    return negated
