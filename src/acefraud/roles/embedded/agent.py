"""The embedded agent: adds up the weights of the bullets that apply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

from acefraud.core.bullet import Bullet, Status
from acefraud.core.bullet_table import ROW, STATUSES, VERDICTS, Columns, row_of
from acefraud.core.calibration import Calibration, MeasuredText, log_odds
from acefraud.core.decision import Reason, ReasonKind
from acefraud.core.transaction import Verdict
from acefraud.roles.protocols import Assessment, Facts, Question
from acefraud.rules.bullet_text import read_bullet
from acefraud.rules.scorecard import GENERAL, Point, points_for, scorecard
from acefraud.settings import EMBEDDED
from acefraud.support.arrays import FloatArray
from acefraud.support.exact_math import sigmoid

PRIOR_CASES = 10.0
"""A measured share is shrunk to the base rate as if this many cases had shown it."""
OVERLAP = 0.5
"""Bullets that were not fitted together overlap, so each counts for half."""
CLAIMED = 0.5
"""The most that a claimed figure may move a decision, in log-odds. An opinion without a figure moves half of it."""
MEASURED_FROM = 20
"""Outcomes at or above which a bullet's own record counts as measured."""
MOST_REASONS = 8192
"""Reasons that are kept between decisions: the same bullets apply to many."""

_STEPS = 2.0**40
A = TypeVar("A", float, FloatArray)


class EmbeddedAgent:
    """Decides a transaction from its facts, the bullets it is handed and general knowledge."""

    model = EMBEDDED
    waits = False
    adds_up = True

    @property
    def without_tier(self) -> EmbeddedAgent:
        """Itself."""
        return self

    async def assess(self, question: Question) -> Assessment:
        """Verdict, probability and reasons. A language model reads the text; this one reads the facts."""
        return weigh(question.facts, question.bullets, question.calibration)


def weigh(facts: Facts, bullets: Sequence[Bullet], calibration: Calibration | None) -> Assessment:
    """The view of the embedded engine on one transaction, with the bullets that were picked for it, in their order.

    Every term of the sum except the intercept is a reason, the largest first; so is what recent outcomes add to the
    intercept.
    """
    calibration = calibration or GENERAL
    firing = [bullet for bullet in bullets if fires(bullet, facts)]
    weights = [weight_of(bullet, calibration.base_rate) for bullet in firing]
    reasons = [*bullet_reasons(firing, weights), *reasons_apart_from_bullets(facts, calibration)]
    probability = sigmoid(log_odds_from((addable(reason.contribution or 0.0) for reason in reasons), calibration))
    return Assessment(
        verdict=Verdict.of(probability >= calibration.threshold),
        probability=probability,
        base=calibration.intercept,
        reasons=largest_first(reasons),
        model=EMBEDDED,
    )


def log_odds_from(amounts: Iterable[A], calibration: Calibration) -> A | float:
    """The log-odds of fraud: the intercept + what is added up, which are numbers or, for many transactions, columns.

    All scores come from here. They agree bit by bit, in whatever order the amounts come: these are `addable`.
    """
    total: A | float = 0.0
    for amount in amounts:
        total = total + amount
    return calibration.intercept + total


def addable(amount: A) -> A:
    """An amount of log-odds in whole steps of 2^-40. Sums of such amounts below 2^12 have no rounding errors.

    >>> addable(0.1) + addable(0.2) + addable(0.3) == addable(0.3) + addable(0.2) + addable(0.1)
    True
    """
    steps = amount * _STEPS
    return (np.rint(steps) if isinstance(steps, np.ndarray) else round(steps)) / _STEPS


def knowledge_of(calibration: Calibration) -> list[tuple[Point, float]]:
    """The lines of general knowledge, each with what it adds to the log-odds; none if it does not count."""
    scale, fitted = calibration.knowledge_scale, calibration.points
    return [(point, scale * fitted.get(point.line, point.points)) for point in scorecard()] if scale > 0 else []


def reasons_apart_from_bullets(facts: Facts, calibration: Calibration) -> list[Reason]:
    """What general knowledge and the latest outcomes say of a transaction."""
    scale, fitted = calibration.knowledge_scale, calibration.points
    points = points_for(facts) if scale > 0 else ()
    knowledge, recent = ReasonKind.KNOWLEDGE, calibration.recent
    reasons = [_reason(knowledge, point.words, scale * fitted.get(point.line, point.points)) for point in points]
    return reasons if recent is None else [*reasons, _reason(ReasonKind.RECENT, recent.in_words, recent.shift)]


