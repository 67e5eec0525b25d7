"""`python -m benchmarks fits`: both learners are given the same rows, and what is printed adds up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acefraud import FactTable
from benchmarks.fits import frame_of

pytestmark = pytest.mark.wide

ROWS = 1_200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two small datasets, in which high amounts are fraud half of the time."""
    for name, seed in (("one", 1), ("two", 2)):
        random = np.random.default_rng(seed)
        amounts, channels = random.integers(1, 1_000, ROWS), random.choice(["web", "app"], ROWS)
        frauds = (amounts > 900) & (random.random(ROWS) < 0.5)
        rows = [f"{n},{a},{c},{int(f)}" for n, (a, c, f) in enumerate(zip(amounts, channels, frauds, strict=True))]
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.csv").write_text("\n".join(["id,amount,channel,is_fraud", *rows]) + "\n")
    return tmp_path


def test_both_are_fitted_on_all_rows_and_compared(bench: Any, folder: Path) -> None:
    found = bench("fits", folder, "--turns", "1", "--json").json
    assert set(found["datasets"]) == {"one", "two"}
    for each in found["datasets"].values():
        assert each["rows"] == ROWS
        assert each["frauds"] > 20
        assert each["ratio"] == pytest.approx(each["acefraud_seconds"] / each["lightgbm_seconds"])
    one, two = (each["ratio"] for each in found["datasets"].values())
    assert found["geometric_mean"]["ratio"] == pytest.approx((one * two) ** 0.5)


def test_ratios_are_printed(bench: Any, folder: Path) -> None:
    printed = bench("fits", folder, "--only", "two", "--turns", "1").out
    assert "geometric mean" in printed
    assert f"{ROWS:,}" in printed
    assert "one" not in printed


def test_a_frame_has_a_column_for_each_fact() -> None:
    frame = frame_of(FactTable([{"amount": 5.0, "vpn": True, "channel": "web"}, {"amount": 7.0, "channel": "app"}]))
    assert frame["amount"].tolist() == [5.0, 7.0]
    assert frame["vpn"].isna().tolist() == [False, True]
    assert frame["channel"].tolist() == ["web", "app"]
