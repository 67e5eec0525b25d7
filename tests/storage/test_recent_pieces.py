"""What is remembered of the pieces of decisions is bounded, and nothing depends on it."""

from __future__ import annotations

from pathlib import Path

from acefraud import Learner, Transaction, open_playbook
from acefraud.core.decision import Common
from acefraud.core.ledger import DecisionFilter
from acefraud.storage.recent_pieces import MOST, RecentPieces
from acefraud.storage.sql_ledger import SqlLedger


def test_decisions_with_more_sets_of_fact_names_than_are_remembered_read_back(tmp_path: Path) -> None:
    with open_playbook(tmp_path / "book.db") as book:
        ledger = book.ledger
        assert isinstance(ledger, SqlLedger)
        ledger._stored, ledger._read_pieces = RecentPieces(3), RecentPieces(3)
        learner = Learner(book)
        names = [f"fact_{n % 10}" for n in range(20)]
        made = [learner.decide_sync(Transaction(id=f"t{n}", facts={name: n})) for n, name in enumerate(names)]

        found = ledger.decisions([one.id for one in made])
        listed = ledger.find_decisions(DecisionFilter(), limit=20)

        assert [found[one.id].transaction for one in made] == [one.transaction for one in made]
        assert len(listed) == 20
        assert len(ledger._stored) == len(ledger._read_pieces) == 3


def test_by_default_some_thousands_are_remembered() -> None:
    recent = RecentPieces()
    for key in range(MOST + 10):
        recent.put([Common(key, "{}")])

    assert len(recent) == MOST
    assert recent.get([9, 10]).keys() == {10}
