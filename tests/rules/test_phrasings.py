"""Rules in the words of analysts, read with the facts of six worlds and compared on rows with what they must mean."""

from __future__ import annotations

import os
import random
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.rules.phrasing_reference import truth_of

from acefraud import load_dataset
from acefraud.core.comparison import Test
from acefraud.core.condition import Condition
from acefraud.core.fact_names import FactCatalog
from acefraud.core.transaction import FactValue
from acefraud.facts.extraction import facts_in
from acefraud.rules.reader import ReadRule, Vocabulary, read_rule

SHARED = Path(os.environ.get("ACEFRAUD_DATA") or Path(__file__).parent.parent.parent.parent / "shared" / "data")
FILES = {
    "ecommerce": "ecommerce/data.csv",
    "vehicle": "vehicle_insurance/data.csv",
    "evalml": "evalml_fraud/data.csv",
    "cloudwalk": "cloudwalk/data.csv",
    "bri_atm": "bri_atm/data.csv",
}
TABLES = {
    name: tomllib.loads((Path(__file__).parent / "phrasings" / f"{name}.toml").read_text("utf-8"))["phrasing"]
    for name in ("first", "held_out", "hard", "later", "sealed", "last", "traps")
}
LEAST = {"first": 0.9, "held_out": 0.85, "hard": 0.65, "later": 0.8, "sealed": 0.7, "last": 0.8, "traps": 0.0}
"""The share of rules that must be read right, of those that can be said. docs/rules.md has the figures."""
QUICK = ("held_out", "traps")
"""Tables that are read while you work."""
ROWS = 150
RIGHT, REFUSED, REFUSED_RIGHTLY = "right", "refused", "refused rightly"

needs_data = pytest.mark.skipif(
    not all((SHARED / file).exists() for file in FILES.values()),
    reason=f"not all public datasets are at {SHARED}; ACEFRAUD_DATA names their folder",
)


@cache
def world(name: str) -> tuple[FactCatalog, list[dict[str, FactValue]]]:
    """The facts of a world, and some of its rows."""
    if name == "texts":
        data = load_dataset("complex_fraud_detection")
    else:
        mapping = SHARED / name / "mapping.toml"
        data = load_dataset(SHARED / FILES[name], mapping=mapping if mapping.exists() else None).with_history()
    facts = facts_in(data.train.transactions)
    some = np.array(sorted(random.Random(name).sample(range(len(facts)), ROWS)))
    return FactCatalog.of(facts), facts.take(some).rows()


def reading_of(phrasing: dict[str, Any]) -> ReadRule:
    return read_rule(phrasing["text"], vocabulary(phrasing["world"]))


@cache
def vocabulary(name: str) -> Vocabulary:
    return Vocabulary.of(world(name)[0])


def outcome_of(phrasing: dict[str, Any]) -> str:
    """What became of a phrasing: right, refused, refused rightly, or what is wrong."""
    reading = reading_of(phrasing)
    means = phrasing.get("means")
    if reading.condition is None:
        assert reading.not_understood or reading.readings, "a refusal names the words or the readings"
        return REFUSED if means else REFUSED_RIGHTLY
    if means is None:
        return f"read, but cannot be said: {phrasing['text']} -> {reading.condition}"
    for row in rows_for(phrasing["world"], reading.condition):
        if (truth_of(means, row) is True) != reading.condition.holds(row):
            return f"misread: {phrasing['text']} -> {reading.condition}, not {means}, on {row}"
    if (reading.argues, reading.always) != (phrasing.get("argues"), phrasing.get("always")):
        return f"verdict misread: {phrasing['text']} -> {reading.argues}, {reading.always}"
    return RIGHT


def rows_for(name: str, condition: Condition) -> list[dict[str, FactValue]]:
    """Rows of a world, and the same with values at the edges of the tests."""
    catalog, rows = world(name)
    dice = random.Random(str(condition))
    return [*rows, *(_at_the_edges(row, condition, catalog, dice) for row in rows)]


