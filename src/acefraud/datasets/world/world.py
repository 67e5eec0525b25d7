"""From options and a seed to labelled cases."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from acefraud.core.transaction import Case, Transaction
from acefraud.datasets.world.delays import label_delay
from acefraud.datasets.world.dice import Dice
from acefraud.datasets.world.difficulty import difficulty
from acefraud.datasets.world.drift import mix, profile_at
from acefraud.datasets.world.facts import Scene, draw_scene, known
from acefraud.datasets.world.options import WorldOptions
from acefraud.datasets.world.profiles import blend
from acefraud.datasets.world.stories import STORIES, Story
from acefraud.datasets.world.wording import tell

_EVENTS, _LABELS, _WORDS = range(3)
"""Streams of chance: what happens, what is reported of it, and how it is told."""


@dataclass(frozen=True, slots=True)
class _Event:
    time: datetime
    story: Story
    ambiguous: bool
    scene: Scene


def generate(options: WorldOptions, seed: int) -> list[Case]:
    """Labelled cases in the order of their time; the same options and seed give the same cases.

    >>> first = generate(WorldOptions(transactions=3), seed=7)
    >>> [case.transaction.id for case in first]
    ['tx-000001', 'tx-000002', 'tx-000003']
    >>> first == generate(WorldOptions(transactions=3), seed=7)
    True
    """
    happenings, labels, words = (Dice(seed, stream) for stream in (_EVENTS, _LABELS, _WORDS))
    events = [_happen(options, happenings) for _ in range(options.transactions)]
    events.sort(key=lambda event: event.time)
    return [_report(number, event, options, labels, words) for number, event in enumerate(events, start=1)]


def _happen(options: WorldOptions, dice: Dice) -> _Event:
    day = dice.whole(0, options.days)
    phase = (day + 0.5) / options.days
    is_fraud = dice.chance(options.prevalence)
    side = (story for story in STORIES.values() if story.is_fraud == is_fraud)
    story = STORIES[dice.weighted(mix(side, phase, options.drift))]
    profile = profile_at(story, phase, options.drift, dice)
    ambiguous = dice.chance(options.ambiguous)
    if ambiguous:
        twin = profile_at(STORIES[story.twin], phase, options.drift, dice)
        profile = blend(profile, twin, dice.uniform(0.25, 0.45))
    scene = draw_scene(profile, dice)
    return _Event(_time(options.start, day, scene, dice), story, ambiguous, scene)


def _time(start: datetime, day: int, scene: Scene, dice: Dice) -> datetime:
    """The moment within the day of the period at which the clock shows the hour of the scene."""
    since_midnight = timedelta(hours=float(scene.facts["hour"]), minutes=scene.minute, seconds=dice.whole(0, 60))
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    moment = midnight + timedelta(days=day) + since_midnight
    return moment if moment >= start + timedelta(days=day) else moment + timedelta(days=1)


def _report(number: int, event: _Event, options: WorldOptions, labels: Dice, words: Dice) -> Case:
    facts = known(event.scene.facts, labels)
    reported = event.story.is_fraud != labels.chance(options.label_noise)
    text = tell(event.scene, facts, words)
    return Case(
        transaction=Transaction(id=f"tx-{number:06d}", time=event.time, facts=facts, text=text),
        is_fraud=reported,
        known_at=event.time + label_delay(reported, options.label_delay_days, labels),
        difficulty=difficulty(facts, event.story.is_fraud, event.ambiguous),
        metadata={"story": event.story.name},
    )
