"""The benchmark of recording decisions, with few of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import ledger

pytestmark = pytest.mark.wide


def test_both_kinds_of_durability_are_measured_beside_bare_inserts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "TOGETHER", 64)
    found = ledger.measure(tmp_path, 1)
    assert found["bytes"] > 100
    kinds = ("alone", "batch", "bare_alone", "bare_batch")
    assert set(found["microseconds"]) == {"memory.alone"} | {
        f"{durability}.{kind}" for durability in ("power", "process") for kind in kinds
    }
    assert min(found["ratios"].values()) > 0
