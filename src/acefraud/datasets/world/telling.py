"""Which facts a text mentions, and each of them in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from acefraud.core.transaction import FactValue
from acefraud.datasets.world import figures, names
from acefraud.datasets.world.dice import Dice
from acefraud.datasets.world.facts import Scene
from acefraud.datasets.world.phrases import CATEGORIES, NUMBERS, Phrases
from acefraud.datasets.world.phrases_flags import FAILS, HOLDS

_MONEY = frozenset({"usual_amount", "usual_amount_max"})
_AGES = frozenset({"account_age_days", "device_age_days", "payment_method_age_days", "days_since_last"})
_RATIOS = frozenset({"amount_to_usual", "amount_to_usual_max"})
_WINDOWS = {"recent_transactions": "recent_window_minutes", "fraud_reports": "fraud_report_window_days"}
_IN_LEAD = frozenset({"amount", "hour", "merchant_category", "channel"})
_SAID_WITH = frozenset(_WINDOWS.values())
_IMPLIED = {
    "night": "hour", "amount_to_usual": "usual_amount", "amount_to_usual_max": "usual_amount_max",
    "velocity": "recent_transactions", "crypto": "merchant_category", "prepaid_card": "payment_method",
}  # fmt: skip
"""A fact that a reader can work out from another is seldom written down beside it."""
_CALLED = ("the customer", "the cardholder", "the account holder", "the client", "the user")


@dataclass(frozen=True, slots=True)
class Voice:
    """What stays the same within one text: how money is written, and what people and places are called."""

    scene: Scene
    facts: Mapping[str, FactValue]
    money: figures.Money
    person: str
    merchant: str
    called: str
    spells: bool

    @property
    def owner(self) -> str:
        """The possessive of the customer."""
        return f"{self.called}'s"


def voice_for(scene: Scene, facts: Mapping[str, FactValue], dice: Dice) -> Voice:
    """A writer for this scene."""
    return Voice(
        scene, facts, dice.pick(figures.MONEY_STYLES), names.person(dice), names.merchant(dice), dice.pick(_CALLED),
        dice.chance(0.2),
    )  # fmt: skip


def mentioned(facts: Mapping[str, FactValue], dice: Dice) -> list[str]:
    """The facts that the text tells beside its opening; most of them, never all of them for certain."""
    told = [name for name, value in facts.items() if dice.chance(_worth(name, value, facts))]
    if facts.get("purchases_at_merchant") == 0.0:
        told = [name for name in told if name != "purchases_at_merchant"]
    return [name for name in told if name not in _IN_LEAD and name not in _SAID_WITH]


def _worth(name: str, value: FactValue, facts: Mapping[str, FactValue]) -> float:
    if name in _IMPLIED and _IMPLIED[name] in facts:
        return 0.3 if value is not False else 0.08
    if name == "gift_cards" and facts.get("merchant_category") == "gift cards":
        return 0.2
    if name == "first_time_merchant":
        return 0.93 if value else 0.2
    if value is False:
        return 0.7
    return 0.85 if value == 0.0 else 0.93


def clause(name: str, voice: Voice, dice: Dice) -> str:
    """The fact as a clause that can stand as a sentence."""
    phrases, figure, window = _words(name, voice, dice)
    return _fill(dice.pick(phrases.clauses), figure, window, voice)


def note(name: str, voice: Voice, dice: Dice) -> str:
    """The fact as a fragment for a list or a log line."""
    phrases, figure, window = _words(name, voice, dice)
    return _fill(dice.pick(phrases.notes), figure, window, voice)


def _words(name: str, voice: Voice, dice: Dice) -> tuple[Phrases, object, str]:
    value = voice.facts[name]
    if isinstance(value, bool):
        return (HOLDS if value else FAILS)[name], "", ""
    if isinstance(value, str):
        return CATEGORIES[name], value, ""
    window = _WINDOWS.get(name, "")
    if window in voice.facts:
        length = float(voice.facts[window])
        spoken = figures.minutes(length) if window == "recent_window_minutes" else figures.age(length, dice)
        return NUMBERS[f"{name}_within"], _figure(name, value, voice, dice), spoken
    return NUMBERS[name], _figure(name, value, voice, dice), ""


def _figure(name: str, value: float, voice: Voice, dice: Dice) -> object:
    if name in _MONEY:
        return voice.money(value)
    if name in _AGES:
        return figures.age(value, dice)
    if name in _RATIOS:
        return f"{value:g}"
    if name == "merchant_rating":
        return f"{value:.1f}"
    if name == "distance_km":
        return f"{value:,.0f} {dice.pick(('km', 'km', 'kilometres'))}"
    return (figures.SpelledCount if voice.spells else figures.Count)(value)


def _fill(template: str, figure: object, window: str, voice: Voice) -> str:
    return template.format(
        v=figure, w=window, who=voice.called, whose=voice.owner, place=voice.scene.place, home=voice.scene.home
    )
