"""The memory that serves one transaction at a time: labels, repeats, storing and forgetting."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.effort import rounds

from acefraud.core.ledger import MemoryRows
from acefraud.core.table import FactTable
from acefraud.facts.history import HistoryEvent, HistoryEvents, HistoryPlan, HistoryState, history_columns
from acefraud.facts.history.entity_state import EntityState
from acefraud.facts.history.plan import DAY, HOUR
from acefraud.support.timestamps import UNKNOWN

Stream = Callable[[int], HistoryEvents]

PLAN = HistoryPlan(entities=("card_id", "shop_id"), windows=("24h", "7d"), label_patience="10d")


def pay(name: str, hour: float, *, card: str = "c", shop: str = "s", amount: float = 10.0) -> HistoryEvent:
    return HistoryEvent(name, round(hour * HOUR), amount, {"card_id": card, "shop_id": shop})


def frauds(state: HistoryState, hour: float) -> tuple[object, object]:
    facts = state.facts(pay(f"at {hour}", hour))
    return facts["card_known_frauds_7d"], facts.get("card_known_fraud_share_7d")


def test_a_label_counts_from_its_arrival_and_a_revision_replaces_it_from_then_on() -> None:
    state = HistoryState(PLAN)
    state.add(pay("t1", 0))
    assert state.hear("t1", True, 10 * HOUR)
    assert state.hear("t1", False, 20 * HOUR)
    assert frauds(state, 9) == (0.0, None)
    assert frauds(state, 10) == (1.0, 1.0)
    assert frauds(state, 20) == (0.0, 0.0)
    assert state.hear("t1", False, 30 * HOUR), "the same truth again is no news"
    assert frauds(state, 20 + 7 * 24) == (0.0, None)


def test_a_truth_that_is_heard_last_counts_even_if_it_became_known_first() -> None:
    state = HistoryState(PLAN)
    state.add(pay("t1", 0))
    for truth, hour in ((True, 10), (False, 30), (True, 20)):
        assert state.hear("t1", truth, hour * HOUR)
    assert [frauds(state, hour)[0] for hour in (10, 20, 30, 40)] == [1.0, 1.0, 1.0, 1.0]


def test_labels_never_arrive_before_their_transaction() -> None:
    state = HistoryState(PLAN)
    state.add(pay("t1", 5))
    state.hear("t1", True, 0)
    assert frauds(state, 4) == (0.0, None)
    assert frauds(state, 5) == (1.0, 1.0)


def test_labels_of_unknown_and_forgotten_transactions_and_labels_that_come_too_late_are_refused() -> None:
    state = HistoryState(PLAN)
    state.add(pay("t1", 0))
    assert not state.hear("t2", True, 0)
    assert not state.hear("t1", True, 17 * DAY)
    state.add(pay("t3", 17 * 24))
    assert not state.hear("t1", True, HOUR)
    assert state._remembered("t1") is None


def test_a_repeated_transaction_has_the_facts_it_had_and_counts_once() -> None:
    state = HistoryState(PLAN)
    state.add(pay("t1", 0))
    first = state.facts(pay("t2", 1))
    state.add(pay("t2", 1))
    state.add(pay("t3", 2))
    state.add(pay("t2", 1))
    assert state.facts(pay("t2", 1)) == first
    assert state.facts(pay("t4", 3))["card_count_24h"] == 3.0


def test_without_a_time_or_an_entity_there_are_no_facts() -> None:
    state = HistoryState(PLAN)
    state.add(HistoryEvent("t1", None, 5.0, {"card_id": "c"}))
    assert state.facts(HistoryEvent("t1", None, 5.0, {"card_id": "c"})) == {}
    only_card = state.facts(HistoryEvent("t2", 0, 5.0, {"card_id": "c"}))
    assert only_card["card_count_7d"] == 0.0
    assert not any(name.startswith("shop_") or name == "card_new_shop" for name in only_card)


def test_nothing_is_stored_before_it_is_flushed_and_all_of_it_then() -> None:
    store = MemoryRows()
    state = HistoryState(PLAN, store, cache=1)
    state.add(pay("t1", 0))
    state.add(pay("t2", 1, card="d"))
    state.hear("t1", True, HOUR)
    assert not store.rows
    expected = state.facts(pay("t3", 2))
    state.flush()
    assert state.facts(pay("t3", 2)) == expected
    assert HistoryState(PLAN, store).facts(pay("t3", 2)) == expected


def test_an_entity_survives_being_dumped() -> None:
    store = MemoryRows()
    state = HistoryState(HistoryPlan(entities=("a_id", "b_id"), category="k", latitude="x", longitude="y"), store)
    for number in range(5):
        entities = {"a_id": "ä ü 'x'", "b_id": f"\ud800{number % 2}"}
        state.add(HistoryEvent(f"t{number}", number * HOUR, None, entities, "k" if number else None, 48.1, 11.6))
        state.hear(f"t{number}", number == 3, (number + 1) * HOUR)
    state.flush()
    kept = [row for key, row in store.rows.items() if key.startswith("e:")]
    assert len(kept) == 3
    assert [EntityState.load(row).dump() for row in kept] == kept


def test_the_memory_of_a_busy_entity_stays_bounded() -> None:
    """Four weeks of a payment every quarter of an hour, each at a new shop."""
    plan = HistoryPlan(entities=("card_id", "shop_id"), windows=("24h", "2d"), label_patience="3d", pair_memory=100)
    store = MemoryRows()
    state = HistoryState(plan, store, cache=10)
    sizes, counts = [], []
    for number in range(4 * 7 * 96):
        state.add(pay(f"t{number}", number / 4, shop=f"s{number}"))
        state.hear(f"t{number}", number % 7 == 0, (number + 200) * HOUR // 4)
        if number % 96 == 95:
            state.flush()
            sizes.append(len(store.rows["e:card:c"]))
            counts.append(sum(not key.startswith("e:shop:") for key in store.rows))
    assert max(sizes[10:]) <= 1.1 * sizes[9]
    assert max(sizes) < 30_000
    assert max(counts[10:]) <= counts[9] + 300


def test_the_row_of_a_busy_entity_stays_small_and_its_facts_near_the_exact_ones() -> None:
    """Two thousand payments a day at one shop, by five thousand cards."""
    plan = HistoryPlan(entities=("card_id", "shop_id"), windows=("24h", "4d"), label_patience="1d", pair_memory=1000)
    store, dice = MemoryRows(), np.random.default_rng(1)
    state = HistoryState(plan, store)
    cards, kept = dice.integers(0, 5_000, 12_000).tolist(), []
    for number, card in enumerate(cards):
        state.add(pay(f"t{number}", number * 0.012, card=f"c{card}"))
        state.hear(f"t{number}", number % 10 == 0, round(number * 0.012 * HOUR))
        if number % 1000 == 999:
            state.flush()
            kept.append(sum(key.startswith("p:") for key in store.rows))
    assert max(len(row) for key, row in store.rows.items() if key.startswith("e:")) < 20_000
    assert max(kept) < 5_300, "a row for each card and a page for every few"
    facts = HistoryState(plan, store).facts(pay("new", 12_000 * 0.012))
    exact = {"24h": 2_000, "4d": 8_000}
    for window, count in exact.items():
        assert 0.96 * count <= float(facts[f"shop_count_{window}"]) <= count
        assert facts[f"shop_sum_{window}"] == 10 * float(facts[f"shop_count_{window}"])
        assert float(facts[f"shop_known_frauds_{window}"]) == pytest.approx(0.1 * count, rel=0.05)
        distinct = len(set(cards[-count:]))
        assert 0.96 * distinct <= float(facts[f"shop_distinct_card_{window}"]) <= distinct


OF_EARLIER_VERSIONS = {
    "e:card:c": b'{"n":2,"t":[0,3600000000],"a":[100000,null],"c":null,"o":[["s"],["u"]],"p":null,'
    b'"l":[[7200000000,0,1,null]],"m":[[0,"s",0,0],[0,"u",3600000000,1]]}',
    "e:shop:s": b'{"n":1,"t":[0],"a":[100000],"c":null,"o":[["c"]],"p":null,"l":[[7200000000,0,1,null]],'
    b'"m":[[0,"c",0,0]]}',
    "t:t0": b'[0,{"e:card:c":["card_id",0],"e:shop:s":["shop_id",0]},[0.0,null,true],true]',
    "clock": b"[3600000000,0,0,[]]",
    "q:0": b'[3600000000,0,0,["t0","t1"]]',
}


def test_rows_of_earlier_versions_can_be_read() -> None:
    store = MemoryRows()
    store.put_many(OF_EARLIER_VERSIONS)
    state = HistoryState(PLAN, store)
    facts = state.facts(pay("t2", 3))
    assert (facts["card_count_24h"], facts["card_sum_24h"], facts["card_known_frauds_7d"]) == (2.0, 10.0, 1.0)
    assert (facts["card_distinct_shop_24h"], facts["card_new_shop"], facts["shop_new_card"]) == (2.0, False, False)
    assert state.hear("t0", False, 3 * HOUR)
    assert state.facts(pay("t2", 3))["card_known_frauds_7d"] == 0.0
    state.add(pay("t2", 3))
    state.flush()
    assert HistoryState(PLAN, store).facts(pay("t3", 4))["card_count_24h"] == 3.0


def test_a_label_of_a_busy_entity_is_revised() -> None:
    state = HistoryState(PLAN)
    for number in range(400):
        state.add(pay(f"t{number}", number / 100))
        state.hear(f"t{number}", number < 10, round(number / 100 * HOUR))
    assert frauds(state, 4) == (10.0, 10 / 400)
    assert state.hear("t0", False, 4 * HOUR)
    assert frauds(state, 4) == (9.0, 9 / 400)


def test_labels_of_the_time_to_come_wait_until_it_has_come() -> None:
    store = MemoryRows()
    state = HistoryState(PLAN, store)
    for number in range(100):
        state.add(pay(f"t{number}", number / 100))
    state.hear_later([((2 + number) * HOUR, f"t{number}", True) for number in range(50)])
    state.hear_later([((2 + number) * HOUR, f"t{number}", True) for number in range(50, 100)])
    state.flush()
    state = HistoryState(PLAN, store)
    assert state.hear("t20", False, 2 * HOUR)
    assert [frauds(state, hour)[0] for hour in (1.5, 2, 12.5, 70)] == [0.0, 1.0, 11.0, 68.0]
    state.add(pay("last", 200))
    state.flush()
    assert not any(key.startswith("l:") for key in store.rows)


def events_of(columns: HistoryEvents) -> list[HistoryEvent]:
    assert columns.amount is not None
    assert columns.category is not None
    assert columns.latitude is not None
    assert columns.longitude is not None
    assert columns.ids is not None
    return [
        HistoryEvent(
            id=str(columns.ids[row]),
            time_us=int(columns.time[row]),
            amount=float(columns.amount[row]),
            entities={name: str(codes[row]) for name, codes in columns.entities.items() if codes[row] >= 0},
            category=str(columns.category[row]) if columns.category[row] >= 0 else None,
            latitude=float(columns.latitude[row]),
            longitude=float(columns.longitude[row]),
        )
        for row in range(len(columns))
    ]


@pytest.mark.parametrize("count", [4_000, pytest.param(rounds(100_000), marks=pytest.mark.long)])
def test_a_long_stream_is_the_same_at_once_and_one_by_one_stored_midway(stream: Stream, count: int) -> None:
    plan = HistoryPlan(
        entities=("card_id", "shop_id"), label_delay="7d", category="kind", latitude="lat", longitude="lon",
        pair_memory=50,
    )  # fmt: skip
    columns = stream(count)
    assert columns.label is not None
    assert columns.known_at is not None
    at_once = FactTable.of_columns(history_columns(plan, columns), count)
    store = MemoryRows()
    state = HistoryState(plan, store)
    found = []
    for row, event in enumerate(events_of(columns)):
        found.append(state.facts(event))
        is_new = state._remembered(event.id) is None
        state.add(event)
        if is_new and columns.label[row] >= 0:
            known_at = columns.known_at[row]
            said = int(known_at if known_at != UNKNOWN else columns.time[row] + plan.delay)
            state.hear(event.id, bool(columns.label[row]), said)
        if row % (count // 3) == count // 3 - 1:
            state.flush()
            state = HistoryState(plan, store)
    one_by_one = FactTable(found)
    assert one_by_one.names == at_once.names == sorted(plan.facts(amounts=True))
    for name in at_once.names:
        assert np.array_equal(one_by_one.numbers(name), at_once.numbers(name), equal_nan=True), name
        assert np.array_equal(one_by_one.flags(name), at_once.flags(name)), name
    assert 0.05 < np.nanmean(at_once.numbers("shop_known_fraud_share_30d")) < 0.15
