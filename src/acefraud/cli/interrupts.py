"""Ctrl-C stops a command at once, and the command says what is kept."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import current_thread, main_thread

import typer

from acefraud.cli.console import note

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


@contextmanager
def stoppable(kept: Callable[[], str]) -> Iterator[None]:
    """Stop at once on Ctrl-C, say on standard error what is kept, and end with a code of its own.

    An event loop takes over the default handler, and cancels its task when that next waits. A computation does not wait
    until its end, so the signal gets a handler of ours here, which event loops leave alone.
    """
    before = signal.getsignal(signal.SIGINT)
    takes_over = before is signal.default_int_handler and current_thread() is main_thread()
    if takes_over:
        signal.signal(signal.SIGINT, partial(signal.default_int_handler))
    try:
        yield
    except KeyboardInterrupt:
        note(f"stopped; {kept()}")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        if takes_over:
            signal.signal(signal.SIGINT, before)


def nothing_written() -> str:
    """What a command keeps that only reads."""
    return "nothing was written"
