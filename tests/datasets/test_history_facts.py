"""The history of a whole dataset gives what deciding its transactions one by one would have given."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acefraud.core.ledger import MemoryRows
from acefraud.core.table import FactTable
from acefraud.core.transaction import Case, FactValue, Transaction
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets import Dataset, SchemaMapping, load_dataset
from acefraud.datasets.history_facts import history_facts
from acefraud.engine.entity_memory import EntityMemory, memory_for
from acefraud.facts.history import HistoryPlan, HistoryState
from acefraud.support.timestamps import UNKNOWN, micros_of

START = datetime(2025, 1, 1, tzinfo=UTC)
PLAN = HistoryPlan(
    entities=("user", "card"),
    windows=("1h", "24h", "7d"),
    label_delay="2d",
    category="shop",
    latitude="lat",
    longitude="lon",
)
MAPPING = SchemaMapping(amount="sum", ignore=("user", "card", "lat", "lon"), history=PLAN)


def payment(dice: random.Random, number: int, *, repeats: bool, unknown_times: bool) -> Transaction:
    facts: dict[str, FactValue] = {"other": 1.0}
    if dice.random() < 0.9:
        facts["amount"] = dice.choice([5.0, 12.25, 80.0, 999.99])
    entities = {"user": f"u{dice.randrange(5)}", "card": f"c{dice.randrange(4)}"}
    if dice.random() < 0.1:
        del entities[dice.choice(["user", "card"])]
    if dice.random() < 0.8:
        shops: list[FactValue] = ["food", "books", "5.0", 5.0, True]
        facts["shop"] = dice.choice(shops)
    elif dice.random() < 0.5:
        entities["shop"] = "food"
    if dice.random() < 0.8:
        entities |= {"lat": f"{dice.uniform(40, 50):.3f}", "lon": dice.choice(["8.5", "nowhere", "9"])}
    elif dice.random() < 0.5:
        longitudes: list[FactValue] = [8.5, "9.25", True]
        facts |= {"lat": 47.5, "lon": dice.choice(longitudes)}
    time = START + timedelta(minutes=dice.randrange(20_000))
    return Transaction(
        id=f"t{dice.randrange(40) if repeats and dice.random() < 0.3 else number}",
        time=None if unknown_times and dice.random() < 0.05 else time,
        facts=facts,
        entities=entities,
    )


def labelled(dice: random.Random, transaction: Transaction) -> Case:
    known_at = None
    if transaction.time is not None and dice.random() < 0.3:
        known_at = transaction.time + timedelta(hours=dice.randrange(100))
    return Case(transaction=transaction, is_fraud=dice.random() < 0.3, known_at=known_at)


def memory_of(mapping: SchemaMapping) -> EntityMemory:
    memory = memory_for(mapping.describe())
    assert memory is not None
    return memory


def one_by_one(memory: EntityMemory, cases: Cases, waiting: Sequence[Transaction]) -> list[dict[str, FactValue]]:
    """Each transaction in its turn, its label when it arrives."""
    rows = [*((case.transaction, case) for case in cases), *((each, None) for each in waiting)]
    places = Transactions.of([transaction for transaction, _ in rows]).order().tolist()
    state = HistoryState(memory.plan, MemoryRows(), amounts=memory.amounts)
    found: dict[int, dict[str, FactValue]] = {}
    for place in places:
        transaction, case = rows[place]
        event = memory.event(transaction)
        found[place] = state.facts(event)
        state.add(event)
        if case is not None and (case.known_at or transaction.time):
            known_at = case.known_at or (transaction.time or START) + timedelta(days=2)
            state.hear(transaction.id, case.is_fraud, micros_of(known_at))
    return [found[index] for index in range(len(cases))]


@pytest.mark.parametrize("places_are_facts", [False, True])
@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("unknown_times", [False, True])
@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("waiting_rows", [0, 40])
def test_it_equals_what_the_memory_gives(
    waiting_rows: int, repeats: bool, unknown_times: bool, in_order: bool, places_are_facts: bool
) -> None:
    dice = random.Random(f"{waiting_rows} {repeats} {unknown_times} {in_order} {places_are_facts}")
    rows = [payment(dice, number, repeats=repeats, unknown_times=unknown_times) for number in range(200 + waiting_rows)]
    if in_order:
        rows.sort(key=lambda row: row.time or START)
    cases = Cases.of([labelled(dice, row) for row in rows[:200]])
    waiting = Transactions.of(rows[200:])
    ignored = ("user", "card") if places_are_facts else MAPPING.ignore
    mapping = MAPPING.model_copy(update={"ignore": ignored})
    memory = memory_of(mapping)
    facts = FactTable.of_columns(history_facts(mapping, cases, waiting), len(cases))
    derived = [facts.row(index) for index in range(len(cases))]
    studied = memory.studied(cases, waiting)
    before = [case.transaction.facts for case in cases]
    assert derived == [
        {name: value for name, value in case.transaction.facts.items() if name not in own}
        for case, own in zip(studied, before, strict=True)
    ]
    if not repeats:  # of an id that comes again the memory hears a second truth, which may be another
        assert derived == one_by_one(memory, cases, waiting)
    assert set(facts.names) == set(memory.facts)


def test_columns_of_a_file_give_the_same_as_its_rows(tmp_path: Path) -> None:
    dice = random.Random(4)
    lines = ["tx_id,time,user_id,card_id,sum,shop,lat,lon,label"]
    for number in range(150):
        row = payment(dice, number, repeats=False, unknown_times=False)
        cells = [row.id, row.time, row.entities.get("user"), row.entities.get("card"), row.facts.get("amount")]
        cells += [row.facts.get("shop"), row.entities.get("lat"), row.entities.get("lon"), dice.choice(["0", "1", ""])]
        lines.append(",".join("" if cell is None else str(cell) for cell in cells))
    path = tmp_path / "payments.csv"
    path.write_text("\n".join(lines))
    plan = PLAN.model_copy(update={"entities": ("user_id", "card_id")})
    data = load_dataset(path, mapping=SchemaMapping(amount="sum", history=plan, ignore=("lat", "shop")))
    assert len(data.waiting) == data.unlabelled > 0
    facts = FactTable.of_columns(history_facts(data.mapping, data.train, data.waiting), len(data))
    studied = memory_of(data.mapping).studied(data.train, data.waiting)
    assert [case.transaction.facts | facts.row(index) for index, case in enumerate(data)] == [
        case.transaction.facts for case in studied
    ]


def test_without_a_history_there_is_nothing_to_derive() -> None:
    cases = Cases.of([Case(transaction=Transaction(id="a", text="x"), is_fraud=True)])
    assert history_facts(SchemaMapping(), cases, Transactions.of(())).names == []
    assert history_facts(MAPPING, Cases.of(()), Transactions.of(())).names == []


# --- a whole dataset ---------------------------------------------------------------------------------------------

CARDS = """time,card,amount,label
2025-01-04 00:00,c1,30,0
2025-01-01 00:00,c1,10,1
2025-01-01 12:00,c1,5,
2025-01-02 00:00,c1,20,0
"""


def cards(folder: Path) -> Dataset:
    path = folder / "cards.csv"
    path.write_text(CARDS)
    plan = HistoryPlan(entities=("card",), windows=("7d",), label_delay="2d")
    return load_dataset(path, mapping=SchemaMapping(time="time", history=plan))


def test_the_past_of_an_entity_becomes_plain_facts(tmp_path: Path) -> None:
    before = cards(tmp_path)
    data = before.with_history()
    facts = data.train.facts
    assert facts.numbers("amount").tolist() == [10, 20, 30]
    assert facts.numbers("card_count_7d").tolist() == [0, 2, 3], "what waits for its label has happened"
    assert facts.numbers("card_known_frauds_7d").tolist() == [0, 0, 1]
    assert "card" not in facts.names
    assert data[0].transaction.entities == {"card": "c1"}
    delays = [case.known_at and case.known_at - (case.transaction.time or START) for case in data]
    assert delays == [timedelta(days=2)] * 3
    assert not data.waiting
    assert data.mapping == before.mapping.model_copy(update={"history": None})
    assert [case.known_at for case in before] == [None] * 3, "the dataset itself stays as it was"
    assert data.with_history().train == data.train


def test_test_rows_see_the_past_in_the_training_rows(tmp_path: Path) -> None:
    parted = cards(tmp_path).split(0.3)
    data = parted.with_history()
    assert (len(data.train), len(data.test)) == (2, 1)
    whole = cards(tmp_path).with_history()
    assert [*data.train, *data.test] == list(whole)


def test_a_fact_that_a_case_brings_itself_stays(tmp_path: Path) -> None:
    path = tmp_path / "cards.csv"
    path.write_text("time,card,card_count_7d,x,label\n2025-01-01,c1,77,1,0\n2025-01-02,c1,,2,1\n2025-01-03,c1,,3,1\n")
    plan = HistoryPlan(entities=("card",), windows=("7d",))
    data = load_dataset(path, mapping=SchemaMapping(time="time", history=plan)).with_history()
    assert data.train.facts.numbers("card_count_7d").tolist() == [77, 1, 2]


def test_a_dataset_without_a_history_is_only_put_in_order(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("time,x,label\n2025-01-02,1,0\n2025-01-01,2,1\n")
    before = load_dataset(path)
    data = before.with_history()
    assert data.train.facts.numbers("x").tolist() == [2, 1]
    assert data.train.known_at.tolist() == [UNKNOWN] * 2
    assert data.mapping == before.mapping


def test_rows_without_times_stay_as_they_are() -> None:
    rows = [Transaction(id=f"t{n}", facts={"amount": float(n)}, entities={"card": "c"}) for n in range(3)]
    mapping = SchemaMapping(history=HistoryPlan(entities=("card",)))
    data = Dataset("x", [Case(transaction=row, is_fraud=False) for row in rows], mapping=mapping).with_history()
    assert [case.transaction.id for case in data] == ["t0", "t1", "t2"]
    assert data.train.facts.names == ["amount"], "a fact that no row knows is none"


def test_a_column_can_be_a_category_and_an_entity(tmp_path: Path) -> None:
    file = tmp_path / "shops.csv"
    file.write_text(
        "id,time,shop,amount,label\n1,2025-01-01,north,5,0\n2,2025-01-02,north,7,1\n3,2025-01-03,south,9,0\n", "utf-8"
    )
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('categories = ["shop"]\n[history]\nentities = ["shop"]\nwindows = ["7d"]\n', "utf-8")
    facts = load_dataset(file, mapping=mapping).with_history().train.facts
    assert facts.row(1)["shop"] == "north"
    assert any(name.startswith("shop_") for name in facts.row(1))
