"""The benchmark of a stream, on a few lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acefraud import Transaction, open_playbook
from benchmarks.stream import lines_of, measure

pytestmark = pytest.mark.wide

PAID = [
    Transaction(id="t1", facts={"amount": 900.0}, text="Gift cards for $900"),
    Transaction(id="t2", text="$5 coffee"),
]


def test_lines_are_endless_and_have_ids_of_their_own() -> None:
    lines = lines_of(PAID, texts=True)
    found = [json.loads(next(lines)) for _ in range(3)]
    assert [(each["id"], each["text"]) for each in found] == [
        ("s0", "Gift cards for $900"),
        ("s1", "$5 coffee"),
        ("s2", "Gift cards for $900"),
    ]
    assert json.loads(next(lines_of(PAID, texts=False)))["facts"] == {"amount": 900.0}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the memory of a process")
def test_every_line_is_answered_and_timed(tmp_path: Path) -> None:
    with open_playbook(tmp_path / "book.db") as book:
        book.add_bullet("VPN: decline")
    found = measure(tmp_path / "book.db", lines_of(PAID, texts=False), rate=100.0, seconds=0.4, batch_ms=5)
    assert (found["sent"], found["answered"], found["bad"]) == (40, 40, 20)
    assert 0 < found["milliseconds"]["p50"] <= found["milliseconds"]["p99"] <= found["milliseconds"]["max"]
    assert found["memory_end"] > 0
