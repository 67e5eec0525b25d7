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

from acefraud.service.app import build_app
from acefraud.service.options import ServiceOptions
from acefraud.service.runtime import Runtime
from acefraud.settings import ModelSettings

pytestmark = pytest.mark.enable_socket
ORDER = {"id": "t1", "facts": {"amount": 900, "vpn": True}, "text": "A $900 order through a VPN"}


@contextmanager
def serving(path: Path, model: LoopbackServer) -> Iterator[TestClient]:
    models = ModelSettings(agent="openai:gpt-3.5-turbo", base_url=model.base_url, cache=None)
    runtime = Runtime.open(ServiceOptions(store=path, insecure_local=True, models=models))
    with TestClient(build_app(runtime)) as client:
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
    with LoopbackServer(script=Script(delay=1.0)) as model, serving(tmp_path / "book.db", model) as client:
        decided: list[int] = []
        thread = threading.Thread(target=lambda: decided.append(client.post("/v1/decisions", json=ORDER).status_code))
        thread.start()
        deadline = time.monotonic() + 30
        while not model.log and time.monotonic() < deadline:
            time.sleep(0.01)
        healthy = client.get("/healthz").status_code
        before = list(decided)
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
