"""The reflector: proposes bullets from outcomes, in the light of all that it was shown before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from acefraud.core.bullet import DEFAULT_NODE
from acefraud.core.roles import Proposes, Reflects
from acefraud.core.transaction import Case, Transaction
from acefraud.embedded.case_memory import CaseMemory
from acefraud.embedded.reflector import EmbeddedReflector, ReflectorOptions
from acefraud.llm.client import ModelClient
from acefraud.llm.playing import play
from acefraud.roles.proposals import Proposals
from acefraud.settings import EMBEDDED, ModelSettings


class Reflector:
    """Proposes one bullet from one outcome, in the light of all outcomes it was shown before.

    The embedded engine searches those cases itself, and with too few to say anything it returns None rather than a
    guess. Where a `model` is named, the model proposes and the remembered cases measure what it says; a failed call
    raises a ModelError. Models that share a `client` share its limits; `base_url` names a server of your own, and
    `sensitive` the facts that the model is never shown.

    >>> import asyncio
    >>> reflector = Reflector()
    >>> asyncio.run(reflector.reflect("User attempts $20 purchase", "APPROVE", "APPROVE", "fraud_detection")) is None
    True
    """

    def __init__(
        self,
        options: ReflectorOptions | None = None,
        *,
        model: str = EMBEDDED,
        base_url: str = "",
        client: ModelClient | None = None,
        sensitive: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        chosen = ModelSettings(reflector=model, base_url=base_url, sensitive=tuple(sensitive), cache=None)
        self.engine = EmbeddedReflector(options, seed=seed)
        """What remembers cases, measures conditions and fits weights, whoever proposes."""
        self._propose_with(play(chosen, client=client).reflector if chosen.uses_models else None)

    @classmethod
    def played_by(
        cls, proposer: Proposes | None, options: ReflectorOptions | None = None, *, seed: int = 0
    ) -> Reflector:
        """A reflector whose words come from this model; embedded where there is none."""
        made = cls(options, seed=seed)
        made._propose_with(proposer)
        return made

    def _propose_with(self, proposer: Proposes | None) -> None:
        self.proposals = None if proposer is None else Proposals(proposer, self.engine)
        """The model's proposals; None where the engine searches for itself."""
        self._player: Reflects = self.proposals or self.engine

    @property
    def model(self) -> str:
        """Who proposes."""
        return self._player.model

    @property
    def options(self) -> ReflectorOptions:
        """What is remembered, and how hard the embedded engine searches."""
        return self.engine.options

    @property
    def memory(self) -> CaseMemory:
        """The labelled cases that it was shown."""
        return self.engine.memory

    def __len__(self) -> int:
        return len(self.engine)

    def remember(self, cases: Iterable[Case]) -> None:
        """Take in labelled cases without proposing anything."""
        self.engine.remember(cases)

    async def reflect(
        self,
        query: str | Transaction,
        predicted: str,
        correct: str,
        node: str = DEFAULT_NODE,
        agent_reasoning: str = "",
    ) -> dict[str, Any] | None:
        """A bullet that this case and those before it teach; None where there is none.

        The mapping has new_bullet, problem_types, confidence, condition, argues, evidence (None where it could not be
        measured), weight (None where it was not fitted), node and learnt_from ("failure" or "success").
        """
        return await self._player.reflect(query, predicted, correct, node, agent_reasoning)
