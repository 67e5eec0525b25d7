"""Decisions over HTTP: each is made once, recorded, and can be explained."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import Serving, all_pages

from acefraud.core.scope import Scope

ORDER: dict[str, Any] = {"id": "t1", "facts": {"amount": 900, "vpn": True, "new_device": True}}


def test_a_decision_has_a_verdict_and_reasons(admin: TestClient) -> None:
    answer = admin.post("/v1/decisions", json=ORDER)

    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {
        "decision_id",
        "transaction_id",
        "verdict",
        "probability",
        "reasons",
        "playbook_revision",
        "time",
        "familiarity",
        "unfamiliar",
        "unfamiliar_facts",
        "warnings",
    }
    assert (body["transaction_id"], body["verdict"], body["playbook_revision"]) == ("t1", "DECLINE", 1)
    assert {"VPN and a new device: decline [unverified]"} <= {reason["content"] for reason in body["reasons"]}
    assert all(set(reason) == {"bullet_id", "content", "weight"} for reason in body["reasons"])


def test_a_decision_is_that_of_the_library(serving: Serving, admin: TestClient) -> None:
    body = admin.post("/v1/decisions", json=ORDER).json()

    recorded = serving.runtime.playbook.ledger.decisions([body["decision_id"]])[body["decision_id"]]
    assert (recorded.verdict, recorded.probability) == (body["verdict"], body["probability"])
    assert serving.runtime.learner.score_sync(ORDER).probability == body["probability"]


def test_the_same_transaction_again_gets_the_first_answer_although_the_playbook_has_changed(
    serving: Serving, admin: TestClient
) -> None:
    first = admin.post("/v1/decisions", json=ORDER)
    serving.runtime.playbook.add_bullet("Amount above 500: decline")
    again = admin.post("/v1/decisions", json=ORDER)

    assert again.json() == first.json()
    assert len(serving.runtime.playbook.ledger.latest_decisions(10)) == 1


def test_the_same_id_with_other_facts_is_a_conflict(serving: Serving, admin: TestClient) -> None:
    admin.post("/v1/decisions", json=ORDER)
    other = admin.post("/v1/decisions", json={**ORDER, "facts": {"amount": 901}})

    assert other.status_code == 409
    assert other.headers["content-type"] == "application/problem+json"
    assert other.json()["detail"].startswith("transaction 't1' was decided with other content")
    assert len(serving.runtime.playbook.ledger.latest_decisions(10)) == 1


def test_an_idempotency_key_names_a_request(serving: Serving, admin: TestClient) -> None:
    key = {"Idempotency-Key": "k-1"}
    first = admin.post("/v1/decisions", json=ORDER, headers=key)

    assert admin.post("/v1/decisions", json=ORDER, headers=key).json() == first.json()
    assert admin.post("/v1/decisions", json=ORDER).json() == first.json()
    assert admin.post("/v1/decisions", json={**ORDER, "id": "t2"}, headers=key).status_code == 409
    assert len(serving.runtime.playbook.ledger.latest_decisions(10)) == 1


def test_a_new_idempotency_key_decides_a_changed_transaction_again(admin: TestClient) -> None:
    first = admin.post("/v1/decisions", json=ORDER, headers={"Idempotency-Key": "k-1"}).json()
    stepped_up = {**ORDER, "facts": {**ORDER["facts"], "vpn": False}}
    second = admin.post("/v1/decisions", json=stepped_up, headers={"Idempotency-Key": "k-2"})

    assert second.status_code == 200
    assert second.json()["decision_id"] != first["decision_id"]


def test_keys_of_different_callers_are_different_keys(serving: Serving) -> None:
    key = {"Idempotency-Key": "k-1"}
    headers = [serving.headers(scope) | key for scope in (Scope.DECIDE, Scope.ADMIN)]
    answers = [
        serving.anonymous.post("/v1/decisions", json={**ORDER, "id": f"t{n}"}, headers=header)
        for n, header in enumerate(headers)
    ]

    assert [answer.status_code for answer in answers] == [200, 200]


def test_requests_at_the_same_time_are_each_answered_once(serving: Serving, admin: TestClient) -> None:
    ids = [f"t{n % 20}" for n in range(120)]
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda one: admin.post("/v1/decisions", json={**ORDER, "id": one}), ids))

    assert {answer.status_code for answer in answers} == {200}
    by_id: dict[str, set[str]] = {}
    for one in answers:
        by_id.setdefault(one.json()["transaction_id"], set()).add(one.text)
    assert {name: len(texts) for name, texts in by_id.items()} == dict.fromkeys(ids, 1)
    assert len(serving.runtime.playbook.ledger.latest_decisions(1000)) == 20


def test_a_bad_transaction_does_not_spoil_those_that_come_with_it(admin: TestClient) -> None:
    bodies = [{"id": f"t{n}", "facts": {"amount": n} if n % 3 else {}} for n in range(30)]
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda one: admin.post("/v1/decisions", json=one).status_code, bodies))

    assert answers == [200 if n % 3 else 422 for n in range(30)]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 422, "id"),
        ({"id": "t1"}, 422, None),
        ({"id": "t1", "facts": {"amount": [1]}}, 422, "facts.amount"),
        ({"id": "t1", "facts": {"amount": 1}, "label": "fraud"}, 422, "label"),
        ({"id": "t\x00", "facts": {"amount": 1}}, 422, "id"),
        ({"id": "t1", "facts": {"amount": 1}, "time": "soon"}, 422, "time"),
        ("{", 400, None),
    ],
)
def test_bad_input_is_a_problem_that_names_the_field(
    admin: TestClient, body: Any, status: int, field: str | None
) -> None:
    given = {"content": body} if isinstance(body, str) else {"json": body}
    answer = admin.post("/v1/decisions", headers={"Content-Type": "application/json"}, **given)

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert problem["status"] == status
    if field is not None:
        assert any(fault["field"].startswith(field) for fault in problem["errors"])


def test_a_batch_is_decided_in_order_and_may_be_sent_again(serving: Serving, admin: TestClient) -> None:
    batch = {"transactions": [{"id": f"t{n}", "facts": {"amount": n}} for n in range(50)]}
    first = admin.post("/v1/decisions:batch", json=batch)

    assert [each["transaction_id"] for each in first.json()["decisions"]] == [f"t{n}" for n in range(50)]
    assert admin.post("/v1/decisions:batch", json=batch).json() == first.json()
    assert len(serving.runtime.playbook.ledger.latest_decisions(1000)) == 50


def test_a_batch_names_the_transaction_that_conflicts(admin: TestClient) -> None:
    admin.post("/v1/decisions", json=ORDER)
    others = [{"id": "t0", "facts": {"amount": 1}}, {"id": "t1", "facts": {"amount": 2}}]
    answer = admin.post("/v1/decisions:batch", json={"transactions": others})

    assert answer.status_code == 409
    assert answer.json()["errors"][0]["field"] == "transactions.1"


def test_a_score_records_nothing(serving: Serving, admin: TestClient) -> None:
    scored = admin.post("/v1/score", json=ORDER).json()

    assert scored["verdict"] == "DECLINE"
    assert serving.runtime.playbook.ledger.latest_decisions(10) == []
    assert admin.get(f"/v1/decisions/{scored['decision_id']}").status_code == 404


def test_a_recorded_decision_is_explained(admin: TestClient) -> None:
    made = admin.post("/v1/decisions", json=ORDER).json()
    body = admin.get(f"/v1/decisions/{made['decision_id']}").json()

    assert {name: body[name] for name in made} == made
    assert body["explained"]
    assert len(body["stages"]) == 5
    assert body["scores"]
    assert body["facts"] == {"amount": 900.0, "new_device": True, "vpn": True}
    assert body["outcome"] is None


def test_personal_facts_are_masked(admin: TestClient) -> None:
    made = admin.post("/v1/decisions", json={"id": "t1", "facts": {"amount": 5, "email": "ann@example.org"}}).json()
    body = admin.get(f"/v1/decisions/{made['decision_id']}")

    assert body.json()["facts"] == {"amount": 5.0, "email": "[masked]"}
    assert "ann@example.org" not in body.text + admin.get("/v1/decisions").text


def test_decisions_are_listed_in_pages_and_filtered(admin: TestClient) -> None:
    for n in range(25):
        admin.post("/v1/decisions", json={"id": f"t{n}", "facts": {"amount": 10, "emulator": n % 5 == 0}})

    assert [page["transaction_id"] for page in all_pages(admin, "/v1/decisions?limit=7")] == [
        f"t{n}" for n in reversed(range(25))
    ]
    declined = all_pages(admin, "/v1/decisions?verdict=DECLINE&limit=2")
    assert [each["transaction_id"] for each in declined] == ["t20", "t15", "t10", "t5", "t0"]
    least = min(each["probability"] for each in declined)
    assert all_pages(admin, f"/v1/decisions?least_probability={least}") == declined
    assert all_pages(admin, "/v1/decisions?transaction_id=t3")[0]["transaction_id"] == "t3"
    assert (
        all_pages(admin, f"/v1/decisions?since={declined[0]['time'].replace('+', '%2B')}&limit=3")
        == all_pages(admin, "/v1/decisions?")[:5]
    )
    assert all_pages(admin, "/v1/decisions?until=2020-01-01T00:00:00Z") == []


def test_decisions_are_listed_by_the_bullet_they_rest_on(serving: Serving, admin: TestClient) -> None:
    (bullet,) = serving.runtime.playbook
    for n in range(12):
        admin.post("/v1/decisions", json={"id": f"t{n}", "facts": {"vpn": n % 4 == 0, "new_device": True}})

    found = all_pages(admin, f"/v1/decisions?bullet={bullet.id}&limit=2")
    assert [each["transaction_id"] for each in found] == ["t8", "t4", "t0"]


def test_a_cursor_that_nobody_gave_is_refused(admin: TestClient) -> None:
    answer = admin.get("/v1/decisions?cursor=nonsense")

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "cursor"


def test_entities_come_beside_the_facts(serving: Serving, admin: TestClient) -> None:
    made = admin.post("/v1/decisions", json={**ORDER, "entities": {"card": "c-1"}}).json()

    decision = serving.runtime.playbook.ledger.decisions([made["decision_id"]])[made["decision_id"]]
    assert decision.transaction.entities == {"card": "c-1"}
    assert "card" not in decision.facts
