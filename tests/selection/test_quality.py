"""What a bullet's record is worth where fraud is as common as honesty, and where it is rare."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from acefraud.core.bullet import Bullet
from acefraud.core.evidence import Evidence, Record
from acefraud.core.transaction import Verdict
from acefraud.selection import stages

RELAXED = stages.RELAXATION * 0.3
"""What even a book with too few bullets asks for."""


def quality(bullet: Bullet, base_rate: float) -> float:
    return float(stages.success_of(stages.merits_of([bullet], base_rate))[0])


def bullet(
    argues: Verdict | None, frauds: int, support: int, *, helpful: int = 0, harmful: int = 0, base_rate: float = 0.005
) -> Bullet:
    """A bullet that was measured when it was found and not heard of since."""
    evidence = Evidence(learnt=Record(support=support, frauds=frauds), base_rate=base_rate) if support else None
    return Bullet(id="b", content="x", argues=argues, evidence=evidence, helpful_count=helpful, harmful_count=harmful)


def declining(frauds: int, support: int, **more: int) -> Bullet:
    return bullet(Verdict.DECLINE, frauds, support, **more)


def approving(frauds: int, support: int, **more: int) -> Bullet:
    return bullet(Verdict.APPROVE, frauds, support, **more)


records = st.integers(0, 500).flatmap(lambda support: st.tuples(st.integers(0, support), st.just(support)))
uses = st.tuples(st.integers(0, 200), st.integers(0, 200))
verdicts = st.sampled_from([Verdict.DECLINE, Verdict.APPROVE, None])
base_rates = st.floats(1e-5, 1 - 1e-5)


@settings(max_examples=50)
@given(verdicts, records, uses)
def test_at_one_half_only_the_decisions_count_as_in_the_ace_system(
    argues: Verdict | None, record: tuple[int, int], used: tuple[int, int]
) -> None:
    helpful, harmful = used
    made = bullet(argues, *record, helpful=helpful, harmful=harmful)
    assert stages.merits_of([made], 0.5).tolist() == [[helpful, harmful]]
    assert quality(made, 0.5) == made.success_rate
    drawn = stages.thompson(stages.merits_of([made], 0.5), stages.draws_for(0, "t", 1))
    assert drawn.tolist() == [stages.draws_for(0, "t", 1).beta(helpful + 1, harmful + 1)]


@pytest.mark.parametrize("used", [(0, 0), (20, 80), (0, 100), (1, 99)])
def test_where_fraud_is_rare_a_decline_that_is_right_one_time_in_five_is_good(used: tuple[int, int]) -> None:
    made = declining(20, 100, helpful=used[0], harmful=used[1])
    assert quality(made, 0.005) > 0.8


@pytest.mark.parametrize(("base_rate", "low", "high"), [(0.005, 0.49, 0.52), (0.05, 0.5, 0.6)])
def test_an_approve_that_says_nothing_does_not_look_perfect(base_rate: float, low: float, high: float) -> None:
    frauds = round(10_000 * base_rate)
    made = approving(frauds, 10_000, helpful=10_000 - frauds, harmful=frauds)
    assert made.success_rate == 1 - base_rate
    assert low <= quality(made, base_rate) <= high


def test_an_approve_under_which_more_is_fraud_than_elsewhere_falls_below_one_half() -> None:
    assert quality(approving(60, 10_000, helpful=9_940, harmful=60), 0.005) < 0.5
    assert quality(approving(800, 10_000, helpful=9_200, harmful=800), 0.05) < 0.5
    assert quality(approving(200, 10_000, helpful=9_800, harmful=200), 0.005) < RELAXED


def test_an_approve_under_which_hardly_anything_is_fraud_is_good() -> None:
    assert quality(approving(5, 10_000), 0.005) > 0.8
    assert quality(approving(50, 10_000), 0.05) > 0.8


@pytest.mark.parametrize(("frauds", "base_rate"), [(10, 0.005), (0, 0.005), (80, 0.05)])
def test_a_decline_under_which_less_is_fraud_than_elsewhere_is_thrown_out(frauds: int, base_rate: float) -> None:
    made = declining(frauds, 10_000)
    assert quality(made, base_rate) < RELAXED
    assert stages.quality([(made, True)], stages.merits_of([made], base_rate), 0.3, 5) == []


def test_five_percent_lies_between() -> None:
    made = declining(20, 100, helpful=20, harmful=80)
    found = [quality(made, base_rate) for base_rate in (0.5, 0.2, 0.05, 0.01, 0.005)]
    assert found[0] == 0.2
    assert found == sorted(found)
    assert found[1] < 0.5 < found[2] < 0.8 < found[-1]


@settings(max_examples=50)
@given(st.sampled_from([Verdict.DECLINE, Verdict.APPROVE]), records, uses, base_rates)
def test_one_more_fraud_speaks_for_a_decline_and_against_an_approve(
    argues: Verdict, record: tuple[int, int], used: tuple[int, int], base_rate: float
) -> None:
    frauds, support = record
    assume(frauds < support)
    fewer, more = (
        quality(bullet(argues, count, support, helpful=used[0], harmful=used[1]), base_rate)
        for count in (frauds, frauds + 1)
    )
    assert (more - fewer if argues is Verdict.DECLINE else fewer - more) >= -1e-12


@settings(max_examples=50)
@given(verdicts, records, uses, base_rates, st.floats(-1e-6, 1e-6))
def test_quality_is_a_share_and_does_not_jump_with_the_base_rate(
    argues: Verdict | None, record: tuple[int, int], used: tuple[int, int], base_rate: float, change: float
) -> None:
    made = bullet(argues, *record, helpful=used[0], harmful=used[1])
    before, after = quality(made, base_rate), quality(made, base_rate + change * base_rate * (1 - base_rate))
    assert 0 <= before <= 1
    assert after == pytest.approx(before, abs=1e-4)


@pytest.mark.parametrize("end", [0.0, 1.0])
@settings(max_examples=50)
@given(argues=verdicts, record=records, used=uses)
def test_nor_at_either_end(end: float, argues: Verdict | None, record: tuple[int, int], used: tuple[int, int]) -> None:
    made = bullet(argues, *record, helpful=used[0], harmful=used[1])
    assert quality(made, end) == pytest.approx(quality(made, abs(end - 1e-6)), abs=1e-9)


@settings(max_examples=50)
@given(records, uses, base_rates)
def test_what_argues_for_nothing_or_was_never_measured_is_judged_by_the_decisions_alone(
    record: tuple[int, int], used: tuple[int, int], base_rate: float
) -> None:
    for made in (
        bullet(None, *record, helpful=used[0], harmful=used[1]),
        declining(0, 0, helpful=used[0], harmful=used[1]),
    ):
        assert quality(made, base_rate) == pytest.approx(made.success_rate)


def test_what_was_heard_since_counts_beside_what_was_measured_at_first() -> None:
    learnt = declining(20, 100)
    heard = learnt.model_copy(update={"record": Record(support=20_000, frauds=10)})
    assert quality(learnt, 0.005) > 0.8
    assert quality(heard, 0.005) < RELAXED
