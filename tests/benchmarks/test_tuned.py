"""`python -m benchmarks tuned`: which rows a search sees, and the figures beside tuned boosters."""

from __future__ import annotations

import random
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acefraud import Dataset, load_dataset
from acefraud.errors import InputError
from benchmarks.quality.splits import split_rows
from benchmarks.tuned import command
from benchmarks.tuned import search as searching
from benchmarks.tuned.command import contenders, searched
from benchmarks.tuned.search import Found, Limits, search_parts

pytestmark = pytest.mark.wide

MISSING = [name for name in ("lightgbm", "catboost", "optuna") if find_spec(name) is None]


def history(rows: int, *, timed: bool = True) -> str:
    """Transactions as CSV: large ones of one channel are fraud, with a little noise."""
    chance = random.Random(5)
    lines = ["id,amount,channel,label" + ",time" * timed]
    for n in range(rows):
        amount, channel = chance.randint(10, 3000), chance.choice(["web", "app", "phone"])
        fraud = (amount > 1500 and channel == "web") or chance.random() < 0.04
        time = f",2024-01-{1 + n // 24:02d}T{n % 24:02d}:00:00Z" * timed
        lines.append(f"h{n},{amount},{channel},{int(fraud)}{time}")
    return "\n".join(lines) + "\n"


def loaded(folder: Path, *, timed: bool = True) -> Dataset:
    """The same as a dataset of 400 rows."""
    file = folder / "data.csv"
    file.write_text(history(400, timed=timed))
    return load_dataset(file)


def ids(cases: Any) -> list[str]:
    """Which rows these are."""
    return [str(id_) for id_ in cases.transactions.ids]


def test_the_latest_training_rows_validate(tmp_path: Path) -> None:
    data = loaded(tmp_path)
    split = split_rows(data.train)
    train, validation = search_parts(data.train, split, name="data")
    assert ids(train) + ids(validation) == [f"h{n}" for n in split.train]
    assert len(validation) == round(len(split.train) / 4)


def test_a_search_takes_the_latest_rows_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_ROWS", 100)
    data = loaded(tmp_path)
    split = split_rows(data.train)
    train, validation = search_parts(data.train, split, name="data")
    assert ids(train) + ids(validation) == [f"h{n}" for n in split.train[-100:]]


def test_without_times_a_share_of_each_label_validates(tmp_path: Path) -> None:
    data = loaded(tmp_path, timed=False)
    split = split_rows(data.train)
    train, validation = search_parts(data.train, split, name="data")
    assert {*ids(train), *ids(validation)} == {f"h{n}" for n in split.train}
    assert validation.labels.mean() == pytest.approx(train.labels.mean(), abs=0.01)


def test_a_search_without_frauds_is_an_error(tmp_path: Path) -> None:
    data = loaded(tmp_path)
    split = split_rows(data.train)
    data.train.labels[split.train[-100:]] = False
    with pytest.raises(InputError, match="the validation part has 70 rows of which 0 are fraud"):
        search_parts(data.train, split, name="data")


@pytest.mark.parametrize(("timed", "searches"), [(True, [0]), (False, [0, 1])])
def test_seeds_share_a_search_if_they_share_the_training_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timed: bool, searches: list[int]
) -> None:
    def search(*_: Any, seed: int, **__: Any) -> Found:
        return Found({}, trees=10 + seed, average_precision=0.5, rows=10, trials=1, seconds=1.0)

    monkeypatch.setattr(command, "search", search)
    found = searched(loaded(tmp_path, timed=timed), range(2), Limits(1, 1.0))
    assert {name: list(by_seed) for name, by_seed in found.items()} == {
        "tuned_lightgbm": searches,
        "tuned_catboost": searches,
    }
    assert list(contenders(found)) == ["acefraud", "lightgbm", "tuned_lightgbm", "tuned_catboost"]


def test_a_library_that_is_missing_is_told_first(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    ran = bench("tuned", bench.folder, code=2)
    assert "the benchmark needs optuna" in ran.err
    assert "pip install '.[tuned]'" in ran.err


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (pip install '.[tuned]')")
def test_boosters_are_tuned_and_measured(bench: Any) -> None:
    (bench.folder / "data" / "one").mkdir(parents=True)
    (bench.folder / "data" / "one" / "data.csv").write_text(history(300))
    got = bench("tuned", "data", "--trials", "2", "--seeds", "1", "--out", "got", "--json").json
    one = got["datasets"]["one"]
    reached = {name: figure["mean"] for name, figure in one["average_precision"].items()}
    assert list(reached) == ["acefraud", "lightgbm", "tuned_lightgbm", "tuned_catboost"]
    better = max(reached["tuned_lightgbm"], reached["tuned_catboost"])
    assert one["ratio_to_better_tuned"] == pytest.approx(reached["acefraud"] / better, abs=1e-4)
    assert got["ratio_to_better_tuned"]["geometric_mean"] == one["ratio_to_better_tuned"]
    for searches in one["searches"].values():
        assert [search["trials"] for search in searches] == [2]
        assert np.isfinite(searches[0]["average_precision"])
    assert "| one |" in (bench.folder / "got" / "tuned.md").read_text()
