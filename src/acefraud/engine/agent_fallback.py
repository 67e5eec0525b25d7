"""Agents that wrap an agent: a first tier that decides the clear cases, and a fallback for failed calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from acefraud.core.decision import Decision, Reason, ReasonKind
from acefraud.core.transaction import Verdict
from acefraud.errors import ConfigurationError, ModelError
from acefraud.roles.embedded.agent import fires, weigh
from acefraud.roles.protocols import Agent, Assessment, Question


class Fallback(StrEnum):
    """What happens if the model fails to decide."""

    ERROR = "error"
    REVIEW = "review"
    EMBEDDED = "embedded"


class WrappedAgent:
    """Base of the agents that wrap another one."""

    adds_up = False

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.model = agent.model
        self.waits = agent.waits


class WithFallback(WrappedAgent):
    """Leaves the case to a person or to the embedded engine if the model fails, and records that in the decision."""

    def __init__(self, agent: Agent, fallback: Fallback) -> None:
        super().__init__(agent)
        self.fallback = fallback

    @property
    def without_tier(self) -> WithFallback:
        """The same fallback around the agent without its first tier."""
        return WithFallback(self.agent.without_tier, self.fallback)

    async def assess(self, question: Question) -> Assessment:
        """The model's view, or that of the fallback if the call fails."""
        try:
            return await self.agent.assess(question)
        except ModelError as failure:
            if self.fallback is Fallback.ERROR:
                raise
            return self._without_model(question, str(failure))

    def _without_model(self, question: Question, failure: str) -> Assessment:
        view = weigh(question.facts, question.bullets, question.calibration)
        review = self.fallback is Fallback.REVIEW
        who = "a person should decide; the probability" if review else "the verdict"
        text = f"{self.model} failed ({failure}): {who} is the embedded engine's"
        reason = Reason(kind=ReasonKind.FALLBACK, text=text, contribution=None)
        verdict = Verdict.REVIEW if review else view.verdict
        return replace(view, verdict=verdict, reasons=(reason, *view.reasons), fallback=failure)


@dataclass(frozen=True)
class _Failed:
    """An agent that always fails, with the failure of another."""

    model: str
    failure: str
    waits: bool = True
    adds_up: bool = False

    @property
    def without_tier(self) -> _Failed:
        """Itself."""
        return self

    async def assess(self, _: Question) -> Assessment:
        """Raise the failure."""
        raise ModelError(self.failure)


def failing_as(decision: Decision) -> WithFallback:
    """An agent that reproduces a decision which was made by a fallback."""
    text = next(reason.text for reason in decision.reasons if reason.kind is ReasonKind.FALLBACK)
    model = text.partition(" failed (")[0]
    review = decision.verdict is Verdict.REVIEW
    return WithFallback(_Failed(model, decision.fallback), Fallback.REVIEW if review else Fallback.EMBEDDED)


class Tiered(WrappedAgent):
    """Decides the cases that measured bullets make clear, and leaves the rest to the model.

    A clear case needs a calibration fitted on labelled cases and a measured bullet that argues for the verdict; without
    them everything goes to the model.
    """

    def __init__(self, agent: Agent, certainty: float = 0.95) -> None:
        if not 0.5 <= certainty <= 1:
            raise ConfigurationError(f"tier: expected a certainty from 0.5 to 1, got {certainty}")
        super().__init__(agent)
        self._certainty = certainty
        self.by_tier = self.by_model = 0
        """How many cases the first tier decided, and how many went to the model."""

    def with_new_counts(self) -> Tiered:
        """The same tier with new counts."""
        return Tiered(self.agent, self._certainty)

    @property
    def without_tier(self) -> Agent:
        """The wrapped agent."""
        return self.agent.without_tier

    async def assess(self, question: Question) -> Assessment:
        """The embedded view if it is certain, else the model's."""
        if question.calibration is not None and question.calibration.cases:
            view = weigh(question.facts, question.bullets, question.calibration)
            if self._is_certain(view, question):
                self.by_tier += 1
                return view
        self.by_model += 1
        return await self.agent.assess(question)

    def _is_certain(self, view: Assessment, question: Question) -> bool:
        sure = max(view.probability, 1 - view.probability) >= self._certainty
        declines = view.probability >= 0.5
        if not sure or (view.verdict is Verdict.DECLINE) != declines:
            return False
        measured = [bullet for bullet in question.bullets if bullet.condition is not None and bullet.verified]
        return any(bullet.argues is view.verdict and fires(bullet, question.facts) for bullet in measured)
