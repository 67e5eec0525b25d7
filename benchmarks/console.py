"""What every benchmark prints with: lines, notes, progress, JSON and files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from acefraud import Dataset
from acefraud.errors import StoreError

BAD_ROWS_SHOWN = 5

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]

# Printed text may come from data: "[bold]" and ":100:" must stay as they are.
out = Console(markup=False, emoji=False)
err = Console(stderr=True, markup=False, emoji=False)


def line(text: str, style: str | None = None) -> None:
    """Print plain text on standard output, never wrapped or marked up."""
    out.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """Print plain text on standard error."""
    err.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)


def note_bad_rows(data: Dataset) -> None:
    """Say on standard error which rows were skipped and why."""
    for bad in data.bad_rows[:BAD_ROWS_SHOWN]:
        note(f"skipped: {bad}")
    if len(data.bad_rows) > BAD_ROWS_SHOWN:
        note(f"... {len(data.bad_rows):,} rows in all could not be read")
    if data.unlabelled:
        note(f"{data.unlabelled:,} rows have no label yet and were skipped")
    for remark in data.remarks:
        note(remark)


def print_json(content: Any) -> None:
    """Print one JSON value on one line of standard output."""
    sys.stdout.write(json.dumps(content, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def json_file(content: Any) -> bytes:
    """A JSON value as the content of a file."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files by name into a folder, which is created if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
    except OSError as problem:
        raise StoreError(f"cannot write to {folder}: {problem.strerror or problem}") from problem


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], None]]:
    """Show a progress bar if standard error is a terminal. Call the function you get with the share done."""
    with Progress(console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done: bar.update(task, completed=done)


def names_in(text: str | None) -> Sequence[str] | None:
    """The names in an option, separated by commas; None if the option is not given."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
