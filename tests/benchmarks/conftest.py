"""Benchmarks run in this process, in a folder of their own."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks import console
from benchmarks.__main__ import main


@dataclass(frozen=True)
class Ran:
    """What a benchmark printed."""

    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one value it printed."""
        return json.loads(self.out)


class Bench:
    """A folder with benchmarks to run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str | Path, code: int = 0) -> Ran:
        """Run a benchmark as from the shell, which ends with this exit code."""
        with CliRunner().isolation() as streams, pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["benchmarks", *map(str, arguments)])
            try:
                main()
            except SystemExit as left:
                exit_code = int(left.code or 0)
            else:
                exit_code = 0
            sys.stdout.flush()
            sys.stderr.flush()
            ran = Ran(streams[0].getvalue().decode(), streams[1].getvalue().decode())
        assert exit_code == code, f"exit code {exit_code}, expected {code}\n{ran.out}\n{ran.err}"
        return ran


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACEFRAUD_DATA", raising=False)
    monkeypatch.setattr(console.out, "width", 200)
    return Bench(tmp_path)
