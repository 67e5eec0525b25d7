"""`python -m benchmarks parts`: how a history is cut, and what is run on it."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from acefraud import SchemaMapping, load_dataset
from benchmarks import parts

pytestmark = pytest.mark.wide

MAPPING = 'id = "ID"\ntime = "TIME"\nlabel = "FRAUD"\namount = "AMOUNT"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    times = [datetime(2024, 1, 30) + timedelta(hours=12 * step) for step in range(10)]
    rows = pl.DataFrame({"ID": range(10), "TIME": times, "FRAUD": [0, 1] * 5, "AMOUNT": [5.0] * 10})
    rows.write_parquet(tmp_path / "cards.parquet")
    (tmp_path / "cards.toml").write_text(MAPPING)
    return tmp_path / "cards.parquet"


def test_copies_come_later_and_have_ids_of_their_own(file: Path, tmp_path: Path) -> None:
    mapping = SchemaMapping.load(file.with_suffix(".toml"))
    assert parts.cut(file, mapping, 2, tmp_path / "parts") == 20
    assert [path.stem for path in sorted((tmp_path / "parts").iterdir())] == [
        "2024-01-000", "2024-02-000", "2024-02-001",
    ]  # fmt: skip
    cases = [load_dataset(path, mapping=mapping).train.transactions for path in sorted((tmp_path / "parts").iterdir())]
    ids, times = zip(*((row.id, row.time) for part in cases for row in part), strict=True)
    assert len(set(ids)) == 20
    assert list(times) == sorted(times)


def test_every_way_is_run_on_the_same_parts(bench: Any, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def apart(command: list[str], env: dict[str, str] | None = None) -> tuple[dict[str, float], dict[str, Any]]:
        commands.append(command)
        told = {"bullets": 3, "playbook": "abc", "size": 9, "digest": "def"}
        return {"seconds": 8.0, "memory": 500.0}, told

    monkeypatch.setattr(parts, "apart", apart)
    monkeypatch.setattr(parts, "needed", lambda _: None)
    got = bench("parts", str(file), "--mapping", str(file.with_suffix(".toml")), "--json").json
    assert (got["rows"], got["parts"]) == (10, 2)
    assert list(got["ways"]) == [
        "one file", "1 in processes", "2 in processes", "2 on Dask", "1 on Dask, LightGBM", "2 on Dask, LightGBM",
    ]  # fmt: skip
    assert got["ways"]["2 on Dask"]["digest"] == "abc"
    trained = [command for command in commands if "train" in command]
    assert [command[-3] for command in trained] == [str(file), "1", "2", trained[1][-5]]
