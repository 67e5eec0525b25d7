"""The embedded reflector: what one outcome teaches in the light of those before, or nothing at all."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from acefraud.core.bullet import Bullet, Evidence, Record
from acefraud.core.condition import Condition
from acefraud.core.transaction import Case, FactValue, Transaction, Verdict
from acefraud.core.transactions import Cases
from acefraud.errors import InputError
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.roles.embedded.reflector import (
    LEAST_FITTED,
    LEAST_NEW,
    EmbeddedReflector,
    ReflectorOptions,
    can_be_fitted,
)
from acefraud.roles.reflector import Reflector
from acefraud.rules.induction.boosting import InductionOptions

PLANTED = Condition.parse("amount > 700 and risk_score < 3")
NEVER_TRUE = Condition.parse("amount > 5000")


def cases_with_a_rule(count: int, seed: int, *, signal: bool = True, name: str = "t") -> list[Case]:
    dice = random.Random(seed)
    cases = []
    for index in range(count):
        facts: dict[str, FactValue] = {"amount": dice.uniform(0, 1000), "risk_score": dice.uniform(0, 10)}
        chance = (0.9 if PLANTED.holds(facts) else 0.03) if signal else 0.2
        transaction = Transaction(id=f"{name}{index}", facts=facts)
        cases.append(Case(transaction=transaction, is_fraud=dice.random() < chance))
    return cases


def labelled(cases: list[Case]) -> LabelledFacts:
    return LabelledFacts.of(Cases.of(cases))


def shown(cases: list[Case], options: ReflectorOptions | None = None) -> Reflector:
    reflector = Reflector(options)
    reflector.remember(cases)
    return reflector


def reflect(reflector: Reflector, case: Case) -> dict[str, Any] | None:
    predicted = Verdict.of(not case.is_fraud)
    return asyncio.run(reflector.reflect(case.transaction, predicted, case.answer))


Replies = list[tuple[Case, dict[str, Any] | None]]


@pytest.fixture(scope="module")
def replies() -> Replies:
    """What a reflector answers to 200 cases, having been shown 400 before."""
    reflector = shown(cases_with_a_rule(400, seed=0))
    return [(case, reflect(reflector, case)) for case in cases_with_a_rule(200, seed=1, name="new ")]


def said(replies: Replies) -> list[tuple[Case, dict[str, Any]]]:
    return [(case, reply) for case, reply in replies if reply is not None]


# --- one outcome -------------------------------------------------------------------------------------------------


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


def test_a_proposal_holds_for_the_case_and_argues_for_its_truth(replies: Replies) -> None:
    assert len(said(replies)) >= 4
    assert {case.is_fraud for case, _ in said(replies)} == {True, False}
    for case, reply in said(replies):
        assert Condition.parse(reply["condition"]).holds(case.transaction.facts)
        assert reply["argues"] == case.answer
        assert (reply["weight"] > 0) is case.is_fraud
        assert (reply["evidence"].lift > 1) is case.is_fraud


def test_a_proposal_carries_the_measured_figures(replies: Replies) -> None:
    for _, reply in said(replies):
        evidence = reply["evidence"]
        assert evidence.in_words() in reply["new_bullet"]
        low, high = evidence.interval
        assert reply["confidence"] == pytest.approx(low if reply["argues"] == "DECLINE" else 1 - high, abs=1e-4)
        assert reply["problem_types"]
        assert reply["learnt_from"] == "failure"


def test_it_does_not_repeat_itself(replies: Replies) -> None:
    conditions = [reply["condition"] for _, reply in said(replies)]
    assert len(conditions) == len(set(conditions))


def test_of_the_lessons_that_apply_the_strongest_comes_first() -> None:
    reflector = shown(cases_with_a_rule(400, seed=0))
    for case in cases_with_a_rule(LEAST_NEW - 1, seed=1, name="new "):
        assert reflect(reflector, case) is None, "it has not searched yet"
    facts: dict[str, FactValue] = {"amount": 950.0, "risk_score": 0.5}
    weights = []
    for index in range(5):  # the same case again and again, without a search in between
        case = Case(transaction=Transaction(id=f"risky {index}", facts=facts), is_fraud=True)
        reply = reflect(reflector, case)
        weights += [] if reply is None else [reply["weight"]]
    assert weights
    assert weights == sorted(weights, reverse=True)


def test_it_searches_again_when_it_has_heard_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    reflector = Reflector(ReflectorOptions(search_again=1.5))
    searches: list[int] = []
    monkeypatch.setattr(reflector.engine, "search", lambda cases, **_: searches.append(len(cases)))
    for case in cases_with_a_rule(140, seed=2):
        reflect(reflector, case)
    assert searches == [20, 40, 60, 90, 135]


def test_from_noise_it_proposes_little() -> None:
    cases = cases_with_a_rule(500, seed=6, signal=False)
    reflector = shown(cases[:400])
    # Fixed seed. Of a hundred outcomes without any rule behind them, few look like one.
    assert sum(reflect(reflector, case) is not None for case in cases[400:]) <= 20


@pytest.mark.parametrize("word", ["", "FRAUD", "maybe"])
def test_a_truth_that_is_no_verdict_is_refused_and_nothing_is_remembered(word: str) -> None:
    reflector = Reflector()
    with pytest.raises(InputError, match="APPROVE or DECLINE"):
        asyncio.run(reflector.reflect("User attempts $20 purchase", "APPROVE", word))
    assert len(reflector) == 0


@pytest.mark.parametrize(("predicted", "learnt_from"), [("APPROVE", "failure"), (" decline ", "success")])
def test_it_learns_from_successes_and_failures_alike(predicted: str, learnt_from: str) -> None:
    reflector = shown(cases_with_a_rule(400, seed=0))
    facts: dict[str, FactValue] = {"amount": 950.0, "risk_score": 0.5}
    replies = [
        asyncio.run(reflector.reflect(Transaction(id=f"n{n}", facts=facts), predicted, "DECLINE", "some node"))
        for n in range(LEAST_NEW)
    ]
    assert replies[-1] is not None
    assert (replies[-1]["learnt_from"], replies[-1]["node"]) == (learnt_from, "some node")


# --- what is remembered ------------------------------------------------------------------------------------------


def test_memory_is_bounded_and_keeps_the_latest() -> None:
    reflector = shown(cases_with_a_rule(500, seed=7), ReflectorOptions(memory=50))
    assert reflector.memory.cases.ids.tolist() == [f"t{index}" for index in range(450, 500)]


def test_every_text_is_a_case_of_its_own_even_when_the_memory_is_full() -> None:
    reflector = Reflector(ReflectorOptions(memory=10))
    for amount in range(101, 141):
        asyncio.run(reflector.reflect(f"User attempts ${amount} purchase", "APPROVE", "APPROVE"))
    assert reflector.memory.cases.facts.numbers("amount").tolist() == [float(n) for n in range(131, 141)]


def test_a_revised_label_replaces_the_one_before() -> None:
    cases = cases_with_a_rule(300, seed=8)
    reflector = shown(cases)
    before = reflector.memory.cases.measure(PLANTED)
    revised = next(case for case in cases if case.is_fraud and PLANTED.holds(case.transaction.facts))
    reflector.remember([revised.model_copy(update={"is_fraud": False})])
    after = reflector.memory.cases.measure(PLANTED)
    assert before is not None
    assert after is not None
    assert len(reflector) == 300
    assert after.learnt == Record(support=before.learnt.support, frauds=before.learnt.frauds - 1)


# --- weights -----------------------------------------------------------------------------------------------------


def test_refitting_needs_cases_and_gives_each_bullet_a_weight() -> None:
    bullet = Bullet(id="b", content="c", condition=PLANTED)
    assert EmbeddedReflector().refit([bullet]) is None
    fitted = shown(cases_with_a_rule(400, seed=0)).engine.refit([bullet])
    assert fitted is not None
    assert fitted.weights["b"] > 1
    assert fitted.calibration.cases == 400


def test_refitting_can_be_done_on_other_cases_than_those_remembered() -> None:
    cases = labelled(cases_with_a_rule(400, seed=0))
    bullet = Bullet(id="b", content="c", condition=PLANTED)
    assert EmbeddedReflector().refit([bullet], cases) == shown(cases_with_a_rule(400, seed=0)).engine.refit([bullet])


def test_a_bullet_that_held_on_too_few_cases_keeps_its_weight_and_the_others_are_fitted_beside_it() -> None:
    cases = cases_with_a_rule(400, seed=0)
    silent = [
        Bullet(id="never", content="c", condition=NEVER_TRUE, weight=3.0),
        Bullet(id="words only", content="c", weight=3.0),
    ]
    many = Evidence(learnt=Record(support=10_000, frauds=9_000), base_rate=0.1)
    learnt = Bullet(id="learnt on more", content="c", condition=PLANTED, weight=9.0, evidence=many)
    mine = Bullet(id="b", content="c", condition=PLANTED)
    reflector = shown(cases)
    alone, beside = reflector.engine.refit([mine]), reflector.engine.refit([*silent, learnt, mine])
    assert alone is not None
    assert beside is not None
    assert set(beside.weights) == {"b"}
    assert beside.weights["b"] < alone.weights["b"] / 2, "what another one has said already is not said twice"


@pytest.mark.parametrize(
    ("support", "learnt_on", "fitted"),
    [(LEAST_FITTED - 1, None, False), (LEAST_FITTED, None, True), (100, 150, True), (100, 151, False), (100, 3, True)],
)
def test_which_bullets_can_be_fitted(support: int, learnt_on: int | None, fitted: bool) -> None:
    evidence = None if learnt_on is None else Evidence(learnt=Record(support=learnt_on, frauds=1), base_rate=0.1)
    bullet = Bullet(id="b", content="c", condition=PLANTED, evidence=evidence)
    assert can_be_fitted(bullet, support) is fitted
    assert can_be_fitted(bullet, support, after_change=True) is (support >= LEAST_FITTED)


# --- whole histories ---------------------------------------------------------------------------------------------


def test_a_whole_history_teaches_the_rule_and_is_not_remembered_by_itself() -> None:
    reflector, told = EmbeddedReflector(), list[float]()
    induced = reflector.search(labelled(cases_with_a_rule(800, seed=9)), progress=told.append)
    assert induced is not None
    assert len(reflector) == 0
    assert (told[0], told[-1]) == (0.0, 1.0)
    assert told == sorted(told)
    together = [lesson for lesson in induced.lessons if lesson.condition.facts == PLANTED.facts]
    assert max(lesson.weight for lesson in together) > 0.5


def test_the_order_of_a_file_without_times_says_nothing() -> None:
    """The cases of the rule stand first in the file: read as time, there would be no later ones."""
    cases = sorted(cases_with_a_rule(800, seed=9), key=lambda case: PLANTED.holds(case.transaction.facts), reverse=True)
    start = datetime(2025, 1, 1, tzinfo=UTC)
    timed = [
        case.model_copy(
            update={"transaction": case.transaction.model_copy(update={"time": start + timedelta(hours=index)})}
        )
        for index, case in enumerate(cases)
    ]

    def later_of(some: list[Case]) -> list[int]:
        induced = EmbeddedReflector().search(labelled(some))
        assert induced is not None
        found = [
            lesson for lesson in induced.lessons if lesson.condition.facts == PLANTED.facts and lesson.weight > 0.5
        ]
        return [each.evidence.later.support if each.evidence.later else 0 for each in found]

    assert max(later_of(timed), default=0) < 10
    assert max(later_of(cases)) > 10


def test_facts_are_bounded_on_their_risky_side_only() -> None:
    cases = labelled(cases_with_a_rule(800, seed=9))
    induced = EmbeddedReflector().search(cases, rising=("amount",), falling=("risk_score",))
    assert induced is not None
    sides = {
        (test.fact, ">" in str(test), lesson.argues) for lesson in induced.lessons for test in lesson.condition.tests
    }
    assert sides <= {
        ("amount", True, Verdict.DECLINE),
        ("amount", False, Verdict.APPROVE),
        ("risk_score", False, Verdict.DECLINE),
        ("risk_score", True, Verdict.APPROVE),
    }


def test_a_review_can_be_repeated_and_each_draws_its_own_samples() -> None:
    cases = labelled(cases_with_a_rule(600, seed=9))
    first, again, other = (EmbeddedReflector().search(cases, turn=turn) for turn in (0, 0, 1))
    assert first is not None
    assert other is not None
    assert first == again
    assert {lesson.condition for lesson in first.lessons} != {lesson.condition for lesson in other.lessons}


def test_a_review_knows_what_the_book_says_and_what_people_wrote() -> None:
    cases = labelled(cases_with_a_rule(600, seed=9))
    induced = EmbeddedReflector(ReflectorOptions(review=InductionOptions(rounds=0, searches=1))).search(
        cases, turn=0, known=[PLANTED], written=[NEVER_TRUE]
    )
    assert induced is not None
    assert [lesson.condition for lesson in induced.lessons] == [PLANTED]
    assert induced.weights == {NEVER_TRUE: 0.0}


def test_a_review_learns_nothing_that_fixed_weights_explain_already() -> None:
    cases = labelled(cases_with_a_rule(600, seed=9))
    reflector = EmbeddedReflector(ReflectorOptions(review=InductionOptions(rounds=0, searches=1)))
    alone = reflector.search(cases, turn=0, known=[PLANTED])
    beside = reflector.search(cases, turn=0, known=[PLANTED], offset=np.where(PLANTED.holds_in(cases.facts), 5.0, 0.0))
    assert alone is not None
    left = beside.lessons[0].weight if beside and beside.lessons else 0.0
    assert abs(left) < alone.lessons[0].weight / 2


@pytest.mark.parametrize(
    ("frauds", "honest", "reason"),
    [
        (2, 3, "5 labelled cases, 40 are needed"),
        (4, 96, "4 frauds among 100 labelled cases, 5 are needed"),
        (50, 0, "all labelled cases are fraud"),
        (5, 35, ""),
    ],
)
def test_it_says_why_too_little_is_too_little(frauds: int, honest: int, reason: str) -> None:
    labels = np.array([True] * frauds + [False] * honest)
    cases = [
        case.model_copy(update={"is_fraud": bool(label)})
        for case, label in zip(cases_with_a_rule(len(labels), seed=0), labels, strict=True)
    ]
    assert EmbeddedReflector().too_little(labelled(cases)) == reason
    fewer = ReflectorOptions(induction=InductionOptions(least_cases=2, least_frauds=1))
    assert EmbeddedReflector(fewer).too_little(labelled(cases)) == ("" if honest else reason)
