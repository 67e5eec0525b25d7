"""The notebook runs from top to bottom, and says what the code does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

DOCS = Path(__file__).parent.parent / "docs"
NOTEBOOK = DOCS / "notebook.ipynb"
FIGURES = """
import json
print(json.dumps({
    "rules": len(model.rules_),
    "apart": float(np.abs(reasons.groupby("row")["contribution"].sum() - model_log_odds).max()),
    "apart_in_sql": float(apart),
    "average_precision": compared["average precision"].to_dict(),
    "travel": [str(playbook[travel].status), playbook[travel].weight],
    "weakest": str(playbook[weakest].status),
    "verdict": str(decision.verdict),
    "heard": len(heard),
    "reviewed": review is not None,
    "left_behind": os.listdir(),
}))
"""
"""A last cell that gives back the key figures."""


def run(notebook: Any, folder: Path) -> subprocess.CompletedProcess[str]:
    """What `make notebook` runs, on a copy. In a process of its own, because Jupyter leaves sockets open."""
    nbformat.write(notebook, folder / "copy.ipynb")  # type: ignore[no-untyped-call]
    command = [sys.executable, str(DOCS / "execute_notebook.py"), str(folder / "copy.ipynb")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def executed(notebook: Any, folder: Path) -> Any:
    done = run(notebook, folder)
    assert done.returncode == 0, done.stderr
    return nbformat.read(folder / "copy.ipynb", as_version=4)  # type: ignore[no-untyped-call]


def stored() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def of_code(*sources: str) -> Any:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]  # type: ignore[no-untyped-call]
    return nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]


def kinds(cell: Any) -> list[str]:
    """What a cell shows: `stdout`, `text/html`, `image/png` and so on."""
    return [kind for output in cell.outputs for kind in ([output.name] if "name" in output else sorted(output.data))]


@pytest.mark.wide
def test_a_notebook_runs_on_this_python_in_a_folder_of_its_own(tmp_path: Path) -> None:
    notebook = of_code("import os, sys\nopen('new-file', 'w').close()\nprint(sys.executable)\nprint(os.getcwd())")
    interpreter, folder = executed(notebook, tmp_path).cells[0].outputs[0].text.splitlines()
    assert interpreter == sys.executable
    assert not Path("new-file").exists()
    assert not Path(folder).exists(), "it is gone afterwards"


@pytest.mark.wide
def test_a_cell_that_fails_stops_the_run_and_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    done = run(of_code("print('before')", "1 / 0", "print('after')"), tmp_path)
    assert done.returncode != 0
    assert "division by zero" in done.stderr
    assert "outputs" in (tmp_path / "copy.ipynb").read_text("utf-8")
    assert '"text"' not in (tmp_path / "copy.ipynb").read_text("utf-8")


def test_the_notebook_in_the_repository_is_small_whole_and_without_what_changes_between_runs() -> None:
    notebook = stored()
    assert NOTEBOOK.stat().st_size < 500_000
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "run `make notebook`"
    assert all(cell.metadata == {} for cell in notebook.cells)
    assert notebook.metadata.language_info == {"name": "python"}
    text = re.sub(r'"image/png": "[^"]*"', "", json.dumps([cell.outputs for cell in cells]))
    assert " at 0x" not in text
    assert "/tmp" not in text
    assert "4111111111111111" not in text


@pytest.mark.long
def test_the_notebook_runs_and_its_figures_are_sane(tmp_path: Path) -> None:
    notebook = stored()
    notebook.cells.extend(of_code(FIGURES).cells)
    *cells, figures_cell = code_cells(executed(notebook, tmp_path))
    assert [kinds(cell) for cell in cells] == [kinds(cell) for cell in code_cells(stored())], "run `make notebook`"
    assert not [cell.source for cell in cells if "stderr" in kinds(cell)], "nobody is warned"

    figures = json.loads(figures_cell.outputs[0].text)
    assert 10 <= figures["rules"] <= 40
    assert figures["apart"] < 1e-9
    assert figures["apart_in_sql"] < 1e-9
    ours, columns, facts = figures["average_precision"].values()
    assert ours > columns + 0.1
    assert abs(ours - facts) < 0.06, "the text says that they are too close to call"
    status, weight = figures["travel"]
    assert status == "pinned"
    assert weight > 1
    assert figures["weakest"] == "retired"
    assert figures["verdict"] == "DECLINE"
    assert figures["heard"] > 4_000
    assert figures["reviewed"]
    assert not [name for name in figures["left_behind"] if name.endswith(".db")]
