"""A playbook goes to a backup and comes back whole."""

from __future__ import annotations

from typing import Any


def test_there_and_back(trained: Any) -> None:
    trained.on_book("decide", '{"id": "t1", "amount": 2500, "vpn": true}')
    state = trained.state()
    done = trained.on_book("backup", "monday.db", "--json").json
    assert done == {"playbook": str(trained.book), "backup": "monday.db", "bytes": done["bytes"]}
    trained.on_book("playbook", "add", "An emulator: decline", "--as-note")
    assert "exists already" in trained.on_book("restore", "monday.db", code=2).err
    assert "exists already" in trained.on_book("backup", "monday.db", code=2).err
    said = trained.on_book("restore", "monday.db", "--force").out
    assert said == f"{trained.book} restored from monday.db: {done['bytes']:,} bytes\n"
    assert trained.state() == state
    assert "copied to monday.db" in trained.on_book("backup", "monday.db", "--force").out


def test_a_restored_playbook_learns_on(trained: Any) -> None:
    trained.on_book("backup", "monday.db")
    trained("restore", "monday.db", "--playbook", "new.db")
    learnt = trained("learn", "history.csv", "--playbook", "new.db", "--json")
    assert learnt.code == 0


def test_something_else_is_not_restored(shell: Any) -> None:
    ran = shell.on_book("restore", "history.csv", code=2)
    assert "history.csv is not an acefraud playbook" in ran.err
    assert not shell.book.exists()
