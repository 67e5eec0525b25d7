"""What a console asks while somebody types a rule."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import Serving, all_pages


def test_a_rule_is_read_and_nothing_is_stored(serving: Serving, admin: TestClient) -> None:
    body = admin.post("/v1/rules:read", json={"content": "Always decline an emulator above $500"}).json()

    assert (body["understood"], body["condition"]) == (True, "amount > 500 and emulator is true")
    assert (body["argues"], body["action"]) == ("DECLINE", "always decline")
    assert len(serving.runtime.playbook) == 1


@pytest.mark.parametrize("path", ["/v1/rules:read", "/v1/rules:preview"])
def test_words_that_are_not_understood_are_no_error(admin: TestClient, path: str) -> None:
    answer = admin.post(path, json={"content": "decline amnts over 900"})

    assert answer.status_code == 200
    reading = answer.json().get("reading", answer.json())
    assert (reading["understood"], reading["not_understood"]) == (False, ["amnts"])
    assert "amount" in reading["did_you_mean"]
    assert answer.json().get("preview") is None


def test_a_new_rule_is_previewed(serving: Serving, admin: TestClient) -> None:
    for n in range(6):
        admin.post("/v1/decisions", json={"id": f"t{n}", "facts": {"amount": 100 * n}})
    body = admin.post("/v1/rules:preview", json={"content": "Amount above 250", "always": "decline"}).json()

    assert body["bullet"]["policy"] == "always decline"
    assert (body["preview"]["decisions"], body["preview"]["fires_on_decisions"]) == (6, 3)
    assert body["preview"]["flips"] == 3
    assert {each["after"] for each in body["preview"]["sample"]} == {"DECLINE"}
    assert len(serving.runtime.playbook) == 1


def test_other_words_and_another_status_are_previewed(serving: Serving, admin: TestClient) -> None:
    admin.post("/v1/decisions", json={"id": "t1", "facts": {"vpn": True, "new_device": True}})
    bullet_id = serving.runtime.playbook[0].id
    edited = admin.post("/v1/rules:preview", json={"bullet_id": bullet_id, "content": "An emulator: decline"}).json()
    retired = admin.post("/v1/rules:preview", json={"bullet_id": bullet_id, "status": "retired"}).json()

    assert (edited["bullet"]["condition"], edited["preview"]["fires_on_decisions"]) == ("emulator is true", 0)
    assert (retired["bullet"]["status"], retired["preview"]["fires_on_decisions"]) == ("retired", 1)
    assert retired["reading"] is None
    assert retired == admin.post("/v1/rules:preview", json={"bullet_id": bullet_id}).json()
    assert serving.runtime.playbook[0].status == "active"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": " "}, "content"),
        ({"status": "retired"}, "content"),
        ({"content": "VPN", "status": "retired"}, "status"),
        ({"bullet_id": "b-1", "always": "decline"}, "content"),
        ({"content": "VPN: approve", "always": "decline"}, "content"),
        ({"content": "VPN", "always": "approve", "final": True}, "final"),
    ],
)
def test_a_preview_that_cannot_be_names_the_field(admin: TestClient, body: dict[str, Any], field: str) -> None:
    answer = admin.post("/v1/rules:preview", json=body)

    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


def test_the_facts_that_rules_can_be_about(admin: TestClient, serving: Serving) -> None:
    assert admin.get("/v1/facts").json() == {"items": [], "next": None}
    for n in range(4):
        facts = {"amount": 100 * n, "vpn": n == 0, "country": "FR", "email": f"u{n}@example.org"}
        admin.post("/v1/decisions", json={"id": f"t{n}", "facts": facts})
        admin.post("/v1/outcomes", json={"id": f"o{n}", "transaction_id": f"t{n}", "label": "legitimate"})
    serving.runtime.learner.take_in_sync()

    found = {page["name"]: page for page in all_pages(admin, "/v1/facts?limit=2")}
    amount, vpn, country, email = (found[name] for name in ("amount", "vpn", "country", "email"))
    assert (amount["type"], amount["low"], amount["middle"], amount["high"]) == ("number", 0, 150, 300)
    assert (vpn["type"], vpn["english"], vpn["true_share"], vpn["coverage"]) == ("flag", "vpn", 0.25, 1)
    assert (country["type"], country["examples"], country["values"]) == ("category", ["FR"], 1)
    assert (email["type"], email["examples"], email["values"]) == ("category", [], 4)
