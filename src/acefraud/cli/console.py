"""What every command prints with: results, notes on standard error, a progress bar, and what it says on Ctrl-C."""

from __future__ import annotations

import json as jsonlib
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Exit

from acefraud.errors import InputError

if TYPE_CHECKING:
    from acefraud.datasets import BadRow

BAD_ROWS_SHOWN = 5
INTERRUPTED = 130
"""Exit code after Ctrl-C."""

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


Part = str | tuple[str, str] | Table | Text
"""Something that people see: a line, one with a style as a pair, a table, or a text that is wrapped."""
Shown = str | Iterable[Part]
"""What people see: a text, or its parts."""
Said = tuple[Any, Shown] | tuple[Any, Shown, int]
"""What a command says: to scripts, which get it as JSON, and to people; and its exit code, if it is not 0."""


def print_result(content: Any, shown: Shown, code: int = 0, *, json: bool) -> None:
    """Print a result, as JSON for scripts or what people see, and end with an exit code that is not 0."""
    if json:
        print_json(content)
    else:
        for part in [shown] if isinstance(shown, str) else shown:
            if isinstance(part, Table | Text):
                out.print(part)
            else:
                line(*((part,) if isinstance(part, str) else part))
    if code:
        raise Exit(code)


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


def write_text(text: str, to: Path) -> None:
    """Write a file, all of it or nothing. Raises InputError if it cannot be written."""
    part = to.with_name(f".{to.name}.part")  # so that the file itself is never half-written
    try:
        part.write_text(text, "utf-8")
        part.replace(to)
    except OSError as problem:
        part.unlink(missing_ok=True)
        raise InputError(f"cannot be written: {problem.strerror}", file=str(to)) from None


class Show(Protocol):
    """Shows the share that is done, and how fast if it is known how many rows that were."""

    def __call__(self, share: float, rows: int = 0, /) -> None: ...


@contextmanager
def progress(what: str, rows: int = 0) -> Iterator[Show]:
    """Show a progress bar if standard error is a terminal. Call the function you get with the share done.

    If it is not called with the rows done, these are the same share of all `rows`.
    """
    if not err.is_terminal:
        yield lambda *_: None
        return
    from rich.progress import Progress, TextColumn  # noqa: PLC0415  # slow to import

    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[speed]}"))
    with Progress(*columns, console=err, transient=True) as bar:
        task, began = bar.add_task(what, total=1.0, speed=""), monotonic()

        def show(share: float, done: int = 0) -> None:
            per_second = (done or share * rows) / max(monotonic() - began, 1e-9)
            bar.update(task, completed=share, speed=f"{per_second:,.0f} rows/s" if per_second else "")

        yield show


@contextmanager
def shown_steps() -> Iterator[Callable[[str, int], Show]]:
    """Progress bars for steps that follow each other. Call the function you get with the name and rows of each step."""
    with ExitStack() as stack:

        def begin(what: str, rows: int) -> Show:
            stack.close()
            return stack.enter_context(progress(what, rows))

        yield begin


@contextmanager
def stoppable(kept: Callable[[], str]) -> Iterator[None]:
    """Stop at once on Ctrl-C, say on standard error what is kept, and end with a code of its own.

    SIGTERM ends it too, so that temporary files are deleted. An event loop takes over the default handler, and cancels
    its task when that next waits. A computation does not wait until its end, so the signal gets a handler of ours here,
    which event loops leave alone.
    """
    before = signal.getsignal(signal.SIGINT)
    takes_over = before is signal.default_int_handler and current_thread() is main_thread()
    if takes_over:
        signal.signal(signal.SIGINT, partial(signal.default_int_handler))
        ended = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    except KeyboardInterrupt:
        note(f"stopped; {kept()}")
        raise Exit(INTERRUPTED) from None
    finally:
        if takes_over:
            signal.signal(signal.SIGINT, before)
            signal.signal(signal.SIGTERM, ended)


def _end(number: int, _: object) -> None:
    sys.exit(128 + number)


def nothing_written() -> str:
    """What a command keeps that only reads."""
    return "nothing was written"
