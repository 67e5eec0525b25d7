"""Values that come from Python programs: NumPy scalars, whole-number ids, None, NaN and times."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from acefraud import BulletPlaybook, Learner
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Case, Transaction

NOON = datetime(2025, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "known"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(7), 7.0),
        (np.bool_(True), True),
        (np.str_("web"), "web"),
        (Decimal("12.50"), 12.5),
        (-0.0, 0.0),
        (None, None),
        (float("nan"), None),
        (np.float64("nan"), None),
        (np.datetime64("NaT"), None),
    ],
)
def test_a_fact_in_any_form(given: Any, known: Any) -> None:
    made = Transaction(id="t", facts={"x": given, "amount": 1})
    assert made.facts == {"amount": 1.0} | ({} if known is None else {"x": known})
    assert type(made.facts.get("x")) is type(known)


@pytest.mark.parametrize(
    "opened", [datetime(2025, 1, 30, 12, tzinfo=UTC), np.datetime64("2025-01-30T12:00:00.000000000")]
)
@pytest.mark.filterwarnings("ignore::acefraud.support.timestamps.NaiveTimeWarning")
def test_a_fact_that_is_a_time_becomes_days(opened: Any) -> None:
    assert Transaction(id="t", time=NOON, facts={"opened": opened}).facts == {"days_since_opened": 1.0}
    assert Transaction(id="t", time=NOON, facts={"opened": date(2025, 1, 31)}).facts == {"days_since_opened": 0.5}
    with pytest.raises(ValidationError, match="fact 'opened' is a time: expected a number"):
        Transaction(id="t", facts={"opened": opened})


@pytest.mark.filterwarnings("ignore::acefraud.support.timestamps.NaiveTimeWarning")
def test_ids_times_entities_and_labels() -> None:
    made = Transaction(
        id=np.int64(42),
        time=np.datetime64("2025-01-31T12:00"),
        facts={"amount": 5},
        text=None,
        entities={"card": 7, "shop": None},
    )
    assert (made.id, made.time, made.text, made.entities) == ("42", NOON, "", {"card": "7"})
    assert Transaction(id=1, time=np.datetime64("NaT"), text="x").time is None
    assert Case(transaction=made, is_fraud=np.bool_(True), known_at=np.datetime64("NaT")).is_fraud is True
    outcome = Outcome(transaction_id=42, is_fraud=np.int64(1), at=NOON)
    assert (outcome.transaction_id, outcome.is_fraud) == ("42", True)


@pytest.mark.parametrize("fact", [float("inf"), 10**400, [1], {"a": 1}])
def test_what_is_no_fact(fact: Any) -> None:
    with pytest.raises(ValidationError):
        Transaction(id="t", facts={"x": fact, "amount": 1})


def test_nothing_known_is_no_transaction() -> None:
    with pytest.raises(ValidationError, match="needs facts or text"):
        Transaction(id="t", facts={"x": float("nan"), "y": None})


def test_a_learner_decides_and_hears_them() -> None:
    learner = Learner(BulletPlaybook())
    facts = {"amount": np.float64(2500), "vpn": np.bool_(True), "hour": None}
    decision = asyncio.run(learner.decide(Transaction(id=np.int64(7), time=NOON, facts=facts)))
    heard = asyncio.run(learner.hear(Outcome(transaction_id=7, is_fraud=np.bool_(True))))
    assert decision.transaction.id == "7"
    assert heard.judgement.is_correct is not None
