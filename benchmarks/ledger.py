"""`python -m benchmarks ledger`: the cost of recording decisions in a file, by what the file survives.

Beside them stands what the disk itself costs: the same number of bytes inserted into a bare SQLite file, with the same
durability and as many commits. All of them take turns in one run.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

from acefraud import BulletPlaybook, Learner, Transaction, open_playbook
from benchmarks.console import JsonOption, line, print_json
from benchmarks.speed.timing import Effort, interleaved

SYNCHRONOUS = {"power": "FULL", "process": "NORMAL"}
BULLETS = 50
TOGETHER = 256


def ledger(
    rounds: Annotated[int, typer.Option(min=1, help="How often everything is measured; the least counts.")] = 50,
    json: JsonOption = False,
) -> None:
    """Measure **recording decisions** in a file, alone and in batches, for both kinds of durability.

    python -m benchmarks ledger
    """
    with tempfile.TemporaryDirectory(prefix="acefraud-ledger-") as folder:
        found = measure(Path(folder), rounds)
    if json:
        print_json(found)
        return
    line(f"{found['bytes']} bytes of file for each decision; microseconds for each decision:")
    for name, microseconds in found["microseconds"].items():
        line(f"{name:>22}  {microseconds:10.1f}")
    for name, ratio in found["ratios"].items():
        line(f"{name:>34}  {ratio:6.2f}")


def measure(folder: Path, rounds: int) -> dict[str, Any]:
    """Record decisions with both kinds of durability and in memory, and insert the same bytes into bare files."""
    size = _bytes_of_a_decision(folder / "sizes.db")
    fresh = _transactions()
    works: dict[str, Callable[[], object]] = {}
    with ExitStack() as opened:
        loop = opened.enter_context(asyncio.Runner())  # one for all: to start one takes longer than to decide
        works["memory.alone"] = _alone(_learner(BulletPlaybook()), fresh, loop)
        for durability in SYNCHRONOUS:
            book = opened.enter_context(open_playbook(folder / f"{durability}.db", durability=durability))
            bare = opened.enter_context(closing(bare_file(folder / f"bare-{durability}.db", durability)))
            works |= {
                f"{durability}.alone": _alone(_learner(book), fresh, loop),
                f"{durability}.batch": _together(_learner(book), fresh, loop),
                f"{durability}.bare_alone": inserting(bare, size, rows=1),
                f"{durability}.bare_batch": inserting(bare, size, rows=TOGETHER),
            }
        seconds = interleaved({name: [work] for name, work in works.items()}, Effort(0.0, rounds, rounds))
    each = {name: 1e6 * took / (TOGETHER if "batch" in name else 1) for name, took in seconds.items()}
    pairs = {
        "alone: power / process": ("power.alone", "process.alone"),
        "batch: power / process": ("power.batch", "process.batch"),
        "alone, power: decision / bare": ("power.alone", "power.bare_alone"),
        "alone, process: decision / bare": ("process.alone", "process.bare_alone"),
        "batch, power: decision / bare": ("power.batch", "power.bare_batch"),
        "batch, process: decision / bare": ("process.batch", "process.bare_batch"),
        "alone, power: file / memory": ("power.alone", "memory.alone"),
        "alone, process: file / memory": ("process.alone", "memory.alone"),
    }
    return {
        "bytes": size,
        "microseconds": each,
        "ratios": {name: each[pair] / each[other] for name, (pair, other) in pairs.items()},
    }


def _learner(book: BulletPlaybook) -> Learner:
    if not len(book):
        with book.unit_of_work():
            for n in range(BULLETS):
                book.add_bullet(f"Amount above {100 * n} and account at most {10 * n + 5} days old: decline")
    return Learner(book)


def _transactions() -> Iterator[Transaction]:
    """Transactions that were never decided before."""
    for n in count():
        facts = {"amount": 7.5 * (n % 900), "account_age_days": n % 500, "vpn": n % 3 == 0, "country": "PT"}
        yield Transaction(id=f"t{n}", facts=facts)


def _alone(learner: Learner, fresh: Iterator[Transaction], loop: asyncio.Runner) -> Callable[[], object]:
    return lambda: loop.run(_decided(learner, next(fresh)))


async def _decided(learner: Learner, transaction: Transaction) -> None:
    await learner.decide(transaction)


def _together(learner: Learner, fresh: Iterator[Transaction], loop: asyncio.Runner) -> Callable[[], object]:
    return lambda: loop.run(learner.decide_all([next(fresh) for _ in range(TOGETHER)]))


def _bytes_of_a_decision(path: Path) -> int:
    """How much a file grows for each decision, indexes included."""
    fresh, decided = _transactions(), 4 * TOGETHER
    with open_playbook(path) as book:
        _learner(book)
    before = path.stat().st_size
    with open_playbook(path) as book:
        asyncio.run(Learner(book).decide_all([next(fresh) for _ in range(decided)]))
    return (path.stat().st_size - before) // decided


def bare_file(path: Path, durability: str = "power") -> sqlite3.Connection:
    """A file with one table of bytes."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS[durability]}")
    connection.execute("CREATE TABLE rows (body BLOB NOT NULL)")
    return connection


def inserting(connection: sqlite3.Connection, size: int, *, rows: int) -> Callable[[], object]:
    """Insert rows of so many bytes with one commit."""
    bodies = [(bytes(size),)] * rows

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO rows VALUES (?)", bodies)
        connection.execute("COMMIT")

    return insert
