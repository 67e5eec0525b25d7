"""Decisions with fitted points of the scorecard."""

from __future__ import annotations

import asyncio

import pytest

from acefraud import BulletPlaybook, Learner, Transaction, load_dataset
from acefraud.core.calibration import Calibration
from acefraud.core.decision import ReasonKind
from acefraud.roles.embedded.agent import weigh


def test_a_reason_shows_the_fitted_points() -> None:
    calibration = Calibration(intercept=-1.0, points={"vpn is true": 0.25})
    seen = weigh({"vpn": True, "night": True}, (), calibration)
    assert [(reason.text, reason.contribution) for reason in seen.reasons] == [
        ("between 11 PM and 6 AM", 0.5),
        ("a VPN or proxy", 0.25),
    ]


def test_a_calibration_of_an_older_file_has_no_fitted_points() -> None:
    older = Calibration.model_validate_json('{"intercept": -1.0, "knowledge_scale": 0.8}')
    assert older.points == {}


def test_fitted_points_are_kept_scored_and_replayed() -> None:
    data = load_dataset("complex_fraud_detection")
    learner = Learner(BulletPlaybook())
    learner.study(data.train[-320:])
    calibration = learner.playbook.snapshot().calibration(learner.options.node)
    assert calibration is not None
    assert calibration.points
    some = [Transaction(id=case.transaction.id, text=case.transaction.text) for case in data.test[:20]]
    scores = learner.score_all(some).probabilities
    decisions = asyncio.run(learner.decide_all(some))
    assert [decision.probability for decision in decisions] == pytest.approx(scores.tolist(), abs=1e-6)
    assert any(reason.kind is ReasonKind.KNOWLEDGE for decision in decisions for reason in decision.reasons)
    again = asyncio.run(learner.replay(decisions[0]))
    assert again.reasons == decisions[0].reasons
