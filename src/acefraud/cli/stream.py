"""Standard input answered line by line: one answer for each line, in order, once what it says is recorded."""

from __future__ import annotations

import json as jsonlib
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import typer

from acefraud.cli.console import note
from acefraud.cli.intake import LONGEST, Intake, Line, standard_input
from acefraud.errors import AcefraudError, BudgetExceeded, ConfigurationError, InputError, ModelError

NAME = "standard input"
BAD_LINES = 1
"""Exit code if a line could not be read or answered."""

BatchOption = Annotated[
    int,
    typer.Option(
        "--batch-ms", min=0, help="With -: wait up to this long to take lines together. More throughput, later answers."
    ),
]

T = TypeVar("T")
Answer = str | AcefraudError
"""The answer to a line, or why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """How the lines of a stream are taken and answered."""

    json: bool
    strict: bool
    batch_ms: int


class Stream(Generic[T]):
    """The lines of standard input, and what a command does with them."""

    def __init__(
        self,
        read: Callable[[str, int], T],
        record: Callable[[Sequence[T]], Awaitable[Sequence[Answer]]],
        most: int,
        how: StreamOptions,
    ) -> None:
        """`read` gets a line and its number. `record` gets at most `most` of what it returned; all or none is recorded.

        A strict stream takes one line at a time, so that nothing after a bad one is recorded.
        """
        self._call_read = read
        self._call_record = record
        self._most = 1 if how.strict else most
        self._how = how
        self.answered = 0
        self.bad = 0

    async def answer(self) -> None:
        """Answer every line, or as long as somebody reads the answers, and say how many on standard error."""
        try:
            with Intake(standard_input()) as intake:
                while lines := await intake.take(self._most, self._how.batch_ms / 1000):
                    await self._answer(lines)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to write has no reader
        finally:
            note(f"{self.answered:,} lines answered" + (f", {self.bad:,} of them with an error" if self.bad else ""))

    def exit_if_bad(self) -> None:
        """End with a code of its own if there were bad lines."""
        if self.bad:
            raise typer.Exit(BAD_LINES)

    async def _answer(self, lines: Sequence[Line]) -> None:
        read = [self._read(line) for line in lines]
        sound = [one for one in read if not isinstance(one, AcefraudError)]
        try:
            recorded = iter(await self._record(sound))
        except BudgetExceeded as failure:
            raise BudgetExceeded(f"{failure}; not answered: line {lines[0].number:,} and all after it") from failure
        answers = [one if isinstance(one, AcefraudError) else next(recorded) for one in read]
        pairs = list(zip(lines, answers, strict=True))
        sys.stdout.write("".join(self._in_words(line, answer) + "\n" for line, answer in pairs))
        sys.stdout.flush()
        self.answered += len(lines)
        bad = [(line, answer) for line, answer in pairs if isinstance(answer, AcefraudError)]
        self.bad += len(bad)
        if self._how.strict and bad:
            line, problem = bad[0]
            raise InputError(_message(problem), file=NAME, row=line.number) from problem

    def _read(self, line: Line) -> T | AcefraudError:
        try:
            return self._call_read(text_of(line), line.number)
        except (InputError, ConfigurationError) as problem:
            return problem

    async def _record(self, things: Sequence[T]) -> Sequence[Answer]:
        """An answer for each. If they cannot be recorded together, each is tried alone."""
        if not things:
            return []
        try:
            return await self._call_record(things)
        except (InputError, ModelError) as problem:
            if len(things) == 1:
                return [problem]
        return [answer for one in things for answer in await self._record([one])]

    def _in_words(self, line: Line, answer: Answer) -> str:
        if isinstance(answer, str):
            return answer
        if self._how.json:
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
