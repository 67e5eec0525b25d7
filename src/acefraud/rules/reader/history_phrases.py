"""What is said of the past of a card or another entity: "more than 5 transactions of the card in an hour".

The figures of the past are nouns too, as in "the card's 30 day maximum" or "total amount of the user in 7 days". Of
the last transaction and of whether two entities have met: "the card's last transaction was less than an hour ago",
"more than 500 km from its last place", "a card that is new to the merchant", "never seen at this merchant".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acefraud.core.comparison import ORDERED, Op, Test
from acefraud.core.condition import Condition
from acefraud.rules.reader.facts import HISTORY_NAME, HOURS, KILOMETRES, Fact, Measure
from acefraud.rules.reader.quantities import (
    COUNT,
    bounded,
    bounds,
    comparators,
    counts,
    figures,
    limit,
    numbers,
    time_in,
)
from acefraud.rules.reader.sentence import Bound, Bounds, Entities, Sentence, Tests, remembered
from acefraud.rules.reader.tokens import DETERMINERS, PEOPLE, TRANSACTIONS, Kind, PhraseTable, phrases, words

_LARGEST = frozenset({"largest", "biggest", "highest", "maximum", "greatest"})
_FIGURE_WORDS = PhraseTable(
    (tuple(said.split()), figure)
    for figure in ("sum", "mean", "max", "count", "known_frauds", "known_fraud_share")
    for said in phrases(f"{figure}_figure")
)
for _kind in TRANSACTIONS - {"operation"}:
    _FIGURE_WORDS |= {(_most, _kind): "max" for _most in _LARGEST}
    _FIGURE_WORDS[_kind, "total"] = _FIGURE_WORDS["total", "of", _kind] = "sum"
    _FIGURE_WORDS["average", _kind] = _FIGURE_WORDS["mean", _kind] = "mean"
"""What each figure is called, by the part of a fact's name that stands for it."""
BELONGS = words("belongs")
_WINDOW_START, _LAST = words("window_start"), words("last")
_USUAL, _USUAL_AMOUNTS = words("usual"), words("usual_amounts")
_HAS, _MET, _SPENT = words("has"), words("met"), words("spent")
_NO_TRANSACTIONS = frozenset(word for said in phrases("known_fraud_cases") for word in said.split()) - {"transaction"}
_DID, _USUALLY, _PERIODS, _BEFORE_COUNT = words("did"), words("usually"), words("periods"), words("before_count")
_IS_USED, _USED = words("is_used"), words("used")
_DIFFERENT, _SEVERAL, _ONLY_ONE = words("different"), phrases("several"), phrases("only_one")
_THIS = frozenset({"this", "same", "today"})
_JOINTS = frozenset({"and", "or", "but", "plus", ",", ";", ".", ":"})
_EVER, _AFTER_EVER = phrases("ever"), words("after_ever")
_OF_NO_WINDOW = phrases("of_no_window")
_NEVER_SEEN = (
    (phrases("new_entity"), phrases("never_seen"), True),
    (phrases("known_entity"), phrases("seen_before"), False),
)
"""What is said before and after an entity that was never seen, and of one that was."""
_TIMES = {"once": 1.0, "twice": 2.0, "thrice": 3.0}
_MOST_COUNTED = 1000
_LEAST_SUM = 50
"""A number of a window without a noun that is smaller counts transactions."""
_SUM = Fact("", "number", Measure.MONEY)
_SHARE = Fact("", "number", Measure.SHARE)
_IS_ZERO = limit(Op.IS, 0.0)
Predicate = tuple[str, Bound, int]
"""A figure, what is said of it, and the place where its window begins."""


# --- figures as nouns ---


@remembered
def history_figures(sentence: Sentence, at: int) -> Iterator[tuple[Fact, int]]:
    """The figures of entities that are named here, each with the place after its name."""
    for entity, figure, hours, end in (*_figures_said(sentence, at), *_largest_said(sentence, at)):
        kept = sentence.vocabulary.windows.get(f"{entity}_{figure}", {})
        if hours is None and kept and (len(kept) == 1 or _needs_no_window(sentence, end, max(kept))):
            yield kept[max(kept)], _after_ever(sentence, end)
        elif hours in kept:
            yield kept[hours], end


def _figures_said(sentence: Sentence, at: int) -> Iterator[tuple[str, str, float | None, int]]:
    """An entity, a figure and a window in hours, in any order. No window is the longest one that is kept."""
    for entity, after in sentence.owner(at):  # "the card's 30 day maximum", "the card's maximum in 30 days"
        for hours, then in _window(sentence, after):
            yield from ((entity, figure, hours, end) for figure, end in sentence.matches(then, _FIGURE_WORDS))
        for figure, then in sentence.matches(after, _FIGURE_WORDS):
            yield from ((entity, figure, hours, end) for hours, end in _window(sentence, then))
            if _may_stand_alone(sentence, f"{entity}_{figure}", after, then):
                yield entity, figure, None, then
    for figure, after in sentence.matches(at, _FIGURE_WORDS):
        for entity, then in _owner_after(sentence, after):  # "maximum of the card in 30 days"
            yield from ((entity, figure, hours, end) for hours, end in _window(sentence, then))
            if sentence.is_one_of(after, BELONGS) and _may_stand_alone(sentence, f"{entity}_{figure}", at, after):
                yield entity, figure, None, then
        for hours, then in _window(sentence, after):  # "maximum in 30 days of the card"
            yield from ((entity, figure, hours, end) for entity, end in _owner_after(sentence, then) if end > then + 1)
            if sentence.has_word(after, then, "that") and (only := sentence.only_before(at)) is not None:
                yield only, figure, hours, then  # "the average of that hour"
    for hours, after in _window(sentence, at):  # "30 day maximum of the card"
        for figure, then in sentence.matches(after, _FIGURE_WORDS):
            if sentence.is_one_of(then, BELONGS):
                yield from ((entity, figure, hours, end) for entity, end in _owner_after(sentence, then))


