"""A language model as a witness: its opinion is added to the embedded engine's, with a weight from labelled cases."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.storage.replaying import matches_replay

from acefraud.core.calibration import OddsScale
from acefraud.core.decision import Decision, ProbabilityFrom, ReasonKind
from acefraud.core.events import OddsScaled
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.engine.models import WithFallback, Witness, fit_scale, scale_name
from acefraud.engine.options import Fallback, LearnerOptions
from acefraud.engine.witness import LEAST_CASES, MOST_SAID, USUAL, Said, can_matter, fit_witness
from acefraud.errors import ConfigurationError, ModelError
from acefraud.learning.build_roles import build_roles
from acefraud.learning.learner import Learner
from acefraud.roles.protocols import Assessment, Question
from acefraud.settings import ModelSettings
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.exact_math import sigmoid, sigmoid_of

T = TypeVar("T")


def run(steps: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(steps)


class Scripted:
    """A model that has read something which no fact says: in the text of each case."""

    model = "scripted:reader"
    waits = True
    adds_up = False

    def __init__(self) -> None:
        self.asked: list[str] = []

    @property
    def without_tier(self) -> Scripted:
        return self

    async def assess(self, question: Question) -> Assessment:
        self.asked.append(question.text)
        odds = 5.0 if "odd wording" in question.text else -5.0
        return Assessment(
            verdict=Verdict.of(odds > 0),
            probability=sigmoid(odds),
            base=odds,
            model=self.model,
            probability_from=ProbabilityFrom.STATED,
        )


def cases(count: int, seed: int = 0, *, helps: bool = True, prefix: str = "c") -> list[Case]:
    """Fraud shows in a fact in half of the cases and, if the model helps, in the wording of the others."""
    chance = np.random.default_rng(seed)
    made = []
    for number in range(count):
        is_fraud = bool(chance.random() < 0.4)
        shows = bool(chance.random() < 0.5)
        vpn = bool(chance.random() < (0.9 if is_fraud else 0.1)) if shows else bool(chance.random() < 0.5)
        odd = (is_fraud if chance.random() < 0.85 else not is_fraud) if helps else bool(chance.random() < 0.5)
        text = f"note {number}: {'odd wording' if odd else 'plain'}"
        facts = {"vpn": vpn, "amount": float(chance.integers(5, 500))}
        made.append(Case(transaction=Transaction(id=f"{prefix}{number}", text=text, facts=facts), is_fraud=is_fraud))
    return made


def log_loss(decisions: list[Decision], known: list[Case]) -> float:
    p = np.clip([decision.probability for decision in decisions], 1e-6, 1 - 1e-6)
    y = np.array([case.is_fraud for case in known])
    return float(-np.log(np.where(y, p, 1 - p)).mean())


def decided(agent: Any, train: list[Case], test: list[Case]) -> tuple[Learner, list[Decision]]:
    learner = Learner(BulletPlaybook(), agent=agent)
    learner.study(train)
    if agent is not None:
        run(learner.scale_odds(train[:100]))
    return learner, list(run(learner.decide_all([case.transaction for case in test])))


# --- weights -----------------------------------------------------------------------------------------------------


def views(engine: float, model: float, count: int, seed: int = 0) -> list[Said]:
    """Two views of each case, which tell so much of it."""
    chance = np.random.default_rng(seed)
    fraud = chance.random(count) < 0.4
    sign = np.where(fraud, 1.0, -1.0)
    own = 2 * engine * (engine * sign + chance.normal(size=count)) + np.log(0.4 / 0.6)
    odds = 3 * (2 * model * (model * sign + chance.normal(size=count))) - 1 if model else chance.normal(-1, 3, count)
    return [Said(float(a), float(b), bool(y)) for a, b, y in zip(odds, own, fraud, strict=True)]


def loss_of(scale: OddsScale, said: list[Said]) -> float:
    odds = [scale.engine * (one.engine or 0) + scale.slope * np.clip(one.odds, -8, 8) + scale.level for one in said]
    p = sigmoid_of(odds)
    return float(-np.log(np.where([one.is_fraud for one in said], p, 1 - p)).mean())


def ratios(engine: float, model: float, count: int) -> list[float]:
    """The log-loss on other cases, as a share of that of the better of the two alone."""
    found = []
    for seed in range(20):
        said = views(engine, model, count + 3_000, seed)
        train, test = said[:count], said[count:]
        both, alone = fit_witness(train), fit_scale([s.odds for s in train], [s.is_fraud for s in train])
        assert both is not None
        assert alone is not None
        own = OddsScale(level=0.0, slope=0.0, cases=0, engine=1.0)
        found.append(loss_of(both, test) / min(loss_of(own, test), loss_of(alone, test)))
    return found


@pytest.mark.wide
@pytest.mark.parametrize(("engine", "model"), [(1.0, 1.0), (1.2, 0.0), (0.3, 1.2), (0.5, 0.5)])
def test_together_they_are_hardly_ever_worse_than_the_better_one(engine: float, model: float) -> None:
    found = ratios(engine, model, 240)
    assert np.mean(found) <= 1.01
    assert max(found) <= 1.05


def test_two_that_know_different_things_know_more() -> None:
    assert np.mean(ratios(1.0, 1.0, 66)) < 0.8


def test_a_model_that_adds_nothing_does_not_count() -> None:
    fitted = [fit_witness(views(1.2, 0.0, 200, seed)) for seed in range(20)]
    assert sum(scale is not None and scale.slope == 0.0 for scale in fitted) >= 16


def test_weights_of_a_sample_drawn_by_label_are_those_of_the_whole() -> None:
    said = views(0.7, 0.7, 40_000)
    frauds, honest = [s for s in said if s.is_fraud][:600], [s for s in said if not s.is_fraud][:600]
    drawn, whole = fit_witness(frauds + honest, 0.4), fit_witness(said[:3000])
    assert drawn is not None
    assert whole is not None
    assert drawn.level == pytest.approx(whole.level, abs=0.3)
    assert drawn.engine == pytest.approx(whole.engine, abs=0.2)
    assert drawn.slope == pytest.approx(whole.slope, abs=0.1)


@pytest.mark.parametrize(("frauds", "honest"), [(8, LEAST_CASES - 9), (7, 100), (100, 7), (0, 0)])
def test_too_few_cases_leave_the_usual_weights(frauds: int, honest: int) -> None:
    assert fit_witness([Said(1.0, 1.0, True)] * frauds + [Said(-1.0, -1.0, False)] * honest) is None


@given(
    said=st.lists(st.builds(Said, st.floats(-1e6, 1e6), st.floats(-60, 60), st.booleans()), min_size=40, max_size=60),
    base_rate=st.one_of(st.none(), st.floats(0, 1)),
)
def test_weights_are_finite_and_never_negative(said: list[Said], base_rate: float | None) -> None:
    if (scale := fit_witness(said, base_rate)) is not None:
        assert np.isfinite([scale.level, scale.engine, scale.slope]).all()
        assert min(scale.engine, scale.slope) >= 0


@given(engine=st.floats(-9, 9), said=st.floats(-60, 60), level=st.floats(-3, 3), slope=st.floats(0, 2))
def test_who_is_not_asked_could_not_have_changed_the_verdict(
    engine: float, said: float, level: float, slope: float
) -> None:
    scale = OddsScale(level=level, slope=slope, cases=50, engine=0.9)

    def verdict_at(odds: float) -> Verdict:
        return Verdict.of(odds >= 0)

    if not can_matter(engine, scale, verdict_at):
        counted = min(max(said, -MOST_SAID), MOST_SAID)
        assert verdict_at(0.9 * engine + level + slope * counted) is verdict_at(engine)


# --- decisions ---------------------------------------------------------------------------------------------------


def test_both_together_decide_better_than_either() -> None:
    train, test = cases(400), cases(400, seed=1, prefix="t")
    _, alone = decided(None, train, test)
    learner, together = decided(Witness(Scripted(), always=True), train, test)
    model = [0.5 + 0.35 * (1 if "odd wording" in case.transaction.text else -1) for case in test]
    p_model = np.where([case.is_fraud for case in test], model, 1 - np.array(model))
    assert log_loss(together, test) < min(log_loss(alone, test), float(-np.log(p_model).mean()))
    scale = learner.playbook.snapshot().scale("fraud_detection", scale_name(Scripted.model, combined=True))
    assert scale is not None
    assert scale.slope > 0.1
    assert {decision.probability_from for decision in together} == {ProbabilityFrom.COMBINED}


def test_the_reasons_add_up_and_name_the_opinion() -> None:
    learner = Learner(BulletPlaybook(), agent=Witness(Scripted(), always=True))
    learner.playbook.add_bullet("VPN: decline")
    decision = run(learner.decide(Transaction(id="t", text="note: odd wording", facts={"vpn": True})))
    total = decision.base + sum(reason.contribution or 0.0 for reason in decision.reasons)
    assert sigmoid(total) == pytest.approx(decision.probability)
    (opinion,) = [reason for reason in decision.reasons if reason.kind is ReasonKind.MODEL]
    assert opinion.text == "the model thinks 99 %"
    assert opinion.contribution == USUAL.slope * 5.0
    assert decision.engine_odds == pytest.approx(total - 5.0 * USUAL.slope)
    assert run(learner.replay(decision)).same_as(decision)


def test_the_model_is_asked_only_where_it_can_change_the_verdict() -> None:
    train, test = cases(400, helps=False), cases(200, seed=1, helps=False, prefix="t")
    model = Scripted()
    witness = Witness(model)
    learner = Learner(BulletPlaybook(), agent=witness)
    learner.study(train)
    playbook = learner.playbook
    scale = OddsScale(level=0.0, slope=0.15, cases=50, engine=1.0)
    playbook.record([OddsScaled(node="fraud_detection", model=scale_name(model.model, combined=True), scale=scale)])
    made = list(run(learner.decide_all([case.transaction for case in test])))
    asked = [decision for decision in made if decision.engine_odds is not None]
    assert 0 < len(asked) < len(test)
    assert len(asked) == len(model.asked) == witness.by_model
    assert witness.by_tier == len(test) - len(asked)
    sure = Learner(playbook, agent=Witness(Scripted(), always=True))
    every = list(run(sure.decide_all([case.transaction for case in test])))
    assert [one.verdict for one in made] == [one.verdict for one in every]


def test_outcomes_teach_the_weights(tmp_path: Any) -> None:
    never = 10**9
    options = LearnerOptions(review_least=never, review_at_last=never, watch_every=never, reflect_every=50)
    learner = Learner(BulletPlaybook(), agent=Witness(Scripted(), always=True), options=options)
    known = cases(120)
    for start in range(0, 120, 30):
        some = known[start : start + 30]
        run(learner.decide_all([case.transaction for case in some]))
        run(learner.hear_all([Outcome(transaction_id=c.transaction.id, is_fraud=c.is_fraud) for c in some]))
    told = [event.payload for event in learner.playbook.ledger.read() if isinstance(event.payload, OddsScaled)]
    assert [each.scale.cases for each in told] == [60, 120]
    assert {each.model for each in told} == {"scripted:reader and embedded"}
    again = Learner(learner.playbook, agent=Witness(Scripted(), always=True), options=options)
    more = cases(30, seed=3, prefix="m")
    run(again.decide_all([case.transaction for case in more]))
    run(again.hear_all([Outcome(transaction_id=c.transaction.id, is_fraud=c.is_fraud) for c in more]))
    last = [event.payload for event in learner.playbook.ledger.read() if isinstance(event.payload, OddsScaled)][-1]
    assert last.scale.cases == 150, "what an earlier learner heard counts too"
    assert matches_replay(learner.playbook)


def test_cases_are_decided_by_an_engine_that_has_not_learnt_from_them() -> None:
    """An engine that knew the answers would seem to need no witness."""
    known = cases(200)
    learner = Learner(BulletPlaybook(), agent=Witness(Scripted(), always=True))
    learner.study(known)
    without = learner._learnt_without(known[:60]).calibration("fraud_detection")
    assert without is not None
    assert without.cases == 140
    assert learner._learnt_without(cases(20, seed=5, prefix="new")) == learner.playbook.snapshot()


def test_a_model_that_fails_is_no_witness() -> None:
    class Failing(Scripted):
        async def assess(self, question: Question) -> Assessment:
            raise ModelError(f"no answer to {question.text}")

    order = Transaction(id="t", text="plain", facts={"vpn": True})
    lenient = Learner(BulletPlaybook(), agent=Witness(WithFallback(Failing(), Fallback.REVIEW), always=True))
    decision = run(lenient.decide(order))
    assert (decision.verdict, decision.fallback, decision.engine_odds) == (Verdict.REVIEW, "no answer to plain", None)
    strict = Learner(BulletPlaybook(), agent=Witness(Failing(), always=True))
    with pytest.raises(ModelError, match="no answer"):
        run(strict.decide(order))


# --- settings ----------------------------------------------------------------------------------------------------


def test_the_setting_makes_a_witness() -> None:
    roles = build_roles(ModelSettings(agent="openai:m", opinion="combined", cache=None))
    assert isinstance(roles.agent, Witness)
    assert roles.agent is roles.tier
    assert roles.scale_odds > 0
    in_full = roles.without_tier()
    assert isinstance(in_full.agent, Witness)
    assert in_full.agent is not roles.agent
    assert not isinstance(build_roles(ModelSettings(agent="openai:m", cache=None)).agent, Witness)


@pytest.mark.parametrize("settings", [{"opinion": "both"}, {"opinion": "combined", "tier": 0.9}])
def test_what_makes_no_sense_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ModelSettings(agent="openai:m", **settings)
