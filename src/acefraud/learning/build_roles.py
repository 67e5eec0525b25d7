"""The roles of the loop, built from settings: models with their fallback and first tier, or the embedded engine."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from acefraud.display.redaction import Masker
from acefraud.display.short_repr import ShortRepr
from acefraud.engine.models import Tiered, WithFallback, Witness
from acefraud.engine.options import Fallback, LearnerOptions
from acefraud.errors import ConfigurationError
from acefraud.learning.learner import Learner
from acefraud.learning.pipeline import TrainingPipeline
from acefraud.llm.call import Caller
from acefraud.llm.client import ModelClient
from acefraud.llm.synchronous import blocking_twin
from acefraud.roles.embedded.embedder import DEFAULT_EMBEDDER
from acefraud.roles.judge import LLMJudge
from acefraud.roles.model.build import build_model_roles
from acefraud.roles.model.prompts import Style
from acefraud.roles.protocols import Agent, Embedder, Judge, OwnRole, Proposer
from acefraud.settings import COMBINED, EMBEDDERS, ModelSettings
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arguments import check_type

CASES_FOR_ODDS = 60
"""Labelled cases that the odds of verdict tokens are calibrated on."""


@dataclass(frozen=True, slots=True, repr=False)
class Roles(ShortRepr):
    """The roles of the loop; None for those that the embedded engine plays.

    `build_roles` makes one from settings. `Cast` is its earlier name.

    >>> from acefraud import BulletPlaybook, ModelSettings
    >>> roles = build_roles(ModelSettings())
    >>> learner = roles.learner(BulletPlaybook(), most_bullets=40)
    >>> learner.agent.model, learner.options.most_bullets
    ('embedded', 40)
    """

    agent: Agent | OwnRole | None = None
    """Decides."""
    judge: Judge | OwnRole | None = None
    """Says whether a decision was right."""
    proposer: Proposer | OwnRole | None = None
    """The model that reflects."""
    embedder: str | Embedder | OwnRole = DEFAULT_EMBEDDER
    """Finds bullets by their words."""
    tier: Tiered | Witness | None = None
    """The agent again, if it decides some cases without the model."""
    scale_odds: int = 0
    """Labelled cases on which the odds of a model's verdict tokens are fitted."""
    client: ModelClient | None = None
    """What all models are called through."""
    fallback: Fallback = Fallback.ERROR
    """What happens if a model fails: an error, a review by a person, or the embedded engine."""

    def learner(self, playbook: BulletPlaybook, **options: Any) -> Learner:
        """A learner on a playbook, with these roles. The options are those of `LearnerOptions`.

        >>> from acefraud import BulletPlaybook
        >>> Roles().learner(BulletPlaybook()).reflector.model
        'embedded'
        """
        return self._pipeline(LearnerOptions(fallback=self.fallback, **options)).learner(playbook)

    def pipeline(self, seed: int = 0, *, most_bullets: int | None = None) -> TrainingPipeline:
        """The three modes with these roles.

        >>> Roles().pipeline(seed=7).seed
        7
        """
        return self._pipeline(LearnerOptions(fallback=self.fallback, most_bullets=most_bullets), seed)

    def _pipeline(self, options: LearnerOptions, seed: int = 0) -> TrainingPipeline:
        return TrainingPipeline(
            agent=self.agent,
            judge=self.judge,
            proposer=self.proposer,
            embedder=self.embedder,
            scale_odds=self.scale_odds,
            options=options,
            seed=seed,
        )

    def with_new_counts(self) -> Roles:
        """The same roles for another run, with new counts of the first tier."""
        if self.tier is None:
            return self
        tier = self.tier.with_new_counts()
        return replace(self, agent=tier, tier=tier)

    def without_tier(self) -> Roles:
        """The same roles without a first tier: every case goes to the model."""
        return self if self.tier is None else replace(self, agent=self.tier.in_full, tier=None)

    async def close(self) -> None:
        """Close the connections."""
        if self.client is not None:
            await self.client.close()

    close_sync = blocking_twin(close, lambda self: self.client is not None)


def build_roles(
    chosen: ModelSettings,
    *,
    sensitive: tuple[str, ...] = (),
    sensitive_now: Callable[[], Collection[str]] = tuple,
    caller: Caller | None = None,
) -> Roles:
    """The roles for these settings. If no role uses a model, no client is created.

    `sensitive` names facts that no model is shown. `sensitive_now` names further ones in lower case; it is asked for
    every prompt. A `caller` takes the place of the network in tests. `cast` is the earlier name of this function.

    >>> from acefraud import ModelSettings
    >>> build_roles(ModelSettings()).client is None
    True
    """
    check_type("chosen", chosen, ModelSettings, "ModelSettings", ConfigurationError)
    embedded = chosen.embedding if chosen.embedding in EMBEDDERS else DEFAULT_EMBEDDER
    if not chosen.uses_models:
        return Roles(embedder=embedded)
    fallback = Fallback(chosen.fallback)
    models = build_model_roles(chosen, mask=Masker(sensitive, sensitive_now), caller=caller)
    agent = None if models.agent is None else WithFallback(models.agent, fallback)
    tier: Tiered | Witness | None = None
    if agent is not None and chosen.opinion == COMBINED:
        tier = Witness(agent)
    elif agent is not None and chosen.tier is not None:
        tier = Tiered(agent, chosen.tier)
    scaled = agent is not None and (chosen.style == Style.DIRECT or chosen.opinion == COMBINED)
    return Roles(
        agent=tier or agent,
        judge=LLMJudge(models.judge) if models.judge else None,
        proposer=models.reflector,
        embedder=models.embedder or embedded,
        tier=tier,
        scale_odds=CASES_FOR_ODDS if scaled else 0,
        client=models.client,
        fallback=fallback,
    )
