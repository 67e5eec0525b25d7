"""Facts with memory in training and deciding: the same both ways, kept with the events, shared between processes."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time as clock
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.effort import rounds
from tests.storage.replaying import cases_of

from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade
from acefraud.core.ledger import Entry
from acefraud.core.outcome import Outcome
from acefraud.core.table import FactTable
from acefraud.core.transaction import Case, FactValue, Transaction
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets import SchemaMapping
from acefraud.engine import entity_memory as remembering
from acefraud.engine.entity_memory import EntityMemory, memory_for
from acefraud.engine.options import LearnerOptions
from acefraud.facts.history import HistoryEvents, HistoryPlan, history_columns
from acefraud.learning.learner import Learner
from acefraud.learning.pipeline import Mode, TrainingPipeline
from acefraud.storage import open_playbook
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.timestamps import micros_of

START = datetime.fromisoformat("2024-03-01T00:00:00+00:00")
PLAN = HistoryPlan(
    entities=("card_id", "shop_id"),
    windows=("24h", "7d"),
    label_patience="20d",
    category="kind",
    latitude="lat",
    longitude="lon",
)
WRITTEN = SchemaMapping(amount="amount", ignore=("card_id", "shop_id"), history=PLAN).describe()
NEVER = 10**9
QUIET = LearnerOptions(review_least=NEVER, review_at_last=NEVER, watch_every=NEVER)
"""Learning is not what is looked at here."""


def pay(name: str, hour: float, card: str = "c", shop: str = "s", **facts: FactValue) -> Transaction:
    return Transaction(
        id=name,
        time=START + timedelta(hours=hour),
        facts={"amount": 10.0, **facts},
        entities={"card_id": card, "shop_id": shop},
    )


def payments(count: int, seed: int = 0) -> list[Case]:
    """An hour or so apart; some late, some again, some without a shop or a place; labels take up to five days."""
    chance = random.Random(seed)
    made: list[Case] = []
    for n in range(count):
        hour = n + chance.random()
        if chance.random() < 0.05:
            hour -= chance.uniform(0, 200)
        place = {"lat": chance.uniform(-60, 60), "lon": chance.uniform(-180, 180)} if chance.random() < 0.9 else {}
        transaction = Transaction(
            id=f"t{n}",
            time=START + timedelta(hours=hour),
            facts={"amount": round(chance.lognormvariate(3, 1), 2), "kind": chance.choice("abc"), **place},
            entities={"card_id": f"c{chance.randint(0, 6)}"}
            | ({"shop_id": f"s{chance.randint(0, 9)}"} if chance.random() < 0.95 else {}),
        )
        known = START + timedelta(hours=max(hour, n) + chance.uniform(0, 120))
        case = Case(transaction=transaction, is_fraud=chance.random() < 0.2, known_at=known)
        made.append(chance.choice(made) if made and chance.random() < 0.03 else case)
    return made


def history_of(cases: Sequence[Case]) -> list[dict[str, FactValue]]:
    """The facts of all of them, in the order in which they come, by the way for whole tables."""

    def codes(values: list[Any]) -> Any:
        names = sorted({value for value in values if value is not None})
        return np.array([-1 if value is None else names.index(value) for value in values], dtype=np.int32)

    def numbers(name: str) -> Any:
        return np.array([case.transaction.facts.get(name, np.nan) for case in cases], dtype=np.float64)

    events = HistoryEvents(
        time=np.array([micros_of(case.transaction.time) for case in cases]),
        entities={entity: codes([case.transaction.entities.get(entity) for case in cases]) for entity in PLAN.entities},
        ids=np.array([case.transaction.id for case in cases]),
        amount=numbers("amount"),
        category=codes([case.transaction.facts.get("kind") for case in cases]),
        latitude=numbers("lat"),
        longitude=numbers("lon"),
        label=np.array([case.is_fraud for case in cases], dtype=np.int8),
        known_at=np.array([micros_of(case.known_at) for case in cases]),
    )
    table = FactTable.of_columns(history_columns(PLAN, events), len(cases))
    return [table.row(index) for index in range(len(cases))]


def more_facts(decision: Decision, case: Case) -> dict[str, FactValue]:
    """What was added to the facts of a transaction."""
    facts = decision.transaction.facts
    assert case.transaction.facts.items() <= facts.items()
    return {name: value for name, value in facts.items() if name not in case.transaction.facts}


async def serve(learner: Learner, cases: Sequence[Case], *, waiting: Sequence[Case], batch: int) -> list[Decision]:
    """Decide cases a few at a time; labels are heard as they become known, those of earlier cases too."""
    decisions: list[Decision] = []
    now, told = START, set[str]()
    known = [*waiting]
    for start in range(0, len(cases), batch):
        some = cases[start : start + batch]
        assert some[0].transaction.time is not None
        now = max(now, some[0].transaction.time)
        for case in sorted(known, key=lambda case: str(case.known_at)):
            if case.known_at and case.known_at <= now and case.transaction.id not in told:
                told.add(case.transaction.id)
                outcome = Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud, at=case.known_at)
                await learner.hear(outcome, case.transaction)
        decisions += await learner.decide_all([case.transaction for case in some])
        now = max(now, *(case.transaction.time for case in some if case.transaction.time))
        known += some
    return decisions


@pytest.fixture
def memory() -> EntityMemory:
    found = memory_for(WRITTEN)
    assert found is not None
    return found


@pytest.fixture
def book(tmp_path: Path) -> Iterator[BulletPlaybook]:
    with open_playbook(tmp_path / "book.db") as opened:
        yield opened


def trained(book: BulletPlaybook, cases: Sequence[Case] = (), **more: Any) -> Learner:
    learner = Learner(book, options=QUIET)
    learner.study(cases, mapping=WRITTEN, both_labels=False, **more)
    return learner


def facts_on(learner: Learner, transaction: Transaction) -> dict[str, FactValue]:
    return asyncio.run(learner.decide(transaction)).facts


# --- the same facts ----------------------------------------------------------------------------------------------


def test_facts_served_are_those_of_the_whole_table(book: BulletPlaybook) -> None:
    cases = payments(300)
    learner = trained(book)
    decisions = asyncio.run(serve(learner, cases, waiting=(), batch=1))
    expected = history_of(cases)
    assert [more_facts(*both) for both in zip(decisions, cases, strict=True)] == expected
    assert any(facts.get("card_known_frauds_7d") for facts in expected)
    assert any("card_kmh_from_last" in facts for facts in expected)


def test_a_batch_counts_within_itself(book: BulletPlaybook) -> None:
    cases = [case.model_copy(update={"known_at": START + timedelta(days=99)}) for case in payments(120)]
    decisions = asyncio.run(serve(trained(book), cases, waiting=(), batch=40))
    assert [more_facts(*both) for both in zip(decisions, cases, strict=True)] == history_of(cases)


@pytest.mark.filterwarnings("ignore::acefraud.InputWarning")  # some payments have no shop
def test_deciding_goes_on_where_training_ended() -> None:
    cases = sorted(
        {case.transaction.id: case for case in payments(240)}.values(), key=lambda c: str(c.transaction.time)
    )
    old, new = cases[:160], cases[160:]
    start = new[0].transaction.time
    known = [case for case in old if case.known_at and start and case.known_at <= start]
    waiting = [case for case in old if case not in known]
    learner = trained(BulletPlaybook(), known, waiting=[case.transaction for case in waiting])
    decisions = asyncio.run(serve(learner, new, waiting=waiting, batch=1))
    expected = history_of(cases)
    facts = {case.transaction.id: case.transaction.facts for case in cases_of(learner.playbook.ledger)}
    for case, more in zip(cases, expected, strict=True):
        if case.transaction.id in facts:
            assert facts[case.transaction.id] == {**case.transaction.facts, **more}
    assert [more_facts(*both) for both in zip(decisions, new, strict=True)] == expected[160:]


def test_only_the_facts_that_the_plan_names_depend_on_labels() -> None:
    cases = payments(300)
    before, after = (history_of([case.model_copy(update={"is_fraud": fraud}) for case in cases]) for fraud in (0, 1))
    changed = {name for each, other in zip(before, after, strict=True) for name in each if each[name] != other[name]}
    assert changed == set(PLAN.label_facts)


def test_a_backtest_sees_no_label_before_it_arrives(memory: EntityMemory) -> None:
    late = replace(memory, plan=HistoryPlan(**{**PLAN.model_dump(), "label_delay": "36h"}))
    cases = Cases.of([Case(transaction=pay(f"t{n}", n), is_fraud=n % 3 == 0) for n in range(100)])
    ledger = BulletPlaybook().ledger
    seen = late.backtested(cases, cases.transactions[:0], ledger).facts.rows()
    for at in (40, 70, 99):
        hidden = np.arange(100) > at - 36
        flipped = Cases(cases.transactions, np.where(hidden, ~cases.labels, cases.labels))
        assert late.backtested(flipped, cases.transactions[:0], ledger).facts.row(at) == seen[at]
        assert seen[at]["card_known_frauds_7d"] == sum(cases.labels[: at - 36 + 1])


def test_of_a_long_history_only_what_windows_reach_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [Case(transaction=pay(f"t{n}", 12 * n), is_fraud=n % 3 == 0) for n in range(60)]
    whole = facts_on(trained(BulletPlaybook(), cases), pay("new", 60 * 12))
    monkeypatch.setattr(remembering, "MOST_ROWS", 59)
    learner = trained(BulletPlaybook(), cases)
    assert facts_on(learner, pay("new", 60 * 12)) == whole
    with learner.playbook.ledger.rows() as rows:
        assert not rows.get_many(["t:t0"])
        assert rows.get_many(["t:t59"])


def test_places_and_categories_may_be_facts_or_columns_that_are_left_out(memory: EntityMemory) -> None:
    as_facts = pay("t1", 0, kind="a", lat=48.1, lon=11.6)
    aside = pay("t1", 0).model_copy(
        update={"entities": {"card_id": "c", "shop_id": "s", "kind": "a", "lat": "48.1", "lon": "east"}}
    )
    seen, other = memory.event(as_facts), memory.event(aside)
    assert (seen.category, seen.latitude, seen.longitude) == ("a", 48.1, 11.6)
    assert (other.category, other.latitude, other.longitude) == ("a", 48.1, None)


# --- deciding and hearing ----------------------------------------------------------------------------------------


def test_deciding_again_counts_once_and_is_the_same_decision(book: BulletPlaybook) -> None:
    learner = trained(book)
    asyncio.run(learner.decide(pay("t1", 0)))
    first = asyncio.run(learner.decide(pay("t2", 1)))
    asyncio.run(learner.decide(pay("t3", 2)))
    assert asyncio.run(learner.decide(pay("t2", 1))) == first
    assert len(book.ledger.transaction_events(["t2"])["t2"].decisions) == 1
    assert facts_on(learner, pay("t4", 3))["card_count_24h"] == 3.0


def test_facts_that_a_transaction_brings_stay(book: BulletPlaybook) -> None:
    learner = trained(book)
    facts = facts_on(learner, pay("t1", 0, card_count_24h=77.0))
    assert (facts["card_count_24h"], facts["card_count_7d"]) == (77.0, 0.0)


def test_a_replay_rests_on_what_was_recorded(book: BulletPlaybook) -> None:
    learner = trained(book)
    decision = asyncio.run(learner.decide(pay("t1", 0)))
    asyncio.run(learner.decide(pay("t0", -1)))
    assert asyncio.run(learner.replay(decision)) == decision


def test_a_transaction_that_was_never_decided_is_remembered_with_its_outcome(book: BulletPlaybook) -> None:
    learner = trained(book)
    asyncio.run(learner.decide(pay("t1", 0)))
    told = pay("t2", 1)
    asyncio.run(learner.hear(Outcome(transaction_id="t2", is_fraud=True), told))
    (case,) = cases_of(book.ledger)
    assert case.transaction.facts["card_count_24h"] == 1.0
    facts = facts_on(learner, pay("t3", 2))
    assert (facts["card_count_24h"], facts["card_known_frauds_24h"]) == (2.0, 1.0)


def test_a_label_without_a_time_is_known_from_the_newest_transaction_on(book: BulletPlaybook) -> None:
    learner = trained(book)
    asyncio.run(learner.decide_all([pay("t1", 0), pay("t2", 30, card="d")]))
    asyncio.run(learner.hear(Outcome(transaction_id="t1", is_fraud=True)))
    assert facts_on(learner, pay("late", 29))["card_known_frauds_24h"] == 0.0
    assert facts_on(learner, pay("t3", 53))["card_known_frauds_24h"] == 1.0


def test_a_revised_outcome_takes_the_place_of_the_first(book: BulletPlaybook) -> None:
    learner = trained(book)
    asyncio.run(learner.decide(pay("t1", 0)))
    for hour, truth in ((1, True), (1, True), (3, False)):
        at = START + timedelta(hours=hour)
        asyncio.run(learner.hear(Outcome(transaction_id="t1", is_fraud=truth, at=at)))
    assert facts_on(learner, pay("t2", 2))["card_known_frauds_24h"] == 1.0
    assert facts_on(learner, pay("t3", 4))["card_known_frauds_24h"] == 0.0


# --- no plan, another plan ---------------------------------------------------------------------------------------


def test_a_mapping_is_read_once(memory: EntityMemory) -> None:
    assert memory_for(WRITTEN) is memory
    assert memory_for("") is None


def test_without_a_plan_nothing_is_remembered(book: BulletPlaybook) -> None:
    learner = Learner(book, options=QUIET)
    decision = asyncio.run(learner.decide(pay("t1", 0)))
    assert decision.transaction == pay("t1", 0)
    with book.ledger.rows() as rows:
        assert not rows.get_many(["mapping", "changes", "clock", "t:t1"])


def test_without_entities_a_transaction_is_written_as_before() -> None:
    text = '{"id":"t1","time":"2024-03-01T00:00:00Z","facts":{"amount":10.0,"é":0.1},"text":"x"}'
    transaction = Transaction(id="t1", time=START, facts={"amount": 10, "é": 0.1}, text="x")
    assert transaction.model_dump_json() == text
    assert Transaction.model_validate_json(text) == transaction
    assert pay("t1", 0).model_dump_json().endswith(',"entities":{"card_id":"c","shop_id":"s"}}')
    with pytest.raises(ValueError, match="entity 'card_id' must have 1 to 1,000 characters, got 0"):
        Transaction(id="t1", text="x", entities={"card_id": ""})


def test_a_training_with_another_plan_begins_anew_and_one_without_ends_it(book: BulletPlaybook) -> None:
    learner = trained(book)
    asyncio.run(learner.decide(pay("t1", 0)))
    learner.study((), mapping=WRITTEN, both_labels=False)
    assert facts_on(learner, pay("t2", 1))["card_count_24h"] == 1.0
    other = SchemaMapping(amount="amount", history=PLAN.model_copy(update={"windows": ("30d",)})).describe()
    learner.study([Case(transaction=pay("t3", 2), is_fraud=True)], mapping=other, both_labels=False)
    assert facts_on(learner, pay("t4", 3))["card_count_30d"] == 1.0
    learner.study((), both_labels=False)
    with book.ledger.rows() as rows:
        assert not rows.get_many(["mapping", "clock"])


def test_a_process_that_has_not_heard_of_a_training_writes_to_the_memory_it_began(
    book: BulletPlaybook, memory: EntityMemory
) -> None:
    learner = trained(book)
    other = SchemaMapping(amount="amount", history=PLAN.model_copy(update={"windows": ("30d",)})).describe()
    learner.study((), mapping=other, both_labels=False)
    book.ledger.append(Entry([], at=START, who="stale", rows=memory.adding([pay("t1", 0)])))
    assert memory.enriched([pay("t2", 1)], book.ledger)[0].facts["card_count_24h"] == 0.0
    assert facts_on(learner, pay("t2", 1))["card_count_30d"] == 1.0


def test_what_is_decided_during_a_training_is_not_lost(book: BulletPlaybook, memory: EntityMemory) -> None:
    learner = trained(book)
    nothing = Transactions.of(())
    studied = memory.studied(Cases.of([Case(transaction=pay("t1", 0), is_fraud=True)]), nothing)
    change = memory.filling(studied, nothing, book.ledger)
    asyncio.run(learner.decide(pay("t2", 1)))
    book.ledger.append(Entry([], at=START, who="the training", rows=change))
    assert facts_on(learner, pay("t3", 2))["card_count_24h"] == 2.0


@pytest.mark.parametrize("mode", Mode)
def test_all_modes_decide_on_the_same_history(mode: Mode) -> None:
    cases = sorted({case.transaction.id: case for case in payments(80)}.values(), key=lambda c: str(c.transaction.time))
    pipeline = TrainingPipeline(options=QUIET)
    run = asyncio.run(pipeline.run(mode, cases[:60], cases[60:], mapping=WRITTEN))
    made = [event.payload for event in run.playbook.ledger.read() if isinstance(event.payload, DecisionMade)]
    served = [more_facts(what.decision, case) for what, case in zip(made, cases[60:], strict=True)]
    counts = [{name: value for name, value in facts.items() if "known" not in name} for facts in history_of(cases)[60:]]
    assert [{name: value for name, value in facts.items() if "known" not in name} for facts in served] == counts
    if mode is Mode.OFFLINE_ONLINE:
        assert served == history_of(cases)[60:]


def test_labels_take_the_usual_delay_where_nothing_says_when_they_came() -> None:
    plan = PLAN.model_copy(update={"label_delay": "12h"})
    written = SchemaMapping(amount="amount", history=plan).describe()
    cases = [Case(transaction=pay(f"t{n}", 6 * n, shop=f"s{n}"), is_fraud=True) for n in range(10)]
    run = asyncio.run(TrainingPipeline(options=QUIET).run(Mode.OFFLINE_ONLINE, cases[:5], cases[5:], mapping=written))
    made = [event.payload for event in run.playbook.ledger.read() if isinstance(event.payload, DecisionMade)]
    assert [what.decision.facts["card_known_frauds_24h"] for what in made] == [4.0] * 5


# --- processes ---------------------------------------------------------------------------------------------------

RUN = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from acefraud import Learner, Outcome, Transaction, open_playbook
from acefraud.engine.options import LearnerOptions
from datetime import UTC, datetime

async def go_on(book, prefix, count):
    never = 10**9
    quiet = LearnerOptions(review_least=never, review_at_last=never, watch_every=never)
    learner = Learner(book, options=quiet)
    print("opened", flush=True)
    sys.stdin.readline()
    n = sum(event.payload.kind == "decision_made" for event in book.ledger.read())
    for n in range(n, n + count):
        time = datetime(2024, 3, 1, tzinfo=UTC) + timedelta(seconds=n)
        name = f"{prefix}{n}"
        entities = {"card_id": "c", "shop_id": "s"}
        await learner.decide(Transaction(id=name, time=time, facts={"amount": 10}, entities=entities))
        print(f"decided {name}", flush=True)
        await learner.hear(Outcome(transaction_id=name, is_fraud=True, at=time))
        print(f"heard {name}", flush=True)

with open_playbook(Path(sys.argv[1])) as book:
    asyncio.run(go_on(book, sys.argv[2], int(sys.argv[3])))
"""


