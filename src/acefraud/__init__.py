"""acefraud: a fraud-decision engine that learns in plain English.

The public names are imported when they are first used, so that `import acefraud` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acefraud.client.client import AsyncClient, Client
    from acefraud.core.bullet import Bullet, Evidence, Policy, Record, Source, Status
    from acefraud.core.condition import Condition
    from acefraud.core.decision import BulletScore, Decision, Reason
    from acefraud.core.outcome import Judgement, Outcome
    from acefraud.core.table import Columns, FactTable
    from acefraud.core.transaction import Case, Transaction, Verdict
    from acefraud.core.transactions import Cases, Transactions
    from acefraud.curation.curator import Curator
    from acefraud.datasets import Dataset, SchemaMapping, ShippedDatasetWarning, load_dataset, load_transactions
    from acefraud.datasets.table import ReadingReport
    from acefraud.engine.options import LearnerOptions
    from acefraud.errors import InputWarning
    from acefraud.estimator.classifier import AceFraudClassifier, backtest_scorer
    from acefraud.estimator.stream_classifier import StreamClassifier
    from acefraud.evaluation.backtest import Backtest, backtest
    from acefraud.evaluation.compare import compare
    from acefraud.evaluation.comparison import Comparison
    from acefraud.learning.build_roles import Roles, build_roles
    from acefraud.learning.build_roles import Roles as Cast
    from acefraud.learning.build_roles import build_roles as cast
    from acefraud.learning.learner import Learner
    from acefraud.learning.model_lessons import ReflectionPolicy
    from acefraud.learning.pipeline import Mode, ModeRun, TrainingPipeline, known_by, label_stream
    from acefraud.roles.agent import SimpleFraudAgent
    from acefraud.roles.judge import LLMJudge, SimpleJudge
    from acefraud.roles.reflector import Reflector
    from acefraud.selection.hybrid import HybridSelector
    from acefraud.settings import ModelSettings
    from acefraud.storage import BulletPlaybook, open_playbook
    from acefraud.support.timestamps import NaiveTimeWarning

__version__ = "0.1.0"

__all__ = [
    "AceFraudClassifier",
    "AsyncClient",
    "Backtest",
    "Bullet",
    "BulletPlaybook",
    "BulletScore",
    "Case",
    "Cases",
    "Cast",
    "Client",
    "Columns",
    "Comparison",
    "Condition",
    "Curator",
    "Dataset",
    "Decision",
    "Evidence",
    "FactTable",
    "HybridSelector",
    "InputWarning",
    "Judgement",
    "LLMJudge",
    "Learner",
    "LearnerOptions",
    "Mode",
    "ModeRun",
    "ModelSettings",
    "NaiveTimeWarning",
    "Outcome",
    "Policy",
    "ReadingReport",
    "Reason",
    "Record",
    "ReflectionPolicy",
    "Reflector",
    "Roles",
    "SchemaMapping",
    "ShippedDatasetWarning",
    "SimpleFraudAgent",
    "SimpleJudge",
    "Source",
    "Status",
    "StreamClassifier",
    "TrainingPipeline",
    "Transaction",
    "Transactions",
    "Verdict",
    "backtest",
    "backtest_scorer",
    "build_roles",
    "cast",
    "compare",
    "known_by",
    "label_stream",
    "load_dataset",
    "load_transactions",
    "open_playbook",
]

_MODULES = {
    "acefraud.client.client": "AsyncClient Client",
    "acefraud.core.bullet": "Bullet Evidence Policy Record Source Status",
    "acefraud.core.condition": "Condition",
    "acefraud.core.decision": "BulletScore Decision Reason",
    "acefraud.core.outcome": "Judgement Outcome",
    "acefraud.core.table": "Columns FactTable",
    "acefraud.support.timestamps": "NaiveTimeWarning",
    "acefraud.core.transaction": "Case Transaction Verdict",
    "acefraud.core.transactions": "Cases Transactions",
    "acefraud.curation.curator": "Curator",
    "acefraud.datasets": "Dataset SchemaMapping ShippedDatasetWarning load_dataset load_transactions",
    "acefraud.datasets.table": "ReadingReport",
    "acefraud.errors": "InputWarning",
    "acefraud.estimator.classifier": "AceFraudClassifier backtest_scorer",
    "acefraud.estimator.stream_classifier": "StreamClassifier",
    "acefraud.evaluation.backtest": "Backtest backtest",
    "acefraud.evaluation.compare": "compare",
    "acefraud.evaluation.comparison": "Comparison",
    "acefraud.learning.build_roles": "Roles build_roles",
    "acefraud.learning.learner": "Learner",
    "acefraud.engine.options": "LearnerOptions",
    "acefraud.learning.pipeline": "Mode ModeRun TrainingPipeline known_by label_stream",
    "acefraud.learning.model_lessons": "ReflectionPolicy",
    "acefraud.roles.agent": "SimpleFraudAgent",
    "acefraud.roles.judge": "LLMJudge SimpleJudge",
    "acefraud.roles.reflector": "Reflector",
    "acefraud.selection.hybrid": "HybridSelector",
    "acefraud.settings": "ModelSettings",
    "acefraud.storage": "BulletPlaybook open_playbook",
}
_ORIGIN = {name: (module, name) for module, names in _MODULES.items() for name in names.split()}
_ORIGIN |= {"Cast": _ORIGIN["Roles"], "cast": _ORIGIN["build_roles"]}  # the earlier names


_EXTRAS = {
    "AceFraudClassifier": ("sklearn", "sklearn", "scikit-learn"),
    "AsyncClient": ("client", "httpx", "httpx"),
    "Client": ("client", "httpx", "httpx"),
    "StreamClassifier": ("river", "river", "river"),
    "backtest_scorer": ("sklearn", "sklearn", "scikit-learn"),
}
"""Names that need an extra, the module that it brings, and the package that has the module."""


def __getattr__(name: str) -> Any:
    if name not in _ORIGIN:
        raise AttributeError(f"module 'acefraud' has no attribute {name!r}")
    module, attribute = _ORIGIN[name]
    if name in _EXTRAS:
        extra, needed, package = _EXTRAS[name]
        if not find_spec(needed):
            raise ImportError(f"{name} needs {package}: pip install 'acefraud[{extra}]'")
    value = globals()[name] = getattr(import_module(module), attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
