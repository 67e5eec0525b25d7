"""The benchmark of hearing one outcome, on small files."""

from __future__ import annotations

from pathlib import Path

import pytest

from acefraud import Learner, load_dataset, open_playbook
from acefraud.datasets.world import WorldOptions
from benchmarks.hearing import Size, make, measure

pytestmark = pytest.mark.wide

SMALL = [Size("few_events", 60, 120), Size("many_events", 60, 400), Size("many_cases", 120, 400)]


@pytest.fixture(autouse=True)
def _small_world(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = list(load_dataset("complex_fraud_detection", options=WorldOptions(transactions=200)))
    monkeypatch.setattr("benchmarks.hearing._texts", lambda: cases)


def test_files_are_of_the_size_that_was_asked_for(tmp_path: Path) -> None:
    make(tmp_path / "book.db", SMALL[1])
    with open_playbook(tmp_path / "book.db") as book:
        assert book.seq >= 400
        assert len(Learner(book).remembered()) == 60
        assert book.learning().unreviewed.cases == 0


def test_every_file_is_measured(tmp_path: Path) -> None:
    found = measure(tmp_path, SMALL)
    assert set(found["milliseconds"]) == {size.name for size in SMALL}
    assert found["ten_times_the_events"] > 0
