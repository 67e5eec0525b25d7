"""Customers and terminals that come again: from a file to facts, bullets and decisions."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.cli.conftest import Shell

from acefraud.cli.workspace import trained_mapping
from acefraud.core.transactions import Cases
from acefraud.datasets import load_dataset
from acefraud.evaluation.metrics import Scored, average_precision
from acefraud.learning.learner import Learner
from acefraud.learning.pipeline import stream

pytestmark = pytest.mark.wide

DATA = Path(os.environ.get("ACEFRAUD_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
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


def charged_back(rows: int = 900) -> str:
    """Half of the cards are stolen from some day on. Charge-backs are all that gives them away, besides the amount."""
    chance = random.Random(7)
    lines = ["tx_id,time,card_id,amount,has_cbk"]
    stolen_on = {card: chance.randint(0, 60) for card in range(0, 40, 2)}
    for n in range(rows):
        day, card = 40 * n / rows, chance.randint(0, 39)
        fraud = day >= stolen_on.get(card, 99) and chance.random() < 0.8
        amount = chance.randint(50, 300) if fraud else chance.randint(1, 200)
        time = (START + timedelta(days=day)).isoformat()
        lines.append(f"t{n},{time},c{card},{amount},{str(fraud).upper()}")
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
    return [shell.on_book("explain", each["tx_id"], "--json", "--replay").json for each in rows]


def test_a_customer_that_comes_again_is_remembered(shop: Any) -> None:
    assert "History of each customer and terminal over 1h, 24h, 7d, 30d: 58 facts" in shop.ran.out
    assert 'entities = ["customer_id", "terminal_id"]' in shop.ran.err
    found = decided(shop, *(row(f"n{n}", n) for n in range(5)))
    assert [each["facts"]["customer_count_24h"] for each in found] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert all(each["replayed_the_same"] for each in found)
    assert [each["verdict"] for each in found] == ["APPROVE"] * 3 + ["DECLINE"] * 2
    assert any("of the customer in the last 24 hours" in reason["text"] for reason in found[4]["reasons"])
    assert "customer_count_24h 4" in shop.on_book("explain", "n4").out


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


# --- labels that come late -------------------------------------------------------------------------------------------

STATED = 'label = "has_cbk"\n[history]\nentities = ["card_id"]\nlabel_delay = "2d"\n'


@pytest.fixture(scope="module")
def cards_once(tmp_path_factory: pytest.TempPathFactory) -> Any:
    shell: Any = Shell(tmp_path_factory.mktemp("cards"))
    head, *rows = charged_back().splitlines(keepends=True)
    shell.write("early.csv", head + "".join(rows[:630]))
    shell.write("late.csv", head + "".join(rows[630:]))
    shell.write("stated.toml", STATED)
    shell.ran = shell.on_book("train", shell.folder / "early.csv", "--json")
    return shell


@pytest.fixture
def cards(shell: Any, cards_once: Any) -> Any:
    """A shell whose playbook was trained on the earlier part of the charge-backs."""
    shutil.copytree(cards_once.folder, shell.folder, dirs_exist_ok=True)
    shell.ran = cards_once.ran
    return shell


def warnings_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("warning:")]


def test_a_guessed_delay_is_printed_with_one_warning_that_names_the_effect(cards: Any) -> None:
    assert 'label_delay = "67h"' in cards.ran.err, "a tenth of the 28 days in the file, not the weeks of a charge-back"
    (warning,) = warnings_in(cards.ran.err)
    assert 'label_delay = "67h" is a guess' in warning
    assert "every figure looks better than it is" in warning
    assert cards.ran.json["label_delay"] == "67h"
    alone = cards("backtest", "late.csv", "--condition", "amount > 150")
    assert len(warnings_in(alone.err)) == 1


def test_a_stated_delay_brings_no_warning_and_one_left_out_does(cards: Any) -> None:
    stated = cards.on_book("train", "early.csv", "--mapping", "stated.toml", "--json")
    assert (stated.json["label_delay"], warnings_in(stated.err)) == ("2d", [])
    cards.write("silent.toml", STATED.replace('label_delay = "2d"\n', ""))
    silent = cards.on_book("train", "early.csv", "--mapping", "silent.toml", "--json")
    assert silent.json["label_delay"] == "0h"
    assert 'label_delay = "0h" is not stated' in warnings_in(silent.err)[0]


def test_rows_that_all_say_when_the_label_came_need_no_warning(cards: Any) -> None:
    head, *rows = (cards.folder / "early.csv").read_text().splitlines()
    known = [f"{row},{row.split(',')[1]}" for row in rows]
    cards.write("known.csv", "\n".join([f"{head},known_at", *known]) + "\n")
    assert warnings_in(cards.on_book("train", "known.csv", "--json").err) == []


def test_backtest_shows_the_figures_with_and_without_facts_that_depend_on_labels(cards: Any) -> None:
    found = cards.on_book("backtest", "late.csv", "--json").json
    assert found["label_delay"] == "67h"
    without = found["without_label_facts"]
    assert set(without) == {"accuracy", "fraud_caught", "false_declines", "average_precision"}
    assert without["average_precision"]["mean"] < found["average_precision"]["mean"] - 0.02
    shown = cards.on_book("backtest", "late.csv").out
    first, later = (f"{100 * each['average_precision']['mean']:.1f}%" for each in (found, without))
    head, _, rest = shown.partition("With facts that depend on labels unknown")
    assert f"average precision  {first}" in head
    assert f"average precision  {later}" in rest
    assert "67h after their transaction" in shown


def both_ways(shell: Any) -> tuple[float, float]:
    """The average precision that a backtest shows, and that of deciding and then learning the same rows in order."""
    found = shell.on_book("backtest", "late.csv", "--json").json["average_precision"]["mean"]
    with shell.open() as book:
        later = load_dataset(shell.folder / "late.csv", remembered=trained_mapping(book))
        assert later.mapping.history is not None
        delay = timedelta(microseconds=later.mapping.history.delay)
        cases = Cases.of(
            case.model_copy(update={"known_at": case.transaction.time + delay})
            for case in later.train
            if case.transaction.time
        )
        made = asyncio.run(stream(Learner(book), cases, cases[:0]))
    scores = np.array([decision.probability for decision in made])
    return found, average_precision(Scored(scores >= 0.5, scores, cases.labels))


def test_the_first_figure_of_a_backtest_is_what_deciding_and_learning_in_order_gives(cards: Any) -> None:
    backtested, in_order = both_ways(cards)
    assert backtested == pytest.approx(in_order, abs=0.05)


@pytest.mark.long
def test_it_is_on_real_charge_backs_too(shell: Any) -> None:
    path = DATA / "cloudwalk" / "data.csv"
    if not path.exists():
        pytest.skip("cloudwalk/data.csv is not there; ACEFRAUD_DATA names the folder that holds it")
    rows = pl.read_csv(path, infer_schema=False).sort("transaction_date", maintain_order=True)
    cut = len(rows) - round(0.3 * len(rows))
    rows[:cut].write_csv(shell.folder / "early.csv")
    rows[cut:].write_csv(shell.folder / "late.csv")
    assert shell.on_book("train", "early.csv", "--json").json["label_delay"] == "66h"
    backtested, in_order = both_ways(shell)
    assert backtested == pytest.approx(in_order, abs=0.05)


def test_compare_shows_both_figures_too(cards: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    cards.write("all.csv", charged_back(500))
    ran = cards("compare", "all.csv", "--seeds", "1", "--report", "out")
    assert len(warnings_in(ran.err)) == 1
    assert ran.out.count("- no label facts") == 4
    assert "arrive 95h after their transaction" in ran.out
    assert "Offline + online, no label facts" in (cards.folder / "out" / "report.html").read_text("utf-8")
    found = json.loads((cards.folder / "out" / "comparison.json").read_text("utf-8"))
    assert found["label_delay"] == "95h"
    vanilla, *others = found["modes"]["vanilla"], found["modes"]["offline_online"], found["lightgbm"]
    assert vanilla["without_label_facts"]["accuracy"] == vanilla["accuracy"]
    for got in others:
        assert got["without_label_facts"]["average_precision"]["mean"] < got["average_precision"]["mean"]


def test_a_period_that_was_not_said_is_told(shop: Shell) -> None:
    rule = "customers with more than 3 terminals: decline"
    assert "No period was said" in shop.on_book("playbook", "read", rule).out
    added = shop.on_book("playbook", "add", rule, "--json").json
    assert added["condition"] == "customer_distinct_terminal_30d > 3"
    assert any(remark.startswith("No period was said") for remark in added["remarks"])
