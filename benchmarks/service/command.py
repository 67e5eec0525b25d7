"""`python -m benchmarks service`: decisions per second over HTTP, beside a bare route that writes one row."""

from __future__ import annotations

import json as jsonlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote
from uuid import uuid4

import typer
from sqlalchemy import create_engine, text

from acefraud import open_playbook
from benchmarks.console import JsonOption, line, print_json
from benchmarks.service.load import Load, post, send_all
from benchmarks.service.peer import TABLE

HOST = "127.0.0.1"
COUNTRIES = ("FR", "DE", "US", "BR", "NG", "IN", "GB", "ES")


def service(
    database: Annotated[
        str, typer.Option(envvar="ACEFRAUD_TEST_POSTGRES", help="A PostgreSQL database; empty for SQLite alone.")
    ] = "postgresql://postgres@127.0.0.1:5432/test",
    bullets: Annotated[int, typer.Option(min=1, help="Bullets of the playbook.")] = 1_000,
    requests: Annotated[int, typer.Option(min=100, help="Requests of each round.")] = 4_000,
    clients: Annotated[int, typer.Option(min=1, help="Clients with one request each at a time.")] = 16,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes, of both servers.")] = 2,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; the servers take turns.")] = 3,
    json: JsonOption = False,
) -> None:
    """Measure **the service under load** beside a bare FastAPI route that writes one row of the same size.

    python -m benchmarks service --requests 4000
    """
    shape = Shape(bullets, requests, clients, workers, rounds)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="acefraud-service-") as folder:
        if database:
            with _schema(database) as ours, _schema(database) as theirs:
                found["postgresql"] = measure(ours, theirs, shape)
        found["sqlite"] = measure(str(Path(folder) / "book.db"), str(Path(folder) / "rows.db"), shape)
    if json:
        print_json(found)
        return
    for store, figures in found.items():
        for name in ("service", "bare"):
            one = figures[name]
            line(
                f"{store:<11} {name:<8} {one['per_second']:7,.0f} per second, "
                f"p50 {one['p50']:.1f} ms, p99 {one['p99']:.1f} ms"
            )
        line(f"{store:<11} throughput {figures['throughput']:.2f}, p99 {figures['p99']:.2f} times the bare route's")


@dataclass(frozen=True, slots=True)
class Shape:
    """How much is measured."""

    bullets: int
    requests: int
    clients: int
    workers: int
    rounds: int


def measure(ours: str, theirs: str, shape: Shape) -> dict[str, Any]:
    """Both servers on stores of one kind, in turns. Every round sends new transactions."""
    _write_playbook(ours, shape.bullets)
    _write_table(theirs)
    with _service(ours, shape.workers) as decide, _bare(theirs, shape.workers, row_bytes=900) as write:
        loads: dict[str, list[Load]] = {"service": [], "bare": []}
        for number in range(shape.rounds + 1):
            bodies = _orders(shape.requests, f"{uuid4().hex[:6]}-{number}")
            for name, port, path in (("service", decide, "/v1/decisions"), ("bare", write, "/rows")):
                load = send_all(HOST, port, [post(path, body) for body in bodies], shape.clients)
                if load.failed:
                    raise RuntimeError(f"{load.failed:,} of {load.requests:,} requests to {name} failed")
                if number:  # the first round warms up
                    loads[name].append(load)
    figures: dict[str, Any] = {name: _figures(some) for name, some in loads.items()}
    figures["throughput"] = figures["service"]["per_second"] / figures["bare"]["per_second"]
    figures["p99"] = figures["service"]["p99"] / figures["bare"]["p99"]
    return figures


def _figures(loads: Sequence[Load]) -> dict[str, float]:
    together = Load(
        sum(one.requests for one in loads),
        sum(one.failed for one in loads),
        sum(one.seconds for one in loads),
        [latency for one in loads for latency in one.latencies],
    )
    return {
        "per_second": together.per_second,
        "p50": together.milliseconds(0.5),
        "p99": together.milliseconds(0.99),
    }


def _orders(count: int, name: str) -> list[bytes]:
    return [
        jsonlib.dumps(
            {
                "id": f"{name}-{n}",
                "facts": {
                    "amount": 5 + (n * 7919) % 4000,
                    "account_age_days": (n * 31) % 900,
                    "vpn": n % 7 == 0,
                    "new_device": n % 5 == 0,
                    "country": COUNTRIES[n % len(COUNTRIES)],
                    "payments_24h": n % 12,
                    "hour": n % 24,
                    "merchant_category": f"category {n % 20}",
                },
            }
        ).encode()
        for n in range(count)
    ]


def _write_playbook(address: str, bullets: int) -> None:
    with open_playbook(address) as book, book.unit_of_work(who="benchmark"):
        for n in range(bullets):
            country = COUNTRIES[n % len(COUNTRIES)]
            rule = f'amount > {4 * n} and account_age_days < {n + 5} and country is "{country}"'
            book.add_bullet(f"{rule}: decline")


def _write_table(address: str) -> None:
    driver = address.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = create_engine(driver if "://" in address else f"sqlite:///{address}")
    with engine.begin() as connection:
        connection.execute(text(TABLE))
    engine.dispose()


@contextmanager
def _schema(database: str) -> Iterator[str]:
    """A schema of its own in a database, and the address that leads to it."""
    name = f"bench_{uuid4().hex[:12]}"
    engine = create_engine(database.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    try:
        yield f"{database}{'&' if '?' in database else '?'}options={quote(f'-csearch_path={name}')}"
    finally:
        with engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
        engine.dispose()


@contextmanager
def _service(address: str, workers: int) -> Iterator[int]:
    """The service as users start it, and its port."""
    where = ["--database", address] if "://" in address else ["--playbook", address]
    start = "from acefraud.cli import main; main()"
    command = [sys.executable, "-c", start, "serve", *where, "--port", "0", "--workers", str(workers), "--rate", "0"]
    with _running([*command, "--insecure-local"], {}) as process:
        yield _announced(process, rb"listening on http://[\d.]+:(\d+)")


@contextmanager
def _bare(address: str, workers: int, *, row_bytes: int) -> Iterator[int]:
    """The bare route, with as many workers."""
    port = _free_port()
    environment = {"BENCH_DATABASE": address, "BENCH_ROW_BYTES": str(row_bytes)}
    app = ["benchmarks.service.peer:build", "--factory", "--port", str(port), "--workers", str(workers)]
    command = [sys.executable, "-m", "uvicorn", *app, "--no-access-log"]
    with _running(command, environment) as process:
        for _ in range(workers):
            _announced(process, rb"(Application startup complete)")
        yield port


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _running(command: Sequence[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=os.environ | environment, stdout=log, stderr=log)
        process.log = log  # type: ignore[attr-defined]
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _announced(process: subprocess.Popen[bytes], words: bytes) -> Any:
    """What a server says once it listens."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        log = process.log  # type: ignore[attr-defined]
        log.seek(0)
        said = log.read()
        if found := re.search(words, said):
            return int(found[1]) if found[1].isdigit() else found[1]
        if process.poll() is not None:
            raise RuntimeError(said.decode()[-2_000:])
        time.sleep(0.05)
    raise RuntimeError("the server did not start within a minute")
