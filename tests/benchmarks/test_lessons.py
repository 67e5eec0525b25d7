"""`python -m benchmarks lessons`: whether bullets are worth reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from acefraud import BulletPlaybook
from benchmarks.lessons import argues_against_evidence, is_short, learnt, noise

pytestmark = pytest.mark.wide


@pytest.mark.filterwarnings("ignore::acefraud.errors.InputWarning")
def test_a_planted_pattern_is_measured_and_noise_is_not_learnt(bench: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = pl.DataFrame({"paid": random.exponential(100, 800), "tries": random.integers(0, 9, 800)})
    fraud = random.random(800) < np.where(rows["paid"] > 200, 0.6, 0.03)
    (tmp_path / "planted").mkdir()
    rows.with_columns(is_fraud=pl.Series(fraud.astype(int))).write_csv(tmp_path / "planted" / "data.csv")
    got = bench("lessons", str(tmp_path), "--seeds", "1", "--shuffles", "1", "--bootstraps", "1", "--json").json
    planted = got["planted"]
    assert planted["bullets"][0] > 0
    assert planted["against"] == 0
    assert planted["average_precision"][0] > 0.3
    assert planted["found_again"][0] > 0
    assert (planted["shuffled"], got["pure noise"]["shuffled"]) == ([0], [0])


def test_what_noise_is() -> None:
    cases = noise(1)
    assert 0.02 <= cases.labels.mean() <= 0.3
    assert learnt(cases, 0) == []


def test_what_is_short() -> None:
    book = BulletPlaybook()
    for text in ("amount > 900 and vpn is true: decline", "amount > 900 and vpn is true and new device: decline"):
        book.add_bullet(text)
    short, long = book.get_bullets_for_node("fraud_detection")
    assert (is_short(short), is_short(long)) == (True, False)
    assert not argues_against_evidence(short), "it was never measured"
