"""The commands of the benchmarks: quality on small folders, speed with figures that nobody measured."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acefraud import Cases, load_dataset
from acefraud.datasets import SchemaMapping
from benchmarks.arrays import Numbers
from benchmarks.quality.contenders import CONTENDERS
from benchmarks.quality.measures import NAMES
from benchmarks.speed.figures import Figures

pytestmark = pytest.mark.wide

MAPPINGS = Path(__file__).parents[2] / "benchmarks" / "mappings"
SHARED = Path(os.environ.get("ACEFRAUD_DATA") or Path(__file__).parents[3] / "shared" / "data")


def history(rows: int) -> str:
    """Transactions as CSV: large ones through a VPN are fraud, with a little noise."""
    chance = random.Random(5)
    lines = ["id,time,amount,vpn,account_age_days,label"]
    for n in range(rows):
        amount, vpn, age = chance.randint(10, 3000), chance.random() < 0.5, chance.randint(1, 900)
        fraud = (amount > 1500 and vpn) or chance.random() < 0.04
        lines.append(f"h{n},2024-01-{1 + n // 10:02d}T{n % 10:02d}:00:00Z,{amount},{vpn},{age},{int(fraud)}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def data(bench: Any) -> Path:
    """Two datasets, the second with a mapping beside it."""
    folder: Path = bench.folder / "data"
    for name in ("one", "two"):
        (folder / name).mkdir(parents=True)
        (folder / name / "data.csv").write_text(history(200))
    (folder / "two" / "mapping.toml").write_text('label = "label"\ntime = "time"\nignore = ["account_age_days"]\n')
    (folder / "notes").mkdir()
    return folder


class ByAmount:
    """Stands in for a learner: the higher the amount, the more like fraud."""

    settings, size, cited, rows_cap = "none", None, None, None

    def __init__(self, seed: int) -> None: ...

    def fit(self, train: Cases, _: str) -> None: ...

    def score(self, test: Cases) -> Numbers:
        amount = test.facts.numbers("amount")
        return np.asarray(amount / (amount + 1500), dtype=np.float64)


class Broken(ByAmount):
    """Stands in for a learner that cannot."""

    def score(self, test: Cases) -> Numbers:
        raise MemoryError(f"too | much for {len(test)}")


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pictures, and learners that need no library: importing these and drawing take seconds."""
    monkeypatch.setattr("benchmarks.quality.command.pictures", lambda _: {})
    for name in ("lightgbm", "tree"):
        monkeypatch.setitem(CONTENDERS, name, ByAmount)


@pytest.mark.usefixtures("stand_ins")
def test_figures_go_to_the_screen_and_into_files(bench: Any, data: Path) -> None:
    ran = bench("quality", data, "--models", "lightgbm,acefraud", "--out", "got")
    assert "one has no mapping; it was read with this guess" in ran.err
    assert "two has no mapping" not in ran.err
    assert 'label = "label"' in ran.out
    assert "Average precision as a share of LightGBM's" in ran.out
    assert "Evidence held: of " in ran.out
    figures = json.loads((bench.folder / "got" / "quality.json").read_text())
    assert "account_age_days" in figures["about"]["one"]["facts"]
    assert "account_age_days" not in figures["about"]["two"]["facts"]
    assert "| acefraud |" in (bench.folder / "got" / "quality.md").read_text()


@pytest.mark.long
def test_real_learners_with_pictures(bench: Any, data: Path) -> None:
    bench("quality", data, "--models", "lightgbm,tree,river_hat", "--seeds", "2", "--out", "got")
    written = {path.name for path in (bench.folder / "got").iterdir()}
    kinds = ("precision_recall", "stream", "reliability")
    assert written == {"quality.json", "quality.md"} | {
        f"{name}_{kind}.png" for name in ("one", "two") for kind in kinds
    }
    assert "| river_hat |" in (bench.folder / "got" / "quality.md").read_text()


