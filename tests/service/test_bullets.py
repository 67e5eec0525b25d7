"""Bullets over HTTP: a rule is read, previewed and measured before it is admitted, and every change has an author."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import Serving, all_pages

from acefraud.core.bullet import Evidence, Record, Status
from acefraud.core.context_facts import snooze_fact
from acefraud.core.scope import Scope
from acefraud.service.answers import evidence_answer
from acefraud.service.routes.bullets import MOST_HISTORY

RULE = "Amount above 5,000 and an emulator: decline"


def test_a_rule_is_admitted_with_what_it_would_have_done(serving: Serving, admin: TestClient) -> None:
    admin.post("/v1/decisions", json={"id": "t1", "facts": {"amount": 6000, "emulator": True}})
    answer = admin.post("/v1/bullets", json={"content": RULE, "reason": "seen twice"})

    assert answer.status_code == 201
    body = answer.json()
    assert body["bullet"]["condition"] == "amount > 5000 and emulator is true"
    assert body["bullet"]["english"] == "amount above 5,000 and an emulator"
    assert (body["preview"]["decisions"], body["preview"]["fires_on_decisions"]) == (1, 1)
    assert serving.runtime.playbook[body["bullet"]["id"]].content == RULE


def test_a_rule_may_be_a_policy(admin: TestClient) -> None:
    body = admin.post("/v1/bullets", json={"content": "An emulator", "always": "decline", "final": True}).json()

    assert body["bullet"]["policy"] == "always decline, never overridden"
    assert admin.post("/v1/score", json={"id": "t1", "facts": {"emulator": True}}).json()["verdict"] == "DECLINE"


def test_a_rule_that_is_there_already_is_a_conflict_that_names_the_bullet(serving: Serving, admin: TestClient) -> None:
    again = admin.post("/v1/bullets", json={"content": "a new device and VPN: decline"})

    assert (again.status_code, again.json()["bullet_id"]) == (409, serving.runtime.playbook[0].id)


def test_words_that_are_not_understood_are_named_unless_they_may_be_a_note(serving: Serving, admin: TestClient) -> None:
    refused = admin.post("/v1/bullets", json={"content": "decline amnts over 900"})

    assert refused.status_code == 422
    assert {"field": "content", "message": "not understood: 'amnts'"} in refused.json()["errors"]
    assert {"field": "content", "message": "did you mean amount?"} in refused.json()["errors"]
    assert len(serving.runtime.playbook) == 1
    kept = admin.post("/v1/bullets", json={"content": "decline amnts over 900", "as_note": True})
    assert (kept.status_code, kept.json()["bullet"]["condition"]) == (201, None)


def test_a_long_history_comes_in_pages(serving: Serving, admin: TestClient) -> None:
    book, bullet_id = serving.runtime.playbook, serving.runtime.playbook[0].id
    for n in range(MOST_HISTORY - 1):
        book.set_status(bullet_id, Status.ACTIVE if n % 2 else Status.PINNED, who="ana", why=f"change {n}")
    body = admin.get(f"/v1/bullets/{bullet_id}").json()
    assert (len(body["history"]), body["history_next"]) == (MOST_HISTORY, None)

    book.set_status(bullet_id, Status.RETIRED, who="ana", why="the last")
    body = admin.get(f"/v1/bullets/{bullet_id}").json()
    path = f"/v1/bullets/{bullet_id}/history"
    rest = admin.get(f"{path}?cursor={body['history_next']}").json()
    everything = all_pages(admin, f"{path}?limit=7")
    assert len(body["history"]) == MOST_HISTORY
    assert ([each["what"] for each in rest["items"]], rest["next"]) == (["added"], None)
    assert everything == [*body["history"], *rest["items"]]
    assert everything[0]["reason"] == "the last"


def test_a_bullet_has_its_history(serving: Serving, admin: TestClient) -> None:
    made = admin.post("/v1/bullets", json={"content": RULE, "reason": "seen twice"}).json()["bullet"]
    admin.patch(f"/v1/bullets/{made['id']}", json={"status": "retired", "reason": "it faded"})
    body = admin.get(f"/v1/bullets/{made['id']}").json()

    assert body["status"] == "retired"
    assert [(each["what"], each["who"], each["reason"]) for each in body["history"]] == [
        ("now retired", "key for admin", "it faded"),
        ("added", "key for admin", "seen twice"),
    ]


def test_words_and_status_change_together_or_not_at_all(serving: Serving, admin: TestClient) -> None:
    bullet_id = serving.runtime.playbook[0].id
    wrong = {"content": "decline amnts", "status": "pinned", "reason": "x"}
    assert admin.patch(f"/v1/bullets/{bullet_id}", json=wrong).status_code == 422
    assert serving.runtime.playbook[0].status is Status.ACTIVE

    right = {"content": "VPN and an emulator: decline", "status": "pinned", "reason": "devices are too common"}
    body = admin.patch(f"/v1/bullets/{bullet_id}", json=right).json()
    assert (body["bullet"]["condition"], body["bullet"]["status"]) == ("emulator is true and vpn is true", "pinned")
    assert body["preview"]["cases"] == 0
    edited, moved = serving.runtime.playbook.ledger.history(bullet_id)[-2:]
    assert (edited.at, edited.who, edited.why) == (moved.at, moved.who, moved.why)
    assert (edited.who, edited.why) == ("key for admin", "devices are too common")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"status": "pinned"}, "reason"),
        ({"status": "pinned", "reason": "  "}, "reason"),
        ({"reason": "x"}, "content"),
        ({"status": "pinned", "final": True, "reason": "x"}, "content"),
        ({"status": "gone", "reason": "x"}, "status"),
        ({"content": "VPN: decline", "priority": 3, "reason": "x"}, "content"),
        ({"content": "VPN: approve", "always": "approve", "final": True, "reason": "x"}, "final"),
        ({"content": " ", "reason": "x"}, "content"),
    ],
)
def test_a_change_that_cannot_be_names_the_field(
    serving: Serving, admin: TestClient, body: dict[str, Any], field: str
) -> None:
    answer = admin.patch(f"/v1/bullets/{serving.runtime.playbook[0].id}", json=body)

    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


def test_a_policy_is_snoozed_until_a_time(serving: Serving, admin: TestClient) -> None:
    policy = admin.post("/v1/bullets", json={"content": "An emulator", "always": "decline"}).json()["bullet"]["id"]
    body = {"key": "card", "value": "c-17", "until": "2090-01-31T00:00:00Z", "reason": "travels"}
    answer = admin.post(f"/v1/bullets/{policy}:snooze", json=body)

    assert answer.json()["snoozes"] == [{"key": "card", "value": "c-17", "until": "2090-01-31T00:00:00Z"}]
    facts = {"emulator": True, "card": "c-17"}
    assert serving.runtime.learner.score_sync({"id": "t", "facts": facts}).facts[snooze_fact(policy)] is True


@pytest.mark.parametrize(
    ("until", "which", "field"), [("2020-01-01", "policy", "until"), ("2090-01-01", "evidence", "bullet_id")]
)
def test_a_snooze_that_cannot_be_names_the_field(
    serving: Serving, admin: TestClient, until: str, which: str, field: str
) -> None:
    policy = admin.post("/v1/bullets", json={"content": "An emulator", "always": "decline"}).json()["bullet"]["id"]
    bullet_id = policy if which == "policy" else serving.runtime.playbook[0].id
    body = {"key": "card", "value": "c-17", "until": f"{until}T00:00:00Z", "reason": "x"}
    answer = admin.post(f"/v1/bullets/{bullet_id}:snooze", json=body)

    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


def test_a_bullet_that_is_not_there_is_a_404(serving: Serving, admin: TestClient) -> None:
    until = {"key": "card", "value": "c", "until": "2090-01-01T00:00:00Z", "reason": "x"}
    answers = [
        admin.get("/v1/bullets/b-none"),
        admin.get("/v1/bullets/b-none/history"),
        admin.patch("/v1/bullets/b-none", json={"status": "pinned", "reason": "x"}),
        admin.post("/v1/bullets/b-none:snooze", json=until),
        admin.post("/v1/rules:preview", json={"bullet_id": "b-none"}),
    ]

    assert [answer.status_code for answer in answers] == [404] * 5
    assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}


def test_readers_see_snoozes_masked(serving: Serving, admin: TestClient) -> None:
    policy = admin.post("/v1/bullets", json={"content": "An emulator", "always": "decline"}).json()["bullet"]["id"]
    body = {"key": "card", "value": "4111111111111111", "until": "2090-01-01T00:00:00Z", "reason": "x"}
    admin.post(f"/v1/bullets/{policy}:snooze", json=body)

    assert "4111111111111111" in admin.get(f"/v1/bullets/{policy}").text
    assert "4111111111111111" not in admin.get(f"/v1/bullets/{policy}", headers=serving.headers(Scope.READ)).text


def test_curators_do_not_get_in_each_others_way(serving: Serving, admin: TestClient) -> None:
    bullet_id = serving.runtime.playbook[0].id

    def curate(n: int) -> int:
        if n % 2:
            return admin.post("/v1/bullets", json={"content": f"Amount above {100 * n}: decline"}).status_code
        change = {"content": f"VPN and amount above {100 * n}: decline", "status": "pinned", "reason": f"change {n}"}
        return admin.patch(f"/v1/bullets/{bullet_id}", json=change).status_code

    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(curate, range(40)))

    assert set(answers) == {200, 201}
    assert len(serving.runtime.playbook) == 21


def test_an_interval_that_begins_at_nothing_begins_at_zero() -> None:
    never = Evidence(learnt=Record(support=6, frauds=0), base_rate=0.2)
    assert never.interval[0] > 0, "what rounding leaves over"
    assert evidence_answer(never).low == 0
