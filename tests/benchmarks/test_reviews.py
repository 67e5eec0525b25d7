"""The benchmark of a day's reviews."""

from __future__ import annotations

import pytest

from acefraud import load_dataset
from benchmarks.reviews import Arrival, decided, moments, summary

pytestmark = pytest.mark.wide


def test_the_gap_between_first_come_and_hindsight_is_closed_by_what_was_reviewed() -> None:
    savings = [(0, 1.0, False), (0, 5.0, True), (0, 3.0, False), (1, -1.0, False), (1, 2.0, True)]
    found = summary([Arrival(day, 2 + saving, saving, reviewed) for day, saving, reviewed in savings], per_day=1)
    assert (found["first_come"], found["cut"], found["hindsight"]) == (8.5, 6.5, 6.5)
    assert (found["closed"], found["reviews"]) == (1.0, 1.0)


def test_traffic_is_decided_within_the_limit() -> None:
    arrivals = decided(load_dataset("complex_fraud_detection").train[-400:], moments(2, 40), per_day=5)
    assert {arrival.day for arrival in arrivals} == {0, 1}
    assert summary(arrivals, per_day=5)["reviews"] <= 5
    assert summary(arrivals, per_day=5)["hindsight"] == pytest.approx(summary(arrivals, per_day=5)["cut"], rel=0.2)
