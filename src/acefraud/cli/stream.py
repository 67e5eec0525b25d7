"""Standard input answered line by line: one answer for each line, in order, once what it says is recorded.

A thread reads lines as they arrive into a bounded queue.
"""

from __future__ import annotations

import asyncio
import json as jsonlib
import os
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from threading import Condition, Thread
from typing import Annotated, Any, Generic, Protocol, Self, TypeVar

from typer import Exit, Option

from acefraud.cli.console import note
from acefraud.errors import AcefraudError, BudgetExceeded, ConfigurationError, InputError, ModelError

NAME = "standard input"
BAD_LINES = 1
"""Exit code if a line could not be read or answered."""
MOST_LINES = 512
"""Lines that wait at most."""
MOST_BYTES = 8_000_000
"""Bytes that wait at most; one line may always wait."""
LONGEST = 2_000_000
"""The longest line in bytes: room for the longest text, escaped. The rest of a longer one is dropped as it is read."""
_CHUNK = 65_536

BatchOption = Annotated[
    int, Option(min=0, help="With -: wait up to this long to take lines together. More throughput, later answers.")
]

T = TypeVar("T")
Answer = str | AcefraudError
"""The answer to a line, or why there is none."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """How the lines of a stream are taken and answered."""

    json: bool
    strict: bool
    batch_ms: int


@dataclass(eq=False)
class Stream(Generic[T]):
    """The lines of standard input, and what a command does with them.

    A strict stream takes one line at a time, so that nothing after a bad one is recorded.
    """

    read: Callable[[str, int], T]
    """Gets a line and its number."""
    record: Callable[[Sequence[T]], Awaitable[Sequence[Answer]]]
    """Gets at most so many of what `read` returned; all or none is recorded."""
    most: int
    how: StreamOptions
    answered: int = field(default=0, init=False)
    bad: int = field(default=0, init=False)

    async def answer(self) -> None:
        """Answer every line, or as long as somebody reads the answers, and say how many on standard error."""
        try:
            with Intake(standard_input()) as intake:
                while lines := await intake.take(1 if self.how.strict else self.most, self.how.batch_ms / 1000):
                    await self._answer(lines)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to write has no reader
        finally:
            note(f"{self.answered:,} lines answered" + (f", {self.bad:,} of them with an error" if self.bad else ""))

    def exit_if_bad(self) -> None:
        """End with a code of its own if there were bad lines."""
        if self.bad:
            raise Exit(BAD_LINES)

    async def _answer(self, lines: Sequence[Line]) -> None:
        read = [self._read(line) for line in lines]
        sound = [thing for thing in read if not isinstance(thing, AcefraudError)]
        try:
            recorded = iter(await self._record(sound))
        except BudgetExceeded as failure:
            raise BudgetExceeded(f"{failure}; not answered: line {lines[0].number:,} and all after it") from failure
        answers = [thing if isinstance(thing, AcefraudError) else next(recorded) for thing in read]
        pairs = list(zip(lines, answers, strict=True))
        sys.stdout.write("".join(self._in_words(line, answer) + "\n" for line, answer in pairs))
        sys.stdout.flush()
        self.answered += len(lines)
        bad = [(line, answer) for line, answer in pairs if isinstance(answer, AcefraudError)]
        self.bad += len(bad)
        if self.how.strict and bad:
            line, problem = bad[0]
            raise InputError(_message(problem), file=NAME, row=line.number) from problem

    def _read(self, line: Line) -> T | AcefraudError:
        try:
            return self.read(text_of(line), line.number)
        except (InputError, ConfigurationError) as problem:
            return problem

    async def _record(self, things: Sequence[T]) -> Sequence[Answer]:
        """An answer for each. If they cannot be recorded together, each is tried alone."""
        if not things:
            return []
        try:
            return await self.record(things)
        except (InputError, ModelError) as problem:
            if len(things) == 1:
                return [problem]
        return [answer for thing in things for answer in await self._record([thing])]

    def _in_words(self, line: Line, answer: Answer) -> str:
        if isinstance(answer, str):
            return answer
        if self.how.json:
            return as_line({"line": line.number, "error": _message(answer)})
        return f"line {line.number}: {one_line(_message(answer))}"


def text_of(line: Line) -> str:
    """The text of a line."""
    if line.cut:
        raise InputError(f"expected a line of at most {LONGEST:,} bytes")
    try:
        return line.content.decode("utf-8-sig" if line.number == 1 else "utf-8")
    except UnicodeDecodeError as problem:
        raise InputError(f"not valid UTF-8 at byte {problem.start}") from None


def as_line(content: dict[str, Any]) -> str:
    """A JSON object on one line."""
    return jsonlib.dumps(content, ensure_ascii=False)


def one_line(text: str) -> str:
    """A text without line breaks.

    >>> one_line("two\\nlines")
    'two lines'
    """
    return " ".join(text.split())


def _message(problem: AcefraudError) -> str:
    """What is wrong, without a place that a line of a stream does not have."""
    return str(InputError(problem.message, field=problem.field)) if isinstance(problem, InputError) else str(problem)
