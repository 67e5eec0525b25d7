"""Commands start quickly: a new process imports none of the heavy modules that it does not need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from acefraud.cli import SUMMARIES, app

pytestmark = pytest.mark.wide

NEVER = ["alembic", "lightgbm", "matplotlib", "pandas", "polars", "pydantic_ai", "scipy", "sklearn", "tokenizers"]
"""Modules that deciding a text does not need."""
DECIDE = [*NEVER, "acefraud.evaluation", "wordllama"]
NOTHING = [*DECIDE, "acefraud.core", "acefraud.learning", "numpy", "pydantic", "sqlalchemy"]
TEXT = "Gift cards for $900 through a VPN, account opened 2 days ago"
RUN = """
import json, sys
modules, arguments = json.loads(sys.argv[1]), sys.argv[2:]
if arguments:
    from acefraud.cli import main
    sys.argv = ["acefraud", *arguments]
    try:
        main()
    except SystemExit as left:
        assert not left.code, left.code
else:
    import acefraud
print("imported", [name for name in modules if name in sys.modules], file=sys.stderr)
"""


def imported(folder: Path, unwanted: list[str], *arguments: str) -> str:
    """The last line of a new process: which of the unwanted modules it imported."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(unwanted), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return ran.stderr.splitlines()[-1]


@pytest.mark.parametrize("arguments", [[], ["--version"], ["--help"]], ids=["import", "version", "help"])
def test_the_package_its_version_and_its_help_import_almost_nothing(tmp_path: Path, arguments: list[str]) -> None:
    assert imported(tmp_path, NOTHING, *arguments) == "imported []"


def test_deciding_a_text_imports_only_what_it_needs(tmp_path: Path) -> None:
    assert imported(tmp_path, DECIDE, "decide", TEXT) == "imported []"


def test_python_m_acefraud_is_the_command(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "acefraud", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.stdout.startswith("acefraud ")


def test_python_m_acefraud_calls_itself_acefraud_in_its_usage(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "acefraud", "decide", "--no-such-option"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("Usage: acefraud decide ")
    assert "__main__" not in ran.stderr


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_list_of_commands_shows_the_first_line_of_each_help(name: str) -> None:
    command = typer.main.get_command(app).commands[name].loaded  # type: ignore[attr-defined]
    assert command.help.splitlines()[0] == SUMMARIES[name]
