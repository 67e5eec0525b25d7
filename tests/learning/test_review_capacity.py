"""How many reviews are left, what is still to come, and what a review has to save."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud import BulletPlaybook, Learner, Transaction, Verdict
from acefraud.core.bullet import Policy
from acefraud.engine.rule_context import ReviewsLeft

START = datetime(2025, 5, 5, 12, tzinfo=UTC)
COSTS = "false_decline=9000,missed_fraud=100%,review=1,per_day=4"


def reviewed(left: ReviewsLeft, savings: list[float | None]) -> list[int]:
    cuts = left.cuts(savings)
    return [index for index, saving in enumerate(savings) if saving is not None and saving >= cuts[index]]


def test_of_a_batch_the_best_are_reviewed_and_of_equal_ones_the_first() -> None:
    assert reviewed(ReviewsLeft(2), [1.0, None, 3.0, 2.0]) == [2, 3]
    assert reviewed(ReviewsLeft(2), [5.0, 5.0, 9.0, 5.0]) == [0, 2]
    assert reviewed(ReviewsLeft(9), [1.0, 2.0]) == [0, 1]


def test_better_cases_to_come_are_waited_for() -> None:
    later = ReviewsLeft(2, savings=sorted([1.0, 2.0, 3.0, 4.0] * 5), weight=1.0)
    assert reviewed(later, [3.0]) == []
    assert reviewed(later, [4.0]) == [0]
    few = ReviewsLeft(2, savings=sorted([1.0, 2.0, 3.0, 4.0] * 5), weight=0.1)
    assert reviewed(few, [3.0]) == [0]
    assert few.cut < 3.0


@given(
    st.lists(st.none() | st.integers(1, 9).map(float), max_size=30),
    st.lists(st.integers(0, 9).map(float), max_size=30).map(sorted),
    st.integers(1, 12),
    st.floats(0.05, 20),
)
def test_no_more_are_reviewed_than_are_left_and_none_before_a_better_one(
    savings: list[float | None], later: list[float], left: int, weight: float
) -> None:
    chosen = reviewed(ReviewsLeft(left, savings=later, weight=weight), savings)
    assert len(chosen) <= left
    known = [saving for saving in savings if saving is not None]
    assert sorted(savings[at] or 0.0 for at in chosen) == sorted(known)[len(known) - len(chosen) :]


def test_the_hours_of_earlier_days_say_what_is_still_to_come() -> None:
    now = START
    book = BulletPlaybook(clock=lambda: now)
    learner = Learner(book)
    for day in range(3):
        for hour in (9, 15):
            now = datetime(2025, 5, 5 + day, hour, tzinfo=UTC)
            large = 1_000 if hour == 15 else 10
            learner.decide_all_sync(
                [Transaction(id=f"{day}-{hour}-{n}", facts={"amount": float(large + n)}) for n in range(20)]
            )
    book.set_threshold(review=COSTS)

    def cut_at(hour: int) -> float:
        nonlocal now
        now = datetime(2025, 5, 8, hour, tzinfo=UTC)
        left = learner.reviews_left()
        assert left is not None
        return left.cut

    assert cut_at(8) > 100, "the large ones of the afternoon are still to come"
    assert cut_at(16) == 0, "nothing comes any more"


def test_what_a_policy_decides_is_not_to_come_but_uses_reviews() -> None:
    now = START
    book = BulletPlaybook(clock=lambda: now)
    book.set_threshold(review=COSTS)
    learner = Learner(book)
    book.add_bullet("amount over 5,000", policy=Policy(verdict=Verdict.REVIEW))
    many = [Transaction(id=f"p{n}", facts={"amount": 9_000.0 if n < 3 else 100.0 + n}) for n in range(20)]
    made = learner.decide_all_sync(many)
    assert [str(each.verdict) for each in made].count("REVIEW") == 4
    now += timedelta(minutes=5)
    left = learner.reviews_left()
    assert left is not None
    assert (left.used, max(left.savings, default=0) < 100) == (4, True)


def test_without_a_limit_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    book = BulletPlaybook()
    book.set_threshold(review="false_decline=15,missed_fraud=200,review=5")
    monkeypatch.delattr(type(book.ledger), "reviews_since")
    decision = Learner(book).decide_sync({"amount": 12})
    assert Learner(book).reviews_left() is None
    assert "review cut" not in decision.facts
