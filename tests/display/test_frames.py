"""Results as data frames."""

from __future__ import annotations

import asyncio
from typing import Any

import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from acefraud import BulletPlaybook, Learner, Status, Transaction, backtest, compare, load_dataset
from acefraud.datasets.world import WorldOptions
from acefraud.display import frames
from acefraud.display.frames import frame_of_rows, is_frame, make_frame
from acefraud.engine.decider import DecisionList
from acefraud.errors import ConfigurationError

KINDS = {"polars": pl.DataFrame, "pandas": pd.DataFrame, "pyarrow": pa.Table}


@pytest.fixture(scope="module")
def learner() -> Learner:
    playbook = BulletPlaybook()
    playbook.add_bullet("Amount above $500: decline")
    retired = playbook.add_bullet("VPN = 95% fraud")
    playbook.set_status(retired, Status.RETIRED, why="too blunt")
    return Learner(playbook)


@pytest.mark.parametrize("backend", KINDS)
def test_bullets_come_in_the_library_that_is_asked_for(learner: Learner, backend: str) -> None:
    frame = learner.playbook.to_frame(backend)
    assert isinstance(frame, KINDS[backend])
    assert frame.shape[0] == 1
    assert learner.playbook.to_frame(backend, retired=True).shape[0] == 2
    assert learner.playbook.to_frame(backend, node="elsewhere").shape[0] == 0


@pytest.mark.parametrize("backend", KINDS)
def test_decisions_come_with_their_reasons_if_asked(learner: Learner, backend: str) -> None:
    orders = [{"id": "t1", "amount": 900}, {"id": "t2", "amount": 5}]
    decisions = learner.decide_all_sync(orders)
    plain, full = decisions.to_frame(backend), decisions.to_frame(backend, reasons=True)
    assert isinstance(plain, KINDS[backend])
    columns = nw.from_native(full).to_dict(as_series=False)
    assert columns["transaction_id"] == ["t1", "t2"]
    assert columns["decision_id"] == [decision.id for decision in decisions]
    assert columns["probability"] == [decision.probability for decision in decisions]
    assert [list(cited) for cited in columns["cited"]] == [list(decision.cited) for decision in decisions]
    assert columns["reason"][0].startswith("Amount above $500")


def test_decisions_that_were_built_one_by_one_read_like_a_list(learner: Learner) -> None:
    decided = learner.decide_all_sync([Transaction(id=f"t{n}", facts={"amount": n}) for n in range(4)])
    some = decided[1:3]
    assert isinstance(some, DecisionList)
    assert some == [decided[1], decided[2]]
    assert some != decided
    assert repr(some) == "<2 decisions>"
    assert some.to_frame()["transaction_id"].to_list() == ["t1", "t2"]
    assert "2 decisions" in some._repr_html_()
    assert some[0] in some
    assert asyncio.run(learner.decide_all([]))[:] == []


def test_a_comparison_and_a_backtest_become_frames(learner: Learner) -> None:
    data = load_dataset("complex_fraud_detection", options=WorldOptions(transactions=60))
    found = compare(data, seeds=1).to_frame("pandas")
    assert set(found["mode"]) == {"vanilla", "online_only", "offline_online"}
    assert found["mean"].between(0, 1).all()
    later = pl.DataFrame({"amount": [900.0, 20.0, 700.0, 30.0], "is_fraud": [1, 0, 0, 0]})
    measured = backtest(learner, later)
    assert measured.to_frame("pandas")["support"].tolist() == [2]
    assert measured.as_json()["rows"] == 4
    assert backtest(learner.playbook, load_dataset(later)).as_json() == measured.as_json()


def test_a_library_that_is_not_known_or_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="backend: expected one of polars, pandas, pyarrow, got 'excel'"):
        make_frame({"a": [1]}, "excel")

    def missing(*_: Any, **__: Any) -> None:
        raise ModuleNotFoundError

    monkeypatch.setattr("narwhals.from_dict", missing)
    with pytest.raises(ConfigurationError, match="pip install pandas"):
        frames.make_frame({"a": [1]}, "pandas")


def test_frames_are_told_from_other_things() -> None:
    assert is_frame(pl.DataFrame())
    assert is_frame(pl.LazyFrame())
    assert not any(map(is_frame, ("text", {"a": 1}, [1], 5, None, BulletPlaybook(), pl.Series([1]))))
    assert frame_of_rows([]).shape == (0, 0)
