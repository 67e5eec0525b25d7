"""The command as a process of its own: exit codes, no tracebacks, and disks that refuse to be written."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

pytestmark = pytest.mark.wide

COMMAND = "from acefraud.cli import main; main()"
SEVERAL = """
import json, resource, sys
from acefraud.cli import main
for limit, arguments in json.loads(sys.argv[1]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    sys.argv = ["acefraud", *arguments]
    try:
        main()
        code = 0
    except SystemExit as left:
        code = left.code
    print("exit code", code, file=sys.stderr)
"""


NO_LIMIT = resource.RLIM_INFINITY


def run(*arguments: str, script: str = COMMAND, prepare: Callable[[], None] | None = None, stdout: Any = None) -> Any:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        stdout=stdout or subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=prepare,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def several(*commands: tuple[int, list[str]], prepare: Callable[[], None] | None = None) -> tuple[list[int], str]:
    """Run commands one after another in one process, each with its largest size of a file; codes and what was said."""
    ran = run(json.dumps(commands), script=SEVERAL, prepare=prepare)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stderr.splitlines()
    return [int(line.split()[-1]) for line in lines if line.startswith("exit code ")], ran.stderr


def test_a_bad_file_has_exit_code_2_and_no_traceback(shell: Any) -> None:
    path = shell.write("x.csv", "id,amount,label\n1,5,perhaps\n")
    ran = run("train", str(path), "--playbook", str(shell.book))
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"acefraud: {path}: no usable rows: 1 bad; the first bad one is row 1, field 'label'")
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""
    assert not shell.book.exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_output_that_cannot_be_written(trained: Any) -> None:
    with open("/dev/full", "w") as full:
        ran = run("playbook", "export", "--playbook", str(trained.book), stdout=full)
    assert ran.returncode == 2
    assert ran.stderr.endswith("acefraud: output: No space left on device\n")


def test_a_full_disk_leaves_the_playbook_as_it_was(trained: Any) -> None:
    """A limit on the size of files makes every longer write fail, as a full disk does."""
    book, new = str(trained.book), trained.folder / "new.db"
    exported = trained.write("book.md", "what was exported before\n")
    with trained.open() as opened, opened.unit_of_work():
        for n in range(30):
            opened.add_bullet(f"{n} " + "long story " * 150)
    state = trained.state()
    codes, said = several(
        (4_096, ["train", "history.csv", "--playbook", book]),
        (40_000, ["decide", "history.csv", "--playbook", book]),
        (40_000, ["playbook", "export", "--playbook", book, "--to", str(exported)]),
        (4_096, ["learn", "history.csv", "--playbook", book]),
        (4_096, ["train", "history.csv", "--playbook", str(new)]),
    )
    assert codes == [2] * 5
    assert "Traceback" not in said
    assert said.count(f"acefraud: playbook {book}: ") == 3
    for line in (f"acefraud: {exported}: cannot be written", f"acefraud: playbook {new}: "):
        assert line in said
    assert trained.state() == state
    with closing(sqlite3.connect(book)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert exported.read_text() == "what was exported before\n"
    assert not list(trained.folder.glob(".book.md*"))
    trained("train", "history.csv", "--playbook", new)  # with room again, what was begun is completed


def powerless() -> None:
    """Take from root what lets it pass over permissions; for others this fails, and they never had it."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


def test_a_read_only_playbook(trained: Any) -> None:
    book, state = str(trained.book), trained.state()
    for leftover in trained.folder.glob("book.db-*"):
        leftover.unlink()
    trained.book.chmod(0o444)
    trained.folder.chmod(0o555)
    try:
        if run(book, script="import sys; open(sys.argv[1], 'a')", prepare=powerless).returncode == 0:
            pytest.skip("permissions do not bind here")
        codes, said = several(
            (NO_LIMIT, ["train", "history.csv", "--playbook", book]),
            (NO_LIMIT, ["decide", '{"amount": 5}', "--playbook", book]),
            (NO_LIMIT, ["learn", "history.csv", "--playbook", book]),
            (NO_LIMIT, ["playbook", "add", "VPN: decline", "--playbook", book]),
            prepare=powerless,
        )
    finally:
        trained.folder.chmod(0o755)
        trained.book.chmod(0o644)
    assert codes == [2] * 4
    assert "Traceback" not in said
    assert said.count(f"acefraud: playbook {book}: ") == 4
    assert trained.state() == state
