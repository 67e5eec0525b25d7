"""Figures of the past of an entity as nouns: "the card's 30 day maximum", "total amount of the user in 7 days"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from acefraud.rules.reader.measures import HISTORY_NAME
from acefraud.rules.reader.names import Fact
from acefraud.rules.reader.nouns import Nouns
from acefraud.rules.reader.phrases import Tokens, Words, is_one_of, is_word, matches, phrase, skipped
from acefraud.rules.reader.quantities import HOURS, figures
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.word_lists import phrases, words

FIGURE_WORDS: dict[Words, str] = {
    tuple(said.split()): figure
    for figure in ("sum", "mean", "max", "count", "known_frauds", "known_fraud_share")
    for said in phrases(f"{figure}_figure")
}
for _kind in words("transactions") - {"operation"}:
    FIGURE_WORDS |= {(_most, _kind): "max" for _most in ("largest", "biggest", "highest", "maximum", "greatest")}
    FIGURE_WORDS[_kind, "total"] = FIGURE_WORDS["total", "of", _kind] = "sum"
    FIGURE_WORDS["average", _kind] = FIGURE_WORDS["mean", _kind] = "mean"
"""What each figure is called, by the part of a fact's name that stands for it."""
BELONGS = words("belongs")
_WINDOW_START, _LAST = words("window_start"), words("last")
_USUAL, _USUAL_AMOUNTS = words("usual"), words("usual_amounts")


class HistoryFigures:
    """Finds the history facts that are named at a place of a sentence."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary, nouns: Nouns) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        self._nouns = nouns
        self._windows_at: dict[int, list[tuple[float, int]]] = {}
        self._facts_at: dict[int, list[tuple[Fact, int]]] = {}

    @cached_property
    def _names(self) -> dict[str, dict[float, str]]:
        """The names of facts by entity and figure, and by the hours of their window."""
        found: dict[str, dict[float, str]] = {}
        for name in self._vocabulary.facts:
            stem, _, window = name.rpartition("_")
            if re.fullmatch(r"\d+[hd]", window):
                hours = float(window[:-1]) * (24 if window[-1] == "d" else 1)
                found.setdefault(stem, {})[hours] = name
        return found

    def window(self, at: int) -> list[tuple[float, int]]:
        """A window in hours: "in the last 24 hours", "over 30 days", "in an hour", "per day"."""
        if at not in self._windows_at:
            self._windows_at[at] = list(self._read_window(at))
        return self._windows_at[at]

    def fact(self, entity: str, figure: str, hours: float) -> Fact | None:
        """The fact of a figure of an entity in a window, if it is kept."""
        name = self._names.get(f"{entity}_{figure}", {}).get(hours)
        return self._vocabulary.facts[name] if name else None

    def of_name(self, name: str) -> tuple[str, str]:
        """The entity and the figure of a fact of the past by its name; empty if it is another fact."""
        match = HISTORY_NAME.fullmatch(name)
        return (match["entity"], match["figure"] or "") if match is not None else ("", "")

    def any_window(self, entity: str, figure: str) -> Fact | None:
        """The fact of a figure of an entity in the first window in which it is kept."""
        name = next(iter(self._names.get(f"{entity}_{figure}", {}).values()), None)
        return self._vocabulary.facts[name] if name else None

    def facts(self, at: int) -> list[tuple[Fact, int]]:
        """The figures of entities that are named here, each with the place after its name."""
        if at not in self._facts_at:
            self._facts_at[at] = [*self._entity_first(at), *self._figure_first(at), *self._window_first(at)]
        return self._facts_at[at]

    def numbers(self, at: int) -> Iterator[tuple[Fact, int]]:
        """Every number that is named here: a fact by its own name, or a figure of an entity."""
        yield from self._nouns.facts(at, "number")
        yield from self.facts(at)

    def ratio_to_usual(self, at: int) -> Iterator[tuple[str, int]]:
        """The fact that divides the amount by the usual amount of an entity, where "the card's usual" stands here."""
        tokens = self._tokens
        for entity, after in self._nouns.owner(at):
            if not is_one_of(tokens, after, _USUAL) and not is_word(tokens, after, "mean", "own"):
                continue
            end = after + 1 + is_word(tokens, after + 1, "usual", "average", "mean")
            end += is_one_of(tokens, end, _USUAL_AMOUNTS)
            if (name := f"{entity}_amount_to_usual") in self._vocabulary.facts:
                yield name, end

    def _read_window(self, at: int) -> Iterator[tuple[float, int]]:
        tokens = self._tokens
        place = skipped(tokens, at + is_one_of(tokens, at, _WINDOW_START))
        has_last = is_one_of(tokens, place, _LAST)
        place += has_last
        if place > at and is_one_of(tokens, place, HOURS):
            yield HOURS[tokens[place].text], place + 1
        if phrase(tokens, place, "single day") is not None:
            yield 24.0, place + 2
        for figure, after in figures(tokens, place):
            if figure.unit in HOURS and not figure.at_least:
                yield figure.value * HOURS[figure.unit], after + is_word(tokens, after, "window", "period")

    def _entity_first(self, at: int) -> Iterator[tuple[Fact, int]]:
        """ "the card's 30 day maximum", "the card's maximum in 30 days" """
        for entity, after in self._nouns.owner(at):
            for hours, then in self.window(after):
                for figure, end in matches(self._tokens, then, FIGURE_WORDS):
                    yield from self._kept(entity, figure, hours, end)
            for figure, then in matches(self._tokens, after, FIGURE_WORDS):
                for hours, end in self.window(then):
                    yield from self._kept(entity, figure, hours, end)
                if len(self._names.get(f"{entity}_{figure}", {})) == 1:
                    yield from self._kept(entity, figure, None, then)

    def _figure_first(self, at: int) -> Iterator[tuple[Fact, int]]:
        """ "maximum of the card in 30 days", "maximum in 30 days of the card" """
        tokens = self._tokens
        for figure, after in matches(tokens, at, FIGURE_WORDS):
            for entity, then in self._nouns.owner(skipped(tokens, after, BELONGS)):
                for hours, end in self.window(then):
                    yield from self._kept(entity, figure, hours, end)
            for hours, then in self.window(after):
                for entity, end in self._nouns.owner(skipped(tokens, then, BELONGS)):
                    if end > then + 1:
                        yield from self._kept(entity, figure, hours, end)

    def _window_first(self, at: int) -> Iterator[tuple[Fact, int]]:
        """ "30 day maximum of the card" """
        tokens = self._tokens
        for hours, after in self.window(at):
            for figure, then in matches(tokens, after, FIGURE_WORDS):
                if is_one_of(tokens, then, BELONGS):
                    for entity, end in self._nouns.owner(skipped(tokens, then, BELONGS)):
                        yield from self._kept(entity, figure, hours, end)

    def _kept(self, entity: str, figure: str, hours: float | None, end: int) -> Iterator[tuple[Fact, int]]:
        """The fact of a figure in a window, or in the only one there is."""
        fact = self.any_window(entity, figure) if hours is None else self.fact(entity, figure, hours)
        if fact is not None:
            yield fact, end
