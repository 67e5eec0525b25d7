"""Outcomes over HTTP: durable first, judged later, revised at any time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import Serving

from acefraud.core.bullet import Bullet
from acefraud.core.events import OutcomeHeard, OutcomeReceived
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource, Ruling

ORDER: dict[str, Any] = {"id": "t1", "facts": {"amount": 900, "vpn": True, "new_device": True}}
FRAUD: dict[str, Any] = {"id": "o1", "transaction_id": "t1", "label": "fraud", "source": "chargeback"}


def counters(serving: Serving) -> tuple[int, int, int]:
    (bullet,) = serving.runtime.playbook
    assert isinstance(bullet, Bullet)
    return bullet.helpful_count, bullet.harmful_count, bullet.times_selected


def events(serving: Serving, kind: type) -> int:
    return sum(isinstance(event.payload, kind) for event in serving.runtime.playbook.ledger.read())


def test_an_outcome_is_kept_first_and_judged_later(serving: Serving, admin: TestClient) -> None:
    admin.post("/v1/decisions", json=ORDER)
    answer = admin.post("/v1/outcomes", json=FRAUD)

    assert (answer.status_code, answer.json()) == (
        202,
        {"outcomes": [{"id": "o1", "status": "received"}], "warnings": []},
    )
    assert (events(serving, OutcomeReceived), counters(serving)) == (1, (0, 0, 0))
    serving.runtime.learner.take_in_sync()
    assert counters(serving) == (1, 0, 1)


def test_the_metrics_tell_how_many_outcomes_wait(admin: TestClient) -> None:
    admin.post("/v1/outcomes", json=FRAUD)
    deadline = time.monotonic() + 20
    while "acefraud_outcomes_waiting 1.0" not in (said := admin.get("/metrics").text) and time.monotonic() < deadline:
        time.sleep(0.02)

    assert "acefraud_outcomes_waiting 1.0" in said


def test_the_same_outcome_again_changes_nothing(serving: Serving, admin: TestClient) -> None:
    admin.post("/v1/decisions", json=ORDER)
    for _ in range(3):
        answer = admin.post("/v1/outcomes", json=FRAUD)
        serving.runtime.learner.take_in_sync()

    assert answer.json()["outcomes"] == [{"id": "o1", "status": "known"}]
    assert (events(serving, OutcomeReceived), counters(serving)) == (1, (1, 0, 1))


def test_the_same_id_with_other_content_is_a_conflict(serving: Serving, admin: TestClient) -> None:
    admin.post("/v1/outcomes", json=FRAUD)
    answer = admin.post("/v1/outcomes", json={**FRAUD, "label": "legitimate"})

    assert answer.status_code == 409
    assert answer.json()["errors"][0]["field"] == "id"
    assert events(serving, OutcomeReceived) == 1


def test_a_revision_takes_back_what_the_first_truth_counted(serving: Serving, admin: TestClient) -> None:
    admin.post("/v1/decisions", json=ORDER)
    admin.post("/v1/outcomes", json=FRAUD)
    serving.runtime.learner.take_in_sync()
    admin.post("/v1/outcomes", json={**FRAUD, "id": "o2", "label": "legitimate", "source": "analyst"})
    serving.runtime.learner.take_in_sync()

    assert counters(serving) == (0, 1, 1)


def test_an_outcome_may_come_before_its_decision(serving: Serving, admin: TestClient) -> None:
    admin.post("/v1/outcomes", json=FRAUD)
    serving.runtime.learner.take_in_sync()
    admin.post("/v1/decisions", json=ORDER)
    serving.runtime.learner.take_in_sync()

    assert counters(serving) == (1, 0, 1)
    made = admin.get("/v1/decisions").json()["items"][0]
    assert admin.get(f"/v1/decisions/{made['decision_id']}").json()["outcome"] == "fraud"


def test_a_judges_opinion_is_not_the_truth(serving: Serving, admin: TestClient) -> None:
    path = f"/v1/decisions/{admin.post('/v1/decisions', json=ORDER).json()['decision_id']}"
    opinion = Outcome(transaction_id="t1", is_fraud=False, source=OutcomeSource.JUDGE)
    judgement = Judgement(ruling=Ruling.INCORRECT, confidence=0.8, reason="it looks ordinary")

    def shown() -> list[Any]:
        body = admin.get(path).json()
        return [body[name] for name in ("outcome", "outcome_source", "outcome_time", "correct")]

    serving.runtime.learner.hear_sync(opinion, judgement=judgement)
    assert shown() == [None] * 4
    assert [each["transaction_id"] for each in admin.get("/v1/outcomes/pending").json()["items"]] == ["t1"]

    admin.post("/v1/outcomes", json={**FRAUD, "time": "2026-04-02T00:00:00Z"})
    serving.runtime.learner.take_in_sync()
    assert shown() == ["fraud", "chargeback", "2026-04-02T00:00:00Z", True]
    assert admin.get("/v1/outcomes/pending").json()["items"] == []


def test_nobody_reports_an_opinion_as_an_outcome(serving: Serving, admin: TestClient) -> None:
    answer = admin.post("/v1/outcomes", json={**FRAUD, "source": "judge"})

    assert answer.status_code == 422
    assert events(serving, OutcomeReceived) == 0


def test_many_outcomes_are_kept_all_or_none(serving: Serving, admin: TestClient) -> None:
    many = [{**FRAUD, "id": f"o{n}", "transaction_id": f"t{n}"} for n in range(20)]
    assert admin.post("/v1/outcomes", json={"outcomes": many}).status_code == 202

    clash = [{**FRAUD, "id": "new", "transaction_id": "new"}, {**FRAUD, "id": "o3", "transaction_id": "t4"}]
    assert admin.post("/v1/outcomes", json={"outcomes": clash}).status_code == 409
    assert events(serving, OutcomeReceived) == 20


def test_outcomes_at_the_same_time_are_each_kept_once(serving: Serving, admin: TestClient) -> None:
    reports = [{**FRAUD, "id": f"o{n % 15}", "transaction_id": f"t{n % 15}"} for n in range(90)]
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda one: admin.post("/v1/outcomes", json=one), reports))

    assert {answer.status_code for answer in answers} == {202}
    assert sum(answer.json()["outcomes"][0]["status"] == "received" for answer in answers) == 15
    assert events(serving, OutcomeReceived) == 15
    serving.runtime.learner.take_in_sync(1000)
    assert events(serving, OutcomeHeard) == 15


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"label": "maybe"}, "label"),
        ({"source": "rumour"}, "source"),
        ({"id": ""}, "id"),
        ({"transaction_id": "\x00"}, "transaction_id"),
        ({"time": "yesterday"}, "time"),
    ],
)
def test_a_bad_outcome_is_a_problem_that_names_the_field(
    serving: Serving, admin: TestClient, change: dict[str, Any], field: str
) -> None:
    answer = admin.post("/v1/outcomes", json=FRAUD | change)

    assert answer.status_code == 422
    assert any(field in fault["field"] for fault in answer.json()["errors"])
    assert events(serving, OutcomeReceived) == 0


def test_decisions_without_an_outcome_are_pending(admin: TestClient) -> None:
    for n in range(6):
        admin.post("/v1/decisions", json={"id": f"t{n}", "facts": {"amount": n}})
    admin.post("/v1/outcomes", json={**FRAUD, "transaction_id": "t2"})

    first = admin.get("/v1/outcomes/pending?limit=3").json()
    rest = admin.get(f"/v1/outcomes/pending?limit=3&cursor={first['next']}").json()
    assert [each["transaction_id"] for each in first["items"] + rest["items"]] == ["t0", "t1", "t3", "t4", "t5"]
    assert rest["next"] is None
    assert admin.get("/v1/outcomes/pending?before=2020-01-01T00:00:00Z").json()["items"] == []


def test_what_a_report_says_beside_the_truth_is_kept_and_shown_masked(serving: Serving, admin: TestClient) -> None:
    made = admin.post("/v1/decisions", json={**ORDER, "time": "2026-03-01T02:14:00Z"}).json()["decision_id"]
    words = {"author": "maria", "note": "mail from ann@example.org", "details": {"ticket": "t-17", "email": "a@b.org"}}
    answer = admin.post("/v1/outcomes", json={**FRAUD, "time": "2026-01-01T00:00:00Z", **words}).json()
    assert "is before the transaction" in answer["warnings"][0]
    serving.runtime.learner.take_in_sync()
    shown = admin.get(f"/v1/decisions/{made}").json()
    assert (shown["outcome_author"], shown["outcome_note"]) == ("maria", "mail from [email]")
    assert shown["outcome_details"] == {"ticket": "t-17", "email": "[masked]"}
    near = admin.post("/v1/outcomes", json={**FRAUD, "id": "o2", "transaction_id": ORDER["id"].upper()}).json()
    assert f"but on '{ORDER['id']}'" in near["warnings"][0]
    assert admin.post("/v1/outcomes", json={**FRAUD, "id": "o3", "note": "x" * 2_001}).status_code == 422
