"""`python -m benchmarks entities`: what facts from history cost, for entities of little traffic and for a busy one.

A playbook is trained on a month of payments, many of them at one busy terminal. Payments there and at quiet terminals
are then decided in turn, one by one. And payments at quiet terminals are decided in batches of 256, in turn by this
playbook and by one that keeps no history; what counts there is the time of the processor.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from acefraud import BulletPlaybook, Case, Learner, LearnerOptions, SchemaMapping, Transaction, open_playbook
from benchmarks.console import JsonOption, line, print_json

BATCH, BATCHES = 256, 12
ALONE = 100
"""Decisions one by one of each kind, after a tenth as many that are not timed."""
QUIET = 500
"""Terminals of little traffic."""
MONTH = timedelta(days=30)
START = datetime(2026, 1, 1, tzinfo=UTC)
HISTORY = {"entities": ("customer", "terminal"), "label_delay": "7d"}
BUSY = "busy"


def entities(
    transactions: Annotated[int, typer.Option(min=1_000, help="Payments at the busy terminal.")] = 20_000,
    database: Annotated[str, typer.Option(help="An empty PostgreSQL schema, if not a file.")] = "",
    json: JsonOption = False,
) -> None:
    """Measure decisions on a **busy entity** beside quiet ones, and what facts from history cost in batches.

    python -m benchmarks entities --transactions 20000
    """
    with tempfile.TemporaryDirectory(prefix="acefraud-entities-") as folder:
        found = measure(database or str(Path(folder) / "book.db"), Path(folder) / "without.db", transactions)
    if json:
        print_json(found)
        return
    for kind, alone in found["alone"].items():
        written = f", {alone['wal_kb']:.1f} KB of WAL" if "wal_kb" in alone else ""
        line(f"{kind:>6}: p50 {alone['p50_ms']:.1f} ms, p90 {alone['p90_ms']:.1f} ms{written}")
    line(
        f"busy against quiet: {found['busy_to_quiet']:.2f} times; the longest row has {found['longest_row_kb']:.1f} KB"
    )
    batches = found["batches_ms_a_row"]
    line(f"a row in batches of {BATCH}: {batches['history']:.3f} ms, {batches['none']:.3f} ms without a history")


def measure(address: str, without: Path, transactions: int) -> dict[str, Any]:
    """Train both playbooks, and decide with them."""
    dice = np.random.default_rng(1)
    past = [*payments(dice, BUSY, transactions), *(each for n in range(QUIET) for each in payments(dice, f"q{n}", 40))]
    cases = [Case(transaction=each, is_fraud=n % 50 == 0) for n, each in enumerate(past)]
    cases.sort(key=lambda case: str(case.transaction.time))
    with open_playbook(address) as book, open_playbook(without) as plain:
        learner, other = _trained(book, cases, HISTORY), _trained(plain, cases[:5_000], {"entities": ()})
        taken: dict[str, list[tuple[float, float]]] = {"quiet": [], BUSY: []}
        for n in range(ALONE + ALONE // 10):
            for kind, timed in taken.items():
                terminal = BUSY if kind == BUSY else f"q{n % QUIET}"
                (payment,) = payments(dice, terminal, 1, START + MONTH + n * timedelta(seconds=20), f"{kind}{n}-")
                before, began = _wal(address), time.perf_counter()
                learner.decide_sync(payment)
                timed.append((1e3 * (time.perf_counter() - began), (_wal(address) - before) / 1024))
        batches: dict[str, list[float]] = {"history": [], "none": []}
        for n in range(BATCHES):
            at = START + MONTH + timedelta(hours=1 + n)
            batch = [
                each for q in range(BATCH) for each in payments(dice, f"q{(n * BATCH + q) % QUIET}", 1, at, f"{n}-{q}-")
            ]
            for name, decider in (("history", learner), ("none", other)):
                began = time.process_time()
                decider.decide_all_sync(batch)
                batches[name].append(1e3 * (time.process_time() - began) / BATCH)
    alone = {kind: dict(_figures(timed[ALONE // 10 :], address)) for kind, timed in taken.items()}
    return {
        "alone": alone,
        "busy_to_quiet": alone[BUSY]["p50_ms"] / alone["quiet"]["p50_ms"],
        "longest_row_kb": _longest_row(address) / 1024,
        "batches_ms_a_row": {name: statistics.median(each) for name, each in batches.items()},
    }


def payments(
    dice: np.random.Generator, terminal: str, count: int, at: datetime | None = None, prefix: str = ""
) -> list[Transaction]:
    """Payments at a terminal, at one time or spread over the month."""
    return [
        Transaction(
            id=f"{prefix}{terminal}-{n}",
            time=at or START + MONTH * float(dice.random()),
            facts={"amount": round(float(dice.lognormal(3, 1)), 2)},
            entities={"customer": f"c{dice.integers(0, 4_000)}", "terminal": terminal},
        )
        for n in range(count)
    ]


def _trained(book: BulletPlaybook, cases: list[Case], history: dict[str, Any]) -> Learner:
    learner = Learner(book, options=LearnerOptions(review_at_last=10**9, review_least=10**9, watch_every=10**9))
    mapping = SchemaMapping(amount="amount", ignore=("customer", "terminal"), history=history)
    learner.study(cases, mapping=mapping.describe())
    return learner


def _figures(timed: list[tuple[float, float]], address: str) -> Iterator[tuple[str, float]]:
    milliseconds = sorted(took for took, _ in timed)
    yield "p50_ms", statistics.median(milliseconds)
    yield "p90_ms", milliseconds[len(milliseconds) * 9 // 10]
    if "://" in address:
        yield "wal_kb", statistics.median(written for _, written in timed)


def _wal(address: str) -> float:
    """How many bytes a server has written to its log; 0 for a file."""
    return float(_asked(address, "SELECT pg_current_wal_lsn() - '0/0'")) if "://" in address else 0.0


def _longest_row(address: str) -> float:
    return float(_asked(address, "SELECT max(length(value)) FROM history WHERE key LIKE 'e:%'"))


def _asked(address: str, query: str) -> Any:
    if "://" not in address:
        with closing(sqlite3.connect(address)) as file:
            return file.execute(query).fetchone()[0]
    import psycopg  # noqa: PLC0415  # only if it is asked for

    with psycopg.connect(address) as server:
        row = server.execute(query).fetchone()
        assert row is not None
        return row[0]
