"""Fact patterns: the entries of ``vocabulary/statements.toml``, by theme, and how they are read from a document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel

from acefraud.core.fact_names import NAMED_FACTS
from acefraud.core.transaction import FactValue

from .document import Document, Statement
from .figures import ALL_MARKERS, MarkedFigure, PatternText, fill, read_vocabulary
from .patterns import TextPattern, search_pattern, text_pattern


class Found(NamedTuple):
    """One match of a pattern and the figures within it, in order."""

    match: re.Match[str]
    within: list[MarkedFigure]

    def figures(self, *kinds: str) -> list[MarkedFigure]:
        """The figures of these kinds within the match, in order."""
        return [figure for figure in self.within if figure.kind in kinds]

    @property
    def counts(self) -> list[MarkedFigure]:
        """The counts within the match."""
        return self.figures("count", "count_range")

    @property
    def sums(self) -> list[MarkedFigure]:
        """The sums within the match."""
        return self.figures("money", "money_range")


Getter = Callable[[Found], FactValue | None]

_LONGEST_BURST_DAYS = 1.0
"""A count over more than a day is a habit, not a burst."""


def middle(*kinds: str) -> Getter:
    """Gets the first figure of these kinds in the match; of a range, its middle."""

    def get(found: Found) -> FactValue | None:
        figures = found.figures(*kinds)
        return round(figures[0].middle, 6) if figures else None

    return get


count, days = middle("count", "count_range"), middle("duration", "day_word")


def count_or_zero(found: Found) -> FactValue | None:
    """The count in the match, or zero if the match says "no" or "never" instead."""
    return found.counts[0].middle if found.counts else 0.0


def per_month(found: Found) -> FactValue | None:
    """The pace per month. A week is 7 of the month's 30 days."""
    pace = found.counts[0].middle
    return round(pace * 30 / 7, 2) if "week" in found.match[0] else pace


def nth_less_one(found: Found) -> FactValue | None:
    """The eighth purchase somewhere has seven before it."""
    return max(0.0, found.figures("ordinal")[0].low - 1)


def burst_days(found: Found) -> float | None:
    """The time that a burst took; None if it was too long for a burst."""
    span = days(found)
    return span if isinstance(span, float) and 0 < span <= _LONGEST_BURST_DAYS else None


def burst(found: Found) -> FactValue | None:
    """How many transactions a burst had."""
    return None if burst_days(found) is None else count(found)


def burst_minutes(found: Found) -> FactValue | None:
    """The minutes that a burst took."""
    span = burst_days(found)
    return None if span is None else round(span * 1_440, 2)


def highest(found: Found) -> float:
    """The highest sum."""
    return max(figure.high for figure in found.sums)


def mean(found: Found) -> FactValue | None:
    """The mean of all sums."""
    return round(sum(figure.middle for figure in found.sums) / len(found.sums), 2)


def half(found: Found) -> FactValue | None:
    """ "All under 200" names the top only; the middle of nothing and the top is the least bold reading of "usual"."""
    return highest(found) / 2


def climbs(found: Found) -> FactValue | None:
    """Four or more earlier sums, each above the one before, are an escalation even when nobody calls it so."""
    sums = [figure.middle for figure in found.figures("money")]
    rises = len(sums) >= 4 and all(low < high for low, high in pairwise(sums))
    return True if rises else None


def multiple(found: Found) -> FactValue | None:
    """How many times the one is the other, if only one figure says so."""
    figures = found.figures("multiple", "count")
    return figures[0].middle if len(figures) == 1 else None


def report_days(found: Found) -> FactValue | None:
    """The days in which fraud was reported, if it was."""
    return days(found) if count_or_zero(found) else None


def five_at_most(found: Found) -> FactValue | None:
    """A bare figure is a rating out of five only if it can be one."""
    figure = found.figures("count")[0]
    return figure.low if figure.low <= 5 else None


def is_from_23_to_6(found: Found) -> FactValue | None:
    """Whether two clock times are the bounds of the night."""
    return [figure.low for figure in found.figures("clock")] == [23.0, 6.0] or None


GETTERS: dict[str, Getter] = {
    "count": count,
    "days": days,
    "sum": middle("money", "count"),
    **{kind: middle(kind) for kind in ("money", "clock", "rating", "distance")},
}
for get in (count_or_zero, per_month, nth_less_one, burst, burst_minutes, highest, mean, half, climbs):
    GETTERS[get.__name__] = get
