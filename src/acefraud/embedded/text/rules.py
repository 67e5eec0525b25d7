"""Rules: a phrase, written as a regular expression with ``{money}`` and the like in it, and the facts it states."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from acefraud.core.transaction import FactValue

from .figures import MARKERS, Figure
from .page import Page
from .phrases import Phrase, phrase, words

_FIGURES = f"{MARKERS['money']}-{MARKERS['identifier']}"
PLACEHOLDERS: dict[str, str] = {f"{{{kind}}}": marker for kind, marker in MARKERS.items()} | {
    "{sum}": f"[{MARKERS['money']}{MARKERS['count']}]",
    "{number}": f"[{MARKERS['count']}{MARKERS['count_range']}]",
    "{ago}": rf"(?:{MARKERS['duration']} (?:ago|earlier|before|prior|back)\b|{MARKERS['day_word']})",
    "{about}": r"(?:(?:only|just|about|around|approx\.?|approximately|roughly|some|over|under|nearly|almost|barely"
    r"|less than|more than|at least|near|close to|in the region of) |~ ?){0,2}",
    "{window}": rf"(?: (?:were |was |made |filed |all )?(?:in|within|over|during) (?:the |a |just |only |under )*"
    rf"(?:last |past |previous |preceding )?{MARKERS['duration']}| annually| (?:a|per|each) year)?",
    "{gap}": rf"[^.,;!?\n{_FIGURES}]{{0,40}}?",
    "{money_list}": rf"{MARKERS['money']}(?:(?:,? and |, ?| ?; ?| ?/ ?| ?-?> ?|,? then |,? up"
    rf" to ){MARKERS['money']}){{1,60}}",
}


def expand(pattern: str) -> str:
    """A pattern with its placeholders filled in."""
    for name, meaning in PLACEHOLDERS.items():
        pattern = pattern.replace(name, meaning)
    return pattern


class Found(NamedTuple):
    """One match of a rule and the figures within it, in order."""

    match: re.Match[str]
    within: list[Figure]

    def figures(self, *kinds: str) -> list[Figure]:
        """The figures of these kinds within the match, in order."""
        return [figure for figure in self.within if figure.kind in kinds]


Getter = Callable[[Found], FactValue | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One way in which facts are said. A rule without facts sets figures aside that would mislead later rules."""

    phrase: Phrase
    facts: tuple[tuple[str, FactValue | Getter], ...]
    unless: Phrase | None
    """Words in the same comma-separated piece, up to the end of the match, that make it speak of something else."""
    tier: int

    def read(self, page: Page) -> None:
        """Note on the page what this rule finds there."""
        matches = page.matches(self.phrase)
        if not matches:
            return
        unless = self.unless.regex if self.unless and page.may_hold(self.unless) else None
        for match in matches:
            start, end = match.span()
            within = page.free_figures(start, end)
            if within is None:
                continue
            if unless and unless.search(page.plain, page.segment_start(start), end):
                continue
            found = Found(match, within)
            currency = min((figure.currency for figure in found.figures("money", "money_range")), default="")
            for fact, value in self.facts:
                said = value(found) if callable(value) else value
                if said is not None:
                    page.claim(fact, said, start, end, tier=self.tier, currency=currency)
            if not self.facts:
                page.take(start, end)


def rule(pattern: str, *, unless: str = "", tier: int = 0, **facts: FactValue | Getter) -> Rule:
    """State a rule: ``rule("rated {rating}", merchant_rating=middle("rating"))``."""
    stop = words(expand(unless)) if unless else None
    return Rule(phrase(expand(pattern)), tuple(facts.items()), stop, tier)


def middle(*kinds: str, place: int = 0) -> Getter:
    """The value of the match's first figure of a kind (of a range: its middle)."""

    def get(found: Found) -> FactValue | None:
        figures = found.figures(*kinds)
        return round(figures[place].middle, 6) if len(figures) > place else None

    return get


def count_or_none_at_all(found: Found) -> FactValue | None:
    """The count in the match; a phrase that says "no" or "never" instead counts as zero."""
    figures = found.figures("count", "count_range")
    return figures[0].middle if figures else 0.0


days = middle("duration", "day_word")
count = middle("count", "count_range")


def read_all(rules: Iterable[Rule], page: Page) -> None:
    """Apply rules in their order: an earlier one takes the figures that it understands."""
    for one in rules:
        if page.may_begin(one.phrase):
            one.read(page)
