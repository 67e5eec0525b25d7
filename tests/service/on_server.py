"""A real server: `acefraud serve` in processes of its own, as users start it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ACEFRAUD = [sys.executable, "-c", "from acefraud.cli import main; main()"]


@dataclass
class Server:
    """A server that was started, and where it listens."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """Kill all of its processes at once, as a machine that loses power would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> int:
        """Ask it to end, and wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def start(
    where: Sequence[str],
    log: Path,
    *,
    port: int = 0,
    more: Sequence[str] = ("--insecure-local",),
    environment: Mapping[str, str] | None = None,
) -> Server:
    """Start a server and wait until it listens."""
    already = log.stat().st_size if log.exists() else 0
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*ACEFRAUD, "serve", *where, "--port", str(port), *more],
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=environment,
        )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        said = log.read_bytes()[already:]
        if found := re.search(rb"listening on http://127\.0\.0\.1:(\d+)", said):
            return Server(process, int(found[1]), log)
        if process.poll() is not None:
            raise AssertionError(said.decode()[-3_000:])
        time.sleep(0.02)
    raise AssertionError("the server did not start within a minute")


@contextmanager
def running(
    where: Sequence[str],
    log: Path,
    *,
    more: Sequence[str] = ("--insecure-local",),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """A server for the time of a block."""
    server = start(where, log, more=more, environment=environment)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
