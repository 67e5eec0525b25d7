"""The processes of a server: what is checked before they start, and what happens if they die or are told to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.llm.loopback import LoopbackServer, Script
from tests.service.on_server import ACEFRAUD, Server, running

from acefraud.storage import open_playbook

pytestmark = [pytest.mark.wide, pytest.mark.enable_socket]
ORDER = {"id": "t1", "facts": {"amount": 900, "vpn": True}}


def children_of(server: Server) -> list[int]:
    """The ids of the processes that answer and learn."""
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,ppid=,args="], check=True, capture_output=True, text=True)
    rows = [row.split(maxsplit=2) for row in listed.stdout.splitlines()]
    return [int(pid) for pid, parent, command in rows if int(parent) == server.process.pid and "spawn_main" in command]


def until(done: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a function says so."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_processes_that_die_are_replaced(tmp_path: Path) -> None:
    book = tmp_path / "book.db"
    with running(["--playbook", str(book)], tmp_path / "log") as server, httpx.Client(base_url=server.url) as client:
        assert client.post("/v1/decisions", json=ORDER, timeout=60).status_code == 200
        children = children_of(server)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        with httpx.Client(base_url=server.url, transport=httpx.HTTPTransport(retries=3), timeout=60) as other:
            first = other.post("/v1/decisions", json=ORDER)
            outcome = {"id": "o1", "transaction_id": "t1", "label": "fraud"}
            received = other.post("/v1/outcomes", json=outcome)
            decision = f"/v1/decisions/{first.json()['decision_id']}"
            until(lambda: other.get(decision).json()["outcome"] == "fraud")
        assert len(children) == 2
        assert (first.status_code, received.status_code) == (200, 202)
        assert server.stop() == 0

    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    assert {each["child"] for each in lines if each["message"] == "process ended"} == {"worker 1", "learner"}


def test_a_request_that_outlasts_the_end_is_told_to_try_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-the-loopback-server")
    with LoopbackServer(script=Script(delay=20.0)) as model:
        options = ["--agent-model", "openai:gpt-3.5-turbo", "--base-url", model.base_url, "--no-cache"]
        more = ["--insecure-local", "--grace", "1", *options]
        answers: list[httpx.Response] = []
        with running(["--playbook", str(tmp_path / "book.db")], tmp_path / "log", more=more) as server:
            url = f"{server.url}/v1/score"
            asking = threading.Thread(target=lambda: answers.append(httpx.post(url, json=ORDER, timeout=60)))
            asking.start()
            until(lambda: model.log)
            server.stop()
            asking.join()

    (answer,) = answers
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--agent-model", "openai:gpt-4o-mini"], "openai cannot be used: set the environment variable OPENAI_API_KEY"),
        (["--reflector-model", "nosuch:x"], "no provider is called 'nosuch'"),
        (["--judge-model", "openai:gpt-4o-mini"], "No such option: --judge-model"),
    ],
)
def test_models_that_cannot_be_called_are_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    command = [*ACEFRAUD, "serve", "--playbook", str(tmp_path / "book.db"), "--port", "0", *options]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert said in ended.stderr


def test_an_empty_playbook_without_keys_is_remarked_on(tmp_path: Path) -> None:
    book = tmp_path / "book.db"
    with running(["--playbook", str(book)], tmp_path / "log", more=[]) as server:
        server.stop()
    with open_playbook(book) as opened:
        opened.add_bullet("VPN: decline")
    with running(["--playbook", str(book)], tmp_path / "second") as again:
        again.stop()

    first, second = server.log.read_text(), again.log.read_text()
    assert "the playbook is empty" in first
    assert "there are no keys yet" in first
    assert '"bullets": 1, "keys": 0' in second
    assert "the playbook is empty" not in second
    assert "there are no keys yet" not in second