def _largest_said(sentence: Sentence, at: int) -> Iterator[tuple[str, str, float | None, int]]:
    """ "the largest one that the device made in a week", "(bigger than) anything the user has paid in 30 days" """
    start = sentence.skipped(at)
    if sentence.is_one_of(start, _LARGEST):
        start = sentence.skipped(start + 1, TRANSACTIONS | {"one", "amount", "sum", "value"})
    elif not (sentence.is_word(at, "anything", "everything") and sentence.is_one_of(at - 2, words("or_more"))):
        return
    for entity, after in sentence.entity(sentence.skipped(start, ("that", "which", "anything", "everything"))):
        verb = sentence.skipped(after, ("has", "ever", "be"))
        if sentence.is_one_of(verb, _SPENT | _DID):
            yield from ((entity, "max", hours, end) for hours, end in _window(sentence, verb + 1))


def _owner_after(sentence: Sentence, at: int) -> Iterator[tuple[str, int]]:
    """The entity after "of", "on" and the like."""
    return sentence.owner(sentence.skipped(at, BELONGS))


@remembered
def _window(sentence: Sentence, at: int) -> Iterator[tuple[float, int]]:
    """A window in hours: "in the last 24 hours", "over 30 days", "in an hour", "per day"."""
    start = at + sentence.is_one_of(at, _WINDOW_START)
    if sentence.is_word(start, "that", "the") and (back := sentence.after(start, "that", "the same", "that same")):
        before = windows_said(sentence, at)
        named = HOURS.get(sentence.words[back[-1]] or "") if back[-1] < len(sentence.words) else None
        if len(before) == 1 and (named in before or sentence.is_one_of(back[-1], _PERIODS)):
            yield before.pop(), back[-1] + 1
        return
    place = sentence.skipped(start)
    place += sentence.is_one_of(place, _LAST)
    if place > at and sentence.is_one_of(place, HOURS):
        yield HOURS[sentence.tokens[place].text], place + 1
    for after in sentence.after(place, "single day", "today"):
        yield 24.0, after
    for figure, after in figures(sentence, place):
        if figure.unit in HOURS and not figure.at_least:
            yield figure.value * HOURS[figure.unit], after + sentence.is_word(after, "window", "period")
        elif not figure.unit and sentence.is_one_of(place - 1, _LAST):  # "older than 60 days and clean for the last 30"
            units = {HOURS[word] for word in sentence.words[:at] if word in HOURS}
            ends = after == len(sentence.tokens) or sentence.tokens[after].kind is Kind.SIGN
            yield from ((figure.value * unit, after) for unit in units if ends and len(units) == 1)


def _may_stand_alone(sentence: Sentence, figure: str, start: int, end: int) -> bool:
    """Whether a figure may be said without a window. A column of that name comes first."""
    said = sentence.said(sentence.skipped(start), end)
    is_only = len(sentence.vocabulary.windows.get(figure, {})) == 1
    return is_only or (" ".join(said) in _OF_NO_WINDOW and said not in sentence.vocabulary.nouns)


def _needs_no_window(sentence: Sentence, at: int, longest: float) -> bool:
    """Whether no other window than the longest is said before, nor of what ends here or what is joined to it."""
    if windows_said(sentence, at) - {longest}:
        return False  # "spent 300 in 7 days and that in 4 or more purchases"
    start = end = at
    while end < len(sentence.tokens) and sentence.tokens[end].kind is not Kind.SIGN:
        end += 1
    while start > 0 and sentence.tokens[start - 1].text not in _JOINTS:
        start -= 1
    starts = [index for index in range(start, end) if sentence.is_one_of(index, _WINDOW_START | _LAST | _THIS)]
    return not {hours for index in starts for hours, _ in _window(sentence, index)} - {longest}


def _after_ever(sentence: Sentence, at: int) -> int:
    """The place after "so far", "on file" and the like."""
    return max(sentence.after_one_of(at, _EVER), default=at)


def windows_said(sentence: Sentence, before: int | None = None) -> set[float]:
    """The windows that a sentence names, in hours: anywhere, or before a place after "in", "last" and the like."""
    if before is None:
        return {hours for index in range(len(sentence.tokens)) for hours, _ in _window(sentence, index)}
    opened = (index for index in range(before) if sentence.is_one_of(index, _WINDOW_START | _LAST | _THIS))
    return {hours for index in opened for hours, _ in _window(sentence, index)}


def ratio_to_usual(sentence: Sentence, at: int) -> Iterator[tuple[str, int]]:
    """The fact that divides the amount by the usual amount of an entity, where "the card's usual" stands here."""
    for entity, after in sentence.owner(at):
        is_column = sentence.is_word(after, "average") and ("average",) in sentence.vocabulary.nouns
        is_usual = not is_column and (sentence.is_one_of(after, _USUAL) or sentence.is_word(after, "mean", "own"))
        if is_usual and (name := f"{entity}_amount_to_usual") in sentence.vocabulary.facts:
            end = after + 1 + sentence.is_word(after + 1, "usual", "average", "mean")
            yield name, end + sentence.is_one_of(end, _USUAL_AMOUNTS)
    only = sentence.only_before(at) if sentence.is_word(at, "the") else None
    if only and sentence.is_word(at + 1, "usual") and (name := f"{only}_amount_to_usual") in sentence.vocabulary.facts:
        yield name, at + 2 + sentence.is_one_of(at + 2, _USUAL_AMOUNTS)
    for start in sentence.after(at, "what"):  # "what the card usually spends"
        only = sentence.only_before(start) if sentence.is_word(start, "it", "he", "she", "they") else None
        for entity, after in [*sentence.entity(start), *([(only, start + 1)] if only else [])]:
            spends = sentence.is_one_of(after, _USUALLY) and sentence.is_one_of(after + 1, _SPENT | _DID)
            if spends and (name := f"{entity}_amount_to_usual") in sentence.vocabulary.facts:
                yield name, after + 2


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
    yield from _in_that_period(sentence, at)


