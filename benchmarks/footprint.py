"""`python -m benchmarks footprint`: how much code there is, how much of it one call uses, how soon it starts."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
import tempfile
import time
import tokenize
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any
from urllib.request import Request, urlopen

import typer

import acefraud
from acefraud import Learner, Outcome, load_dataset, open_playbook
from benchmarks.console import JsonOption, line, print_json
from benchmarks.service.servers import HOST, new_key, service
from benchmarks.service.stores import orders
from benchmarks.traced_sql import traced_statements

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
    """Count lines, trace one **decide** and one **hear** through the package, count SQL statements, and time its start.

    python -m benchmarks footprint
    """
    found: dict[str, Any] = {"code": count_code(PACKAGE), **trace_calls(), "start_seconds": time_starts(runs)}
    if json:
        print_json(found)
        return
    line(f"{found['code']['lines']:,} lines of code in {found['code']['files']} files")
    for name in ("decide", "hear"):
        of = found[name]
        calls = f"{of['cross_file_calls']:,} calls from file to file"
        line(
            f"one {name}: {of['files']} files, {of['functions']} functions, {calls}, {of['statements']} SQL statements"
        )
    line(f"one decision over HTTP: {found['http_decision']['statements']} SQL statements")
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
    """The files and SQL statements of one decision of a dict, of one outcome and of one decision over HTTP.

    The playbook is a trained one in a file, and each comes after a first one of its kind.
    """
    with tempfile.TemporaryDirectory(prefix="acefraud-footprint-") as folder:
        file = Path(folder) / "book.db"
        history = load_dataset("complex_fraud_detection")
        statements: list[str] = []
        with traced_statements(statements.append), open_playbook(file) as book:
            learner = Learner(book)
            learner.study(history)
            cases = [(dict(case.transaction.facts, id=case.transaction.id), case.is_fraud) for case in history.test[:2]]
            found = {}
            for transaction, _ in cases:
                found["decide"] = Trace(statements).run(partial(learner.decide_sync, transaction))
            for transaction, is_fraud in cases:
                outcome = Outcome(transaction_id=str(transaction["id"]), is_fraud=is_fraud)
                found["hear"] = Trace(statements).run(partial(learner.hear_sync, outcome))
        found["http_decision"] = {"statements": _over_http(file, Path(folder))}
    return found


def _over_http(playbook: Path, folder: Path) -> int:
    """The SQL statements that the service executes for one decision before it answers."""
    secret, log = new_key(str(playbook)), folder / "statements"
    log.touch()
    # Python imports this module in each process of the service, before anything else.
    (folder / "sitecustomize.py").write_text(
        f"from benchmarks.traced_sql import log_statements as log; log({str(log)!r})"
    )
    environment = {"PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parent.parent)])}
    with service(str(playbook), 1, environment) as port:
        counts = []
        for order in orders(6, "footprint"):
            headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
            before = _lines_in(log)
            with urlopen(Request(f"http://{HOST}:{port}/v1/decisions", order, headers), timeout=30) as answer:
                answer.read()
            counts.append(_lines_in(log) - before)
    return min(counts)  # the others met what the service looks up now and then


def _lines_in(log: Path) -> int:
    return len(log.read_text("utf-8").splitlines())


class Trace:
    """Counts the files and functions of the package that a call enters, the calls between files, and SQL statements."""

    def __init__(self, statements: list[str]) -> None:
        self.files: set[str] = set()
        self.functions: set[object] = set()
        self.calls = 0
        self._statements = statements

    def run(self, call: Callable[[], object]) -> dict[str, int]:
        """Run a call under the trace."""
        before = len(self._statements)
        sys.setprofile(self._event)
        try:
            call()
        finally:
            sys.setprofile(None)
        return {
            "files": len(self.files),
            "functions": len(self.functions),
            "cross_file_calls": self.calls,
            "statements": len(self._statements) - before,
        }

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not _is_ours(frame):
            return
        self.files.add(frame.f_code.co_filename)
        self.functions.add(frame.f_code)
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
