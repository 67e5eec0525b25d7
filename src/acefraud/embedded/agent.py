"""The embedded agent: adds up what the bullets that apply are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet, Status
from acefraud.core.decision import Reason, ReasonKind
from acefraud.core.measured_text import MeasuredText
from acefraud.core.page import ROW, STATUSES, VERDICTS, Table, row_of
from acefraud.core.reading import read_bullet
from acefraud.core.roles import Assessment
from acefraud.core.scoring import Calibration, log_odds, sigmoid
from acefraud.core.transaction import FactValue, Verdict
from acefraud.embedded.scorecard import GENERAL, points_for
from acefraud.settings import EMBEDDED

PRIOR_CASES = 10.0
"""A measured share is drawn to the base rate as if so many cases had shown it."""
OVERLAP = 0.5
"""Bullets that were never fitted together partly say the same, so each counts for half."""
CLAIMED = 0.5
"""The most, in log-odds, that a figure nobody measured may move a decision; a bare opinion moves half of it."""
MEASURED_FROM = 20
"""A bullet's own record counts as measured from so many outcomes on."""


class EmbeddedAgent:
    """Decides a transaction from its facts, the bullets it is handed and general knowledge."""

    model = EMBEDDED
    waits = False

    @property
    def without_tier(self) -> EmbeddedAgent:
        """Itself."""
        return self

    async def assess(
        self,
        text: str,  # noqa: ARG002  # a language model reads the text; this one reads the facts
        facts: Mapping[str, FactValue],
        bullets: Sequence[Bullet],
        calibration: Calibration | None,
        *,
        proven: int | None = None,
    ) -> Assessment:
        """Verdict, probability and reasons, worked out at once."""
        return weigh(facts, bullets, calibration, proven=proven)


def weigh(
    facts: Mapping[str, FactValue],
    bullets: Sequence[Bullet],
    calibration: Calibration | None,
    *,
    proven: int | None = None,
) -> Assessment:
    """Log-odds = intercept + scale x the scorecard's points + the weights of the bullets that fire.

    Every term but the intercept stands among the reasons, the largest first. Where it is known how many bullets, from
    the first on, are ``proven`` to apply, their conditions are not looked at again.
    """
    frame = calibration or GENERAL
    scale = frame.knowledge_scale
    reasons = [_knowledge(point.words, scale * point.points) for point in points_for(facts)] if scale > 0 else []
    for place, bullet in enumerate(bullets):
        if fires(bullet, facts) if proven is None else place < proven or bullet.condition is None:
            reason = _reasons.of(bullet, frame.base_rate)
            if reason.contribution:
                reasons.append(reason)
    reasons.sort(key=lambda reason: (-abs(reason.contribution or 0.0), reason.text))
    probability = sigmoid(frame.intercept + sum(reason.contribution or 0.0 for reason in reasons))
    return Assessment(
        verdict=Verdict.of(probability >= frame.threshold),
        probability=probability,
        base=frame.intercept,
        reasons=tuple(reasons),
    )


def as_bullets(given: Sequence[str | Bullet]) -> tuple[Bullet, ...]:
    """Bullets, and sentences read as bullets."""
    return tuple(_as_bullet(place, bullet) for place, bullet in enumerate(given))


def fires(bullet: Bullet, facts: Mapping[str, FactValue]) -> bool:
    """Whether a bullet that was selected speaks here: its condition holds, or it is prose and was found relevant."""
    return bullet.condition is None or bullet.condition.holds(facts)


@lru_cache(maxsize=4096)
def _knowledge(words: str, contribution: float) -> Reason:
    return Reason(kind=ReasonKind.KNOWLEDGE, text=words, contribution=contribution)


class _Reasons:
    """Bullets as reasons, made once for each bullet: the same ones speak in decision after decision."""

    def __init__(self, most: int = 8192) -> None:
        self._made: dict[int, tuple[Bullet, float, Reason]] = {}
        self._most = most

    def of(self, bullet: Bullet, base_rate: float) -> Reason:
        """What a bullet says, and by how much it moves a decision."""
        made = self._made.get(id(bullet))
        if made is None or made[0] is not bullet or made[1] != base_rate:
            weight = weight_of(bullet, base_rate)
            reason = Reason(kind=ReasonKind.BULLET, text=bullet.shown, contribution=weight, bullet_id=bullet.id)
            if len(self._made) >= self._most:
                self._made.clear()
            self._made[id(bullet)] = made = bullet, base_rate, reason
        return made[2]


_reasons = _Reasons()


def weight_of(bullet: Bullet, base_rate: float) -> float:
    """What a bullet is worth in log-odds of fraud: fitted, else measured, else a little for what it claims."""
    return float(weights_in(np.array([row_of(bullet, 0)], dtype=ROW), base_rate)[0])


def weights_in(table: Table, base_rate: float) -> npt.NDArray[np.float64]:
    """The same for bullets in columns."""
    claimed = np.where(table["claimed"] & table["conditioned"], CLAIMED, CLAIMED / 2)
    said = np.where(table["argues"] == VERDICTS.index(Verdict.DECLINE), claimed, -claimed)
    said[table["argues"] == 0] = 0.0
    verified = (table["shown_support"] > 0) & ~np.isnan(table["shown_base"])
    unfitted = np.isnan(table["weight"])
    for row in np.flatnonzero(unfitted & (verified | (table["support"] >= MEASURED_FROM))):
        shown = table[row]
        if verified[row]:
            said[row] = _measured(int(shown["shown_frauds"]), int(shown["shown_support"]), float(shown["shown_base"]))
        else:
            said[row] = _measured(int(shown["frauds"]), int(shown["support"]), base_rate)
    said[table["status"] == STATUSES.index(Status.CANDIDATE)] /= 2
    return np.where(unfitted, said, table["weight"])


def _measured(frauds: int, support: int, base_rate: float) -> float:
    base = min(max(base_rate, 0.001), 0.999)
    share = (frauds + PRIOR_CASES * base) / (support + PRIOR_CASES)
    return OVERLAP * (log_odds(share) - log_odds(base))


def frame_of(bullets: Sequence[str | Bullet]) -> Calibration | None:
    """The frame that the bullets bring along; None where they bring none, or not all the same."""
    texts = [bullet.content if isinstance(bullet, Bullet) else bullet for bullet in bullets]
    frames = {one.fit.calibration for one in texts if isinstance(one, MeasuredText) and one.fit is not None}
    return frames.pop() if len(frames) == 1 else None


def _as_bullet(place: int, bullet: str | Bullet) -> Bullet:
    if isinstance(bullet, Bullet):
        return bullet
    if isinstance(bullet, MeasuredText):
        return Bullet(
            id=f"given-{place + 1}",
            content=bullet,
            condition=bullet.condition,
            argues=bullet.argues,
            evidence=bullet.evidence,
            weight=bullet.weight,
            problem_types=bullet.problem_types,
        )
    reading = read_bullet(bullet)
    return Bullet(
        id=f"given-{place + 1}",
        content=bullet,
        condition=reading.condition,
        argues=reading.argues,
        claim=reading.claim,
    )
