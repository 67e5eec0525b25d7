"""`acefraud judge` for decisions whose outcome never came, and `acefraud explain --replay` for those of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli import conftest as commands
from tests.llm import on_server

from acefraud.core.events import OutcomeHeard
from acefraud.core.outcome import OutcomeSource

if TYPE_CHECKING:
    from tests.cli.conftest import Shell
    from tests.llm.conftest import Loopback

pytestmark = pytest.mark.enable_socket
shell = commands.shell
RIGHT = '{"is_correct": true, "confidence": 0.9, "reasoning": "it fits"}'
WRONG = '{"is_correct": false, "confidence": 0.8, "reasoning": "it does not"}'


@pytest.fixture(autouse=True)
def key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("ACEFRAUD_CACHE", "")
    on_server.without_waits(monkeypatch)


@pytest.fixture
def today(shell: Shell) -> Path:
    """A playbook with bullets, and a file of transactions to decide with it."""
    train, test = on_server.cases(120, 6)
    shell.on_book("train", on_server.write_cases(shell.folder / "history.jsonl", train))
    path: Path = on_server.write_cases(shell.folder / "today.jsonl", test)
    return path


def test_an_opinion_counts_as_a_use_and_measures_nothing(shell: Shell, loopback: Loopback, today: Path) -> None:
    shell.on_book("decide", today)
    with shell.open() as book:
        before, cases = dict(book.snapshot().bullets), len(book.ledger.cases())
    server = loopback(answer=lambda *_: RIGHT)
    options = ("--judge-model", "openai:gpt-4o-mini", "--base-url", server.base_url)
    told = shell.on_book("judge", *options, "--json").json
    assert (told["correct"], told["incorrect"], told["unjudged"]) == (6, 0, 0)
    assert told["usage"]["roles"]["judge"]["calls"] == len(server.log) == 6
    with shell.open() as book:
        after = book.snapshot().bullets
        assert len(book.ledger.cases()) == cases, "an opinion is no label"
        heard = [event.what for event in book.ledger.read() if isinstance(event.what, OutcomeHeard)]
    assert {one.outcome.source for one in heard} == {OutcomeSource.JUDGE}
    assert {one.judgement.confidence for one in heard} == {0.9}
    assert sum(after[name].helpful_count - before[name].helpful_count for name in before) > 0
    assert all(after[name].record == before[name].record for name in before)
    assert shell.on_book("judge", *options, "--json").json["correct"] == 0, "nothing is judged twice"


def test_a_label_takes_the_place_of_an_opinion(shell: Shell, loopback: Loopback, today: Path) -> None:
    shell.on_book("decide", today)
    server = loopback(answer=lambda *_: WRONG)
    shell.on_book("judge", "--judge-model", "openai:gpt-4o-mini", "--base-url", server.base_url)
    with shell.open() as book:
        harmful = sum(bullet.harmful_count for bullet in book.snapshot().bullets.values())
    assert harmful > 0
    told = shell.on_book("learn", today, "--json").json
    assert told["heard"] == 6
    with shell.open() as book:
        uses = [bullet.harmful_count + bullet.helpful_count for bullet in book.snapshot().bullets.values()]
        chosen = [bullet.times_selected for bullet in book.snapshot().bullets.values()]
        assert len(book.ledger.cases()) == 126
    assert uses == chosen, "what the opinion counted was taken back"


def test_a_judge_that_fails_leaves_decisions_unjudged(shell: Shell, loopback: Loopback, today: Path) -> None:
    shell.on_book("decide", today)
    server = loopback(misbehave={"http_500": 1.0})
    ran = shell.on_book("judge", "--judge-model", "openai:gpt-4o-mini", "--base-url", server.base_url)
    assert "6 not judged" in ran.out
    with shell.open() as book:
        assert not any(isinstance(event.what, OutcomeHeard) for event in book.ledger.read())


def test_nobody_judges_unless_asked(shell: Shell, today: Path) -> None:
    ran = shell.on_book("judge", code=2)
    assert "--judge-model openai:gpt-4o-mini" in ran.err


def test_a_model_s_decision_is_replayed_from_what_is_kept(shell: Shell, loopback: Loopback, today: Path) -> None:
    server = loopback()
    cache = shell.folder / "replies.db"
    options = ("--agent-model", "openai:gpt-3.5-turbo", "--base-url", server.base_url, "--cache", cache)
    (decision, *_) = shell.on_book("decide", today, *options, "--json").lines
    made = len(server.log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACEFRAUD_CACHE", str(cache))
        patch.setenv("ACEFRAUD_BASE_URL", server.base_url)
        told = shell.on_book("explain", decision["decision_id"], "--replay").out
        assert "Replayed from the ledger: the same decision." in told
        assert "what the model stated (agent_reasoned.v1)" in told
    assert len(server.log) == made
    gone = shell.on_book("explain", decision["decision_id"], "--replay", code=2)
    assert "is not kept any more" in gone.err
    assert len(server.log) == made, "nothing is sent to replay"


@pytest.mark.parametrize("fallback", ["review", "embedded"])
def test_a_fallback_is_replayed_as_one(shell: Shell, loopback: Loopback, today: Path, fallback: str) -> None:
    server = loopback(misbehave={"http_500": 1.0})
    options = ("--agent-model", "openai:gpt-3.5-turbo", "--base-url", server.base_url, "--fallback", fallback)
    (decision, *_) = shell.on_book("decide", today, *options, "--json").lines
    assert decision["fallback"]
    assert (decision["verdict"] == "REVIEW") == (fallback == "review")
    told = shell.on_book("explain", decision["decision_id"], "--replay").out
    assert "Replayed from the ledger: the same decision." in told
    assert "The model that should have decided failed" in told
