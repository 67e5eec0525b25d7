"""What the digests of an attestation depend on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acefraud import BulletPlaybook, HybridSelector, Learner, LearnerOptions, Outcome, Status, open_playbook
from acefraud.core.context_facts import Feed, ListItem
from acefraud.errors import InputError
from acefraud.learning.attestation import attest, check_attestation

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def filled(file: Path, who: str, now: datetime) -> BulletPlaybook:
    """A playbook with rules, a list that outcomes feed, and decisions, made by somebody at some time."""
    book = open_playbook(file)
    book.clock = lambda: now
    rule = book.add_bullet("VPN: decline", who=who)
    book.add_bullet("Amount above 900: decline", who=who)
    book.set_status(rule, Status.RETIRED, who=who)
    book.create_list("cards", about="stolen", feed=Feed(key="card", days=30), who=who)
    book.change_list("cards", added=[ListItem(value="c9", who=who)], who=who)
    learner = Learner(book)
    learner.decide_all_sync([{"id": f"t{number}", "amount": 100 * number, "card": "c1"} for number in range(20)])
    learner.hear_sync(Outcome(transaction_id="t1", is_fraud=True))
    assert book.get_list("cards").items["c1"].until == now + timedelta(days=30)
    return book


@pytest.fixture
def book(tmp_path: Path) -> Iterator[BulletPlaybook]:
    with filled(tmp_path / "book.db", "ana", FIRST) as book:
        yield book


def test_times_and_names_are_in_the_ledger_only(book: BulletPlaybook, tmp_path: Path) -> None:
    with filled(tmp_path / "other.db", "ben", FIRST + timedelta(days=3)) as other:
        mine, others = attest(book), attest(other)
    assert mine.ledger != others.ledger
    assert mine.playbook == others.playbook
    assert mine.decisions == others.decisions
    assert mine.decisions.same == 20


def test_what_was_learnt_or_set_changes_the_digest_of_the_playbook(book: BulletPlaybook) -> None:
    seen = {attest(book).playbook}
    for change in (
        lambda: book.add_bullet("Emulator: decline"),
        lambda: book.change_list("cards", added=[ListItem(value="c7")]),
        lambda: book.set_threshold(review="false_decline=15,missed_fraud=200"),
        lambda: book.update_stats(next(iter(book)).id, is_helpful=True),
    ):
        change()
        seen.add(attest(book).playbook)
    assert len(seen) == 5


def test_as_it_was_after_an_event(book: BulletPlaybook) -> None:
    before = attest(book, None)
    book.add_bullet("Emulator: decline")
    Learner(book).decide_sync({"id": "later", "amount": 950})
    assert attest(book, None, until=before.last_event) == before
    assert attest(book, None).events.startswith(before.events)


def test_other_selectors_are_counted_and_seeds_are_not(book: BulletPlaybook) -> None:
    Learner(book, options=LearnerOptions(seed=7)).decide_sync({"id": "seeded", "amount": 950})
    Learner(book, selector=HybridSelector(explore=False)).decide_sync({"id": "sure", "amount": 950})
    made = attest(book).decisions
    assert (made.recorded, made.made_again, made.same) == (22, 21, 21)
    ((reason, count),) = made.not_repeatable.items()
    assert (reason.partition(" (")[0], count) == ("it was made with another selector", 1)


def test_the_share_done_grows_to_the_end(book: BulletPlaybook) -> None:
    shares: list[float] = []
    check_attestation(book, attest(book, None), shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_a_playbook_in_memory_is_refused() -> None:
    with pytest.raises(InputError, match="a file or a database"):
        attest(BulletPlaybook())
