"""What a kind of conduct tends to look like: distributions of facts, and how two of them are mixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar

Setting = tuple[str, str]
"""A merchant category with a channel; the category is empty at a cash machine."""

PartOfDay = Literal["night", "morning", "day", "evening"]

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
    hours: Mapping[PartOfDay, float]

    def but(
        self,
        *,
        spreads: Mapping[str, tuple[float, float]] | None = None,
        counts: Mapping[str, float] | None = None,
        flags: Mapping[str, float] | None = None,
        settings: Mapping[Setting, float] | None = None,
        methods: Mapping[str, float] | None = None,
        hours: Mapping[PartOfDay, float] | None = None,
    ) -> Profile:
        """The same conduct except for what is named; settings, methods and hours are replaced as a whole."""
        return replace(
            self,
            spreads={**self.spreads, **{name: Spread(*pair) for name, pair in (spreads or {}).items()}},
            counts={**self.counts, **(counts or {})},
            flags={**self.flags, **(flags or {})},
            settings=settings or self.settings,
            methods=methods or self.methods,
            hours=hours or self.hours,
        )


def blend(one: Profile, other: Profile, share: float) -> Profile:
    """Conduct between two profiles: `share` of the way from one to the other.

    Medians are mixed on the log scale, rates and weights linearly, so every result is itself plausible conduct.
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
    median = one.median ** (1 - share) * other.median**share
    return Spread(median, one.sigma * (1 - share) + other.sigma * share)


def _mix(one: Mapping[T, float], other: Mapping[T, float], share: float) -> dict[T, float]:
    names = [*one, *(name for name in other if name not in one)]
    return {name: one.get(name, 0.0) * (1 - share) + other.get(name, 0.0) * share for name in names}


def _shares(weights: Mapping[T, float]) -> dict[T, float]:
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
