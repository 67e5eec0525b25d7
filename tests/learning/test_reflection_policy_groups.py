"""Cases of one kind: every place in exactly one group, the same groups every time, whatever is unknown."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.table import Columns, FactTable
from acefraud.core.transaction import FactValue
from acefraud.learning.model_lessons import case_vectors, nearest_rows, similar_groups

FACTS = st.fixed_dictionaries(
    {},
    optional={
        "amount": st.floats(0, 1e6),
        "days": st.floats(-10, 10),
        "vpn": st.booleans(),
        "country": st.sampled_from(["DE", "FR", "US", "NG", "RO", "BR", "JP"]),
        "mixed": st.one_of(st.floats(0, 1), st.booleans(), st.text(max_size=3)),
    },
)
ROWS = st.lists(FACTS, min_size=1, max_size=40)


@given(rows=ROWS, size=st.integers(1, 7), data=st.data())
def test_groups_part_the_places(rows: list[dict[str, FactValue]], size: int, data: st.DataObject) -> None:
    vectors = case_vectors(FactTable(rows))
    places = data.draw(st.lists(st.integers(0, len(rows) - 1), unique=True))
    groups = similar_groups(places, vectors, size)
    assert sorted(at for group in groups for at in group) == sorted(places)
    assert all(1 <= len(group) <= size for group in groups)
    assert all(len(group) == size for group in groups[:-1]), "only the last may be smaller"
    left = list(places)
    for group in groups:
        assert group[0] == left[0], "each stands around the first that is left"
        left = [at for at in left if at not in group]
    assert similar_groups(places, vectors, size) == groups


@given(rows=ROWS)
def test_vectors_are_numbers_between_0_and_1(rows: list[dict[str, FactValue]]) -> None:
    vectors = case_vectors(FactTable(rows))
    assert vectors.shape[0] == len(rows)
    assert np.isfinite(vectors).all()
    assert ((vectors >= 0) & (vectors <= 1)).all()


@given(rows=ROWS, wanted=st.integers(0, 6), data=st.data())
def test_the_nearest_are_among_the_others(rows: list[dict[str, FactValue]], wanted: int, data: st.DataObject) -> None:
    vectors = case_vectors(FactTable(rows))
    order = data.draw(st.permutations(range(len(rows))))
    cut = data.draw(st.integers(1, len(rows)))
    places, others = order[:cut], order[cut:]
    found = nearest_rows(places, others, vectors, wanted)
    assert len(found) == min(wanted, len(others)) == len(set(found))
    assert set(found) <= set(others)
    centre = vectors[places].mean(axis=0)
    far = {other: float(np.linalg.norm(vectors[other] - centre)) for other in others}
    assert [far[at] for at in found] == pytest.approx(sorted(far.values())[: len(found)])


def test_without_any_facts_the_order_decides() -> None:
    vectors = case_vectors(FactTable([{}, {}, {}, {}, {}]))
    assert vectors.shape == (5, 0)
    assert similar_groups([3, 1, 4, 0, 2], vectors, 2) == [[3, 1], [4, 0], [2]]
    assert nearest_rows([0], [4, 2], vectors, 1) == [4]
    assert similar_groups([], vectors, 2) == []


def test_columns_of_which_nothing_is_known() -> None:
    columns = Columns(
        {"amount": np.full(3, np.nan)},
        {"vpn": np.full(3, -1, dtype=np.int8)},
        {"country": (np.full(3, -1, dtype=np.int32), ()), "city": (np.full(3, -1, dtype=np.int32), ("Bonn",))},
    )
    vectors = case_vectors(FactTable.of_columns(columns, 3))
    assert np.unique(vectors, axis=0).shape[0] == 1, "all are alike"
    assert (vectors[:, :2] == 0.5).all()


def test_the_unknown_stands_in_the_middle() -> None:
    table = FactTable([{"amount": 1.0, "vpn": True}, {"amount": 900.0, "vpn": False}, {"amount": 5.0}, {}])
    assert case_vectors(table).tolist() == [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]


def test_one_huge_amount_does_not_make_all_others_alike() -> None:
    vectors = case_vectors(FactTable([{"amount": amount} for amount in (1.0, 2.0, 50.0, 60.0, 1e9)]))
    assert similar_groups([0, 1, 2, 3], vectors, 2) == [[0, 1], [2, 3]]
    assert similar_groups([0, 2, 4], vectors, 2) == [[0, 2], [4]]


def test_only_the_commonest_words_count() -> None:
    words = [word for index, word in enumerate("abcdefgh") for _ in range(10 - index)]
    assert case_vectors(FactTable([{"word": word} for word in words])).shape == (len(words), 5)


def test_those_that_are_alike_come_together() -> None:
    rows: list[dict[str, FactValue]] = [{"amount": 10.0 + n, "vpn": bool(n % 2), "country": "DE"} for n in range(10)]
    groups = similar_groups(range(10), case_vectors(FactTable(rows)), 5)
    assert [{at % 2 for at in group} for group in groups] == [{0}, {1}]
