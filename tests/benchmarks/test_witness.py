"""What the benchmark of a model as a witness measures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from acefraud import load_dataset
from acefraud.core.decision import ProbabilityFrom
from acefraud.core.transaction import Verdict
from acefraud.datasets import Dataset
from acefraud.engine.models import Witness
from acefraud.roles.protocols import Assessment, Question
from acefraud.support.exact_math import sigmoid
from benchmarks.witness import WAYS, described, measured


class Worthless:
    """A model that says the same of every case."""

    model = "scripted:worthless"
    waits = True
    adds_up = False

    @property
    def without_tier(self) -> Worthless:
        return self

    async def assess(self, question: Question) -> Assessment:
        odds = 1.0 + 0.0 * len(question.text)
        return Assessment(Verdict.DECLINE, sigmoid(odds), odds, odds=odds, probability_from=ProbabilityFrom.ODDS)


@pytest.mark.wide
def test_a_worthless_model_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.witness.FOLDS", 2)
    world = load_dataset("complex_fraud_detection", seed=0)
    data = Dataset(world.name, world.train[:100], world.test[:0])
    model = Worthless()
    agents: dict[str, Any] = dict(zip(WAYS, (None, model, Witness(model, always=True), Witness(model)), strict=True))
    found = asyncio.run(measured(data, agents, 1, lambda _: None))
    assert (found["texts"], found["splits"]) == (100, 2)
    losses = {way: loss["mean"] for way, loss in found["log_loss"].items()}
    assert losses["combined"] < losses["model"]
    assert found["over_the_better"]["mean"] < 1.25  # 50 texts are few to learn that from
    assert 0 <= found["asked"] <= 1
    assert any("combined over the better" in text for text in described("texts", found))
