"""The reflector: proposes bullets from outcomes, in the light of all cases it was shown before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from acefraud.core.bullet import DEFAULT_NODE
from acefraud.core.calibration import MeasuredText
from acefraud.core.transaction import Case, Transaction
from acefraud.display.short_repr import quoted
from acefraud.errors import ConfigurationError
from acefraud.llm.client import ModelClient
from acefraud.llm.synchronous import blocking_twin
from acefraud.roles.embedded.reflector import EmbeddedReflector, ReflectorOptions
from acefraud.roles.model.build import build_model_roles
from acefraud.roles.model.reflector import OwnProposer
from acefraud.roles.proposals import Proposals
from acefraud.roles.protocols import OwnRole, Proposer
from acefraud.settings import EMBEDDED, ModelSettings
from acefraud.support.arguments import check_has, check_type


class Reflector:
    """Proposes one bullet from one outcome, in the light of all outcomes it was shown before.

    The embedded engine searches those cases itself, and returns None if they are too few. If you name a `model` (or
    pass an object of your own with `reflect`), it proposes and the remembered cases measure what it says; a failed
    call raises a ModelError. Models that share a `client` share its limits; `base_url` is the address of a self-hosted
    server, and `sensitive` names facts that the model is never shown.

    >>> reflector = Reflector()
    >>> reflector.reflect_sync("User attempts $20 purchase", "APPROVE", "APPROVE", "fraud_detection") is None
    True
    """

    def __init__(
        self,
        options: ReflectorOptions | None = None,
        *,
        model: str | Proposer | OwnRole = EMBEDDED,
        base_url: str = "",
        client: ModelClient | None = None,
        sensitive: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        check_type("options", options or ReflectorOptions(), ReflectorOptions, "ReflectorOptions", ConfigurationError)
        proposer: Proposer | None
        if isinstance(model, str):
            chosen = ModelSettings(reflector=model, base_url=base_url, sensitive=tuple(sensitive), cache=None)
            proposer = build_model_roles(chosen, client=client).reflector if chosen.uses_models else None
        else:
            check_has("model", model, "the name of a model, or an object that proposes", "propose", "reflect")
            proposer = model if hasattr(model, "propose") else OwnProposer(model)
        self.engine = EmbeddedReflector(options, seed=seed)
        """Remembers cases, measures conditions and fits weights, whether it proposes itself or a model does."""
        self.options, self.memory = self.engine.options, self.engine.memory
        self.proposals = None if proposer is None else Proposals(proposer, self.engine)
        """The model's proposals; None if the engine proposes itself."""

    @property
    def model(self) -> str:
        """The model that proposes, or `embedded`."""
        return (self.proposals or self.engine).model

    def __repr__(self) -> str:
        return f"Reflector(model={quoted(self.model)}, {len(self):,} cases remembered)"

    def __len__(self) -> int:
        return len(self.engine)

    def remember(self, cases: Iterable[Case]) -> None:
        """Take in labelled cases without proposing anything.

        >>> from acefraud import Case, Transaction
        >>> reflector = Reflector()
        >>> reflector.remember([Case(transaction=Transaction(id="t1", text="$20 purchase"), is_fraud=False)])
        >>> len(reflector)
        1
        """
        self.engine.remember(cases)

    async def reflect(
        self,
        query: str | Transaction,
        predicted: str,
        correct: str,
        node: str = DEFAULT_NODE,
        agent_reasoning: str = "",
    ) -> dict[str, Any] | None:
        """A bullet that this case and those before it teach; None if they teach nothing new.

        The dict has new_bullet, problem_types, confidence, condition, argues, evidence (None if not measured), weight
        (None if not fitted), node and learnt_from ("failure" or "success").

        >>> import asyncio
        >>> from acefraud import Transaction
        >>> async def show(reflector: Reflector) -> None:
        ...     for number in range(60):
        ...         fraud = number % 3 == 0
        ...         order = Transaction(id=f"t{number}", facts={"vpn": fraud, "amount": number})
        ...         learnt = await reflector.reflect(order, "APPROVE", "DECLINE" if fraud else "APPROVE")
        ...         if learnt:
        ...             print(order.id, learnt["condition"], learnt["argues"], learnt["learnt_from"])
        >>> asyncio.run(show(Reflector()))
        t39 vpn is true DECLINE failure
        t40 vpn is false APPROVE success
        """
        check_type("query", query, (str, Transaction), "the text of a transaction, or a Transaction")
        found = await (self.proposals or self.engine).reflect(query, predicted, correct, agent_reasoning)
        if found is None:
            return None
        bullet = found.bullet
        return {
            "new_bullet": MeasuredText(bullet, found.fit),
            "problem_types": list(bullet.problem_types),
            "confidence": found.confidence,
            "condition": None if bullet.condition is None else str(bullet.condition),
            "argues": None if bullet.argues is None else str(bullet.argues),
            "evidence": bullet.evidence,
            "weight": bullet.weight,
            "node": node,
            "learnt_from": "failure" if found.example.missed else "success",
        }

    reflect_sync = blocking_twin(reflect, lambda self: self.proposals is not None)
