"""What a bullet's record is worth where fraud is as common as honesty, and where it is rare."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from acefraud.core.book import Book
from acefraud.core.bullet import Bullet, Claim, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.evidence import Evidence, Record
from acefraud.core.page import Page
from acefraud.core.transaction import Verdict
from acefraud.embedded.agent import weight_of, weights_in
from acefraud.selection import stages
from acefraud.selection.draws import beta, key_for
from acefraud.selection.worth import (
    NO_WORTH,
    RAREST,
    Worth,
    drawn_from,
    good_in,
    merits_in,
    success_of,
    worth_in,
    worth_of,
)

RELAXED = stages.RELAXATION * 0.3
"""What even a book with too few bullets asks for."""


def page_of(*bullets: Bullet) -> Page:
    return Book.of(bullets).pages[0]


def merits(bullet: Bullet, base_rate: float) -> list[float]:
    found: list[float] = merits_in(page_of(bullet).table, base_rate)[0].tolist()
    return found


def quality(bullet: Bullet, base_rate: float) -> float:
    return float(success_of(merits_in(page_of(bullet).table, base_rate))[0])


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


@settings(max_examples=50, deadline=None)
@given(verdicts, records, uses)
def test_at_one_half_only_the_decisions_count_as_in_the_ace_system(
    argues: Verdict | None, record: tuple[int, int], used: tuple[int, int]
) -> None:
    helpful, harmful = used
    made = bullet(argues, *record, helpful=helpful, harmful=harmful)
    assert merits(made, 0.5) == [helpful, harmful]
    assert quality(made, 0.5) == made.success_rate
    worth = worth_of(page_of(made), 0.5)
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
    assert good_in(page_of(made), 0, None, base_rate, RELAXED).count == 0


def test_five_percent_lies_between() -> None:
    made = declining(20, 100, helpful=20, harmful=80)
    found = [quality(made, base_rate) for base_rate in (0.5, 0.2, 0.05, 0.01, 0.005)]
    assert found[0] == 0.2
    assert found == sorted(found)
    assert found[1] < 0.5 < found[2] < 0.8 < found[-1]


@settings(max_examples=50, deadline=None)
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


@settings(max_examples=50, deadline=None)
@given(verdicts, records, uses, base_rates, st.floats(-1e-6, 1e-6))
def test_quality_is_a_share_and_does_not_jump_with_the_base_rate(
    argues: Verdict | None, record: tuple[int, int], used: tuple[int, int], base_rate: float, change: float
) -> None:
    made = bullet(argues, *record, helpful=used[0], harmful=used[1])
    before, after = quality(made, base_rate), quality(made, base_rate + change * base_rate * (1 - base_rate))
    assert 0 <= before <= 1
    assert after == pytest.approx(before, abs=1e-4)


@pytest.mark.parametrize("end", [0.0, 1.0])
@settings(max_examples=50, deadline=None)
@given(argues=verdicts, record=records, used=uses)
def test_nor_at_either_end(end: float, argues: Verdict | None, record: tuple[int, int], used: tuple[int, int]) -> None:
    made = bullet(argues, *record, helpful=used[0], harmful=used[1])
    assert quality(made, end) == pytest.approx(quality(made, abs(end - 1e-6)), abs=1e-9)


@settings(max_examples=50, deadline=None)
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
).map(lambda some: [each.model_copy(update={"id": f"b{place}"}) for place, each in enumerate(some)])


def plain_merits(bullet: Bullet, base_rate: float) -> list[float]:
    base = min(max(base_rate, RAREST), 1 - RAREST)
    balance = 4 * base * (1 - base)
    helpful, harmful = balance * bullet.helpful_count, balance * bullet.harmful_count
    record = bullet.whole_record
    if bullet.argues is None or not record.support:
        return [helpful, harmful]
    fraud = record.balanced_precision(base)
    right = fraud if bullet.argues is Verdict.DECLINE else 1 - fraud
    own = (1 - balance) * record.support
    return [helpful + own * right, harmful + own * (1 - right)]


@settings(max_examples=100, deadline=None)
@given(any_bullets, rates)
def test_the_columns_give_exactly_what_reading_bullet_by_bullet_gives(bullets: list[Bullet], base_rate: float) -> None:
    page = page_of(*bullets)
    expected = [plain_merits(each, base_rate) for each in bullets]
    assert merits_in(page.table, base_rate).tolist() == expected
    assert weights_in(page.table, base_rate).tolist() == [weight_of(each, base_rate) for each in bullets]
    shares = [
        supporting / (supporting + opposing) if supporting + opposing else 0.5 for supporting, opposing in expected
    ]
    worth = worth_of(page, base_rate)
    assert worth.success.tolist() == shares
    assert worth.strength.tolist() == [abs(weight_of(each, base_rate)) for each in bullets]


@settings(max_examples=50, deadline=None)
@given(any_bullets, rates, rates, st.sampled_from([None, *Source]))
def test_good_are_the_good_and_the_pinned_of_a_node_and_source(
    bullets: list[Bullet], base_rate: float, least: float, source: Source | None
) -> None:
    book = Book.of(bullets)
    for node in ("fraud_detection", "other", "nowhere"):
        found = good_in(book.pages[0], book.node(node), source, base_rate, least).mask
        assert found.tolist() == [
            each.node == node
            and each.status is not Status.RETIRED
            and source in (None, each.source)
            and (each.status is Status.PINNED or quality(each, base_rate) >= least)
            for each in bullets
        ]


def test_another_base_rate_is_worked_out_anew_and_the_first_one_again() -> None:
    page = page_of(declining(20, 100, helpful=20, harmful=80))
    for base_rate in (0.5, 0.005, 0.5):
        assert worth_of(page, base_rate).success.tolist() == success_of(merits_in(page.table, base_rate)).tolist()
        assert good_in(page, 0, None, base_rate, 0.5).mask.tolist() == [base_rate < 0.5]


def test_rows_of_several_pages_are_worth_what_they_are_worth_one_by_one() -> None:
    bullets = [
        declining(place % 7, 7 + place % 5, helpful=place % 11, harmful=place % 3).model_copy(
            update={"id": f"b{place}", "weight": None if place % 2 else place / 100}
        )
        for place in range(2_100)
    ]
    book = Book.of(bullets)
    for rows in ([], [5], [1024, 1030], [0, 5, 1023, 1024, 1030, 2047, 2048, 2099]):
        alone = [worth_of(page_of(bullets[row]), 0.05) for row in rows]
        places = np.array(rows, dtype=np.int64)
        keys, shapes = drawn_from(book, places, 0.05)
        assert keys.tolist() == [int(one.keys[0]) for one in alone]
        assert shapes.a.tolist() == [float(one.shapes.a[0]) for one in alone]
        assert shapes.b.tolist() == [float(one.shapes.b[0]) for one in alone]
        drawn = [float(beta(one.keys, one.shapes)[0]) for one in alone]
        assert beta(keys, shapes).tolist() == drawn
        worth = worth_in(book, 0.05)
        for field in fields(Worth):
            assert getattr(worth, field.name)[places].tolist() == [getattr(one, field.name)[0] for one in alone]


@pytest.mark.parametrize("count", [1, 1_024, 1_025, 2_100])
def test_a_book_is_worth_what_its_pages_are_worth_at_each_base_rate(count: int) -> None:
    some = [declining(n % 7, 7, helpful=n % 11).model_copy(update={"id": f"b{n}"}) for n in range(count)]
    book = Book.of(some)
    for base_rate in (0.5, 0.05, 0.5):
        worth = worth_in(book, base_rate)
        assert worth_in(book, base_rate) is worth  # worked out once
        for field in fields(Worth):
            parts = [getattr(worth_of(page, base_rate), field.name) for page in book.pages]
            assert getattr(worth, field.name).tolist() == np.concatenate(parts).tolist()
        keys, shapes = drawn_from(book, np.arange(count), base_rate)
        assert beta(keys, shapes).tolist() == beta(worth.keys, worth.shapes).tolist()


def test_an_empty_book_is_worth_nothing() -> None:
    for base_rate in (0.5, 0.05):
        assert worth_in(Book.of([]), base_rate) is NO_WORTH
    assert len(NO_WORTH.success) == len(NO_WORTH.shapes.a) == 0
