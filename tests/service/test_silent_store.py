"""A store that says nothing: requests are told to try again, and probes tell of it soon."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from acefraud.service.app import build_app
from acefraud.service.options import ServiceOptions
from acefraud.service.routes import operations
from acefraud.service.runtime import Runtime
from acefraud.storage.sql_ledger import SqlLedger

ORDER = {"id": "t1", "facts": {"amount": 3}}


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    """Lets the store answer again."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def client(store: Path, go_on: threading.Event, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A service that lost its store after it started."""
    monkeypatch.setattr(operations, "STORE_SECONDS", 0.1)
    options = ServiceOptions(store=store, insecure_local=True, deadline=1)

    def silent(method: Callable[[SqlLedger], object]) -> Callable[[SqlLedger], object]:
        def call(ledger: SqlLedger) -> object:
            assert go_on.wait(60)
            return method(ledger)

        return call

    with TestClient(build_app(Runtime(options)), base_url="http://localhost") as client:
        monkeypatch.setattr(SqlLedger, "_looking_up", silent(SqlLedger._looking_up))
        monkeypatch.setattr(SqlLedger, "check_writable", silent(SqlLedger.check_writable))
        try:
            yield client
        finally:
            go_on.set()


def test_a_probe_says_soon_that_the_store_is_silent(
    client: TestClient, go_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.headers["Retry-After"]
    go_on.set()

    monkeypatch.setattr(operations, "STORE_SECONDS", 20.0)
    assert client.get("/readyz").status_code == 200


def test_metrics_and_liveness_do_not_ask_the_store(client: TestClient) -> None:
    assert "acefraud_outcomes_waiting" in client.get("/metrics").text
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(("path", "body"), [("decisions", ORDER), ("decisions:batch", {"transactions": [ORDER]})])
def test_a_decision_without_a_store_is_told_to_try_again_and_made_once(
    client: TestClient, go_on: threading.Event, path: str, body: dict[str, object]
) -> None:
    late = client.post(f"/v1/{path}", json=body)
    assert late.status_code == 503
    assert late.headers["Retry-After"] == "1"
    assert late.json()["detail"] == "there was no answer within 1 seconds; try again"
    go_on.set()

    assert client.post(f"/v1/{path}", json=body).status_code == 200
    assert len(client.get("/v1/decisions").json()["items"]) == 1