def _in_that_period(sentence: Sentence, at: int) -> Tests:
    """ "(3 payments of the card in 1h) and total over 2000", "averaging under $20", "none of them charged back" """
    start = sentence.skipped(at)
    made = [
        (figure, bound, end)
        for figure, name in (("sum", "totalling"), ("mean", "averaging"))
        for after in sentence.after_one_of(start, phrases(name))
        if figure == "sum" or sentence.said(start, after) not in sentence.vocabulary.nouns  # a column of averages
        for place in sentence.after_be(after)
        for bound, end in bounds(sentence, place, _SUM)
    ]
    made += [("known_frauds", _IS_ZERO, end) for end in sentence.after_one_of(at, phrases("none_of_them_fraud"))]
    for bound, after in counts(sentence, at):
        frauds = [end for figure, end in _counted(sentence, after) if figure == "known_frauds"]
        ends = [end for then in frauds for end in sentence.after_one_of(then, phrases("among_them"))]
        made += [("known_frauds", bound, end) for end in ends]
    entity, windows = (sentence.spoken_of(at), windows_said(sentence, at)) if made else (None, set[float]())
    for figure, bound, end in made if entity is not None and len(windows) == 1 else ():
        fact = sentence.vocabulary.windows.get(f"{entity}_{figure}", {}).get(next(iter(windows)))
        yield from [(bound(fact.name), end)] if fact is not None else ()


def _entity_first(sentence: Sentence, at: int) -> Tests:
    """ "card used more than 5 times in an hour", "user with 3+ payments in the last hour", "device spent ..." """
    for entities, after in sentence.entities(at):
        either = sentence.is_word(after, "either")
        if sentence.is_word(after, "where"):  # "stores where over 10% of ..."
            yield from _share_first(sentence, after + 1)
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
    after = at + sentence.is_word(at, ":", ",", "all", "both")
    return after, sentence.skipped(after, _HAS)


def _predicates(sentence: Sentence, entity: str, at: int) -> Iterator[Predicate]:
    """What may be said here of the past of an entity, up to the window."""
    after, place = _after_has(sentence, at)
    for start in {after, place}:
        for bound, then in _numbers_of(sentence, start):
            yield from ((figure, bound, end) for figure, end in _counted(sentence, then))
            if _is_count_of_window(sentence, start, then):  # "(the card has) 10+ in the hour"
                yield "count", bound, then
        yield from (("count", _IS_ZERO, end) for end in sentence.after_one_of(start, phrases("no_history")))
        if sentence.is_one_of(start, _DID) and sentence.is_word(start + 1, "something", "anything"):
            yield "count", limit(Op.AT_LEAST, 1.0), start + 2
    clean = sentence.after(place, "clean", "spotless") if place > after else []
    yield from (("known_frauds", _IS_ZERO, end) for end in clean if _window(sentence, end))
    if place > after:  # "(a card) with known fraud"
        some = ((figure, end) for figure, end in _counted(sentence, place) if figure != "count")
        yield from ((figure, limit(Op.ABOVE, 0.0), end) for figure, end in some)
    yield from (("known_frauds", _IS_ZERO, end) for end in sentence.after_one_of(place, phrases("no_known_fraud")))
    yield from _has_figure(sentence, entity, place)
    yield from _used(sentence, after)
    for start in range(after, place + 1):
        yield from _spent(sentence, start)
    yield from _met(sentence, after)


def _is_count_of_window(sentence: Sentence, at: int, after: int) -> bool:
    """Whether a small number alone counts transactions: "10+ in the hour", "three in an hour"."""
    if sentence.has_word(0, at, *_NO_TRANSACTIONS) or sentence.only_before(at) != sentence.spoken_of(at):
        return False  # "known frauds at the merchant: three or more in a day"
    said = [figure for figure, _ in numbers(sentence, at)]
    is_count = bool(said) and not (said[0].is_money or said[0].is_percent) and said[0].value < _LEAST_SUM
    return is_count and sentence.is_word(after, "in", "within", "inside", "per") and bool(_window(sentence, after))


@remembered
def _numbers_of(sentence: Sentence, at: int) -> Bounds:
    """What is said of a count. A plain number is the least: "3 cards in a day" are three or more."""
    yield from counts(sentence, at)
    for figure, after in figures(sentence, at):
        is_plain = not (figure.unit or figure.is_money or figure.is_percent or figure.at_least)
        if is_plain and 1 < figure.value < _MOST_COUNTED:
            yield limit(Op.AT_LEAST, figure.value), after
    yield from ((limit(Op.AT_LEAST, 2.0), after) for after in sentence.after_one_of(at, _SEVERAL))
    yield from ((limit(Op.AT_MOST, 1.0), after) for after in sentence.after_one_of(at, _ONLY_ONE))


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
    for bound, then in _numbers_of(sentence, place):
        if sentence.is_word(then, "time"):
            yield "count", bound, then + 1
    for op, then in comparators(sentence, place):
        if sentence.is_one_of(then, _TIMES) and op in ORDERED:
            yield "count", limit(op, _TIMES[sentence.tokens[then].text]), then + 1


def _spent(sentence: Sentence, at: int) -> Iterator[Predicate]:
    """ "(the card has) spent over 5,000 in total in a day" """
    if not sentence.is_one_of(at, _SPENT | {"do"}):
        return
    for bound, then in bounds(sentence, sentence.past(at + 1, "a total of"), _SUM):
        if sentence.is_word(at, "do") and not any(token.is_money for token in sentence.tokens[at:then]):
            continue  # "did 5 in an hour"
        for end in {then, *sentence.after(then, "in total", "altogether", "total")}:
            yield "sum", bound, end


def _met(sentence: Sentence, at: int) -> Iterator[Predicate]:
    """ "(a card) used at 3 or more stores in a day", "(a device) with more than two users in 30 days" """
    place = sentence.skipped(at, _MET | _HAS)
    for start in {place, *range(at, place)}:
        for bound, then in _numbers_of(sentence, start):
            yield from ((f"distinct_{other}", bound, after) for other, after in _others(sentence, then))


