"""Who may import whom is checked by import-linter; here, that it would notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.wide
ROOT = Path(__file__).parent.parent
LINT = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
BENCHMARKS = "Benchmarks measure what users run"
EVALUATION = "The evaluation and the estimators use the public names"
LAYERS = "Imports point inward"


def broken(root: Path) -> set[str]:
    """The first words of the contracts that do not hold in a checkout."""
    ran = subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache", "--no-logo"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    kept = {name for name in (LAYERS, BENCHMARKS, EVALUATION) for line in ran.stdout.splitlines() if _kept(line, name)}
    assert (ran.returncode == 0) == (len(kept) == 3), ran.stdout + ran.stderr
    assert "Contracts: " in ran.stdout, ran.stdout + ran.stderr
    return {LAYERS, BENCHMARKS, EVALUATION} - kept


def _kept(line: str, name: str) -> bool:
    return line.startswith(name) and line.rstrip().endswith("KEPT")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what import-linter looks at."""
    for name in ("src/acefraud", "benchmarks"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def plant(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as module:
        module.write(f"\n\n{text}\n")


def test_all_contracts_hold_as_it_is() -> None:
    assert broken(ROOT) == set()


def test_a_forbidden_import_is_noticed(checkout: Path) -> None:
    plant(checkout / "benchmarks/quality/samples.py", "from acefraud.core.table import Mask as Private")
    assert broken(checkout) == {BENCHMARKS}
    plant(
        checkout / "src/acefraud/evaluation/metrics.py",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from acefraud.learning.pipeline import Mode",
    )
    assert broken(checkout) == {BENCHMARKS, EVALUATION}


def test_public_names_errors_and_the_evaluation_are_allowed(checkout: Path) -> None:
    allowed = "from acefraud import Learner\nfrom acefraud.errors import InputError\nimport acefraud.evaluation.plots"
    plant(checkout / "benchmarks/quality/samples.py", allowed)
    assert broken(checkout) == set()
