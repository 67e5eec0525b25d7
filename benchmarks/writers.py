"""`python -m benchmarks writers`: processes that decide and learn on one file at the same time.

Every process warms up, waits for the others, and then decides transactions and reports their outcomes one by one. In
the end the file must hold each of them exactly once.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from acefraud import Learner, Outcome, Transaction, open_playbook
from benchmarks.console import JsonOption, line, print_json

BULLETS = 50
WARM_UP = 10
"""Decisions and outcomes of each process before it is timed: the first ones load modules and the embedder."""
_KINDS = ("decision", "outcome")


def writers(
    processes: Annotated[int, typer.Option(min=1, help="Processes that write at once.")] = 10,
    each: Annotated[int, typer.Option(min=1, help="Decisions and outcomes of each.")] = 200,
    json: JsonOption = False,
) -> None:
    """Measure how long **several processes on one file** wait for each other.

    python -m benchmarks writers --processes 10 --each 200
    """
    with tempfile.TemporaryDirectory(prefix="acefraud-writers-") as folder:
        found = measure(Path(folder) / "book.db", processes, each)
    if json:
        print_json(found)
        return
    line(f"{processes} processes, {each} decisions and {each} outcomes each: {found['seconds']:.1f} s in all")
    for kind in _KINDS:
        latency, count = found["milliseconds"][kind], found["recorded"][kind]
        line(
            f"{kind}s: {count:,} recorded, {found['missing'][kind]} missing, {found['doubled'][kind]} doubled; "
            f"p50 {latency['p50']:.1f} ms, p99 {latency['p99']:.1f} ms, max {latency['max']:.1f} ms"
        )


def measure(path: Path, processes: int, each: int) -> dict[str, Any]:
    """Let processes write to a new file, and compare what it holds with what was acknowledged."""
    with open_playbook(path) as book:
        for n in range(BULLETS):
            book.add_bullet(f"Amount above {100 * n} and account at most {10 * n + 5} days old: decline")
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(processes, mp_context=context) as pool:
        barrier = manager.Barrier(processes)
        runs = [pool.submit(_write, path, name, each, barrier) for name in range(processes)]
        done = [run.result() for run in runs]
    wanted = [_id(name, n) for name in range(processes) for n in range(each)]
    with open_playbook(path) as book:
        events = book.ledger.transaction_events(wanted)
    held = {
        "decision": [len(events[one].decisions) for one in wanted],
        "outcome": [len(events[one].outcomes) for one in wanted],
    }
    return {
        "seconds": max(ended for *_, ended in done) - min(began for _, began, _ in done),
        "milliseconds": {kind: _quantiles([took for taken, *_ in done for took in taken[kind]]) for kind in _KINDS},
        "recorded": {kind: sum(counts) for kind, counts in held.items()},
        "missing": {kind: counts.count(0) for kind, counts in held.items()},
        "doubled": {kind: sum(count > 1 for count in counts) for kind, counts in held.items()},
    }


def _write(path: Path, name: int, each: int, barrier: Any) -> tuple[dict[str, list[float]], float, float]:
    """What one process does: how long each decision and outcome took, and when it began and ended."""
    return asyncio.run(_write_all(path, name, each, barrier))


async def _write_all(path: Path, name: int, each: int, barrier: Any) -> tuple[dict[str, list[float]], float, float]:
    taken: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    with open_playbook(path) as book:
        learner = Learner(book)
        for n in range(WARM_UP):
            one = _transaction(f"warm-{name}-{n}", n)
            await learner.decide(one)
            await learner.hear(Outcome(transaction_id=one.id, is_fraud=False))
        barrier.wait()
        began = time.time()
        for n in range(each):
            one = _transaction(_id(name, n), n + name)
            start = time.perf_counter()
            await learner.decide(one)
            decided = time.perf_counter()
            await learner.hear(Outcome(transaction_id=one.id, is_fraud=n % 7 == 0))
            heard = time.perf_counter()
            taken["decision"].append(decided - start)
            taken["outcome"].append(heard - decided)
        return taken, began, time.time()


def _id(name: int, n: int) -> str:
    return f"p{name}-{n}"


def _transaction(transaction_id: str, n: int) -> Transaction:
    facts = {"amount": 7.5 * (n * 37 % 900), "account_age_days": n * 11 % 500, "vpn": n % 3 == 0}
    return Transaction(id=transaction_id, facts=facts)


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    p50, p99, most = (1000 * float(each) for each in np.quantile(seconds, [0.5, 0.99, 1.0]))
    return {"p50": p50, "p99": p99, "max": most}
