"""Lines of standard input as they arrive, read by a thread into a bounded queue."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from threading import Condition, Thread
from typing import Protocol, Self

from acefraud.errors import InputError

MOST_LINES = 512
"""Lines that wait at most."""
MOST_BYTES = 8_000_000
"""Bytes that wait at most; one line may always wait."""
LONGEST = 2_000_000
"""The longest line in bytes: room for the longest text, escaped. The rest of a longer one is dropped as it is read."""
_CHUNK = 65_536


class ByteSource(Protocol):
    """Where bytes come from: at most so many at once, as soon as there are any, and none at the end."""

    def read(self, size: int, /) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is not blank, and its number in the stream."""

    number: int
    content: bytes
    cut: bool = False
    """True if it was too long and only its beginning is here."""


class Intake:
    """The lines of a stream. When the queue is full, nothing more is read, so the writer has to wait.

    Use it as a context manager within a running event loop.
    """

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._queue: deque[Line] = deque()
        self._bytes = 0
        self._room = Condition()
        self._arrived = asyncio.Event()
        self._ended = self._closed = False
        self._problem: OSError | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        # A thread that waits for input cannot be ended, so the process must not wait for it.
        Thread(target=self._fill, name="intake", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._room:
            self._closed = True
            self._room.notify()

    @property
    def waiting(self) -> int:
        """How many lines wait to be taken."""
        return len(self._queue)

    async def take(self, most: int, patience: float = 0.0) -> list[Line]:
        """The lines that wait, once there is one; none at the end. Waits up to `patience` seconds for more."""
        await asyncio.sleep(0)  # lets an interrupt in, even if lines never stop
        while not self._queue and not self._ended:
            await self._next()
        if patience:
            try:
                async with asyncio.timeout(patience):
                    while len(self._queue) < most and not self._ended:
                        await self._next()
            except TimeoutError:
                pass
        with self._room:
            taken = [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
            self._bytes -= sum(len(line.content) for line in taken)
            self._room.notify()
        if not taken and self._problem is not None:
            raise self._problem
        return taken

    async def _next(self) -> None:
        """Wait until something arrives. It is announced on the event loop, so never between these two calls."""
        self._arrived.clear()
        await self._arrived.wait()

    def _fill(self) -> None:
        try:
            for line in split_lines(self._source):
                with self._room:
                    while not (self._closed or self._has_room(line)):
                        self._room.wait()
                    if self._closed:
                        return
                    self._queue.append(line)
                    self._bytes += len(line.content)
                    self._loop.call_soon_threadsafe(self._arrived.set)
        except OSError as problem:
            self._problem = problem
        finally:
            with self._room:
                self._ended = True
                if not self._closed:
                    self._loop.call_soon_threadsafe(self._arrived.set)

    def _has_room(self, line: Line) -> bool:
        return not self._queue or (len(self._queue) < MOST_LINES and self._bytes + len(line.content) <= MOST_BYTES)


def split_lines(source: ByteSource) -> Iterator[Line]:
    r"""The lines of a source as they arrive, without blank ones.

    >>> from io import BytesIO
    >>> [(line.number, line.content) for line in split_lines(BytesIO(b"a\n \nb"))]
    [(1, b'a'), (3, b'b')]
    """
    number, held, cut = 1, bytearray(), False
    while chunk := source.read(_CHUNK):
        for piece in BytesIO(chunk):
            cut = cut or len(held) + len(piece) > LONGEST
            held += piece[: LONGEST - len(held)]
            if not piece.endswith(b"\n"):
                break
            if held.strip():
                yield Line(number, bytes(held).strip(), cut)
            number, held, cut = number + 1, bytearray(), False
    if held.strip():
        yield Line(number, bytes(held).strip(), cut)


def standard_input() -> ByteSource:
    """Standard input without its buffer: a thread that waits in that would hold its lock when the process ends."""
    if sys.stdin is None:
        raise InputError("it is closed", file="standard input")
    buffer: ByteSource = sys.stdin.buffer
    raw: ByteSource = getattr(buffer, "raw", buffer)
    return raw