@pytest.mark.usefixtures("stand_ins")
def test_json_is_one_object(bench: Any, data: Path) -> None:
    ran = bench("quality", data, "--datasets", "one", "--models", "lightgbm,tree", "--rows", "150", "--json")
    assert "it was read with this guess" in ran.err
    got = ran.json
    assert list(got["datasets"]) == ["one"]
    tree = got["datasets"]["one"]["tree"]
    for figure in NAMES:
        assert tree[figure]["low"] <= tree[figure]["mean"] <= tree[figure]["high"]
    assert got["about"]["one"]["rows"] == 150
    ratio = tree["average_precision"]["mean"] / got["datasets"]["one"]["lightgbm"]["average_precision"]["mean"]
    assert got["ratios"]["tree"]["geometric_mean"] == pytest.approx(ratio, abs=1e-4)
    assert (bench.folder / "out" / "quality" / "quality.json").exists()


@pytest.mark.usefixtures("stand_ins")
def test_a_dataset_that_cannot_be_read_does_not_end_the_others(bench: Any, data: Path) -> None:
    (data / "broken").mkdir()
    (data / "broken" / "data.csv").write_text("id,amount\n1,2\n")
    ran = bench("quality", data, "--models", "tree", "--json", code=1)
    assert list(ran.json["datasets"]) == ["one", "two"]
    assert "no column with a label" in ran.json["not_measured"]["broken"]
    assert "failed: broken: " in ran.err
    told = (bench.folder / "out" / "quality" / "quality.md").read_text()
    assert "## broken\n\nNot measured: " in told
    assert "no column with a label" in bench("quality", data, "--datasets", "broken", code=2).err


@pytest.mark.usefixtures("stand_ins")
def test_the_folder_of_the_environment_and_mappings_from_elsewhere(
    bench: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACEFRAUD_DATA", str(data))
    (bench.folder / "maps").mkdir()
    (bench.folder / "maps" / "one.toml").write_text('ignore = ["vpn"]\ntime_facts = []\n')
    ran = bench("quality", "--models", "tree", "--datasets", "one", "--mappings", "maps", "--json")
    assert ran.json["about"]["one"]["facts"] == ["account_age_days", "amount"]
    assert "guess" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere: there is no such folder"),
        (["data/notes"], "no dataset here: expected folders with data.csv or data.parquet in them"),
        (["data", "--datasets", "one,three"], "data has no dataset 'three'; it has: one, two"),
        (["data", "--models", "lightgbm,magic"], "there is no model 'magic'; the models are: "),
        (["data", "--mappings", "nowhere"], "--mappings: there is no folder nowhere"),
        (["data", "--models", "tree", "--entity-disjoint", "card"], "'card' is not among the entities"),
        ([], "no folder of datasets: name one, or set ACEFRAUD_DATA"),
    ],
)
@pytest.mark.usefixtures("stand_ins")
def test_what_cannot_be_done_is_one_line(bench: Any, data: Path, arguments: list[str], said: str) -> None:
    models = () if "--models" in arguments else ("--models", "tree")
    ran = bench("quality", *arguments, *models, "--json", code=2)
    assert said in ran.err
    assert not ran.out


@pytest.mark.usefixtures("stand_ins")
def test_a_dataset_of_one_class_is_an_error(bench: Any, data: Path) -> None:
    (data / "one" / "data.csv").write_text("x,label\n" + "1,0\n" * 30)
    ran = bench("quality", data, "--datasets", "one", "--models", "tree", code=2)
    assert "one: the training part has 21 rows of which 0 are fraud: expected both kinds" in ran.err


