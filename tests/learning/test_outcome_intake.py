"""What outcomes count for: once, late or early, revised or never."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.storage.replaying import cases_of, matches_replay

from acefraud.core.outcome import Judgement, Outcome, OutcomeSource, Ruling
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.storage.playbook import BulletPlaybook

T = TypeVar("T")


def run(steps: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(steps)


def outcome(name: str, is_fraud: bool, **more: Any) -> Outcome:
    return Outcome(transaction_id=name, is_fraud=is_fraud, **more)


def all_zero(counters: dict[str, tuple[int, ...]]) -> bool:
    return not any(any(counts) for counts in counters.values())


class Undecided:
    """A judge whose every call fails."""

    async def rule(self, input_text: str, output: str, ground_truth: str | None = None) -> Judgement:  # noqa: ARG002
        return Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="the call failed")

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:  # noqa: ARG002
        return text


def test_deciding_never_changes_the_playbook(toy: Any) -> None:
    learner = toy.with_bullets()
    before = learner.playbook.snapshot()
    for n in range(5):
        run(learner.decide(toy.transaction(f"t{n}", amount=50 + 700 * n)))
    after = learner.playbook.snapshot()
    assert after == before
    assert after.revision == before.revision
    assert len(list(learner.playbook.ledger.read())) == 3 + 5


def test_deciding_is_idempotent_on_one_revision(toy: Any) -> None:
    learner = toy.with_bullets()
    transactions = [toy.transaction("t1"), toy.transaction("t2", 20), toy.transaction("t1")]
    first = run(learner.decide_all(transactions))
    assert first[0] == first[2]
    assert run(learner.decide_all(transactions)) == first
    assert run(learner.decide(transactions[1])) == first[1]
    assert [len(learner.playbook.ledger.transaction_events([name])[name].decisions) for name in ("t1", "t2")] == [1, 1]


@pytest.mark.parametrize("is_fraud", [True, False])
def test_counters_after_one_outcome(toy: Any, is_fraud: bool) -> None:
    learner = toy.with_bullets()
    decision = run(learner.decide(toy.transaction("t1")))
    assert decision.verdict is Verdict.DECLINE
    heard = run(learner.hear(outcome("t1", is_fraud)))
    assert heard.judgement.is_correct is is_fraud
    both, vpn, small = learner.playbook.snapshot().bullets.values()
    assert set(decision.cited) == {both.id, vpn.id}
    right, wrong = (1, 0) if is_fraud else (0, 1)
    for bullet in (both, vpn):
        assert (bullet.helpful_count, bullet.harmful_count, bullet.times_selected) == (right, wrong, 1)
        assert (bullet.record.support, bullet.record.frauds) == (1, int(is_fraud))
    assert (small.times_selected, small.record.support) == (0, 0)


def test_a_bullet_that_fired_unselected_has_its_own_record_but_no_praise(toy: Any) -> None:
    learner = toy.with_bullets(options=LearnerOptions(n_bullets=1))
    decision = run(learner.decide(toy.transaction("t1")))
    assert len(decision.cited) == 1
    run(learner.hear(outcome("t1", True)))
    both, vpn, _ = learner.playbook.snapshot().bullets.values()
    assert {both.record.support, vpn.record.support} == {1}
    assert {both.helpful_count + both.times_selected, vpn.helpful_count + vpn.times_selected} == {0, 2}


def test_an_unjudged_outcome_counts_neither_as_helpful_nor_as_harmful(toy: Any) -> None:
    learner = toy.with_bullets(judge=Undecided())
    run(learner.decide(toy.transaction("t1")))
    heard = run(learner.hear(outcome("t1", True)))
    assert heard.judgement.ruling is Ruling.UNJUDGED
    for helpful, harmful, selected, _, _ in toy.counters(learner.playbook).values():
        assert (helpful, harmful, selected) == (0, 0, 0)


def test_the_same_outcome_twice_counts_once(toy: Any) -> None:
    learner = toy.with_bullets()
    run(learner.decide(toy.transaction("t1")))
    run(learner.hear(outcome("t1", True)))
    before = learner.playbook.snapshot(), learner.playbook.ledger.last_seq()
    again = run(learner.hear(outcome("t1", True)))
    assert again.already_known
    assert (learner.playbook.snapshot(), learner.playbook.ledger.last_seq()) == before
    by_another = run(learner.hear(outcome("t1", True, source=OutcomeSource.CHARGEBACK)))
    assert by_another.already_known
    assert learner.playbook.snapshot() == before[0], "a confirmation counts nothing"
    sources = [heard.outcome.source for heard in learner.playbook.ledger.transaction_events(["t1"])["t1"].outcomes]
    assert sources == [OutcomeSource.LABEL, OutcomeSource.CHARGEBACK], "but it is kept"


def after(toy: Any, *truths: bool) -> dict[str, tuple[int, ...]]:
    learner = toy.with_bullets()
    run(learner.decide(toy.transaction("t1")))
    for index, truth in enumerate(truths):
        run(learner.hear(outcome("t1", truth, id=f"o{index}")))
    assert matches_replay(learner.playbook)
    counters: dict[str, tuple[int, ...]] = toy.counters(learner.playbook)
    return counters


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(truths=st.lists(st.booleans(), min_size=1, max_size=6))
def test_however_often_a_truth_is_revised_only_the_last_one_counts(toy: Any, truths: list[bool]) -> None:
    assert after(toy, *truths) == after(toy, truths[-1])


def test_a_revision_is_kept_as_one(toy: Any) -> None:
    learner = toy.with_bullets()
    run(learner.decide(toy.transaction("t1")))
    run(learner.hear(outcome("t1", True)))
    run(learner.hear(outcome("t1", False)))
    ledger = learner.playbook.ledger
    assert [heard.kind for heard in ledger.transaction_events(["t1"])["t1"].outcomes] == [
        "outcome_heard",
        "outcome_revised",
    ]
    assert [case.is_fraud for case in cases_of(ledger)] == [False]


def test_an_outcome_that_is_delivered_again_after_it_was_revised_changes_nothing(toy: Any) -> None:
    learner = toy.with_bullets()
    run(learner.decide(toy.transaction("t1")))
    run(learner.hear(outcome("t1", True, id="first")))
    run(learner.hear(outcome("t1", False, id="second")))
    before = learner.playbook.snapshot()
    assert run(learner.hear(outcome("t1", True, id="first"))).already_known
    assert learner.playbook.snapshot() == before


def test_pending_counts_as_nothing(toy: Any) -> None:
    learner = toy.with_bullets()
    run(learner.decide_all([toy.transaction(f"t{n}") for n in range(20)]))
    assert all_zero(toy.counters(learner.playbook))
    run(learner.hear(outcome("t3", True)))
    assert {counts[2] for counts in toy.counters(learner.playbook).values()} == {0, 1}
    assert len(learner.remembered()) == 1


def test_an_outcome_before_its_decision_is_learnt_from(toy: Any) -> None:
    learner = toy.with_bullets()
    heard = run(learner.hear(outcome("t1", True), toy.transaction("t1")))
    assert heard.judgement.ruling is Ruling.UNJUDGED
    for helpful, harmful, selected, fired, frauds in toy.counters(learner.playbook).values():
        assert (helpful, harmful, selected) == (0, 0, 0)
        assert fired == frauds, "its own record is kept of every outcome"
    assert len(learner.remembered()) == 1
    decision = run(learner.decide(toy.transaction("t1")))
    assert decision.verdict is Verdict.DECLINE
    judged = run(learner.hear(outcome("t1", True)))
    assert judged.judgement.ruling is Ruling.CORRECT, "the decision can be judged now"
    assert judged.already_known, "what was heard before the decision counts first"
    assert {counts[2] for counts in toy.counters(learner.playbook).values()} == {0, 1}
    assert run(learner.hear(outcome("t1", True))).already_known


def test_an_outcome_of_nothing_known_is_kept_and_teaches_nothing(toy: Any) -> None:
    learner = toy.with_bullets()
    heard = run(learner.hear(outcome("nobody", True)))
    assert heard.new_bullet is None
    assert not heard.already_known
    assert len(learner.remembered()) == 0
    assert cases_of(learner.playbook.ledger) == []


def test_an_old_decision_replays_the_same_after_much_learning(toy: Any) -> None:
    learner = toy.with_bullets()
    old = [run(learner.decide(toy.transaction(f"old{n}", 150 * n, vpn=bool(n % 2)))) for n in range(6)]
    revisions = [learner.playbook.snapshot().revision]
    for case in toy.cases(120):
        run(learner.decide(case.transaction))
        run(learner.hear(outcome(case.transaction.id, case.is_fraud)))
        revisions.append(learner.playbook.snapshot().revision)
    assert all(each <= other for each, other in pairwise(revisions))
    assert len(learner.playbook) > 3
    for decision in old:
        assert run(learner.replay(decision)) == decision
        assert run(Learner(learner.playbook).replay(decision)) == decision
    now = [run(learner.decide(decision.transaction)) for decision in old]
    assert [each.probability for each in now] != [each.probability for each in old]


def test_a_revised_truth_without_its_transaction_corrects_what_is_remembered() -> None:
    learner = Learner(BulletPlaybook())
    told = Transaction(id="bare", facts={"amount": 5.0})
    run(learner.hear(Outcome(transaction_id="bare", is_fraud=True), told))
    run(learner.hear(Outcome(transaction_id="bare", is_fraud=False)))
    assert learner.remembered().labels.tolist() == [False]


def test_the_same_truth_from_another_source_is_no_new_case() -> None:
    learner = Learner(BulletPlaybook())
    told = Transaction(id="bare", facts={"amount": 5.0})
    for source in ("label", "chargeback", "analyst"):
        run(learner.hear(Outcome(transaction_id="bare", is_fraud=True, source=OutcomeSource(source)), told))
    assert learner.playbook.learning().unreviewed.cases == 1


def test_one_batch_may_describe_a_transaction_and_then_revise_it_by_its_id_alone(toy: Any) -> None:
    together, apart = toy.with_bullets(), toy.with_bullets()
    about = [toy.transaction("t1"), None]
    both = [outcome("t1", is_fraud=True), outcome("t1", is_fraud=False)]
    run(together.hear_all(both, about))
    for one, transaction in zip(both, about, strict=True):
        run(apart.hear(one, transaction))
    (case,) = together.playbook.ledger.remembered(9)
    assert (case.is_fraud, case.facts) == (False, toy.transaction("t1").facts)
    assert together.playbook.ledger.remembered(9) == apart.playbook.ledger.remembered(9)
    counts = [
        [(bullet.content, bullet.record) for bullet in learner.playbook.snapshot().bullets.values()]
        for learner in (together, apart)
    ]
    assert counts[0] == counts[1]
