"""Calls carried by a process of their own, which outlives the one that asked.

A call that is under way when a run is killed has been paid for. The courier waits for its reply and files it, so that
the next run finds it there. It ends when nobody is left to ask and nothing is under way.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from acefraud.errors import ModelUnavailable
from acefraud.llm.calling import Call, Reply
from acefraud.llm.failures import failure_from
from acefraud.llm.provider import ProviderOptions

FAREWELL_SECONDS = 5.0
"""How long an ordinary end waits for the courier; what is still under way then is filed without anybody waiting."""


class Courier:
    """Hands calls to a courier process and brings back what it says. The process is started by the first call."""

    def __init__(self, answers: Path, options: ProviderOptions | None = None) -> None:
        self._answers = answers
        self._options = options or ProviderOptions()
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._count = 0

    async def send(self, call: Call) -> Reply:
        """The reply, without its cost. Where the caller is cancelled, the call goes on and its reply is filed."""
        said = await asyncio.wrap_future(await asyncio.to_thread(self._hand_over, call))
        if "reply" in said:
            return Reply.model_validate(said["reply"])
        raise failure_from(said["failure"])

    async def close(self) -> None:
        """Let the process go once nothing is under way. Closing twice is harmless."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(_let_go, process)

    def _hand_over(self, call: Call) -> Future[dict[str, Any]]:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                if self._process is not None:
                    _let_go(self._process)
                self._process = self._start()
            self._count += 1
            number = self._count
            waiting: Future[dict[str, Any]] = Future()
            self._waiting[number] = waiting
            line = json.dumps({"number": number, "call": call.model_dump(mode="json")})
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()
            except OSError:
                if self._waiting.pop(number, None) is not None:
                    waiting.set_exception(ModelUnavailable(f"{call.model}: the courier process ended"))
        return waiting

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "acefraud.llm.carrying", str(self._answers), str(self._options.timeout)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # what interrupts the run is not meant for what it has under way
        )
        self._waiting = {}
        threading.Thread(target=self._listen, args=(process, self._waiting), daemon=True).start()
        return process

    def _listen(self, process: subprocess.Popen[bytes], asked: dict[int, Future[dict[str, Any]]]) -> None:
        """Hand on what one process says, and when it ends, that it will say no more."""
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                said = json.loads(line)
                with self._lock:
                    waiting = asked.pop(said["number"], None)
                if waiting is not None and waiting.set_running_or_notify_cancel():
                    waiting.set_result(said)
        with self._lock:
            left = list(asked.values())
            asked.clear()
        for waiting in left:
            if waiting.set_running_or_notify_cancel():
                waiting.set_exception(ModelUnavailable("the courier process ended before it had a reply"))


def _let_go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with suppress(OSError):  # it may have ended before it read everything
        process.stdin.close()
    try:
        process.wait(FAREWELL_SECONDS)
    except subprocess.TimeoutExpired:
        process.returncode = 0  # it goes on alone, and nobody is to be warned of that
