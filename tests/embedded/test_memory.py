"""The bounded memory of labelled cases: columns that never disagree with the cases they were read from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acefraud.core.condition import Condition
from acefraud.core.transaction import Case, Transaction
from acefraud.embedded.induction.candidates import CandidateOptions
from acefraud.embedded.memory import CaseMemory
from acefraud.embedded.scorecard import points_for

CONDITION = Condition.parse("amount > 5 and vpn is true")


def case(name: str, amount: float, is_fraud: bool) -> Case:
    return Case(transaction=Transaction(id=name, facts={"amount": amount, "vpn": amount % 2 == 0}), is_fraud=is_fraud)


cases_given = st.builds(case, st.integers(0, 15).map(str), st.integers(0, 12).map(float), st.booleans())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(cases_given, max_size=5), max_size=12))
def test_columns_agree_with_the_cases_whatever_is_remembered_or_revised(batches: list[list[Case]]) -> None:
    memory = CaseMemory(10, CandidateOptions(least_support=1))
    expected: dict[str, Case] = {}
    for batch in batches:
        memory.remember(batch)
        for each in batch:
            if expected.get(each.transaction.id) != each:
                expected.pop(each.transaction.id, None)
                expected[each.transaction.id] = each
        if len(expected) > 10:
            expected = dict(list(expected.items())[len(expected) - 8 :])
        kept = list(expected.values())
        assert len(memory) == len(kept) <= 10
        assert memory.labels.tolist() == [each.is_fraud for each in kept]
        assert memory.mask(CONDITION).tolist() == [CONDITION.holds(each.transaction.facts) for each in kept]
        points = [sum(point.points for point in points_for(each.transaction.facts)) for each in kept]
        assert memory.knowledge().tolist() == pytest.approx(points)
        tests, matrix = memory.candidates()
        assert matrix.shape == (len(kept), len(tests))
        for place, test in enumerate(tests):
            assert (matrix[:, place] > 0).tolist() == [test.on(each.transaction.facts) is True for each in kept]


def test_the_oldest_cases_make_room() -> None:
    memory = CaseMemory(100, CandidateOptions())
    memory.remember(case(f"t{i}", float(i), i % 2 == 0) for i in range(250))
    assert len(memory) <= 100
    assert memory.table.numbers("amount").tolist() == [float(i) for i in range(250 - len(memory), 250)]


def test_a_revised_label_replaces_the_one_before() -> None:
    memory = CaseMemory(10, CandidateOptions())
    memory.remember([case("a", 6.0, True), case("b", 8.0, False)])
    assert np.array_equal(memory.labels, [True, False])
    memory.remember([case("a", 6.0, False)])
    assert len(memory) == 2
    assert memory.labels.tolist() == [False, False]
    assert memory.mask(CONDITION).tolist() == [True, True]


def test_hearing_a_case_again_changes_nothing() -> None:
    memory = CaseMemory(10, CandidateOptions())
    memory.remember([case("a", 6.0, True), case("b", 8.0, False)])
    memory.remember([case("a", 6.0, True)])
    assert memory.table.numbers("amount").tolist() == [6.0, 8.0]
