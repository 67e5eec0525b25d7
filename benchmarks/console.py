"""What all benchmarks print with: lines, notes, tables, progress, JSON and files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from acefraud import Dataset
from acefraud.errors import StoreError

BAD_ROWS_SHOWN = 5

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

# What is printed are other people's words: a bracket in them is a bracket, and ":100:" is no picture.
out = Console(markup=False, emoji=False)
err = Console(stderr=True, markup=False, emoji=False)


def line(text: str, style: str | None = None) -> None:
    """One line of plain text on standard output, never wrapped or marked up."""
    out.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """One line on standard error."""
    err.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)


def note_bad_rows(data: Dataset) -> None:
    """Say on standard error which rows were left out and why."""
    for bad in data.bad_rows[:BAD_ROWS_SHOWN]:
        note(f"left out: {bad}")
    if len(data.bad_rows) > BAD_ROWS_SHOWN:
        note(f"... {len(data.bad_rows):,} rows in all could not be read")
    if data.unlabelled:
        note(f"{data.unlabelled:,} rows have no label yet and were passed over")


def print_json(content: Any) -> None:
    """One JSON value on one line of standard output."""
    sys.stdout.write(json.dumps(content, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def json_file(content: Any) -> bytes:
    """A JSON value as the content of a file."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files by their names into a folder, which is made where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
    except OSError as problem:
        raise StoreError(f"cannot write to {folder}: {problem.strerror or problem}") from problem


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on standard error, where that is a terminal. It is called with the share that is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done: bar.update(task, completed=done)


def names_in(text: str | None) -> Sequence[str] | None:
    """Names as they are written in an option, separated by commas; None where the option is not given."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
