"""`acefraud doctor` says who plays which role, and whether they answer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from acefraud.cli import doctor
from acefraud.cli.doctor import Trial, try_role
from acefraud.errors import ModelRefused
from acefraud.settings import ROLES, ModelSettings


@pytest.fixture(autouse=True)
def no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "MODELS", "BASE_URL", *(f"{role.upper()}_MODEL" for role in ROLES)):
        monkeypatch.delenv(f"ACEFRAUD_{name}", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_every_embedded_role_answers_and_costs_nothing(shell: Any) -> None:
    told = shell("doctor", "--json", "--embedding-model", "hashing").json
    assert [row["role"] for row in told["roles"]] == list(ROLES)
    for row in told["roles"]:
        assert (row["played_by"], row["answered"], row["error"], row["key"]) == ("embedded", True, None, None)
        assert row["seconds"] >= 0
    assert told["roles"][3]["model"] == "hashing"
    assert told["usd_per_thousand_decisions"] == {"agent": 0.0, "embedding": 0.0}


def test_tables_for_people(shell: Any) -> None:
    shown = shell("doctor").out
    for words in ("In force", "Tried once", "wordllama", "default", "agent $0, embedding $0"):
        assert words in shown


def test_offline_tries_nothing_and_says_where_each_choice_comes_from(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACEFRAUD_AGENT_MODEL", "openai:gpt-4o")
    monkeypatch.setenv("OPENAI_API_KEY", "very-secret")
    monkeypatch.setattr(doctor, "try_roles", None)
    shell.write("acefraud.toml", '[models]\nreflector = "anthropic:claude"\nbase_url = "http://me:word@host/v1"\n')
    ran = shell("doctor", "--offline", "--json", "--judge-model", "acme:one")
    agent, judge, reflector, embedding = ran.json["roles"]
    assert (agent["model"], agent["chosen_by"]) == ("openai:gpt-4o", "ACEFRAUD_AGENT_MODEL")
    assert agent["key"] == {"variable": "OPENAI_API_KEY", "set": True}
    assert (agent["base_url"], reflector["base_url"]) == ("http://host/v1", "")
    assert (judge["chosen_by"], judge["key"]) == ("--judge-model", None)
    assert reflector["chosen_by"] == "acefraud.toml"
    assert reflector["key"]["set"] is False
    assert (embedding["played_by"], embedding["chosen_by"]) == ("embedded", "default")
    assert all(row["answered"] is None for row in ran.json["roles"])
    assert ran.json["usd_per_thousand_decisions"] is None
    shown = shell("doctor", "--offline", "--judge-model", "acme:one").out
    assert "OPENAI_API_KEY set" in shown
    assert "ANTHROPIC_API_KEY not set" in shown
    assert "Tried" not in shown
    for secret in ("very-secret", "word@"):
        assert secret not in shown + ran.out


def test_an_address_that_no_role_uses_is_pointed_out(shell: Any) -> None:
    url = "http://localhost:8000/v1"
    assert f"{url} is not used" in shell("doctor", "--offline", "--base-url", url).out
    assert "is not used" not in shell("doctor", "--offline", "--base-url", url, "--models", "openai").out


def test_a_wrong_choice_is_one_line(shell: Any) -> None:
    ran = shell("doctor", "--offline", "--agent-model", "gpt-4o", code=2)
    assert ran.err.startswith("acefraud: --agent-model: expected embedded or provider:name")
    shell.write("acefraud.toml", "[modles]")
    assert "acefraud.toml: there is no section [modles]" in shell("doctor", "--offline", code=2).err


def test_a_role_that_fails_has_its_error_in_the_table_and_the_exit_code_is_1(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def trials(_: ModelSettings) -> dict[str, Trial]:
        good = Trial(seconds=0.5, input_tokens=200, output_tokens=40, cost=0.0002, logprobs=False)
        failed = Trial(seconds=0.1, error="the key was turned down", cost=None)
        return {"agent": good, "judge": failed, "reflector": good, "embedding": Trial(seconds=0.1, cost=None)}

    monkeypatch.setattr(doctor, "try_roles", trials)
    ran = shell("doctor", "--models", "openai", code=1)
    assert "no: the key was turned down" in ran.out
    assert "200 in, 40 out" in ran.out
    assert "agent $0.2, embedding no price known" in ran.out
    told = shell("doctor", "--models", "openai", "--json", code=1).json
    assert [row["answered"] for row in told["roles"]] == [True, False, True, True]
    assert told["usd_per_thousand_decisions"] == {"agent": 0.2, "embedding": None}


class Player:
    """A model for every role: it answers, or fails with the error it was given."""

    def __init__(self, error: Exception | None = None, odds: float | None = None) -> None:
        self.error = error
        self.odds = odds
        self.asked: list[str] = []

    async def _answer(self, role: str) -> Any:
        self.asked.append(role)
        if self.error:
            raise self.error
        return SimpleNamespace(odds=self.odds)

    async def assess(self, *_: Any) -> Any:
        return await self._answer("agent")

    async def assess_output(self, *_: Any) -> Any:
        return await self._answer("judge")

    async def propose(self, *_: Any) -> Any:
        return await self._answer("reflector")

    async def fetch(self, _: Any) -> Any:
        return await self._answer("embedding")


def tried(role: str, player: Player, chosen: ModelSettings, used: dict[str, Any] | None = None) -> Trial:
    usage = SimpleNamespace(by_role={role: SimpleNamespace(**used)} if used else {})
    players = SimpleNamespace(
        agent=player, judge=player, reflector=player, embedder=player, client=SimpleNamespace(usage=usage)
    )
    return asyncio.run(try_role(role, chosen, players))


ON_MODELS = ModelSettings(agent="x:y", judge="x:y", reflector="x:y", embedding="x:y", cache=None)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_on_a_model_is_asked_once_and_its_usage_told(role: str) -> None:
    player = Player()
    used = {"input_tokens": 120, "output_tokens": 9, "cost": 0.001, "unpriced": 0}
    trial = tried(role, player, ON_MODELS, used)
    assert player.asked == [role]
    assert not trial.error
    assert (trial.input_tokens, trial.output_tokens, trial.cost, trial.logprobs) == (120, 9, 0.001, None)
    assert tried(role, player, ON_MODELS, used | {"unpriced": 1}).cost is None


@pytest.mark.parametrize("role", ROLES)
def test_a_role_that_fails_says_why(role: str) -> None:
    trial = tried(role, Player(ModelRefused("no such model")), ON_MODELS)
    assert (trial.error, trial.cost) == ("no such model", None)


def test_log_probabilities_are_told_of_where_they_were_asked_for() -> None:
    direct = ModelSettings(agent="x:y", style="direct", cache=None)
    assert tried("agent", Player(odds=0.3), direct).logprobs is True
    assert tried("agent", Player(odds=None), direct).logprobs is False
