"""What was decided of a transaction, and everything needed to check it."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from acefraud.core.bullet import DEFAULT_NODE
from acefraud.core.transaction import Fact, Transaction, Verdict


class ReasonKind(StrEnum):
    """What a reason rests on."""

    BULLET = "bullet"
    KNOWLEDGE = "general knowledge"


class Reason(BaseModel):
    """One thing that moved the decision, and by how much (log-odds of fraud)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ReasonKind
    text: str
    contribution: float
    bullet_id: str | None = None


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
    revision: int
    selection: SelectionTrace = SelectionTrace()
    model: str = "embedded"

    @property
    def cited(self) -> tuple[str, ...]:
        """The bullets among its reasons."""
        return tuple(reason.bullet_id for reason in self.reasons if reason.bullet_id is not None)


def decision_id(transaction: Transaction, node: str, model: str, selection: SelectionTrace) -> str:
    """The same transaction on the same revision and settings is the same decision: deciding twice records it once."""
    how = (str(selection.revision), str(selection.seed), selection.embedder, selection.settings)
    text = "\x00".join((transaction.model_dump_json(), node, model, *how))
    return "d-" + hashlib.sha256(text.encode()).hexdigest()[:16]