def _count_first(sentence: Sentence, at: int) -> Tests:
    """ "more than 5 transactions of the card in an hour", "3 or more users on the device in 30 days" """
    for figure, after in _counted(sentence, at):  # "known fraud on the device"
        start = sentence.skipped(after, ("is", "be", "seen", "known", "confirmed", "already"))
        is_verdict = start == at + 1 and sentence.is_word(at, "fraud")  # "(this is) fraud on the card"
        is_verdict = is_verdict and not (at > 1 and sentence.is_word(at - 2, "there"))  # "there is fraud on the card"
        if figure != "count" and not is_verdict:
            yield from _of_entity(sentence, figure, limit(Op.ABOVE, 0.0), start)
    for bound, after in bounds(sentence, at, _SUM):  # "more than 20 million in 24 hours on the account"
        said = [figure for index in range(at, after) for figure, _ in numbers(sentence, index)]
        if any(figure.is_money or figure.scale > 1 for figure in said):
            of_all = sentence.skipped(0) == at  # "a purchase over $500 on the device in 24 hours" may be one of them
            yield from (_of_entity if of_all else _in_window_of_entity)(sentence, "sum", bound, after)
    for bound, after in _numbers_of(sentence, at):
        counted = [(figure, then, True) for figure, then in _counted(sentence, after)]
        differ = sentence.is_one_of(after, _DIFFERENT) or sentence.is_word(at - 1, "(")
        counted += [(f"distinct_{other}", then, differ) for other, then in _others(sentence, after)]
        starts = at == 0 or sentence.tokens[at - 1].kind is Kind.SIGN or sentence.is_one_of(at - 1, _BEFORE_COUNT)
        if starts and _is_count_of_window(sentence, at, after):
            counted.append(("count", after, True))
        for figure, then, may_be_of_subject in counted:
            yield from _of_entity(sentence, figure, bound, then)
            stranger = any(sentence.is_one_of(index, PEOPLE) and not sentence.entity(index) for index in range(at))
            if may_be_of_subject and not stranger and (subject := sentence.only_before(at)) is not None:
                # "(a card with ...,) 3+ different stores in 24 hours"
                yield from _each(sentence, ([subject], "all"), figure, bound, then)
    if (subject := sentence.only_before(at)) is not None:  # "(a new card,) no history in the last 30 days"
        for after in sentence.after_one_of(at, phrases("no_history")):
            yield from _each(sentence, ([subject], "all"), "count", _IS_ZERO, after)


def _share_first(sentence: Sentence, at: int) -> Tests:
    """ "more than half of the device's transactions in the last 30 days are known fraud" """
    for bound, after in bounds(sentence, at, _SHARE):
        for entity, hours, start in _transactions_of(sentence, after + 1) if sentence.is_word(after, "of") else ():
            kept = sentence.vocabulary.windows.get(f"{entity}_known_fraud_share", {})
            said = [(bound(kept[hours].name), start)] if hours in kept else ()
            for condition, last in said or _each(sentence, ([entity], "all"), "known_fraud_share", bound, start):
                end = sentence.skipped(last, words("turned_out"))
                if end > last and sentence.is_word(end, "fraud", "fraudulent"):
                    yield condition, end + 1


def _transactions_of(sentence: Sentence, at: int) -> Iterator[tuple[str, float | None, int]]:
    """ "the card's transactions", "what the card bought", "the last 30 days' payments": an entity, and its window"""
    transactions, only = TRANSACTIONS | {"label", "case"}, sentence.only_before(at)
    subject = [(only, sentence.skipped(at))] if only is not None else []
    for entity, after in dict.fromkeys([*sentence.owner(at), *subject]):
        if sentence.is_one_of(after, transactions):
            yield entity, None, after + 1
    for entity, after in sentence.entity(at + 1) if sentence.is_word(at, "what") else ():
        if sentence.is_one_of(verb := sentence.skipped(after, ("has",)), _SPENT | _DID):
            yield entity, None, verb + 1
    for hours, after in _window(sentence, at) if only is not None else ():
        if sentence.is_one_of(end := after + sentence.is_word(after, "'s"), transactions):
            yield str(only), hours, end + 1


def _of_entity(sentence: Sentence, figure: str, bound: Bound, at: int) -> Tests:
    """The entity of a count and the window, in either order: "of the card in an hour", "in an hour on the card"."""
    linking = BELONGS | _MET
    place = sentence.skipped(at, linking)
    for entities, after in sentence.entities(sentence.skipped(place)) if place > at else ():
        yield from _each(sentence, entities, figure, bound, after)
    yield from _in_window_of_entity(sentence, figure, bound, at)


def _in_window_of_entity(sentence: Sentence, figure: str, bound: Bound, at: int) -> Tests:
    """ "in an hour on the card" """
    for hours, then in _window(sentence, at):
        start = sentence.skipped(then, BELONGS | _MET)
        for name, end in sentence.entity(sentence.skipped(start)) if start > then else ():
            if (fact := sentence.vocabulary.windows.get(f"{name}_{figure}", {}).get(hours)) is not None:
                yield bound(fact.name), end


@remembered
def _counted(sentence: Sentence, at: int) -> Iterator[tuple[str, int]]:
    """What is counted before a window: transactions or known frauds."""
    place = sentence.skipped(at, ("successful", "separate", "other", "earlier", "previous", "prior", "past"))
    if sentence.is_one_of(place, TRANSACTIONS):
        yield "count", place + 1
    for start in {place, sentence.skipped(at, words("of_known_frauds"))}:
        for after in sentence.after_one_of(start, phrases("known_fraud_cases")):
            if sentence.said(start, after) not in sentence.vocabulary.nouns:  # such as a column of chargebacks
                yield "known_frauds", after


def _others(sentence: Sentence, at: int) -> list[tuple[str, int]]:
    """The entities that are counted: "different stores"."""
    is_another = sentence.is_one_of(at, _DIFFERENT) and sentence.is_word(at - 1, "a", "an", "no", "any", "not")
    if is_another or sentence.is_word(at, "other") or sentence.is_word(at - 1, "another"):
        return []  # "used by a different user": different from this one
    return sentence.entity(sentence.skipped(at, _DIFFERENT))


