"""`python -m benchmarks preview`: what a preview of a rule costs beside scoring the same transactions as one batch."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from acefraud import Case, Learner, Transaction, open_playbook
from benchmarks.console import JsonOption, line, print_json

TURNS = 9
RULE = "amount > 300 and vpn is true: decline"


def preview(
    scale: Annotated[int, typer.Option(min=1, help="Divide all sizes by this, for a quick look.")] = 1,
    json: JsonOption = False,
) -> None:
    """Measure a **preview** over 1,000 labelled cases and 10,000 decisions beside scoring these 11,000 as one batch.

    python -m benchmarks preview
    """
    with tempfile.TemporaryDirectory(prefix="acefraud-preview-") as folder:
        found = measure(Path(folder), 1_000 // scale, 10_000 // scale)
    if json:
        print_json(found)
        return
    line(f"scoring {found['transactions']:,} transactions: {found['score_ms']:.0f} ms")
    line(f"the preview: {found['preview_ms']:.0f} ms, {found['flips']:,} decisions would flip")
    line(f"{found['ratio']:.2f} times (goal: at most 3)")


def measure(folder: Path, cases: int, decisions: int) -> dict[str, Any]:
    """The medians of several turns on a playbook file, in one process."""
    dice = random.Random(1)
    history = [_transaction(dice, f"c{number}") for number in range(cases)]
    many = [_transaction(dice, f"d{number}") for number in range(decisions)]
    with open_playbook(folder / "book.db") as book:
        learner = Learner(book)
        learner.study([Case(transaction=each, is_fraud=_is_fraud(each, dice)) for each in history])
        asyncio.run(learner.decide_all(many))
        seconds: dict[str, list[float]] = {"score": [], "preview": []}
        for _ in range(TURNS):
            started = time.perf_counter()
            asyncio.run(learner.score([*history, *many]))
            scored = time.perf_counter()
            found = learner.preview(RULE)
            seconds["score"].append(scored - started)
            seconds["preview"].append(time.perf_counter() - scored)
    score, seen = median(seconds["score"]), median(seconds["preview"])
    return {
        "transactions": cases + decisions,
        "score_ms": 1e3 * score,
        "preview_ms": 1e3 * seen,
        "ratio": seen / score,
        "flips": len(found.flips),
    }


def _transaction(dice: random.Random, name: str) -> Transaction:
    facts = {
        "amount": float(dice.randrange(1, 900)),
        "vpn": dice.random() < 0.3,
        "country": dice.choice(["FR", "NG", "US", "RO"]),
        "age_days": float(dice.randrange(400)),
    }
    return Transaction(id=name, facts=facts)


def _is_fraud(one: Transaction, dice: random.Random) -> bool:
    risky = one.facts["vpn"] is True and float(one.facts["amount"]) > 400
    return dice.random() < 0.05 + 0.5 * risky + 0.3 * (one.facts["country"] == "NG")
