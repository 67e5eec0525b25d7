"""The bounded memory of labelled cases, and what it says of a condition."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.bullet import ENOUGH_TO_SHOW, Record
from acefraud.core.condition import Condition
from acefraud.core.transaction import Case, FactValue, Transaction
from acefraud.core.transactions import Cases
from acefraud.roles.embedded.case_memory import APART_FROM, APART_SHARE, CaseMemory, LabelledFacts
from acefraud.rules.scorecard import points_for
from acefraud.support.timestamps import UNKNOWN

CONDITION = Condition.parse("amount > 5 and vpn is true")
START = datetime(2025, 1, 1, tzinfo=UTC)


def case(name: str, amount: float, is_fraud: bool) -> Case:
    facts: dict[str, FactValue] = {"amount": amount, "vpn": amount % 2 == 0}
    if amount % 3 == 0:
        facts["shop"] = f"shop {amount}"  # a word that other batches do not have
    return Case(transaction=Transaction(id=name, facts=facts), is_fraud=is_fraud)


def facts_of_cases(*cases: Case) -> LabelledFacts:
    return LabelledFacts.of(Cases.of(cases))


cases_given = st.builds(case, st.integers(0, 15).map(str), st.integers(0, 12).map(float), st.booleans())


@given(st.lists(st.tuples(st.lists(cases_given, max_size=5), st.booleans()), max_size=12))
def test_columns_agree_with_the_cases_whatever_is_remembered_or_revised(batches: list[tuple[list[Case], bool]]) -> None:
    memory, expected = CaseMemory(10), dict[str, Case]()
    for batch, look in batches:
        memory.add(facts_of_cases(*batch))
        for each in batch:
            expected.pop(each.transaction.id, None)
            expected[each.transaction.id] = each
        if look:
            assert len(memory) == min(10, len(expected))
    kept = list(expected.values())[-10:]
    found = memory.cases
    assert found.ids.tolist() == [each.transaction.id for each in kept]
    assert found.labels.tolist() == [each.is_fraud for each in kept]
    assert [found.facts.row(index) for index in range(len(kept))] == [each.transaction.facts for each in kept]
    assert CONDITION.holds_in(found.facts).tolist() == [CONDITION.holds(each.transaction.facts) for each in kept]
    assert found.frauds == sum(each.is_fraud for each in kept)


def test_cases_that_were_handed_out_stay_as_they_were() -> None:
    memory, seen = CaseMemory(40), list[tuple[LabelledFacts, list[str], list[dict[str, FactValue]]]]()
    for start in range(0, 150, 5):
        memory.add(facts_of_cases(*(case(f"t{i % 137}", float(i), i % 2 == 0) for i in range(start, start + 5))))
        found = memory.cases
        seen.append((found, found.ids.tolist(), found.facts.rows()))
    assert all(found.ids.tolist() == ids and found.facts.rows() == rows for found, ids, rows in seen)


def test_the_oldest_cases_make_room() -> None:
    memory = CaseMemory(100)
    for start in range(0, 250, 25):
        memory.add(facts_of_cases(*(case(f"t{i}", float(i), i % 2 == 0) for i in range(start, start + 25))))
    assert memory.cases.facts.numbers("amount").tolist() == [float(i) for i in range(150, 250)]


def test_a_memory_without_room_keeps_nothing() -> None:
    memory = CaseMemory(0)
    memory.add(facts_of_cases(case("a", 6.0, True)))
    assert len(memory) == 0
    memory.add(facts_of_cases(case("b", 6.0, True)))
    assert memory.cases.ids.tolist() == []


def test_a_revised_label_replaces_the_one_before_and_counts_as_the_latest() -> None:
    memory = CaseMemory(10)
    memory.add(facts_of_cases(case("a", 6.0, True), case("b", 8.0, False)))
    memory.add(facts_of_cases(case("a", 6.0, False)))
    assert memory.cases.ids.tolist() == ["b", "a"]
    assert memory.cases.labels.tolist() == [False, False]


def test_forgetting_leaves_nothing() -> None:
    memory = CaseMemory(10)
    memory.add(facts_of_cases(case("a", 6.0, True)))
    memory.clear()
    assert len(memory) == 0
    assert memory.cases.measure(CONDITION) is None
    memory.add(facts_of_cases(case("b", 6.0, True)))
    assert memory.cases.ids.tolist() == ["b"]


def test_what_is_not_looked_at_twice_is_put_together_once() -> None:
    memory = CaseMemory(10)
    memory.add(facts_of_cases(case("a", 6.0, True)))
    memory.add(facts_of_cases())
    assert memory.cases is memory.cases


def test_general_knowledge_has_a_say_where_cases_were_told_in_words() -> None:
    told = Case(transaction=Transaction(id="t", text="User attempts $900 purchase over a VPN"), is_fraud=True)
    assert facts_of_cases(case("a", 6.0, True)).knowledge() == (None, {})
    memory = CaseMemory(10)
    memory.add(facts_of_cases(case("a", 6.0, True)))
    memory.add(facts_of_cases(told))
    assert memory.cases.from_texts
    sums, _ = memory.cases.knowledge()
    assert sums is not None
    points = [sum(point.points for point in points_for(memory.cases.facts.row(index))) for index in range(2)]
    assert sums.tolist() == pytest.approx(points)
    assert points[1] != 0


# --- what the cases say of a condition ---------------------------------------------------------------------------


def history(count: int, *, timed: bool = True, seed: int = 0) -> tuple[list[Case], LabelledFacts]:
    dice = np.random.default_rng(seed)
    cases = [
        Case(
            transaction=Transaction(
                id=str(index),
                time=START + timedelta(hours=index) if timed else None,
                facts={"amount": float(dice.integers(0, 10)), "vpn": bool(dice.random() < 0.7)},
            ),
            is_fraud=bool(dice.random() < 0.3),
        )
        for index in range(count)
    ]
    return cases, facts_of_cases(*cases)


def record(cases: list[Case]) -> Record:
    held = [each for each in cases if CONDITION.holds(each.transaction.facts)]
    return Record(support=len(held), frauds=sum(each.is_fraud for each in held))


def test_evidence_is_what_plain_counting_gives() -> None:
    cases, labelled = history(400)
    evidence = labelled.measure(CONDITION)
    assert evidence is not None
    assert (evidence.learnt, evidence.later, evidence.cases) == (record(cases), None, 400)
    assert evidence.base_rate == pytest.approx(sum(each.is_fraud for each in cases) / 400)
    held = [each.transaction.time for each in cases if CONDITION.holds(each.transaction.facts)]
    assert (evidence.first_seen, evidence.last_seen) == (held[0], held[-1])


def test_the_latest_cases_are_counted_apart() -> None:
    cases, labelled = history(400)
    evidence = labelled.measure(CONDITION, apart=True)
    assert evidence is not None
    cut = 400 - int(400 * APART_SHARE)
    assert (evidence.learnt, evidence.later, evidence.cases) == (record(cases[:cut]), record(cases[cut:]), 400 - cut)


def test_by_their_times_and_not_by_their_places() -> None:
    cases, _ = history(400)
    mixed = [cases[at] for at in np.random.default_rng(1).permutation(400)]
    evidence = facts_of_cases(*mixed).measure(CONDITION, apart=True)
    assert evidence is not None
    assert (evidence.learnt, evidence.later) == (record(cases[:320]), record(cases[320:]))


def test_without_times_some_are_drawn_and_the_same_ones_each_time() -> None:
    cases, labelled = history(400, timed=False)
    assert labelled.times.tolist() == [UNKNOWN] * 400
    evidence = labelled.measure(CONDITION, apart=True)
    assert evidence is not None
    assert evidence.later is not None
    assert evidence == labelled.measure(CONDITION, apart=True)
    both, whole = (evidence.learnt, evidence.later), record(cases)
    assert (sum(each.support for each in both), sum(each.frauds for each in both)) == (whole.support, whole.frauds)
    assert evidence.later != record(cases[320:]), "the order of a file says nothing"
    assert (evidence.first_seen, evidence.last_seen) == (None, None)


def test_of_few_cases_none_can_be_spared() -> None:
    cases, labelled = history(APART_FROM - 1)
    evidence = labelled.measure(CONDITION, apart=True)
    assert evidence is not None
    assert (evidence.learnt, evidence.later) == (record(cases), None)


def test_where_either_part_has_too_few_they_are_counted_together() -> None:
    cases, _ = history(400)
    rare = [
        each.model_copy(update={"transaction": each.transaction.model_copy(update={"facts": {"amount": 1.0}})})
        if index >= 320 and index - 320 >= ENOUGH_TO_SHOW
        else each
        for index, each in enumerate(cases)
    ]
    assert 0 < record(rare[320:]).support < ENOUGH_TO_SHOW
    evidence = facts_of_cases(*rare).measure(CONDITION, apart=True)
    assert evidence is not None
    assert (evidence.learnt, evidence.later, evidence.cases) == (record(rare), None, 400)


def test_some_of_the_cases_say_what_they_say() -> None:
    cases, labelled = history(50)
    some = labelled.take(np.array([4, 2, 9]))
    assert some.ids.tolist() == ["4", "2", "9"]
    assert [some.facts.row(index) for index in range(3)] == [cases[at].transaction.facts for at in (4, 2, 9)]
    assert some.timed
