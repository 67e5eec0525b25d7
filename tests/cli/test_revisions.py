"""What changed a playbook, and going back to an earlier revision, on the command line."""

from __future__ import annotations

from typing import Any


def test_changes_are_shown_newest_first_and_paged(trained: Any) -> None:
    added = trained.on_book("playbook", "add", "amount over 7000: decline", "--who", "ana", "--json").json["id"]
    trained.on_book("playbook", "retire", added, "--who", "ben", "--why", "it has faded")
    newest, before = trained.on_book("playbook", "changes", "--last", "2", "--json").json
    assert (newest["words"], newest["who"]) == (f"{added} now retired: it has faded", "ben")
    assert (before["words"], before["content"]) == (f"{added} added", "amount over 7000: decline")
    shown = trained.on_book("playbook", "changes").out
    assert f"{newest['seq']}  {newest['at'][:10]}" in shown
    assert f"{added} now retired: it has faded  by ben" in shown
    assert "trained on" in shown
    (older,) = trained.on_book("playbook", "changes", "--before", str(before["seq"]), "--last", "1", "--json").json
    assert older["seq"] < before["seq"]


def test_a_rollback_is_previewed_made_and_undone(trained: Any) -> None:
    then = trained.on_book("playbook", "changes", "--last", "1", "--json").json[0]["seq"]
    learnt = trained.on_book("playbook", "list", "--json").json[0]["id"]
    trained.on_book("playbook", "retire", learnt, "--why", "by mistake")
    added = trained.on_book("playbook", "add", "amount > 1", "--always", "decline", "--json").json["id"]
    state = trained.state()
    planned = trained.on_book("playbook", "rollback", str(then), "--preview", "--json").json
    assert (planned["retired"], planned["moved"], planned["changes_nothing"]) == ([added], [learnt], False)
    assert planned["preview"]["flips"] > 0
    words = trained.on_book("playbook", "rollback", str(then), "--preview").out
    assert f"Would roll back to revision {then}" in words
    assert "would be decided differently" in words
    assert trained.state() == state, "a preview stores nothing"
    done = trained.on_book("playbook", "rollback", str(then), "--who", "ana", "--why", "a bad day").out
    assert f"Rolled back to revision {then}" in done
    assert added in done
    newest = trained.on_book("playbook", "changes", "--last", "1", "--json").json[0]
    assert (newest["words"], newest["who"]) == (f"the playbook rolled back to revision {then}: a bad day", "ana")
    assert trained.on_book("playbook", "show", learnt, "--json").json["status"] == "active"
    assert f"rolled back to revision {then}: a bad day" in trained.on_book("playbook", "history", learnt).out
    again = trained.on_book("playbook", "rollback", str(then)).out
    assert "nothing to do" in again
    trained.on_book("playbook", "rollback", str(newest["seq"] - 4), "--json")
    assert trained.on_book("playbook", "show", learnt, "--json").json["status"] == "retired"


def test_a_revision_that_is_not_there_is_refused(trained: Any) -> None:
    state = trained.state()
    for options in ([], ["--preview"]):
        refused = trained.on_book("playbook", "rollback", "100000", *options, code=2)
        assert "expected a revision from 0 to" in refused.err
    assert trained.state() == state
