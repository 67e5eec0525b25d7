"""What every command prints with: results, JSON, notes on standard error, and a progress bar."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from acefraud.errors import InputError

if TYPE_CHECKING:
    from acefraud.datasets import BadRow

BAD_ROWS_SHOWN = 5

# Printed text may come from data: "[bold]" and ":100:" must stay as they are.
out = Console(markup=False, emoji=False)
err = Console(stderr=True, markup=False, emoji=False)


def line(text: str, style: str | None = None) -> None:
    """Print plain text on standard output, never wrapped or marked up."""
    out.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """Print plain text on standard error."""
    err.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)


def print_json(content: Any) -> None:
    """Print one JSON value on one line of standard output."""
    sys.stdout.write(jsonlib.dumps(content, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def print_result(content: Any, text: str, *, json: bool) -> None:
    """Print a result: the content as JSON for scripts, or the text for people."""
    if json:
        print_json(content)
    else:
        line(text)


def note_bad_rows(bad_rows: Sequence[BadRow], unlabelled: int = 0, remarks: Sequence[str] = ()) -> None:
    """Say on standard error which rows were skipped and why, and what else is worth knowing about the file."""
    for bad in bad_rows[:BAD_ROWS_SHOWN]:
        note(f"skipped: {bad}")
    if len(bad_rows) > BAD_ROWS_SHOWN:
        note(f"... {len(bad_rows):,} rows in all could not be read")
    if unlabelled:
        note(f"{unlabelled:,} rows have no label yet and were skipped")
    for remark in remarks:
        note(remark)


def read_text(source: Path) -> str:
    """The text of a file. Raises InputError if it cannot be read."""
    try:
        return source.read_text("utf-8")
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror}", file=str(source)) from None
    except UnicodeDecodeError as problem:
        raise InputError(f"not valid UTF-8 at byte {problem.start}", file=str(source)) from None


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], None]]:
    """Show a progress bar if standard error is a terminal. Call the function you get with the share done."""
    if not err.is_terminal:
        yield lambda _: None
        return
    from rich.progress import Progress  # noqa: PLC0415  # slow to import

    with Progress(console=err, transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done: bar.update(task, completed=done)
