"""Who plays which role in the loop, for what was chosen: language models, and around them what guards them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from acefraud.core.roles import Agent, Embedder, Judge, Proposes
from acefraud.embedded.embedder import DEFAULT_EMBEDDER, embedder_named
from acefraud.learning.learner import Learner
from acefraud.learning.options import LearnerOptions
from acefraud.learning.pipeline import TrainingPipeline
from acefraud.learning.reflecting import ReflectionPolicy
from acefraud.learning.standing_in import Fallback, Tiered, WithFallback
from acefraud.llm.calling import Caller
from acefraud.llm.client import ModelClient
from acefraud.llm.masking import Mask
from acefraud.llm.playing import play
from acefraud.llm.prompting import Style
from acefraud.roles.judge import LLMJudge
from acefraud.roles.reflector import Reflector
from acefraud.selection.hybrid import HybridSelector
from acefraud.settings import EMBEDDERS, ModelSettings
from acefraud.storage.playbook import BulletPlaybook

CASES_FOR_ODDS = 60
"""Labelled cases on which the odds of verdict tokens are fitted."""


@dataclass(frozen=True, slots=True)
class Cast:
    """The parts of the loop that were handed out; None where the embedded engine plays them."""

    agent: Agent | None = None
    judge: Judge | None = None
    proposer: Proposes | None = None
    embedder: str | Embedder = DEFAULT_EMBEDDER
    tier: Tiered | None = None
    """The agent again, where it is only asked about what is not clear."""
    scale_odds: int = 0
    client: ModelClient | None = None
    fallback: Fallback = Fallback.ERROR

    def learner(self, playbook: BulletPlaybook) -> Learner:
        """A learner on a playbook, with this cast."""
        return Learner(
            playbook,
            agent=self.agent,
            judge=self.judge,
            reflector=Reflector.played_by(self.proposer),
            selector=HybridSelector(embedding_model=self.embedder),
            options=LearnerOptions(fallback=self.fallback),
        )

    def pipeline(self, seed: int = 0, policy: ReflectionPolicy | None = None) -> TrainingPipeline:
        """The three modes with this cast."""
        return TrainingPipeline(
            agent=self.agent,
            judge=self.judge,
            proposer=self.proposer,
            policy=policy,
            embedder=self.embedder,
            scale_odds=self.scale_odds,
            options=LearnerOptions(fallback=self.fallback),
            seed=seed,
        )

    def anew(self) -> Cast:
        """The same cast for another run, which counts what its first tier settles on its own."""
        if self.tier is None:
            return self
        tier = self.tier.anew()
        return replace(self, agent=tier, tier=tier)

    def in_full(self) -> Cast:
        """The same cast without a first tier: every case goes to the model."""
        return self if self.tier is None else replace(self, agent=self.tier.agent, tier=None)

    async def close(self) -> None:
        """Let go of the connections."""
        if self.client is not None:
            await self.client.close()


def cast(
    chosen: ModelSettings,
    *,
    sensitive: tuple[str, ...] = (),
    caller: Caller | None = None,
    vectors: Path | None = None,
) -> Cast:
    """Hand out the roles. Where no model was chosen for any, no client is made at all.

    `vectors` is the folder that an embedded embedder keeps its vectors in, for the next run; None keeps none.

    >>> cast(ModelSettings()).client is None
    True
    """
    name = chosen.embedding if chosen.embedding in EMBEDDERS else DEFAULT_EMBEDDER
    own = name if vectors is None else embedder_named(name, vectors)
    if not chosen.uses_models:
        return Cast(embedder=own)
    players = play(chosen, mask=Mask(sensitive=sensitive), caller=caller)
    agent: Agent | None = players.agent
    if agent is not None:
        agent = WithFallback(agent, Fallback(chosen.fallback))
    tier = Tiered(agent, chosen.tier) if agent is not None and chosen.tier is not None else None
    direct = agent is not None and chosen.style == Style.DIRECT
    return Cast(
        agent=tier or agent,
        judge=LLMJudge.played_by(players.judge) if players.judge else None,
        proposer=players.reflector,
        embedder=players.embedder or own,
        tier=tier,
        scale_odds=CASES_FOR_ODDS if direct else 0,
        client=players.client,
        fallback=Fallback(chosen.fallback),
    )