for get in (multiple, report_days, five_at_most, is_from_23_to_6):
    GETTERS[get.__name__] = get


@dataclass(frozen=True, slots=True)
class FactPattern:
    """One way to state facts. A pattern without facts takes figures that would mislead later patterns."""

    pattern: TextPattern
    facts: tuple[tuple[str, FactValue | Getter], ...]
    unless: TextPattern | None
    """Words in the same segment, up to the end of the match, that make it speak of something else."""
    tier: int

    def read(self, document: Document) -> None:
        """Add the statements that this pattern finds in a document."""
        unless = self.unless.regex if self.unless and document.survey.may_hold(self.unless) else None
        for match in document.matches(self.pattern):
            start, end = match.span()
            inside = document.figures_in(start, end)
            if True in document.taken[inside.start : inside.stop]:
                continue
            if unless and unless.search(document.plain, document.segment_start(start), end):
                continue
            found = Found(match, document.figures[inside.start : inside.stop])
            currency = min([figure.currency for figure in found.sums], default="")
            values = [(fact, value(found) if callable(value) else value) for fact, value in self.facts]
            stated = [(fact, value) for fact, value in values if value is not None]
            document.statements += [Statement(*pair, start, end, self.tier, currency) for pair in stated]
            if stated or not self.facts:
                document.take(inside)


def _getter(value: bool | float | str) -> FactValue | Getter:
    if not isinstance(value, str):
        return value
    if value not in GETTERS:
        raise ValueError(f"expected one of {', '.join(GETTERS)}")
    return GETTERS[value]


class _Statement(BaseModel, extra="forbid"):
    pattern: PatternText
    unless: PatternText = ""
    tier: int = 0
    facts: dict[str, Annotated[bool | float | str, AfterValidator(_getter)]] = {}


class _Statements(BaseModel, extra="forbid"):
    """The content of ``vocabulary/statements.toml``, which explains the keys."""

    parts: dict[str, PatternText]
    themes: dict[str, list[_Statement]]

    def pattern(self, said: _Statement) -> FactPattern:
        """An entry of the file with its parts filled in."""
        unless = search_pattern(fill(said.unless, self.parts)) if said.unless else None
        return FactPattern(text_pattern(fill(said.pattern, self.parts)), tuple(said.facts.items()), unless, said.tier)


_FILE = read_vocabulary("statements", _Statements)
THEMES = {theme: tuple(_FILE.pattern(said) for said in entries) for theme, entries in _FILE.themes.items()}


def part(name: str) -> str:
    """A part of patterns that is also used on its own."""
    return fill(_FILE.parts[name], _FILE.parts)


def read_theme(theme: str, document: Document) -> None:
    """Apply the patterns of a theme in their order: an earlier one takes the figures that it understands."""
    for pattern in THEMES[theme]:
        if pattern.pattern in document.survey.starts:
            pattern.read(document)


_PAIR = re.compile(
    rf"(?<![\w.])([a-z][a-z0-9_-]{{0,40}}(?: [a-z][a-z0-9_-]{{0,20}}){{0,3}})[\"']? ?[=:] ?[\"']?([{ALL_MARKERS}]"
    rf"|[a-z][a-z_-]{{0,20}})"
)
_RELATIVE = re.compile(r"(?:[\w-]+ )*?(?:ratio|multiple|factor|times|to|against|versus|vs)\b")
"""A key that compares two things names no sum or count of its own."""
_NOT_OF_A_KEY = re.compile(r"[^a-z0-9_\"' -]")
_SEPARATOR = re.compile(r"[=:]")
_LONGEST_KEY, _LONGEST_VALUE = 110, 25
"""How many characters a pair can have on either side of its separator."""


class _LogKeys(BaseModel, extra="forbid"):
    """The content of ``vocabulary/log_keys.toml``, which explains the keys."""

    words: dict[Literal["yes", "no", "passed", "failed"], frozenset[str]]
    numbers: dict[str, list[str]]
    figures: dict[str, tuple[str, ...]]
    below: dict[str, float]
    flags: dict[str, list[str]]
    holds_when_passed: dict[str, list[str]]
    fails_when_passed: dict[str, list[str]]