def started(path: Path, prefix: str, count: int) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", RUN, str(path), prefix, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "opened\n"
    return child


def check(path: Path) -> tuple[int, int]:
    """What the memory counts is what the ledger holds, to the last event; how much that is."""
    with open_playbook(path) as book:
        kinds = [event.payload.kind for event in book.ledger.read()]
        memory = memory_for(book.snapshot().mapping)
        assert memory is not None
        facts = memory.enriched([pay("new", 12)], book.ledger)[0].facts
        found = kinds.count("decision_made"), kinds.count("outcome_heard")
        assert (facts["card_count_24h"], facts["shop_known_frauds_24h"]) == found
        return found


@pytest.mark.long
def test_two_processes_share_a_memory(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    with open_playbook(path) as book:
        trained(book)
    children = [started(path, prefix, 25) for prefix in "ab"]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        child.communicate(timeout=120)
        assert child.returncode == 0
    assert check(path) == (50, 50)


def kill_runs(path: Path, times: int, seed: int) -> None:
    chance = random.Random(seed)
    with open_playbook(path) as book:
        trained(book)
    acknowledged = {"decided": 0, "heard": 0}
    for run in range(times):
        with started(path, f"{run}-", 100_000) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write("go\n")
            child.stdin.flush()
            lines = [child.stdout.readline() for _ in range(chance.randint(1, 30))]
            clock.sleep(chance.uniform(0, 0.03))
            child.send_signal(signal.SIGKILL)
            lines += child.stdout.readlines()
        for line in lines:
            if line.endswith("\n"):
                acknowledged[line.split()[0]] += 1
        decided, heard = check(path)
        assert decided >= acknowledged["decided"]
        assert heard >= acknowledged["heard"]


@pytest.mark.long
def test_memory_and_ledger_stay_together_through_many_kills(tmp_path: Path) -> None:
    kill_runs(tmp_path / "book.db", times=rounds(40), seed=2)
