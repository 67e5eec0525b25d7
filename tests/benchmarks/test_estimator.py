"""The benchmark of the classifier."""

from __future__ import annotations

import pytest

from benchmarks import estimator
from benchmarks.estimator import COLUMNS, make_frame, measure

pytestmark = pytest.mark.wide


def test_the_frame_is_the_same_for_both() -> None:
    frame, labels = make_frame(5_000, seed=0)
    assert frame.shape == (5_000, COLUMNS)
    assert 0 < labels.mean() < 0.05
    assert frame.equals(make_frame(5_000, seed=0)[0])


@pytest.mark.parametrize("name", ["acefraud", "lightgbm"])
def test_each_library_is_measured_in_the_same_way(name: str) -> None:
    found = measure(name, 4_000)
    assert set(found) == {"frame_mb", "fit_seconds", "score_seconds", "peak_mb", "average_precision"}
    assert all(value >= 0 for value in found.values())


def test_ratios_are_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"frame_mb": 100, "fit_seconds": 2.0, "score_seconds": 0.5, "peak_mb": 150, "average_precision": 0.4}
    halved = {**figures, "fit_seconds": 1.0}
    monkeypatch.setattr(estimator, "_in_own_process", lambda name, _: figures if name == "acefraud" else halved)
    estimator.estimator(rows=4_000)
    printed = capsys.readouterr().out
    assert "2.00" in printed
    estimator.estimator(rows=4_000, json=True)
    assert '"columns": 30' in capsys.readouterr().out
