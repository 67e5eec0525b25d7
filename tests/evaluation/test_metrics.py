"""Figures of merit against their plain definitions, and intervals that hold what they promise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from acefraud.evaluation.metrics import (
    METRICS,
    Interval,
    Scored,
    accuracy,
    average_precision,
    bootstrap_interval,
    false_declines,
    fraud_caught,
    in_percent,
    student_interval,
)

Row = tuple[bool, float, bool]
# Few distinct probabilities, so that ties are common.
rows = st.lists(
    st.tuples(st.booleans(), st.integers(0, 5).map(lambda n: n / 5), st.booleans()), min_size=1, max_size=30
)


def scored(rows: list[Row]) -> Scored:
    declined, probabilities, labels = zip(*rows, strict=True)
    return Scored(
        np.array(declined, dtype=np.bool_), np.array(probabilities, dtype=np.float64), np.array(labels, dtype=np.bool_)
    )


def share(values: list[bool]) -> float:
    return sum(values) / len(values) if values else math.nan


def area(rows: list[Row]) -> float:
    """At every cut-off, precision times what recall it adds to the cut-off above."""
    frauds = sum(label for _, _, label in rows)
    total, recall_before = 0.0, 0.0
    for cut in sorted({probability for _, probability, _ in rows}, reverse=True):
        flagged = [label for _, probability, label in rows if probability >= cut]
        recall = sum(flagged) / frauds
        total += share(flagged) * (recall - recall_before)
        recall_before = recall
    return total


@given(rows)
def test_figures_are_what_their_names_say(rows: list[Row]) -> None:
    given_rows = scored(rows)
    expected = {
        accuracy: share([declined == label for declined, _, label in rows]),
        fraud_caught: share([declined for declined, _, label in rows if label]),
        false_declines: share([declined for declined, _, label in rows if not label]),
    }
    for measure, value in expected.items():
        assert measure(given_rows) == pytest.approx(value, nan_ok=True)


@given(rows)
def test_average_precision_against_every_cut_off(rows: list[Row]) -> None:
    if any(label for _, _, label in rows):
        assert average_precision(scored(rows)) == pytest.approx(area(rows))
    else:
        assert math.isnan(average_precision(scored(rows)))


@given(rows, st.randoms(use_true_random=False))
def test_average_precision_does_not_depend_on_the_order_of_rows(rows: list[Row], chance: object) -> None:
    mixed = list(rows)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert average_precision(scored(mixed)) == pytest.approx(average_precision(scored(rows)), nan_ok=True)


def test_average_precision_of_an_even_score_is_the_share_of_fraud() -> None:
    assert average_precision(scored([(False, 0.5, n < 3) for n in range(10)])) == pytest.approx(0.3)


def test_rows_can_be_taken_with_repetition() -> None:
    taken = scored([(True, 0.9, True), (False, 0.1, True)]).take(np.array([0, 0, 1]))
    assert taken.declined.tolist() == [True, True, False]
    assert taken.probabilities.tolist() == [0.9, 0.9, 0.1]
    assert accuracy(taken) == pytest.approx(2 / 3)


# --- intervals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("worlds", [*range(2, 31), 31, 40, 100])
def test_the_interval_student_interval_is_students(worlds: int) -> None:
    values = np.random.default_rng(worlds).normal(0.8, 0.05, worlds).tolist()
    found = student_interval(values)
    low, high = stats.t.interval(0.95, worlds - 1, loc=np.mean(values), scale=stats.sem(values))
    assert found.mean == pytest.approx(np.mean(values))
    assert found.low is not None
    assert found.high is not None
    # Beyond thirty worlds the normal figure stands in for Student's, which is up to 4 % wider.
    tolerance = 0.001 if worlds <= 30 else 0.05
    assert found.high - found.low == pytest.approx(high - low, rel=tolerance)
    assert found.high + found.low == pytest.approx(high + low)


def test_one_world_has_no_interval() -> None:
    assert student_interval([0.7]) == Interval(0.7, None, None)
    assert student_interval([0.7]).as_json() == {"mean": 0.7, "low": None, "high": None}


def test_the_interval_bootstrap_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """150 samples of 80 rows, right with probability 0.7: a 95 % interval covers that 134 to 149 times."""
    generator = np.random.default_rng(7)
    covered = 0
    for _ in range(150):
        right = generator.random(80) < 0.7
        interval = bootstrap_interval(_share_of(right), 80, draws=200)
        assert interval.low is not None
        assert interval.high is not None
        assert interval.low <= interval.mean <= interval.high
        covered += interval.low <= 0.7 <= interval.high
    assert 134 <= covered <= 149


def _share_of(right: npt.NDArray[np.bool_]) -> Callable[[npt.NDArray[np.intp]], float]:
    return lambda drawn: float(np.mean(right[drawn]))


def test_the_interval_bootstrap_interval_is_repeatable_and_passes_over_draws_that_say_nothing() -> None:
    few = scored([(True, 0.9, True), *[(False, 0.1, False)] * 9])

    def measure(drawn: npt.NDArray[np.intp]) -> float:
        return METRICS["fraud_caught"](few.take(drawn))

    assert bootstrap_interval(measure, 10) == bootstrap_interval(measure, 10) == Interval(1.0, 1.0, 1.0)


def test_a_figure_that_can_never_be_measured_has_no_interval() -> None:
    nothing = bootstrap_interval(lambda _: math.nan, 5)
    assert (nothing.low, nothing.high) == (None, None)
    assert nothing.as_json() == {"mean": None, "low": None, "high": None}


def test_percent_for_people() -> None:
    assert in_percent(Interval(0.861, 0.85, 0.872)) == "86.1% (85.0 to 87.2)"
    assert in_percent(Interval(0.061, -0.01, 0.13), signed=True) == "+6.1 (-1.0 to +13.0)"
    assert in_percent(Interval(0.861, None, None)) == "86.1%"
