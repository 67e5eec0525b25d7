"""From text to facts: every theme reads the page, then what was said is settled and what follows from it is added."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from acefraud.core.transaction import FactValue

from .ages_and_counts import read_ages, read_counts, read_history
from .clock import is_night, read_clock
from .flags import read_flags
from .log_lines import read_log_lines
from .merchant import read_categories, read_merchant
from .money import read_amount, read_usual
from .multiples import read_multiples
from .pace import read_pace
from .page import Claim, Page
from .places import read_places

_QUOTED = re.compile(r'"([^"\n]{1,300})"')
_ONE_FIGURE = frozenset({"amount", "hour"})
"""A transaction has one of these: a vaguer mention of another value is something that was not understood."""
_BURST_COUNT, _BURST_MINUTES = 5, 60
_LONGEST_PIECE = 200
_AROUND_PIECE = " ,;|/-\n"
_JOINT = re.compile(r"[ ,](?:and|while|with) ")
"""Where one statement of a sentence is joined to the next."""
_NAMES = frozenset({"identifier", "factor"})
"""Kinds of figure that name something and count nothing."""


@dataclass(frozen=True, slots=True)
class TextFacts:
    """What a text says, what could not be read in it, and where each fact was found."""

    facts: dict[str, FactValue]
    unread: tuple[str, ...] = ()
    """Pieces with a figure, a time or a quoted claim that were not understood, or that contradict each other."""
    spans: tuple[tuple[str, int, int], ...] = ()
    """Fact, start and end in the text. A fact that follows from others has no span."""


def read_facts(text: str) -> TextFacts:
    """The facts that a text states.

    >>> read_facts("Customer attempts a $300 purchase at 3:15 AM. No VPN.").facts
    {'amount': 300.0, 'hour': 3.25, 'vpn': False, 'night': True}
    """
    page = Page(text)
    # The more special wording reads first and takes its figures, so that the plainer wording cannot misuse them.
    for theme in (
        read_log_lines,
        read_merchant,
        read_ages,
        read_multiples,
        read_usual,
        read_counts,
        read_pace,
        read_amount,
        read_history,
        read_clock,
        read_flags,
        read_categories,
        read_places,
    ):
        theme(page)
    facts, used, disputed = _settle(page.claims)
    _derive(facts, {claim.fact: claim.currency for claim in used})
    spans = tuple((claim.fact, *page.origins(claim.start, claim.end)) for claim in used)
    return TextFacts(facts, _unread(page, disputed), spans)


def _settle(claims: list[Claim]) -> tuple[dict[str, FactValue], list[Claim], list[Claim]]:
    """One value per fact from its most explicit claims; where those contradict each other the fact stays unknown."""
    by_fact: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_fact[claim.fact].append(claim)
    facts: dict[str, FactValue] = {}
    used: list[Claim] = []
    disputed: list[Claim] = []
    for fact, said in by_fact.items():
        if len(said) == 1:
            facts[fact] = said[0].value
            used += said
            continue
        best = min(claim.tier for claim in said)
        explicit = [claim for claim in said if claim.tier == best]
        if len({claim.value for claim in explicit}) == 1:
            facts[fact] = explicit[0].value
            used += explicit
            if fact in _ONE_FIGURE:
                disputed += [claim for claim in said if claim.tier > best and claim.value != explicit[0].value]
        else:
            disputed += explicit
    return facts, used, disputed


def _derive(facts: dict[str, FactValue], currencies: dict[str, str]) -> None:
    """Facts that follow from others. What the text states itself is never overwritten, save night by the hour."""
    hour, amount = facts.get("hour"), facts.get("amount")
    if isinstance(hour, float):
        facts["night"] = is_night(hour)
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


def _unread(page: Page, disputed: list[Claim]) -> tuple[str, ...]:
    """The pieces with something in them that was not understood, in the order of the text and each once."""
    unknown = [
        place
        for place, figure, taken in zip(page.places, page.figures, page.taken, strict=True)
        if not taken and not figure.spelled and figure.kind not in _NAMES
    ]
    bounds = {claim.start: page.segment(claim.start) for claim in disputed}
    bounds |= {start: page.segment(start) for start, _ in page.doubts}
    bounds |= {start: page.clause(start) for start in _unread_quotes(page)}
    if unknown:
        claims = [(claim.start, claim.end) for claim in page.claims if page.figures_in(claim.start, claim.end)]
        bounds |= {place: _around(page, place, claims) for place in unknown if place not in bounds}
    pieces: dict[str, None] = {}
    for place in sorted(bounds):
        start, end = bounds[place]
        start, end = max(start, place - _LONGEST_PIECE), min(end, place + _LONGEST_PIECE)
        pieces[page.text[page.origin(start) : page.origin(end)].strip(_AROUND_PIECE)] = None
    return tuple(piece for piece in pieces if piece)


def _unread_quotes(page: Page) -> list[int]:
    """Where a quoted statement stands in which nothing was understood."""
    places: list[int] = []
    claimed = sorted(claim.start for claim in page.claims) if '"' in page.plain else []
    for match in _QUOTED.finditer(page.plain):
        wordy = match[1].count(" ") >= 2
        if wordy and not any(match.start() <= start < match.end() for start in claimed):
            places.append(match.start(1))
    return places


def _around(page: Page, place: int, claims: list[tuple[int, int]]) -> tuple[int, int]:
    """The phrase around a figure, without the figures beside it that were understood."""
    start, end = page.segment(place)
    start = max([start, *(last for _, last in claims if last <= place)])
    end = min([end, *(first for first, _ in claims if first > place)])
    for match in _JOINT.finditer(page.plain, start, end):
        if match.end() <= place:
            start = match.end()
        else:
            return start, match.start()
    return start, end
