"""Who is at work: a thread, and the task in it. Work that a blocked caller handed to a thread is done in its name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import get_ident
from typing import Any

Owner = tuple[int, "asyncio.Task[Any] | None"]
"""A thread, and the task that runs in it if there is an event loop."""


@dataclass(frozen=True, slots=True)
class _Caller:
    """Somebody who waits in a blocked event loop until another thread is done."""

    owner: Owner
    loop: asyncio.AbstractEventLoop


_blocked: ContextVar[tuple[_Caller, ...]] = ContextVar("acefraud_blocked_callers", default=())


def current_owner() -> Owner:
    """The thread and task that is running, or the blocked one in whose name it runs."""
    if callers := _blocked.get():
        return callers[0].owner
    try:
        return get_ident(), asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return get_ident(), None


@contextmanager
def blocking(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Within it, whoever gets a copy of the context acts for the caller, whose event loop is blocked meanwhile."""
    before = _blocked.set((*_blocked.get(), _Caller(current_owner(), loop)))
    try:
        yield
    finally:
        _blocked.reset(before)


def blocked_loops() -> list[asyncio.AbstractEventLoop]:
    """The event loops that cannot run before this work is done."""
    return [caller.loop for caller in _blocked.get()]
