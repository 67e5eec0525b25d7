"""The loop on one playbook. Deciding never changes the playbook; learning never decides."""

from __future__ import annotations

from acefraud.curation.curator import Curator
from acefraud.display.short_repr import quoted
from acefraud.engine.decider import Decider
from acefraud.engine.familiarity import FamiliarFacts
from acefraud.engine.inputs import RememberedMapping
from acefraud.engine.options import LearnerOptions
from acefraud.engine.rule_context import ReviewCapacity
from acefraud.errors import ConfigurationError
from acefraud.learning.hearing import Hearing
from acefraud.learning.model_lessons import ReflectionPolicy
from acefraud.learning.outcomes import OutcomeRecorder
from acefraud.learning.reviewer import Reviewer
from acefraud.learning.studying import Studying
from acefraud.roles.agent import SimpleFraudAgent
from acefraud.roles.embedded.judge import SimpleJudge
from acefraud.roles.protocols import Agent, Judge, OwnRole, name_of
from acefraud.roles.reflector import Reflector
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arguments import check_has, check_type


class Learner(Studying, Hearing):
    """Decides transactions with a playbook, and turns outcomes into a better one.

    A transaction is a `Transaction`, a dict such as {"amount": 250, "country": "FR"}, or a text. Every method that has
    to be awaited has a twin that blocks instead: `learner.decide_sync(...)` is `await learner.decide(...)`.

    It works on column tables; one transaction is a table of one row. What it remembers, and when it reviews, follows
    from the ledger alone. So several learners on one file learn from all outcomes.

    >>> from acefraud import BulletPlaybook, Outcome, Transaction
    >>> playbook = BulletPlaybook()
    >>> bullet_id = playbook.add_bullet("A new device and a VPN: decline")
    >>> learner = Learner(playbook)
    >>> order = Transaction(id="t1", facts={"amount": 900, "vpn": True, "new_device": True})
    >>> decision = learner.decide_sync(order)
    >>> str(decision.verdict), bullet_id in decision.cited
    ('DECLINE', True)
    >>> heard = learner.hear_sync(Outcome(transaction_id="t1", is_fraud=True))
    >>> heard.judgement.is_correct, playbook.get_bullet(bullet_id).helpful_count
    (True, 1)
    """

    def __init__(
        self,
        playbook: BulletPlaybook,
        *,
        agent: Agent | OwnRole | None = None,
        judge: Judge | OwnRole | None = None,
        reflector: Reflector | OwnRole | None = None,
        curator: Curator | None = None,
        selector: HybridSelector | None = None,
        policy: ReflectionPolicy | None = None,
        options: LearnerOptions | None = None,
    ) -> None:
        """`policy` says which outcomes are worth a call, if the reflector is on a model."""
        check_type("playbook", playbook, BulletPlaybook, "a BulletPlaybook, such as open_playbook(path)")
        for name, value, kind in (
            ("curator", curator, Curator),
            ("selector", selector, HybridSelector),
            ("policy", policy, ReflectionPolicy),
            ("options", options, LearnerOptions),
        ):
            if value is not None:
                check_type(name, value, kind, f"a {kind.__name__}", ConfigurationError)
        self.playbook = playbook
        self.options = options or LearnerOptions()
        self.agent = SimpleFraudAgent() if agent is None else agent
        self.judge = SimpleJudge() if judge is None else judge
        own = Reflector(seed=self.options.seed) if reflector is None else reflector
        check_has("agent", self.agent, "an object that plays the agent", "assess", "analyze")
        check_has("judge", self.judge, "an object that plays the judge", "rule", "judge")
        check_has("reflector", own, "a Reflector", "reflect")
        self.reflector = own if hasattr(own, "proposals") else Reflector(model=own, seed=self.options.seed)
        self.curator = Curator() if curator is None else curator
        self.selector = HybridSelector(seed=self.options.seed) if selector is None else selector
        self._decider = Decider(self.selector, self.options)
        self._capacity = ReviewCapacity(playbook.ledger, self.options.node)
        self._familiar = FamiliarFacts(playbook, self.options)
        self._mapping = RememberedMapping(playbook.snapshot().mapping, strict=self.options.strict)
        self._may_wait = False
        self._reviewer = Reviewer(playbook, self.reflector, self.curator, self.options, policy)
        self._recorder = OutcomeRecorder(playbook, self.judge, self._reviewer, self.options.node)

    def __repr__(self) -> str:
        roles = f"agent={quoted(name_of(self.agent), 40)}, reflector={quoted(self.reflector.model, 40)}"
        return f"Learner({self.playbook!r}, {roles})"
