"""What changed a playbook, in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acefraud import BulletPlaybook, Learner, Policy, Status, Transaction, Verdict, open_playbook
from acefraud.core.bullet import Snooze
from acefraud.core.calibration import Calibration, OddsScale
from acefraud.core.context_facts import ListItem
from acefraud.core.events import (
    EDIT_KINDS,
    LIST_KINDS,
    EventPayload,
    OddsScaled,
    Recalibrated,
    Reread,
    Reviewed,
    RolledBack,
    Trained,
)
from acefraud.core.review_rule import ReviewRule
from acefraud.storage.change_log import playbook_changes, what_happened

NODE = "fraud_detection"


@pytest.fixture(params=["memory", "sqlite"])
def playbook(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BulletPlaybook]:
    opened = BulletPlaybook() if request.param == "memory" else open_playbook(tmp_path / "book.db")
    yield opened
    opened.close()


def test_changes_come_newest_first_with_author_reason_and_revision(playbook: BulletPlaybook) -> None:
    policy = Policy(verdict=Verdict.DECLINE)
    bullet_id = playbook.add_bullet("amount above 100", policy=policy, who="ana", why="a start")
    Learner(playbook).decide_sync(Transaction(id="t1", facts={"amount": 5}))
    playbook.edit_bullet(bullet_id, "amount above 200", policy=policy, who="bob")
    until = datetime(2999, 1, 1, tzinfo=UTC)
    playbook.snooze(bullet_id, Snooze(key="card", value="c7", until=until), who="ana")
    playbook.create_list("blocked_cards", who="ana")
    playbook.change_list("blocked_cards", added=[ListItem(value="c1")], who="ana", why="stolen")
    playbook.update_stats(bullet_id, is_helpful=True)
    playbook.set_status(bullet_id, Status.RETIRED, who="cem", why="the pattern has faded")
    found = playbook_changes(playbook.ledger, limit=10)
    assert [change.words for change in found] == [
        f"{bullet_id} now retired: the pattern has faded",
        "blocked_cards list changed: 1 added, 0 removed: stolen",
        "blocked_cards list created, or described anew",
        f"{bullet_id} snoozed for card c7 until 2999-01-01",
        f"{bullet_id} edited",
        f"{bullet_id} added: a start",
    ]
    assert [change.who for change in found] == ["cem", "ana", "ana", "ana", "bob", "ana"]
    assert [change.content for change in found[-2:]] == ["amount above 200", "amount above 100"]
    for change in found:
        assert playbook.snapshot_at(change.seq).revision == change.seq
    newest = found[0]
    assert newest.as_json() == {
        "seq": playbook.seq,
        "at": newest.at.isoformat(),
        "who": "cem",
        "why": "the pattern has faded",
        "kind": "status_changed",
        "subject": bullet_id,
        "words": newest.words,
        "content": "",
    }


def test_pages_follow_one_another(playbook: BulletPlaybook) -> None:
    for number in range(7):
        playbook.add_bullet(f"amount above {number}: decline")
    first = playbook_changes(playbook.ledger, limit=3)
    second = playbook_changes(playbook.ledger, before=first[-1].seq, limit=3)
    third = playbook_changes(playbook.ledger, before=second[-1].seq, limit=3)
    assert [len(page) for page in (first, second, third)] == [3, 3, 1]
    assert first + second + third == playbook_changes(playbook.ledger, limit=100)
    assert playbook_changes(playbook.ledger, before=third[-1].seq, limit=3) == []


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (
            Recalibrated(node=NODE, calibration=Calibration(intercept=0, cases=1200), weights={"b": 1.0}),
            "calibrated on 1,200 cases, with 1 weights",
        ),
        (OddsScaled(node=NODE, model="m", scale=OddsScale(level=0, slope=1, cases=9)), "odds of 'm' scaled on 9 cases"),
        (Trained(node=NODE, dataset="", rows=0, frauds=0, mapping="x"), "mapping set"),
        (
            Trained(node=NODE, dataset="may.csv", rows=900, frauds=8),
            "trained on 'may.csv': 900 cases, 8 of them fraud",
        ),
        (
            Reviewed(node=NODE, whole=True, cases=9, frauds=1, added=("a", "b"), retired=("c",)),
            "reviewed: 2 added, 1 retired",
        ),
        (
            Reviewed(node=NODE, whole=True, cases=9, frauds=1, declined="too few"),
            "reviewed, and nothing was learnt (too few)",
        ),
        (Reviewed(node=NODE, whole=False, cases=9, frauds=1), "reviewed"),
        (Reread(node=NODE, reader="2", cases=9, changed=1), "texts of 9 cases read again, 1 of them differently"),
        (RolledBack(to=41), "rolled back to revision 41"),
    ],
)
def test_what_was_learnt_is_said_in_words(payload: EventPayload, words: str) -> None:
    assert payload.kind in EDIT_KINDS | LIST_KINDS
    assert what_happened(payload) == words


def test_a_threshold_is_said_with_the_review_rule() -> None:
    playbook = BulletPlaybook()
    playbook.record([Recalibrated(node=NODE, calibration=Calibration(intercept=0))])
    playbook.set_threshold(0.7, ReviewRule(between=(0.4, 0.8)))
    playbook.set_threshold(no_review=True)
    none, band = playbook_changes(playbook.ledger, limit=2)
    assert band.what == "threshold set to 0.7; review from a fraud probability of 0.4 up to 0.8"
    assert none.what == "threshold as it was; nothing goes to a person, except by policies"
