"""What was measured of a condition on labelled cases."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

import numpy.typing as npt
from pydantic import BaseModel, model_validator

from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr

Counts = TypeVar("Counts", float, npt.NDArray[Any])

Z95 = 1.959963984540054
ENOUGH_TO_SHOW = 10
"""How many later cases a condition must hold on before their record is shown instead of the learnt one."""


def wilson(successes: int, trials: int, z: float = Z95) -> tuple[float, float]:
    """Wilson score interval of a proportion.

    >>> [round(x, 3) for x in wilson(47, 50)]
    [0.838, 0.979]
    >>> wilson(0, 0)
    (0.0, 1.0)
    """
    if trials <= 0:
        return 0.0, 1.0
    p = successes / trials
    denominator = 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / denominator
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / denominator
    return max(0.0, centre - half), min(1.0, centre + half)


def percent(share: float, decimals: int = 0) -> str:
    """A share in percent, with two significant digits below 10 %, and with ``decimals`` above.

    >>> percent(0.4), percent(0.0083), percent(0.00045), percent(0.4123, 1)
    ('40%', '0.83%', '0.045%', '41.2%')
    """
    return f"{100 * share:.{decimals}f}%" if share >= 0.1 else f"{100 * share:.2g}%"


def _decimals(shares: Iterable[float], fewest: int) -> int:
    """How many decimals tell these shares from each other, up to four."""
    distinct = {round(share, 7) for share in shares}
    enough = (n for n in range(fewest, 4) if len({f"{100 * share:.{n}f}" for share in distinct}) == len(distinct))
    return next(enough, 4)


class Record(ShortRepr, BaseModel, frozen=True, extra="forbid"):
    """How often a condition held, and how many of those cases were fraud.

    >>> record = Record(support=50, frauds=47)
    >>> record.precision, [round(bound, 2) for bound in record.interval]
    (0.94, [0.84, 0.98])
    """

    support: int
    """Cases on which the condition held."""
    frauds: int
    """Those of them that were fraud."""

    @model_validator(mode="after")
    def _counts_fit(self) -> Record:
        if not 0 <= self.frauds <= self.support:
            raise ValueError(f"frauds must lie between 0 and support, got {self.frauds} of {self.support}")
        return self

    @property
    def precision(self) -> float | None:
        """The share of fraud where the condition held; None if it never did."""
        return self.frauds / self.support if self.support else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the share of fraud."""
        return wilson(self.frauds, self.support)


def balanced_precision(frauds: Counts, support: Counts, base_rate: float) -> Counts:
    """What the share of fraud would be if half of all cases were fraud; 0.5 means no evidence. Accepts columns too.

    Shrunk towards the base rate by as many cases as hold one of the rarer class, so that a few cases say little.

    >>> round(balanced_precision(20, 100, 0.008), 2), round(balanced_precision(8, 1000, 0.008), 2)
    (0.93, 0.5)
    """
    base = min(max(base_rate, 1e-6), 1 - 1e-6)
    added = 1 / min(base, 1 - base)
    share = (frauds + added * base) / (support + added)
    odds = share / (1 - share) * (1 - base) / base
    return odds / (1 + odds)


class Evidence(ShortRepr, BaseModel, frozen=True, extra="forbid"):
    """The measured record of a condition beside the base rate: on the cases it was learnt from, and on later ones.

    The best of thousands of candidates looks better than it is on the cases it was picked on. So the record on
    other cases (later ones, if times are known) is shown as soon as there are enough of them.

    >>> evidence = Evidence(learnt=Record(support=50, frauds=47), base_rate=0.2)
    >>> evidence.in_words()
    '47 of 50 past cases were fraud (94%, 84-98%)'
    >>> round(evidence.lift, 2)
    4.7
    """

    learnt: Record
    """On the cases it was learnt from."""
    base_rate: float
    """The share of fraud among all cases of that period."""
    later: Record | None = None
    """On other cases, where possible later ones."""
    cases: int = 0
    """How many cases the shown record was measured on, whether the condition held or not; 0 if unknown."""
    spread: float = 1.0
    """Widens the interval beyond chance, for the bias of searching and for drift."""
    found_again: float | None = None
    """The share of several searches, each on cases of its own draw, that found it or a condition that holds on nearly
    the same cases; None if there was one search."""
    first_seen: datetime | None = None
    """The time of the first case on which it held."""
    last_seen: datetime | None = None
    """The time of the last one."""

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share of fraud in as many future cases is expected to lie, with 95 % probability."""
        return wilson(self.shown.frauds, self.shown.support, Z95 * self.spread)

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(self.in_words())
        yield "base_rate", Plain(percent(self.base_rate))

    @property
    def lift(self) -> float | None:
        """The share of fraud where it held, as a multiple of the base rate."""
        if self.shown.precision is None or not self.base_rate:
            return None
        return self.shown.precision / self.base_rate

    @property
    def shown(self) -> Record:
        """The record on later cases if there are enough of them, else the learnt one."""
        return self.later if self.later is not None and self.later.support >= ENOUGH_TO_SHOW else self.learnt

    def in_words(self) -> str:
        """The shown record as text, as bullets quote it.

        >>> Evidence(learnt=Record(support=0, frauds=0), base_rate=0.2).in_words()
        'no past case'
        """
        return record_in_words(self.shown, self.spread, self.base_rate)

    def against_base_rate(self) -> str:
        """The shown record and the share of fraud among all cases, with enough digits to tell them apart.

        >>> Evidence(learnt=Record(support=27_628, frauds=10), base_rate=0.00045).against_base_rate()
        '10 of 27,628 past cases were fraud (0.036%, 0.020-0.067%), against 0.045% of all'
        """
        decimals = _decimals((self.shown.precision or 0.0, self.base_rate), 0)
        return f"{self.in_words()}, against {percent(self.base_rate, decimals)} of all"


def record_in_words(record: Record, spread: float = 1.0, *beside: float) -> str:
    """A record as text, with its interval, in digits that tell its figures from each other and from those ``beside``.

    >>> record_in_words(Record(support=400, frauds=3))
    '3 of 400 past cases were fraud (0.8%, 0.3-2.2%)'
    """
    if record.precision is None:
        return "no past case"
    low, high = wilson(record.frauds, record.support, Z95 * spread)
    digits = _decimals((low, record.precision, high, *beside), 1 if record.precision < 0.1 else 0)
    return (
        f"{record.frauds:,} of {record.support:,} past cases were fraud "
        f"({100 * record.precision:.{digits}f}%, {100 * low:.{digits}f}-{100 * high:.{digits}f}%)"
    )
