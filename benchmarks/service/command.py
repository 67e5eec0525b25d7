"""`python -m benchmarks service`: decisions per second over HTTP, beside a bare route that writes one row."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from benchmarks.console import JsonOption, line, print_json, progress
from benchmarks.service import servers
from benchmarks.service.load import Load, post, send_all
from benchmarks.service.stores import bytes_in, orders, own_schema, write_playbook, write_table


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
            with (
                own_schema(database) as ours,
                own_schema(database) as theirs,
                progress("sending requests, PostgreSQL") as done,
            ):
                found["postgresql"] = measure(ours, theirs, shape, done)
        with progress("sending requests, SQLite") as done:
            found["sqlite"] = measure(str(Path(folder) / "book.db"), str(Path(folder) / "rows.db"), shape, done)
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
        line(
            f"{store:<11} throughput {figures['throughput']:.2f}, p99 {figures['p99']:.2f} times the bare route's; "
            f"rows of {figures['row_bytes']:,} bytes"
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """How much is measured."""

    bullets: int
    requests: int
    clients: int
    workers: int
    rounds: int


def measure(ours: str, theirs: str, shape: Shape, done: Callable[[float], None]) -> dict[str, Any]:
    """Both servers on stores of one kind, in turns. Every round sends new transactions; the first warms up."""
    write_playbook(ours, shape.bullets)
    write_table(theirs)
    loads: dict[str, list[Load]] = {"service": [], "bare": []}
    with ExitStack() as stack:
        key = f"Authorization: Bearer {servers.new_key(ours)}\r\n"
        decide = stack.enter_context(servers.service(ours, shape.workers))
        before = bytes_in(ours)
        _send(decide, "/v1/decisions", shape, key)
        row_bytes = round((bytes_in(ours) - before) / shape.requests)
        write = stack.enter_context(servers.bare_route(theirs, shape.workers, row_bytes=row_bytes))
        _send(write, "/rows", shape)
        for number in range(shape.rounds):
            done((number + 1) / (shape.rounds + 1))
            loads["service"].append(_send(decide, "/v1/decisions", shape, key))
            loads["bare"].append(_send(write, "/rows", shape))
    figures: dict[str, Any] = {name: _figures(some) for name, some in loads.items()}
    figures["row_bytes"] = row_bytes
    figures["throughput"] = figures["service"]["per_second"] / figures["bare"]["per_second"]
    figures["p99"] = figures["service"]["p99"] / figures["bare"]["p99"]
    return figures


def _send(port: int, path: str, shape: Shape, headers: str = "") -> Load:
    requests = [post(path, body, headers) for body in orders(shape.requests, uuid4().hex[:8])]
    load = send_all(servers.HOST, port, requests, shape.clients)
    if load.failed:
        raise RuntimeError(f"{load.failed:,} of {load.requests:,} requests to {path} failed")
    return load


def _figures(loads: Sequence[Load]) -> dict[str, float]:
    together = Load(
        sum(load.requests for load in loads),
        sum(load.failed for load in loads),
        sum(load.seconds for load in loads),
        [latency for load in loads for latency in load.latencies],
    )
    return {
        "per_second": together.per_second,
        "p50": together.milliseconds(0.5),
        "p99": together.milliseconds(0.99),
    }
