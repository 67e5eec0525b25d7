"""How the world changes over its period: the mix of the stories, and the details of each."""

from __future__ import annotations

import math
from collections.abc import Iterable

from acefraud.datasets.world.dice import Dice
from acefraud.datasets.world.profiles import Profile, blend
from acefraud.datasets.world.stories import Story

_VARIANT_FROM, _VARIANT_FULL, _VARIANT_SHARE = 0.45, 0.75, 0.3


def mix(stories: Iterable[Story], phase: float, drift: float) -> dict[str, float]:
    """Weights of the stories at a phase of the period, from 0 at its start to 1 at its end."""
    return {story.name: story.weight * math.exp(drift * story.trend * (phase - 0.5)) for story in stories}


def variant_share(phase: float, drift: float) -> float:
    """Share of a story that is told in its new variant: none until shortly before the middle, then rising.

    >>> variant_share(0.4, 1.0), variant_share(1.0, 1.0), variant_share(1.0, 0.0)
    (0.0, 0.3, 0.0)
    """
    ramp = (phase - _VARIANT_FROM) / (_VARIANT_FULL - _VARIANT_FROM)
    return min(1.0, drift * _VARIANT_SHARE * min(1.0, max(0.0, ramp)))


def profile_at(story: Story, phase: float, drift: float, dice: Dice) -> Profile:
    """What the story looks like at a phase of the period."""
    if story.variant is not None and dice.chance(variant_share(phase, drift)):
        return story.variant
    if story.tendency is not None and drift > 0:
        return blend(story.profile, story.tendency, min(1.0, drift * phase * 0.6))
    return story.profile
