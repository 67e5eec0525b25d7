"""The tests to grow from: thresholds a person would say, categories, flags and what is missing."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acefraud.core.condition import Op, Test
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.embedded.induction.candidates import CandidateOptions, candidate_tests, roundest

magnitudes = st.floats(1e-5, 1e9)
intervals = st.tuples(magnitudes, st.floats(1e-4, 1.0), st.sampled_from([1, -1])).map(
    lambda drawn: (drawn[0], drawn[0] * (1 + drawn[1])) if drawn[2] > 0 else (-drawn[0] * (1 + drawn[1]), -drawn[0])
)


def digits_of(figure: float) -> int:
    """Significant digits in the shortest decimal that is this number."""
    return len(Decimal(repr(figure)).normalize().as_tuple().digits)


def fewest_digits(low: float, high: float) -> int:
    """Significant digits of the shortest decimal in the interval, found by trying 1, 2, 3, ..."""
    exponent = math.floor(math.log10(max(abs(low), abs(high))))
    for digits in range(1, 18):
        step = Decimal(10) ** (exponent - digits + 1)
        if (Decimal(low) / step).to_integral_value(rounding="ROUND_CEILING") * step <= Decimal(high):
            return digits
    return 18


@settings(max_examples=200)
@given(intervals)
def test_the_roundest_figure_lies_in_the_interval(interval: tuple[float, float]) -> None:
    low, high = interval
    assert low <= roundest(low, high) <= high


@settings(max_examples=200)
@given(intervals)
def test_the_roundest_figure_is_no_longer_than_halves_and_quarters_allow(interval: tuple[float, float]) -> None:
    # 2.5 and 0.25 are as easily said as 3 and 0.3, and cost one digit more than the shortest decimal.
    assert digits_of(roundest(*interval)) <= fewest_digits(*interval) + 1


@settings(max_examples=100)
@given(intervals, st.sampled_from([Decimal("1"), Decimal("0.5")]))
def test_a_power_of_ten_or_half_of_one_is_said_where_only_one_fits(
    interval: tuple[float, float], fraction: Decimal
) -> None:
    low, high = interval
    exponent = math.floor(math.log10(max(abs(low), abs(high))))
    wanted = fraction * Decimal(10) ** exponent * (1 if high > 0 else -1)
    if Decimal(low) <= wanted <= Decimal(high):
        assert digits_of(roundest(low, high)) <= 2


@pytest.mark.parametrize(
    ("low", "high", "figure"),
    [
        (1870.0, 2130.0, 2000.0),
        (0.231, 0.274, 0.25),
        (3.4, 4.4, 4.0),
        (-1.0, 2.0, 0.0),
        (0.0, 5.0, 0.0),
        (-530.0, -480.0, -500.0),
        (7.0, 7.0, 7.0),
        (0.123456, 0.123457, 0.123456),
        (29.5, 30.5, 30.0),
    ],
)
def test_the_roundest_figure_by_example(low: float, high: float, figure: float) -> None:
    assert roundest(low, high) == figure


def candidates_in(rows: list[dict[str, FactValue]], labels: list[bool], **options: int) -> list[Test]:
    return candidate_tests(FactTable(rows), np.array(labels), CandidateOptions(**options))


def test_few_whole_numbers_are_cut_at_each_of_them() -> None:
    rows: list[dict[str, FactValue]] = [{"count": float(i % 3)} for i in range(30)]
    found = candidates_in(rows, [False] * 30)
    assert set(found) == {Test("count", op, value) for op in (Op.AT_LEAST, Op.BELOW) for value in (1.0, 2.0)}


def test_rare_frauds_get_thresholds_of_their_own() -> None:
    generator = np.random.default_rng(0)
    values = [*generator.uniform(0, 1000, 2000), *generator.uniform(990.0, 991.0, 20)]
    rows: list[dict[str, FactValue]] = [{"amount": float(value)} for value in values]

    def within(labels: list[bool]) -> int:
        found = candidates_in(rows, labels)
        return len({t.value for t in found if isinstance(t.value, float) and 989.5 <= t.value <= 991.5})

    assert within([False] * 2000 + [True] * 20) >= 3
    assert within([False] * 2020) == 0


def test_every_threshold_separates_some_rows_from_others() -> None:
    generator = np.random.default_rng(1)
    rows: list[dict[str, FactValue]] = [{"amount": float(v)} for v in generator.lognormal(3, 2, 500)]
    table = FactTable(rows)
    found = candidates_in(rows, list(generator.random(500) < 0.1))
    assert len(found) >= 20
    assert all(0 < int(test.in_table(table)[0].sum()) < 500 for test in found)


def test_categories_need_support_and_the_most_common_come_first() -> None:
    words = ["common"] * 50 + ["usual"] * 20 + ["rare"] * 4
    rows: list[dict[str, FactValue]] = [{"channel": word} for word in words]
    assert candidates_in(rows, [False] * 74) == [Test("channel", Op.IS, "common"), Test("channel", Op.IS, "usual")]
    assert candidates_in(rows, [False] * 74, most_categories=1) == [Test("channel", Op.IS, "common")]


def test_flags_and_missing_values_are_tests_too() -> None:
    rows: list[dict[str, FactValue]] = [{"card_seen": i % 2 == 0} if i < 20 else {} for i in range(40)]
    assert set(candidates_in(rows, [False] * 40)) == {
        Test("card_seen", Op.IS, True),
        Test("card_seen", Op.IS, False),
        Test("card_seen", Op.MISSING),
    }


def test_that_a_text_does_not_mention_a_thing_is_no_test() -> None:
    rows: list[dict[str, FactValue]] = [{"vpn": i % 2 == 0} if i < 20 else {} for i in range(40)]
    assert set(candidates_in(rows, [False] * 40)) == {Test("vpn", Op.IS, True), Test("vpn", Op.IS, False)}


@pytest.mark.parametrize("rows", [[], [{}] * 20, [{"amount": 5.0}] * 20])
def test_facts_that_tell_nothing_apart_give_no_tests(rows: list[dict[str, FactValue]]) -> None:
    assert candidates_in(rows, [False] * len(rows)) == []
