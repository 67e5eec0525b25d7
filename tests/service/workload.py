"""Clients that decide and report without pause, and note what was acknowledged."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from acefraud import Client
from acefraud.client import Retries
from acefraud.core.events import OUTCOME_RECEIVED, DecisionMade, OutcomeHeard, OutcomeReceived
from acefraud.core.playbook import PlaybookState
from acefraud.learning.learner import Learner
from acefraud.storage import BulletPlaybook

PATIENT = Retries(attempts=1_000, seconds=120, first_pause=0.05, longest_pause=0.3)
"""Retries that outlast any restart in the tests."""


@dataclass
class Acknowledged:
    """What clients were told is kept."""

    decisions: dict[str, str] = field(default_factory=dict)
    """The id of the decision on each transaction."""
    outcomes: set[str] = field(default_factory=set)
    problems: list[BaseException] = field(default_factory=list)


@contextmanager
def working(url: str, clients: int = 6) -> Iterator[Acknowledged]:
    """Clients that work until the block ends. Every third outcome is reported before its decision, some are revised."""
    seen, ending = Acknowledged(), threading.Event()
    threads = [threading.Thread(target=_work, args=(url, number, seen, ending)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        ending.set()
        for thread in threads:
            thread.join(180)
    assert not any(thread.is_alive() for thread in threads)


def _work(url: str, number: int, seen: Acknowledged, ending: threading.Event) -> None:
    try:
        with Client(url, api_key="", retries=PATIENT, timeout=20) as client:
            turn = 0
            while not ending.is_set():
                turn += 1
                _one_turn(client, f"t-{number}-{turn}", turn, seen)
    except BaseException as problem:  # noqa: BLE001  # the test looks at it
        seen.problems.append(problem)


def _one_turn(client: Client, name: str, turn: int, seen: Acknowledged) -> None:
    outcome = {"id": f"o-{name}", "transaction_id": name, "label": "fraud" if turn % 4 == 0 else "legitimate"}
    facts = {"amount": float(turn % 50), "vpn": turn % 4 == 0, "new_device": turn % 2 == 0}
    if turn % 3 == 0:
        seen.outcomes.update(each.id for each in client.report(outcome))
    made = client.decide({"id": name, "facts": facts}, idempotency_key=f"k-{name}" if turn % 2 else None)
    seen.decisions[name] = made.decision_id
    if turn % 3:
        seen.outcomes.update(each.id for each in client.report(outcome))
    if turn % 20 == 0:
        revised = {**outcome, "id": f"r-{name}", "label": "legitimate" if outcome["label"] == "fraud" else "fraud"}
        seen.outcomes.update(each.id for each in client.report(revised))


def take_in_all(book: BulletPlaybook) -> None:
    """Judge all that was received. The claim of a worker that was killed counts for a while in a file."""
    learner, deadline = Learner(book), time.monotonic() + 90
    while book.ledger.find_events([OUTCOME_RECEIVED], after=book.taken_in(), limit=1):
        assert time.monotonic() < deadline, "outcomes are still waiting to be judged"
        if not learner.take_in_sync(1_000).count:
            time.sleep(0.5)
        book.refresh()


def check_kept(book: BulletPlaybook, seen: Acknowledged) -> None:
    """Everything acknowledged is in the ledger once, heard once, and the counters are those of a replay."""
    decided: Counter[str] = Counter()
    received: Counter[str] = Counter()
    heard: Counter[str] = Counter()
    ids, replayed = dict[str, str](), PlaybookState()
    for event in book.ledger.read():
        replayed.apply(event)
        match event.payload:
            case DecisionMade(record=record):
                decided[record.transaction_id] += 1
                ids[record.transaction_id] = record.id
            case OutcomeReceived(outcome=outcome):
                received[outcome.id] += 1
            case OutcomeHeard(outcome=outcome, decision_id=decision_id):
                heard[outcome.id] += decision_id is not None
            case _:
                pass
    assert seen.problems == []
    assert {decision: ids.get(decision) for decision in seen.decisions} == seen.decisions, (
        "a decision was lost or changed"
    )
    assert max(decided.values()) == 1, "a transaction was decided twice"
    assert not seen.outcomes - received.keys(), "an outcome was lost"
    assert {each for each in seen.outcomes if heard[each] != 1} == set(), "an outcome was not heard once"
    assert list(replayed.snapshot().table.bullets) == list(book.snapshot().table.bullets)
