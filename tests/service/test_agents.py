"""Teams with an agent of their own: bullets for its prompt, and counters for what it decided."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient
from tests.service.conftest import Serving

from acefraud.service.metrics import DECISIONS, OUTCOMES

ORDER: dict[str, Any] = {"id": "t1", "facts": {"amount": 900, "vpn": True, "new_device": True}}


def test_a_context_has_the_bullets_that_matter_and_records_nothing(serving: Serving, admin: TestClient) -> None:
    (bullet,) = serving.runtime.playbook
    before = serving.runtime.playbook.ledger.last_seq()
    answer = admin.post("/v1/context", json=ORDER).json()

    assert [(each["bullet_id"], each["applies"]) for each in answer["bullets"]] == [(bullet.id, True)]
    assert bullet.id in answer["prompt"] or answer["prompt"] == ""
    assert len(answer["stages"]) == 5
    assert serving.runtime.playbook.ledger.last_seq() == before


def test_a_trace_with_its_truth_counts_for_the_bullets_that_were_used(serving: Serving, admin: TestClient) -> None:
    (bullet,) = serving.runtime.playbook
    other = serving.runtime.playbook.add_bullet("Amount above 500: decline")
    trace = {"transaction": ORDER, "verdict": "DECLINE", "bullet_ids": [bullet.id], "agent": "ours", "label": "fraud"}
    answer = admin.post("/v1/traces", json=trace)

    assert (answer.status_code, answer.json()["status"], answer.json()["outcome"]) == (201, "recorded", "received")
    assert answer.json()["decision"]["verdict"] == "DECLINE"
    serving.runtime.learner.take_in_sync()
    assert serving.runtime.playbook[bullet.id].helpful_count == 1
    assert serving.runtime.playbook[other].helpful_count == 0
    again = admin.post("/v1/traces", json=trace).json()
    assert (again["status"], again["outcome"]) == ("known", "known")


def test_a_trace_counts_as_a_decision_and_its_truth_as_an_outcome_once(admin: TestClient) -> None:
    def counted() -> tuple[float, float]:
        return DECISIONS.labels("REVIEW")._value.get(), OUTCOMES.labels("fraud")._value.get()

    decisions, outcomes = counted()
    for _ in range(2):
        admin.post("/v1/traces", json={"transaction": ORDER, "verdict": "REVIEW", "label": "fraud"})

    assert counted() == (decisions + 1, outcomes + 1)


def test_the_truth_of_a_trace_may_come_later(serving: Serving, admin: TestClient) -> None:
    (bullet,) = serving.runtime.playbook
    trace = {"transaction": ORDER, "verdict": "APPROVE", "bullet_ids": [bullet.id]}
    assert admin.post("/v1/traces", json=trace).json()["outcome"] is None
    admin.post("/v1/outcomes", json={"id": "o1", "transaction_id": "t1", "label": "fraud"})
    serving.runtime.learner.take_in_sync()

    assert serving.runtime.playbook[bullet.id].harmful_count == 1


def test_a_bullet_that_does_not_exist_is_refused(serving: Serving, admin: TestClient) -> None:
    before = serving.runtime.playbook.ledger.last_seq()
    answer = admin.post("/v1/traces", json={"transaction": ORDER, "verdict": "DECLINE", "bullet_ids": ["b-none"]})

    assert answer.status_code == 422
    assert "b-none" in answer.json()["detail"]
    assert serving.runtime.playbook.ledger.last_seq() == before