def _each(sentence: Sentence, entities: Entities, figure: str, bound: Bound, at: int) -> Tests:
    """One test for each of the entities, with the window that follows."""
    names, how = entities
    kept = [sentence.vocabulary.windows.get(f"{name}_{figure}", {}) for name in names]
    needs_none = figure.startswith("known") or (figure != "sum" and _is_several(bound))
    on_it = {at, *sentence.after_one_of(at, phrases("on_it"))}  # "no fraud on it in the last month"
    said = [window for place in on_it for window in _window(sentence, place)]
    said += _no_window(sentence, at, kept) if needs_none else ()
    for hours, end in said:
        if all(hours in facts for facts in kept):
            tests = [bound(facts[hours].name) for facts in kept]
            if how == "none":
                tests = [_none_of(test) for test in tests]
            yield Condition.any_of(tests) if how == "any" else Condition.all_of(tests), end


def _no_window(sentence: Sentence, at: int, windows: Sequence[dict[float, Fact]]) -> Iterator[tuple[float, int]]:
    """The longest window, where none is said and the words of the count end here."""
    end = _after_ever(sentence, at)
    token = sentence.token(end)
    ends = token is None or token.kind is Kind.SIGN or sentence.is_one_of(end, _AFTER_EVER)
    longest = max((hours for kept in windows for hours in kept), default=0.0)
    if ends and _needs_no_window(sentence, end, longest):
        yield longest, end


def _is_several(bound: Bound) -> bool:
    """Whether a bound is more than "a", "any" or "no". "A card with a payment over 500" speaks of this payment."""
    return bound("count") not in {_IS_ZERO("count"), limit(Op.ABOVE, 0.0)("count"), limit(Op.AT_LEAST, 1.0)("count")}


def _none_of(condition: Condition) -> Condition:
    """The opposite of a test of a count. A count that is not above 0 is 0."""
    negated = condition.negated()
    match negated.parts:
        case [Test(fact, Op.AT_MOST, 0.0) | Test(fact, Op.BELOW, 1.0)]:
            return _IS_ZERO(fact)
    return negated


_AGAIN, _QUIET, _MOVED = words("again"), words("quiet"), words("moved")
_LAST_PLACE = phrases("last_place")
_SPEEDS = ("km/h", "kph", "kmh")
_DURATION = Fact("", "number", Measure.HOURS)
_DISTANCE = Fact("", "number", Measure.KM)
_OF_ENTITY = ("of", "on", "by", "with", "from")
_AGO = ("ago", "earlier", "back")
_SEEN, _COMES = words("seen"), words("comes_back")
_PAIR_LINKS, _WITH_NEW = words("pair_links"), words("with_new")


