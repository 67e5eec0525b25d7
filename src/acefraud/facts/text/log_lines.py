"""Log lines such as ``amt=1250.00 acct_age=3d vpn=Y``. The keys are in ``vocabulary/log_keys.toml``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel

from acefraud.core.fact_names import NAMED_FACTS
from acefraud.core.transaction import FactValue

from .document import Document
from .figures import ALL_MARKERS, MarkedFigure
from .vocabulary import read_vocabulary

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
    if figure.kind not in _KEYS.figures.get(fact, ("count", "count_range")) or value >= _KEYS.below.get(
        fact, float("inf")
    ):
        return None
    in_days = fact == "recent_window_minutes" and figure.kind == "duration"
    return round(value * 1_440, 2) if in_days else round(value, 6)


def _flag(name: str, value: str, figure: MarkedFigure | None) -> tuple[str, bool] | None:
    """A flag from a key and a word, or from 1 and 0."""
    if figure is not None:
        value = {0.0: "no", 1.0: "yes"}.get(figure.low, "") if figure.kind == "count" else ""
    if name in _CHECKS:
        fact, when_passed = _CHECKS[name]
        known, passed = _KEYS.words["passed"] | _KEYS.words["failed"], value in _KEYS.words["passed"]
        return (fact, when_passed == passed) if value in known else None
    known, yes = _KEYS.words["yes"] | _KEYS.words["no"], value in _KEYS.words["yes"]
    return (_FLAGS[name], yes) if value in known else None


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
        start, end = match.span()
        if name in _NUMBERS:
            if _RELATIVE.match(match[1]):
                continue
            value = _number(_NUMBERS[name], unit, figure) if figure else None
            if figure and value is not None and not document.taken[inside[0]]:
                document.add(_NUMBERS[name], value, match.start(2), end, currency=figure.currency)
            continue
        said = _flag(name, match[2], figure)
        if said:
            document.add_flag(*said, start, end)
            document.take(inside)
