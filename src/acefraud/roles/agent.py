"""The agent: approves or declines a transaction, with the bullets it was given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acefraud.core.bullet import Bullet
from acefraud.core.calibration import Calibration
from acefraud.core.transaction import Transaction, Verdict
from acefraud.display.short_repr import given, quoted
from acefraud.errors import ConfigurationError
from acefraud.facts.extraction import facts_of
from acefraud.llm.client import ModelClient
from acefraud.llm.synchronous import blocking_twin, run_sync
from acefraud.roles.embedded.agent import EmbeddedAgent, as_bullets, calibration_of
from acefraud.roles.model.build import build_model_roles
from acefraud.roles.protocols import Agent, Assessment, Question
from acefraud.settings import EMBEDDED, ModelSettings
from acefraud.support.arguments import check_text, check_type


class SimpleFraudAgent:
    """Decides a transaction from its facts, the bullets it was given and general knowledge.

    The embedded engine decides unless you name a `model`; a failed call then raises a ModelError. Models that share a
    `client` share its limits; `base_url` is the address of a self-hosted server, and `sensitive` names facts that the
    model is never shown.

    >>> agent = SimpleFraudAgent(bullets=["An emulator and a VPN = 97% fraud"])
    >>> str(agent.analyze("Account opened 2 hours ago attempts $900 purchase at 3 AM through a VPN on an emulator"))
    'DECLINE'
    """

    def __init__(
        self,
        bullets: Sequence[str | Bullet] = (),
        *,
        model: str = EMBEDDED,
        base_url: str = "",
        client: ModelClient | None = None,
        sensitive: Sequence[str] = (),
        calibration: Calibration | None = None,
    ) -> None:
        if isinstance(bullets, str) or not isinstance(bullets, Iterable):
            raise ConfigurationError(f"bullets: expected a list of rules in words or bullets, got {given(bullets)}")
        bullets = list(bullets)
        for bullet in bullets:
            check_type("bullets", bullet, (str, Bullet), "rules in words or bullets", ConfigurationError)
        self.bullets = as_bullets(bullets)
        self._calibration = calibration or calibration_of(bullets)
        chosen = ModelSettings(agent=model, base_url=base_url, sensitive=tuple(sensitive), cache=None)
        on_model = build_model_roles(chosen, client=client).agent if chosen.uses_models else None
        self._agent: Agent = on_model or EmbeddedAgent()
        ours = (type(self).assess, type(self).analyze) == (SimpleFraudAgent.assess, SimpleFraudAgent.analyze)
        self.model = self._agent.model if ours else type(self).__name__
        """The model that decides, `embedded`, or a subclass that decides in its own way."""
        self.waits = self._agent.waits
        """Whether deciding waits for a model."""
        self.adds_up = self._agent.adds_up and ours
        """Whether it decides as the embedded engine does."""

    def __repr__(self) -> str:
        return f"SimpleFraudAgent(model={quoted(self.model)}, {len(self.bullets):,} bullets)"

    @property
    def without_tier(self) -> SimpleFraudAgent:
        """The agent itself: it has no first tier in front of it."""
        return self

    def analyze(self, transaction: str | Transaction) -> Verdict:
        """APPROVE or DECLINE.

        >>> str(SimpleFraudAgent().analyze("$12 coffee, account 5 years old, verified"))
        'APPROVE'
        """
        return self.explain(transaction).verdict

    def explain(self, transaction: str | Transaction) -> Assessment:
        """The verdict with its probability and reasons. With a model it blocks until the reply, even in a coroutine.

        >>> view = SimpleFraudAgent().explain("$900 purchase at 3 AM through a VPN on an emulator")
        >>> str(view.verdict), view.reasons[0].text
        ('DECLINE', 'an emulator')
        """
        check_type("transaction", transaction, (str, Transaction), "the text of a transaction, or a Transaction")
        if isinstance(transaction, str):
            check_text("transaction", transaction, "the text of a transaction")
            transaction = Transaction(id="unnamed", text=transaction)
        facts = facts_of(transaction).facts
        view = self._agent.assess(Question(transaction.text, facts, self.bullets, self._calibration))
        return run_sync(view, waits=self.waits)

    async def assess(self, question: Question) -> Assessment:
        """The verdict on a question: a transaction with the bullets that a selector picked for it."""
        return await self._agent.assess(question)

    assess_sync = blocking_twin(assess, lambda self: self.waits)
