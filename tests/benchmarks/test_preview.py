"""The benchmark of previews: it runs, and compares like with like."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.preview import measure

pytestmark = pytest.mark.wide


def test_a_preview_is_measured_beside_scoring(tmp_path: Path) -> None:
    found = measure(tmp_path, 200, 400)
    assert found["transactions"] == 600
    assert found["ratio"] == found["preview_ms"] / found["score_ms"]
    assert found["flips"] >= 0
