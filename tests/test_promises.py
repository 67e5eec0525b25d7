"""The promises with figures: the order of the modes on the shipped world, and the public texts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acefraud.cli import app

pytestmark = pytest.mark.wide

SHARED = Path(os.environ.get("ACEFRAUD_DATA") or Path(__file__).parent.parent.parent / "shared" / "data")
TEXTS = SHARED / "complex_fraud_detection.json"


@pytest.mark.long
def test_each_mode_is_clearly_better_than_the_one_before() -> None:
    result = CliRunner().invoke(app, ["compare", "--json", "--seeds", "5"], catch_exceptions=False)
    found = json.loads(result.stdout)
    gains = {name: figures["accuracy"] for name, figures in found["differences"].items()}
    assert gains["online_only_vs_vanilla"]["low"] > 0
    assert gains["offline_online_vs_online_only"]["low"] > 0
    assert gains["offline_online_vs_vanilla"]["mean"] >= 0.10


@pytest.mark.skipif(not TEXTS.exists(), reason=f"no public texts at {TEXTS}; ACEFRAUD_DATA names their folder")
def test_more_than_nine_in_ten_of_the_public_texts_are_decided_right_by_cross_validation() -> None:
    result = CliRunner().invoke(app, ["compare", str(TEXTS), "--seeds", "1", "--json"], catch_exceptions=False)
    found = json.loads(result.stdout)
    assert found["test_rows"] == 83
    assert found["modes"]["offline_online"]["accuracy"]["mean"] > 0.9
