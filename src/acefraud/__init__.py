"""acefraud: a fraud-decision engine that learns in plain English."""

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.decision import BulletScore, Decision, Reason
from acefraud.core.evidence import Evidence, Record
from acefraud.core.outcome import Judgement, Outcome
from acefraud.core.table import Columns, FactTable
from acefraud.core.timestamps import NaiveTimeWarning
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.core.transactions import Cases, Transactions
from acefraud.curation.curator import Curator
from acefraud.datasets import Dataset, SchemaMapping, ShippedDatasetWarning, load_dataset
from acefraud.embedded.judge import SimpleJudge
from acefraud.learning.casting import Cast, cast
from acefraud.learning.label_stream import label_stream
from acefraud.learning.learner import Learner
from acefraud.learning.options import LearnerOptions
from acefraud.learning.pipeline import Mode, ModeRun, TrainingPipeline, known_by
from acefraud.learning.reflecting import ReflectionPolicy
from acefraud.roles.agent import SimpleFraudAgent
from acefraud.roles.judge import LLMJudge
from acefraud.roles.reflector import Reflector
from acefraud.selection.hybrid import HybridSelector
from acefraud.settings import ModelSettings
from acefraud.storage import BulletPlaybook, open_playbook

__version__ = "0.1.0"

__all__ = [
    "Bullet",
    "BulletPlaybook",
    "BulletScore",
    "Case",
    "Cases",
    "Cast",
    "Columns",
    "Condition",
    "Curator",
    "Dataset",
    "Decision",
    "Evidence",
    "FactTable",
    "HybridSelector",
    "Judgement",
    "LLMJudge",
    "Learner",
    "LearnerOptions",
    "Mode",
    "ModeRun",
    "ModelSettings",
    "NaiveTimeWarning",
    "Outcome",
    "Reason",
    "Record",
    "ReflectionPolicy",
    "Reflector",
    "SchemaMapping",
    "ShippedDatasetWarning",
    "SimpleFraudAgent",
    "SimpleJudge",
    "Source",
    "Status",
    "TrainingPipeline",
    "Transaction",
    "Transactions",
    "Verdict",
    "cast",
    "known_by",
    "label_stream",
    "load_dataset",
    "open_playbook",
]
