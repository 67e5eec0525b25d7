"""The benchmark of several processes on one file, with few of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.writers import measure

pytestmark = pytest.mark.wide


def test_everything_is_recorded_once_and_timed(tmp_path: Path) -> None:
    found = measure(tmp_path / "book.db", processes=2, each=3)
    assert found["recorded"] == {"decision": 6, "outcome": 6}
    assert found["missing"] == found["doubled"] == {"decision": 0, "outcome": 0}
    assert found["seconds"] > 0
    for latency in found["milliseconds"].values():
        assert 0 < latency["p50"] <= latency["p99"] <= latency["max"]
