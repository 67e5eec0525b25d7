"""Agents around an agent: what fails is marked and never counted, what is clear is not asked about."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import pytest
from tests.storage.replaying import matches_replay

from acefraud.core.bullet import Bullet, Evidence, Record, Status
from acefraud.core.calibration import Calibration
from acefraud.core.condition import Condition
from acefraud.core.decision import ProbabilityFrom, ReasonKind
from acefraud.core.outcome import Outcome, Ruling
from acefraud.core.transaction import FactValue, Verdict
from acefraud.engine.agent_fallback import Fallback, Tiered, WithFallback
from acefraud.errors import BudgetExceeded, ConfigurationError, ModelError, ModelRefused, ModelTimeout
from acefraud.learning.learner import Learner
from acefraud.roles.embedded.agent import weigh
from acefraud.roles.protocols import Assessment, Question

T = TypeVar("T")


def run(steps: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(steps)


class Scripted:
    """An agent that fails, or declines everything in its own words."""

    model = "scripted:agent"
    waits = True
    adds_up = False

    @property
    def without_tier(self) -> Scripted:
        return self

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.asked = 0

    async def assess(self, question: Question) -> Assessment:  # noqa: ARG002
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return Assessment(
            verdict=Verdict.DECLINE,
            probability=0.8,
            base=1.4,
            reasons=(),
            model=self.model,
            probability_from=ProbabilityFrom.STATED,
        )


FACTS: dict[str, FactValue] = {"amount": 2500.0, "vpn": True}


# --- where a model fails -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fallback", list(Fallback))
def test_a_model_that_answers_is_left_alone(fallback: Fallback) -> None:
    agent = Scripted()
    view = run(WithFallback(agent, fallback).assess(Question("", FACTS, (), None)))
    assert (view.verdict, view.probability, view.model, view.fallback) == (Verdict.DECLINE, 0.8, "scripted:agent", "")
    assert WithFallback(agent, fallback).model == "scripted:agent"


@pytest.mark.parametrize("failure", [ModelTimeout("too slow"), ModelRefused("no key")])
def test_an_error_stays_one_where_that_was_chosen(failure: ModelError) -> None:
    with pytest.raises(type(failure)):
        run(WithFallback(Scripted(failure), Fallback.ERROR).assess(Question("", FACTS, (), None)))


@pytest.mark.parametrize("fallback", list(Fallback))
@pytest.mark.parametrize("failure", [BudgetExceeded("1.00 is spent"), ZeroDivisionError()])
def test_a_budget_and_our_own_errors_pass_through(failure: Exception, fallback: Fallback) -> None:
    with pytest.raises(type(failure)):
        run(WithFallback(Scripted(failure), fallback).assess(Question("", FACTS, (), None)))


@pytest.mark.parametrize("fallback", [Fallback.REVIEW, Fallback.EMBEDDED])
def test_what_stands_in_is_the_embedded_view_and_says_so(fallback: Fallback) -> None:
    bullet = Bullet(id="b1", content="VPN: decline", argues=Verdict.DECLINE, condition=Condition.parse("vpn is true"))
    calibration = Calibration(intercept=-0.5, threshold=0.4, cases=100)
    view = run(
        WithFallback(Scripted(ModelTimeout("too slow")), fallback).assess(Question("", FACTS, [bullet], calibration))
    )
    embedded = weigh(FACTS, [bullet], calibration)
    first, *rest = view.reasons
    assert (first.kind, first.contribution, first.bullet_id) == (ReasonKind.FALLBACK, None, None)
    assert first.text.startswith("scripted:agent failed (too slow): ")
    assert tuple(rest) == embedded.reasons
    assert (view.fallback, view.model) == ("too slow", "embedded")
    assert view.probability == embedded.probability
    assert view.verdict is (Verdict.REVIEW if fallback is Fallback.REVIEW else embedded.verdict)


def failing(toy: Any, fallback: Fallback, failure: Exception | None = None) -> tuple[Learner, Scripted]:
    agent = Scripted(failure or ModelTimeout("too slow"))
    return toy.with_bullets(agent=WithFallback(agent, fallback)), agent


@pytest.mark.parametrize("is_fraud", [True, False])
def test_a_review_is_recorded_as_one_and_judged_by_nobody(toy: Any, is_fraud: bool) -> None:
    learner, _ = failing(toy, Fallback.REVIEW)
    decision = run(learner.decide(toy.transaction("t1")))
    assert decision.verdict is Verdict.REVIEW
    assert decision.fallback == "too slow"
    assert decision.reasons[0].kind is ReasonKind.FALLBACK
    assert len(decision.cited) == 2, "the bullets that would have spoken are still named"
    heard = run(learner.hear(Outcome(transaction_id="t1", is_fraud=is_fraud)))
    assert heard.judgement.ruling is Ruling.UNJUDGED
    for helpful, harmful, selected, _, _ in toy.counters(learner.playbook).values():
        assert (helpful, harmful, selected) == (0, 0, 0)
    assert sum(counts[3] for counts in toy.counters(learner.playbook).values()) == 2, "their own record is kept"
    assert matches_replay(learner.playbook)


def test_what_the_embedded_engine_decided_instead_counts_as_a_decision(toy: Any) -> None:
    learner, _ = failing(toy, Fallback.EMBEDDED)
    decision = run(learner.decide(toy.transaction("t1")))
    usual = run(toy.with_bullets().decide(toy.transaction("t1")))
    assert (decision.verdict, decision.probability) == (usual.verdict, usual.probability)
    assert decision.fallback == "too slow"
    assert decision.id != usual.id
    heard = run(learner.hear(Outcome(transaction_id="t1", is_fraud=True)))
    assert heard.judgement.ruling is Ruling.CORRECT


def test_a_failed_decision_can_be_made_again_once_the_model_is_back(toy: Any) -> None:
    learner, agent = failing(toy, Fallback.REVIEW)
    first = run(learner.decide(toy.transaction("t1")))
    agent.failure = None
    second = run(learner.decide(toy.transaction("t1")))
    assert (first.verdict, second.verdict) == (Verdict.REVIEW, Verdict.DECLINE)
    assert first.id != second.id
    assert run(learner.hear(Outcome(transaction_id="t1", is_fraud=True))).judgement.ruling is Ruling.CORRECT


@pytest.mark.parametrize(
    ("fallback", "failure"),
    [(Fallback.ERROR, ModelTimeout("too slow")), (Fallback.REVIEW, BudgetExceeded("1.00 is spent"))],
)
def test_what_was_not_decided_is_not_recorded(toy: Any, fallback: Fallback, failure: Exception) -> None:
    learner, _ = failing(toy, fallback, failure)
    before = learner.playbook.ledger.last_seq()
    with pytest.raises(type(failure)):
        run(learner.decide_all([toy.transaction("t1"), toy.transaction("t2", 20)]))
    assert learner.playbook.ledger.last_seq() == before


# --- what is clear -----------------------------------------------------------------------------------------------


def bullet(argues: Verdict = Verdict.DECLINE, weight: float = 4.0, measured: bool = True, **more: Any) -> Bullet:
    frauds = 48 if argues is Verdict.DECLINE else 1
    evidence = Evidence(learnt=Record(support=50, frauds=frauds), base_rate=0.3) if measured else None
    given = {"condition": Condition.parse("vpn is true"), **more}
    return Bullet(id=f"b-{argues}-{weight}", content="x", argues=argues, weight=weight, evidence=evidence, **given)


FITTED = Calibration(intercept=0.0, knowledge_scale=0.0, base_rate=0.3, cases=200)


def asks(bullets: Sequence[Bullet], calibration: Calibration | None = FITTED, certainty: float = 0.95) -> bool:
    """Whether the model was asked; the counts must agree."""
    agent = Scripted()
    tier = Tiered(agent, certainty)
    view = run(tier.assess(Question("", FACTS, bullets, calibration)))
    assert (tier.by_tier, tier.by_model) == (1 - agent.asked, agent.asked)
    if not agent.asked:
        assert view == weigh(FACTS, bullets, calibration)
    return bool(agent.asked)


def test_what_measured_bullets_settle_is_not_asked_about() -> None:
    assert not asks([bullet()])
    assert not asks([bullet(Verdict.APPROVE, -4.0)])


@pytest.mark.parametrize(("weight", "asked"), [(1.0, True), (2.9, True), (3.0, False), (-2.9, True), (-3.0, False)])
def test_only_the_ambiguous_band_is_asked_about(weight: float, asked: bool) -> None:
    """0.95 is log-odds of 2.944."""
    argues = Verdict.DECLINE if weight > 0 else Verdict.APPROVE
    assert asks([bullet(argues, weight)]) is asked


def test_the_band_is_as_wide_as_was_chosen() -> None:
    assert asks([bullet(weight=3.0)], certainty=0.99)
    assert not asks([bullet(weight=1.0)], certainty=0.7)


@pytest.mark.parametrize("calibration", [None, FITTED.model_copy(update={"cases": 0})])
def test_a_frame_that_was_never_fitted_settles_nothing(calibration: Calibration | None) -> None:
    assert asks([bullet(weight=50.0)], calibration)


def test_what_was_not_measured_settles_nothing() -> None:
    assert asks([bullet(measured=False)])
    assert asks([bullet(condition=None)])
    assert not asks([bullet(measured=False), bullet()])


def test_what_does_not_apply_settles_nothing() -> None:
    certain = FITTED.model_copy(update={"intercept": 5.0})
    assert asks([], certain), "general knowledge alone"
    assert asks([bullet(condition=Condition.parse("amount < 10"))], certain)
    assert not asks([bullet(weight=0.5)], certain)


def test_what_argues_the_other_way_settles_nothing() -> None:
    assert asks([bullet(Verdict.APPROVE, -1.0)], FITTED.model_copy(update={"intercept": 9.0}))


def test_a_certainty_that_the_threshold_turns_round_is_asked_about() -> None:
    """97 % sure that it is honest, and still declined, because the threshold lies below 3 %."""
    strict = FITTED.model_copy(update={"threshold": 0.02})
    assert asks([bullet(Verdict.APPROVE, -3.5), bullet(Verdict.DECLINE, 0.1)], strict)


def test_counts_add_up_and_begin_anew() -> None:
    agent = Scripted()
    tier = Tiered(agent, 0.9)
    for weight in (0.5, 4.0, 0.1, 4.0, 4.0):
        run(tier.assess(Question("", FACTS, [bullet(weight=weight)], FITTED)))
    assert (tier.by_tier, tier.by_model) == (3, 2)
    again = tier.with_new_counts()
    assert (again.by_tier, again.by_model, again.agent, again.model) == (0, 0, agent, "scripted:agent")
    run(again.assess(Question("", FACTS, [bullet(weight=2.3)], FITTED)))
    assert (again.by_tier, tier.by_tier) == (1, 3), "with the same certainty, counted apart"


@pytest.mark.parametrize("certainty", [0.49, 1.01, float("nan")])
def test_impossible_certainties_are_turned_down(certainty: float) -> None:
    with pytest.raises(ConfigurationError, match=r"certainty from 0\.5 to 1"):
        Tiered(Scripted(), certainty)


def test_certain_of_everything_or_of_nothing() -> None:
    assert not asks([bullet(weight=0.01)], certainty=0.5)
    assert asks([bullet(weight=20.0)], certainty=1.0)


def test_a_candidate_that_was_measured_may_settle_a_case_with_its_fitted_weight() -> None:
    assert not asks([bullet(status=Status.CANDIDATE)])


def test_only_what_is_not_clear_meets_the_failing_model() -> None:
    tier = Tiered(WithFallback(Scripted(ModelTimeout("too slow")), Fallback.REVIEW))
    clear = run(tier.assess(Question("", FACTS, [bullet()], FITTED)))
    unclear = run(tier.assess(Question("", FACTS, [bullet(weight=0.5)], FITTED)))
    assert (clear.verdict, clear.fallback) == (Verdict.DECLINE, "")
    assert (unclear.verdict, unclear.fallback) == (Verdict.REVIEW, "too slow")


def test_a_learner_behind_a_tier_asks_only_about_the_rest(toy: Any) -> None:
    agent = Scripted()
    tier = Tiered(agent, 0.6)
    learner = toy.with_bullets(agent=tier)
    run(learner.decide(toy.transaction("early")))
    assert agent.asked == 1, "nothing was fitted yet"
    learner.study(toy.cases(200))
    for case in toy.cases(80, seed=3, prefix="d"):
        run(learner.decide(case.transaction))
    assert tier.by_tier >= 10
    assert tier.by_model == agent.asked > 1
    assert tier.by_tier + tier.by_model == 81