def _at_the_edges(
    row: dict[str, FactValue], condition: Condition, catalog: FactCatalog, dice: random.Random
) -> dict[str, FactValue]:
    changed = dict(row)
    for leaf in condition.leaves:
        value = leaf.value if isinstance(leaf, Test) else None
        if isinstance(value, float):
            whole = catalog[leaf.fact].is_whole
            tiny = 1.0 if whole else 1e-6
            near = dice.choice([value, value + tiny, value - tiny, value + 1, abs(value - 1), 2 * value])
            near = float(round(near)) if whole else near
            changed[leaf.fact] = near % 24 if leaf.fact == "hour" else near
        for name in leaf.facts & catalog.keys():
            profile = catalog[name]
            if profile.kind == "category":
                listed = (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ()
                changed[name] = dice.choice([*listed, *profile.values[:8]])
            elif profile.kind == "flag":
                changed[name] = dice.random() < 0.5
            if dice.random() < 0.06:
                changed.pop(name, None)
    return _consistent(changed, catalog)


def _consistent(row: dict[str, FactValue], catalog: FactCatalog) -> dict[str, FactValue]:
    """A row whose facts agree: an unknown entity has no past, and two that met have met each other."""
    hour = row.get("hour")
    if "night" in catalog and isinstance(hour, float):
        row["night"] = hour >= 23 or hour < 6
    if "weekday" in row:
        row["weekend"] = row["weekday"] in ("Saturday", "Sunday")
    elif "weekday" in catalog:
        row.pop("weekend", None)
    for name in list(row):
        if (match := re.fullmatch(r"(\w+)_new_(\w+)", name)) is not None:
            other = f"{match[2]}_new_{match[1]}"
            if other in row:
                row[other] = row[name]
            elif other in catalog:
                del row[name]
    for name in list(row):
        entity = re.fullmatch(r"(\w+?)_(?:count|sum)_\d+[hd]", name)
        kept = [f"{entity[1]}_count_{window}" for window in ("1h", "24h", "7d", "30d")] if entity else []
        if any(each not in row for each in kept):
            for gone in [each for each in row if entity and each.startswith(f"{entity[1]}_")]:
                del row[gone]
    _compare_with_usual(row)
    return row


def _compare_with_usual(row: dict[str, Any]) -> None:
    for end in ("", "_max"):
        usual, amount = row.get(f"usual_amount{end}"), row.get("amount")
        row.pop(f"amount_to_usual{end}", None)
        if isinstance(usual, float) and isinstance(amount, float) and usual > 0:
            row[f"amount_to_usual{end}"] = amount / usual


def tally(table: str, *worlds: str) -> Counter[str]:
    return Counter(outcome_of(each) for each in TABLES[table] if each["world"] in worlds)


def wrong_in(outcomes: Counter[str]) -> list[str]:
    return [outcome for outcome in outcomes if outcome not in (RIGHT, REFUSED, REFUSED_RIGHTLY)]


@pytest.mark.parametrize(
    "table", [table if table in QUICK else pytest.param(table, marks=pytest.mark.wide) for table in TABLES]
)
def test_phrasings_of_the_synthetic_world(table: str) -> None:
    outcomes = tally(table, "texts")
    assert wrong_in(outcomes) == []
    assert outcomes[RIGHT] >= LEAST[table] * (outcomes[RIGHT] + outcomes[REFUSED])


@needs_data
@pytest.mark.long
@pytest.mark.parametrize("table", TABLES)
def test_phrasings_of_public_datasets(table: str) -> None:
    outcomes = tally(table, *FILES)
    assert wrong_in(outcomes) == []
    assert outcomes[RIGHT] >= LEAST[table] * (outcomes[RIGHT] + outcomes[REFUSED])


def test_the_tables_hold_what_they_promise() -> None:
    assert sum(map(len, TABLES.values())) >= 200
    texts = [each["text"] for table in TABLES.values() for each in table]
    assert len(set(texts)) == len(texts)


if __name__ == "__main__":  # the figures of docs/rules.md
    for table in TABLES:
        found = tally(table, *FILES, "texts")
        print(f"{table}: {dict(found)}")
