"""`make bench-large` on few rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "large_fit.py"


@pytest.mark.long
def test_both_learners_are_measured_on_the_same_rows() -> None:
    ran = subprocess.run(
        [sys.executable, SCRIPT, "--rows", "8000", "--json"], check=True, capture_output=True, text=True, timeout=300
    )
    found = json.loads(ran.stdout)
    assert found["about"]["rows"] == 8000
    assert found["about"]["frauds"] == pytest.approx(64, abs=30)
    for model in found["models"].values():
        assert model["fit_seconds"] > 0
        assert 0 <= model["memory_above_loading"] < model["memory"]
    ratio = found["models"]["acefraud"]["memory"] / found["models"]["lightgbm"]["memory"]
    assert found["ratios"]["memory"] == pytest.approx(ratio)
