"""`python -m benchmarks footprint`."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.footprint import count_code, trace_calls

pytestmark = pytest.mark.wide


def test_only_lines_of_code_are_counted(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text('"""A module."""\n\n# A comment\nx = (\n    1\n)\n')
    (tmp_path / "two.py").write_text('class A:\n    b = 1\n    """An attribute."""\n')
    assert count_code(tmp_path) == {"lines": 5, "files": 2}


@pytest.mark.long
@pytest.mark.enable_socket
def test_a_decision_and_an_outcome_are_traced_through_the_package() -> None:
    found = trace_calls()
    for name in ("decide", "hear"):
        assert 1 < found[name]["files"] < found[name]["functions"]
        assert found[name]["files"] < found[name]["cross_file_calls"]
    assert all(traced["statements"] > 0 for traced in found.values())
