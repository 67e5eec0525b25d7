"""The benchmark of the service: it runs, and compares like with like."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.service.command import Shape, measure

pytestmark = [pytest.mark.long, pytest.mark.enable_socket]


def test_the_service_is_measured_beside_a_bare_route(tmp_path: Path) -> None:
    shape = Shape(bullets=20, requests=100, clients=4, workers=2, rounds=1)
    shares: list[float] = []

    found = measure(str(tmp_path / "book.db"), str(tmp_path / "rows.db"), shape, shares.append)

    service, bare = found["service"], found["bare"]
    assert found["throughput"] == service["per_second"] / bare["per_second"]
    assert found["p99"] == service["p99"] / bare["p99"]
    assert 0 < service["p50"] <= service["p99"]
    assert found["row_bytes"] > 100
    assert shares == [0.5]
