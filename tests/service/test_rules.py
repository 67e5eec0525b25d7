"""What a console asks while somebody types a rule."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import Serving


def test_a_rule_is_read_and_nothing_is_stored(serving: Serving, admin: TestClient) -> None:
    body = admin.post("/v1/rules:read", json={"content": "Always decline an emulator above $500"}).json()

    assert (body["understood"], body["condition"]) == (True, "amount > 500 and emulator is true")
    assert (body["argues"], body["action"]) == ("DECLINE", "always decline")
    assert len(serving.runtime.playbook) == 1


@pytest.mark.parametrize("path", ["/v1/rules:read", "/v1/rules:preview"])
def test_words_that_are_not_understood_are_no_error(admin: TestClient, path: str) -> None:
    answer = admin.post(path, json={"content": "decline amonts over 900"})

    assert answer.status_code == 200
    reading = answer.json().get("reading", answer.json())
    assert (reading["understood"], reading["not_understood"]) == (False, ["amonts"])
    assert "amount" in reading["did_you_mean"]
    assert answer.json().get("preview") is None


def test_a_new_rule_is_previewed(serving: Serving, admin: TestClient) -> None:
    for n in range(6):
        admin.post("/v1/decisions", json={"id": f"t{n}", "facts": {"amount": 100 * n}})
    body = admin.post("/v1/rules:preview", json={"content": "Amount above 250", "always": "decline"}).json()

    assert body["bullet"]["policy"] == "always decline"
    assert (body["preview"]["decisions"], body["preview"]["fires_on_decisions"]) == (6, 3)
    assert body["preview"]["flips"] == 3
    assert {one["after"] for one in body["preview"]["sample"]} == {"DECLINE"}
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
