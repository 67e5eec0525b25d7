"""What others build on: names, signatures and defaults; and that nothing is sent anywhere."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import acefraud
from acefraud import errors
from acefraud.settings import ROLES, Settings

NAMES = """AceFraudClassifier AsyncClient Backtest Bullet BulletPlaybook BulletScore Case Cases Cast Client Columns
    Comparison Condition Curator Dataset Decision Evidence FactTable HybridSelector InputWarning Judgement Learner
    LearnerOptions LLMJudge Mode ModelSettings ModeRun NaiveTimeWarning Outcome Policy ReadingReport Reason Record
    ReflectionPolicy Reflector Roles SchemaMapping ShippedDatasetWarning SimpleFraudAgent SimpleJudge
    Source Status StreamClassifier TrainingPipeline Transaction Transactions Verdict backtest
    backtest_scorer build_roles cast compare known_by label_stream load_dataset load_transactions open_playbook"""
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "HF_TOKEN", "AZURE_OPENAI_API_KEY")
TRANSACTION = "Transaction: User 'john' (3 days old) attempts $2500 purchase at 3:15 AM through a VPN on an emulator"


def test_the_version_is_the_one_that_is_built() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
    assert acefraud.__version__ == project["version"]


def test_the_exported_names() -> None:
    assert sorted(acefraud.__all__) == sorted(NAMES.split())
    for name in acefraud.__all__:
        assert getattr(acefraud, name).__module__.startswith("acefraud")


@pytest.mark.parametrize(
    ("name", "extra"),
    [("AceFraudClassifier", "sklearn"), ("AsyncClient", "client"), ("Client", "client"), ("StreamClassifier", "river")],
)
def test_a_missing_extra_names_the_command_that_installs_it(
    name: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(vars(acefraud), name, raising=False)  # it may have been imported before
    monkeypatch.setattr(acefraud, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match=rf"^{name} needs .*: pip install 'acefraud\[{extra}\]'$"):
        getattr(acefraud, name)


def parameters(function: Any) -> dict[str, Any]:
    """Name and default of each parameter that can be given by place, `...` where there is no default."""
    return {
        name: ... if parameter.default is parameter.empty else parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and name != "self"
    }


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (
            acefraud.HybridSelector.select_bullets,
            {"query": ..., "node": ..., "playbook": ..., "n_bullets": 5, "source": None},
        ),
        (acefraud.Curator, {"similarity_threshold": 0.85}),
        (
            acefraud.Reflector.reflect,
            {"query": ..., "predicted": ..., "correct": ..., "node": "fraud_detection", "agent_reasoning": ""},
        ),
        (acefraud.SimpleJudge.judge, {"input_text": ..., "output": ..., "ground_truth": None}),
        (acefraud.LLMJudge.judge, {"input_text": ..., "output": ..., "ground_truth": None}),
        (acefraud.SimpleFraudAgent, {"bullets": ()}),
        (acefraud.SimpleFraudAgent.analyze, {"transaction": ...}),
        (acefraud.BulletPlaybook.add_bullet, {"content": ..., "node": "fraud_detection", "source": "manual"}),
        (acefraud.BulletPlaybook.get_bullet, {"bullet_id": ...}),
        (acefraud.BulletPlaybook.get_bullets_for_node, {"node": ..., "source": None}),
        (acefraud.BulletPlaybook.update_stats, {"bullet_id": ..., "is_helpful": ...}),
        (acefraud.Bullet.get_success_rate, {}),
        (acefraud.load_dataset, {"source": ...}),
        (acefraud.Learner, {"playbook": ...}),
        (acefraud.TrainingPipeline, {}),
        (acefraud.TrainingPipeline.run, {"mode": ..., "train": ..., "test": ...}),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_signatures_and_defaults(function: Any, expected: dict[str, Any]) -> None:
    assert parameters(function) == expected


def test_the_selector_has_the_five_options_of_the_design_and_their_defaults() -> None:
    names = ["quality_threshold", "semantic_threshold", "diversity_weight", "weights", "embedding_model"]
    assert list(parameters(acefraud.HybridSelector)) == names
    selector = acefraud.HybridSelector()
    assert (selector.quality_threshold, selector.diversity_weight) == (0.3, 0.15)
    weights = selector.weights
    assert (weights.quality, weights.semantic, weights.thompson) == (0.3, 0.4, 0.3)
    assert selector.semantic_threshold == selector.embedder.threshold
    assert acefraud.HybridSelector(semantic_threshold=0.5).semantic_threshold == 0.5


def test_merge_bullet_takes_what_the_examples_give() -> None:
    given = parameters(acefraud.Curator.merge_bullet)
    assert list(given)[:4] == ["content", "node", "playbook", "source"]


def test_a_bullet_without_evidence_succeeds_half_the_time() -> None:
    playbook = acefraud.BulletPlaybook()
    name = playbook.add_bullet("VPN: decline", "fraud_detection", source="offline")
    found = playbook.get_bullet(name)
    assert found is not None
    assert found.get_success_rate() == 0.5
    playbook.update_stats(name, is_helpful=True)
    playbook.update_stats(name, is_helpful=False)
    playbook.update_stats(name, is_helpful=True)
    (found,) = playbook.get_bullets_for_node("fraud_detection", source="offline")
    assert (found.helpful_count, found.harmful_count, found.times_selected) == (2, 1, 3)
    assert found.get_success_rate() == pytest.approx(2 / 3)
    assert playbook.get_bullets_for_node("fraud_detection", source="online") == []


# --- everything is described ---


def public_methods(cls: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties that a class has from the package, by name."""
    for owner in cls.__mro__:
        for name, value in vars(owner).items():
            plain = getattr(value, "__func__", value)
            described = isinstance(value, property) or inspect.isfunction(plain)
            if owner.__module__.startswith("acefraud") and not name.startswith("_") and described:
                yield f"{owner.__name__}.{name}", value


