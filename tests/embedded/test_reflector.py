"""The embedded reflector: what one outcome teaches in the light of those before, or nothing at all."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from acefraud.core.bullet import Bullet
from acefraud.core.condition import Condition
from acefraud.core.evidence import Record
from acefraud.core.transaction import Case, FactValue, Transaction, Verdict
from acefraud.embedded.reflector import KnownAlready, Reflector, ReflectorOptions
from acefraud.errors import InputError

PLANTED = Condition.parse("amount > 700 and risk_score < 3")


def cases_with_a_rule(count: int, seed: int, *, signal: bool = True) -> list[Case]:
    dice = random.Random(seed)
    cases = []
    for place in range(count):
        facts: dict[str, FactValue] = {"amount": dice.uniform(0, 1000), "risk_score": dice.uniform(0, 10)}
        chance = (0.9 if PLANTED.holds(facts) else 0.03) if signal else 0.2
        cases.append(Case(transaction=Transaction(id=f"t{place}", facts=facts), is_fraud=dice.random() < chance))
    return cases


def reflect(reflector: Reflector, case: Case, known: KnownAlready | None = None) -> dict[str, Any] | None:
    predicted = Verdict.of(not case.is_fraud)
    return asyncio.run(reflector.reflect(case.transaction, predicted, case.answer, known=known))


@pytest.fixture(scope="module")
def replies() -> list[tuple[Case, dict[str, Any] | None]]:
    """What a reflector answers to 60 cases, having been shown 400 before."""
    reflector = Reflector()
    reflector.remember(cases_with_a_rule(400, seed=0))
    shown = [
        case.model_copy(update={"transaction": case.transaction.model_copy(update={"id": f"new {place}"})})
        for place, case in enumerate(cases_with_a_rule(60, seed=1))
    ]
    return [(case, reflect(reflector, case, KnownAlready())) for case in shown]


def test_with_too_few_cases_it_says_nothing() -> None:
    reflector = Reflector()
    least = reflector.options.induction.least_cases
    cases = cases_with_a_rule(least - 1, seed=3)
    assert any(case.is_fraud for case in cases)
    assert [reflect(reflector, case) for case in cases] == [None] * (least - 1)
    assert len(reflector) == least - 1


@pytest.mark.parametrize("is_fraud", [True, False])
def test_with_cases_of_one_kind_only_it_says_nothing(is_fraud: bool) -> None:
    reflector = Reflector()
    cases = [case.model_copy(update={"is_fraud": is_fraud}) for case in cases_with_a_rule(80, seed=4)]
    assert all(reflect(reflector, case) is None for case in cases)


def test_a_proposal_holds_for_the_case_and_argues_for_its_truth(
    replies: list[tuple[Case, dict[str, Any] | None]],
) -> None:
    said = [(case, reply) for case, reply in replies if reply is not None]
    assert len(said) >= 20
    assert {case.is_fraud for case, _ in said} == {True, False}
    for case, reply in said:
        assert Condition.parse(reply["condition"]).holds(case.transaction.facts)
        assert reply["argues"] == case.answer
        assert (reply["weight"] > 0) is case.is_fraud
        assert (reply["evidence"].lift > 1) is case.is_fraud


def test_a_proposal_carries_the_measured_figures(replies: list[tuple[Case, dict[str, Any] | None]]) -> None:
    reply = next(reply for case, reply in replies if reply is not None and case.is_fraud)
    record = reply["evidence"].learnt
    assert isinstance(record, Record)
    assert f"{record.frauds:,} of {record.support:,} past cases were fraud" in reply["new_bullet"]
    assert 0 <= reply["confidence"] <= (record.precision or 0)
    assert reply["problem_types"]
    assert reply["learnt_from"] == "failure"


def test_evidence_is_what_plain_counting_gives() -> None:
    reflector, cases = Reflector(), cases_with_a_rule(300, seed=5)
    reflector.remember(cases)
    evidence = reflector.measure(PLANTED)
    held = [case for case in cases if PLANTED.holds(case.transaction.facts)]
    assert evidence is not None
    assert evidence.learnt == Record(support=len(held), frauds=sum(case.is_fraud for case in held))
    assert evidence.base_rate == pytest.approx(sum(case.is_fraud for case in cases) / len(cases))
    assert Reflector().measure(PLANTED) is None


def test_what_the_playbook_says_already_is_not_proposed_again() -> None:
    reflector = Reflector()
    reflector.remember(cases_with_a_rule(400, seed=0))
    case = next(
        case for case in cases_with_a_rule(400, seed=0) if case.is_fraud and PLANTED.holds(case.transaction.facts)
    )
    first = reflect(reflector, case, KnownAlready())
    assert first is not None
    said = Bullet(id="b", content=first["new_bullet"], condition=Condition.parse(first["condition"]), weight=0.0)
    again = reflect(reflector, case, KnownAlready(bullets=(said,)))
    assert again is None or again["condition"] != first["condition"]


def test_without_a_playbook_it_does_not_repeat_itself() -> None:
    reflector = Reflector()
    reflector.remember(cases_with_a_rule(400, seed=0))
    said = [reply["condition"] for case in cases_with_a_rule(400, seed=0) if (reply := reflect(reflector, case))]
    assert len(said) >= 2
    assert len(said) == len(set(said))


def test_from_noise_it_proposes_little() -> None:
    reflector = Reflector()
    cases = cases_with_a_rule(500, seed=6, signal=False)
    reflector.remember(cases[:400])
    # Fixed seed. Of a hundred outcomes without any rule behind them, few look like one.
    assert sum(reflect(reflector, case, KnownAlready()) is not None for case in cases[400:]) <= 20


def test_memory_is_bounded_and_keeps_the_latest() -> None:
    reflector = Reflector(ReflectorOptions(memory=50))
    reflector.remember(cases_with_a_rule(500, seed=7))
    assert 0 < len(reflector) <= 50


def test_every_text_is_a_case_of_its_own_even_when_the_memory_is_full() -> None:
    reflector = Reflector(ReflectorOptions(memory=10))
    for amount in range(101, 141):
        asyncio.run(reflector.reflect(f"User attempts ${amount} purchase", "APPROVE", "APPROVE"))
    latest = reflector.measure(Condition.parse(f"amount > {140 - len(reflector)}"))
    assert latest is not None
    assert latest.learnt.support == len(reflector) >= 8


def test_a_revised_label_replaces_the_one_before() -> None:
    reflector, cases = Reflector(), cases_with_a_rule(300, seed=8)
    reflector.remember(cases)
    before = reflector.measure(PLANTED)
    revised = next(case for case in cases if case.is_fraud and PLANTED.holds(case.transaction.facts))
    reflector.remember([revised.model_copy(update={"is_fraud": False})])
    after = reflector.measure(PLANTED)
    assert before is not None
    assert after is not None
    assert len(reflector) == 300
    assert after.learnt == Record(support=before.learnt.support, frauds=before.learnt.frauds - 1)


@pytest.mark.parametrize("word", ["", "FRAUD", "maybe"])
def test_a_truth_that_is_no_verdict_is_refused_and_nothing_is_remembered(word: str) -> None:
    reflector = Reflector()
    with pytest.raises(InputError, match="APPROVE or DECLINE"):
        asyncio.run(reflector.reflect("User attempts $20 purchase", "APPROVE", word))
    assert len(reflector) == 0


@pytest.mark.parametrize(("predicted", "learnt_from"), [("APPROVE", "failure"), (" decline ", "success")])
def test_it_learns_from_successes_and_failures_alike(predicted: str, learnt_from: str) -> None:
    reflector = Reflector()
    reflector.remember(cases_with_a_rule(400, seed=0))
    facts: dict[str, FactValue] = {"amount": 950.0, "risk_score": 0.5}
    reply = asyncio.run(reflector.reflect(Transaction(id="new", facts=facts), predicted, "DECLINE", "some node"))
    assert reply is not None
    assert (reply["learnt_from"], reply["node"]) == (learnt_from, "some node")


def test_refitting_needs_cases_and_gives_each_bullet_a_weight() -> None:
    bullet = Bullet(id="b", content="c", condition=PLANTED)
    assert Reflector().refit([bullet]) is None
    reflector = Reflector()
    reflector.remember(cases_with_a_rule(400, seed=0))
    fitted = reflector.refit([bullet])
    assert fitted is not None
    assert fitted.weights["b"] > 1
    assert fitted.calibration.cases == 400


def test_a_whole_history_teaches_the_rule_and_is_remembered() -> None:
    reflector, cases = Reflector(), cases_with_a_rule(800, seed=9)
    induced = reflector.study(cases)
    assert induced is not None
    assert len(reflector) == 800
    together = [lesson for lesson in induced.lessons if lesson.condition.facts == PLANTED.facts]
    assert max(lesson.weight for lesson in together) > 0.5
