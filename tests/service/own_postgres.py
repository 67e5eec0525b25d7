"""A PostgreSQL server that a test may stop, on a port and in a folder of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import pytest

USER = "postgres"


@dataclass(frozen=True)
class OwnPostgres:
    """A server for one test."""

    programs: Path
    folder: Path
    port: int

    @property
    def address(self) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        self._control("start", "-w", "-l", str(self.folder / "log"), "-o", options)

    def stop(self) -> None:
        """Stop it as an operator would who does not wait for clients."""
        self._control("stop", "-w", "-m", "fast")

    def _control(self, *words: str) -> None:
        _run([str(self.programs / "pg_ctl"), "-D", str(self.folder / "data"), *words])


@contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    """A running server. Skips the test where its programs are missing, or cannot run as another user."""
    programs = _programs()
    folder = Path(mkdtemp(prefix="acefraud-postgres-", dir="/tmp"))  # a long path does not fit a socket's address
    if os.geteuid() == 0:
        shutil.chown(folder, USER, USER)
    try:
        _run([str(programs / "initdb"), "-D", str(folder / "data"), "-A", "trust", "-U", USER])
        server = OwnPostgres(programs, folder, _free_port())
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        pytest.skip("PostgreSQL's server programs (initdb, pg_ctl) are not installed")
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no `runuser` to run it as another user")
    return found[-1].parent if found else Path(str(on_path)).parent


def _run(command: Sequence[str]) -> None:
    as_user = ["runuser", "-u", USER, "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*as_user, *command], capture_output=True, check=False, cwd="/tmp", timeout=120)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
