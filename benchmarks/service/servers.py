"""The servers under load, started and stopped as processes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

HOST = "127.0.0.1"
STARTS_WITHIN = 60.0
"""Seconds."""
_ACEFRAUD = (sys.executable, "-c", "from acefraud.cli import main; main()")


def new_key(address: str) -> str:
    """The secret of a new key that may decide."""
    command = [*_ACEFRAUD, "keys", "create", "benchmark", "--scope", "decide", *_where(address)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def service(address: str, workers: int, environment: Mapping[str, str] = MappingProxyType({})) -> Iterator[int]:
    """The service as users start it, without a limit to the rate, and its port."""
    options = ["--port", "0", "--workers", str(workers), "--rate", "0"]
    with _running([*_ACEFRAUD, "serve", *_where(address), *options], environment) as server:
        yield int(server.said(r"listening on http://[\d.]+:(\d+)")[1])


def _where(address: str) -> list[str]:
    return ["--database" if "://" in address else "--playbook", address]


@contextmanager
def bare_route(address: str, workers: int, *, row_bytes: int) -> Iterator[int]:
    """The bare route with as many workers, and its port."""
    port = _free_port()
    environment = {"BENCH_DATABASE": address, "BENCH_ROW_BYTES": str(row_bytes)}
    app = ["benchmarks.service.peer:build", "--factory", "--port", str(port), "--workers", str(workers)]
    with _running([sys.executable, "-m", "uvicorn", *app, "--no-access-log"], environment) as server:
        server.said("Application startup complete", times=workers)
        yield port


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class _Server:
    """A server that runs, and what it writes."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self, pattern: str, *, times: int = 1) -> re.Match[str]:
        """Wait until it has written something, as often as given."""
        deadline = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < deadline:
            written = self.log.read_text()
            found = list(re.finditer(pattern, written))
            if len(found) >= times:
                return found[-1]
            if self.process.poll() is not None:
                raise RuntimeError(written[-2_000:])
            time.sleep(0.05)
        raise RuntimeError(f"the server did not start within {STARTS_WITHIN} seconds")


@contextmanager
def _running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[_Server]:
    with tempfile.TemporaryDirectory(prefix="acefraud-server-") as folder:
        log = Path(folder) / "log"
        with log.open("ab") as written:
            process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=written, stderr=written)
        try:
            yield _Server(process, log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
