"""The facts at hand: what is known by which name, of which type, in which range, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from acefraud.core.fact_names import words_for
from acefraud.core.table import FactTable

FactKind = Literal["number", "flag", "category"]
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class FactProfile:
    """What is known of one fact."""

    name: str
    kind: FactKind
    """Its most frequent type."""
    coverage: float
    """The share of the rows that know it."""
    low: float | None = None
    """Of a number: the least, the middle and the greatest value."""
    middle: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()
    """Of a category: every value, the most frequent first."""
    true_share: float | None = None
    """Of a flag: how often it is true."""
    is_whole: bool = False
    """Of a number: whether all values are whole."""

    @property
    def examples(self) -> tuple[str, ...]:
        """The most frequent values of a category."""
        return self.values[:EXAMPLES]

    @property
    def noun(self) -> str:
        """What it is called in English."""
        words = words_for(self.name)
        return words.noun if words else self.name.replace("_", " ")

    def as_json(self) -> dict[str, Any]:
        """It for a list of facts, with what its type has.

        >>> FactProfile("vpn", "flag", 1.0, true_share=0.25).as_json()
        {'name': 'vpn', 'english': 'vpn', 'type': 'flag', 'true_share': 0.25, 'coverage': 1.0}
        """
        content: dict[str, Any] = {"name": self.name, "english": self.noun, "type": self.kind}
        if self.kind == "number":
            content |= {"low": self.low, "middle": self.middle, "high": self.high}
        elif self.kind == "flag":
            content["true_share"] = self.true_share
        else:
            content |= {"examples": list(self.examples), "values": len(self.values)}
        return {**content, "coverage": round(self.coverage, 4)}


class FactCatalog(Mapping[str, FactProfile]):
    """The facts of a table, by name.

    >>> catalog = FactCatalog.of(FactTable([{"amount": 5.0, "channel": "web"}, {"amount": 7.0}]))
    >>> catalog["amount"].high, catalog["channel"].values, catalog["channel"].coverage, catalog.rows
    (7.0, ('web',), 0.5, 2)
    """

    def __init__(self, facts: Mapping[str, FactProfile], rows: int) -> None:
        self._facts = dict(facts)
        self.rows = rows
        """How many transactions it was made from."""

    @classmethod
    def of(cls, table: FactTable) -> FactCatalog:
        """The catalog of a table."""
        return cls({name: _summary(table, name) for name in table.names}, len(table))

    def __getitem__(self, name: str) -> FactProfile:
        return self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)


def _summary(table: FactTable, name: str) -> FactProfile:
    numbers, flags, (codes, words) = table.numbers(name), table.flags(name), table.categories(name)
    known_numbers, known_flags, known_codes = numbers[~np.isnan(numbers)], flags[flags >= 0], codes[codes >= 0]
    counts = len(known_numbers), len(known_flags), len(known_codes)
    coverage = sum(counts) / max(1, len(table))
    if counts[0] == max(counts) and counts[0]:
        low, middle, high = (float(one) for one in np.quantile(known_numbers, [0, 0.5, 1]))
        whole = bool((known_numbers == np.round(known_numbers)).all())
        return FactProfile(name, "number", coverage, low, middle, high, is_whole=whole)
    if counts[1] == max(counts) and counts[1]:
        return FactProfile(name, "flag", coverage, true_share=float(known_flags.mean()))
    frequency = np.bincount(known_codes, minlength=len(words))
    order = np.lexsort([np.arange(len(words)), -frequency])
    return FactProfile(name, "category", coverage, values=tuple(words[place] for place in order if frequency[place]))
