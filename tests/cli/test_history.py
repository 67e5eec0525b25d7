"""Customers and terminals that come again: from a file to facts, bullets and decisions."""

from __future__ import annotations

import json
import random
import shutil
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cli.conftest import Shell

START = datetime(2024, 1, 1, tzinfo=UTC)


def payments(rows: int = 400) -> str:
    """Whoever paid three times within a day before is a thief, with a little noise."""
    chance = random.Random(3)
    lines = ["tx_id,time,customer_id,terminal_id,amount,label"]
    time, paid = START, dict[str, list[datetime]]()
    for n in range(rows):
        time += timedelta(minutes=chance.randint(1, 90))
        customer = f"c{chance.randint(0, 15)}"
        often = sum(time - before < timedelta(days=1) for before in paid.setdefault(customer, [])) >= 3
        paid[customer].append(time)
        fraud = often != (chance.random() < 0.02)
        label = "" if n == rows - 1 else int(fraud)
        lines.append(f"t{n},{time.isoformat()},{customer},s{chance.randint(0, 5)},{chance.randint(1, 200)},{label}")
    return "\n".join(lines) + "\n"


def row(name: str, minutes: int, **more: Any) -> dict[str, Any]:
    time = START + timedelta(days=30, minutes=minutes)
    return {"tx_id": name, "time": time.isoformat(), "customer_id": "new", "terminal_id": "s1", "amount": 20, **more}


@pytest.fixture(scope="module")
def shop_once(tmp_path_factory: pytest.TempPathFactory) -> Any:
    shell: Any = Shell(tmp_path_factory.mktemp("shop"))
    shell.ran = shell.on_book("train", shell.write("payments.csv", payments()))
    return shell


@pytest.fixture
def shop(shell: Any, shop_once: Any) -> Any:
    """A shell whose playbook was trained on payments."""
    for path in (shop_once.book, shop_once.folder / "payments.csv"):
        shutil.copy(path, shell.folder)
    shell.ran = shop_once.ran
    return shell


def decided(shell: Any, *rows: dict[str, Any]) -> list[Any]:
    shell.rows("now.jsonl", list(rows))
    shell.on_book("decide", "now.jsonl", "--json")
    return [shell.on_book("explain", one["tx_id"], "--json", "--replay").json for one in rows]


def test_a_customer_that_comes_again_is_remembered(shop: Any) -> None:
    assert "History of each customer and terminal over 1h, 24h, 7d, 30d: 58 facts" in shop.ran.out
    assert 'entities = ["customer_id", "terminal_id"]' in shop.ran.err
    found = decided(shop, *(row(f"n{n}", n) for n in range(5)))
    assert [one["facts"]["customer_count_24h"] for one in found] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert all(one["replayed_the_same"] for one in found)
    assert [one["verdict"] for one in found] == ["APPROVE"] * 3 + ["DECLINE"] * 2
    assert any("of the customer in the last 24 hours" in reason["text"] for reason in found[4]["reasons"])
    assert "customer_count_24h=4.0" in shop.on_book("explain", "n4").out


def test_outcomes_become_known_frauds(shop: Any) -> None:
    decided(shop, row("n1", 0))
    told = {"tx_id": "n1", "label": 1, "at": (START + timedelta(days=30, hours=1)).isoformat()}
    shop.on_book("learn", "-", stdin=json.dumps(told))
    shop.on_book("learn", "-", stdin=json.dumps(row("n2", 70, label=1, at=row("", 80)["time"])))
    early, later = decided(shop, row("n3", 75), row("n4", 90))
    assert (early["facts"]["customer_known_frauds_24h"], early["facts"]["customer_count_24h"]) == (1.0, 2.0)
    assert (later["facts"]["customer_known_frauds_24h"], later["facts"]["customer_count_24h"]) == (2.0, 3.0)


def test_a_row_whose_label_has_not_arrived_counts_for_those_after_it(shop: Any) -> None:
    last = (shop.folder / "payments.csv").read_text().splitlines()[-1].split(",")
    time = (datetime.fromisoformat(last[1]) + timedelta(minutes=1)).isoformat()
    (found,) = decided(shop, row("n1", 0, time=time, customer_id=last[2]))
    assert found["facts"]["customer_hours_since_last"] == pytest.approx(1 / 60)


def test_a_later_file_keeps_the_history_that_was_trained_with(shop: Any) -> None:
    rows = [row(f"n{n}", n, card_number=f"x{n % 2}") for n in range(4)]
    found = decided(shop, *rows)
    assert found[3]["transaction"]["entities"] == {"customer_id": "new", "terminal_id": "s1"}
    assert not any(name.startswith("card") for name in found[3]["facts"])


def test_json_and_backtest_know_of_the_history(shop: Any) -> None:
    trained = shop.on_book("train", "payments.csv", "--json").json
    assert trained["history"] == {
        "entities": ["customer", "terminal"],
        "windows": ["1h", "24h", "7d", "30d"],
        "facts": 58,
    }
    alone = shop("backtest", "payments.csv", "--condition", "customer_count_24h >= 3", "--json").json
    assert alone["precision"] > 0.9
    before = shop.state()
    whole = shop.on_book("backtest", "payments.csv", "--json").json
    assert whole["accuracy"]["mean"] > 0.9
    assert shop.state() == before
