"""What columns mean as facts: times, dates, codes and known facts under other names."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from acefraud import BulletPlaybook, InputWarning, Learner
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Case, Transaction
from acefraud.datasets import SchemaMapping, load_dataset
from acefraud.datasets.contents import holds_codes
from acefraud.datasets.guess import known_fact
from acefraud.datasets.rows import read_transactions

NIGHT = datetime(2025, 2, 1, 23, 30, tzinfo=UTC)
TOLD = {"hour": 23.5, "night": True, "weekday": "Saturday", "weekend": True}


def write(folder: Path, header: str, *rows: str) -> Path:
    path = folder / "tx.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_a_time_gives_facts_and_a_date_its_day(tmp_path: Path) -> None:
    path = write(tmp_path, "id,time,amount,label", "1,2025-02-01T23:30:00,5,1", "2,,6,0")
    first, second = load_dataset(path)
    assert first.transaction.facts == {"amount": 5.0, **TOLD}
    assert second.transaction.facts == {"amount": 6.0}
    path = write(tmp_path, "id,date,amount,label", "1,2025-02-01,5,1")
    assert load_dataset(path)[0].transaction.facts == {"amount": 5.0, "weekday": "Saturday", "weekend": True}


def test_a_fact_that_a_column_has_is_not_made_twice(tmp_path: Path) -> None:
    path = write(tmp_path, "id,time,DayOfWeek,is_night,label", "1,2025-02-01T23:30:00,Sat,1,1")
    assert load_dataset(path).mapping.time_facts == ("hour", "weekend")


def test_a_playbook_from_before_gets_no_new_facts(tmp_path: Path) -> None:
    path = write(tmp_path, "id,time,amount", "1,2025-02-01T23:30:00,5")
    earlier = SchemaMapping(id="id", time="time", time_format="iso", amount="amount", numbers=("amount",))
    given = earlier.model_copy(update={"text": ""})
    for read in (
        read_transactions(path, remembered=earlier),
        read_transactions(path, mapping=given, remembered=earlier),
    ):
        assert read.rows[0].facts == {"amount": 5.0}


def test_a_learner_adds_the_facts_that_its_playbook_was_trained_with() -> None:
    learner = Learner(BulletPlaybook())
    paid = Transaction(id="t", time=NIGHT, facts={"amount": 5.0})
    mapping = SchemaMapping(time_facts=("hour", "night", "weekday", "weekend"))
    learner.study([Case(transaction=paid, is_fraud=True)], mapping=mapping.describe(), both_labels=False)
    assert learner.remembered().facts.row(0) == {"amount": 5.0, **TOLD}
    decision = asyncio.run(learner.decide(paid.model_copy(update={"id": "u"})))
    assert decision.facts == {"amount": 5.0, **TOLD}
    other = paid.model_copy(update={"id": "v", "facts": {"amount": 5.0, "hour": 3.0}})
    asyncio.run(learner.hear(Outcome(transaction_id="v", is_fraud=False), other))
    assert learner.remembered().facts.row(1) == {"amount": 5.0, **TOLD, "hour": 3.0}
    assert learner.score_all([paid]).probabilities[0] == pytest.approx(decision.probability)


def test_days_since_a_date_before_the_transaction(tmp_path: Path) -> None:
    rows = [
        f"{n},2025-03-{n % 28 + 1:02}T12:00:00,2025-01-{n % 9 + 1:02},2025-05-{n % 9 + 1:02},{n % 2}" for n in range(30)
    ]
    path = write(tmp_path, "id,time,opened,settled,label", *rows)
    with pytest.warns(InputWarning, match="`settled` is left out: a likely leak"):
        data = load_dataset(path, mapping=SchemaMapping(time_facts=()))
    assert dict(data.mapping.days_between) == {"days_since_opened": ("opened", "time")}
    assert data[0].transaction.facts == {"days_since_opened": 59.5}


@pytest.mark.parametrize(
    ("name", "kind", "codes"),
    [
        ("tipe_kartu", [0] * 12 + [4] * 2 + [93] * 20 + [103] * 13 + [111] * 36, True),
        ("card_type", [1, 2, 3], True),
        ("visits", [0] * 40 + [1] * 20 + [2] * 10 + [3] * 5 + [9], False),
        ("deductible", [300] * 3 + [400] * 90 + [500] * 40 + [700] * 60, False),
        ("size_code", [1, 2, 3], False),
        ("x", [0, 1], False),
    ],
)
def test_codes_are_told_from_measures(name: str, kind: list[int], codes: bool) -> None:
    chance = random.Random(3)
    cells = pl.Series(chance.choices(kind, k=3000))
    assert holds_codes(name, cells) is codes
    assert holds_codes(name, cells.cast(pl.String)) is codes


def test_ages_are_no_codes() -> None:
    chance = random.Random(4)
    assert not holds_codes("x", pl.Series([max(18, round(chance.gauss(40, 10))) for _ in range(5000)]))


@pytest.mark.parametrize(
    ("column", "fact"),
    [
        ("customer.age_of_account_days", "account_age_days"),
        ("device.age_days", "device_age_days"),
        ("merchant.rating", "merchant_rating"),
        ("network.is_vpn", "vpn"),
        ("facts.customer.vip", "vip"),
        ("customer.age_days", None),
        ("customer.account_age_months", None),
        ("age_of_account_days", None),
        ("outcome.chargebacks", None),
    ],
)
def test_known_facts_by_their_meaning(column: str, fact: str | None) -> None:
    assert known_fact(column) == fact
