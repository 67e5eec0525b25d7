"""A preview agrees exactly with making the change, and changes nothing."""

from __future__ import annotations

import asyncio
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.effort import rounds

from acefraud import Bullet, Case, HybridSelector, Learner, Transaction, Verdict, open_playbook
from acefraud.core.bullet import BulletDetails, NewBullet, Policy, Status
from acefraud.core.comparison import Op, Test
from acefraud.core.condition import Condition
from acefraud.core.context_facts import IN_LIST, ListItem, LookUp
from acefraud.core.events import EventPayload
from acefraud.engine.decider import decide_embedded
from acefraud.facts.extraction import KnownFacts
from acefraud.learning.preview import Preview
from acefraud.storage.changes import Change, plan_addition, plan_edit, plan_list_change, plan_status_change

pytestmark = pytest.mark.one_search


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
        learner.study([Case(transaction=each, is_fraud=is_fraud(each, dice)) for each in history])
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
        made = [decision.decision for decision in book.ledger.latest_decisions(10_000)]
        past = [(each.transaction, each.facts, each.revision) for each in made]
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
        decisions = [decision.decision for decision in book.ledger.latest_decisions(10_000)]
    fires = [condition.truth(row) for row in rows]
    assert found.fires_on.support == fires.count(True)
    assert found.fires_on.frauds == sum(fire is True and label for fire, label in zip(fires, labels, strict=True))
    assert found.unknown_on == fires.count(None)
    assert found.fires_on_decisions == sum(condition.holds(decision.facts) for decision in decisions)
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


def on_list(key: str, name: str) -> Condition:
    return Condition.of(Test(LookUp(key, IN_LIST, name).flag, Op.IS, True))


RULES: tuple[BulletDetails, ...] = (
    {"condition": on_list("merchant", "watched"), "policy": Policy(verdict=Verdict.DECLINE)},
    {"condition": on_list("card", "trusted"), "policy": Policy(verdict=Verdict.APPROVE)},
    {"condition": Condition.parse("night is true"), "policy": Policy(verdict=Verdict.DECLINE)},
    {"condition": Condition.parse("amount > 500"), "policy": Policy(verdict=Verdict.APPROVE)},
)


def seen(dice: random.Random, name: str) -> Transaction:
    """A transaction with a time, a merchant among its facts and a card among its entities."""
    facts = {**transaction(dice, name).facts, "merchant": f"m{dice.randrange(9)}"}
    time = datetime(2025, 3, 1, tzinfo=UTC) + timedelta(minutes=dice.randrange(60 * 24 * 20))
    return Transaction(id=name, time=time, facts=facts, entities={"card": f"c{dice.randrange(9)}"})


def items(dice: random.Random) -> list[ListItem]:
    """Merchants and cards for a list, some of which expire between the transactions."""
    ends = [None, datetime(2025, 3, 10, tzinfo=UTC)]
    values = dice.sample([f"{kind}{number}" for kind in "mc" for number in range(9)], 6)
    return [ListItem(value=value, until=dice.choice(ends)) for value in values]


@pytest.mark.filterwarnings("ignore:unfamiliar")
@pytest.mark.parametrize("seed", range(6))
def test_previews_of_lists_and_policies_agree_with_deciding_again(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    history = [seen(dice, f"c{number}") for number in range(150)]
    given = [seen(dice, f"d{number}") for number in range(150)]
    with open_playbook(tmp_path / "book.db") as book:
        learner = Learner(book, selector=HybridSelector(explore=False))
        learner.study([Case(transaction=each, is_fraud=is_fraud(each, dice)) for each in history])
        for name in ("watched", "trusted"):
            book.create_list(name)
            book.change_list(name, added=items(dice))
        early, late = dice.sample(RULES, 2)
        kept = book.add_bullet("the first", **early)
        learner.decide_all_sync(given)
        book.change_list("watched", added=items(dice))  # what was recorded of the list is no longer true
        on_it = list(book.get_list("watched").items)
        for what in ("put on", "take off", "retire", "add"):
            if what == "add":
                new = NewBullet("the second", **late)
                change: Change[Any] = plan_addition(book, new, learner.options.node, who="ana")
            elif what == "retire":
                change = plan_status_change(book, kept, Status.RETIRED, "")
            else:
                added, removed = (items(dice), ()) if what == "put on" else ((), on_it)
                change = plan_list_change(book, "trusted" if added else "watched", added, removed, "")
            rule = book.snapshot_with(change.payloads).bullets.get(change.payloads[0].subject)
            found = learner.preview_change(change.payloads, rule)
            before = learner.score_sync([*history, *given])
            book.record(change.payloads)
            after = learner.score_sync([*history, *given])
            pairs = zip(before, after, strict=True)
            expected = {was.transaction.id for was, becomes in pairs if was.verdict is not becomes.verdict}
            assert {flip.transaction_id for flip in found.flips} == expected, what


def test_the_preview_of_an_approving_list_finds_what_it_would_approve(tmp_path: Path) -> None:
    with open_playbook(tmp_path / "book.db") as book:
        learner = Learner(book)
        book.create_list("trusted")
        book.change_list("trusted", added=[ListItem(value="c1")])
        orders = [
            Transaction(id=f"t{number}", facts={"emulator": True}, entities={"card": f"c{number % 4}"})
            for number in range(40)
        ]
        assert {each.verdict for each in learner.decide_all_sync(orders)} == {Verdict.DECLINE}
        found = learner.preview("trusted cards", **RULES[1])
        assert (len(found.flips), found.fires_on_decisions) == (10, 10)
        book.add_bullet("trusted cards", **RULES[1])
        assert [each.verdict for each in learner.score_sync(orders)].count(Verdict.APPROVE) == 10


def test_a_preview_leaves_no_trace_in_the_lists_that_decide(tmp_path: Path) -> None:
    with open_playbook(tmp_path / "book.db") as book:
        book.create_list("watched")
        learner = Learner(book)
        book.add_bullet("watched merchants", **RULES[0])
        order = {"id": "t1", "facts": {"merchant": "m1"}}
        learner.decide_sync(order)
        change = plan_list_change(book, "watched", [ListItem(value="m1")], (), "")
        assert [flip.after for flip in learner.preview_change(change.payloads).flips] == [Verdict.DECLINE]
        book.change_list("watched", added=[ListItem(value="m2")])
        assert learner.score_sync(order).verdict is Verdict.APPROVE
