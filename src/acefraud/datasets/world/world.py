"""From options and a seed to labelled cases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from acefraud.core.transaction import Case, FactValue, Transaction
from acefraud.datasets.world.dice import Dice
from acefraud.datasets.world.documents import write_document
from acefraud.datasets.world.facts import Scene, draw_scene, recorded_facts
from acefraud.datasets.world.stories import Profile, Story, blend, recording, stories
from acefraud.errors import ConfigurationError
from acefraud.support.exact_math import exp

# What happens, what is reported of it, and how it is written draw from separate streams.
_EVENTS, _LABELS, _WORDS = range(3)

_VARIANT_FROM, _VARIANT_FULL, _VARIANT_SHARE = 0.45, 0.75, 0.3
_SETTLING, _CHARGEBACK, _TAIL = 0.8, 1.3, 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldOptions:
    """The settings of the world. The defaults are hard enough that a learner has something to learn.

    >>> WorldOptions(transactions=10).prevalence
    0.4
    >>> WorldOptions(prevalence=1.5)
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: prevalence must be between 0 and 1, got 1.5
    """

    transactions: int = 2000
    prevalence: float = 0.4
    """Share of the stories that are fraud, before label noise."""
    label_noise: float = 0.02
    """Share of the reported labels that are wrong."""
    ambiguous: float = 0.1
    """Share of the stories drawn almost half-way between a fraud and the honest conduct that resembles it."""
    drift: float = 1.0
    """0 is a world that never changes; 1 lets patterns appear, fade and shift over the period."""
    days: int = 120
    label_delay_days: float = 7.0
    """Mean time until a label is known at the default prevalence; 0 makes every label known at once."""
    start: datetime = datetime(2025, 1, 6, tzinfo=UTC)

    def __post_init__(self) -> None:
        for name in ("transactions", "days"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{name} must be a whole number of at least 1, got {value!r}")
        most = {"prevalence": 1, "label_noise": 1, "ambiguous": 1, "drift": 3, "label_delay_days": 3650}
        for name, high in most.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ConfigurationError(f"{name} must be a number, got {value!r}")
            if not 0 <= value <= high:
                raise ConfigurationError(f"{name} must be between 0 and {high}, got {value!r}")
        if self.start.tzinfo is None:
            raise ConfigurationError(f"start must carry a time zone, got {self.start.isoformat()}")


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
    events = [_draw_event(options, happenings) for _ in range(options.transactions)]
    events.sort(key=lambda event: event.time)
    return [_report(number, event, options, labels, words) for number, event in enumerate(events, start=1)]


def _draw_event(options: WorldOptions, dice: Dice) -> _Event:
    day = dice.whole(0, options.days)
    phase = (day + 0.5) / options.days
    is_fraud = dice.chance(options.prevalence)
    side = (story for story in stories().values() if story.is_fraud == is_fraud)
    story = stories()[dice.weighted(_story_weights(side, phase, options.drift))]
    profile = _profile_at(story, phase, options.drift, dice)
    ambiguous = dice.chance(options.ambiguous)
    if ambiguous:
        twin = _profile_at(stories()[story.twin], phase, options.drift, dice)
        profile = blend(profile, twin, dice.uniform(0.25, 0.45))
    scene = draw_scene(profile, dice)
    return _Event(_time(options.start, day, scene, dice), story, ambiguous, scene)


def _story_weights(side: Iterable[Story], phase: float, drift: float) -> dict[str, float]:
    """Weights of the stories at a phase of the period, from 0 at its start to 1 at its end."""
    return {story.name: story.weight * exp(drift * story.trend * (phase - 0.5)) for story in side}


def _profile_at(story: Story, phase: float, drift: float, dice: Dice) -> Profile:
    """What the story looks like at a phase of the period."""
    if story.variant is not None and dice.chance(_variant_share(phase, drift)):
        return story.variant
    if story.tendency is not None and drift > 0:
        return blend(story.profile, story.tendency, min(1.0, drift * phase * 0.6))
    return story.profile


def _variant_share(phase: float, drift: float) -> float:
    """Share of a story that is told in its new variant: none until shortly before the middle, then rising.

    >>> _variant_share(0.4, 1.0), _variant_share(1.0, 1.0), _variant_share(1.0, 0.0)
    (0.0, 0.3, 0.0)
    """
    ramp = (phase - _VARIANT_FROM) / (_VARIANT_FULL - _VARIANT_FROM)
    return min(1.0, drift * _VARIANT_SHARE * min(1.0, max(0.0, ramp)))


def _time(start: datetime, day: int, scene: Scene, dice: Dice) -> datetime:
    """The moment within the day of the period at which the clock shows the hour of the scene."""
    since_midnight = timedelta(hours=float(scene.facts["hour"]), minutes=scene.minute, seconds=dice.whole(0, 60))
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    moment = midnight + timedelta(days=day) + since_midnight
    return moment if moment >= start + timedelta(days=day) else moment + timedelta(days=1)


def _report(number: int, event: _Event, options: WorldOptions, labels: Dice, words: Dice) -> Case:
    facts = recorded_facts(event.scene.facts, labels)
    reported = event.story.is_fraud != labels.chance(options.label_noise)
    text = write_document(event.scene, facts, words)
    return Case(
        transaction=Transaction(id=f"tx-{number:06d}", time=event.time, facts=facts, text=text),
        is_fraud=reported,
        known_at=event.time + _label_delay(reported, options.label_delay_days, labels),
        difficulty=_difficulty(facts, event),
        metadata={"story": event.story.name},
    )


def _label_delay(reported_fraud: bool, mean_days: float, dice: Dice) -> timedelta:
    """The wait for a label.

    A payment without a complaint counts as good after a fixed settling time. A complaint comes when a statement is
    read: mostly within weeks, now and then after months. At a prevalence of 0.4 the two average to `mean_days`.
    """
    if not reported_fraud:
        days = _SETTLING * mean_days
    else:
        median = _CHARGEBACK * mean_days / exp(_TAIL * _TAIL / 2)
        days = dice.around(median, _TAIL)
    return timedelta(seconds=round(days * 86_400))


def _difficulty(facts: Mapping[str, FactValue], event: _Event) -> str:
    """A fraud is hard when it is quiet, an honest payment when it is loud, and anything drawn at the boundary."""
    if event.ambiguous:
        return "very_hard"
    steps = ("hard", "medium", "medium", "easy") if event.story.is_fraud else ("easy", "easy", "medium", "hard")
    return steps[min(_loud_signs(facts), 3)]


def _loud_signs(facts: Mapping[str, FactValue]) -> int:
    """How many of the signs that general suspicion looks for are present.

    >>> _loud_signs({"night": True, "account_age_days": 12.0, "amount_to_usual": 1.1})
    2
    """
    signs = sum(facts.get(name) is True for name in recording().loud_flags)
    signs += float(facts.get("amount_to_usual", 1.0)) >= 3
    signs += float(facts.get("account_age_days", 365.0)) < 60
    signs += float(facts.get("failed_attempts", 0.0)) >= 2
    signs += float(facts.get("fraud_reports", 0.0)) >= 2
    return signs
