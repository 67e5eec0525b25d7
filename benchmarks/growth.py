"""`python -m benchmarks growth`: what a ledger of millions of decisions costs its users.

The same things are done to a large file and to a small one, each in a process of its own: open it, decide, explain the
first and the last decision, and archive half of it.
"""

from __future__ import annotations

import asyncio
import json as jsonlib
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from acefraud import Learner, Transaction, open_playbook
from benchmarks.console import JsonOption, line, print_json, progress

BULLETS = 50
TOGETHER = 5_000
SMALL = 1_000
_FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def growth(
    decisions: Annotated[int, typer.Option(min=SMALL, help="Decisions in the large file.")] = 2_000_000,
    json: JsonOption = False,
) -> None:
    """Measure opening, deciding, explaining and archiving on a **large file** beside a small one.

    python -m benchmarks growth --decisions 2000000
    """
    with tempfile.TemporaryDirectory(prefix="acefraud-growth-") as folder, progress("deciding") as advance:
        found = measure(Path(folder), decisions, advance)
    if json:
        print_json(found)
        return
    line(f"{'':>22}  {SMALL:>12,}  {decisions:>12,}  decisions")
    for name in found["large"]["seconds"]:
        small, large = (found[size]["seconds"][name] for size in ("small", "large"))
        line(f"{name:>22}  {1000 * small:>9,.1f} ms  {1000 * large:>9,.1f} ms")
    for name in ("file", "file_after_archiving", "archive", "peak_memory"):
        small, large = (found[size]["bytes"][name] / 1e6 for size in ("small", "large"))
        line(f"{name.replace('_', ' '):>22}  {small:>9,.1f} MB  {large:>9,.1f} MB")


def measure(folder: Path, decisions: int, advance: Callable[[float], None]) -> dict[str, Any]:
    """Make both files, and do the same to each in a process of its own."""
    found: dict[str, Any] = {}
    for name, count in {"small": SMALL, "large": decisions}.items():
        path = folder / f"{name}.db"
        fill(path, count, advance if name == "large" else lambda _: None)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as process:
            found[name] = process.submit(use, path, count, folder / name).result()
    return found


def fill(path: Path, count: int, advance: Callable[[float], None]) -> None:
    """Decide so many transactions, a second apart."""
    at = _FIRST_DAY
    with open_playbook(path) as book:
        book.clock = lambda: at
        with book.unit_of_work():
            for n in range(BULLETS):
                book.add_bullet(f"Amount above {100 * n} and account at most {10 * n + 5} days old: decline")
        learner = Learner(book)
        together = min(TOGETHER, count // 10)
        for start in range(0, count, together):
            at = _FIRST_DAY + timedelta(seconds=start)
            numbers = range(start, min(start + together, count))
            asyncio.run(learner.decide_all([_transaction(n) for n in numbers]))
            advance(numbers.stop / count)


def use(path: Path, count: int, archive: Path) -> Mapping[str, Any]:
    """Open a file, decide, explain, and archive the older half. Seconds for each, sizes and the peak of memory."""
    seconds: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        result = work()
        seconds[name] = time.perf_counter() - began
        return result

    size = path.stat().st_size
    with timed("open", lambda: open_playbook(path)) as book:
        learner = Learner(book)
        timed("first decision", lambda: asyncio.run(learner.decide(_transaction(count))))
        timed("second decision", lambda: asyncio.run(learner.decide(_transaction(count + 1))))
        for name, n in {"explain the first": 0, "explain the last": count - 1}.items():
            timed(name, partial(_explain, learner, f"t{n}"))
        run = timed("archive half", partial(_archive, path, _FIRST_DAY + timedelta(seconds=count // 2), archive))
        timed("decide after that", lambda: asyncio.run(learner.decide(_transaction(count + 2))))
    return {
        "seconds": seconds,
        "archived": run["archived"],
        "bytes": {
            "file": size,
            "file_after_archiving": path.stat().st_size,
            "archive": sum(Path(each).stat().st_size for each in run["files"]),
            "peak_memory": max(map(_peak_memory, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))),
        },
    }


def _archive(path: Path, before: datetime, folder: Path) -> Any:
    """Archive with the command, in a process of its own."""
    options = [
        "--before",
        f"{before:%Y-%m-%dT%H:%M:%S}",
        "--to",
        str(folder),
        "--playbook",
        str(path),
        "--with-pending",
    ]
    command = [sys.executable, "-m", "acefraud", "ledger", "archive", *options, "--json"]
    return jsonlib.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def _peak_memory(whose: int) -> int:
    """In bytes, of this process or of the largest that it started."""
    return resource.getrusage(whose).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _transaction(n: int) -> Transaction:
    facts = {"amount": 7.5 * (n % 900), "account_age_days": n % 500, "vpn": n % 3 == 0, "country": "PT"}
    return Transaction(id=f"t{n}", facts=facts)


def _explain(learner: Learner, transaction_id: str) -> None:
    (decision,) = learner.playbook.ledger.transaction_events([transaction_id])[transaction_id].decisions
    assert asyncio.run(learner.explain(decision)).has_trace
