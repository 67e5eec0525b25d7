"""Lines of a stream: split as they arrive, and never more in memory than the queue holds."""

from __future__ import annotations

import asyncio
import io
import threading

import pytest

from acefraud.cli import stream
from acefraud.cli.stream import MOST_LINES, Intake, split_lines


class Endless:
    """A source of lines without end that counts what was read."""

    def __init__(self, line: bytes = b"line\n") -> None:
        self.line = line
        self.reads = 0

    def read(self, _: int, /) -> bytes:
        self.reads += 1
        return self.line


class OneByOne:
    """A source that gives a part of the content at each read."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts)

    def read(self, _: int, /) -> bytes:
        return self.parts.pop(0) if self.parts else b""


def test_lines_are_split_wherever_the_parts_end() -> None:
    parts = (b"on", b"e\ntwo\n\n\n", b" \nthree\r\nfo", b"u", b"r")
    found = [(line.number, line.content) for line in split_lines(OneByOne(*parts))]
    assert found == [(1, b"one"), (2, b"two"), (6, b"three"), (7, b"four")]


def test_of_a_line_that_is_too_long_only_the_beginning_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "LONGEST", 10)
    found = list(split_lines(OneByOne(b"123456", b"789012345", b"67\nok\n", b"x" * 30)))
    assert [(line.number, len(line.content), line.cut) for line in found] == [
        (1, 10, True),
        (2, 2, False),
        (3, 10, True),
    ]


async def full(queue: Intake, lines: int) -> None:
    while queue.waiting < lines:
        await asyncio.sleep(0.001)


def test_nothing_more_is_read_while_the_queue_is_full() -> None:
    async def run() -> None:
        source = Endless()
        with Intake(source) as queue:
            await full(queue, MOST_LINES)
            assert source.reads <= MOST_LINES + 1, "one line is read and waits for room"
            assert len(await queue.take(100)) == 100
            await full(queue, MOST_LINES)
            assert source.reads <= MOST_LINES + 100 + 1

    asyncio.run(run())


def test_long_lines_fill_the_queue_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST_BYTES", 10_000)

    async def run() -> None:
        source = Endless(b"x" * 4_999 + b"\n")
        with Intake(source) as queue:
            await full(queue, 2)
            assert len(await queue.take(256)) == 2
            assert source.reads <= 4

    asyncio.run(run())


def test_what_waits_is_taken_together_up_to_the_limit() -> None:
    async def run() -> list[int]:
        with Intake(io.BytesIO(b"a\n" * 300)) as queue:
            await full(queue, 300)
            return [len(await queue.take(256)) for _ in range(3)]

    assert asyncio.run(run()) == [256, 44, 0]


def test_with_patience_lines_are_gathered_until_the_limit_or_the_end() -> None:
    async def run() -> list[int]:
        with Intake(OneByOne(*[b"a\n"] * 5)) as queue:
            return [len(await queue.take(most, patience=60.0)) for most in (3, 3, 3)]

    assert asyncio.run(run()) == [3, 2, 0]


def test_patience_ends() -> None:
    class Silent:
        def __init__(self) -> None:
            self.more = threading.Event()
            self.parts = [b"a\n"]

        def read(self, _: int, /) -> bytes:
            if not self.parts:
                self.more.wait()
                return b""
            return self.parts.pop()

    async def run() -> None:
        source = Silent()
        with Intake(source) as queue:
            assert [line.content for line in await queue.take(5, patience=0.01)] == [b"a"]
            source.more.set()
            assert await queue.take(5) == []

    asyncio.run(run())


def test_a_source_that_fails_is_told_after_what_came_before() -> None:
    class Broken(OneByOne):
        def read(self, _: int, /) -> bytes:
            if not self.parts:
                raise OSError(5, "Input/output error")
            return super().read(_)

    async def run() -> None:
        with Intake(Broken(b"a\n")) as queue:
            assert len(await queue.take(5)) == 1
            with pytest.raises(OSError, match="Input/output error"):
                await queue.take(5)

    asyncio.run(run())
