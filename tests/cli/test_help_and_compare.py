"""Every command teaches how it is used; `compare` sets the three modes side by side."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from acefraud.cli import app

pytestmark = pytest.mark.wide

METRICS = {"accuracy", "fraud_caught", "false_declines", "average_precision"}


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, listed in group.commands.items():
        command = getattr(listed, "loaded", listed)
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_the_commands_are_those_that_were_promised() -> None:
    playbook = [
        "list",
        "show",
        "read",
        "add",
        "edit",
        "approve",
        "pin",
        "preview",
        "snooze",
        "changes",
        "rollback",
        "retire",
        "history",
        "export",
        "import",
    ]
    names = (
        "compare",
        "train",
        "decide",
        "learn",
        "explain",
        "attest",
        "score",
        "judge",
        "backtest",
        "doctor",
        "reread",
        "backup",
        "restore",
        "facts",
        "serve",
    )
    expected: set[tuple[str, ...]] = {(name,) for name in names}
    expected |= {("playbook", name) for name in playbook} | {
        ("ledger", name) for name in ("show", "stats", "archive", "waiting")
    }
    expected |= {("threshold", name) for name in ("show", "preview", "set")}
    expected |= {("feed", name) for name in ("show", "set", "accept", "reset")}
    expected |= {("lists", name) for name in ("create", "add", "remove", "show", "import")}
    expected |= {("keys", name) for name in ("create", "list", "revoke")}
    assert set(COMMANDS) == expected


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_explains_gives_an_example_and_documents_every_option(shell: Any, path: tuple[str, ...]) -> None:
    shown = shell(*path, "--help").out
    assert f"acefraud {' '.join(path)} " in shown.partition("Usage:")[2].partition("\n")[2]  # beyond the usage line
    for parameter in COMMANDS[path].params:
        if parameter.name == "help":
            continue
        assert getattr(parameter, "help", None), f"{parameter.name} is not documented"
        if parameter.param_type_name == "option":
            assert parameter.opts[0] in shown


@pytest.mark.parametrize("arguments", [[], ["playbook"], ["ledger"]])
def test_without_arguments_the_commands_are_listed(shell: Any, arguments: list[str]) -> None:
    shown = shell(*arguments, code=2)
    for path in COMMANDS:
        if list(path[:-1]) == arguments:
            assert path[-1] in shown.out + shown.err


@pytest.mark.parametrize(
    "arguments", [["dekide"], ["train"], ["train", "a.csv", "--nope"], ["compare", "--seeds", "0"], ["learn", "a", "b"]]
)
def test_wrong_usage_has_exit_code_2(shell: Any, arguments: list[str]) -> None:
    assert shell(*arguments, code=2).err


# --- compare -----------------------------------------------------------------------------------------------------


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything stays in this process, where it is fast for few rows."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)


@pytest.mark.usefixtures("one_process")
def test_compare_a_file_with_times(shell: Any) -> None:
    ran = shell("compare", "history.csv", "--seeds", "1", "--json")
    assert 'label = "label"' in ran.err
    result = ran.json
    assert list(result["modes"]) == ["vanilla", "online_only", "offline_online"]
    for figures in (*result["modes"].values(), *result["differences"].values()):
        assert set(figures) >= METRICS
        for metric in METRICS:
            assert set(figures[metric]) == {"mean", "low", "high"}
            assert figures[metric]["low"] <= figures[metric]["mean"] <= figures[metric]["high"]
    assert list(result["differences"]) == [
        "online_only_vs_vanilla",
        "offline_online_vs_vanilla",
        "offline_online_vs_online_only",
    ]
    gap = result["differences"]["offline_online_vs_vanilla"]["accuracy"]["mean"]
    modes = result["modes"]
    means = (modes[mode]["accuracy"]["mean"] for mode in ("offline_online", "vanilla"))
    assert gap == pytest.approx(next(means) - next(means), abs=2e-6)  # figures are rounded to six digits
    assert (result["rows"], result["test_rows"], result["seeds"]) == (80, 24, 1)
    assert modes["vanilla"]["bullets"] == 0
    assert [path.name for path in shell.folder.iterdir()] == ["history.csv"]  # a script asked for no report


@pytest.mark.usefixtures("one_process")
def test_compare_cross_validates_a_small_file_without_times(shell: Any) -> None:
    risky, honest = "Account 2 minutes old, ${} through a VPN", "Account 4 years old, verified, buys a book for ${}"
    rows = [
        {"query": (risky if n % 2 else honest).format(10 + n), "answer": ["APPROVE", "DECLINE"][n % 2]}
        for n in range(60)
    ]
    path = shell.write("ace.json", json.dumps([*rows, rows[0]]))
    ran = shell("compare", path, "--seeds", "1", "--folds", "2", "--json")
    assert ran.json["test_rows"] == 60  # every row is decided once, and the one that repeats another is left out
    assert "1 rows that repeat an earlier one were left out" in ran.err
    assert ran.json["modes"]["offline_online"]["accuracy"]["mean"] > 0.9


@pytest.mark.usefixtures("one_process")
def test_compare_for_people_prints_tables_and_writes_a_report(shell: Any) -> None:
    ran = shell("compare", "history.csv", "--seeds", "1", "--report", "out/report")
    for words in ("vanilla", "online only", "offline + online", "fraud caught", "Paired differences"):
        assert words.lower() in ran.out.lower()
    page = re.search(r"Report: (\S+)", ran.out)
    assert page is not None
    assert "<html" in (shell.folder / page[1]).read_text()


@pytest.mark.parametrize("options", [["--folds", "1"], ["--folds", "80"], ["--seeds", "101"], ["--test-share", "1"]])
def test_compare_with_options_that_cannot_be(shell: Any, options: list[str]) -> None:
    assert shell("compare", "history.csv", "--json", *options, code=2).err


def test_compare_needs_both_kinds_of_label_in_both_parts(shell: Any) -> None:
    rows = "".join(f"2024-01-{n:02d},{n},{int(n < 15)}\n" for n in range(1, 29))
    path = shell.write("late.csv", f"time,amount,label\n{rows}")
    refused = shell("compare", path, "--seeds", "1", "--json", code=2)
    assert "the test part has only one kind of label" in refused.err
    assert "late" in refused.err
