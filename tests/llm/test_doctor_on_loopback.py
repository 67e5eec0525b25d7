"""`acefraud doctor` with a server that answers, and with one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.cli import conftest as commands
from tests.llm import on_server

from acefraud.settings import ROLES

if TYPE_CHECKING:
    from tests.cli.conftest import Shell
    from tests.llm.conftest import Loopback

pytestmark = pytest.mark.enable_socket

SECRET = "very-secret"
shell = commands.shell


@pytest.fixture(autouse=True)
def key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


def test_all_roles_answer_and_their_price_is_told(shell: Shell, loopback: Loopback) -> None:
    server = loopback()
    ran = shell("doctor", "--models", "openai", "--base-url", server.base_url, "--json")
    rows = {row["role"]: row for row in ran.json["roles"]}
    assert set(rows) == set(ROLES)
    for role, used in on_server.usage_by_role(server.log).items():
        row = rows[role]
        assert (row["answered"], row["played_by"], row["model"]) == (True, "model", on_server.MODELS[role])
        assert (row["input_tokens"], row["output_tokens"]) == (used["input_tokens"], used["output_tokens"])
        assert row["base_url"] == server.base_url
    costs = ran.json["usd_per_thousand_decisions"]
    for role in ("agent", "embedding"):
        spent = on_server.price([call for call in server.log if call.role == role])
        assert costs[role] == pytest.approx(1000 * spent, abs=1e-6)
    assert costs["agent"] > 0
    assert SECRET not in ran.out + ran.err


def test_the_same_for_people(shell: Shell, loopback: Loopback) -> None:
    server = loopback()
    shown = shell("doctor", "--models", "openai", "--base-url", server.base_url, "--style", "direct").out
    agent = next(call for call in server.log if call.role == "agent")
    assert f"{agent.input_tokens:,} in, {agent.output_tokens:,} out" in shown
    assert "A thousand decisions like this one: agent $" in shown
    assert server.base_url in shown
    assert "OPENAI_API_KEY set" in shown
    assert "yes" in next(line for line in shown.split("Tried once")[1].splitlines() if "agent" in line)


def test_a_server_without_log_probabilities_is_told_of(shell: Shell, loopback: Loopback) -> None:
    server = loopback(logprobs=False)
    told = shell("doctor", "--agent-model", "openai:m", "--base-url", server.base_url, "--style", "direct", "--json")
    agent = told.json["roles"][0]
    assert (agent["answered"], agent["logprobs"]) == (True, False)
    assert told.json["usd_per_thousand_decisions"]["agent"] is None  # nobody knows what it costs


def only(role: str, instead: str) -> Any:
    """A server that answers one role with something else."""
    return lambda asked, _: instead if asked == role else None


@pytest.mark.parametrize("role", ["agent", "judge", "reflector"])
def test_a_role_that_fails_is_named_and_the_others_are_still_tried(role: str, shell: Shell, loopback: Loopback) -> None:
    server = loopback(answer=only(role, "I would rather not say."))
    ran = shell("doctor", "--models", "openai", "--base-url", server.base_url, "--json", code=1)
    rows = {row["role"]: row for row in ran.json["roles"]}
    assert [name for name, row in rows.items() if not row["answered"]] == [role]
    assert "could not be read" in rows[role]["error"]
    assert rows[role]["input_tokens"] > 0  # it failed, and cost something all the same


@pytest.mark.parametrize("misbehaviour", ["http_500", "rate_limit", "hang", "broken_body", "cut"])
def test_a_server_that_fails_makes_the_exit_code_1(misbehaviour: str, shell: Shell, loopback: Loopback) -> None:
    server = loopback(misbehave={misbehaviour: 1.0})
    timeout = "0.3" if misbehaviour == "hang" else "60"
    ran = shell("doctor", "--models", "openai", "--base-url", server.base_url, "--timeout", timeout, code=1)
    assert ran.out.count("no: ") >= len(ROLES)
    assert len(server.log) == len(ROLES)  # nothing is tried twice
    assert "Traceback" not in ran.err


def test_nobody_listens(shell: Shell) -> None:
    ran = shell("doctor", "--models", "openai", "--base-url", "http://127.0.0.1:9/v1", "--json", code=1)
    assert [row["answered"] for row in ran.json["roles"]] == [False] * 4


def test_a_missing_key_is_one_thing_to_mend(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    ran = shell("doctor", "--models", "openai", "--json", code=1)
    assert all("OPENAI_API_KEY" in row["error"] for row in ran.json["roles"])
