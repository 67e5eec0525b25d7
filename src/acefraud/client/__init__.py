"""Clients of the decision service, one that blocks and one to await. May import core, settings, display and errors.

`calls` and `playbook_calls` say what is sent, `answers` and `playbook_answers` what comes back, `exchange` when to send
something again; `client` has the two clients, which only send.
"""

from __future__ import annotations

from acefraud.client.answers import (
    Answer,
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
from acefraud.client.client import AsyncClient, Client
from acefraud.client.exchange import Retries
from acefraud.client.playbook_answers import (
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
