"""`acefraud judge` for decisions whose outcome never came, and `acefraud explain --replay` for those of a model."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli import conftest as commands
from tests.llm import on_server
from tests.storage.replaying import cases_of

from acefraud.core.events import OutcomeHeard
from acefraud.core.outcome import OutcomeSource

if TYPE_CHECKING:
    from tests.cli.conftest import Shell
    from tests.llm.conftest import Loopback

pytestmark = [pytest.mark.wide, pytest.mark.enable_socket]
shell = commands.shell
RIGHT = '{"is_correct": true, "confidence": 0.9, "reasoning": "it fits"}'
WRONG = '{"is_correct": false, "confidence": 0.8, "reasoning": "it does not"}'


@pytest.fixture(autouse=True)
def key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("ACEFRAUD_CACHE", "")
    on_server.without_waits(monkeypatch)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shell = commands.Shell(tmp_path_factory.mktemp("trained"))
    train, _ = on_server.cases(120, 6)
    shell.on_book("train", on_server.write_cases(shell.folder / "history.jsonl", train))
    return shell.book


@pytest.fixture
def today(shell: Shell, trained: Path) -> Path:
    """A playbook with bullets, and a file of transactions to decide with it."""
    shutil.copy(trained, shell.book)
    _, test = on_server.cases(120, 6)
    path: Path = on_server.write_cases(shell.folder / "today.jsonl", test)
    return path


def test_an_opinion_counts_as_a_use_and_measures_nothing(shell: Shell, loopback: Loopback, today: Path) -> None:
    shell.on_book("decide", today)
    with shell.open() as book:
        before, cases = dict(book.snapshot().bullets), len(cases_of(book.ledger))
    server = loopback(answer=lambda *_: RIGHT)
    options = ("--judge-model", "openai:gpt-4o-mini", "--base-url", server.base_url)
    told = shell.on_book("judge", *options, "--json").json
    assert (told["correct"], told["incorrect"], told["unjudged"]) == (6, 0, 0)
    assert told["usage"]["roles"]["judge"]["calls"] == len(server.log) == 6
    with shell.open() as book:
        after = book.snapshot().bullets
        assert len(cases_of(book.ledger)) == cases, "an opinion is no label"
        heard = [event.payload for event in book.ledger.read() if isinstance(event.payload, OutcomeHeard)]
    assert {each.outcome.source for each in heard} == {OutcomeSource.JUDGE}
    assert {each.judgement.confidence for each in heard} == {0.9}
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
        assert len(cases_of(book.ledger)) == 126
    assert uses == chosen, "what the opinion counted was taken back"


def test_a_judge_that_fails_leaves_decisions_unjudged(shell: Shell, loopback: Loopback, today: Path) -> None:
    shell.on_book("decide", today)
    server = loopback(misbehave={"http_500": 1.0})
    ran = shell.on_book("judge", "--judge-model", "openai:gpt-4o-mini", "--base-url", server.base_url)
    assert "6 not judged" in ran.out
    with shell.open() as book:
        assert not any(isinstance(event.payload, OutcomeHeard) for event in book.ledger.read())


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
        assert "what the model stated (agent_reasoned.v2)" in told
    assert len(server.log) == made
    gone = shell.on_book("explain", decision["decision_id"], "--replay", code=2)
    assert "is no longer cached" in gone.err
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


def test_cases_left_to_a_person_do_not_stop_learning(shell: Shell, loopback: Loopback) -> None:
    """Every tenth outcome is reflected on, whoever should have decided it."""
    train, test = on_server.cases(120, 20)
    shell.on_book("train", on_server.write_cases(shell.folder / "history.jsonl", train))
    today = on_server.write_cases(shell.folder / "today.jsonl", test)
    server = loopback(misbehave={"http_500": 1.0})
    options = ("--agent-model", "openai:gpt-3.5-turbo", "--base-url", server.base_url, "--fallback", "review")
    assert {line["verdict"] for line in shell.on_book("decide", today, *options, "--json").lines} == {"REVIEW"}
    told = shell.on_book("learn", today, "--json").json
    assert (told["heard"], told["unjudged"]) == (20, 20)


def test_failures_that_wait_for_others_are_reflected_on_at_the_end(shell: Shell, loopback: Loopback) -> None:
    train, test = on_server.cases(120, 12)
    shell.on_book("train", on_server.write_cases(shell.folder / "history.jsonl", train))
    today = on_server.write_cases(shell.folder / "today.jsonl", test)
    decisions = shell.on_book("decide", today, "--json").lines
    wrong = sum(
        (decision["verdict"] == "DECLINE") != case.is_fraud for decision, case in zip(decisions, test, strict=True)
    )
    assert wrong > 0
    server = loopback()
    options = ("--reflector-model", "openai:gpt-4o-mini", "--base-url", server.base_url)
    told = shell.on_book("learn", today, *options, "--json").json
    assert told["proposals"]["asked"] == len(server.log) > 0


def test_what_a_mapping_calls_sensitive_is_not_on_the_wire(shell: Shell, loopback: Loopback) -> None:
    """Also where the playbook was trained before the mapping said so, and in the bullets that are embedded."""
    rows = ["id,amount,segment,label"] + [
        f"t{n},{n * 7 % 900},{'zircon' if n % 3 else 'quartz'},{int(n % 3 == 0 and n % 7 > 0)}" for n in range(200)
    ]
    (shell.folder / "history.csv").write_text("\n".join(rows))
    (shell.folder / "today.csv").write_text("\n".join(row.rpartition(",")[0] for row in rows[:4]))
    (shell.folder / "mapping.toml").write_text(
        'id = "id"\nlabel = "label"\namount = "amount"\nsensitive = ["segment"]\n'
    )
    shell.on_book("train", shell.folder / "history.csv")
    shell.on_book("playbook", "add", "Be careful with large amounts", "--as-note", "--who", "ana")
    with shell.open() as book:
        assert any(
            "quartz" in bullet.content or "zircon" in bullet.content for bullet in book.snapshot().bullets.values()
        )
    server = loopback()
    shell.on_book(
        "decide", shell.folder / "today.csv", "--mapping", shell.folder / "mapping.toml",
        "--models", "openai", "--base-url", server.base_url,
    )  # fmt: skip
    assert {call.role for call in server.log} == {"agent", "embedding"}
    for call in server.log:
        assert b"quartz" not in call.body, call.body
        assert b"zircon" not in call.body, call.body
