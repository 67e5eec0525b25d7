"""Policies decide before scoring, in a documented order, with snoozes, lists and expiry; the ledger replays them."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.effort import rounds

from acefraud import BulletPlaybook, Learner, LearnerOptions, Outcome, Transaction, Verdict, open_playbook
from acefraud.core.bullet import Policy, Snooze, Status
from acefraud.core.condition import Condition
from acefraud.core.context_facts import Feed, ListItem
from acefraud.core.decision import ReasonKind
from acefraud.errors import InputError

START = datetime(2025, 3, 1, tzinfo=UTC)
CARDS, MERCHANTS = [f"c{n}" for n in range(12)], [f"m{n}" for n in range(6)]
CONDITIONS = [
    "amount > 900",
    "amount > 400 and vpn is true",
    'country in ("NG", "RO")',
    "card in list burnt",
    "merchant in list watched and amount > 100",
    "merchant not in list watched or amount < 20",
    "vpn is missing",
    "amount > 3 * usual",
]


def transaction(dice: random.Random, number: int) -> Transaction:
    facts: dict[str, object] = {"amount": float(dice.randrange(1, 1_500)), "country": dice.choice(["NG", "RO", "FR"])}
    if dice.random() < 0.7:
        facts["vpn"] = dice.random() < 0.4
    if dice.random() < 0.6:
        facts["usual"] = float(dice.randrange(10, 500))
    entities = {"card": dice.choice(CARDS)}
    if dice.random() < 0.8:
        entities["merchant"] = dice.choice(MERCHANTS)
    time = START + timedelta(hours=dice.randrange(24 * 60))
    return Transaction.model_validate({"id": f"t{number}", "time": time, "facts": facts, "entities": entities})


class Reference:
    """Policies, lists and snoozes told plainly, one after the other."""

    def __init__(self) -> None:
        self.policies: list[tuple[str, str, Policy]] = []
        self.lists: dict[str, dict[str, datetime | None]] = {"burnt": {}, "watched": {}}
        self.snoozes: dict[tuple[str, str], datetime] = {}

    def listed(self, name: str, value: str | None, at: datetime) -> bool | None:
        if value is None:
            return None
        until = self.lists[name].get(value, at)
        return until is None or at < until

    def holds(self, condition: str, one: Transaction) -> bool:
        facts, card, merchant = one.facts, one.entities.get("card"), one.entities.get("merchant")
        amount, vpn, usual = facts["amount"], facts.get("vpn"), facts.get("usual")
        assert isinstance(amount, float)
        assert one.time is not None
        watched = self.listed("watched", merchant, one.time)
        answers = {
            CONDITIONS[0]: amount > 900,
            CONDITIONS[1]: amount > 400 and vpn is True,
            CONDITIONS[2]: facts["country"] in ("NG", "RO"),
            CONDITIONS[3]: self.listed("burnt", card, one.time) is True,
            CONDITIONS[4]: watched is True and amount > 100,
            CONDITIONS[5]: watched is False or amount < 20,
            CONDITIONS[6]: vpn is None,
            CONDITIONS[7]: isinstance(usual, float) and amount > 3 * usual,
        }
        return answers[condition]

    def decides(self, one: Transaction) -> str | None:
        found = []
        for index, (bullet_id, condition, policy) in enumerate(self.policies):
            until = self.snoozes.get((bullet_id, one.entities["card"]))
            assert one.time is not None
            if self.holds(condition, one) and not (until is not None and one.time < until):
                usual = {"APPROVE": 300, "DECLINE": 200, "REVIEW": 100}[policy.verdict]
                priority = usual if policy.priority is None else policy.priority
                found.append((not policy.final, -priority, -usual, index, bullet_id))
        return min(found)[-1] if found else None


def change(book: BulletPlaybook, plain: Reference, dice: random.Random) -> None:
    """One random change to policies, lists or snoozes, in both."""
    kind = dice.randrange(4)
    if kind == 0 or not plain.policies:
        condition, verdict = dice.choice(CONDITIONS), dice.choice(list(Verdict))
        priority = dice.choice([None, None, 50, 250, 400])
        policy = Policy(verdict=verdict, priority=priority, final=verdict is Verdict.DECLINE and dice.random() < 0.2)
        made = book.add_bullet(f"rule {dice.random()}", condition=Condition.parse(condition), policy=policy)
        plain.policies.append((made, condition, policy))
    elif kind == 1:
        name, value = dice.choice([("burnt", dice.choice(CARDS)), ("watched", dice.choice(MERCHANTS))])
        until = dice.choice([None, START + timedelta(days=dice.randrange(60))])
        book.change_list(name, added=[ListItem(value=value, until=until)])
        plain.lists[name][value] = until
    elif kind == 2:
        bullet_id, card = dice.choice(plain.policies)[0], dice.choice(CARDS)
        until = START + timedelta(days=dice.randrange(60))
        book.snooze(bullet_id, Snooze(key="card", value=card, until=until))
        plain.snoozes[bullet_id, card] = until
    else:
        place = dice.randrange(len(plain.policies))
        book.set_status(plain.policies.pop(place)[0], Status.RETIRED)


@pytest.mark.parametrize("kept", ["memory", "file"])
def test_random_decisions_follow_a_plain_reference_and_replay(kept: str, tmp_path: Path) -> None:
    dice, plain = random.Random(kept), Reference()
    book = BulletPlaybook() if kept == "memory" else open_playbook(tmp_path / "book.db")
    with book:
        for name in plain.lists:
            book.create_list(name)
        learner = Learner(book)
        decided = overridden = 0
        made = []
        for turn in range(rounds(400)):
            change(book, plain, dice)
            batch = [transaction(dice, turn * 100 + index) for index in range(dice.choice([1, 50, 100]))]
            for each, decision in zip(batch, asyncio.run(learner.decide_all(batch)), strict=True):
                wanted = plain.decides(each)
                assert decision.policy == wanted
                if wanted is not None:
                    decided += 1
                    policy = book.get_bullet(wanted)
                    assert policy is not None
                    assert policy.policy is not None
                    assert decision.verdict is policy.policy.verdict
                    assert decision.reasons[0].kind is ReasonKind.POLICY
                    overridden += decision.verdict is not Verdict.of(decision.probability >= decision.threshold)
                    assert decision.cited == (wanted,)
                made.append(decision)
        assert decided > len(made) / 4
        assert overridden > 50
        again = Learner(book)
        for decision in made[:: max(1, len(made) // 300)]:
            recorded = book.ledger.decisions([decision.id])[decision.id]
            assert (recorded.verdict, recorded.policy) == (decision.verdict, decision.policy)
            explained = asyncio.run(again.explain(recorded))
            assert explained.verdict is decision.verdict
            assert [reason.text for reason in explained.reasons] == [reason.text for reason in decision.reasons]


def test_the_issue_s_own_example_declines() -> None:
    book = BulletPlaybook()
    rule = book.add_bullet(
        "Always decline when the amount is over 5000", policy=Policy(verdict=Verdict.DECLINE), status=Status.PINNED
    )
    learner = Learner(book)
    decision = asyncio.run(learner.decide(Transaction(id="t", facts={"amount": 9_000.0})))
    assert (decision.verdict, decision.policy) == (Verdict.DECLINE, rule)
    assert "always decline" in decision.reasons[0].text
    assert asyncio.run(learner.decide(Transaction(id="u", facts={"amount": 4_000.0}))).policy is None


def test_a_policy_is_measured_and_never_retired_by_the_engine() -> None:
    book = BulletPlaybook()
    rule = book.add_bullet("amount > 50: decline", policy=Policy(verdict=Verdict.DECLINE))
    learner = Learner(book)
    for number in range(300):
        one = Transaction(id=f"t{number}", facts={"amount": 60.0, "noise": float(number % 7)})
        asyncio.run(learner.decide(one))
        asyncio.run(learner.hear(Outcome(transaction_id=one.id, is_fraud=number % 50 == 0)))
    learner.review()
    after = book.get_bullet(rule)
    assert after is not None
    assert after.status is Status.ACTIVE
    assert after.weight is None
    assert (after.record.support, after.record.frauds) == (300, 6)
    assert (after.helpful_count, after.harmful_count) == (6, 294)


def test_a_candidate_policy_does_not_decide() -> None:
    book = BulletPlaybook()
    book.add_bullet("amount > 50: decline", policy=Policy(verdict=Verdict.DECLINE), status=Status.CANDIDATE)
    decision = asyncio.run(Learner(book).decide(Transaction(id="t", facts={"amount": 60.0})))
    assert decision.policy is None


def test_a_policy_needs_a_condition_and_only_a_policy_can_be_snoozed() -> None:
    book = BulletPlaybook()
    with pytest.raises(InputError, match="a policy needs a condition"):
        book.add_bullet("Something smells here", policy=Policy(verdict=Verdict.DECLINE))
    evidence = book.add_bullet("amount > 50: decline")
    with pytest.raises(InputError, match="only a policy can be snoozed"):
        book.snooze(evidence, Snooze(key="card", value="c", until=START))


def test_only_a_block_can_be_final() -> None:
    with pytest.raises(ValueError, match="only a policy that declines can be final"):
        Policy(verdict=Verdict.APPROVE, final=True)


@pytest.mark.filterwarnings("ignore::acefraud.errors.InputWarning")  # the clock stands still
def test_outcomes_feed_a_list_and_a_revised_one_takes_its_value_off() -> None:
    book = BulletPlaybook(clock=lambda: START)
    book.create_list("burnt", feed=Feed(key="card", days=90))
    rule = book.add_bullet(
        "burnt cards", condition=Condition.parse("card in list burnt"), policy=Policy(verdict=Verdict.DECLINE)
    )
    learner = Learner(book, options=LearnerOptions(days_ahead=None))

    def decided_by(name: str, at: datetime) -> str | None:
        one = Transaction(id=name, time=at, facts={"amount": 5.0}, entities={"card": "c1"})
        return asyncio.run(learner.decide(one)).policy

    assert decided_by("t1", START) is None
    asyncio.run(learner.hear(Outcome(transaction_id="t1", is_fraud=True, at=START)))
    (item,) = book.get_list("burnt").items.values()
    assert (item.value, item.transaction_id, item.until) == ("c1", "t1", START + timedelta(days=90))
    assert decided_by("t2", START + timedelta(days=89)) == rule
    assert decided_by("t3", START + timedelta(days=90)) is None
    asyncio.run(learner.hear(Outcome(transaction_id="t1", is_fraud=False, at=START + timedelta(days=5))))
    assert book.get_list("burnt").items == {}
    assert decided_by("t4", START + timedelta(days=10)) is None


def test_learning_proposes_nothing_about_lists() -> None:
    book = BulletPlaybook()
    book.create_list("burnt")
    book.change_list("burnt", added=[ListItem(value="c1")])
    book.add_bullet("burnt cards: decline", condition=Condition.parse("card in list burnt"))
    learner = Learner(book)
    dice = random.Random(4)
    for number in range(400):
        fraud = dice.random() < 0.5
        one = Transaction(
            id=f"t{number}", facts={"amount": float(dice.randrange(90))}, entities={"card": "c1" if fraud else "c2"}
        )
        asyncio.run(learner.decide(one))
        asyncio.run(learner.hear(Outcome(transaction_id=one.id, is_fraud=fraud)))
    learner.review()
    learnt = [each for each in book.get_bullets_for_node("fraud_detection") if each.source != "manual"]
    assert not any(" in list " in str(each.condition) for each in learnt)
