"""The benchmark of sudden change, on short streams."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from benchmarks import change
from benchmarks.change import Planted, cases_of, measure, runs, up_and_down

pytestmark = pytest.mark.wide


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "SETTLED", 50)
    monkeypatch.setattr(change, "MEASURED", 100)
    monkeypatch.setattr(change, "BEFORE", 200)


def test_streams_jump_where_they_say() -> None:
    planted = up_and_down(np.random.default_rng(0))
    before, attack, after = np.split(planted.labels, list(planted.jumps.values()))
    assert attack.mean() > 0.3
    assert max(before.mean(), after.mean()) < 0.1
    planted = runs(np.random.default_rng(0))
    assert planted.labels[planted.jumps["runs"] :][:200].all()
    assert not planted.labels[planted.jumps["runs"] :][200:1000].any()


def test_patterns_change_where_they_say(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "AFTER", 200)
    cases = change.changing_cases(change.PATTERNS["swapped"], np.random.default_rng(0))
    far, large = (np.log(cases.facts.numbers(name)) for name in ("distance_km", "amount"))
    before, after = cases.labels[:200], cases.labels[200:]
    assert large[:200][before].mean() > 4 > far[:200][before].mean()
    assert far[200:][after].mean() > 4 > large[200:][after].mean()
    got = json.loads(bench("change", "--streams", "pattern", "--seeds", "1", "--json").out)["patterns"]
    assert [each["learner"] for each in got] == ["acefraud", "river_arf", "river_logistic"]
    assert all(0 < each["after"][0] <= 1 for each in got)
    assert "river_arf" in bench("change", "--streams", "unchanged", "--seeds", "1").out


def test_labels_arrive_after_so_many_cases() -> None:
    cases = cases_of(np.array([True, False, True]), 2, np.random.default_rng(0))
    assert cases[0].known_at == cases[2].transaction.time


def test_every_jump_has_its_figures() -> None:
    labels = np.random.default_rng(0).random(400) < np.repeat([0.05, 0.4], 200)
    found = measure(lambda _: Planted(labels, {"up": 200}), 20, 0)
    assert set(found) == {"up"}
    assert 0 <= found["up"]["calibration_error"] <= 1
    assert 0 <= found["up"]["roc_auc"] <= 1


def test_the_command_prints_json_for_each_stream_and_delay(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {"calibration_error": 0.1, "roc_auc": 0.7, "roc_auc_at_once": 0.6, "average_precision": 0.5}
    monkeypatch.setattr(change, "measure", lambda *_: {"up": figures})
    got = json.loads(bench("change", "--streams", "runs", "--seeds", "2", "--json").out)
    assert [(each["stream"], each["delay"]) for each in got["figures"]] == [("runs", 0), ("runs", 100)]
    assert got["figures"][0]["calibration_error"] == 0.1
    assert "runs" in bench("change", "--streams", "runs", "--seeds", "1").out
    assert "unknown stream" in bench("change", "--streams", "walks", code=2).err
