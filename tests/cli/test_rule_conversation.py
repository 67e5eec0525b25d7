"""Writing a rule in a terminal, which asks where something is open; and a model that rewords what cannot be read."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.llm.conftest import loopback as loopback  # noqa: PLC0414  # a fixture

if TYPE_CHECKING:
    from tests.cli.conftest import Shell
    from tests.llm.conftest import Loopback

COMMAND = [sys.executable, "-c", "from acefraud.cli import main; main()", "playbook", "add"]


def in_terminal(shell: Shell, *arguments: str, answers: str) -> tuple[int, str, Any]:
    """The exit code of `playbook add` in a terminal where somebody types, what it asked, and its result."""
    terminal, its_end = pty.openpty()
    os.write(terminal, answers.encode())
    command = [*COMMAND, *arguments, "--json", "--playbook", str(shell.book)]
    ran = subprocess.run(command, stdin=its_end, stdout=subprocess.PIPE, stderr=its_end, timeout=120, check=False)
    os.close(its_end)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # nobody is at the other end any more
            break
        if not part:
            break
        shown += part
    os.close(terminal)
    return ran.returncode, shown.decode(), json.loads(ran.stdout) if ran.stdout.strip() else None


def test_one_of_the_rules_that_can_be_said_is_chosen_by_its_number(trained: Shell) -> None:
    code, shown, added = in_terminal(trained, "amount over 900 and a purple card: decline", answers="1\n")
    assert code == 0, shown
    assert "not read: 'purple card'" in shown
    assert "1. amount above 900: decline (without 'purple card'); fires on" in shown
    assert (added["condition"], added["policy"]) == ("amount > 900", None)


def test_without_a_rule_it_asks_for_one_and_reads_along(trained: Shell) -> None:
    answers = "a purple card\namount over 950: decline\n"
    code, shown, added = in_terminal(trained, answers=answers)
    assert code == 0, shown
    assert shown.index("The rule") < shown.index("Not read as a rule") < shown.index("Read as: amount above 950")
    assert added["condition"] == "amount > 950"


def test_nothing_is_stored_if_nothing_is_answered(trained: Shell) -> None:
    state = trained.state()
    code, shown, added = in_terminal(trained, "a purple card", answers="\n")
    assert (code, added) == (1, None)
    assert "nothing was stored" in shown
    assert trained.state() == state


@pytest.mark.parametrize(("answer", "policy"), [("\n", "DECLINE"), ("p\n", "DECLINE"), ("e\n", None)])
def test_an_order_is_asked_about(trained: Shell, answer: str, policy: str | None) -> None:
    code, shown, added = in_terminal(trained, "Block amounts over 960", answers=answer)
    assert code == 0, shown
    assert "As a policy that always says decline, or as evidence?" in shown
    assert (added["policy"] and added["policy"]["verdict"]) == policy


def test_yes_asks_nothing_and_says_what_was_taken(trained: Shell) -> None:
    code, shown, added = in_terminal(trained, "Block amounts over 970", "--yes", answers="")
    assert (code, shown) == (0, "")
    assert added["policy"]["verdict"] == "DECLINE"
    assert any(remark.startswith("Taken as a policy") for remark in added["remarks"])


def test_without_a_terminal_nothing_is_asked(trained: Shell) -> None:
    assert "expected a rule" in trained.on_book("playbook", "add", code=2).err
    assert (
        trained.on_book("playbook", "add", "Block amounts over 980", "--as-evidence", "--json").json["policy"] is None
    )
    refused = trained.on_book("playbook", "add", "amount over 900 and a purple card: decline", code=2).err
    assert "You can say, for instance:\n  1. amount above 900: decline" in refused


def test_a_model_is_asked_only_if_one_is_chosen(trained: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-that-lies-around")
    refused = trained.on_book("playbook", "add", "a purple card", "--reader-model", code=2)
    assert "none is chosen" in refused.err


@pytest.mark.enable_socket
def test_what_a_model_says_counts_as_it_is_read(
    trained: Shell, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    wordings = ["amount above 990 and a VPN: decline", "vpn is purple: decline"]
    server = loopback(answer=lambda _, __: json.dumps({"rules": wordings}))
    chosen = ("--reader-model", "--reflector-model", "openai:mine", "--base-url", server.base_url)
    code, shown, added = in_terminal(trained, "a purple card above 990: block", *chosen, answers="1\n")
    assert code == 0, shown
    assert "1. amount above 990 and a VPN or proxy: decline; fires on" in shown
    assert "vpn is purple" not in shown
    assert added["condition"] == "amount > 990 and vpn is true"
    refused = trained.on_book("playbook", "add", "a purple card above 991: block", *chosen, code=2)
    assert "1. amount above 990 and a VPN or proxy: decline" in refused.err
