"""Parting a dataset lets nothing slip through."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.transaction import Case, FactValue, Transaction
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets import Dataset, load_dataset
from acefraud.datasets.dataset import first_alike
from acefraud.errors import ConfigurationError

START = datetime(2025, 1, 1, tzinfo=UTC)
DATA = Path(os.environ.get("ACEFRAUD_DATA") or Path(__file__).parents[2].parent / "shared" / "data")


def case(n: int, *, fraud: bool = False, hour: int | None = None, value: float | None = None) -> Case:
    time = None if hour is None else START + timedelta(hours=hour)
    transaction = Transaction(id=f"t{n}", time=time, facts={"amount": n if value is None else value})
    return Case(transaction=transaction, is_fraud=fraud)


def ids(cases: Iterable[Case]) -> list[str]:
    return [each.transaction.id for each in cases]


@given(st.lists(st.integers(0, 20), min_size=2, max_size=40), st.floats(0.05, 0.95))
def test_a_split_by_time_tests_on_what_came_later(hours: list[int], share: float) -> None:
    dataset = Dataset("x", tuple(case(n, hour=hour) for n, hour in enumerate(hours))).split(share)
    assert dataset.has_time
    cases = [*dataset.train, *dataset.test]
    assert sorted(ids(cases)) == sorted(f"t{n}" for n in range(len(hours)))
    assert len(dataset.test) == round(share * len(hours))
    times = [each.transaction.time for each in cases]
    assert times == sorted(times)


labelled = st.lists(st.tuples(st.booleans(), st.integers(0, 15)), min_size=2, max_size=60)


@given(labelled, st.integers(2, 6), st.integers(0, 3))
def test_folds_are_disjoint_cover_all_and_keep_equal_rows_together(
    rows: list[tuple[bool, int]], k: int, seed: int
) -> None:
    dataset = Dataset("x", tuple(case(n, fraud=fraud, value=value) for n, (fraud, value) in enumerate(rows)))
    distinct = len({value for _, value in rows})
    assert dataset.duplicates == len(rows) - distinct
    if k > distinct:
        with pytest.raises(ConfigurationError, match=f"k must be between 2 and the {distinct} distinct rows, got {k}"):
            dataset.folds(k, seed)
        return
    folds = dataset.folds(k, seed)
    assert sorted(id_ for _, test in folds for id_ in ids(test)) == sorted(ids(dataset.train))
    for train, test in folds:
        assert len(train) + len(test) == len(rows)
        assert not {c.transaction.facts["amount"] for c in train} & {c.transaction.facts["amount"] for c in test}
    assert dataset.folds(k, seed) == folds


def test_folds_and_splits_without_time_share_out_the_frauds() -> None:
    dataset = Dataset("x", tuple(case(n, fraud=n % 5 == 0) for n in range(100)))
    assert [sum(c.is_fraud for c in test) for _, test in dataset.folds(5, seed=1)] == [4] * 5
    parted = dataset.split(0.3, seed=1)
    assert (len(parted.test), sum(c.is_fraud for c in parted.test), parted.frauds) == (30, 6, 14)
    assert parted.split(0.3, seed=2).test != parted.test
    assert set(ids(parted.train)).isdisjoint(ids(parted.test))


def test_a_dataset_is_a_sequence_over_its_train_rows() -> None:
    dataset = Dataset("x", tuple(case(n, hour=n) for n in range(10))).split(0.3)
    assert (len(dataset), dataset[-1].transaction.id, ids(dataset[5:])) == (7, "t6", ["t5", "t6"])
    assert not set(ids(dataset)) & set(ids(dataset.test))


def test_duplicates_can_be_dropped_and_are_counted() -> None:
    dataset = Dataset("x", (case(1), case(2, value=1), case(3)), (case(4, value=3),))
    bare = dataset.without_duplicates()
    assert (ids(bare.train), ids(bare.test), bare.dropped) == (["t1", "t3"], [], 2)


@pytest.mark.parametrize("share", [0, 1, -0.5, 2])
def test_invalid_shares_are_refused(share: float) -> None:
    with pytest.raises(ConfigurationError, match="test_share must be between 0 and 1"):
        Dataset("x", (case(1),)).split(share)


def test_a_dataset_is_shown_by_its_size_and_not_by_its_rows() -> None:
    dataset = Dataset("cards", [case(n, hour=n, fraud=n == 2) for n in range(2000)]).split(0.25)
    assert repr(dataset) == "Dataset('cards', train=1,500, test=500, frauds=1)"


def test_a_split_by_time_builds_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [case(n, hour=-n % 7) for n in range(20)]
    whole = Dataset("x", rows)
    with monkeypatch.context() as patched:
        patched.setattr(Cases, "_row", None)
        patched.setattr(Transactions, "_row", None)
        parted = whole.split(0.3)
        assert (parted.has_time, parted.frauds, len(parted.with_history())) == (True, 0, 14)
    assert [*parted.train, *parted.test] == list(Cases.of(rows).in_order())


def test_a_dataset_may_be_empty() -> None:
    dataset = Dataset("x", [])
    assert (list(dataset), list(dataset.test), list(dataset.waiting)) == ([], [], [])
    assert (dataset.frauds, dataset.duplicates, dataset.has_time) == (0, 0, True)
    assert len(dataset.without_duplicates().split(0.3).with_history()) == 0


@given(st.lists(st.tuples(st.sampled_from([0.0, -0.0, 1.0, True, False, "1.0", "a", None]), st.sampled_from("xy "))))
def test_rows_are_alike_if_their_facts_and_texts_are(rows: list[tuple[FactValue | None, str]]) -> None:
    cases = [
        Case(
            transaction=Transaction(
                id=f"t{n}", facts={"always": "w"} if value is None else {"odd": value, "always": "w"}, text=text
            ),
            is_fraud=False,
        )
        for n, (value, text) in enumerate(rows)
    ]
    first: dict[object, int] = {}
    same = [(each.transaction.text, frozenset(each.transaction.facts.items())) for each in cases]
    assert first_alike(Cases.of(cases)).tolist() == [first.setdefault(each, n) for n, each in enumerate(same)]


@dataclass(frozen=True)
class Public:
    """What is known of a public file."""

    file: str
    rows: int
    fraud_share: float
    facts: int
    has_time: bool = True
    unlabelled: int = 0


PUBLIC = [
    Public("complex_fraud_detection.json", 83, 0.4819, 0, has_time=False),
    Public("cloudwalk/data.csv", 3_199, 0.1222, 5),
    Public("ecommerce/data.csv", 51_689, 0.0935, 10, unlabelled=1),
    Public("evalml_fraud/data.csv", 99_992, 0.1518, 13),
    Public("vehicle_insurance/data.csv", 15_420, 0.0599, 31, has_time=False),
    pytest.param(Public("card_handbook/data.parquet", 1_754_155, 0.0084, 5), marks=pytest.mark.long),
]


@pytest.mark.filterwarnings("ignore:.*likely leak:acefraud.errors.InputWarning")
@pytest.mark.parametrize("public", PUBLIC, ids=lambda public: public.file)
def test_public_datasets_load_without_a_mapping(public: Public) -> None:
    path = DATA / public.file
    if not path.exists():
        pytest.skip(f"{public.file} is not there; ACEFRAUD_DATA names the folder that holds it")
    dataset = load_dataset(path)
    assert (len(dataset), dataset.unlabelled, dataset.bad_rows) == (public.rows, public.unlabelled, ())
    assert dataset.frauds / public.rows == pytest.approx(public.fraud_share, abs=5e-5)
    assert dataset.has_time is public.has_time
    assert len({fact for each in dataset[:500] for fact in each.transaction.facts}) == public.facts
