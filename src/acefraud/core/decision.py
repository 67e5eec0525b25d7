"""What was decided of a transaction, and everything needed to check it."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from acefraud.core.bullet import DEFAULT_NODE
from acefraud.core.transaction import Fact, Transaction, Verdict


class ReasonKind(StrEnum):
    """What a reason rests on."""

    BULLET = "bullet"
    KNOWLEDGE = "general knowledge"
    MODEL = "the model's words"
    FALLBACK = "fallback"


class ProbabilityFrom(StrEnum):
    """How a probability came about. Only the first and the last were ever held against labelled cases."""

    FITTED = "fitted"
    STATED = "stated"
    ODDS = "odds"
    CALIBRATED = "calibrated"


class Reason(BaseModel):
    """One thing that moved the decision, and by how much (log-odds of fraud), where that can be said."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ReasonKind
    text: str
    contribution: float | None
    bullet_id: str | None = None

    @property
    def amount(self) -> str:
        """The contribution as a person reads it.

        >>> Reason(kind=ReasonKind.MODEL, text="a VPN", contribution=None).amount, len("+0.25")
        ('     ', 5)
        """
        return "     " if self.contribution is None else f"{self.contribution:+.2f}"


class CallUsage(BaseModel):
    """What asking a model took."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """US dollars; None where no price is known."""
    cached: bool = False
    """Whether the reply had been paid for before."""


class BulletScore(BaseModel):
    """Why a bullet was picked: every component of its score, the random draw included."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bullet_id: str
    quality: float
    semantic: float
    thompson: float
    combined: float
    diversity: float
    total: float


class StageCount(BaseModel):
    """How many bullets one stage of the selection left."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    left: int


class SelectionTrace(BaseModel):
    """What the five stages of one selection did."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stages: tuple[StageCount, ...] = ()
    scores: tuple[BulletScore, ...] = ()
    revision: int = 0
    seed: int = 0
    embedder: str = ""
    settings: str = ""
    """Thresholds, weights and number of bullets that the selection was made with."""


class Decision(BaseModel):
    """Verdict, fraud probability, reasons, and the state of the playbook it was made with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    transaction: Transaction
    node: str = DEFAULT_NODE
    verdict: Verdict
    probability: float = Field(ge=0, le=1)
    threshold: float = Field(ge=0, le=1)
    base: float
    """Log-odds before any reason is added."""
    reasons: tuple[Reason, ...] = ()
    facts: dict[str, Fact] = Field(default_factory=dict)
    """The facts that were used: those given and those read from the text."""
    unread: tuple[str, ...] = ()
    reader: str = ""
    """The version of the reader that made the facts; empty in decisions of before it was kept."""
    revision: int
    selection: SelectionTrace = SelectionTrace()
    model: str = "embedded"
    probability_from: ProbabilityFrom = ProbabilityFrom.FITTED
    odds: float | None = None
    """Log-odds of the two verdict tokens, as the model gave them, where it did."""
    prompt: str = ""
    """The prompt that a model was asked with, by name and version."""
    usage: CallUsage | None = None
    fallback: str = ""
    """Why the model that should have decided did not."""
    selection_fallback: str = ""
    """Why the embedder that should have found the bullets did not; the trace names the one that did."""

    @property
    def cited(self) -> tuple[str, ...]:
        """The bullets among its reasons."""
        return tuple(reason.bullet_id for reason in self.reasons if reason.bullet_id is not None)

    def same_as(self, other: Decision) -> bool:
        """Whether the other is the same decision, whatever asking for it took."""
        aside: dict[str, Any] = {"usage": None, "selection_fallback": ""}
        return self.model_copy(update=aside) == other.model_copy(update=aside)


def decision_id(transaction: Transaction, node: str, model: str, selection: SelectionTrace) -> str:
    """The same transaction on the same revision and settings is the same decision: deciding twice records it once."""
    how = (str(selection.revision), str(selection.seed), selection.embedder, selection.settings)
    text = "\x00".join((transaction.model_dump_json(), node, model, *how))
    return "d-" + hashlib.sha256(text.encode()).hexdigest()[:16]
