"""What one processor decides another explains: the same records, to the last bit, whichever of its paths are on."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.test_exact_math import SLOW_PATHS

from acefraud import Case, Learner, LearnerOptions, Outcome, Transaction, open_playbook
from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade
from acefraud.datasets import SchemaMapping
from acefraud.facts.history import HistoryPlan

START = datetime.fromisoformat("2024-03-01T00:00:00+00:00")
PLAN = HistoryPlan(entities=("card_id",), windows=("24h", "7d"), category="kind", latitude="lat", longitude="lon")
MAPPING = SchemaMapping(amount="amount", ignore=("card_id",), history=PLAN).describe()
NEVER = 10**9
OPTIONS = LearnerOptions(n_bullets=4, review_least=NEVER, review_at_last=NEVER, watch_every=NEVER)
"""Rules are not learnt on the way; the level of fraud is."""
SIGNS = ("paid through a VPN", "from a new device", "gift cards", "from an emulator", "at the usual shop", "at noon")
RULES = (
    "Card km from last above 5000 and amount above 300: decline",
    "Card amount to usual above 1.5: decline",
    "Card count 24h above 1: decline",
    "Amount above 900: decline",
    "New device and amount above 200: decline",
    "VPN: decline",
    "Emulator: decline",
    "Gift cards: decline",
)
LEARNT, LATER = 120, 100
RUN = "import sys; from tests import test_other_processors as told; print(getattr(told, sys.argv[1])(sys.argv[2]))"


def cases() -> Iterator[Case]:
    """Payments with facts, a text and a history."""
    chance = random.Random(4)
    for number in range(LEARNT + LATER):
        risky = chance.random() < (0.4 if number < LEARNT + LATER // 2 else 0.8)
        time = START + timedelta(minutes=137 * number)
        place = {"lat": chance.uniform(-60, 60), "lon": chance.uniform(-180, 180)}
        transaction = Transaction(
            id=f"t{number}",
            time=time,
            text=f"A payment {', '.join(chance.sample(SIGNS, 2 + 2 * risky))}",
            facts={"amount": chance.randrange(100, 200_000) / 100, "kind": chance.choice("abc"), **place},
            entities={"card_id": f"c{chance.randint(0, 6)}"},
        )
        is_fraud = risky if chance.random() < 0.8 else chance.random() < 0.1
        yield Case(transaction=transaction, is_fraud=is_fraud, known_at=time + timedelta(hours=5))


def decide(path: str) -> str:
    """Decide and hear; returns all that is recorded of it, apart from the clock's."""
    later = list(cases())[LEARNT:]
    with open_playbook(path) as book:
        learner = Learner(book, options=OPTIONS)
        before = book.ledger.last_seq()
        for start in range(0, LATER, 10):
            some = later[start : start + 10]
            learner.decide_all_sync([case.transaction for case in some[:6]])
            for case in some[6:]:
                learner.decide_sync(case.transaction)
            learner.hear_all_sync(
                [Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud) for case in some]
            )
        payloads = (event.payload for event in book.ledger.read(after=before))
        told = [payload.decision if isinstance(payload, DecisionMade) else payload for payload in payloads]
    return "\n".join(each.model_dump_json(exclude={"outcome"}) for each in told)


def explain(path: str) -> str:
    """Explain all that was recorded; returns the traces."""
    with open_playbook(path, read_only=True) as book:
        learner = Learner(book, options=OPTIONS)
        return "\n".join(learner.explain_sync(decision).model_dump_json() for decision in recorded(path))


def recorded(path: str) -> list[Decision]:
    with open_playbook(path, read_only=True) as book:
        events = book.ledger.transaction_events([case.transaction.id for case in cases()])
    return [decision for each in events.values() for decision in each.decisions]


def run(action: str, path: Path, paths: Mapping[str, str]) -> str:
    env = {**os.environ, **paths, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", RUN, action, str(path)]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("taught") / "book.db"
    with open_playbook(path) as book:
        Learner(book, options=OPTIONS).study(list(cases())[:LEARNT], mapping=MAPPING)
        for rule in RULES:
            book.add_bullet(rule)
    return path


@pytest.mark.parametrize("paths", SLOW_PATHS.values(), ids=SLOW_PATHS)
def test_what_one_processor_decides_another_explains(taught: Path, tmp_path: Path, paths: dict[str, str]) -> None:
    here, there = (Path(shutil.copy(taught, tmp_path / name)) for name in ("here.db", "there.db"))
    made = decide(str(here))
    assert run("decide", there, paths).rstrip("\n") == made
    assert '"kind":"level_moved"' in made
    decisions = recorded(str(here))
    assert len(decisions) == LATER
    assert len({decision.revision for decision in decisions}) > 3
    assert any("card_km_from_last" in decision.facts for decision in decisions)
    traces = explain(str(here))
    assert traces.count('"thompson"') > 2 * LATER
    assert run("explain", here, paths).rstrip("\n") == explain(str(there)) == traces
