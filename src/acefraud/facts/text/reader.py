"""From text to facts: each theme adds statements, conflicts between them are settled, and derived facts are added."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from acefraud.core.transaction import FactValue

from .document import Document, Statement
from .patterns import search_pattern
from .statements import part, read_log_lines, read_theme
from .themes import read_categories, read_flags, read_places

_QUOTED = re.compile(r'"([^"\n]{1,300})"')
_ONE_FIGURE = frozenset({"amount", "hour"})
"""A transaction has only one of these, so a less explicit mention of another value was not understood."""
_BURST_COUNT, _BURST_MINUTES = 5, 60
_LONGEST_PIECE = 200
_AROUND_PIECE = " ,;|/-\n"
_JOINT = re.compile(r"[ ,](?:and|while|with) ")
"""Where one part of a sentence is joined to the next."""
_NAMES = frozenset({"identifier", "factor"})
"""Kinds of figure that name something rather than count it."""
_LONE_STOP = search_pattern(part("not_now"))
_ELSEWHERE = search_pattern(part("other_event"))
# Two clock times in a row are opening hours or a habit.
_SPAN_AHEAD, _SPAN_BEHIND = search_pattern(r" ?(?:-|to|and) ?{clock}"), search_pattern(r"{clock} ?(?:-|to|and) ?$")


@dataclass(frozen=True, slots=True)
class TextFacts:
    """The facts that a text states, what was not understood, and where each fact was found."""

    facts: dict[str, FactValue]
    unread: tuple[str, ...] = ()
    """Parts with a figure, a time or a quote that were not understood, and statements that contradict each other."""
    spans: tuple[tuple[str, int, int], ...] = ()
    """Fact, start and end in the text. A fact that is derived from others has no span."""


def read_facts(text: str) -> TextFacts:
    """The facts that a text states.

    >>> read_facts("Customer attempts a $300 purchase at 3:15 AM. No VPN.").facts
    {'amount': 300.0, 'hour': 3.25, 'vpn': False, 'night': True}
    """
    document = Document(text)
    # The more specific wording reads first and takes its figures, so that the plainer wording cannot misuse them.
    read_log_lines(document)
    for theme in ("merchant", "ages", "multiples", "usual", "counts"):
        read_theme(theme, document)
    _read_amount(document)
    read_theme("history", document)
    for read in (_read_clock, read_flags, read_categories, read_places):
        read(document)
    facts, used, disputed = _settle(document.statements)
    _derive(facts, {statement.fact: statement.currency for statement in used})
    ends = [(said.fact, document.origin(said.start), document.origin(said.end)) for said in used]
    spans = tuple((fact, start, max(start, end)) for fact, start, end in ends)
    return TextFacts(facts, _unread(document, disputed), spans)


def _settle(statements: list[Statement]) -> tuple[dict[str, FactValue], list[Statement], list[Statement]]:
    """One value per fact, from its most explicit statements. If those contradict each other, the fact stays unknown."""
    by_fact: dict[str, list[Statement]] = defaultdict(list)
    for statement in statements:
        by_fact[statement.fact].append(statement)
    facts: dict[str, FactValue] = {}
    used: list[Statement] = []
    disputed: list[Statement] = []
    for fact, said in by_fact.items():
        best = min(statement.tier for statement in said)
        explicit = [statement for statement in said if statement.tier == best]
        if len({statement.value for statement in explicit}) == 1:
            facts[fact] = explicit[0].value
            used += explicit
            if fact in _ONE_FIGURE:
                disputed += [other for other in said if other.tier > best and other.value != facts[fact]]
        else:
            disputed += explicit
    return facts, used, disputed


def _derive(facts: dict[str, FactValue], currencies: dict[str, str]) -> None:
    """Add facts that follow from others. What the text states itself is kept, except that the hour decides on night."""
    hour, amount = facts.get("hour"), facts.get("amount")
    if isinstance(hour, float):
        facts["night"] = hour >= 23 or hour < 6
    for usual, ratio in (("usual_amount", "amount_to_usual"), ("usual_amount_max", "amount_to_usual_max")):
        base = facts.get(usual)
        one, other = currencies.get("amount", ""), currencies.get(usual, "")
        comparable = one == other or not one or not other
        if isinstance(amount, float) and isinstance(base, float) and base > 0 and comparable:
            facts.setdefault(ratio, round(amount / base, 4))
    many, minutes = facts.get("recent_transactions"), facts.get("recent_window_minutes")
    if isinstance(many, float) and isinstance(minutes, float) and many >= _BURST_COUNT and minutes <= _BURST_MINUTES:
        facts.setdefault("velocity", True)
    at_merchant = facts.get("purchases_at_merchant")
    if isinstance(at_merchant, float):
        facts.setdefault("first_time_merchant", at_merchant == 0)
    elif facts.get("first_time_merchant") is True:
        facts["purchases_at_merchant"] = 0.0
    if facts.get("prepaid_card") is True:
        facts.setdefault("payment_method", "prepaid card")


def _unread(document: Document, disputed: list[Statement]) -> tuple[str, ...]:
    """The parts that were not understood, in the order of the text and each once."""
    unknown = [
        at
        for at, figure, taken in zip(document.places, document.figures, document.taken, strict=True)
        if not taken and not figure.spelled and figure.kind not in _NAMES
    ]
    bounds = {statement.start: document.segment(statement.start) for statement in disputed}
    bounds |= {start: document.segment(start) for start, _ in document.doubts}
    bounds |= {start: document.clause(start) for start in _unread_quotes(document)}
    if unknown:
        spans = [(statement.start, statement.end) for statement in document.statements]
        statements = [span for span in spans if document.figures_in(*span)]
        bounds |= {at: _around(document, at, statements) for at in unknown if at not in bounds}
    pieces: dict[str, None] = {}
    for place in sorted(bounds):
        start, end = bounds[place]
        start, end = max(start, place - _LONGEST_PIECE), min(end, place + _LONGEST_PIECE)
        pieces[document.text[document.origin(start) : document.origin(end)].strip(_AROUND_PIECE)] = None
    return tuple(piece for piece in pieces if piece)


def _unread_quotes(document: Document) -> list[int]:
    """The positions of quotes in which nothing was understood."""
    understood = [statement.start for statement in document.statements]
    return [
        match.start(1)
        for match in _QUOTED.finditer(document.plain)
        if match[1].count(" ") >= 2 and not any(match.start() <= start < match.end() for start in understood)
    ]


def _around(document: Document, place: int, statements: list[tuple[int, int]]) -> tuple[int, int]:
    """The phrase around a figure, without the figures beside it that were understood."""
    start, end = document.segment(place)
    start = max([start, *(last for _, last in statements if last <= place)])
    end = min([end, *(first for first, _ in statements if first > place)])
    for match in _JOINT.finditer(document.plain, start, end):
        if match.end() <= place:
            start = match.end()
        else:
            return start, match.start()
    return start, end


def _read_amount(document: Document) -> None:
    """The amount of this transaction. A single sum that is left over counts if its clause speaks of nothing else.

    The usual amounts are read first and take their sums. The amount is then looked for among the sums that remain, from
    the most explicit wording to a sum on its own. Sums are not converted between currencies.
    """
    read_theme("amount", document)
    if any(statement.fact == "amount" for statement in document.statements):
        return
    left = [
        index for index, figure in enumerate(document.figures) if figure.kind == "money" and not document.taken[index]
    ]
    if len(left) != 1:
        return
    place = document.places[left[0]]
    start, end = document.clause(place)
    if _LONE_STOP.regex.search(document.plain[max(start, place - 200) : min(end, place + 200)]) is None:
        figure = document.figures[left[0]]
        document.add("amount", figure.middle, place, place + 1, tier=2, currency=figure.currency)


def _read_clock(document: Document) -> None:
    """The hour: said of the transaction, or the only clock times that no other pattern took."""
    read_theme("clock", document)
    for index, figure in enumerate(document.figures):
        if figure.kind != "clock" or document.taken[index]:
            continue
        place = document.places[index]
        before, after = document.plain[max(0, place - 6) : place], document.plain[place + 1 : place + 6]
        part_of_span = _SPAN_AHEAD.regex.match(after) or _SPAN_BEHIND.regex.search(before)
        if not part_of_span and not _ELSEWHERE.regex.search(document.plain, document.segment_start(place), place):
            document.add("hour", figure.low, place, place + 1, tier=1)
