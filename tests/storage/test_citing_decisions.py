"""The decisions that rest on a bullet are found from their records, newest first, and pages say how far they looked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from acefraud import BulletPlaybook, Learner, Policy, Transaction, Verdict, open_playbook
from acefraud.core.decision import DecisionRecord
from acefraud.core.events import DecisionMade, Event
from acefraud.core.ledger import DecisionFilter
from acefraud.storage import contents
from acefraud.storage.contents import decisions_citing, last_firings

ALL = DecisionFilter()


@pytest.fixture(params=["memory", "sqlite"])
def playbook(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BulletPlaybook]:
    opened = BulletPlaybook() if request.param == "memory" else open_playbook(tmp_path / "book.db")
    yield opened
    opened.close()


def decide(playbook: BulletPlaybook, count: int, every: int = 3) -> None:
    """Decide transactions one revision of the playbook apart; every third goes through a VPN."""
    orders = [Transaction(id=f"t{number}", facts={"vpn": number % every == 0}) for number in range(count)]
    Learner(playbook).decide_all_sync(orders)


def about(events: tuple[Event, ...]) -> list[str]:
    return [event.payload.subject for event in events]


def test_a_record_names_what_the_decision_cites(playbook: BulletPlaybook) -> None:
    vpn, other = playbook.add_bullet("VPN: decline"), playbook.add_bullet("amount above 100: decline")
    policy = playbook.add_bullet("amount above 5000", policy=Policy(verdict=Verdict.DECLINE))
    learner = Learner(playbook)
    for facts in ({"vpn": True}, {"vpn": True, "amount": 200}, {"vpn": True, "amount": 9000}, {"amount": 1}):
        decision = learner.decide_sync({"id": f"t{len(facts)}{facts.get('amount')}", "facts": facts})
        (record,) = playbook.ledger.latest_decisions(1)
        assert set(record.decision.cited) == set(decision.cited)
        assert DecisionRecord.whole(decision).decision.cited == decision.cited
        for each in (vpn, other, policy):
            assert record.cites(each) == DecisionRecord.whole(decision).cites(each) == (each in decision.cited)


def test_the_latest_come_first_and_pages_follow_one_another(playbook: BulletPlaybook) -> None:
    vpn = playbook.add_bullet("VPN: decline")
    decide(playbook, 20)
    page = last_firings(playbook.ledger, vpn, 3)
    assert about(page.events) == ["t18", "t15", "t12"]
    assert page.looked_at == 8
    following = decisions_citing(playbook.ledger, ALL, vpn, before=page.next_before, limit=100)
    assert about(following.events) == ["t9", "t6", "t3", "t0"]
    assert (following.next_before, following.looked_at) == (None, 12)


def test_it_says_how_far_it_looked_and_goes_on_from_there(playbook: BulletPlaybook) -> None:
    vpn = playbook.add_bullet("VPN: decline")
    decide(playbook, 20, every=20)
    page = decisions_citing(playbook.ledger, ALL, vpn, limit=5, scan_limit=12)
    assert (page.events, page.looked_at) == ((), 12)
    assert page.next_before is not None
    following = decisions_citing(playbook.ledger, ALL, vpn, before=page.next_before, limit=5, scan_limit=12)
    assert (about(following.events), following.looked_at, following.next_before) == (["t0"], 8, None)


def test_chunks_make_no_difference(playbook: BulletPlaybook, monkeypatch: pytest.MonkeyPatch) -> None:
    vpn = playbook.add_bullet("VPN: decline")
    decide(playbook, 30)
    whole = decisions_citing(playbook.ledger, ALL, vpn, limit=100, scan_limit=25)
    monkeypatch.setattr(contents, "_CHUNK", 4)
    assert decisions_citing(playbook.ledger, ALL, vpn, limit=100, scan_limit=25) == whole
    assert whole.looked_at == 25


def test_only_wanted_decisions_count(playbook: BulletPlaybook) -> None:
    vpn = playbook.add_bullet("VPN: decline")
    decide(playbook, 12)
    wanted = DecisionFilter(transaction_ids=["t3", "t4", "t9"])
    page = decisions_citing(playbook.ledger, wanted, vpn, limit=10)
    assert (about(page.events), page.looked_at) == (["t9", "t3"], 3)


def test_decisions_from_before_a_bullet_was_added_are_not_looked_at(playbook: BulletPlaybook) -> None:
    decide(playbook, 12)
    vpn = playbook.add_bullet("VPN: decline")
    assert last_firings(playbook.ledger, vpn, 5).looked_at == 0
    Learner(playbook).decide_sync({"id": "later", "facts": {"vpn": True}})
    page = last_firings(playbook.ledger, vpn, 5)
    assert (about(page.events), page.looked_at, page.next_before) == (["later"], 1, None)


def test_a_bullet_that_is_not_there_is_cited_by_nothing(playbook: BulletPlaybook) -> None:
    decide(playbook, 3)
    assert last_firings(playbook.ledger, "b-none", 5) == contents.CitingPage((), None, 0)


@pytest.mark.filterwarnings("ignore::acefraud.errors.InputWarning")
def test_an_id_inside_a_text_is_no_citation(playbook: BulletPlaybook) -> None:
    vpn = playbook.add_bullet("VPN: decline")
    decision = asyncio.run(Learner(playbook).decide(Transaction(id="t1", text=f'the note says "{vpn}"')))
    assert isinstance(playbook.ledger.find_decisions(ALL, limit=1)[0].payload, DecisionMade)
    assert decision.cited == ()
    assert last_firings(playbook.ledger, vpn, 5).events == ()
