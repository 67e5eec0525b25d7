"""Agents around an agent: one that spares it the clear cases, one that says what happens where it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from acefraud.core.bullet import Bullet
from acefraud.core.decision import Decision, Reason, ReasonKind
from acefraud.core.roles import Agent, Assessment
from acefraud.core.scoring import Calibration
from acefraud.core.transaction import FactValue, Verdict
from acefraud.embedded.agent import fires, weigh
from acefraud.errors import ConfigurationError, ModelError


class Fallback(StrEnum):
    """What happens where the model that should decide fails."""

    ERROR = "error"
    REVIEW = "review"
    EMBEDDED = "embedded"


class WithFallback:
    """Hands over to a person or to the embedded engine where a model fails, and says so in the decision."""

    def __init__(self, agent: Agent, fallback: Fallback) -> None:
        self._agent = agent
        self.fallback = fallback

    @property
    def model(self) -> str:
        """Who should decide."""
        return self._agent.model

    @property
    def waits(self) -> bool:
        """Whether the agent waits."""
        return self._agent.waits

    @property
    def without_tier(self) -> WithFallback:
        """The same fallback around the agent without its first tier."""
        return WithFallback(self._agent.without_tier, self.fallback)

    async def assess(
        self,
        text: str,
        facts: Mapping[str, FactValue],
        bullets: Sequence[Bullet],
        calibration: Calibration | None,
        *,
        proven: int | None = None,
    ) -> Assessment:
        """The model's view, or what was chosen for the case that there is none."""
        try:
            return await self._agent.assess(text, facts, bullets, calibration, proven=proven)
        except ModelError as failure:
            if self.fallback is Fallback.ERROR:
                raise
            return self._without_model(facts, bullets, calibration, str(failure))

    def _without_model(
        self, facts: Mapping[str, FactValue], bullets: Sequence[Bullet], calibration: Calibration | None, failure: str
    ) -> Assessment:
        view = weigh(facts, bullets, calibration)
        review = self.fallback is Fallback.REVIEW
        who = (
            "a person should decide; the probability is the embedded engine's"
            if review
            else "the verdict is the embedded engine's"
        )
        said = Reason(kind=ReasonKind.FALLBACK, text=f"{self.model} failed ({failure}): {who}", contribution=None)
        return replace(
            view,
            verdict=Verdict.REVIEW if review else view.verdict,
            reasons=(said, *view.reasons),
            fallback=failure,
        )


class _Failed:
    """An agent that fails as another did."""

    waits = True

    def __init__(self, model: str, failure: str) -> None:
        self.model = model
        self._failure = failure

    @property
    def without_tier(self) -> _Failed:
        """Itself."""
        return self

    async def assess(self, *_: Any, **__: Any) -> Assessment:
        """Never anything."""
        raise ModelError(self._failure)


def failing_as(decision: Decision) -> WithFallback:
    """An agent that comes to a decision which a model failed to make, in the same way again."""
    stated = next(reason.text for reason in decision.reasons if reason.kind is ReasonKind.FALLBACK)
    model = stated.partition(" failed (")[0]
    review = decision.verdict is Verdict.REVIEW
    return WithFallback(_Failed(model, decision.fallback), Fallback.REVIEW if review else Fallback.EMBEDDED)


@dataclass
class TierCount:
    """How many cases the first tier settled, and how many went to the model."""

    settled: int = 0
    asked: int = 0


class Tiered:
    """Decides what the playbook's measured bullets settle with confidence, and asks the model about the rest.

    It takes a frame that was fitted on labelled cases and a measured bullet that argues for the verdict; without them,
    everything goes to the model.
    """

    def __init__(self, agent: Agent, certainty: float = 0.95) -> None:
        if not 0.5 <= certainty <= 1:
            raise ConfigurationError(f"the tier must lie between 0.5 and 1, got {certainty}")
        self.agent = agent
        self._certainty = certainty
        self.count = TierCount()

    def anew(self) -> Tiered:
        """The same, with nothing counted yet."""
        return Tiered(self.agent, self._certainty)

    @property
    def model(self) -> str:
        """Who decides what is not clear."""
        return self.agent.model

    @property
    def waits(self) -> bool:
        """Whether the agent behind it waits."""
        return self.agent.waits

    @property
    def without_tier(self) -> Agent:
        """The agent behind it."""
        return self.agent.without_tier

    async def assess(
        self,
        text: str,
        facts: Mapping[str, FactValue],
        bullets: Sequence[Bullet],
        calibration: Calibration | None,
        *,
        proven: int | None = None,
    ) -> Assessment:
        """The embedded view where it is certain, else the model's."""
        if calibration is not None and calibration.cases:
            view = weigh(facts, bullets, calibration)
            if self._is_certain(view, facts, bullets):
                self.count.settled += 1
                return view
        self.count.asked += 1
        return await self.agent.assess(text, facts, bullets, calibration, proven=proven)

    def _is_certain(self, view: Assessment, facts: Mapping[str, FactValue], bullets: Sequence[Bullet]) -> bool:
        sure = max(view.probability, 1 - view.probability) >= self._certainty
        declines = view.probability >= 0.5
        if not sure or (view.verdict is Verdict.DECLINE) != declines:
            return False
        return any(
            b.condition is not None and b.verified and b.argues is view.verdict and fires(b, facts) for b in bullets
        )
