"""Answers about decisions, outcomes, and agents of the caller's own."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from acefraud.core.decision import BulletScore
from acefraud.core.outcome import OutcomeSource
from acefraud.core.review_rule import DecidingRule
from acefraud.core.transaction import Fact, Verdict
from acefraud.wire.answer import Answer, examples


class ReasonAnswer(Answer):
    """One reason for a decision."""

    bullet_id: str | None
    """The bullet; None for general knowledge and for what a model said."""
    content: str
    """The bullet, or what else it rests on."""
    weight: float | None
    """What it adds to the log-odds of fraud; None if that is not known."""


class UnfamiliarFactAnswer(Answer):
    """A fact or an entity that the playbook does not know."""

    name: str
    nearest: str | None
    """The known name that is written most like it; None if none is."""


class ListedDecision(Answer):
    """A recorded decision as lists show it: without its reasons."""

    decision_id: str
    transaction_id: str
    verdict: Verdict
    probability: float = Field(ge=0, le=1)
    """The probability of fraud."""
    playbook_revision: int
    time: datetime
    """When it was decided."""


class _Decided(Answer):
    """What is told of a decision when it is made."""

    decision_id: str
    transaction_id: str
    verdict: Verdict
    probability: float = Field(ge=0, le=1)
    """The probability of fraud."""
    reasons: tuple[ReasonAnswer, ...]
    playbook_revision: int
    time: datetime
    """When it was decided."""
    familiarity: float | None = None
    """The share of what the playbook relies on that is known of the transaction; None if nothing was learnt."""
    unfamiliar: bool = False
    """Whether none of the facts that the playbook relies on is known."""
    unfamiliar_facts: tuple[UnfamiliarFactAnswer, ...] = ()
    """The facts and entities that the playbook does not know."""
    warnings: tuple[str, ...] = ()
    """What is unusual about the request, in words."""


class DecisionAnswer(ListedDecision, _Decided):
    """A decision that was made and recorded."""

    model_config = examples(
        {
            "decision_id": "d-0f3c5e7a9b1d2f40",
            "transaction_id": "order-17",
            "verdict": "DECLINE",
            "probability": 0.91,
            "reasons": [{"bullet_id": "b-1f2e3d4c", "content": "VPN and a new device", "weight": 1.3}],
            "playbook_revision": 120,
            "time": "2026-03-01T02:14:01Z",
            "familiarity": 0.85,
            "unfamiliar": False,
            "unfamiliar_facts": [],
            "warnings": [],
        }
    )


class ScoreAnswer(_Decided):
    """How a transaction would be decided now. Nothing was recorded."""

    decision_id: str = ""
    """No recorded decision has this id."""


class BatchAnswer(Answer):
    """The decisions on a batch, in the same order."""

    decisions: tuple[DecisionAnswer, ...]


class StageAnswer(Answer):
    """How many bullets were left after a stage of the selection."""

    stage: str
    left: int


class BulletScoreAnswer(BulletScore, Answer):
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
    """What it turned out to be, as known so far. A judge's opinion is not an outcome."""
    outcome_source: OutcomeSource | None
    """Who said so."""
    outcome_time: datetime | None
    """When it became known; None if the report did not say."""
    outcome_author: str = ""
    """The person or system that found out, masked."""
    outcome_note: str = ""
    """What they noted about it, masked."""
    outcome_details: dict[str, str] = Field(default_factory=dict)
    """What else the report said, masked."""
    correct: bool | None
    """Whether the verdict was right; None if it was not judged."""
    decided_by: DecidingRule | SkipJsonSchema[None] = None
    """Which rule gave the verdict, with its figures. Older services do not tell."""


class Receipt(Answer):
    """That an outcome is kept, and will be learnt from."""

    id: str
    status: Literal["received", "known"]
    """`known` if the same outcome was received before."""


class ReceiptsAnswer(Answer):
    """A receipt for each outcome, in the same order."""

    outcomes: tuple[Receipt, ...]
    warnings: tuple[str, ...] = ()
    """What is odd about them; they are kept all the same."""


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
    """The policy that would decide it whatever the bullets say; None if there is none."""
    prompt: str
    """A text for the prompt of your agent. Words of bullets stand in it as data."""
    stages: tuple[StageAnswer, ...]
    playbook_revision: int


class TraceAnswer(Answer):
    """What became of the decision of an agent of your own."""

    decision: DecisionAnswer
    status: Literal["recorded", "known"]
    """`known` if the same trace was recorded before."""
    outcome: Literal["received", "known"] | None
    """What became of the truth; None if it was not given."""
