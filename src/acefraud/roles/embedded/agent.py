"""The embedded agent: adds up the weights of the bullets that apply."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet, Status
from acefraud.core.bullet_table import ROW, STATUSES, VERDICTS, Columns, row_of
from acefraud.core.calibration import Calibration, MeasuredText, RecentLevel, log_odds, sigmoid
from acefraud.core.decision import Reason, ReasonKind
from acefraud.core.transaction import Verdict
from acefraud.roles.protocols import Assessment, Facts, Question
from acefraud.rules.bullet_text import read_bullet
from acefraud.rules.scorecard import GENERAL, points_for
from acefraud.settings import EMBEDDED

PRIOR_CASES = 10.0
"""A measured share is shrunk to the base rate as if this many cases had shown it."""
OVERLAP = 0.5
"""Bullets that were not fitted together overlap, so each counts for half."""
CLAIMED = 0.5
"""The most that a claimed figure may move a decision, in log-odds. An opinion without a figure moves half of it."""
MEASURED_FROM = 20
"""Outcomes at or above which a bullet's own record counts as measured."""
MOST_REASONS = 8192
"""Bullets that are kept as reasons between decisions."""


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
        return weigh(question.facts, question.bullets, question.calibration, proven=question.proven)


def weigh(
    facts: Facts, bullets: Sequence[Bullet], calibration: Calibration | None, *, proven: int | None = None
) -> Assessment:
    """Log-odds = level + scale x the scorecard's points + the weights of the bullets that fire.

    Every term except the intercept is a reason, the largest first; so is what recent outcomes add to the intercept. If
    the first ``proven`` bullets are known to apply, their conditions are not checked again.
    """
    calibration = calibration or GENERAL
    reasons = reasons_apart_from_bullets(facts, calibration)
    for place, bullet in enumerate(bullets):
        if fires(bullet, facts) if proven is None else place < proven:
            reason = reason_of(bullet, calibration.base_rate)
            if reason.contribution:
                reasons.append(reason)
    ordered = largest_first(reasons)
    probability = sigmoid(calibration.intercept + sum(reason.contribution or 0.0 for reason in ordered))
    return Assessment(
        verdict=Verdict.of(probability >= calibration.threshold),
        probability=probability,
        base=calibration.intercept,
        reasons=ordered,
        model=EMBEDDED,
    )


def reasons_apart_from_bullets(facts: Facts, calibration: Calibration) -> list[Reason]:
    """What general knowledge and the latest outcomes say of a transaction."""
    scale, fitted = calibration.knowledge_scale, calibration.points
    points = points_for(facts) if scale > 0 else ()
    reasons = [_knowledge(point.words, scale * fitted.get(point.line, point.points)) for point in points]
    if calibration.recent is not None:
        reasons.append(_recent(calibration.recent))
    return reasons


def largest_first(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """Reasons by how far they move a decision."""
    return tuple(sorted(reasons, key=lambda reason: (-abs(reason.contribution or 0.0), reason.text)))


def as_bullets(given: Sequence[str | Bullet]) -> tuple[Bullet, ...]:
    """Bullets as they are, and sentences read as bullets."""
    return tuple(_as_bullet(place, bullet) for place, bullet in enumerate(given, 1))


def fires(bullet: Bullet, facts: Facts) -> bool:
    """Whether a selected bullet applies: its condition holds. A note never moves a decision."""
    return bullet.condition is not None and bullet.condition.holds(facts)


@lru_cache(maxsize=4096)
def _knowledge(words: str, contribution: float) -> Reason:
    return Reason(kind=ReasonKind.KNOWLEDGE, text=words, contribution=contribution)


@lru_cache(maxsize=64)
def _recent(level: RecentLevel) -> Reason:
    return Reason(kind=ReasonKind.RECENT, text=level.in_words, contribution=level.shift)


class _Reasons:
    """A cache of bullets as reasons: the same bullets apply to many decisions."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Bullet, float, Reason]] = {}

    def of(self, bullet: Bullet, base_rate: float) -> Reason:
        """A bullet's text, and by how much it moves a decision."""
        made = self._made.get(id(bullet))
        if made is None or made[0] is not bullet or made[1] != base_rate:
            weight = weight_of(bullet, base_rate)
            reason = Reason(kind=ReasonKind.BULLET, text=bullet.shown, contribution=weight, bullet_id=bullet.id)
            if len(self._made) >= MOST_REASONS:
                self._made.clear()
            self._made[id(bullet)] = made = bullet, base_rate, reason
        return made[2]


_reasons = _Reasons()


def reason_of(bullet: Bullet, base_rate: float) -> Reason:
    """A bullet as a reason: its text, and by how much it moves a decision."""
    return _reasons.of(bullet, base_rate)


def weight_of(bullet: Bullet, base_rate: float) -> float:
    """The weight of a bullet in log-odds of fraud: fitted, else measured, else a little for its claim; 0 for a note."""
    return float(weights_in(np.array([row_of(bullet, 0)], dtype=ROW), base_rate)[0])


def weights_of(bullets: Sequence[Bullet], base_rate: float) -> npt.NDArray[np.float64]:
    """The weight of each bullet, as `weight_of` has it."""
    return weights_in(np.array([row_of(bullet, 0) for bullet in bullets], dtype=ROW), base_rate)


def weights_in(columns: Columns, base_rate: float) -> npt.NDArray[np.float64]:
    """The weight of each bullet of a table, as `weight_of` has it."""
    claimed = np.where(columns["claimed"], CLAIMED, CLAIMED / 2)
    said = np.where(columns["argues"] == VERDICTS.index(Verdict.DECLINE), claimed, -claimed)
    said[columns["argues"] == 0] = 0.0
    verified = (columns["shown_support"] > 0) & ~np.isnan(columns["shown_base"])
    unfitted = np.isnan(columns["weight"])
    for row in np.flatnonzero(unfitted & (verified | (columns["support"] >= MEASURED_FROM))):
        one = columns[row]
        if verified[row]:
            said[row] = _measured(int(one["shown_frauds"]), int(one["shown_support"]), float(one["shown_base"]))
        else:
            said[row] = _measured(int(one["frauds"]), int(one["support"]), base_rate)
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
    frames = [one.fit.calibration for one in texts if isinstance(one, MeasuredText) and one.fit is not None]
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