def bullet_reasons(bullets: Iterable[Bullet], weights: Iterable[float]) -> list[Reason]:
    """Bullets as reasons. One without weight is none."""
    pairs = zip(bullets, weights, strict=True)
    return [_reason(ReasonKind.BULLET, bullet.shown, weight, bullet.id) for bullet, weight in pairs if weight]


@lru_cache(maxsize=MOST_REASONS)
def _reason(kind: ReasonKind, text: str, contribution: float, bullet_id: str | None = None) -> Reason:
    return Reason(kind=kind, text=text, contribution=contribution, bullet_id=bullet_id)


def largest_first(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """Reasons by how far they move a decision."""
    return tuple(sorted(reasons, key=lambda reason: (-abs(reason.contribution or 0.0), reason.text)))


def as_bullets(given: Sequence[str | Bullet]) -> tuple[Bullet, ...]:
    """Bullets as they are, and sentences read as bullets."""
    return tuple(_as_bullet(index, bullet) for index, bullet in enumerate(given, 1))


def fires(bullet: Bullet, facts: Facts) -> bool:
    """Whether a selected bullet applies: its condition holds. A note never moves a decision."""
    return bullet.condition is not None and bullet.condition.holds(facts)


def weight_of(bullet: Bullet, base_rate: float) -> float:
    """The weight of a bullet in log-odds of fraud: fitted, else measured, else a little for its claim; 0 for a note."""
    return float(weights_in(np.array([row_of(bullet, 0)], dtype=ROW), base_rate)[0])


def weights_in(columns: Columns, base_rate: float) -> FloatArray:
    """The weight of each bullet of a table, as `weight_of` has it."""
    claimed = np.where(columns["claimed"], CLAIMED, CLAIMED / 2)
    said = np.where(columns["argues"] == VERDICTS.index(Verdict.DECLINE), claimed, -claimed)
    said[columns["argues"] == 0] = 0.0
    verified = (columns["shown_support"] > 0) & ~np.isnan(columns["shown_base"])
    unfitted = np.isnan(columns["weight"])
    for row in np.flatnonzero(unfitted & (verified | (columns["support"] >= MEASURED_FROM))):
        bullet = columns[row]
        if verified[row]:
            said[row] = _measured(
                int(bullet["shown_frauds"]), int(bullet["shown_support"]), float(bullet["shown_base"])
            )
        else:
            said[row] = _measured(int(bullet["frauds"]), int(bullet["support"]), base_rate)
    said[columns["status"] == STATUSES.index(Status.CANDIDATE)] /= 2
    said = np.where(unfitted, said, columns["weight"])
    said[~columns["conditioned"]] = 0.0  # a note is for people
    return said


def _measured(frauds: int, support: int, base_rate: float) -> float:
    base = min(max(base_rate, 0.001), 0.999)
    share = (frauds + PRIOR_CASES * base) / (support + PRIOR_CASES)
    return OVERLAP * (log_odds(share) - log_odds(base))


def calibration_of(bullets: Sequence[str | Bullet]) -> Calibration | None:
    """The calibration that the bullets carry; None if they carry none, or different ones."""
    texts = [bullet.content if isinstance(bullet, Bullet) else bullet for bullet in bullets]
    frames = [text.fit.calibration for text in texts if isinstance(text, MeasuredText) and text.fit is not None]
    return frames[0] if frames and all(frame == frames[0] for frame in frames) else None


def _as_bullet(place: int, bullet: str | Bullet) -> Bullet:
    if isinstance(bullet, Bullet):
        return bullet
    if not isinstance(bullet, MeasuredText):
        reading = read_bullet(bullet)
        return Bullet(
            id=f"given-{place}", content=bullet, condition=reading.condition, argues=reading.argues, claim=reading.claim
        )
    measured = bullet.bullet
    return Bullet(
        id=f"given-{place}",
        content=bullet,
        condition=measured.condition,
        argues=measured.argues,
        evidence=measured.evidence,
        weight=measured.weight,
        problem_types=tuple(measured.problem_types),
    )
