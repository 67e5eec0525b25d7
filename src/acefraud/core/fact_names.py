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
from typing import Literal

from pydantic import BaseModel

from acefraud.core.comparison import Op
from acefraud.core.package_data import read_package_toml
from acefraud.errors import ConfigurationError

Kind = Literal["number", "flag", "category"]

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
