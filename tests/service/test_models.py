"""A service whose agent is a language model: slow, and it may fail; the service answers all the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.llm.loopback import LoopbackServer, Script

from acefraud.datasets import SchemaMapping
from acefraud.learning.learner import Learner
from acefraud.service.app import build_app
from acefraud.service.options import ServiceOptions
from acefraud.service.runtime import Runtime
from acefraud.settings import ModelSettings
from acefraud.storage import open_playbook

pytestmark = pytest.mark.enable_socket
ORDER = {"id": "t1", "facts": {"amount": 900, "vpn": True}, "text": "A $900 order through a VPN"}


@contextmanager
def serving(path: Path, model: LoopbackServer) -> Iterator[TestClient]:
    models = ModelSettings(agent="openai:gpt-3.5-turbo", base_url=model.base_url, cache=None)
    runtime = Runtime(ServiceOptions(store=path, insecure_local=True, models=models))
    with TestClient(build_app(runtime), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-the-loopback-server")


def test_a_model_decides_and_a_repeat_does_not_ask_it_again(tmp_path: Path) -> None:
    with LoopbackServer(script=Script()) as model, serving(tmp_path / "book.db", model) as client:
        first = client.post("/v1/decisions", json=ORDER)
        asked = len(model.log)
        again = client.post("/v1/decisions", json=ORDER)
        explained = client.get(f"/v1/decisions/{first.json()['decision_id']}").json()

    assert first.status_code == 200
    assert again.json() == first.json()
    assert asked >= 1
    assert len(model.log) == asked
    assert explained["model"] == "openai:gpt-3.5-turbo"


def test_other_requests_are_answered_while_a_model_thinks(tmp_path: Path) -> None:
    with LoopbackServer(script=Script()) as model, serving(tmp_path / "book.db", model) as client:
        model.hold()
        decided: list[int] = []
        thread = threading.Thread(target=lambda: decided.append(client.post("/v1/decisions", json=ORDER).status_code))
        thread.start()
        deadline = time.monotonic() + 30
        while not model.log and time.monotonic() < deadline:
            time.sleep(0.01)
        healthy = client.get("/healthz").status_code
        before = list(decided)
        model.release()
        thread.join(30)

    assert (healthy, before, decided) == (200, [], [200])


def test_a_model_that_fails_is_a_503_and_never_a_verdict(tmp_path: Path) -> None:
    with (
        LoopbackServer(script=Script(misbehave={"http_500": 1.0})) as model,
        serving(tmp_path / "book.db", model) as client,
    ):
        answer = client.post("/v1/decisions", json=ORDER)
        listed = client.get("/v1/decisions").json()["items"]

    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert listed == []


def test_models_do_not_see_facts_that_are_declared_sensitive_while_the_service_runs(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    order = {"facts": {"amount": 900, "segment": "platinum"}, "text": "A platinum customer orders"}
    with LoopbackServer(script=Script()) as model, serving(path, model) as client:
        client.post("/v1/decisions", json={"id": "t1", **order})
        before = str(model.log[-1].body)
        with open_playbook(path) as book:
            Learner(book).use_mapping(SchemaMapping(sensitive=("segment",)))
        client.post("/v1/decisions", json={"id": "t2", **order})
        after = str(model.log[-1].body)

    assert "platinum" in before
    assert "platinum" not in after
    assert "[masked] customer" in after
