"""`acefraud compare` and `acefraud decide` with models in the roles, held against the server's own log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli import conftest as commands
from tests.llm import on_server

from acefraud.core.events import DecisionMade

if TYPE_CHECKING:
    from tests.cli.conftest import Shell
    from tests.llm.conftest import Loopback

pytestmark = [pytest.mark.wide, pytest.mark.enable_socket]

ROWS = 30
SMALL = ("--limit", str(ROWS), "--seeds", "1", "--json")
KEY = "only-for-this-test"
shell = commands.shell


@pytest.fixture(autouse=True)
def key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ACEFRAUD_CACHE", "")  # where no reply is kept, no process is started to keep it
    on_server.without_waits(monkeypatch)


def test_usage_is_what_the_server_counted_and_a_second_run_makes_no_call(
    shell: Shell, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = loopback()
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)  # as the vendor's package has it
    options = (*SMALL, "--models", "openai", "--cache", shell.folder / "replies.db")
    first = shell("compare", *options).json
    assert list(first["modes"]) == ["vanilla", "online_only", "offline_online"]
    assert first["test_rows"] == ROWS
    assert first["modes"]["offline_online"]["bullets"] > 0
    usage = first["models"].pop("usage")
    counted = on_server.usage_by_role(server.log)
    assert set(counted) == {"agent", "reflector", "embedding"}
    told = {role: {name: used[name] for name in counted[role]} for role, used in usage["roles"].items()}
    assert told == counted
    assert usage["total"]["calls"] == len(server.log)
    assert usage["total"]["cost"] == pytest.approx(on_server.price(server.log), rel=1e-9)
    assert (usage["total"]["failed"], usage["total"]["unpriced"]) == (0, 0)

    made = len(server.log)
    second = shell("compare", *options).json
    again = second["models"].pop("usage")
    assert len(server.log) == made
    assert again["total"]["calls"] == 0
    assert again["total"]["cost"] == 0
    assert second == first


def test_a_comparison_without_models_sends_nothing_whatever_lies_in_the_environment(
    shell: Shell, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = loopback()
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # in this process
    ran = shell("compare", *SMALL)
    assert "models" not in ran.json
    assert "calls" not in ran.err
    assert server.log == []


@pytest.mark.long
def test_a_first_tier_is_compared_with_asking_every_time(shell: Shell, loopback: Loopback) -> None:
    server = loopback()
    options = ("--agent-model", "openai:gpt-3.5-turbo", "--tier", "0.8", "--base-url", server.base_url)
    ran = shell("compare", "--limit", "20", "--seeds", "1", *options)
    assert "The clear cases without a call, beside all cases with one" in ran.out
    rows = 80  # 30 teach nothing, and nothing is certain then
    told = shell("compare", "--limit", str(rows), "--seeds", "1", "--json", *options).json
    tiers = told["models"]["tiers"]
    assert {mode: tier["settled"] + tier["asked"] for mode, tier in tiers.items()} == dict.fromkeys(told["modes"], rows)
    assert tiers["vanilla"]["settled"] == 0  # nothing was fitted, so nothing is certain
    assert tiers["offline_online"]["settled"] > 0


# --- decide and explain ------------------------------------------------------------------------------------------


def trained(shell: Shell, *options: str, rows: int = 120) -> Path:
    train, test = on_server.cases(rows, 24)
    shell.on_book("train", on_server.write_cases(shell.folder / "train.jsonl", train), "--json", *options)
    return on_server.write_cases(shell.folder / "today.jsonl", test)


def test_a_decision_of_a_model_shows_its_reasons_and_that_the_probability_was_only_stated(
    shell: Shell, loopback: Loopback
) -> None:
    server = loopback()
    today = trained(shell)
    options = ("--agent-model", "openai:gpt-3.5-turbo", "--base-url", server.base_url)
    ran = shell.on_book("decide", today, *options)
    assert ran.out.count("% fraud (stated by the model)") == 24
    assert "this looks more like" in ran.out
    assert "(the model's words)" in ran.out
    assert "agent: 24 calls (0 failed)" in ran.err
    made = len(server.log)
    assert made == 24
    with shell.open() as book:
        known = {event.payload.decision.id for event in book.ledger.read() if isinstance(event.payload, DecisionMade)}
    (decision, *more) = shell.on_book("decide", today, *options, "--json").lines
    assert {each["decision_id"] for each in (decision, *more)} == known  # the same decisions, recorded once
    assert (decision["model"], decision["probability_from"]) == ("openai:gpt-3.5-turbo", "stated")
    assert decision["reasons"][0]["kind"] == "the model's words"
    assert decision["usage"]["input_tokens"] > 0

    shown = shell.on_book("explain", decision["transaction_id"]).out
    assert decision["decision_id"] in shown
    assert "openai:gpt-3.5-turbo" in shown
    assert decision["reasons"][0]["text"] in shown
    told = shell.on_book("explain", decision["decision_id"], "--json").json
    assert (told["model"], told["probability_from"]) == ("openai:gpt-3.5-turbo", "stated")
    assert len(server.log) <= 2 * made  # explaining asks nobody


def test_a_first_tier_spares_calls(shell: Shell, loopback: Loopback) -> None:
    server = loopback()
    today = trained(shell, rows=300)
    options = ("--agent-model", "openai:gpt-3.5-turbo", "--base-url", server.base_url, "--tier", "0.8", "--json")
    decisions = shell.on_book("decide", today, *options).lines
    settled = [decision for decision in decisions if decision["model"] != "openai:gpt-3.5-turbo"]
    assert len(decisions) == 24
    assert 0 < len(server.log) < 24
    assert len(server.log) + len(settled) == 24
    for one in settled:
        assert max(one["probability"], 1 - one["probability"]) >= 0.8
        assert one["probability_from"] == "fitted"
        assert "fallback" not in one


def test_one_word_is_calibrated_after_training_in_that_style(
    shell: Shell, loopback: Loopback, loopback_module: Any
) -> None:
    server = loopback()
    options = ("--agent-model", "openai:gpt-3.5-turbo", "--base-url", server.base_url, "--style", "direct")
    today = trained(shell, *options)
    asked = len(server.log)
    assert asked == 60  # labelled cases, on which the odds of the two words are fitted
    decisions = shell.on_book("decide", today, *options, "--json").lines
    assert len(server.log) == asked + 24
    assert {decision["probability_from"] for decision in decisions} == {"calibrated"}
    labels = {row["id"]: row["label"] for row in map(json.loads, today.read_text().splitlines())}
    right = sum(
        (decision["verdict"] == "DECLINE") == bool(labels[decision["transaction_id"]]) for decision in decisions
    )
    said = sum(decision["verdict"] == "DECLINE" for decision in decisions)
    bare = [loopback_module.agent(loopback_module.Asked(json.loads(call.body)), -2.0) for call in server.log[asked:]]
    assert bare.count("DECLINE") < said  # the words alone lean to one side
    assert right >= 15
    assert "(stated" not in shell.on_book("decide", today, *options).out


def test_one_word_without_such_a_training_is_marked_as_not_calibrated(shell: Shell, loopback: Loopback) -> None:
    server = loopback()
    options = ("--agent-model", "openai:gpt-3.5-turbo", "--base-url", server.base_url, "--style", "direct")
    ran = shell("decide", "User (account age: 3 days) attempts $2,500 purchase through a VPN", *options)
    assert "(the model's odds, not calibrated)" in ran.out


def test_the_key_is_told_nowhere(shell: Shell, loopback: Loopback) -> None:
    server = loopback(misbehave={"http_500": 1.0})
    text = "User attempts $2,500 purchase through a VPN"
    ran = shell("decide", text, "--models", "openai", "--base-url", server.base_url, code=2)
    assert KEY not in ran.out + ran.err
    assert server.log[0].headers["authorization"] == f"Bearer {KEY}"
    for path in shell.folder.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()
