"""The requests in docs/service.md, sent one after another as `curl` would."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from starlette.testclient import TestClient
from tests.service.conftest import Serving

from acefraud import errors
from acefraud.core.scope import Scope

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text("utf-8")
SAID = "\x00"
"""Stands for a `$` that the shell leaves alone."""


class Curl(NamedTuple):
    """What one command sends."""

    method: str
    path: str
    headers: dict[str, str]
    body: str | None


def commands() -> list[str]:
    """The commands of the page that call `curl`."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    lines = [command for block in blocks for command in re.split(r"^\$ ", block, flags=re.MULTILINE)]
    return [command for command in lines if command.startswith("curl ")]


def read(command: str, variables: dict[str, str]) -> Curl:
    """A command as the shell and `curl` read it."""
    kept = re.sub(r"'[^']*'", lambda quote: quote[0].replace("$", SAID), command)
    words = iter(shlex.split(re.sub(r"\$(\w+)", lambda name: variables[name[1]], kept))[1:])
    method, path, headers, body = "", "", {}, None
    for word in words:
        match word:
            case "-X":
                method = next(words)
            case "-H":
                name, _, value = next(words).partition(": ")
                headers[name] = value
            case "--json":
                body, headers["Content-Type"] = next(words).replace(SAID, "$"), "application/json"
            case _:
                path = word
    return Curl(method or ("GET" if body is None else "POST"), path, headers, body)


def _ids(answer: Any) -> Iterator[tuple[str, str]]:
    if isinstance(answer, dict) and "decision_id" in answer:
        yield "DECISION", answer["decision_id"]
    if isinstance(answer, dict) and "id" in (answer.get("bullet") or {}):
        yield "BULLET", answer["bullet"]["id"]


def test_the_requests_on_the_page_are_accepted(serving: Serving) -> None:
    variables = {"URL": "", "AUTH": f"Authorization: Bearer {serving.secrets[Scope.ADMIN]}"}
    called = []
    for command in commands():
        sent = read(command, variables)
        answer = serving.anonymous.request(sent.method, sent.path, headers=sent.headers, content=sent.body)
        assert answer.status_code in (200, 201, 202), (command, answer.text)
        called.append(f"{sent.method} {re.split('[?]', sent.path)[0]}")
        if not sent.path.endswith(("score", "preview")):
            variables.update(_ids(answer.json()))
    assert len(called) >= 24
    assert {"POST /v1/decisions:batch", "POST /v1/traces", "PUT /v1/lists/blocked_cards"} <= set(called)


def test_the_decision_of_a_score_cannot_be_looked_up(admin: TestClient) -> None:
    scored = admin.post("/v1/score", json={"id": "t1", "facts": {"amount": 40}}).json()
    assert admin.get(f"/v1/decisions/{scored['decision_id']}").status_code == 404


def test_the_errors_of_the_client_are_where_the_page_says() -> None:
    named = re.findall(r"`(Service\w+)`", PAGE)
    assert set(named) == {"ServiceError", "ServiceConflict", "ServiceUnavailable"}
    assert all(issubclass(getattr(errors, name), errors.ServiceError) for name in named)
    assert "import them from `acefraud.errors`" in PAGE
