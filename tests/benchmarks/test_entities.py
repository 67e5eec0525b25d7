"""The benchmark of busy entities, with a small one."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import entities

pytestmark = pytest.mark.wide


@pytest.mark.long
def test_a_busy_entity_is_decided_beside_quiet_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities, "ALONE", 10)
    monkeypatch.setattr(entities, "QUIET", 20)
    monkeypatch.setattr(entities, "BATCHES", 2)
    found = entities.measure(str(tmp_path / "book.db"), tmp_path / "without.db", 1_000)
    assert 0 < found["longest_row_kb"] < 20
    assert found["busy_to_quiet"] > 0
    assert found["batches_ms_a_row"]["history"] > 0
    assert found["alone"]["busy"]["p90_ms"] >= found["alone"]["busy"]["p50_ms"]
