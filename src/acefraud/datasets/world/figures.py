"""Figures as people write them: money, ages, counts and times of day."""

from __future__ import annotations

from collections.abc import Callable

from acefraud.datasets.world.dice import Dice

Money = Callable[[float], str]
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def _grouped(amount: float) -> str:
    return f"{amount:,.0f}" if amount == int(amount) else f"{amount:,.2f}"


def _bare(amount: float) -> str:
    return f"{amount:.0f}" if amount == int(amount) else f"{amount:.2f}"


MONEY_STYLES: tuple[Money, ...] = (
    lambda amount: f"${_grouped(amount)}",
    lambda amount: f"${_grouped(amount)}",
    lambda amount: f"${amount:,.2f}",
    lambda amount: f"{amount:,.2f} USD",
    lambda amount: f"USD {_bare(amount)}",
    lambda amount: f"US${_grouped(amount)}",
    lambda amount: f"{_grouped(amount)} dollars",
    lambda amount: f"USD {_grouped(amount)}",
)
"""A writer keeps to one style within a text."""


class Count(int):
    """A number of things that agrees with its noun.

    >>> f"{Count(1):earlier dispute} and {Count(3):chargeback}, {Count(0):complaint}"
    '1 earlier dispute and 3 chargebacks, no complaints'
    """

    spelled = False

    def __format__(self, noun: str) -> str:
        written_out = self == 0 or (self.spelled and self <= 10)
        figure = _WORDS[self] if written_out else f"{int(self):,}"
        return f"{figure} {noun if self == 1 else _plural(noun)}"


class SpelledCount(Count):
    """A count whose small numbers are written out.

    >>> f"{SpelledCount(3):failed login}"
    'three failed logins'
    """

    spelled = True


def _plural(noun: str) -> str:
    """The plural of the head noun, which stands last or before ' at', ' on' or ' of'."""
    for link in (" at ", " on ", " of ", " by "):
        head, found, rest = noun.partition(link)
        if found:
            return f"{_plural(head)}{link}{rest}"
    return noun[:-1] + "ies" if noun.endswith("y") and not noun.endswith("ay") else noun + "s"


class Age(str):
    """A span of time; as an adjective with the format ``adj``.

    >>> f"{Age('8 months')} / {Age('8 months'):adj} / {Age('1 day'):adj}"
    '8 months / 8-month-old / 1-day-old'
    """

    __slots__ = ()

    def __format__(self, form: str) -> str:
        if form != "adj":
            return str(self)
        figure, _, unit = self.partition(" ")
        return f"{figure}-{unit.removesuffix('s')}-old"


def age(days: float, dice: Dice) -> Age:
    """One of the ways to say an age, all of them exact."""
    if days < 1 / 24 - 1e-4:
        return _span(days * 1440, "minute")
    if days < 2 and days != int(days):
        return _span(days * 24, "hour")
    ways = [_span(days, "day")] if days == int(days) else []
    if days >= 14 and days % 7 == 0 and days < 100:
        ways += [_span(days / 7, "week")] * 2
    if days >= 60 and days % 30 == 0:
        ways += [_span(days / 30, "month")] * 4
    if days >= 365 and days % 182.5 == 0:
        ways += [_span(days / 365, "year")] * 6
    return dice.pick(ways)


def _span(number: float, unit: str) -> Age:
    figure = f"{round(number, 1):g}"
    return Age(f"{figure} {unit if figure == '1' else unit + 's'}")


def minutes(number: float) -> str:
    """The length of a short stretch of time.

    >>> minutes(45), minutes(120)
    ('45 minutes', '2 hours')
    """
    return str(_span(number / 60, "hour") if number >= 60 and number % 60 == 0 else _span(number, "minute"))


def clock(hour: int, minute: int, dice: Dice) -> str:
    """A time of day with its preposition."""
    if minute < 10 and hour in (0, 12) and dice.chance(0.4):
        return "just after midnight" if hour == 0 else "just after noon"
    half = "AM" if hour < 12 else "PM"
    twelve = hour % 12 or 12
    ways = (
        f"at {twelve}:{minute:02d} {half}",
        f"at {twelve}:{minute:02d} {half}",
        f"at {hour:02d}:{minute:02d}",
        f"at {hour:02d}:{minute:02d}h",
        f"at {twelve}:{minute:02d} {half.lower()[0]}.m.",
        f"at {hour:02d}:{minute:02d} local time",
    )
    return dice.pick(ways)
