"""`python -m benchmarks footprint`: how much code there is, how much of it one call uses, how soon it starts."""

from __future__ import annotations

import ast
import asyncio
import io
import subprocess
import sys
import tempfile
import time
import tokenize
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

import acefraud
from acefraud import Learner, Outcome, Transaction, load_dataset, open_playbook
from benchmarks.console import JsonOption, line, print_json

PACKAGE = Path(acefraud.__file__).parent
TEXT = "Gift cards for $900 through a VPN, account opened 2 days ago"
STARTS = {
    "python": ["-c", "pass"],
    "libraries": ["-c", "import numpy, polars, pydantic, sqlalchemy"],
    "import": ["-c", "import acefraud"],
    "version": ["-c", "from acefraud.cli import main; main()", "--version"],
    "decide": ["-c", "from acefraud.cli import main; main()", "decide", TEXT],
}
IGNORED = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def footprint(
    runs: Annotated[int, typer.Option(min=1, help="Starts of each command; the quickest counts.")] = 5,
    json: JsonOption = False,
) -> None:
    """Count lines, trace one **decide** and one **learn** through the package, and time its start.

    python -m benchmarks footprint
    """
    found: dict[str, Any] = {"code": count_code(PACKAGE), **trace_calls(), "start_seconds": time_starts(runs)}
    if json:
        print_json(found)
        return
    line(f"{found['code']['lines']:,} lines of code in {found['code']['files']} files")
    for name in ("decide", "learn"):
        line(f"one {name}: {found[name]['files']} files, {found[name]['cross_file_calls']:,} calls from file to file")
    for name, seconds in found["start_seconds"].items():
        line(f"{name:>10}  {seconds:.2f} s")


def count_code(folder: Path) -> dict[str, int]:
    """The lines of code below a folder, without blank lines, comments and docstrings, and the number of files."""
    files = sorted(folder.rglob("*.py"))
    return {"lines": sum(len(code_lines(file.read_text("utf-8"))) for file in files), "files": len(files)}


def code_lines(source: str) -> set[int]:
    """The numbers of the lines that hold code.

    >>> sorted(code_lines('x = 1  # why\\n\\n"A docstring."\\n# A comment\\ny = 2\\n'))
    [1, 5]
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in IGNORED:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def trace_calls() -> dict[str, dict[str, int]]:
    """The files that one decision and one outcome pass through, on a trained playbook in a file, after a first one."""
    with tempfile.TemporaryDirectory(prefix="acefraud-footprint-") as folder:
        history = load_dataset("complex_fraud_detection")
        with open_playbook(Path(folder) / "book.db") as book:
            learner = Learner(book)
            learner.study(history)
            first, second = history.test[:2]

            def decide(transaction: Transaction) -> Callable[[], Coroutine[Any, Any, Any]]:
                return lambda: learner.decide(transaction)

            def learn(transaction: Transaction, is_fraud: bool) -> Callable[[], Coroutine[Any, Any, Any]]:
                return lambda: learner.hear(Outcome(transaction_id=transaction.id, is_fraud=is_fraud))

            asyncio.run(decide(first.transaction)())
            decided = Trace().run(decide(second.transaction))
            asyncio.run(learn(first.transaction, first.is_fraud)())
            learnt = Trace().run(learn(second.transaction, second.is_fraud))
    return {"decide": decided, "learn": learnt}


class Trace:
    """Counts the files of the package that a call enters, and the calls that lead from one of them into another."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.calls = 0

    def run(self, call: Callable[[], Coroutine[Any, Any, Any]]) -> dict[str, int]:
        """Run a coroutine under the trace."""
        sys.setprofile(self._event)
        try:
            asyncio.run(call())
        finally:
            sys.setprofile(None)
        return {"files": len(self.files), "cross_file_calls": self.calls}

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not _is_ours(frame):
            return
        self.files.add(frame.f_code.co_filename)
        caller = frame.f_back
        if caller is not None and _is_ours(caller) and caller.f_code.co_filename != frame.f_code.co_filename:
            self.calls += 1


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(str(PACKAGE))


def time_starts(runs: int) -> dict[str, float]:
    """The seconds of the quickest of several starts, by turns, each in a new process and an empty folder."""
    least = dict.fromkeys(STARTS, float("inf"))
    with tempfile.TemporaryDirectory(prefix="acefraud-footprint-") as folder:
        for _ in range(runs):
            for name, arguments in STARTS.items():
                began = time.perf_counter()
                subprocess.run([sys.executable, *arguments], cwd=folder, check=True, capture_output=True)
                least[name] = min(least[name], time.perf_counter() - began)
    return least
