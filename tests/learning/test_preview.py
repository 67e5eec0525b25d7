"""A preview agrees exactly with making the change, and changes nothing."""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path

import pytest
from tests.effort import rounds

from acefraud import Bullet, Case, Learner, Transaction, Verdict, open_playbook
from acefraud.core.bullet import NewBullet, Status
from acefraud.core.condition import Condition
from acefraud.core.events import EventPayload
from acefraud.core.policy import Policy
from acefraud.facts.extraction import KnownFacts
from acefraud.learning.embedded_decisions import decide_embedded
from acefraud.learning.preview import Preview
from acefraud.storage.changes import plan_edit, plan_status_change


def transaction(dice: random.Random, name: str) -> Transaction:
    facts = {
        "amount": float(dice.randrange(1, 900)),
        "vpn": dice.random() < 0.3,
        "country": dice.choice(["FR", "NG", "US", "RO"]),
        "age_days": float(dice.randrange(400)),
    }
    if dice.random() < 0.2:
        del facts["vpn"]
    return Transaction.model_validate({"id": name, "facts": facts})


def is_fraud(one: Transaction, dice: random.Random) -> bool:
    risk = 0.05 + 0.5 * (one.facts.get("vpn") is True and float(one.facts["amount"]) > 400)
    return dice.random() < risk + 0.3 * (one.facts["country"] == "NG")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A playbook with 1,200 labelled cases and decisions of several revisions."""
    path, dice = tmp_path_factory.mktemp("preview") / "book.db", random.Random(8)
    with open_playbook(path) as book:
        learner = Learner(book)
        history = [transaction(dice, f"c{number}") for number in range(1_200)]
        learner.study([Case(transaction=one, is_fraud=is_fraud(one, dice)) for one in history])
        for part in range(4):
            many = [transaction(dice, f"d{part}-{number}") for number in range(rounds(2_000) // 4)]
            asyncio.run(learner.decide_all(many))
            book.add_bullet(f"amount > {800 + part}: decline")
    return path


def flips_after(path: Path, change: list[EventPayload]) -> set[str]:
    """The transactions that are decided differently once a change was made, each decided by itself."""
    with open_playbook(path) as book:
        learner = Learner(book)
        before, cases = book.snapshot(), learner.remembered()
        made = [one.decision for one in book.ledger.latest_decisions(10_000)]
        past = [(one.transaction, one.facts, one.revision) for one in made]
        for name, facts in list(zip(cases.ids.tolist(), cases.facts.rows(), strict=True))[-1_000:]:
            past.append((Transaction(id=name, facts=facts), facts, before.revision))
        book.record(change)
        after = book.snapshot()
        found = set()
        for one, facts, revision in past:
            verdicts = [
                decide_embedded(
                    [one], [KnownFacts(facts)], snapshot, learner.selector, learner.options, drawn_at=[revision]
                ).verdicts[0]
                for snapshot in (before, after)
            ]
            if verdicts[0] is not verdicts[1]:
                found.add(one.id)
        return found


def copied(path: Path, folder: Path) -> Path:
    for file in path.parent.glob("book.db*"):
        shutil.copy(file, folder / file.name)
    return folder / path.name


@pytest.mark.parametrize("policy", [None, Policy(verdict=Verdict.DECLINE), Policy(verdict=Verdict.APPROVE)])
def test_adding_flips_exactly_what_the_preview_says(trained: Path, tmp_path: Path, policy: Policy | None) -> None:
    path = copied(trained, tmp_path)
    condition = Condition.parse('amount > 300 and (country is "NG" or vpn is true)')
    with open_playbook(path) as book:
        learner, before = Learner(book), (book.seq, book.snapshot())
        evidence = learner.measure(condition)
        found = learner.preview("try it", condition=condition, policy=policy, evidence=evidence, argues=Verdict.DECLINE)
        assert (book.seq, book.snapshot()) == before
        added = book.snapshot_with([])
        assert added.bullets == book.snapshot().bullets
    assert found.cases == 1_000
    assert found.decisions == rounds(2_000)
    with open_playbook(path) as book:
        before_adding = book.seq
        book.add_bullet("try it", condition=condition, policy=policy, evidence=evidence, argues=Verdict.DECLINE)
        events = [event.payload for event in book.ledger.read(before_adding, decisions=False)]
    expected = flips_after(copied(trained, tmp_path), events)
    assert {flip.transaction_id for flip in found.flips} == expected
    assert expected or policy is None
    _check_figures(found, condition, trained)


def _check_figures(found: Preview, condition: Condition, path: Path) -> None:
    with open_playbook(path, read_only=True) as book:
        cases = Learner(book).remembered()
        rows, labels = cases.facts.rows()[-1_000:], cases.labels.tolist()[-1_000:]
        decisions = [one.decision for one in book.ledger.latest_decisions(10_000)]
    fires = [condition.truth(row) for row in rows]
    assert found.fires_on.support == fires.count(True)
    assert found.fires_on.frauds == sum(fire is True and label for fire, label in zip(fires, labels, strict=True))
    assert found.unknown_on == fires.count(None)
    assert found.fires_on_decisions == sum(condition.holds(one.facts) for one in decisions)
    content = found.as_json()
    assert content["flips"] == len(found.flips)
    assert list(content["overlaps"].values()) == sorted(content["overlaps"].values(), reverse=True)


@pytest.mark.parametrize("what", ["retire", "edit"])
def test_retiring_and_editing_flip_exactly_what_the_preview_says(trained: Path, tmp_path: Path, what: str) -> None:
    path = copied(trained, tmp_path)
    with open_playbook(path) as book:
        learner = Learner(book)
        bullet: Bullet = max(book.snapshot().for_node("fraud_detection"), key=lambda one: abs(one.weight or 0))
        if what == "retire":
            change = plan_status_change(book, bullet.id, Status.RETIRED, "")
        else:
            change = plan_edit(book, bullet.id, NewBullet("amount > 200: approve"))
        found = learner.preview_change(change.payloads, book.snapshot_with(change.payloads).bullets[bullet.id])
    expected = flips_after(path, list(change.payloads))
    assert {flip.transaction_id for flip in found.flips} == expected
    assert expected
    released = sum(flip.before is Verdict.DECLINE for flip in found.flips)
    assert (found.money.released_rightly + found.money.released_wrongly > 0) <= (released > 0)
