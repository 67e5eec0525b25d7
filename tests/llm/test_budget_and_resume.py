"""No limit is exceeded, by the server's own count; and a run that was killed repeats no answered call."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.cli import conftest as commands
from tests.llm import on_server

from acefraud.core.transaction import Case, Verdict
from acefraud.learning.build_roles import build_roles
from acefraud.learning.model_lessons import ReflectionPolicy
from acefraud.learning.pipeline import TrainingPipeline
from acefraud.storage import BulletPlaybook

if TYPE_CHECKING:
    from tests.cli.conftest import Ran, Shell
    from tests.llm.conftest import Loopback
    from tests.llm.loopback import LoopbackServer

pytestmark = [pytest.mark.wide, pytest.mark.enable_socket]

COMPARE = ("compare", "--limit", "60", "--seeds", "1", "--models", "openai", "--json")
STOPPED_SHORT = 3
KILLED = -9
shell = commands.shell


@pytest.fixture(autouse=True)
def surroundings(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("ACEFRAUD_CACHE", "")
    on_server.without_waits(monkeypatch)


def train(shell: Shell, server: LoopbackServer, rows: int, *options: str, code: int) -> Ran:
    path = on_server.write_cases(shell.folder / "train.jsonl", on_server.cases(rows, 0)[0])
    everybody = ("--models", "openai", "--base-url", server.base_url)
    return shell.on_book("train", path, *everybody, "--json", *options, code=code)


# --- limits ------------------------------------------------------------------------------------------------------


def kept_after_stopping(shell: Shell, ran: Ran) -> int:
    """How many bullets a training that stopped short has left in the playbook."""
    assert "What was learnt until then is kept" in ran.err
    assert ran.json["proposals"]["stopped"]
    with shell.open() as book:
        return len(book.get_bullets_for_node("fraud_detection"))


def test_training_stops_at_a_number_of_calls_and_keeps_what_it_learnt(shell: Shell, loopback: Loopback) -> None:
    server = loopback()
    ran = train(shell, server, 120, "--max-calls", "20", code=STOPPED_SHORT)
    assert len(server.log) == 20
    assert kept_after_stopping(shell, ran) > 0
    assert "the limit of 20 calls is reached" in ran.err


def test_a_limit_reached_while_odds_are_fitted_keeps_what_was_learnt(shell: Shell, loopback: Loopback) -> None:
    server = loopback()
    options = ("--max-calls", "30", "--style", "direct", "--embedding-model", "embedded")
    ran = train(shell, server, 120, *options, code=STOPPED_SHORT)
    assert {call.role for call in server.log} == {"agent", "reflector"}
    assert len(server.log) == 30
    assert ran.json["bullets"] > 0
    assert "the limit of 30 calls is reached" in ran.err


@pytest.mark.long
def test_training_stops_at_a_hundred_calls(shell: Shell, loopback: Loopback) -> None:
    server = loopback()
    ran = train(shell, server, 1000, "--max-calls", "100", code=STOPPED_SHORT)
    print(f"\ntrain --max-calls 100: {len(server.log)} calls in the log")
    assert len(server.log) <= 100
    assert kept_after_stopping(shell, ran) > 0


def test_a_limit_also_counts_calls_that_failed(shell: Shell, loopback: Loopback) -> None:
    server = loopback(misbehave={"http_500": 0.5})
    train(shell, server, 120, "--max-calls", "12", code=STOPPED_SHORT)
    assert len(server.log) == 12


@pytest.mark.parametrize("usd", [0.002, 0.004])
def test_training_never_costs_more_than_was_allowed(usd: float, shell: Shell, loopback: Loopback) -> None:
    server = loopback()
    ran = train(shell, server, 120, "--budget", str(usd), code=STOPPED_SHORT)
    spent = on_server.price(server.log)
    assert 0 < spent <= usd
    assert ran.json["usage"]["total"]["cost"] == pytest.approx(spent, rel=1e-9)
    assert f"the limit of ${usd:g} might be exceeded" in ran.err


def stopped(shell: Shell, server: LoopbackServer, *options: str) -> str:
    ran = shell(*COMPARE, "--base-url", server.base_url, *options, code=2)
    (line,) = (line for line in ran.err.splitlines() if line.startswith("acefraud: "))
    assert ran.out == ""
    return line


@pytest.mark.parametrize("most", [20, pytest.param(100, marks=pytest.mark.long)])
def test_a_comparison_stops_at_a_number_of_calls(most: int, shell: Shell, loopback: Loopback) -> None:
    server = loopback()
    assert f"the limit of {most} calls is reached" in stopped(shell, server, "--max-calls", str(most))
    print(f"\ncompare --max-calls {most}: {len(server.log)} calls in the log")
    assert 0 < len(server.log) <= most


def test_a_comparison_never_costs_more_than_was_allowed(shell: Shell, loopback: Loopback) -> None:
    server = loopback()
    assert "the limit of $0.01 might be exceeded" in stopped(shell, server, "--budget", "0.01")
    assert 0 < on_server.price(server.log) <= 0.01


# --- killed and run again ----------------------------------------------------------------------------------------


class Killing:
    """A server in a process of its own, which kills its client at the n-th call."""

    def __init__(self, folder: Path, kill_at: int = 0, *options: str) -> None:
        self.log = folder / "calls.jsonl"
        self.pid_file = folder / "pid"
        script = Path(__file__).with_name("loopback.py")
        told = ("--log", str(self.log), "--kill-at", str(kill_at), "--kill-pid-file", str(self.pid_file), *options)
        self._process = subprocess.Popen([sys.executable, str(script), *told], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()

    @property
    def calls(self) -> list[dict[str, Any]]:
        """All calls that have ended, of whoever made them."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def __enter__(self) -> Killing:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        with self._process:  # closes its output
            self._process.wait(20)


