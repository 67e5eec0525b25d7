"""Where a day's reviews go, if there are only so many: to the cases where a review saves most.

What the rest of the day will bring is estimated from recent decisions. A case is reviewed if fewer cases that save more
are expected than reviews are left. So the day's reviews last for the day, and what is unused late goes to lesser cases.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from itertools import compress
from threading import Lock

import numpy as np

from acefraud.core.events import DecisionMade
from acefraud.core.ledger import DecisionFilter, Ledger
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import ReviewCosts, number_in

_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0
_DAYS = 7
"""Days whose decisions say what a day brings."""
_READ, _KEPT = 10_000, 20_000
"""Decisions that are read at once, and that are remembered."""


@dataclass(frozen=True, slots=True)
class ReviewsLeft:
    """What is left of a day's reviews, and what the rest of the day is expected to bring."""

    per_day: int
    used: int = 0
    savings: Sequence[float] = ()
    """What reviews of the cases that are still to come would save, ascending; 0 where they save nothing."""
    weight: float = 1.0
    """How many such cases each of these stands for."""

    @property
    def cut(self) -> float:
        """What a review of the next case has to save."""
        left = max(self.per_day - self.used, 0)
        place = len(self.savings) - max(math.ceil(left / self.weight), 1) if self.weight else -1
        return self.savings[place] if place >= 0 else 0.0

    def cuts(self, savings: Sequence[float | None]) -> list[float]:
        """What a review of each case of a batch has to save, so that the best of them and of later ones are reviewed.

        Of the cases that are still to come, the batch itself is some. Of equal cases, the first are reviewed.

        >>> ReviewsLeft(per_day=2).cuts([1.0, None, 3.0, 2.0])
        [2.0, 0.0, 0.0, 0.0]
        """
        later = replace(self, weight=max(0.0, self.weight - len(savings) / max(1, len(self.savings))))
        left, cut = self.per_day - self.used, later.cut
        cuts, lowest = [cut] * len(savings), cut
        best_first = sorted((-saving, place) for place, saving in enumerate(savings) if saving is not None)
        for rank, (negative, place) in enumerate(best_first):
            better = rank + later.weight * (len(self.savings) - bisect_right(self.savings, -negative))
            if better < left:
                cuts[place], lowest = min(cut, -negative), -negative
            else:  # an equal case may have been taken before it
                cuts[place] = max(lowest, math.nextafter(-negative, math.inf))
        return cuts

    @property
    def words(self) -> str:
        """How many reviews are used up, and what the next one has to save."""
        next_one = f"the next saves at least {self.cut:.2f}" if self.used < self.per_day else "none is left"
        return f"{self.used:,} of today's {self.per_day:,} reviews used, {next_one}"


class ReviewCapacity:
    """The reviews of a playbook with a limit a day, in UTC and by the clock. What was read once is not read again."""

    def __init__(self, ledger: Ledger, node: str) -> None:
        self._ledger, self._node = ledger, node
        self._lock = Lock()
        self._day: datetime | None = None
        self._used = self._seq = 0
        self._seen: deque[tuple[float, float, float | None]] = deque(maxlen=_KEPT)
        """When decisions were made, their probabilities and amounts."""
        self._read = self._due = 0
        self._estimate, self._made_for = ReviewsLeft(0), (0.0, ReviewCosts(false_decline=0))

    def left(self, snapshot: Snapshot, clock: Callable[[], datetime]) -> ReviewsLeft | None:
        """What all processes have left of today's reviews, and what is still to come; None if there is no limit."""
        rule = snapshot.reviews.get(self._node)
        if rule is None or rule.costs is None or rule.costs.per_day is None:
            return None
        costs, now = rule.costs, clock()
        midnight, moment = datetime.combine(now.date(), time(), now.tzinfo), now.timestamp()
        with self._lock:
            if midnight != self._day:
                self._day, self._used, self._seq = midnight, 0, 0
            more, self._seq = self._ledger.reviews_since(midnight, self._seq)
            self._used += more
            made_for = moment // _MINUTE, costs
            if made_for != self._made_for or self._seq >= self._due:
                self._read_new()
                self._made_for, self._due = made_for, self._seq + max(8, len(self._seen) // 8)
                self._estimate = self._rest_of_day(costs, moment, midnight.timestamp() + _DAY)
            return replace(self._estimate, used=self._used)

    def _read_new(self) -> None:
        """Read the decisions since the last time. If there are too many, the latest of them take the place of all."""
        events = self._ledger.find_decisions(DecisionFilter(), after=self._read, limit=_READ)
        if len(events) == _READ:
            self._seen.clear()
        for event in reversed(events):
            assert isinstance(event.payload, DecisionMade)
            record, self._read = event.payload.record, event.seq
            of_policy = '"policy"' in record.body and record.decision.policy is not None
            if record.setup is not None and record.node == self._node and not of_policy:
                amount = number_in(record.basis[0], "amount")
                self._seen.append((event.at.timestamp(), record.probability, amount))

    def _rest_of_day(self, costs: ReviewCosts, now: float, day_end: float) -> ReviewsLeft:
        """What is expected until midnight: what came at these hours of the last days, or else today's pace goes on.

        Files may be decided within minutes, so the pace is that since midnight.
        """
        ages = now - np.array([at for at, _, _ in self._seen])
        span, rest = float(ages.max(initial=0.0)), day_end - now
        weight, counted = rest / max(_DAY - rest, span, _HOUR), ages <= span
        if span >= _DAY:
            days = min(_DAYS, int(span // _DAY))
            weight, counted = 1 / days, (ages <= days * _DAY) & (-ages % _DAY < rest)
        cases = compress(self._seen, counted.tolist())
        savings = sorted(costs.saving(probability, amount) or 0.0 for _, probability, amount in cases)
        return ReviewsLeft(costs.per_day or 0, 0, savings, weight)