def test_a_missing_library_is_told_before_anything_is_read(
    bench: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    ran = bench("quality", data, code=2)
    assert "pip install '.[bench]'" in ran.err


@pytest.mark.usefixtures("stand_ins")
def test_who_fails_is_told_and_the_rest_is_measured(bench: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTENDERS, "tree", Broken)
    ran = bench("quality", data, "--models", "tree,lightgbm", "--datasets", "two", code=1)
    assert "failed: tree on two: MemoryError: too | much for 60" in ran.err
    figures = json.loads((bench.folder / "out/quality/quality.json").read_text())["datasets"]["two"]
    assert figures["tree"] == {"error": "MemoryError: too | much for 60"}
    assert figures["lightgbm"]["average_precision"]["mean"] > 0.3
    assert (
        "| tree | failed: MemoryError: too \\| much for 60 |" in (bench.folder / "out/quality/quality.md").read_text()
    )


@pytest.mark.parametrize("path", sorted(MAPPINGS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_mappings_of_the_benchmark_are_sound(path: Path) -> None:
    mapping = SchemaMapping.load(path)
    assert mapping.label
    if path.stem == "card_handbook":
        assert "TX_FRAUD_SCENARIO" in (mapping.ignore or ())


@pytest.mark.parametrize("name", ["cloudwalk", "vehicle_insurance"])
def test_the_mappings_of_the_benchmark_fit_their_files(name: str) -> None:
    file = SHARED / name / "data.csv"
    if not file.exists():
        pytest.skip(f"there is no {name}/data.csv in the folder of ACEFRAUD_DATA, nor in ../shared/data")
    data = load_dataset(file, mapping=MAPPINGS / f"{name}.toml").with_history()
    assert not data.bad_rows
    assert not {*data.train.transactions.entities, "PolicyNumber"} & set(data.train.facts.names)


# --- speed ---


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Figures that nobody measured, and what was asked for."""
    asked: list[Any] = []

    def measure(sizes: tuple[int, ...], seed: int, progress: Any) -> Figures:
        asked.append((sizes, seed))
        progress(1.0)
        figures = Figures(sizes, seed)
        for size in sizes:
            figures.time("selection", size / 1e6, size)
        figures.faster("dedupe_10k.difflib", 2.0, 1.0, "difflib")
        figures.time("decision", 0.001)
        figures.shares["selection_1k"] = {"contextual": 1.0, "semantic": 0.5}
        return figures

    monkeypatch.setattr("benchmarks.speed.command.measure_speed", measure)
    monkeypatch.setattr("benchmarks.speed.command.check_libraries", lambda: None)
    monkeypatch.setattr("benchmarks.speed.command.picture", lambda _, kind: kind.encode())
    return asked


def test_speed_goes_to_the_screen_and_into_files(bench: Any, measured: list[Any]) -> None:
    ran = bench("speed", "--sizes", "10k,1k", "--seed", "3")
    assert measured == [((1_000, 10_000), 3)]
    assert "selection" in ran.out
    assert "1.00" in ran.out
    assert ">= 300 (missed)" in ran.out
    assert "selection_1k: contextual 100 %, semantic 50 %" in ran.out
    folder = bench.folder / "out" / "speed"
    assert {path.name for path in folder.iterdir()} == {"speed.json", "speed.md", "performance.svg", "performance.png"}
    assert "| dedupe_10k.difflib | 2 | >= 300 (missed) | how many times faster than difflib |" in (
        folder / "speed.md"
    ).read_text("utf-8")


@pytest.mark.usefixtures("measured")
def test_speed_as_json_is_one_object(bench: Any) -> None:
    got = bench("speed", "--sizes", "1k,10k", "--out", "there", "--json").json
    assert got["ratios"] == {"dedupe_10k.difflib": 2.0}
    assert got["meaning"] == {"dedupe_10k.difflib": "how many times faster than difflib"}
    assert got["wanted"] == {"dedupe_10k.difflib": ">= 300"}
    assert got["missed"] == ["dedupe_10k.difflib"]
    assert got["seconds"] == {"selection_1k": 0.001, "selection_10k": 0.01, "decision": 0.001}
    assert got["growth"]["selection"] == pytest.approx(1.0)
    assert json.loads((bench.folder / "there" / "speed.json").read_text()) == got


@pytest.mark.usefixtures("measured")
def test_speed_that_cannot_be_measured_is_one_line(bench: Any) -> None:
    ran = bench("speed", "--sizes", "1k,many", code=2)
    assert "--sizes: expected numbers of bullets from 50 to 10k, got 'many'" in ran.err
    (bench.folder / "taken").write_text("a file")
    ran = bench("speed", "--sizes", "1k", "--out", "taken", code=2)
    assert "cannot write to taken" in ran.err


def test_a_library_that_speed_needs_is_told_first(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    ran = bench("speed", "--sizes", "1k", code=2)
    assert "pip install '.[bench]'" in ran.err


@pytest.mark.long
def test_speed_for_real(bench: Any) -> None:
    got = bench("speed", "--sizes", "100,200", "--json").json
    assert got["ratios"]["dedupe_200.disagreements"] == 0
    assert (bench.folder / "out" / "speed" / "performance.svg").read_text("utf-8").startswith("<?xml")