def documented_things() -> dict[str, Any]:
    """The exported names and the errors."""
    things = {name: getattr(acefraud, name) for name in acefraud.__all__}
    return things | {
        name: var for name, var in vars(errors).items() if isinstance(var, type) and issubclass(var, Exception)
    }


@pytest.mark.parametrize("name", documented_things())
def test_every_public_name_has_a_docstring_with_an_example(name: str) -> None:
    described = documented_things()[name].__doc__ or ""
    assert described.strip()
    assert ">>> " in described


@pytest.mark.parametrize("name", [name for name, thing in documented_things().items() if inspect.isclass(thing)])
def test_every_public_method_has_a_docstring(name: str) -> None:
    assert not [
        method for method, each in public_methods(documented_things()[name]) if not (each.__doc__ or "").strip()
    ]


# --- nothing is sent ---------------------------------------------------------------------------------------------


class Watched(Mapping[str, str]):
    """An environment that writes down what is asked of it."""

    def __init__(self, content: dict[str, str]) -> None:
        self.content = content
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return self.content[name]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("the whole environment was read")

    def __len__(self) -> int:
        return len(self.content)


def test_settings_ask_for_their_variables_by_name_and_for_no_key() -> None:
    environment = Watched(dict.fromkeys(KEYS, "secret") | {"ACEFRAUD_WHO": "ana"})
    assert Settings.from_environment(environment).who == "ana"
    names = [
        "PLAYBOOK",
        "DATABASE",
        "WHO",
        "EMBEDDER",
        "CONFIG",
        "MODELS",
        "BASE_URL",
        "STYLE",
        "OPINION",
        "FALLBACK",
        "CACHE",
        "DURABILITY",
    ]
    names += [f"{role.upper()}_MODEL" for role in ROLES]
    assert environment.asked == {f"ACEFRAUD_{name}" for name in names} | {"XDG_CACHE_HOME", "OPENAI_BASE_URL"}


def test_components_without_arguments_work_with_keys_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.setenv(key, "secret")

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    playbook = acefraud.BulletPlaybook()
    playbook.add_bullet("An emulator and a VPN = 97% fraud", "fraud_detection", source="offline")
    bullets, scores = acefraud.HybridSelector().select_bullets(TRANSACTION, "fraud_detection", playbook)
    assert len(bullets) == len(scores) == 1
    assert acefraud.SimpleFraudAgent(bullets=[b.content for b in bullets]).analyze(TRANSACTION) == "DECLINE"
    assert acefraud.SimpleFraudAgent().analyze("$12 coffee, account 5 years old, verified") == "APPROVE"
    assert asyncio.run(acefraud.LLMJudge().judge(TRANSACTION, "DECLINE", "decline ")) == (True, 1.0)
    assert asyncio.run(acefraud.LLMJudge().judge(TRANSACTION, "DECLINE")) == (None, 0.0)
    assert asyncio.run(acefraud.Reflector().reflect(TRANSACTION, "APPROVE", "DECLINE", "fraud_detection")) is None


IMPORT = """
import os, socket, sys
class Environment(type(os.environ)):
    def __getitem__(self, name):
        if name.endswith(("_KEY", "_TOKEN")):
            print("read", name)
        return super().__getitem__(name)
os.environ.__class__ = Environment
opened = []
socket.socket.connect = lambda *a, **k: opened.append(a)
import acefraud, acefraud.cli
acefraud.HybridSelector(), acefraud.Reflector(), acefraud.LLMJudge(), acefraud.SimpleFraudAgent()
vendors = {"openai", "anthropic", "matplotlib", "torch", "transformers"} & set(sys.modules)
print("opened", len(opened), "vendors", sorted(vendors))
"""


def test_importing_opens_no_socket_reads_no_key_and_loads_no_vendor() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, **dict.fromkeys(KEYS, "secret"), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.stdout == "opened 0 vendors []\n"
