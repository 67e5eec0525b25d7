"""`python -m benchmarks small`: the learning curve and the pairs of bullets that say the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from acefraud import BulletPlaybook, Learner, Outcome, Source, Transaction
from benchmarks.small import nearly_same

pytestmark = pytest.mark.wide


@pytest.mark.long
def test_the_curve_has_a_row_for_each_size_and_way_of_learning(bench: Any) -> None:
    got = bench("small", "--worlds", "2", "--sizes", "40", "--json").json
    assert got["texts"] is None
    assert [(row["how"], row["cases"]) for row in got["curve"]] == [
        ("offline", 40),
        ("online", 40),
        ("offline + online", None),
    ]
    assert set(got["curve"][0]["less_vanilla"]) == {"accuracy", "average_precision", "log_likelihood"}


def test_bullets_that_hold_on_the_same_cases_are_counted() -> None:
    book = BulletPlaybook()
    learner = Learner(book)
    for index in range(20):
        told = Transaction(id=f"t{index}", facts={"amount": float(index), "vpn": index >= 10})
        asyncio.run(learner.hear(Outcome(transaction_id=told.id, is_fraud=index >= 10), told))
    assert nearly_same(learner) == 0
    for text in ("A VPN or proxy", "Amount at least 10", "Amount at least 5"):
        book.add_bullet(text, source=Source.ONLINE)
    assert nearly_same(learner) == 1
