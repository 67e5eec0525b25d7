"""`Learner.score` decides exactly as `decide` would, history, policies and lists included, and records nothing."""

from __future__ import annotations

import asyncio
import hashlib
import random
from pathlib import Path

import pytest
from tests.learning.test_entity_memory import WRITTEN, payments

from acefraud import Case, Decision, Learner, Transaction, Verdict, open_playbook
from acefraud.core.bullet import Policy
from acefraud.core.condition import Condition
from acefraud.core.context_facts import ListItem

SIZE = 1_000


@pytest.fixture
def learner(tmp_path: Path) -> Learner:
    """A learner that studied 600 cases with history, and has a policy on a list."""
    made = Learner(open_playbook(tmp_path / "book.db"))
    dice = random.Random(3)
    cases = [Case(transaction=payment.transaction, is_fraud=dice.random() < 0.2) for payment in payments(600, seed=2)]
    made.study(cases, mapping=WRITTEN)
    made.playbook.create_list("watched")
    made.playbook.change_list("watched", added=[ListItem(value="c1"), ListItem(value="c3")])
    made.playbook.add_bullet(
        "watched", condition=Condition.parse("card in list watched"), policy=Policy(verdict=Verdict.REVIEW)
    )
    made.playbook.add_bullet("at night", condition=Condition.parse("night is true and amount > 5"))
    return made


def contents(folder: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(folder.glob("book.db*")))).hexdigest()


def new_transactions() -> list[Transaction]:
    return [
        payment.transaction.model_copy(update={"id": f"new-{n}"}) for n, payment in enumerate(payments(SIZE, seed=9))
    ]


def test_scores_are_the_decisions_to_the_last_bit_and_leave_everything_unchanged(
    learner: Learner, tmp_path: Path
) -> None:
    transactions = new_transactions()
    learner.playbook.refresh()
    before, seen = contents(tmp_path), (learner.playbook.seq, learner.playbook.snapshot())
    scored = asyncio.run(learner.score(transactions))
    assert contents(tmp_path) == before
    assert (learner.playbook.seq, learner.playbook.snapshot()) == seen
    decided = asyncio.run(learner.decide_all(transactions))
    assert [each.model_dump_json() for each in scored] == [each.model_dump_json() for each in decided]
    assert {each.verdict for each in decided} == {Verdict.APPROVE, Verdict.REVIEW}
    assert any(each.facts.get("card_count_24h", 0.0) != 0.0 for each in decided)


def test_one_transaction_gives_one_decision(learner: Learner) -> None:
    first, second = new_transactions()[:2]
    scored = asyncio.run(learner.score(first))
    assert isinstance(scored, Decision)
    assert asyncio.run(learner.score(first)) == scored
    assert asyncio.run(learner.decide(first)) == scored
    assert asyncio.run(learner.score(second)) == asyncio.run(learner.decide(second))
