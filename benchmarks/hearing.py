"""`python -m benchmarks hearing`: the cost of opening a playbook file and taking in one outcome.

The cost should depend on the number of remembered cases, not on the length of the ledger. Each file gets a number of
remembered cases and events and ends with a review. Then the files are opened in turn, several times, and take in one
outcome with no review due.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from acefraud import Case, Learner, Outcome, Transaction, load_dataset, open_playbook
from benchmarks.console import JsonOption, line, print_json

TURNS = 9
BATCH = 500


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a playbook file."""

    name: str
    cases: int
    events: int


SIZES = (
    Size("few_events", 2_000, 20_000),
    Size("many_events", 2_000, 200_000),
    Size("many_cases", 20_000, 200_000),
)


def hearing(
    scale: Annotated[int, typer.Option(min=1, help="Divide all sizes by this, for a quick look.")] = 1,
    json: JsonOption = False,
) -> None:
    """Measure the cost of opening a playbook file and taking in **one outcome**, by remembered cases and by events.

    python -m benchmarks hearing
    """
    with tempfile.TemporaryDirectory(prefix="acefraud-hearing-") as folder:
        found = measure(Path(folder), [Size(each.name, each.cases // scale, each.events // scale) for each in SIZES])
    if json:
        print_json(found)
        return
    for name, milliseconds in found["milliseconds"].items():
        line(f"{name:>12}  {milliseconds:8.1f} ms")
    line(f"ten times the events: {found['ten_times_the_events']:.2f} times the cost (goal: at most 1.3)")
    line(f"ten times the cases: {found['ten_times_the_cases']:.2f} times the cost (goal: at most 10)")


def measure(folder: Path, sizes: list[Size]) -> dict[str, Any]:
    """Make the files, then open them in turn and take in one outcome each time."""
    for size in sizes:
        make(folder / f"{size.name}.db", size)
    times: dict[str, list[float]] = {size.name: [] for size in sizes}
    for turn in range(TURNS):
        for size in sizes:
            times[size.name].append(_seconds(folder / f"{size.name}.db", f"new-{turn}"))
    few, many_events, many_cases = (1000 * median(times[size.name]) for size in sizes)
    return {
        "milliseconds": {"few_events": few, "many_events": many_events, "many_cases": many_cases},
        "ten_times_the_events": many_events / few,
        "ten_times_the_cases": many_cases / many_events,
    }


@cache
def _texts() -> list[Case]:
    """Cases of two synthetic worlds, which all files are made of."""
    return [case for seed in range(2) for case in load_dataset("complex_fraud_detection", seed=seed)]


def make(path: Path, size: Size) -> None:
    """Write a playbook file with this many remembered cases and events, ending with a review."""
    texts = _texts()
    with open_playbook(path) as book:
        learner = Learner(book)
        counted = book.add_bullet("A bullet that is counted by hand")
        for start in range(0, size.cases, BATCH):
            some = [_case(texts, index) for index in range(start, min(size.cases, start + BATCH))]
            outcomes = [Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud) for case in some]
            asyncio.run(learner.hear_all(outcomes, [case.transaction for case in some]))
        while book.seq < size.events:
            with book.unit_of_work():
                for _ in range(min(10_000, size.events - book.seq)):
                    book.update_stats(counted, is_helpful=True)
        learner.review()


def _case(texts: list[Case], place: int) -> Case:
    case = texts[place % len(texts)]
    told = Transaction(id=f"t{place}", time=case.transaction.time, text=case.transaction.text)
    return Case(transaction=told, is_fraud=case.is_fraud)


def _seconds(path: Path, transaction_id: str) -> float:
    began = time.perf_counter()
    with open_playbook(path) as book:
        told = Transaction(id=transaction_id, facts={"amount": 900.0})
        heard = asyncio.run(Learner(book).hear(Outcome(transaction_id=transaction_id, is_fraud=True), told))
    assert heard.review is None, "a review was due"
    return time.perf_counter() - began
