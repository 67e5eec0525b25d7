"""What the service answers about decisions and outcomes. `playbook_answers` has the rest.

Fields that this version does not know are kept, and can be read like the others.
"""

from __future__ import annotations

from datetime import datetime
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, Field

from acefraud.core.decision import BulletScore
from acefraud.core.outcome import OutcomeSource
from acefraud.core.review_rule import DecidingRule
from acefraud.core.transaction import Fact, Verdict
from acefraud.display.short_repr import ShortRepr

T = TypeVar("T")


class Answer(ShortRepr, BaseModel, frozen=True, extra="allow", hide_input_in_errors=True):
    """Anything that the service answers."""


class Page(Answer, Generic[T]):
    """Part of a list, and where the next part begins."""

    items: tuple[T, ...]
    next: str | None = None


class ReasonAnswer(Answer):
    """One reason for a decision."""

    content: str
    """The bullet, or what else it rests on."""
    bullet_id: str | None
    """The bullet that it is, if it is one."""
    weight: float | None
    """What it adds to the log-odds of fraud, if that is known."""


class UnfamiliarFactAnswer(Answer):
    """A fact or an entity that the playbook does not know."""

    name: str
    nearest: str | None
    """The known name that is written most like it, if any is."""


class ListedDecision(Answer):
    """A recorded decision as lists show it: without its reasons."""

    decision_id: str
    transaction_id: str
    verdict: Verdict
    probability: float
    """The probability of fraud."""
    playbook_revision: int
    time: datetime
    """When it was decided."""


class _Decided(Answer):
    """What is told of a decision when it is made."""

    reasons: tuple[ReasonAnswer, ...]
    familiarity: float | None = None
    """The share of what the playbook relies on that is known of the transaction; None if nothing was learnt."""
    unfamiliar: bool = False
    """Whether none of the facts that the playbook relies on is known."""
    unfamiliar_facts: tuple[UnfamiliarFactAnswer, ...] = ()
    """The facts and entities that the playbook does not know."""
    warnings: tuple[str, ...] = ()
    """What is unusual about the request, in words."""


class DecisionAnswer(_Decided, ListedDecision):
    """A decision that was made and recorded.

    >>> answer = {"decision_id": "d-1", "transaction_id": "t1", "verdict": "DECLINE", "probability": 0.91,
    ...     "reasons": [], "playbook_revision": 7, "time": "2026-03-01T02:14:01Z", "model": "embedded"}
    >>> decision = DecisionAnswer.model_validate(answer)
    >>> decision.verdict == "DECLINE", decision.model
    (True, 'embedded')
    """


class ScoreAnswer(_Decided):
    """How a transaction would be decided now. Nothing was recorded."""

    transaction_id: str
    verdict: Verdict
    probability: float
    """The probability of fraud."""
    playbook_revision: int
    time: datetime


class StageAnswer(Answer):
    """How many bullets were left after a stage of the selection."""

    stage: str
    left: int


class BulletScoreAnswer(BulletScore, frozen=True, extra="allow"):
    """Every component of a selected bullet's score, including the random draw."""


class ExplainedDecision(DecisionAnswer):
    """A recorded decision with everything that explains it."""

    threshold: float
    """The probability from which on transactions were declined."""
    base: float
    """Log-odds before any reason is added."""
    facts: dict[str, Fact]
    """All facts that were used, given or read. Sensitive ones are masked."""
    unread: tuple[str, ...]
    """Parts of the text in which no fact was found."""
    stages: tuple[StageAnswer, ...]
    scores: tuple[BulletScoreAnswer, ...]
    """The scores of the selected bullets."""
    model: str
    """What decided: a language model by name, or the embedded engine."""
    probability_from: str
    fallback: str
    """Why the configured model did not decide; empty if it did."""
    explained: bool
    """Whether stages and reasons could be computed again on that revision."""
    outcome: Literal["fraud", "legitimate"] | None
    """What it turned out to be, as known so far."""
    outcome_source: OutcomeSource | None
    """Who said so."""
    outcome_time: datetime | None
    """When it became known, if that was reported."""
    correct: bool | None
    """Whether the verdict was right; None if it was not judged."""
    outcome_author: str = ""
    """The person or system that found out, masked."""
    outcome_note: str = ""
    """What they noted about it, masked."""
    outcome_details: dict[str, str] = Field(default_factory=dict)
    """What else the report said, masked."""
    decided_by: DecidingRule | None = None
    """Which rule gave the verdict, with its figures; None if the service is older than this client."""


class Receipt(Answer):
    """That an outcome is kept. `known` means that it had been reported before."""

    id: str
    status: Literal["received", "known"]


class ContextBullet(Answer):
    """A bullet that matters for a transaction."""

    bullet_id: str
    content: str
    argues: Verdict | None
    weight: float | None
    """Log-odds of fraud that it adds where it applies; None before the first fit."""
    evidence: str
    """What was measured of it, in words; empty if nothing was."""
    claim: str
    """A figure in its words that nobody measured; empty if there is none."""
    applies: bool
    """Whether its condition holds, or only its words are like the transaction's."""


class ContextAnswer(Answer):
    """The bullets that matter for a transaction, best first, for an agent of your own."""

    transaction_id: str
    bullets: tuple[ContextBullet, ...]
    policy: str | None
    """The policy that would decide it whatever the bullets say, if there is one."""
    prompt: str
    """A text for the prompt of your agent."""
    stages: tuple[StageAnswer, ...]
    playbook_revision: int


class TraceAnswer(Answer):
    """What became of the decision of an agent of your own."""

    decision: DecisionAnswer
    status: Literal["recorded", "known"]
    """`known` if the same trace was recorded before."""
    outcome: Literal["received", "known"] | None
    """What became of the truth, if it was given."""
