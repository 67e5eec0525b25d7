"""Playbooks are written to files and pickled with all they hold."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from acefraud import BulletPlaybook, Learner, load_dataset, open_playbook
from acefraud.datasets.world import WorldOptions
from acefraud.errors import StoreError
from acefraud.storage.copies import save_ledger

DATA = load_dataset("complex_fraud_detection", options=WorldOptions(transactions=300))


@pytest.fixture(scope="module")
def book() -> BulletPlaybook:
    """A playbook with bullets, remembered cases, decisions, outcomes and rows."""
    playbook = BulletPlaybook()
    learner = Learner(playbook)
    learner.study(DATA)
    learner.decide_all_sync(DATA.test.transactions[:20])
    learner.hear_all_sync(
        [{"transaction_id": each.transaction.id, "is_fraud": each.is_fraud} for each in DATA.test[:20]]
    )
    return playbook


def contents(playbook: BulletPlaybook) -> Any:
    """Everything that another copy must hold too."""
    events = [(each.seq, each.at, each.who, each.why, each.payload) for each in playbook.ledger.read(decisions=False)]
    remembered = [(each.id, each.is_fraud, dict(each.facts)) for each in playbook.ledger.remembered(10_000)]
    ids = [decision.id for decision in playbook.ledger.latest_decisions(100)]
    return events, remembered, ids, playbook.to_frame(retired=True).rows()


def test_a_playbook_in_memory_is_written_to_a_file_as_it_is(book: BulletPlaybook, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    book.save(path)
    with open_playbook(path) as saved:
        assert contents(saved) == contents(book)
        again = Learner(saved).score_all(DATA.test.transactions).probabilities
    assert again.tolist() == Learner(book).score_all(DATA.test.transactions).probabilities.tolist()
    assert list(tmp_path.iterdir()) == [path]


def test_a_playbook_in_a_file_is_copied(book: BulletPlaybook, tmp_path: Path) -> None:
    book.save(tmp_path / "first.db")
    with open_playbook(tmp_path / "first.db") as first:
        first.save(tmp_path / "second.db")
    with open_playbook(tmp_path / "second.db") as second:
        assert contents(second) == contents(book)


def test_what_is_there_is_never_replaced(book: BulletPlaybook, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    path.write_text("mine")
    with pytest.raises(StoreError, match="exists already"):
        book.save(path)
    assert path.read_text() == "mine"
    with pytest.raises(StoreError, match="there is no folder"):
        book.save(tmp_path / "nowhere" / "book.db")
    with pytest.raises(StoreError, match="object cannot be written to a file"):
        save_ledger(object(), tmp_path / "other.db")  # type: ignore[arg-type]


def test_an_empty_playbook_can_be_saved(tmp_path: Path) -> None:
    BulletPlaybook().save(tmp_path / "book.db")
    with open_playbook(tmp_path / "book.db") as saved:
        assert len(saved) == 0


def test_a_playbook_in_memory_is_pickled_with_all_it_holds(book: BulletPlaybook) -> None:
    again = pickle.loads(pickle.dumps(book))
    assert contents(again) == contents(book)
    again.add_bullet("VPN: decline")
    assert len(again) == len(book) + 1


def test_a_playbook_in_a_file_is_opened_again(book: BulletPlaybook, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    book.save(path)
    with open_playbook(path) as saved, pickle.loads(pickle.dumps(saved)) as again:
        again.add_bullet("VPN: decline")
        saved.refresh()
        assert len(saved) == len(book) + 1