def last_event_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of the time, the distance and the speed since the last transaction of an entity."""
    for entity, bound, end in _times_since_last(sentence, at):
        if (name := f"{entity}_hours_since_last") in sentence.vocabulary.facts:
            yield bound(name), end
    for start in sentence.after(sentence.skipped(at), "hour since", "time since"):
        for entity, then in sentence.owner(sentence.skipped(start)):  # "hours since the card's last use are below 2"
            fact = sentence.vocabulary.facts.get(f"{entity}_hours_since_last")
            if fact is not None and (last := _last_transaction(sentence, then)) is not None:
                yield from _is_bounded(sentence, fact, last)
    for entity, after in sentence.owner(at):
        yield from _moved(sentence, entity, after)
    if (only := sentence.only_before(at)) is not None and (speed := _from_last(sentence, only, "kmh")) is not None:
        for condition, end in bounded(sentence, at, speed):  # "(a card used in two places,) faster than 900 km/h"
            if sentence.is_one_of(end - 1, _SPEEDS):
                yield condition, end
    yield from _distance_first(sentence, at)


# --- the time since the last transaction ---


def _times_since_last(sentence: Sentence, at: int) -> Iterator[tuple[str | None, Bound, int]]:
    """An entity, what is said of the time since its last transaction, and the place after that."""
    for entity, after in sentence.owner(at):
        yield from ((entity, bound, end) for bound, end in _was_ago(sentence, after))
        yield from ((entity, bound, end) for bound, end in _is_back(sentence, after))
    for entity, after in sentence.entity(at):
        yield from ((entity, bound, end) for bound, end in _is_silent(sentence, after))
    for entity, after in sentence.entity(at + 1) if sentence.is_one_of(at, _QUIET) else ():
        start = after + sentence.is_word(after, ",", ":")  # "a dormant card, nothing for 60 days"
        for then in sentence.after_one_of(start, phrases("nothing")):
            yield from ((entity, bound, end) for bound, end in _for_long(sentence, then))
    for entity, after in _last_of_entity(sentence, at):
        yield from ((entity, bound, end) for bound, end in _ago(sentence, after, _AGO))
    yield from _duration_first(sentence, at)
    first = sentence.skipped(at)  # "second payment in less than 3 minutes on the card"
    if sentence.is_word(first, "second") and sentence.is_one_of(first + 1, TRANSACTIONS):
        for bound, end in _within(sentence, sentence.skipped(first + 2, ("in",))):
            yield from ((entity, bound, then) for entity, then in _owner_after(sentence, end))
        for entity, then in sentence.entity(sentence.skipped(first + 2, BELONGS)):
            yield from ((entity, bound, end) for bound, end in _within(sentence, then))


def _within(sentence: Sentence, at: int) -> Bounds:
    """The most that a period in words may be; a plain number, as in "under 500", is no period."""
    for bound, end in _only_upper(bounds(sentence, at, _DURATION)):
        if sentence.has_word(at, end, *HOURS):
            yield bound, end


def _was_ago(sentence: Sentence, at: int) -> Bounds:
    """ "(the card's) last transaction was less than an hour ago" """
    last = _last_transaction(sentence, at) or _last_transaction(sentence, sentence.skipped(at, ("has",)))
    if last is not None:
        yield from _ago(sentence, last, (*_AGO, "before", "old"))
    place = sentence.skipped(at, ("that", "which", "who", "is", "has", "be"))
    for used in sentence.after_one_of(place, phrases("last_used")):
        yield from _ago(sentence, used, _AGO)
    made = sentence.skipped(sentence.skipped(at, _HAS | _DID), DETERMINERS | {"another"})
    if made > at and sentence.is_one_of(made, TRANSACTIONS | {"something"}):  # "made a payment 10 minutes ago"
        yield from _only_upper(_ago(sentence, made + 1, _AGO))


def _only_upper(said: Bounds) -> Bounds:
    """Those bounds that say "less than": a transaction more than an hour ago need not be the last one."""
    for bound, end in said:
        if all(isinstance(leaf, Test) and leaf.op in (Op.BELOW, Op.AT_MOST) for leaf in bound("gap").leaves):
            yield bound, end


def _ago(sentence: Sentence, at: int, ago: tuple[str, ...]) -> Bounds:
    """ "is less than an hour ago", of the last transaction of an entity"""
    for place in sentence.after_be(at):
        for bound, end in bounds(sentence, place, _DURATION):
            if sentence.is_one_of(end, ago):
                yield bound, end + 1


def _is_back(sentence: Sentence, at: int) -> Bounds:
    """ "(the card is) back within an hour of its last transaction" """
    again = sentence.skipped(at, _AGAIN)
    for bound, start in _durations_after(sentence, again):
        if (end := _last_transaction(sentence, start)) is not None:
            yield bound, end
    if sentence.is_word(again - 1, "again", "back") and sentence.is_word(again, "within"):
        yield from bounds(sentence, again, _DURATION)


def _is_silent(sentence: Sentence, at: int) -> Bounds:
    """ "(merchant) quiet for more than 60 days", "(card) not used for a week" """
    place = sentence.skipped(at, ("who", "that", "which", "is", "has", "be"))
    for unused in sentence.after_one_of(place, phrases("not_used")):
        if sentence.is_word(unused, "for"):
            yield from _for_long(sentence, unused + 1)
    if sentence.is_one_of(place, _QUIET):
        yield from _for_long(sentence, place + 1 + sentence.is_word(place + 1, "for"))


def _for_long(sentence: Sentence, at: int) -> Bounds:
    """ "over 60 days", "a month", "the last 60 days": how long nothing happened at least"""
    yield from bounds(sentence, at, _DURATION)
    for figure, end in figures(sentence, sentence.skipped(at, _LAST | {"the"})):
        if figure.unit in HOURS and not figure.at_least:
            yield limit(Op.AT_LEAST, time_in(Measure.HOURS, figure.value, figure.unit)), end


def _last_of_entity(sentence: Sentence, at: int) -> Iterator[tuple[str, int]]:
    """The entity of "the last transaction (of the card)": the one after it, or the only one that was spoken of."""
    if (last := _last_transaction(sentence, at)) is None:
        return
    if sentence.is_one_of(last, _OF_ENTITY):
        yield from sentence.entity(last + 1)
    if (only := sentence.only_before(at)) is not None:
        yield only, last


def _duration_first(sentence: Sentence, at: int) -> Iterator[tuple[str | None, Bound, int]]:
    """ "within an hour of the card's last transaction", "less than a day after its last transaction" """
    for bound, start in _durations_after(sentence, at):
        last = _last_transaction(sentence, start)
        if last is not None and sentence.is_word(start, "its", "their", "the"):
            yield sentence.only_before(at), bound, last
        for entity, then in sentence.owner(sentence.skipped(start)):
            if (end := _last_transaction(sentence, then)) is not None:
                yield entity, bound, end
        if last is not None and sentence.is_one_of(last, _OF_ENTITY):  # "since the last transaction of the card"
            yield from ((entity, bound, end) for entity, end in sentence.entity(last + 1))


def _durations_after(sentence: Sentence, at: int) -> Bounds:
    """A duration with the place after "of", "since" and the like, which must follow."""
    for bound, end in bounds(sentence, at, _DURATION):
        if sentence.is_one_of(end, words("after_event")):
            yield bound, end + 1


def _last_transaction(sentence: Sentence, at: int) -> int | None:
    """The place after "its last transaction"."""
    place = sentence.skipped(at)
    if sentence.is_word(place, "before") and sentence.is_word(place - 1, "one"):
        return place + 1  # "the one before"
    if not sentence.is_word(place, "last", "previous", "latest", "preceding", "prior"):
        return None
    named = sentence.is_one_of(place + 1, TRANSACTIONS) or sentence.is_word(place + 1, "one", "use", "activity")
    return place + 2 if named else None


# --- the way from the last place ---


def _moved(sentence: Sentence, entity: str, at: int) -> Tests:
    """ "(the card) travelled at over 900 km/h", "(the card's) last place is more than 500 km away" """
    tokens, place = sentence.tokens, sentence.skipped(at, _MOVED)
    if (distance := _from_last(sentence, entity, "km")) is not None:
        last_transaction = _last_transaction(sentence, at) or at
        for last in (*sentence.after_one_of(sentence.skipped(at), _LAST_PLACE), last_transaction):
            for condition, end in _is_bounded(sentence, distance, last) if last > at else ():
                away = sentence.is_word(end, "away", "off", "apart")
                if away or last != last_transaction:  # "the last payment was over 2000" is no distance
                    yield condition, end + away
    if (speed := _from_last(sentence, entity, "kmh")) is not None:
        for condition, end in bounded(sentence, place, speed):
            if sentence.has_word(place, end, *_SPEEDS):
                yield condition, _after_last(sentence, end)
    for condition, end in bounded(sentence, place, distance) if distance is not None else ():
        final = _after_last(sentence, end + sentence.is_word(end, "away", "off"))
        if tokens[end - 1].text in KILOMETRES and final > end:
            yield condition, final
        if tokens[end - 1].text in KILOMETRES and sentence.is_word(end, "away"):
            gap = f"{entity}_hours_since_last"
            for bound, last in _ago(sentence, end + 1, _AGO) if gap in sentence.vocabulary.facts else ():
                yield Condition.all_of([condition, bound(gap)]), last


def _distance_first(sentence: Sentence, at: int) -> Tests:
    """ "the distance from the card's last place is above 500 km", "more than 500 km from the card's last place" """
    for word, unit in (("distance", "km"), ("speed", "kmh")):
        for start in sentence.after(sentence.skipped(at), word):
            for entity, after in _owner_after(sentence, start):
                if (fact := _from_last(sentence, entity, unit)) is not None:
                    yield from _is_bounded(sentence, fact, _after_place(sentence, after))
    for bound, end in bounds(sentence, at, _DISTANCE):
        if sentence.tokens[end - 1].text not in KILOMETRES:
            continue
        away = end + sentence.is_word(end, "away", "off")
        only, past = sentence.only_before(at), sentence.has_word(0, at, "last", "ago", "previous")
        if only is not None and past and (fact := _from_last(sentence, only, "km")) is not None:
            yield from ((bound(fact.name), end) for end in sentence.after(away, "from here"))
        for start in sentence.after(away, "from where"):  # "from where it was last used"
            it = [(only, start + 1)] if only is not None and sentence.is_word(start, "it") else []
            for entity, then in [*sentence.entity(start), *it]:
                last = sentence.after_one_of(sentence.skipped(then, ("is", "be")), phrases("last_used"))
                if (fact := _from_last(sentence, entity, "km")) is not None and last:
                    yield bound(fact.name), last[0]
    yield from _since_last(sentence, at)


def _since_last(sentence: Sentence, at: int) -> Tests:
    """ "500 km away from the card's last place", "900 km/h since its last payment" """
    for unit, measure, signs in (("km", Measure.KM, KILOMETRES), ("kmh", Measure.KMH, _SPEEDS)):
        for bound, end in bounds(sentence, at, Fact("", "number", measure)):
            start = end + sentence.is_word(end, "away", "off")
            is_from = sentence.tokens[end - 1].text in signs and sentence.is_word(start, "from", "since")
            for entity, after in _owner_after(sentence, start + 1) if is_from else ():
                final = _last_transaction(sentence, after) or sentence.past(after, *_LAST_PLACE)
                if (fact := _from_last(sentence, entity, unit)) is not None and final > after:
                    yield bound(fact.name), final


def _from_last(sentence: Sentence, entity: str, unit: str) -> Fact | None:
    return sentence.vocabulary.facts.get(f"{entity}_{unit}_from_last")


def _is_bounded(sentence: Sentence, fact: Fact, at: int) -> Tests:
    for place in sentence.after_be(at):
        yield from bounded(sentence, place, fact)


def _after_last(sentence: Sentence, at: int) -> int:
    """The place after "since its last transaction" or "from its last place", if that follows."""
    place = sentence.skipped(at, ("since", "from", "of", "than"))
    if place == at:
        return at
    if (end := _last_transaction(sentence, place)) is not None:
        return end
    start = sentence.skipped(place)
    return _after_place(sentence, start) if sentence.is_word(start, "last") else at


def _after_place(sentence: Sentence, at: int) -> int:
    return max(sentence.after_one_of(at, _LAST_PLACE), default=sentence.past(at, "last transaction"))


# --- whether an entity was seen before ---


@remembered
def _newness(sentence: Sentence, at: int) -> Iterator[tuple[str, bool, int]]:
    """An entity, whether it was never seen, and the place after: "a new card", "a card we have seen before"."""
    place = sentence.skipped(at)
    for before, behind, is_new in _NEVER_SEEN:
        for after in sentence.after_one_of(place, before):
            yield from ((entity, is_new, end) for entity, end in sentence.entity(after))
        for entity, after in sentence.entity(at):
            for start in {after, sentence.skipped(after, words("is_seen"))}:
                yield from ((entity, is_new, end) for end in sentence.after_one_of(start, behind))


def _seen_tests(sentence: Sentence, at: int) -> Tests:
    """Whether an entity was never seen, which no fact of an entity that is not there tells.

    Beside another entity, it may be new to that one only, so nothing is read: "the user pays from a new device".
    """
    for entity, is_new, end in _newness(sentence, at):
        since = f"{entity}_hours_since_last"
        kept = sentence.vocabulary.windows.get(f"{entity}_count", {})
        if not kept or since not in sentence.vocabulary.facts or _has_own_age(sentence, at, end):
            continue
        others = {name for index in range(at) for name, _ in sentence.entity(index)}
        others -= {entity, *(name for index in range(at) for name, _, _ in _newness(sentence, index))}
        if others or _is_new_to_next(sentence, end):
            continue
        unseen = [Test(kept[max(kept)].name, Op.IS, 0.0), Test(since, Op.MISSING)]
        yield Condition.of(*unseen) if is_new else Condition.of(Test(since, Op.KNOWN)), end


def _has_own_age(sentence: Sentence, start: int, end: int) -> bool:
    """Whether words here are a flag, or name what has an age: "a new device", "a new account"."""
    vocabulary = sentence.vocabulary
    said = tuple(word for word in sentence.said(start, end) if word not in DETERMINERS)
    return said in vocabulary.flags or any((word,) in age.age_of for age in vocabulary.ages for word in said)


def _is_new_to_next(sentence: Sentence, at: int) -> bool:
    """Whether another entity follows, to which an entity may be new: "a new card and a new user for the device"."""
    while sentence.is_word(at, "and", "or", ",", "+") and (more := _newness(sentence, at + 1)):
        at = max(end for _, _, end in more)
    link = sentence.skipped(at, BELONGS | _PAIR_LINKS)
    return link > at and bool(sentence.entity(link))


# --- whether two entities have met ---


def new_pair_tests(sentence: Sentence, at: int) -> Tests:
    """Every test of whether an entity is new, or new to another one, that begins here."""
    yield from _seen_tests(sentence, at)
    for entity, after in sentence.entity(at):
        yield from _is_new_to(sentence, entity, after, sentence.only_before(at))
        yield from _was_seen(sentence, entity, after)
        yield from _never_seen(sentence, entity, after)
        place = sentence.skipped(sentence.skipped(after, _WITH_NEW))
        if place > after:  # "(a card) with a new device"
            yield from _new_ones(sentence, entity, place)
    yield from _new_first(sentence, at)
    yield from _comes_with_new(sentence, at)


def _is_new_to(sentence: Sentence, entity: str, at: int, before: str | None = None) -> Tests:
    """ "(a card) that is not new to the merchant", or to "it", the one that was spoken of before"""
    start, negated = _after_not(sentence, at)
    is_new = sentence.is_word(start, "new", "unknown")
    if is_new and sentence.is_word(start + 1, "to", "for", "on", "at", "with"):
        it = [(before, start + 3)] if before is not None and sentence.is_word(start + 2, "it") else []
        for other, end in it or sentence.entity(start + 2):
            yield from _is_new(sentence, other, entity, not negated, end)


def _was_seen(sentence: Sentence, entity: str, at: int) -> Tests:
    """ "(a card) seen at the merchant before" """
    place = sentence.skipped(at, ("is", "has", "be", "already", "we", "that", "which", "who"))
    already = sentence.is_word(place - 1, "already")
    seen = place + (sentence.is_word(place, "known") or sentence.is_one_of(place, _SEEN))
    met = seen + sentence.is_word(seen, "with", "at", "on", "by", "to", "from")
    for other, end in sentence.entity(met) if met > at else ():
        pair = _user_first(sentence, entity, other, met)
        if (final := _after_before(sentence, end)) > end or (already and seen > place):
            yield from _is_new(sentence, *pair, False, final)
        for final in sentence.after(end, "for the first time"):
            yield from _is_new(sentence, *pair, True, final)


def _never_seen(sentence: Sentence, entity: str, at: int) -> Tests:
    """ "(a card) never seen at the merchant before", "(a card) that was not used with this device" """
    start, negated = _after_not(sentence, at)
    start = sentence.skipped(start, ("be",))
    never = sentence.is_word(start, "never")
    if not never and not (negated and sentence.is_one_of(start, _SEEN)):
        return
    met = sentence.skipped(sentence.skipped(start + never, _SEEN | {"is", "be"}), _PAIR_LINKS)
    for other, end in sentence.entity(met):
        yield from _is_new(sentence, *_user_first(sentence, entity, other, met), True, _after_before(sentence, end))


def _user_first(sentence: Sentence, entity: str, other: str, at: int) -> tuple[str, str]:
    """Two entities that have met. After "by", the other one is the one that has seen or used the first."""
    return (other, entity) if sentence.is_word(at - 1, "by") else (entity, other)


def _new_ones(sentence: Sentence, entity: str, at: int) -> Tests:
    """ "a new card and a new device", of an entity"""
    place = sentence.skipped(at)
    for other, end in sentence.entity(place + 1) if sentence.is_word(place, "new") else ():
        for first, after in _is_new(sentence, entity, other, True, end):
            yield first, after
            for more, final in _new_ones(sentence, entity, after + 1) if sentence.is_word(after, "and") else ():
                yield Condition.all_of([first, more]), final


def _comes_with_new(sentence: Sentence, at: int) -> Tests:
    """ "comes back with a new device", of the only entity that was spoken of"""
    negated = sentence.is_word(at, "not")
    place = sentence.skipped(at + negated, _COMES)
    subject = sentence.subject(at)
    if subject is None or (negated and place > at + 1):
        return
    if sentence.is_word(place, "with", "on", "using", "from", "at"):
        for condition, end in _new_ones(sentence, subject, place + 1):
            if len(condition.parts) == 1 or not negated:
                yield condition.negated() if negated else condition, end
    if sentence.is_word(at, "is"):  # "(the merchant ...) and is new to the card"
        yield from _is_new_to(sentence, subject, at)
    if sentence.is_word(at, "is", "has"):  # "(the card ...) and has not been used in this store"
        yield from _never_seen(sentence, subject, at)
        yield from _was_seen(sentence, subject, at)


def _new_first(sentence: Sentence, at: int) -> Tests:
    """ "a new device for the card" """
    for start in sentence.after(sentence.skipped(at), "new"):
        for entity, after in sentence.entity(start):
            link = sentence.skipped(after, ("for", "to", "on", "with", "of"))
            for other, end in sentence.entity(link) if link > after else ():
                yield from _is_new(sentence, other, entity, True, end)
    for start in sentence.after(sentence.skipped(at), "first time", "first visit"):
        for entity, after in sentence.entity(sentence.skipped(start, ("that", "of", "for", "by"))):
            met = sentence.skipped(after, _COMES | _SEEN | {"up", "is"})
            link = sentence.skipped(met, _PAIR_LINKS)  # "first time the card shows up at this store"
            for other, end in sentence.entity(link) if link > after else ():
                yield from _is_new(sentence, *_user_first(sentence, entity, other, link), True, end)
        link = sentence.skipped(start, _PAIR_LINKS)
        for other, end in sentence.entity(link) if link > start else ():  # "first time at the store"
            subject = sentence.only_before(at)
            pairs = [name for name in set(sentence.vocabulary.entities.values()) if _pair(sentence, name, other)]
            if subject is not None or len(pairs) == 1:
                yield from _is_new(sentence, subject or pairs[0], other, True, end)


def _after_not(sentence: Sentence, at: int) -> tuple[int, bool]:
    """The place after "is" or "is not", and whether "not" was there."""
    place = sentence.skipped(at, ("is", "has", "that", "which", "be", "we", "you", "do"))
    negated = sentence.is_word(place, "not")
    return place + negated, negated


def _is_new(sentence: Sentence, entity: str, other: str, holds: bool, end: int) -> Tests:
    """Whether the other is new to an entity. Both have met or not, so the fact of the other side will do too.

    They differ only where the busier one has forgotten the other, so the entity that was spoken of comes first.
    """
    for name in _pair(sentence, entity, other)[:1]:
        yield Condition.of(Test(name, Op.IS, holds)), end


def _pair(sentence: Sentence, entity: str, other: str) -> list[str]:
    """The facts that tell whether two entities have met."""
    names = (f"{entity}_new_{other}", f"{other}_new_{entity}")
    return [name for name in names if name in sentence.vocabulary.facts]


def _after_before(sentence: Sentence, at: int) -> int:
    return at + sentence.is_word(at, "before", "previously", "earlier", "yet", "until")
