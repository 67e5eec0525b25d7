"""The facts the engine knows by name: how each is said in English, and how it is recognised there.

They are listed in ``fact_names.toml``. The text reader looks for them, the scorecard may use them, and a condition over
one reads as a person would say it. Facts from the history of an entity follow name patterns (`HISTORY_FACTS`). Any
other column is a fact too; it is called by its column name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel

from acefraud.core.comparison import Op
from acefraud.core.table import FactTable
from acefraud.errors import ConfigurationError
from acefraud.support.package_data import read_package_toml

Kind = Literal["number", "flag", "category"]

NIGHT = (23.0, 6.0)
"""The hours at which the night begins and ends."""
COMPARISONS = {Op.ABOVE: "above", Op.AT_LEAST: "at least", Op.BELOW: "below", Op.AT_MOST: "at most"}
_AGES = {
    Op.ABOVE: "{} older than {{v}} days",
    Op.AT_LEAST: "{} at least {{v}} days old",
    Op.BELOW: "{} younger than {{v}} days",
    Op.AT_MOST: "{} at most {{v}} days old",
}


@dataclass(frozen=True, slots=True)
class FactWords:
    """How one fact is said in English."""

    name: str
    kind: Kind
    noun: str
    unit: str = ""
    comparisons: Mapping[Op, str] = field(default_factory=dict)
    """Of a number: how each comparison is said, with ``{v}`` in place of the figure."""
    true: str = ""
    false: str = ""
    also: tuple[str, ...] = ()
    """Further regular expressions by which a flag that holds is recognised in texts."""
    said: tuple[str, ...] = ()
    """Other ways to say in a rule that a flag holds."""
    share: bool = False
    """Whether a number is a share, which is said in percent."""


class _Entry(BaseModel, extra="forbid"):
    """One table of ``fact_names.toml``, which explains the keys."""

    number: str = ""
    age_of: str = ""
    ratio_of: str = ""
    to: str = ""
    category: str = ""
    flag: str = ""
    true: str = ""
    false: str = ""
    also: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    unit: str = ""
    share: bool = False

    def words(self, name: str) -> FactWords:
        """The entry as words for the fact of this name."""
        kinds = [self.number, self.age_of, self.ratio_of and self.to, self.category, self.true and self.false]
        if sum(map(bool, kinds)) != 1:
            raise ConfigurationError(
                f"fact_names.toml: [{name}] needs either number, age_of, ratio_of with to, category, or true with false"
            )
        if self.category:
            return FactWords(name, "category", self.category)
        if self.true:
            noun = self.flag or name.replace("_", " ")
            return FactWords(name, "flag", noun, true=self.true, false=self.false, also=self.also, said=self.said)
        if self.age_of:
            compared = {op: template.format(self.age_of) for op, template in _AGES.items()}
            return FactWords(name, "number", f"age of the {self.age_of}", "days", compared)
        if self.ratio_of:
            compared = {op: f"{self.ratio_of} {word} {{v}} times {self.to}" for op, word in COMPARISONS.items()}
            return FactWords(name, "number", f"{self.ratio_of} against {self.to}", "times", compared)
        unit = f" {self.unit}" if self.unit else ""
        compared = {op: f"{self.number} {word} {{v}}{unit}" for op, word in COMPARISONS.items()}
        return FactWords(name, "number", self.number, self.unit, compared, share=self.share)


_WORDS = [
    entry.words(name)
    for name, entry in read_package_toml("acefraud.core", "fact_names.toml", dict[str, _Entry]).items()
]
NAMED_FACTS = {words.name: words for words in _WORDS if "{" not in words.name}
"""The facts with a fixed name, by name."""
HISTORY_FACTS = tuple(words for words in _WORDS if "{" in words.name)
"""Facts from the history of an entity ``{e}``, perhaps together with another ``{o}``, over a window ``{w}``."""

_PARTS = {"e": r"(?P<e>(?!(?:is|has|was)_)(?!\w*__)\w+?)", "o": r"(?P<o>\w+?)", "w": r"(?P<w>[1-9]\d*[hd])"}
_HISTORY_NAMES = tuple((re.compile(words.name.format_map(_PARTS)), words) for words in HISTORY_FACTS)


def words_for(name: str) -> FactWords | None:
    """How a fact is said, or None for a column that the engine does not know by name.

    >>> words_for("terminal_known_frauds_7d").noun
    'known frauds of the terminal in the last 7 days'
    """
    return NAMED_FACTS.get(name) or _history_words(name)


@lru_cache(maxsize=4096)
def _history_words(name: str) -> FactWords | None:
    for pattern, words in _HISTORY_NAMES:
        if match := pattern.fullmatch(name):
            return _filled(name, words, match.groupdict())
    return None


def _filled(name: str, words: FactWords, parts: dict[str, str]) -> FactWords:
    said = {part: text.replace("_", " ") for part, text in parts.items()}
    said |= {"v": "{v}", "w": _window(parts.get("w", "1h")), "os": _plural(said.get("o", ""))}
    return replace(
        words,
        name=name,
        noun=words.noun.format_map(said),
        comparisons={op: template.format_map(said) for op, template in words.comparisons.items()},
        true=words.true.format_map(said),
        false=words.false.format_map(said),
    )


def history_name(name: str, spoken: Mapping[str, str | None]) -> str:
    """A name pattern filled with the parts that were read from English. A name without a pattern is returned as it is.

    >>> history_name("{e}_distinct_{o}_{w}", {"entity": "ip address", "others": "cards", "window": "7 days"})
    'ip_address_distinct_card_7d'
    """
    if "{" not in name:
        return name
    others = spoken.get("others") or ""
    single = others.removesuffix(" values")
    other = spoken.get("other") or (single if single.endswith("s") and single != others else others[:-1])
    number, _, unit = (spoken.get("window") or "").rpartition(" ")
    parts = {"e": spoken.get("entity") or "", "o": other, "w": f"{number or 1}{unit[:1].lower()}"}
    return name.format_map({part: text.replace(" ", "_") for part, text in parts.items()})


def _plural(noun: str) -> str:
    """The plural of a noun, from which the noun can be recovered.

    >>> _plural("terminal"), _plural("ip address")
    ('terminals', 'ip address values')
    """
    return f"{noun} values" if noun.endswith("s") else f"{noun}s"


def _window(length: str) -> str:
    """A window in words.

    >>> _window("1h"), _window("7d")
    ('the last hour', 'the last 7 days')
    """
    unit = "hour" if length[-1] == "h" else "day"
    return f"the last {unit}" if length[:-1] == "1" else f"the last {length[:-1]} {unit}s"


EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class FactProfile:
    """What is known of one fact."""

    name: str
    kind: Kind
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


class FactCatalog(dict[str, FactProfile]):
    """The facts of a table, by name.

    >>> catalog = FactCatalog.of(FactTable([{"amount": 5.0, "channel": "web"}, {"amount": 7.0}]))
    >>> catalog["amount"].high, catalog["channel"].values, catalog["channel"].coverage, catalog.rows
    (7.0, ('web',), 0.5, 2)
    """

    def __init__(self, facts: Mapping[str, FactProfile], rows: int) -> None:
        super().__init__(facts)
        self.rows = rows
        """How many transactions it was made from."""

    @classmethod
    def of(cls, table: FactTable) -> FactCatalog:
        """The catalog of a table."""
        return cls({name: _summary(table, name) for name in table.names}, len(table))


def _summary(table: FactTable, name: str) -> FactProfile:
    numbers, flags, (codes, words) = table.numbers(name), table.flags(name), table.categories(name)
    known_numbers, known_flags, known_codes = numbers[~np.isnan(numbers)], flags[flags >= 0], codes[codes >= 0]
    counts = len(known_numbers), len(known_flags), len(known_codes)
    coverage = sum(counts) / max(1, len(table))
    if counts[0] == max(counts) and counts[0]:
        low, middle, high = (float(value) for value in np.quantile(known_numbers, [0, 0.5, 1]))
        whole = bool((known_numbers == np.round(known_numbers)).all())
        return FactProfile(name, "number", coverage, low, middle, high, is_whole=whole)
    if counts[1] == max(counts) and counts[1]:
        return FactProfile(name, "flag", coverage, true_share=float(known_flags.mean()))
    frequency = np.bincount(known_codes, minlength=len(words))
    order = np.lexsort([np.arange(len(words)), -frequency])
    return FactProfile(name, "category", coverage, values=tuple(words[index] for index in order if frequency[index]))
