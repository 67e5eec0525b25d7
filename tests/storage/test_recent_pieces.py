"""What is remembered of the pieces of decisions is bounded, and nothing depends on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from acefraud import Learner, Transaction, open_playbook
from acefraud.core.ledger import DecisionFilter
from acefraud.storage import sql_reading
from acefraud.storage.sql_ledger import SqlLedger


def test_decisions_with_more_sets_of_fact_names_than_are_remembered_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_playbook(tmp_path / "book.db") as book:
        ledger = book.ledger
        assert isinstance(ledger, SqlLedger)
        monkeypatch.setattr(sql_reading, "MOST_PIECES", 3)
        learner = Learner(book)
        names = [f"fact_{n % 10}" for n in range(20)]
        made = [learner.decide_sync(Transaction(id=f"t{n}", facts={name: n})) for n, name in enumerate(names)]

        found = ledger.decisions([each.id for each in made])
        listed = ledger.find_decisions(DecisionFilter(), limit=20)

        assert [found[each.id].transaction for each in made] == [each.transaction for each in made]
        assert len(listed) == 20
        assert 0 < len(ledger._pieces) < 12
