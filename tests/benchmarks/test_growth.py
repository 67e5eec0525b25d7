"""The benchmark of large files, with small ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import growth

pytestmark = pytest.mark.wide


@pytest.mark.long
def test_both_files_are_used_and_half_of_each_is_archived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "SMALL", 20)
    monkeypatch.setattr(growth, "TOGETHER", 5)
    shares: list[float] = []
    found = growth.measure(tmp_path, 40, shares.append)
    assert shares[-1] == 1.0
    assert (found["small"]["archived"], found["large"]["archived"]) == (10, 20)
    assert min(found["large"]["seconds"].values()) > 0
    assert found["large"]["bytes"]["peak_memory"] > found["large"]["bytes"]["archive"] > 0
