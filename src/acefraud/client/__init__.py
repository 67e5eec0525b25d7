"""Clients of the decision service, to block or to await. May import wire, core, settings, display and errors.

`calls` says what is sent; `client` has the two clients, and when they send something again. What comes back is in
`acefraud.wire`.
"""

from __future__ import annotations

from acefraud.client.calls import Receipts as Receipts
from acefraud.client.client import AsyncClient as AsyncClient
from acefraud.client.client import Client as Client
from acefraud.client.client import Retries as Retries
from acefraud.wire.answers import AdmittedRule as AdmittedRule
from acefraud.wire.answers import Answer as Answer
from acefraud.wire.answers import BulletAnswer as BulletAnswer
from acefraud.wire.answers import BulletScoreAnswer as BulletScoreAnswer
from acefraud.wire.answers import ChangeAnswer as ChangeAnswer
from acefraud.wire.answers import ClaimAnswer as ClaimAnswer
from acefraud.wire.answers import ContextAnswer as ContextAnswer
from acefraud.wire.answers import ContextBullet as ContextBullet
from acefraud.wire.answers import CountersAnswer as CountersAnswer
from acefraud.wire.answers import DecisionAnswer as DecisionAnswer
from acefraud.wire.answers import EvidenceAnswer as EvidenceAnswer
from acefraud.wire.answers import ExplainedDecision as ExplainedDecision
from acefraud.wire.answers import FactAnswer as FactAnswer
from acefraud.wire.answers import FeedAnswer as FeedAnswer
from acefraud.wire.answers import FlipAnswer as FlipAnswer
from acefraud.wire.answers import ListAnswer as ListAnswer
from acefraud.wire.answers import ListedDecision as ListedDecision
from acefraud.wire.answers import ListValue as ListValue
from acefraud.wire.answers import MoneyAnswer as MoneyAnswer
from acefraud.wire.answers import OutcomeFeedAnswer as OutcomeFeedAnswer
from acefraud.wire.answers import PreviewAnswer as PreviewAnswer
from acefraud.wire.answers import PreviewedRule as PreviewedRule
from acefraud.wire.answers import ReasonAnswer as ReasonAnswer
from acefraud.wire.answers import Receipt as Receipt
from acefraud.wire.answers import RollbackAnswer as RollbackAnswer
from acefraud.wire.answers import RuleReading as RuleReading
from acefraud.wire.answers import ScoreAnswer as ScoreAnswer
from acefraud.wire.answers import SnoozeAnswer as SnoozeAnswer
from acefraud.wire.answers import StageAnswer as StageAnswer
from acefraud.wire.answers import ThresholdAnswer as ThresholdAnswer
from acefraud.wire.answers import TraceAnswer as TraceAnswer
from acefraud.wire.answers import WholeBullet as WholeBullet
