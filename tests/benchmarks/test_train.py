"""`python -m benchmarks train`: what is run, and what is made of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from acefraud.errors import ConfigurationError
from benchmarks import train

pytestmark = pytest.mark.wide

FITTED = {"rows": 800, "frauds": 90, "facts": 3, "load_seconds": 1.0, "fit_seconds": 2.0, "size": 9300}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that were run, none of them for real."""
    commands: list[list[str]] = []

    def apart(command: list[str]) -> tuple[dict[str, float], dict[str, Any]]:
        commands.append(command)
        theirs = "benchmarks.train" in command
        return {"seconds": 8.0, "memory": 500.0}, dict(FITTED) if theirs else {"bullets": 12}

    monkeypatch.setattr(train, "apart", apart)
    monkeypatch.setattr(train, "needed", lambda _: None)
    return commands


def test_the_command_of_users_is_held_against_a_fit(bench: Any, ran: list[list[str]]) -> None:
    got = bench("train", "cards.csv", "--mapping", "cards.toml", "--json").json
    ours, theirs = ran
    assert Path(ours[0]).name == "acefraud"
    assert ours[1:5] == ["train", "cards.csv", "--mapping", "cards.toml"]
    assert theirs[:6] == [sys.executable, "-m", "benchmarks.train", "cards.csv", "--mapping", "cards.toml"]
    assert got["ratios"] == {"train_to_lightgbm_fit": 4.0, "memory": 1.0}
    assert got["models"]["acefraud"] == {"seconds": 8.0, "memory": 500.0, "size": 12}
    assert got["models"]["lightgbm"]["fit_seconds"] == 2.0
    assert got["about"]["rows"] == 800


@pytest.mark.usefixtures("ran")
def test_the_table_has_the_ratio_and_both_peaks(bench: Any) -> None:
    said = bench("train", "cards.csv").out
    assert "800 rows, 90 frauds, 3 facts" in said
    assert "12 bullets" in said
    assert "4.00" in said


def test_a_process_of_its_own_tells_its_memory_and_what_it_printed() -> None:
    took, printed = train.apart([sys.executable, "-c", "a = bytearray(400_000_000); print('{\"a\": 1}')"])
    assert printed == {"a": 1}
    assert took["memory"] > 400
    assert took["seconds"] > 0


def test_a_process_that_fails_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="ended with exit code 3"):
        train.apart([sys.executable, "-c", "raise SystemExit(3)"])


@pytest.mark.long
def test_a_small_file_for_real(bench: Any) -> None:
    rows = ["id,time,amount,vpn,label"]
    rows += [
        f"r{n},2024-01-01T{n // 60:02d}:{n % 60:02d}:00Z,{n * 37 % 300},{n % 2},{int(n % 9 == 0)}" for n in range(600)
    ]
    (bench.folder / "small.csv").write_text("\n".join(rows) + "\n")
    got = bench("train", "small.csv", "--json").json
    assert got["about"]["rows"] == 600
    assert all(model["memory"] > 0 for model in got["models"].values())
