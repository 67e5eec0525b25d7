"""On public datasets the classifier learns and scores what the command line and the learner do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.effort import FULL

from acefraud import AceFraudClassifier, Learner, open_playbook

pytestmark = pytest.mark.wide

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("ACEFRAUD_DATA") or ROOT.parent / "shared" / "data")
TEXTS = "complex_fraud_detection.json"
SETS = (
    TEXTS,
    "cloudwalk",
    "vehicle_insurance",  # many rows at the same time, which go by ids made from their content
    "bri_atm",
    "ecommerce",
    "evalml_fraud",
    "card_handbook",
)
ROWS = 30_000 if FULL else 6_000
"""About how many rows of a larger set are used: a history is scored row by row."""


def frame_and_mapping(name: str) -> tuple[Any, Path | None]:
    """Rows from all over a dataset in pandas as a person would read them, and its mapping if it has one."""
    if name == TEXTS and (DATA / name).exists():
        return pd.DataFrame(json.loads((DATA / name).read_text("utf-8")))[["query", "answer"]], None
    file = next(iter(sorted((DATA / name).glob("data.*"))), None) if (DATA / name).is_dir() else None
    if file is None:
        pytest.skip(f"{DATA / name} is not there; ACEFRAUD_DATA names the folder that holds it")
    mapping = DATA / name / "mapping.toml"
    if not mapping.exists():
        mapping = ROOT / "benchmarks" / "mappings" / f"{name}.toml"
    if file.suffix == ".parquet":
        return pl.read_parquet(file).gather_every(60 if FULL else 300).to_pandas(), mapping
    frame = pd.read_csv(file, keep_default_na=False, na_values=[""])
    return frame[:: max(1, len(frame) // ROWS)], mapping


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:no bullet was learnt")  # of the 83 texts
@pytest.mark.filterwarnings("ignore::acefraud.errors.InputWarning")
@pytest.mark.parametrize("name", SETS)
def test_it_learns_and_scores_as_the_command_line_and_the_learner_do(name: str, tmp_path: Path) -> None:
    frame, mapping = frame_and_mapping(name)
    cut = round(0.8 * len(frame))
    train, later = frame[:cut], frame[cut:]
    file, book = tmp_path / "history.csv", tmp_path / "book.db"
    train.to_csv(file, index=False)
    command = [sys.executable, "-m", "acefraud", "train", str(file), "--playbook", str(book)]
    subprocess.run([*command, *(["--mapping", str(mapping)] if mapping else [])], check=True, capture_output=True)
    model = AceFraudClassifier(mapping=mapping).fit(train)
    with open_playbook(book) as trained:
        assert model.playbook_.to_frame().equals(trained.to_frame())
        scores = Learner(trained).score_all(later, every_bullet=True)
    odds = model.decision_function(later)
    np.testing.assert_array_equal(model.predict_proba(later)[:, 1], scores.probabilities)
    sums = model.explain(later).groupby("row")["contribution"].sum().to_numpy()
    np.testing.assert_allclose(sums, odds, rtol=0, atol=1e-9)
