"""What a courier process does: read calls, carry them, file the replies, and say what came of them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from acefraud.errors import AcefraudError, StoreError
from acefraud.llm.answers import AnswerFile
from acefraud.llm.caching import filed, keys_of
from acefraud.llm.calling import Call, Caller
from acefraud.llm.failures import failure_of
from acefraud.llm.provider import ProviderCaller, ProviderOptions

MARGIN_SECONDS = 10.0
"""How much longer than its timeout a call may take before nobody waits for it any more."""


async def carry(calls: BinaryIO, replies: BinaryIO, caller: Caller, answers: AnswerFile, seconds: float = 60.0) -> None:
    """Carry every call that is read, all at once, until there are no more and none is under way."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def read() -> None:
        for line in calls:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    async with asyncio.TaskGroup() as group:
        while (line := await lines.get()) is not None:
            group.create_task(_carry_one(json.loads(line), replies, caller, answers, seconds + MARGIN_SECONDS))


async def _carry_one(
    asked: dict[str, Any], replies: BinaryIO, caller: Caller, answers: AnswerFile, seconds: float
) -> None:
    call = Call.model_validate(asked["call"])
    said: dict[str, Any] = {"number": asked["number"]}
    try:
        answers.begin(keys_of(call), os.getpid(), seconds)
        reply = await caller.send(call)
        answers.put(filed(call, reply))
        said["reply"] = reply.model_dump(mode="json")
    except AcefraudError as failure:
        said["failure"] = failure_of(failure)
    finally:
        with suppress(StoreError):  # it ends by itself when its time is over
            answers.end(keys_of(call))
    with suppress(BrokenPipeError):  # whoever asked is gone; the reply is filed
        replies.write(json.dumps(said).encode() + b"\n")
        replies.flush()


async def main(path: str, timeout: str) -> None:
    """Carry what stands on standard input."""
    answers = AnswerFile(Path(path))
    caller = ProviderCaller(ProviderOptions(timeout=float(timeout)))
    try:
        await carry(sys.stdin.buffer, sys.stdout.buffer, caller, answers, float(timeout))
    finally:
        await caller.close()
        answers.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    os._exit(0)  # nobody may be left to read what Python would still like to flush
