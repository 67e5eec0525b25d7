"""How many requests a caller may send."""

from __future__ import annotations

import pytest
from tests.service.test_key_ring import Clock

from acefraud.errors import ConfigurationError
from acefraud.service.admission import RateLimit


def test_a_burst_passes_and_then_the_rate() -> None:
    clock = Clock()
    limit = RateLimit(rate=10, burst=3, clock=clock)
    assert [limit.take("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert limit.take("a") == pytest.approx(0.1)
    clock.now = 0.06
    assert limit.take("a") == pytest.approx(0.04)
    clock.now = 0.11
    assert limit.take("a") == 0.0
    assert limit.take("a") == pytest.approx(0.09)


def test_whoever_waits_as_told_may_send() -> None:
    clock = Clock()
    limit = RateLimit(rate=3, burst=1, clock=clock)
    sent = 0
    while clock.now < 10:
        wait = limit.take("a")
        sent += not wait
        clock.now += wait + 1e-9
    assert sent == pytest.approx(31, abs=1)


def test_a_bucket_never_holds_more_than_the_burst() -> None:
    clock = Clock()
    limit = RateLimit(rate=10, burst=2, clock=clock)
    clock.now = 1_000.0
    assert [limit.take("a") == 0.0 for _ in range(4)] == [True, True, False, False]


def test_callers_do_not_take_from_each_other() -> None:
    limit = RateLimit(rate=1, burst=1, clock=Clock())
    assert [limit.take(name) for name in ("a", "b", "a")] == [0.0, 0.0, 1.0]


def test_a_request_may_cost_many() -> None:
    clock = Clock()
    limit = RateLimit(rate=10, burst=20, clock=clock)
    assert [limit.take("a", 15), limit.take("a", 15)] == [0.0, pytest.approx(1.0)]
    assert limit.take("a", 5) == 0.0


def test_a_request_that_costs_more_than_a_burst_takes_all_of_it() -> None:
    clock = Clock()
    limit = RateLimit(rate=10, burst=20, clock=clock)
    assert [limit.take("a", 1_000), limit.take("a")] == [0.0, pytest.approx(0.1)]
    clock.now = 1.5
    assert limit.take("a", 1_000) == pytest.approx(0.5)
    clock.now = 2.0
    assert limit.take("a", 1_000) == 0.0


def test_what_was_paid_counts_and_is_given_back_to_who_has_to_wait() -> None:
    limit = RateLimit(rate=1, burst=10, clock=Clock())
    assert [limit.take("a"), limit.take("a", 10, paid=1)] == [0.0, 0.0]
    limit = RateLimit(rate=1, burst=10, clock=Clock())
    assert [limit.take("a", 4), limit.take("a"), limit.take("a", 8, paid=1)] == [0.0, 0.0, 2.0]
    assert limit.take("a", 6) == 0.0


def test_asking_how_long_to_wait_counts_nothing() -> None:
    limit = RateLimit(rate=2, burst=1, clock=Clock())
    assert [limit.wait("a"), limit.wait("a"), limit.take("a"), limit.wait("a")] == [0.0, 0.0, 0.0, 0.5]


def test_only_the_callers_of_late_are_remembered() -> None:
    limit = RateLimit(rate=1, burst=1, most=2, clock=Clock())
    for name in ("a", "b", "a", "c"):  # b was used least recently, and its bucket goes
        limit.take(name)
    assert limit.take("a") == 1.0
    assert limit.take("b") == 0.0


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0.5), (float("nan"), 1)])
def test_limits_that_let_nobody_through_are_refused(rate: float, burst: float) -> None:
    with pytest.raises(ConfigurationError, match="expected a rate above 0"):
        RateLimit(rate, burst)
