"""Fact patterns: the entries of ``vocabulary/statements.toml``, by theme, and how they are read from a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel

from acefraud.core.transaction import FactValue

from .document import Document, Statement
from .getters import GETTERS, Found, Getter
from .patterns import TextPattern, search_pattern, text_pattern
from .vocabulary import PatternText, fill, read_vocabulary


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
        matches = document.matches(self.pattern)
        if not matches:
            return
        unless = self.unless.regex if self.unless and document.survey.may_hold(self.unless) else None
        for match in matches:
            start, end = match.span()
            inside = document.figures_in(start, end)
            if document.any_taken(inside):
                continue
            if unless and unless.search(document.plain, document.segment_start(start), end):
                continue
            found = Found(match, document.figures[inside.start : inside.stop])
            currency = min([figure.currency for figure in found.sums], default="")
            said = False
            for fact, value in self.facts:
                stated = value(found) if callable(value) else value
                if stated is not None:
                    document.statements.append(Statement(fact, stated, start, end, self.tier, currency))
                    said = True
            if said or not self.facts:
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
    for one in THEMES[theme]:
        if one.pattern in document.survey.starts:
            one.read(document)
