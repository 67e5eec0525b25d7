"""The names and phrases in the TOML files of this folder, read when they are first needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from acefraud.core.package_data import read_package_toml

Choices = tuple[str, ...]
"""Ways to say one thing, of which one is drawn."""


class City(NamedTuple):
    """A city as an analyst writes it."""

    name: str
    region: str
    latitude: float
    longitude: float

    def __str__(self) -> str:
        return f"{self.name}, {self.region}"


@dataclass(frozen=True, slots=True)
class Names:
    """Names of people, merchants and cities, by the lists that they are drawn from."""

    people: Mapping[str, Choices]
    merchants: Mapping[str, Choices]
    cities: Mapping[str, tuple[City, ...]]


class Phrases(NamedTuple):
    """The ways to say one fact: clauses can stand as a sentence, notes are fragments."""

    clauses: Choices
    notes: Choices


class Subject(NamedTuple):
    """Facts that are told together, and the headings over them."""

    headings: Choices
    facts: Choices


@dataclass(frozen=True, slots=True)
class Phrasebook:
    """Everything that documents are put together from."""

    document: Mapping[str, Choices]
    payment_kinds: Mapping[str, Choices]
    channels: Mapping[str, Choices]
    trades: Mapping[str, Choices]
    subjects: Mapping[str, Subject]
    numbers: Mapping[str, Phrases]
    categories: Mapping[str, Phrases]
    true_flags: Mapping[str, Phrases]
    false_flags: Mapping[str, Phrases]


@dataclass(frozen=True, slots=True)
class Recording:
    """Which facts are recorded and told. ``recording.toml`` explains the fields."""

    plain_flags: Choices
    seldom_denied: frozenset[str]
    loud_flags: Choices
    in_opening: frozenset[str]
    hours: Mapping[str, tuple[int, ...]]
    windows: Mapping[str, str]
    follows: Mapping[str, str]
    implied: Mapping[str, str]


@cache
def recording() -> Recording:
    """The content of ``recording.toml``."""
    return read_package_toml(__package__, "recording.toml", Recording)


@cache
def names() -> Names:
    """The content of ``names.toml``."""
    return read_package_toml(__package__, "names.toml", Names)


@cache
def phrasebook() -> Phrasebook:
    """The content of ``phrases.toml``."""
    return read_package_toml(__package__, "phrases.toml", Phrasebook)
