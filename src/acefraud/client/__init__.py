"""Clients of the decision service, to block or to await. May import wire, core, settings, display and errors.

`calls` and `playbook_calls` say what is sent, `exchange` when to send something again; `client` has the two clients,
which only send. What comes back is in `acefraud.wire`.
"""

from __future__ import annotations

from acefraud.client.calls import Receipts
from acefraud.client.client import AsyncClient, Client
from acefraud.client.exchange import Retries
from acefraud.wire.answer import Answer
from acefraud.wire.decisions import (
    BulletScoreAnswer,
    ContextAnswer,
    ContextBullet,
    DecisionAnswer,
    ExplainedDecision,
    ListedDecision,
    ReasonAnswer,
    Receipt,
    ScoreAnswer,
    StageAnswer,
    TraceAnswer,
)
from acefraud.wire.playbook import (
    AdmittedRule,
    BulletAnswer,
    ChangeAnswer,
    ClaimAnswer,
    CountersAnswer,
    EvidenceAnswer,
    FactAnswer,
    FeedAnswer,
    FlipAnswer,
    ListAnswer,
    ListValue,
    MoneyAnswer,
    OutcomeFeedAnswer,
    PreviewAnswer,
    PreviewedRule,
    RollbackAnswer,
    RuleReading,
    SnoozeAnswer,
    ThresholdAnswer,
    WholeBullet,
)

__all__ = [
    "AdmittedRule",
    "Answer",
    "AsyncClient",
    "BulletAnswer",
    "BulletScoreAnswer",
    "ChangeAnswer",
    "ClaimAnswer",
    "Client",
    "ContextAnswer",
    "ContextBullet",
    "CountersAnswer",
    "DecisionAnswer",
    "EvidenceAnswer",
    "ExplainedDecision",
    "FactAnswer",
    "FeedAnswer",
    "FlipAnswer",
    "ListAnswer",
    "ListValue",
    "ListedDecision",
    "MoneyAnswer",
    "OutcomeFeedAnswer",
    "PreviewAnswer",
    "PreviewedRule",
    "ReasonAnswer",
    "Receipt",
    "Receipts",
    "Retries",
    "RollbackAnswer",
    "RuleReading",
    "ScoreAnswer",
    "SnoozeAnswer",
    "StageAnswer",
    "ThresholdAnswer",
    "TraceAnswer",
    "WholeBullet",
]