def _by_key(table: dict[str, list[str]]) -> dict[str, str]:
    return {key: fact for fact, keys in table.items() for key in keys}


_KEYS = read_vocabulary("log_keys", _LogKeys)
_OWN_NAMES = [(name.replace("_", " "), name, words.kind) for name, words in NAMED_FACTS.items()]
_NUMBERS = {key: name for key, name, kind in _OWN_NAMES if kind == "number"} | _by_key(_KEYS.numbers)
_FLAGS = {key: name for key, name, kind in _OWN_NAMES if kind == "flag"} | _by_key(_KEYS.flags)
_CHECKS = {key: (fact, True) for key, fact in _by_key(_KEYS.holds_when_passed).items()} | {
    key: (fact, False) for key, fact in _by_key(_KEYS.fails_when_passed).items()
}
"""For each check, its flag and what the flag is when the check was passed."""
_UNIT = re.compile(r" (?:in )?(days?|d|hours?|h|months?|mo|years?|y|minutes?|min|km|usd|eur|gbp)$")
_PER_UNIT = {"h": 1 / 24, "d": 1.0, "m": 30.0, "y": 365.0}


def _known(key: str) -> tuple[str, str]:
    """The longest end of a key that is known, and the unit it names, if any."""
    words = re.sub(r"[_-]+", " ", key).split()
    for start in range(len(words)):
        name = " ".join(words[start:])
        if name in _NUMBERS or name in _FLAGS or name in _CHECKS:
            return name, ""
        unit = _UNIT.search(name)
        if unit and name[: unit.start()] in _NUMBERS:
            return name[: unit.start()], unit[1]
    return "", ""


def _number(fact: str, unit: str, figure: MarkedFigure) -> FactValue | None:
    """A figure as the number that a fact needs, or None if it is of another kind."""
    value = figure.middle
    if fact.endswith("_days"):  # a bare count is an age only if the key names the unit
        per = 1 / 1_440 if unit.startswith("min") else _PER_UNIT.get(unit[:1], 0.0)
        value = value * per if figure.kind == "count" else value
        accepted = figure.kind == "duration" or (figure.kind == "count" and per > 0)
        return round(value, 6) if accepted else None
    kinds, below = _KEYS.figures.get(fact, ("count", "count_range")), _KEYS.below.get(fact, float("inf"))
    if figure.kind not in kinds or value >= below:
        return None
    in_days = fact == "recent_window_minutes" and figure.kind == "duration"
    return round(value * 1_440, 2) if in_days else round(value, 6)


def _flag(name: str, value: str, figure: MarkedFigure | None) -> tuple[str, bool] | None:
    """A flag from a key and a word, or from 1 and 0."""
    if figure is not None:
        value = {0.0: "no", 1.0: "yes"}.get(figure.low, "") if figure.kind == "count" else ""
    words = _KEYS.words
    yes, no = (words["passed"], words["failed"]) if name in _CHECKS else (words["yes"], words["no"])
    fact, when_yes = _CHECKS[name] if name in _CHECKS else (_FLAGS[name], True)
    return (fact, when_yes == (value in yes)) if value in yes | no else None


def _pairs(text: str) -> Iterator[re.Match[str]]:
    """The pairs of a text from left to right. Each has one separator, so only what is around one is tried."""
    free = 0
    for separator in _SEPARATOR.finditer(text):
        at = separator.start()
        first = max(free, at - _LONGEST_KEY)
        for sign in _NOT_OF_A_KEY.finditer(text, first, at):
            first = sign.end()
        match = _PAIR.search(text, first, at + _LONGEST_VALUE)
        free = at + 1
        if match and match.start() < at:
            free = max(free, match.end())
            yield match


def read_log_lines(document: Document) -> None:
    """Facts given as key and value."""
    for match in _pairs(document.plain):
        name, unit = _known(match[1])
        if not name:
            continue
        inside = document.figures_in(*match.span(2))
        figure = document.figures[inside[0]] if len(inside) else None
        if name not in _NUMBERS:
            if said := _flag(name, match[2], figure):
                document.add_flag(*said, *match.span())
                document.take(inside)
        elif figure and not _RELATIVE.match(match[1]) and not document.taken[inside[0]]:
            value = _number(_NUMBERS[name], unit, figure)
            if value is not None:
                document.add(_NUMBERS[name], value, match.start(2), match.end(), currency=figure.currency)
