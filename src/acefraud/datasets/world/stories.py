"""The TOML files of this folder, read when they are first needed: names, phrases, what is recorded, and the stories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from acefraud.support.exact_math import exp, log
from acefraud.support.package_data import read_package_toml

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


recording = cache(partial(read_package_toml, __package__, "recording.toml", Recording))
"""The content of ``recording.toml``."""
names = cache(partial(read_package_toml, __package__, "names.toml", Names))
"""The content of ``names.toml``."""
phrasebook = cache(partial(read_package_toml, __package__, "phrases.toml", Phrasebook))
"""The content of ``phrases.toml``."""
Setting = tuple[str, str]
"""A merchant category with a channel; the category is empty at a cash machine."""

T = TypeVar("T")


class Spread(NamedTuple):
    """A log-normal quantity: its median, and the standard deviation of its logarithm."""

    median: float
    sigma: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Distributions from which the facts of one story are drawn."""

    spreads: Mapping[str, Spread]
    counts: Mapping[str, float]
    flags: Mapping[str, float]
    settings: Mapping[Setting, float]
    methods: Mapping[str, float]
    hours: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One recurring kind of transaction. ``stories.toml`` explains the fields."""

    name: str
    is_fraud: bool
    weight: float
    profile: Profile
    twin: str
    trend: float = 0.0
    variant: Profile | None = None
    tendency: Profile | None = None


@cache
def stories() -> Mapping[str, Story]:
    """The stories of ``stories.toml`` by name, in the order of the file."""
    table = read_package_toml(__package__, "stories.toml", dict[str, Any])
    profiles: dict[str, Profile] = {}
    for name, own in (table["honest"] | table["fraud"] | table["variant"]).items():
        profiles[name] = _profile(own, profiles.get(own.get("based_on")), table["hours"])
    return {
        name: Story(
            name=name,
            is_fraud=side == "fraud",
            weight=own["weight"],
            profile=profiles[name],
            twin=own["twin"],
            trend=own.get("trend", 0.0),
            variant=profiles.get(own.get("variant")),
            tendency=profiles.get(own.get("tendency")),
        )
        for side in ("honest", "fraud")
        for name, own in table[side].items()
    }


def _profile(own: dict[str, Any], base: Profile | None, hours: Mapping[str, Mapping[str, float]]) -> Profile:
    """What a story says itself, and the rest from its base."""
    inherited = base or Profile(spreads={}, counts={}, flags={}, settings={}, methods={}, hours={})
    settings = {(category, channel): weight for category, channel, weight in own.get("settings", ())}
    return Profile(
        spreads={**inherited.spreads, **{name: Spread(*pair) for name, pair in own.get("spreads", {}).items()}},
        counts={**inherited.counts, **own.get("counts", {})},
        flags={**inherited.flags, **own.get("flags", {})},
        settings=settings or inherited.settings,
        methods=own.get("methods", inherited.methods),
        hours=hours[own["hours"]] if "hours" in own else inherited.hours,
    )


def blend(one: Profile, other: Profile, share: float) -> Profile:
    """A profile between two others: `share` of the way from one to the other.

    Medians are mixed on the log scale, rates and weights linearly, so every result is itself plausible.
    """
    return Profile(
        spreads={name: _between(spread, other.spreads[name], share) for name, spread in one.spreads.items()},
        counts=_mix(one.counts, other.counts, share),
        flags=_mix(one.flags, other.flags, share),
        settings=_mix(_shares(one.settings), _shares(other.settings), share),
        methods=_mix(_shares(one.methods), _shares(other.methods), share),
        hours=_mix(_shares(one.hours), _shares(other.hours), share),
    )


def _between(one: Spread, other: Spread, share: float) -> Spread:
    median = exp((1 - share) * log(one.median) + share * log(other.median))
    return Spread(median, one.sigma * (1 - share) + other.sigma * share)


def _mix(one: Mapping[T, float], other: Mapping[T, float], share: float) -> dict[T, float]:
    return {name: one.get(name, 0.0) * (1 - share) + other.get(name, 0.0) * share for name in [*one, *other]}


def _shares(weights: Mapping[T, float]) -> dict[T, float]:
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
