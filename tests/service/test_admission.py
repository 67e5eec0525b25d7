"""So many decisions are under way at most, however they came in."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from acefraud.learning.learner import Learner
from acefraud.service.admission import Capacity, TooManyWaiting
from acefraud.service.app import build_app
from acefraud.service.options import ServiceOptions
from acefraud.service.runtime import Runtime
from acefraud.service.threads import OnAnotherLoop

MOST = 4


@pytest.fixture(params=["the engine decides", "a model decides"])
def client(request: pytest.FixtureRequest, store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    runtime = Runtime(ServiceOptions(store=store, insecure_local=True, most_waiting=MOST))
    if request.param == "a model decides":
        monkeypatch.setattr(Learner, "waits", property(lambda _: True))
        runtime.off_loop = OnAnotherLoop()
    with TestClient(build_app(runtime), base_url="http://localhost") as client:
        yield client


def runtime_of(client: TestClient) -> Runtime:
    assert isinstance(client.app, FastAPI)
    runtime: Runtime = client.app.state.runtime
    return runtime


def order(name: object) -> dict[str, Any]:
    return {"id": f"t{name}", "facts": {"amount": 3}}


def test_batches_and_single_decisions_count_together(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    started, go_on = threading.Event(), threading.Event()
    decide_for = Learner.decide_for

    async def slow(*given: Any, **named: Any) -> Any:
        started.set()
        assert go_on.wait(20)
        return await decide_for(*given, **named)

    monkeypatch.setattr(Learner, "decide_for", slow)
    with ThreadPoolExecutor(2) as pool:
        three = {"transactions": [order(n) for n in range(3)]}
        batch = pool.submit(client.post, "/v1/decisions:batch", json=three)
        try:
            assert started.wait(20)
            refused = client.post("/v1/decisions:batch", json={"transactions": [order("a"), order("b")]})
            fourth = pool.submit(client.post, "/v1/decisions", json=order(4))
            while runtime_of(client).deciding.under_way < MOST:
                time.sleep(0.001)
            fifth = client.post("/v1/decisions", json=order(5))
        finally:
            go_on.set()
        assert [batch.result(20).status_code, fourth.result(20).status_code] == [200, 200]

    for answer in (refused, fifth):
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert client.post("/v1/decisions", json=order(5)).status_code == 200


def test_a_batch_that_is_larger_than_the_limit_is_decided_when_nothing_else_is(client: TestClient) -> None:
    batch = {"transactions": [order(n) for n in range(2 * MOST)]}
    assert client.post("/v1/decisions:batch", json=batch).status_code == 200


def test_what_fails_is_not_under_way_any_more() -> None:
    capacity = Capacity(1)
    for _ in range(3):
        with pytest.raises(ValueError, match="failed"), capacity.admit():
            raise ValueError("failed")
    with capacity.admit(), pytest.raises(TooManyWaiting), capacity.admit():
        pass
