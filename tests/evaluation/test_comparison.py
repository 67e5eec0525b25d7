"""The comparison: parts without leaks, the same figures however many processes, paired differences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from acefraud.core.transaction import Case, Transaction
from acefraud.core.transactions import Cases
from acefraud.datasets import Dataset, load_dataset
from acefraud.datasets.world import WorldOptions
from acefraud.errors import InputError
from acefraud.evaluation.compare import CURVE_POINTS, Part, compare_parts, parts_of_file, parts_of_worlds
from acefraud.evaluation.comparison import Comparison
from acefraud.evaluation.metrics import METRICS
from acefraud.learning.pipeline import Mode

pytestmark = pytest.mark.wide

START = datetime(2024, 3, 1, tzinfo=UTC)


def cases(count: int = 100, *, timed: bool = True) -> tuple[Case, ...]:
    generator = np.random.default_rng(4)
    amounts, vpn, noise = generator.integers(10, 4000, count), generator.random(count) < 0.5, generator.random(count)
    return tuple(
        Case(
            transaction=Transaction(
                id=f"c{n}",
                time=START + timedelta(hours=n) if timed else None,
                facts={"amount": float(amounts[n]), "vpn": bool(vpn[n])},
            ),
            is_fraud=bool((amounts[n] > 2000 and vpn[n]) != (noise[n] < 0.05)),
        )
        for n in range(count)
    )


def ids(some: Sequence[Case]) -> list[str]:
    return [case.transaction.id for case in some]


def world(seed: int) -> Dataset:
    return load_dataset("complex_fraud_detection", seed=seed, options=WorldOptions(transactions=150))


@pytest.fixture(scope="module")
def two_worlds() -> Comparison:
    return compare_parts(list(parts_of_worlds(world, [0, 1])), name="worlds", independent=True, processes=1)


# --- parts -------------------------------------------------------------------------------------------------------


def test_each_seed_has_a_world_of_its_own_split_by_time() -> None:
    first, second = parts_of_worlds(world, [0, 1])
    assert (first.seed, second.seed) == (0, 1)
    assert first.test != second.test
    latest = max(case.transaction.time for case in first.train if case.transaction.time)
    earliest = min(case.transaction.time for case in first.test if case.transaction.time)
    assert latest <= earliest
    assert first.rows == tuple(range(len(first.test)))


def test_a_file_with_times_is_split_once_by_time_for_every_seed() -> None:
    parts = list(parts_of_file(Dataset("x", cases()), [0, 1, 2], test_share=0.25))
    assert [part.seed for part in parts] == [0, 1, 2]
    for part in parts:
        assert (ids(part.train), ids(part.test)) == (ids(cases()[:75]), ids(cases()[75:]))
        assert part.rows == tuple(range(75, 100))


def test_folds_test_every_row_once_and_never_train_on_it() -> None:
    data = Dataset("x", cases(60, timed=False))
    for seed in (0, 1):
        parts = list(parts_of_file(data, [seed], folds=4))
        assert sorted(row for part in parts for row in part.rows) == list(range(60))
        for part in parts:
            assert not set(ids(part.train)) & set(ids(part.test))
            assert len(part.train) + len(part.test) == 60
            assert [ids(data.train)[row] for row in part.rows] == ids(part.test)


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (cases(), (), "there are no rows to test on"),
        (cases(), tuple(case for case in cases() if case.is_fraud), "the test part has only one kind of label"),
        (tuple(case for case in cases() if not case.is_fraud), cases(), "the train part has only one kind of label"),
    ],
)
def test_parts_that_can_show_nothing_are_refused(train: tuple[Case, ...], test: tuple[Case, ...], message: str) -> None:
    part = Part(0, Cases.of(train), Cases.of(test), tuple(range(len(test))))
    with pytest.raises(InputError, match=message) as refused:
        compare_parts([part], name="x.csv", independent=False, processes=1)
    assert refused.value.file == "x.csv"


# --- figures -----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_same_figures_however_many_processes() -> None:
    parts = list(parts_of_worlds(world, [0, 1]))
    in_one, in_two = (compare_parts(parts, name="worlds", independent=True, processes=count) for count in (1, 2))
    assert json.dumps(in_two.as_json()) == json.dumps(in_one.as_json())


def test_figures_are_means_over_worlds_and_differences_are_paired(two_worlds: Comparison) -> None:
    assert two_worlds.method == "Student's t over 2 independent worlds"
    alone = [
        compare_parts(list(parts_of_worlds(world, [seed])), name="one", independent=True, processes=1)
        for seed in (0, 1)
    ]
    for metric in METRICS:
        for mode in Mode:
            each = [one.modes[mode].figures[metric].mean for one in alone]
            assert two_worlds.modes[mode].figures[metric].mean == pytest.approx(np.mean(each))
        gaps = [
            one.modes[Mode.OFFLINE_ONLINE].figures[metric].mean - one.modes[Mode.VANILLA].figures[metric].mean
            for one in alone
        ]
        found = two_worlds.differences[Mode.OFFLINE_ONLINE, Mode.VANILLA][metric]
        half = 12.706 * np.std(gaps, ddof=1) / np.sqrt(2)
        assert found.mean == pytest.approx(np.mean(gaps))
        assert found.high == pytest.approx(np.mean(gaps) + half)
        assert found.low == pytest.approx(np.mean(gaps) - half)


def test_a_single_world_and_a_file_take_their_interval_from_the_rows() -> None:
    file = compare_parts(list(parts_of_file(Dataset("x", cases()), [0, 1])), name="x", independent=False, processes=1)
    assert file.method == "bootstrap over 30 test rows"
    assert (file.rows, file.test_rows, file.seeds) == (100, 30, 2)
    figure = file.modes[Mode.VANILLA].figures["accuracy"]
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low < figure.mean < figure.high
    same = file.differences[Mode.ONLINE_ONLY, Mode.VANILLA]["accuracy"]
    assert same.low is not None
    assert same.low <= same.mean


def test_the_curve_is_accuracy_along_the_stream(two_worlds: Comparison) -> None:
    for got in two_worlds.modes.values():
        assert len(got.curve) == CURVE_POINTS
        assert all(0 <= point <= 1 for point in got.curve)
        assert np.mean(got.curve) == pytest.approx(got.figures["accuracy"].mean, abs=0.05)


def test_folds_are_put_back_in_the_order_of_the_rows() -> None:
    data = Dataset("x", cases(60, timed=False))
    result = compare_parts(list(parts_of_file(data, [0], folds=2)), name="x", independent=False, processes=1)
    assert result.test_rows == 60
    alone = compare_parts(list(parts_of_file(data, [0], folds=2)), name="x", independent=False, processes=1)
    assert alone.as_json() == result.as_json()
    # Vanilla learns nothing, so its figures are those of deciding each row by itself.
    from acefraud import SimpleFraudAgent

    right = [SimpleFraudAgent().analyze(case.transaction) is case.answer for case in data.train]
    assert result.modes[Mode.VANILLA].figures["accuracy"].mean == pytest.approx(np.mean(right))


def test_json_has_no_times_of_the_clock_and_the_names_that_scripts_rely_on(two_worlds: Comparison) -> None:
    content = two_worlds.as_json()
    assert list(content["modes"]) == ["vanilla", "online_only", "offline_online"]
    for figures in content["modes"].values():
        assert set(figures) == {*METRICS, "bullets", "bullets_cited", "curve"}
    assert set(content["differences"]["online_only_vs_vanilla"]) == set(METRICS)
    assert content["sample"]
    assert "seconds" not in json.dumps(content)


def test_progress_counts_every_part_in_every_mode() -> None:
    told: list[float] = []
    parts = list(parts_of_file(Dataset("x", cases()), [0]))
    compare_parts(parts, name="x", independent=False, processes=1, progress=told.append)
    assert told == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]


# --- label delay -------------------------------------------------------------------------------------------------


def test_labels_that_come_after_the_end_teach_nothing() -> None:
    """With every label arriving too late, learning on the way can do no more than not learning."""
    late = tuple(case.model_copy(update={"known_at": START + timedelta(days=365)}) for case in cases(160))
    at_once = compare_parts([_part(cases(160))], name="x", independent=False, processes=1)
    delayed = compare_parts([_part(late)], name="x", independent=False, processes=1)
    assert delayed.modes[Mode.ONLINE_ONLY].figures == delayed.modes[Mode.VANILLA].figures
    assert delayed.modes[Mode.ONLINE_ONLY].bullets == 0
    assert at_once.modes[Mode.ONLINE_ONLY].bullets > 0
    assert delayed.modes[Mode.VANILLA].figures == at_once.modes[Mode.VANILLA].figures


def _part(some: tuple[Case, ...]) -> Part:
    return Part(0, Cases.of(some[:40]), Cases.of(some[40:]), tuple(range(40, len(some))))
