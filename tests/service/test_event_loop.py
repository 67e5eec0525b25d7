"""Nothing on the event loop waits: neither for the store, nor for a thread that waits for it."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import Serving

from acefraud.core.scope import Scope
from acefraud.core.transaction import Transaction
from acefraud.service.answers import decision_answer
from acefraud.service.routes import decisions
from acefraud.service.runtime import Runtime
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.storage.sql_reading import SqlReading
from acefraud.storage.sqlite import SqliteLedger
from acefraud.wire.answers import DecisionAnswer

WAIT = {
    BulletPlaybook: ("snapshot", "refresh", "get_bullet", "__len__"),
    SqlReading: ("_looking_up",),
    SqlLedger: ("append",),
    SqliteLedger: ("reading", "writing"),
}
"""What may wait for the store or for another thread."""


@pytest.fixture
def waits(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Where the event loop called something that may wait."""
    assert serving.anonymous.portal is not None
    loop = serving.anonymous.portal.call(threading.get_ident)
    seen: list[str] = []

    def watched(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if threading.get_ident() == loop:
                stack = reversed(traceback.extract_stack())
                where = next(each for each in stack if "/acefraud/service/" in each.filename)
                seen.append(f"{name} in {where.name}")
            return original(*given, **named)

        return call

    for owner, names in WAIT.items():
        for name in names:
            monkeypatch.setattr(owner, name, watched(name, getattr(owner, name)))
    yield seen
    monkeypatch.undo()  # the service is closed on the loop


def test_no_route_waits_on_the_event_loop(admin: TestClient, waits: list[str]) -> None:
    statuses: list[int] = []
    admin.event_hooks["response"].append(lambda response: statuses.append(response.status_code))
    order = {"id": "t1", "facts": {"amount": 900, "vpn": True}, "text": "a $900 order"}
    decided = admin.post("/v1/decisions", json=order).json()
    admin.post("/v1/decisions:batch", json={"transactions": [{**order, "id": "t2"}]})
    admin.post("/v1/score", json=order)
    admin.post("/v1/context", json=order)
    admin.post("/v1/traces", json={"transaction": {**order, "id": "t3"}, "verdict": "DECLINE", "label": "fraud"})
    admin.post("/v1/outcomes", json={"id": "o1", "transaction_id": "t1", "label": "fraud"})
    admin.get("/v1/outcomes/pending")
    admin.get("/v1/decisions")
    admin.get(f"/v1/decisions/{decided['decision_id']}")
    added = admin.post("/v1/bullets", json={"content": "An emulator: decline", "reason": "seen"}).json()
    place = f"/v1/bullets/{added['bullet']['id']}"
    admin.get(place)
    admin.patch(place, json={"status": "retired", "reason": "wrong"})
    admin.post("/v1/rules:read", json={"content": "VPN: decline"})
    admin.post("/v1/rules:preview", json={"content": "VPN: decline"})
    admin.get("/v1/playbook")
    admin.get("/v1/playbook/changes")
    admin.post("/v1/playbook:rollback", json={"revision": 1, "preview": True})
    admin.get("/v1/threshold")
    admin.put("/v1/lists/blocked", json={"about": "cards", "reason": "new"})
    admin.patch("/v1/lists/blocked", json={"add": [{"value": "x"}], "reason": "stolen"})
    admin.get("/v1/lists/blocked")
    for probe in ("/healthz", "/readyz", "/metrics"):
        admin.get(probe)

    assert {status // 100 for status in statuses} == {2}, statuses
    assert waits == []


def test_masking_the_words_of_rules_does_not_wait_on_the_event_loop(serving: Serving, waits: list[str]) -> None:
    order = {"id": "t1", "facts": {"amount": 900, "vpn": True, "new_device": True}}
    for path in ("/v1/decisions", "/v1/decisions", "/v1/score", "/v1/context"):
        assert serving.anonymous.post(path, json=order, headers=serving.headers(Scope.DECIDE)).status_code == 200

    assert waits == []


def test_the_transactions_of_a_batch_are_read_and_its_answers_written_in_a_thread(
    admin: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert admin.portal is not None
    threads = {"loop": admin.portal.call(threading.get_ident)}
    read = Runtime.read

    def noted_read(runtime: Runtime, record: Mapping[str, object]) -> Transaction:
        threads["read"] = threading.get_ident()
        return read(runtime, record)

    def noted_answer(*given: Any) -> DecisionAnswer:
        threads["answer"] = threading.get_ident()
        return decision_answer(*given)

    monkeypatch.setattr(Runtime, "read", noted_read)
    monkeypatch.setattr(decisions, "decision_answer", noted_answer)
    answered = admin.post("/v1/decisions:batch", json={"transactions": [{"id": "t1", "facts": {"amount": 3}}]})

    assert answered.json()["decisions"][0]["transaction_id"] == "t1"
    assert threads["loop"] not in (threads["read"], threads["answer"])
