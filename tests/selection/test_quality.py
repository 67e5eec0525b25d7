"""What a bullet's record is worth where fraud is as common as honesty, and where it is rare."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from acefraud.core.bullet import Bullet, Claim, Evidence, Record, Source, Status, balanced_precision
from acefraud.core.bullet_table import BulletTable
from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict
from acefraud.roles.embedded.agent import weight_of, weights_in
from acefraud.selection import stages
from acefraud.selection.bullet_stats import RAREST, beta, good_in_use, key_for, merits_in, stats_of, success_of

RELAXED = stages.RELAXATION * 0.3
"""What even a book with too few bullets asks for."""


def table_of(*bullets: Bullet) -> BulletTable:
    return BulletTable.of(bullets)


def merits(bullet: Bullet, base_rate: float) -> list[float]:
    found: list[float] = merits_in(table_of(bullet).columns, base_rate)[0].tolist()
    return found


def quality(bullet: Bullet, base_rate: float) -> float:
    return float(success_of(merits_in(table_of(bullet).columns, base_rate))[0])


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


@given(verdicts, records, uses)
def test_at_one_half_only_the_decisions_count_as_in_the_ace_system(
    argues: Verdict | None, record: tuple[int, int], used: tuple[int, int]
) -> None:
    helpful, harmful = used
    made = bullet(argues, *record, helpful=helpful, harmful=harmful)
    assert merits(made, 0.5) == [helpful, harmful]
    assert quality(made, 0.5) == made.success_rate
    worth = stats_of(table_of(made), 0.5)
    assert (worth.shapes.a.tolist(), worth.shapes.b.tolist()) == ([helpful + 1], [harmful + 1])
    assert 0 <= beta(worth.keys ^ key_for(0, "t", 1), worth.shapes)[0] <= 1


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
    assert good_in_use(table_of(made), 0, None, base_rate, RELAXED).bits == 0


def test_five_percent_lies_between() -> None:
    made = declining(20, 100, helpful=20, harmful=80)
    found = [quality(made, base_rate) for base_rate in (0.5, 0.2, 0.05, 0.01, 0.005)]
    assert found[0] == 0.2
    assert found == sorted(found)
    assert found[1] < 0.5 < found[2] < 0.8 < found[-1]


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


@given(verdicts, records, uses, base_rates, st.floats(-1e-6, 1e-6))
def test_quality_is_a_share_and_does_not_jump_with_the_base_rate(
    argues: Verdict | None, record: tuple[int, int], used: tuple[int, int], base_rate: float, change: float
) -> None:
    made = bullet(argues, *record, helpful=used[0], harmful=used[1])
    before, after = quality(made, base_rate), quality(made, base_rate + change * base_rate * (1 - base_rate))
    assert 0 <= before <= 1
    assert after == pytest.approx(before, abs=1e-4)


@pytest.mark.parametrize("end", [0.0, 1.0])
@given(argues=verdicts, record=records, used=uses)
def test_nor_at_either_end(end: float, argues: Verdict | None, record: tuple[int, int], used: tuple[int, int]) -> None:
    made = bullet(argues, *record, helpful=used[0], harmful=used[1])
    assert quality(made, end) == pytest.approx(quality(made, abs(end - 1e-6)), abs=1e-9)


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


# --- columns say what the bullets say ----------------------------------------------------------------------------

some_records = records.map(lambda pair: Record(support=pair[1], frauds=pair[0]))
rates = st.floats(0, 1)
any_bullets = st.lists(
    st.builds(
        Bullet,
        id=st.just("b"),
        content=st.just("x"),
        node=st.sampled_from(["fraud_detection", "other"]),
        source=st.sampled_from(Source),
        status=st.sampled_from(Status),
        argues=verdicts,
        condition=st.sampled_from([None, Condition.parse("amount > 100")]),
        evidence=st.none() | st.builds(Evidence, learnt=some_records, later=st.none() | some_records, base_rate=rates),
        claim=st.sampled_from([None, Claim(fraud_share=0.9, words="90% fraud")]),
        weight=st.none() | st.floats(-6, 6),
        helpful_count=st.integers(0, 200),
        harmful_count=st.integers(0, 200),
        record=some_records,
    ),
    min_size=1,
    max_size=6,
).map(lambda some: [each.model_copy(update={"id": f"b{index}"}) for index, each in enumerate(some)])


def plain_merits(bullet: Bullet, base_rate: float) -> list[float]:
    base = min(max(base_rate, RAREST), 1 - RAREST)
    balance = 4 * base * (1 - base)
    helpful, harmful = balance * bullet.helpful_count, balance * bullet.harmful_count
    shown = bullet.evidence.shown if bullet.evidence else Record(support=0, frauds=0)
    support, frauds = shown.support + bullet.record.support, shown.frauds + bullet.record.frauds
    if bullet.argues is None or not support:
        return [helpful, harmful]
    fraud = balanced_precision(frauds, support, base)
    right = fraud if bullet.argues is Verdict.DECLINE else 1 - fraud
    own = (1 - balance) * support
    return [helpful + own * right, harmful + own * (1 - right)]


@given(any_bullets, rates)
def test_the_columns_give_exactly_what_reading_bullet_by_bullet_gives(bullets: list[Bullet], base_rate: float) -> None:
    table = table_of(*bullets)
    expected = [plain_merits(each, base_rate) for each in bullets]
    assert merits_in(table.columns, base_rate).tolist() == expected
    assert weights_in(table.columns, base_rate).tolist() == [weight_of(each, base_rate) for each in bullets]
    shares = [
        supporting / (supporting + opposing) if supporting + opposing else 0.5 for supporting, opposing in expected
    ]
    worth = stats_of(table, base_rate)
    assert worth.success.tolist() == shares
    assert worth.strength.tolist() == [abs(weight_of(each, base_rate)) for each in bullets]


@given(any_bullets, rates, rates, st.sampled_from([None, *Source]))
def test_good_are_the_good_and_the_pinned_of_a_node_and_source(
    bullets: list[Bullet], base_rate: float, least: float, source: Source | None
) -> None:
    table = BulletTable.of(bullets)
    for node in ("fraud_detection", "other", "nowhere"):
        found = good_in_use(table, table.node(node), source, base_rate, least).mask
        assert found.tolist() == [
            each.node == node
            and each.status is not Status.RETIRED
            and source in (None, each.source)
            and (each.status is Status.PINNED or quality(each, base_rate) >= least)
            for each in bullets
        ]


def test_another_base_rate_is_worked_out_anew_and_the_first_one_again() -> None:
    table = table_of(declining(20, 100, helpful=20, harmful=80))
    for base_rate in (0.5, 0.005, 0.5):
        assert stats_of(table, base_rate).success.tolist() == success_of(merits_in(table.columns, base_rate)).tolist()
        assert good_in_use(table, 0, None, base_rate, 0.5).mask.tolist() == [base_rate < 0.5]


def test_many_rows_have_the_figures_that_each_has_alone() -> None:
    bullets = [
        declining(index % 7, 7 + index % 5, helpful=index % 11, harmful=index % 3).model_copy(
            update={"id": f"b{index}", "weight": None if index % 2 else index / 100}
        )
        for index in range(2_100)
    ]
    table = BulletTable.of(bullets)
    for base_rate in (0.5, 0.05, 0.5):
        stats = stats_of(table, base_rate)
        assert stats_of(table, base_rate) is stats  # computed once
        rows = np.array([0, 5, 1023, 1024, 1030, 2047, 2099])
        alone = [stats_of(table_of(bullets[row]), base_rate) for row in rows]
        for name in ("keys", "merits", "success", "strength"):
            assert getattr(stats, name)[rows].tolist() == [getattr(each, name)[0].tolist() for each in alone]
        drawn = [float(beta(each.keys, each.shapes)[0]) for each in alone]
        assert beta(stats.keys[rows], stats.shapes.take(rows)).tolist() == drawn


def test_an_empty_table_has_no_figures() -> None:
    stats = stats_of(BulletTable.of([]), 0.05)
    assert len(stats.success) == len(stats.strength) == len(stats.shapes.a) == 0
