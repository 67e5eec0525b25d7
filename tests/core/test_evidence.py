"""Measured figures: the interval, what a record may hold, and how it is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import binomtest

from acefraud.core.bullet import Evidence, Record, balanced_precision, record_in_words, wilson

counts = st.integers(1, 100_000).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))


@given(counts)
def test_wilson_is_the_interval_that_scipy_gives(figures: tuple[int, int]) -> None:
    successes, trials = figures
    expected = binomtest(successes, trials).proportion_ci(confidence_level=0.95, method="wilson")
    assert wilson(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(counts)
def test_the_share_lies_in_its_interval_and_the_interval_in_zero_to_one(figures: tuple[int, int]) -> None:
    successes, trials = figures
    low, high = wilson(successes, trials)
    assert 0 <= low <= successes / trials + 1e-12
    assert successes / trials - 1e-12 <= high <= 1


def test_without_trials_everything_is_possible() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert Record(support=0, frauds=0).interval == (0.0, 1.0)
    assert Record(support=0, frauds=0).precision is None


@pytest.mark.parametrize(("support", "frauds"), [(3, 4), (-1, 0), (-1, -1), (5, -1)])
def test_a_record_cannot_hold_counts_that_do_not_fit(support: int, frauds: int) -> None:
    with pytest.raises(ValidationError, match="between 0 and support"):
        Record(support=support, frauds=frauds)


@pytest.mark.parametrize(
    ("frauds", "support", "words"),
    [
        (47, 50, "47 of 50 past cases were fraud (94%, 84-98%)"),
        (3, 400, "3 of 400 past cases were fraud (0.8%, 0.3-2.2%)"),
        (1200, 1200, "1,200 of 1,200 past cases were fraud (100.0%, 99.7-100.0%)"),
        (0, 20, "0 of 20 past cases were fraud (0.0%, 0.0-16.1%)"),
        (0, 0, "no past case"),
    ],
)
def test_a_record_in_words(frauds: int, support: int, words: str) -> None:
    assert record_in_words(Record(support=support, frauds=frauds)) == words


def test_lift_is_a_multiple_of_the_base_rate() -> None:
    evidence = Evidence(learnt=Record(support=50, frauds=10), base_rate=0.05)
    assert evidence.lift == pytest.approx(4.0)


@given(counts, st.floats(0.001, 0.999))
def test_balanced_precision_is_a_share_that_every_fraud_raises_and_that_takes_no_side(
    figures: tuple[int, int], base_rate: float
) -> None:
    frauds, support = figures
    found = balanced_precision(frauds, support, base_rate)
    assert 0 < found < 1
    mirrored = balanced_precision(support - frauds, support, 1 - base_rate)
    assert found == pytest.approx(1 - mirrored, abs=1e-9)
    if frauds:
        assert balanced_precision(frauds - 1, support, base_rate) < found


@pytest.mark.parametrize("base_rate", [0.5, 0.05, 0.005])
def test_at_the_base_rate_and_without_cases_balanced_precision_is_one_half(base_rate: float) -> None:
    assert balanced_precision(round(100_000 * base_rate), 100_000, base_rate) == pytest.approx(0.5)
    assert balanced_precision(0, 0, base_rate) == pytest.approx(0.5)


@pytest.mark.parametrize(("base_rate", "expected"), [(0.5, 0.2), (0.05, 0.826), (0.005, 0.980)])
def test_one_in_five_means_more_the_rarer_fraud_is(base_rate: float, expected: float) -> None:
    found = balanced_precision(20_000, 100_000, base_rate)
    assert found == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize("base_rate", [0.0, 1.0])
def test_balanced_precision_is_safe_where_there_was_no_fraud_or_nothing_else(base_rate: float) -> None:
    assert 0 <= balanced_precision(3, 10, base_rate) <= 1


@given(counts, st.floats(1, 4))
def test_a_spread_widens_the_interval_and_the_words_show_it(figures: tuple[int, int], spread: float) -> None:
    learnt = Record(support=figures[1], frauds=figures[0])
    evidence = Evidence(learnt=learnt, base_rate=0.1, spread=spread)
    assert evidence.interval[0] <= learnt.interval[0] + 1e-12
    assert evidence.interval[1] >= learnt.interval[1] - 1e-12
    assert evidence.in_words() == record_in_words(learnt, spread, 0.1)
    assert Evidence(learnt=learnt, base_rate=0.1).interval == learnt.interval


@pytest.mark.parametrize(("support", "base_rate"), [(0, 0.2), (10, 0.0)])
def test_there_is_no_lift_without_cases_or_without_a_base_rate(support: int, base_rate: float) -> None:
    assert Evidence(learnt=Record(support=support, frauds=0), base_rate=base_rate).lift is None


@pytest.mark.parametrize("support", [0, 9, 10, 60])
def test_what_is_shown_comes_from_other_cases_than_it_was_found_in_where_there_are_ten(support: int) -> None:
    learnt, later = Record(support=50, frauds=47), Record(support=support, frauds=support // 10)
    evidence = Evidence(learnt=learnt, base_rate=0.1, later=later)
    assert evidence.shown == (later if support >= 10 else learnt)
    assert evidence.in_words() == record_in_words(evidence.shown, 1.0, 0.1)
