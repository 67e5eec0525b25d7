"""No key, secret or sensitive fact in any log line or error."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import Serving

from acefraud.core.scope import Scope
from acefraud.errors import ModelMalformed, ModelRefused, StoreError
from acefraud.service.request_log import JsonLines
from acefraud.service.runtime import Runtime

MARK = "zqx7Secret"
"""In everything that must not come back."""
CARD = "4111111111111111"
ORDER = {"id": "t1", "facts": {"amount": 900, "email": f"{MARK}@example.org"}, "text": f"from {MARK}"}
NEW_KEY = f"ace_0123456789ab_{MARK}{'x' * 33}"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the process logs, as a server does."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLines())
    handler.addFilter(lambda record: not record.name.startswith("httpx"))  # the client of the test
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(before)


def check_clean(serving: Serving, log: io.StringIO, answers: list[Any]) -> None:
    """Fail if a log line, or an answer that is an error, has something that was marked."""
    marked = [MARK, CARD, NEW_KEY, *serving.secrets.values()]
    lines = log.getvalue().splitlines()
    assert len(lines) >= len(answers)
    assert all("request_id" in json.loads(line) for line in lines)
    for word in marked:
        assert [line for line in lines if word.lower() in line.lower()] == []
        errors = [answer for answer in answers if answer.status_code >= 400]
        assert [error.text for error in errors if word.lower() in f"{error.text}{error.headers}".lower()] == []


BAD_BODIES: list[Any] = [
    {"id": "t2", "facts": {"amount": [MARK]}},
    {"id": "t2", "facts": {"amount": {"a": MARK}}},
    {"id": "t2", "facts": {"vpn": MARK}},
    {"id": "t2", "facts": {"amount": MARK}},
    {"id": "t2", "facts": MARK},
    {"id": "t2", "facts": {"amount": 1}, "time": MARK},
    {"id": "t2", "facts": {"amount": 1}, "text": [MARK]},
    {"id": "t2", "facts": {"amount": 1}, "label": MARK},
    {"id": "t2", "facts": {"": MARK}},
    {"id": "t2", "facts": {"amount": f"1e999 {MARK}"}},
    {"id": f"{MARK}\x00", "facts": {"amount": 1}},
    [MARK],
    MARK,
]


@pytest.mark.parametrize("path", ["/v1/decisions", "/v1/score", "/v1/decisions:batch"])
def test_bad_transactions_are_not_quoted(serving: Serving, admin: TestClient, log: io.StringIO, path: str) -> None:
    bodies = [{"transactions": [each]} for each in BAD_BODIES] if path.endswith("batch") else BAD_BODIES
    answers = [admin.post(path, json=body) for body in bodies]
    answers.append(admin.post(path, content=f'{{"id": "{MARK}', headers={"Content-Type": "application/json"}))
    answers.append(admin.post(path, content=MARK, headers={"Content-Type": "text/plain"}))

    assert sum(answer.status_code >= 400 for answer in answers) >= 10
    assert all(answer.status_code < 500 for answer in answers)
    check_clean(serving, log, answers)


def test_good_and_conflicting_requests_leave_no_trace(serving: Serving, admin: TestClient, log: io.StringIO) -> None:
    answers = [
        admin.post("/v1/decisions", json=ORDER),
        admin.post("/v1/decisions", json={**ORDER, "text": f"{MARK} again"}),
        admin.post("/v1/decisions", json={**ORDER, "id": "t2"}, headers={"Idempotency-Key": "k-1"}),
        admin.post("/v1/decisions", json={**ORDER, "id": "t3"}, headers={"Idempotency-Key": "k-1"}),
        admin.post("/v1/score", json=ORDER),
        admin.get("/v1/decisions", params={"cursor": MARK}),
        admin.get("/v1/decisions", params={"verdict": MARK, "since": MARK}),
        admin.get(f"/v1/decisions/{MARK}"),
        admin.get(f"/v1/{MARK}"),
        admin.get(f"/v1/playbook?node={MARK}"),
        admin.get(f"/v1/bullets/{MARK}"),
        admin.get("/v1/playbook", headers={"X-Request-Id": f"{MARK}!"}),
        admin.post("/v1/outcomes", json={"id": "o1", "transaction_id": "t1", "label": MARK}),
        admin.post("/v1/outcomes", json={"outcomes": [{"id": "o1", "transaction_id": "t1", "source": MARK}]}),
    ]

    assert [answer.status_code for answer in answers[:4]] == [200, 409, 200, 409]
    check_clean(serving, log, answers)


def test_lists_and_snoozes_are_not_quoted(serving: Serving, admin: TestClient, log: io.StringIO) -> None:
    policy = serving.runtime.playbook[0].id
    answers = [
        admin.put("/v1/lists/cards", json={"about": MARK, "reason": MARK}),
        admin.put(f"/v1/lists/{MARK}", json={"reason": MARK}),
        admin.patch("/v1/lists/cards", json={"add": [{"value": CARD, "reason": MARK}], "reason": MARK}),
        admin.patch("/v1/lists/cards", json={"remove": [CARD, MARK], "reason": MARK}),
        admin.patch("/v1/lists/cards", json={"add": [{"value": CARD, "until": "2020-01-01"}], "reason": MARK}),
        admin.patch("/v1/lists/cards", json={"add": [{"value": [CARD]}], "reason": {MARK: CARD}}),
        admin.patch("/v1/lists/none", json={"add": [{"value": CARD}], "reason": MARK}),
        admin.post(
            f"/v1/bullets/{policy}:snooze",
            json={"key": MARK, "value": CARD, "until": "2090-01-01T00:00:00Z", "reason": MARK},
        ),
        admin.patch(f"/v1/bullets/{policy}", json={"status": MARK, "reason": MARK}),
        admin.post("/v1/playbook:rollback", json={"revision": MARK, "reason": MARK}),
        admin.put("/v1/threshold", json={"threshold": MARK, "reason": MARK}),
    ]

    assert sum(answer.status_code == 422 for answer in answers) >= 7
    check_clean(serving, log, answers)


def test_words_of_rules_are_told_to_their_author_alone(serving: Serving, admin: TestClient, log: io.StringIO) -> None:
    told = [
        admin.post("/v1/bullets", json={"content": f"decline {MARK} orders", "reason": MARK}),
        admin.post("/v1/rules:read", json={"content": f"decline {MARK} orders"}),
    ]

    assert [MARK.lower() in each.text.lower() for each in told] == [True, True]
    check_clean(serving, log, [])


def test_keys_are_not_quoted(serving: Serving, log: io.StringIO) -> None:
    headers = [
        {"Authorization": f"Bearer {NEW_KEY}"},
        {"Authorization": f"Basic {MARK}"},
        {"Authorization": MARK},
        serving.headers(Scope.DECIDE),
        {**serving.headers(Scope.DECIDE), "X-Api-Key": NEW_KEY, "Cookie": f"key={NEW_KEY}"},
    ]
    answers = [serving.anonymous.get("/v1/playbook", headers=header) for header in headers]

    assert [answer.status_code for answer in answers] == [401, 401, 401, 403, 403]
    check_clean(serving, log, answers)


@pytest.mark.parametrize("problem", [ValueError(f"cannot read {MARK}"), KeyError(MARK), RuntimeError(CARD)])
def test_crashes_tell_only_their_kind(
    serving: Serving, admin: TestClient, log: io.StringIO, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(Runtime, "score", crash)
    monkeypatch.setattr(Runtime, "decide", crash)
    monkeypatch.setattr("acefraud.service.routes.bullets.admit_rule", crash)
    answers = [
        admin.post("/v1/score", json=ORDER),
        admin.post("/v1/decisions", json=ORDER),
        admin.post("/v1/bullets", json={"content": f"decline {MARK}"}),
    ]

    assert {answer.status_code for answer in answers} == {500}
    assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}
    assert [answer.json()["instance"].rpartition(":")[2] for answer in answers] == [
        answer.headers["x-request-id"] for answer in answers
    ]
    assert any(json.loads(line).get("problem") == type(problem).__name__ for line in log.getvalue().splitlines())
    check_clean(serving, log, answers)


@pytest.mark.parametrize(
    "problem",
    [
        StoreError(f"duplicate key\nDETAIL: Key (id)=({MARK}) exists"),
        ModelRefused(f"content {MARK} was refused"),
        ModelMalformed(f"no verdict in {CARD}"),
    ],
)
def test_what_a_database_or_a_model_says_is_not_quoted(
    serving: Serving, admin: TestClient, log: io.StringIO, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem from RuntimeError(f"INSERT {MARK}")

    monkeypatch.setattr(Runtime, "score", fail)
    answer = admin.post("/v1/score", json=ORDER)

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    check_clean(serving, log, [answer])