def compare(server: Killing, cache: Path) -> tuple[int, Any]:
    """Run the comparison in a process that the server can kill; its exit code and what it printed."""
    command = [sys.executable, "-c", "from acefraud.cli import main; main()", *COMPARE]
    options = ("--base-url", server.base_url, "--cache", str(cache))
    with subprocess.Popen(
        [*command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OPENAI_API_KEY": "any", "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    ) as process:
        server.pid_file.write_text(str(process.pid))
        out, _ = process.communicate(timeout=300)
    return process.returncode, json.loads(out) if out else None


def folder_of(shell: Shell, name: str) -> Path:
    path = shell.folder / name
    path.mkdir()
    return path


@pytest.mark.long
def test_a_comparison_that_was_killed_makes_only_the_calls_that_are_missing(shell: Shell) -> None:
    with Killing(folder_of(shell, "whole")) as server:
        code, whole = compare(server, shell.folder / "whole.db")
        uninterrupted = len(server.calls)
    assert code == 0
    with Killing(folder_of(shell, "killed"), 57, "--delay", "0.1") as server:  # so that several are under way
        code, nothing = compare(server, shell.folder / "killed.db")
        assert (code, nothing) == (KILLED, None)
        code, again = compare(server, shell.folder / "killed.db")
        total = len(server.calls)
    assert code == 0
    for told in (whole, again):
        told["models"].pop("usage")
    assert again == whole
    print(f"\nkilled at call 57: {total} calls in both runs, {uninterrupted} in one that was not interrupted")
    concurrency = 8
    assert total <= uninterrupted + concurrency


# --- few calls ---------------------------------------------------------------------------------------------------


async def trained_on(
    server: LoopbackServer, policy: ReflectionPolicy | None, train: list[Case], later: list[Case]
) -> tuple[int, np.ndarray[Any, Any]]:
    """Calls that studying took, and which of the later cases were then decided rightly."""
    roles = build_roles(on_server.chosen(server, concurrency=16))
    try:
        pipeline = TrainingPipeline(agent=roles.agent, proposer=roles.proposer, embedder=roles.embedder, policy=policy)
        learner = pipeline.learner(BulletPlaybook())
        before = len(server.log)
        await learner.train(train)
        calls = len(server.log) - before
        decisions = await learner.decide_all([case.transaction for case in later])
    finally:
        await roles.close()
    right = [
        (decision.verdict is Verdict.DECLINE) == case.is_fraud for decision, case in zip(decisions, later, strict=True)
    ]
    return calls, np.array(right)


def few_calls(server: LoopbackServer, train: int, later: int) -> None:
    before, after = on_server.cases(train, later)
    calls, right = asyncio.run(trained_on(server, None, before, after))
    plain_calls, plain_right = asyncio.run(trained_on(server, ReflectionPolicy.plain(), before, after))
    gaps = right.astype(float) - plain_right
    margin = 1.96 * float(gaps.std(ddof=1)) / later**0.5
    print(
        f"\n{train} examples: {calls / train:.2f} calls each and {right.mean():.3f} right of {later} later cases; "
        f"plain flow {plain_calls / train:.2f} and {plain_right.mean():.3f}; "
        f"difference {gaps.mean():+.3f} ± {margin:.3f}"
    )
    assert calls / train <= 0.5
    assert calls < plain_calls
    assert gaps.mean() + margin >= 0


def test_studying_a_history_takes_few_calls(loopback: Loopback) -> None:
    few_calls(loopback(), 40, 40)


@pytest.mark.long
def test_studying_three_hundred_examples_takes_few_calls_and_loses_nothing(loopback: Loopback) -> None:
    few_calls(loopback(), 300, 300)
